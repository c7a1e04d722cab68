//! What the tests against real JVMs are made of: Java versions, target programs, and Tare itself,
//! started as a user starts it.
//!
//! The tests are in `tests/it`, one situation per file. This library never looks inside Tare: it
//! knows its binaries, its protocol and the traces that it may or may not leave on a machine.
//! Where everything is, `cargo xtask test` tells by environment variables.
//!
//! Whatever is started here is ended again by its pid, also when a test fails. Time-outs are
//! generous, because they only decide how late a hang is noticed; no test measures speed.
#![forbid(unsafe_code)]

mod alloc;
mod control;
mod demo;
mod env;
mod heap;
mod hprof;
mod java;
mod machine;
mod proc;
mod sampling;
mod tare;
mod target;
mod weave;

pub use alloc::{Allocating, Allocation, Allocations, Survivor};
pub use control::{Control, control_dirs, control_socket};
pub use demo::Demo;
pub use env::{Env, Jdk, env, jdk, on_jdk, skip};
pub use heap::{HeapFile, Object, class_histogram};
pub use hprof::{Globals, jni_globals};
pub use java::{
    agent_jar, classes, classes_in, compiled, demo_classes, java_agent, jdk_tool, modern_classes,
    program_classes,
};
pub use machine::{
    PATIENCE, Scratch, Seeded, can, is_root, no_crash_files, shared_classes, shared_jdk, wait_until,
};
pub use proc::{
    Usage, cpu_of_threads, descendants, exists, is_ours, jvm_below, mappings, open_files,
    own_mappings, thread_names,
};
pub use sampling::{Samples, Sampling, Stack};
pub use tare::{Outcome, Running, Tare};
pub use target::{Target, TargetBuilder};
pub use weave::{
    BROKEN, Counts, Probed, java, patch_option, path, probe_runtime, run, run_counted, single_step,
    test_natives, weave, weave_classes,
};

/// Makes of one function a test per Java version, so that a failure says on which it happened:
/// `name::jdk17`, `name::jdk21`, `name::jdk25`.
#[macro_export]
macro_rules! on_each_jdk {
    ($($(#[$doc:meta])* fn $name:ident($jdk:ident) $body:block)+) => {$(
        $(#[$doc])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            fn body($jdk: &$crate::Jdk) $body

            #[test]
            fn jdk17() {
                $crate::on_jdk(17, body);
            }

            #[test]
            fn jdk21() {
                $crate::on_jdk(21, body);
            }

            #[test]
            fn jdk25() {
                $crate::on_jdk(25, body);
            }
        }
    )+};
}
