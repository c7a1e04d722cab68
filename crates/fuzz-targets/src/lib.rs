//! Everything of Tare that reads bytes of others, as functions that a fuzzer calls: a target takes
//! any bytes and panics where something is wrong. [`TARGETS`] is the only list of them. The plain
//! mutating driver (`main.rs`, `cargo xtask fuzz`) and cargo-fuzz (`fuzz/`) both use it.
//!
//! What bytes to begin with is told by each target's seeds (`made`, `classes`); how they are
//! changed is left to the driver.

pub mod classes;
mod dice;
mod made;
pub mod mutate;
mod targets;

use targets::{
    arena, class_file, elf, formats, heap_dump, heap_index, http, jar, process, protocol,
    recording, stream,
};

/// What reads bytes of others.
pub struct Target {
    pub name: &'static str,
    /// Whose bytes they are, and what must hold.
    pub what: &'static str,
    /// Panics where something is wrong.
    pub run: fn(&[u8]),
    pub seeds: Seeds,
}

/// What a fuzzer begins with.
pub enum Seeds {
    /// Made by our own writers; always the same.
    Made(fn() -> Vec<Vec<u8>>),
    /// Real class files, if there are any at hand.
    Classes,
    /// Jars of such class files.
    Jars,
}

impl Target {
    /// The seeds, from these class files if it needs some.
    #[must_use]
    pub fn seeds(&self, classes: &[Vec<u8>]) -> Vec<Vec<u8>> {
        match self.seeds {
            Seeds::Made(make) => make(),
            Seeds::Classes => classes.to_vec(),
            Seeds::Jars => made::jars(classes),
        }
    }

    #[must_use]
    pub fn find(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }
}

const fn target(name: &'static str, what: &'static str, run: fn(&[u8]), seeds: Seeds) -> Target {
    Target { name, what, run, seeds }
}

/// All targets. A new reader of foreign bytes is a line here, and one in `fuzz/Cargo.toml`.
pub const TARGETS: &[Target] = &[
    target("parse", "any bytes as a class: read and print", class_file::parse, Seeds::Classes),
    target(
        "round_trip",
        "a class that is read is written back as it was",
        class_file::round_trip,
        Seeds::Classes,
    ),
    target(
        "weave",
        "every mode: readable, repeatable, refusals untouched",
        class_file::weave,
        Seeds::Classes,
    ),
    target("jar", "a jar: its classes, and all of it woven", jar::run, Seeds::Jars),
    target(
        "recording",
        "a .tare file: summary, and loading within a limit of memory",
        recording::run,
        Seeds::Made(made::recordings),
    ),
    target("jfr", "a JFR file: read, then every exporter", formats::run, Seeds::Made(made::jfr)),
    target("pprof", "a pprof file, the same", formats::run, Seeds::Made(made::pprof)),
    target("collapsed", "collapsed stacks, the same", formats::run, Seeds::Made(made::collapsed)),
    target(
        "arena",
        "the memory that the agent shares: trees and names",
        arena::trees,
        Seeds::Made(made::arenas),
    ),
    target(
        "trace",
        "the rings of a trace in that memory, and how far they were read",
        arena::rings,
        Seeds::Made(made::rings),
    ),
    target(
        "stream",
        "the stream of an agent: drained, and collected into a profile",
        stream::run,
        Seeds::Made(made::streams),
    ),
    target(
        "protocol",
        "messages in any portions; patterns",
        protocol::messages,
        Seeds::Made(made::messages),
    ),
    target(
        "options",
        "the agent's options, and names of its directory",
        protocol::options,
        Seeds::Made(made::options),
    ),
    target(
        "heapdump",
        "a .hprof file: read, asked everything, written again",
        heap_dump::run,
        Seeds::Made(made::heap_dumps),
    ),
    target(
        "heap_index",
        "a small dump with an index: opened, asked everything",
        heap_index::run,
        Seeds::Made(made::heap_indexes),
    ),
    target("http", "requests to the page of tare view", http::run, Seeds::Made(made::requests)),
    target(
        "perfdata",
        "a JVM's performance data, which another user may have planted",
        process::perfdata,
        Seeds::Made(made::perfdata),
    ),
    target(
        "command_line",
        "command lines of JVMs, files of arguments and of flags; passwords in them",
        process::command_line,
        Seeds::Made(made::command_lines),
    ),
    target(
        "process_files",
        "what the kernel tells of a process, and what a JVM answers to an attach",
        process::files,
        Seeds::Made(made::process_files),
    ),
    target(
        "elf",
        "a library: whether it is whole, its functions, names of addresses",
        elf::library,
        Seeds::Made(made::elf_files),
    ),
    target(
        "unwind",
        "call-frame information: functions, rows, tables",
        elf::frames,
        Seeds::Made(made::frames),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_pass_and_names_are_unique() {
        let classes = vec![b"\xca\xfe\xba\xbe".to_vec()];
        for (at, target) in TARGETS.iter().enumerate() {
            assert!(TARGETS[..at].iter().all(|other| other.name != target.name));
            let seeds = target.seeds(&classes);
            assert!(!seeds.is_empty(), "{} has no seeds", target.name);
            seeds.iter().for_each(|seed| (target.run)(seed));
        }
    }

    /// cargo-fuzz finds targets by name in that manifest, and each is one line of Rust.
    #[test]
    fn cargo_fuzz_has_the_same_targets() {
        let manifest = include_str!("../../../fuzz/Cargo.toml");
        let names: Vec<&str> = manifest
            .split("path = \"fuzz_targets/")
            .skip(1)
            .filter_map(|rest| rest.split(".rs\"").next())
            .collect();
        let ours: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        assert_eq!(names, ours);
    }
}
