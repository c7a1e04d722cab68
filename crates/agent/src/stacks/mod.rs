//! Stacks of this process: from the registers of a thread to its frames, native and Java, by what HotSpot
//! exports about itself.
//!
//! Usable from a signal handler and from any callback of the JVM; knows nothing of who asks, nor of where
//! frames go (`stream`).

mod code;
pub mod fault_guard;
pub mod frames;
pub mod hotspot;
pub mod ids;
pub mod methods;
pub mod virtual_threads;
pub mod walk;
#[cfg(test)]
mod walk_tests;
