//! What `cargo xtask` and the benchmarks share: running programs, finding and fetching JDKs and
//! jars, and the stages of a long command.
//!
//! It builds in seconds on a machine that has nothing but cargo, so it depends on no other crate of
//! ours. What is tested or measured with it, `xtask` and `bench` know.
#![forbid(unsafe_code)]

pub mod jars;
pub mod jdks;
pub mod runtimes;
pub mod setup;
pub mod shell;
pub mod stages;
