//! What is told from a heap. Each file answers one question; none of them knows how it is shown.

pub mod boxed;
pub mod collections;
pub mod diff;
pub mod histogram;
pub mod loaders;
pub mod outline;
pub mod query;
pub mod strings;
pub mod suspects;
pub mod threads;
mod visit;
