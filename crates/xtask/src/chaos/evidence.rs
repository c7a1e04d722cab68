//! What a failed round leaves: the reason, and of a hang what every thread was at.

use super::watch;
use crate::processes;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use std::{fs, io, thread};

#[derive(Debug)]
pub struct Failure {
    pub reason: String,
    /// Something did not end: where everybody was is of interest.
    pub hangs: bool,
}

impl Failure {
    pub fn new(reason: String) -> Self {
        Failure { reason, hangs: false }
    }

    pub fn hang(reason: String) -> Self {
        Failure { reason, hangs: true }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::new(format!("the round itself failed: {error}"))
    }
}

/// Writes down where every thread of every process of a round is. The JVM's own dump goes to the
/// program's output.
pub fn save_stacks(directory: &Path, jvm: Option<u32>) {
    let mut text = String::new();
    for pid in watch::of_round(directory) {
        let _ = writeln!(text, "process {pid}: {}", processes::command_line(pid));
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.filter_map(Result::ok).map(|entry| entry.path()) {
            let read = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
            let status = read("status");
            let state = status.lines().find(|line| line.starts_with("State:")).unwrap_or_default();
            let (name, place) = (read("comm"), read("wchan"));
            let _ = writeln!(text, "  {} {}, {state}, {place}", task.display(), name.trim());
            let _ = writeln!(text, "    call {}", read("syscall").trim());
            read("stack").lines().for_each(|line| {
                let _ = writeln!(text, "    {line}");
            });
        }
    }
    // It says what could be had; a directory that is gone has nothing to tell.
    let _ = fs::write(directory.join("stacks.txt"), text);
    if let Some(pid) = jvm {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let _ = fs::write(directory.join("maps.txt"), maps);
        watch::signal(pid, "QUIT");
        thread::sleep(Duration::from_secs(10));
    }
}
