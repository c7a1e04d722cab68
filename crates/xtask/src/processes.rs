//! What the kernel tells about a process: what it holds, and what of it is ours. All of it is read
//! from /proc, and none of it asks the process.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub fn list(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).collect()
}

pub fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// How much of the machine a process holds.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub threads: usize,
    pub descriptors: usize,
    pub mappings: usize,
    /// Memory that is its own, and memory that it shares, in KiB.
    pub own: u64,
    pub shared: u64,
}

impl Usage {
    pub fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        Usage {
            threads: threads(pid).len(),
            descriptors: descriptors(pid).len(),
            mappings: mappings(pid).len(),
            own: field("RssAnon:"),
            shared: field("RssShmem:"),
        }
    }

    /// The least of each, which is what remains when passing things are over.
    pub fn least(all: &[Usage]) -> Self {
        let least = |f: fn(&Usage) -> usize| all.iter().map(f).min().unwrap_or_default();
        let memory = |f: fn(&Usage) -> u64| all.iter().map(f).min().unwrap_or_default();
        Usage {
            threads: least(|usage| usage.threads),
            descriptors: least(|usage| usage.descriptors),
            mappings: least(|usage| usage.mappings),
            own: memory(|usage| usage.own),
            shared: memory(|usage| usage.shared),
        }
    }
}

pub fn threads(pid: u32) -> Vec<String> {
    let name = |task: PathBuf| Some(fs::read_to_string(task.join("comm")).ok()?.trim().to_owned());
    list(format!("/proc/{pid}/task")).into_iter().filter_map(name).collect()
}

pub fn descriptors(pid: u32) -> Vec<String> {
    let target = |fd: PathBuf| Some(fs::read_link(fd).ok()?.to_string_lossy().into_owned());
    list(format!("/proc/{pid}/fd")).into_iter().filter_map(target).collect()
}

pub fn mappings(pid: u32) -> Vec<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().map(str::to_owned).collect()
}

/// What is left of us in a JVM; empty is what a detach promises. The library itself stays mapped,
/// because a JVM cannot unload it.
pub fn traces(pid: u32) -> Vec<String> {
    let is_ours = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        (file.contains("tare") && !file.contains("libtare_test")) || path.contains("/.tare-")
    };
    let mut found: Vec<String> = Vec::new();
    found.extend(threads(pid).into_iter().filter(|name| name.starts_with("tare")));
    let logs = |path: &String| path.ends_with(".log");
    found.extend(descriptors(pid).into_iter().filter(|path| is_ours(path) && !logs(path)));
    let named = |line: &String| line.contains('/') && !line.contains("/libtare_agent");
    found.extend(mappings(pid).into_iter().filter(|line| named(line) && is_ours(line)));
    found.extend(files_about(&format!("/proc/{pid}/root/tmp"), pid));
    let children = list(format!("/proc/{pid}/task")).into_iter().flat_map(|task| {
        let text = fs::read_to_string(task.join("children")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    let name = |child: String| fs::read_to_string(format!("/proc/{child}/comm")).ok();
    found.extend(children.filter_map(name).filter(|name| name.starts_with("tare")));
    let timers = fs::read_to_string(format!("/proc/{pid}/timers")).unwrap_or_default();
    // Our signal is SIGSTKFLT, which nobody else uses.
    found.extend(timers.lines().filter(|line| line.starts_with("signal: 16/")).map(str::to_owned));
    found
}

/// The files that we make for a JVM in a temporary directory.
pub fn files_about(tmp: &str, pid: u32) -> Vec<String> {
    let names =
        list(tmp).into_iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let ours = |name: &String| {
        (name.starts_with(".tare-") && name.contains(&format!("-{pid}-")))
            || *name == format!(".attach_pid{pid}")
    };
    names.filter(ours).collect()
}

/// How many of each kind of nameless descriptor there are.
pub fn kinds(pid: u32) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for path in descriptors(pid) {
        let kind = match path.split_once(['[', '(']) {
            Some((kind, rest)) if kind == "anon_inode:" => format!("{kind}{rest}"),
            _ if path.starts_with('/') => "file".to_owned(),
            _ => path.split(':').next().unwrap_or("").to_owned(),
        };
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}
