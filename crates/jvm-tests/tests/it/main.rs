//! Tests against real JVMs, one hostile situation or feature per file.
//!
//! One binary holds them all, so that they share the machine: cargo would run several one after
//! the other. Run them with `cargo xtask test`, or some of them with `cargo xtask test WORD`.
#![forbid(unsafe_code)]

mod archives;
mod attach;
mod attach_forbidden;
mod bytecode_samples;
mod bytecodes;
mod check;
mod common;
mod container_limit;
mod control_socket;
mod credentials;
mod crowds;
mod cycles;
mod descriptors;
mod doctor;
mod embedded;
mod ends;
mod exact;
mod exact_bounded;
mod exact_intrinsics;
mod exact_loaders;
mod exact_times;
mod exports;
mod filtered_calls;
mod flight_recorder;
mod follow;
mod foreign_files;
mod front_end_killed;
mod full_disk;
mod held_up;
mod hostile_names;
mod impostors;
mod instrument;
mod java_agents;
mod launched;
mod left_alone;
mod linking;
mod names;
mod namespaces;
mod never_woven;
mod not_a_jvm;
mod other_jvms;
mod other_user;
mod planted_files;
mod recorder_killed;
mod recording;
mod redefined;
mod reduced_signals;
mod regions;
mod run;
mod sampling;
mod sampling_accuracy;
mod sampling_commands;
mod sampling_hostile;
mod sampling_redefined;
mod sampling_sessions;
mod sampling_soak;
mod sampling_wall;
mod shared_memory;
mod stopped;
mod stops;
mod subgraph;
mod target;
mod temporary_directories;
mod thread_retransformed;
mod time;
mod trace;
mod upcalls;
mod versions;
mod virtual_threads;
mod whole_jdk;
mod young_jvm;

