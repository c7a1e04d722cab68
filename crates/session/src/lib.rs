//! Recording sessions: what stands between a front end and the agent in a JVM.

pub mod client;
pub mod counters;
pub mod demotion;
pub mod desk;
mod error;
pub mod exact;
pub mod guard;
pub mod headway;
pub mod keep;
pub mod launch;
pub mod library;
mod note;
pub mod origins;
pub mod perf;
pub mod recorder;
mod regions;
pub mod sampling;
pub mod trace;
pub mod words;

pub use error::{Error, Result};
pub use note::Note;
