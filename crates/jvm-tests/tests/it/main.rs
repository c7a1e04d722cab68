//! Tests against real JVMs, one hostile situation or feature per file.
//!
//! One binary holds them all, so that they share the machine: cargo would run several one after
//! the other. Run them with `cargo xtask test`, or some of them with `cargo xtask test WORD`.
#![forbid(unsafe_code)]

mod common;

mod control_socket;
mod credentials;
mod launched;
