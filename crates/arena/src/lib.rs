//! The memory that the profiled JVM shares with the front end: calling-context trees, written by
//! the running threads, and the names of what is in them, written by the agent; the rings of a
//! trace (`trace`); and the stream of a sampling session (`samples`).
//!
//! LAYOUT.md beside this crate describes them. This crate knows where things are and how to read
//! them at any moment, from bytes that are being written to; it does not know what the numbers
//! mean, and it neither maps memory nor opens files. Readers are total: damaged bytes give an
//! error or less data, never a panic.
#![forbid(unsafe_code)]

mod clock;
mod estimate;
mod follow;
pub mod layout;
mod names;
mod nodes;
mod pages;
mod regions;
pub mod samples;
mod spread;
pub mod trace;
mod tree;
mod window;

pub use clock::Clock;
pub use follow::{FollowedCalls, KeptCall, RootCalls, Variances};
pub use names::{MethodName, NameLog, Names};
pub use nodes::{Node, Nodes};
pub use regions::{RegionFigures, stretch};
pub use spread::{Spread, spread_ticks};
pub use tree::{Pruning, ReadError, Snapshot, Tree};
pub use window::ReadAt;
