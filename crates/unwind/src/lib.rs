//! Steps through native frames of the running process, also from a signal handler.
//!
//! HotSpot's library and most others are built without frame pointers; what describes their
//! frames is the call-frame information in `.eh_frame`, meant for exceptions and too slow and too
//! clever for a handler. So a thread that may allocate reads it ahead of time ([`Modules::read`])
//! into tables of a few bytes per row ([`table::Table`]), makes them visible ([`Published`]), and
//! the handler only searches them ([`walk`]): no allocation, no lock, no system call except those
//! of the [`Memory`] it is given, no panic.
//!
//! The walk ends where the modules end. In a JVM that is a Java frame: the caller takes over with
//! the registers it gets back. This crate knows nothing of JVMs, and gives addresses, not names.
//!
//! Written for x86-64 and aarch64; tested on x86-64.

pub mod cfi;
pub mod elf;
mod filter;
mod memory;
mod modules;
mod published;
mod read;
mod rule;
pub mod table;
mod walk;

pub use filter::is_filtered;
pub use memory::{Bounds, Memory, Window, read_self, registers_of};
pub use modules::{Budget, Generation, Module, Modules, NoTable};
pub use published::{Guard, Published};
pub use rule::{Base, Cfa, Place, Rule};
pub use walk::{Cursor, End, Walked, step, walk};
