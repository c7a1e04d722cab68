//! Finds JVMs on this machine, has them load the agent by HotSpot's attach protocol, and connects
//! to the agent's control socket, across containers and users. Linux only.
//!
//! Knows nothing of profiles, nor of what is said over a control socket. A program that uses this
//! crate calls [`run_if_child`] first thing in `main`: acting with another user's rights takes a
//! second start of the program.
#![forbid(unsafe_code)]

mod child;
mod cmdline;
mod command;
mod control;
mod elf;
mod error;
mod hands;
mod hotspot;
mod jvm;
mod load;
mod perfdata;
mod procfs;
mod rights;
mod session;
mod view;

pub use child::run_if_child;
pub use command::jcmd;
pub use control::{Control, connect};
pub use error::{Candidate, Error, Kind, Step};
pub use jvm::{AgentSeen, Jvm, VmKind, find, inspect, list};
pub use load::{Loaded, load_agent};
