//! Assertions that several situations share.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tare_jvm_tests::{
    PATIENCE, Target, env, is_ours, mappings, open_files, own_mappings, thread_names,
};

/// `-agentpath:LIBRARY` with options.
pub fn agentpath(options: &str) -> String {
    let library = env().agent.display();
    if options.is_empty() {
        format!("-agentpath:{library}")
    } else {
        format!("-agentpath:{library}={options}")
    }
}

/// What is left of us in a JVM right now, as text; empty is what a detach promises. The library
/// itself stays mapped, because a JVM cannot unload it.
pub fn traces(pid: u32) -> String {
    let mut found = Vec::new();
    found.extend(thread_names(pid).into_iter().filter(|name| name.starts_with("tare")));
    found.extend(open_files(pid).into_iter().filter(|file| is_ours(file)));
    let library = |line: &String| line.contains("/libtare_agent");
    found.extend(own_mappings(pid).into_iter().filter(|line| !library(line)));
    found.extend(files_about(Path::new("/tmp"), pid));
    found.join("\n")
}

/// The files in a temporary directory that we make for a JVM: the control socket's directory, the
/// library's, and the file that asks the JVM to open its attach socket.
pub fn files_about(tmp: &Path, pid: u32) -> Vec<String> {
    let entries = fs::read_dir(tmp).into_iter().flatten().filter_map(Result::ok);
    let ours = |name: &String| {
        let tare = name.starts_with(".tare-") && name.contains(&format!("-{pid}-"));
        tare || *name == format!(".attach_pid{pid}")
    };
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).filter(ours).collect()
}

/// Asserts that a JVM holds nothing of ours, a moment after a detach: the control thread answers
/// before its very last instruction.
#[track_caller]
pub fn assert_no_trace(pid: u32) {
    assert!(!mappings(pid).is_empty(), "process {pid} is gone");
    let limit = Instant::now() + PATIENCE;
    loop {
        let left = traces(pid);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < limit, "still in process {pid}:\n{left}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The sockets and other nameless descriptors of a process. A plain target has none until
/// somebody attaches, and then the JVM's own listener only.
pub fn nameless_files(pid: u32) -> Vec<String> {
    let kinds = ["socket:", "anon_inode:", "memfd:"];
    let nameless = |file: &String| kinds.iter().any(|kind| file.contains(kind));
    open_files(pid).into_iter().filter(nameless).collect()
}

/// Asserts that the program itself sees no thread of ours.
#[track_caller]
pub fn assert_no_java_thread(target: &mut Target) {
    let threads = target.ask("threads");
    assert!(!threads.contains("tare"), "{threads}");
}

/// A wait that was recorded, and what the program knows of it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    pub recorded: u64,
    /// By the waiting thread's own clock, before and afterwards.
    pub most: u64,
    /// From when another thread saw it wait to when that one ended the wait.
    pub least: u64,
}

/// By how much a time may be wrong: nanoseconds, or one part in so many of it.
const BAND: u64 = 100_000;
const PART: u64 = 20;

/// Every wait is as long as the program says, to 100 µs or 5 %. It knows two bounds, between which
/// anything may come in between on a busy machine; half of the waits are near the upper one.
#[track_caller]
pub fn assert_times(what: &str, all: &[Timed]) {
    let band = |time: u64| BAND.max(time / PART);
    for one in all {
        let Timed { recorded, most, least } = *one;
        assert!(least <= most, "{what}: the program's own clocks disagree: {one:?}");
        assert!(recorded <= most + band(most), "{what}: too long: {one:?}");
        assert!(recorded + band(least) >= least, "{what}: too short: {one:?}");
    }
    let near = all.iter().filter(|one| one.most.abs_diff(one.recorded) <= band(one.most));
    assert!(near.count() * 2 >= all.len(), "{what}: {all:?}");
}
