//! What must hold after the agent has left: nothing of ours is there, what the JVM holds is back at
//! its level, and the program is as quick as before.
//!
//! Levels have bands, because a JVM makes compiler threads, buffers and arenas of its own as it
//! likes, and others have been there, too. What is ours has none: there must be nothing.

use super::evidence::Failure;
use super::ground::Ground;
use super::program::Program;
use super::watch::{self, until};
use crate::processes::{self, Usage};
use std::path::Path;

const MORE_THREADS: usize = 24;
const MORE_DESCRIPTORS: usize = 16;
const MORE_MAPPINGS: usize = 600;

/// KiB beyond the heap: classes, code, and what the C library keeps.
const MORE_MEMORY: u64 = 192 << 10;

/// KiB that are shared with somebody: there is no reason for any but ours.
const MORE_SHARED: u64 = 1 << 10;

/// A unit of work may take so many times what it took: compilers have luck, and less of it.
/// Whatever counts or times calls makes it several times as dear.
const SLOWER: u64 = 2;

/// So short a time says little.
const NANOS: u64 = 20_000;

/// How it was before anybody came.
pub struct Before {
    usage: Usage,
    nanos: u64,
}

impl Before {
    pub fn of(program: &mut Program) -> Result<Self, Failure> {
        program.ask("rest")?;
        let before = Before { usage: Usage::of(program.pid()), nanos: measured(program)? };
        program.ask("go")?;
        Ok(before)
    }
}

fn measured(program: &mut Program) -> Result<u64, Failure> {
    let answer = program.ask("measure")?;
    answer.parse().map_err(|_| Failure::new(format!("no time: {answer}")))
}

/// The most that the heap of a JVM may take, in KiB.
pub fn heap(flags: &[String]) -> u64 {
    let most = flags.iter().find_map(|flag| flag.strip_prefix("-Xmx")).unwrap_or_default();
    let (number, unit) = most.split_at(most.len().saturating_sub(1));
    number.parse::<u64>().unwrap_or(0) << if unit == "g" { 20 } else { 10 }
}

/// Looks at a program that rests and has been left. What it says is for the log.
pub fn after(program: &mut Program, before: &Before, flags: &[String]) -> Result<String, Failure> {
    let pid = program.pid();
    nothing_left(pid)?;
    program.ask("collect")?;
    let old = before.usage;
    // This collector shares its heap with itself, and may map it three times.
    let is_z = flags.iter().any(|flag| flag == "-XX:+UseZGC");
    let heap = heap(flags) * if is_z { 3 } else { 1 };
    let mappings = MORE_MAPPINGS * if is_z { 3 } else { 1 };
    let mut usage = old;
    let mut holds = || {
        usage = Usage::of(pid);
        let shared = MORE_SHARED + if is_z { heap } else { 0 };
        usage.threads <= old.threads + MORE_THREADS
            && usage.descriptors <= old.descriptors + MORE_DESCRIPTORS
            && usage.mappings <= old.mappings + mappings
            && usage.shared <= old.shared + shared
            && usage.own + usage.shared <= old.own + old.shared + heap + MORE_MEMORY
    };
    if until("all is back at its level", &mut holds).is_err() {
        let kinds = processes::kinds(pid);
        return Err(Failure::hang(format!("grown from {old:?} to {usage:?}, {kinds:?}")));
    }
    let mut nanos = measured(program)?;
    let mut failed = None;
    let is_quick = until("the program is as quick as before", || {
        match measured(program) {
            Ok(again) => nanos = nanos.min(again),
            Err(failure) => failed = Some(failure),
        }
        failed.is_some() || nanos <= before.nanos * SLOWER + NANOS
    });
    if let Some(failure) = failed {
        return Err(failure);
    }
    if is_quick.is_err() {
        let reason = format!("a unit of work takes {nanos} ns, {} before", before.nanos);
        return Err(Failure::hang(reason));
    }
    let memory = (usage.own + usage.shared) >> 10;
    Ok(format!("{memory} MiB, {} → {nanos} ns", before.nanos))
}

fn nothing_left(pid: u32) -> Result<(), Failure> {
    let mut left = Vec::new();
    let waited = until("nothing of ours is left", || {
        left = processes::traces(pid);
        left.is_empty()
    });
    waited.map_err(|_| Failure::hang(format!("left in the JVM: {}", left.join("; "))))
}

/// What a round may not leave when all of it has ended.
pub fn at_last(ground: &Ground, directory: &Path, pid: u32) -> Result<(), Failure> {
    let mut left = Vec::new();
    let waited = until("all processes of the round end", || {
        left = watch::of_round(directory);
        left.is_empty()
    });
    waited.map_err(|_| {
        let lines: Vec<String> = left.iter().map(|pid| processes::command_line(*pid)).collect();
        Failure::hang(format!("processes are left: {}", lines.join("; ")))
    })?;
    let files = processes::files_about("/tmp", pid);
    if !files.is_empty() {
        return Err(Failure::new(format!("left in /tmp: {}", files.join(", "))));
    }
    let crashes = crashes(directory);
    if !crashes.is_empty() {
        return Err(Failure::new(format!("a JVM crashed: {}", crashes.join(", "))));
    }
    // Nobody has removed what everybody needs.
    match ground.agent.is_file() {
        true => Ok(()),
        false => Err(Failure::new("the agent's own file is gone".to_owned())),
    }
}

pub fn crashes(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("hs_err") || name.starts_with("core")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_has_a_size() {
        let of = |flag: &str| heap(&["-Xint".to_owned(), flag.to_owned()]);
        assert_eq!((of("-Xmx320m"), of("-Xmx2g"), of("-Xcomp")), (320 << 10, 2 << 20, 0));
    }
}
