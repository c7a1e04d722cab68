//! What the kernel tells about a process: its threads, descriptors and mappings.
//!
//! All of it is read from /proc and none of it asks the process itself.

use std::fs;
use std::path::PathBuf;

/// How much of the machine a process holds. Compared before and after, it shows what leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub threads: usize,
    pub descriptors: usize,
    pub mappings: usize,
}

impl Usage {
    pub fn of(pid: u32) -> Self {
        Usage {
            threads: thread_names(pid).len(),
            descriptors: open_files(pid).len(),
            mappings: mappings(pid).len(),
        }
    }

    /// The least of each, which is what remains when passing things are over.
    pub fn least(of: &[Usage]) -> Self {
        let least = |f: fn(&Usage) -> usize| of.iter().map(f).min().unwrap_or_default();
        Usage {
            threads: least(|u| u.threads),
            descriptors: least(|u| u.descriptors),
            mappings: least(|u| u.mappings),
        }
    }
}

/// Whether there is such a process, and it is not merely waiting to be reaped.
pub fn exists(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| !status.contains("State:\tZ") && !status.contains("State:\tX"))
}

/// The names of a process's threads, cut by the kernel to 15 bytes.
pub fn thread_names(pid: u32) -> Vec<String> {
    let tasks = list(format!("/proc/{pid}/task"));
    let name = |task: &PathBuf| Some(fs::read_to_string(task.join("comm")).ok()?.trim().to_owned());
    tasks.iter().filter_map(name).collect()
}

/// Nanoseconds that the threads of a process whose names begin so have been on a processor.
pub fn cpu_of_threads(pid: u32, names: &str) -> u64 {
    let of = |task: &PathBuf| {
        let name = fs::read_to_string(task.join("comm")).ok()?;
        let times = fs::read_to_string(task.join("schedstat")).ok()?;
        name.starts_with(names).then_some(())?;
        times.split(' ').next()?.parse::<u64>().ok()
    };
    list(format!("/proc/{pid}/task")).iter().filter_map(of).sum()
}

/// What each open descriptor refers to.
pub fn open_files(pid: u32) -> Vec<String> {
    let target = |fd: &PathBuf| Some(fs::read_link(fd).ok()?.to_string_lossy().into_owned());
    list(format!("/proc/{pid}/fd")).iter().filter_map(target).collect()
}

/// The lines of a process's memory map.
pub fn mappings(pid: u32) -> Vec<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().map(str::to_owned).collect()
}

/// Whether a path or a line that ends in one is a file of ours. A directory `tare` above it, such
/// as the cache of Java runtimes, does not make it so.
pub fn is_ours(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.contains("tare") || path.contains("/.tare-")
}

/// The mapped files that are ours, as lines of the memory map.
pub fn own_mappings(pid: u32) -> Vec<String> {
    let named = |line: &String| line.contains('/') && is_ours(line);
    mappings(pid).into_iter().filter(named).collect()
}

/// Every process below `pid`, not itself.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in list(format!("/proc/{pid}/task")) {
        let children = fs::read_to_string(task.join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|word| word.parse().ok()) {
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}

/// The JVM that runs in `pid` or in a process below it, once it has come so far.
pub fn jvm_below(pid: u32) -> Option<u32> {
    let is_jvm = |pid: &u32| mappings(*pid).iter().any(|line| line.ends_with("/libjvm.so"));
    std::iter::once(pid).chain(descendants(pid)).find(is_jvm)
}

fn list(directory: String) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen() {
        let me = std::process::id();
        assert!(exists(me));
        let usage = Usage::of(me);
        assert!(usage.threads >= 1 && usage.descriptors >= 3 && usage.mappings > 3, "{usage:?}");
        assert!(jvm_below(me).is_none());
    }

    #[test]
    fn ours_is_told_by_the_files_own_name() {
        for ours in
            ["/x/libtare_agent-00.so (deleted)", "/tmp/.tare-1-00/control", "/memfd:tare-arena"]
        {
            assert!(is_ours(ours), "{ours}");
        }
        for other in ["/c/tare/runtime-21/lib/libjava.so", "socket:[17]", "/tmp/.java_pid1"] {
            assert!(!is_ours(other), "{other}");
        }
    }

    #[test]
    fn a_process_that_is_gone_is_not_seen() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!exists(child.id()));
        assert_eq!(Usage::of(child.id()), Usage { threads: 0, descriptors: 0, mappings: 0 });
    }
}
