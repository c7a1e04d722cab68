//! The stream of records that a front end drains: the ring, stacks that were sent already, names of methods,
//! and the threads that records are about.
//!
//! Any engine may append; knows nothing of what the records are for.

pub mod names;
pub mod pace;
pub mod ring;
pub mod threads;
pub mod traces;
