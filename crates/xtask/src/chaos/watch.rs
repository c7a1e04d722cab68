//! What the kernel tells about processes, and waiting with a patience that grows with the load.

use super::evidence::Failure;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// A variable that every process of a round has, with the round's directory.
pub const MARK: &str = "TARE_CHAOS_ROUND";

/// How long anything may take before it is called hung.
pub fn patience() -> Duration {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    Duration::from_secs(120) + Duration::from_secs_f64(10.0 * load)
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Failure> {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > patience() {
            return Err(Failure::hang(format!(
                "not within {} s: {what}",
                begun.elapsed().as_secs()
            )));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Sends a signal, by its name, to a process of ours that has not been waited for.
pub fn signal(pid: u32, name: &str) {
    // A process that has just ended is no error.
    let _ = Command::new("sh").args(["-c", &format!("kill -{name} {pid} 2>/dev/null")]).status();
}

fn list(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).collect()
}

/// Every process of a round.
pub fn of_round(directory: &Path) -> Vec<u32> {
    let mark = format!("{MARK}={}", directory.display());
    let is_marked = |pid: &u32| {
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let pids =
        list("/proc").into_iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok());
    pids.filter(is_marked).collect()
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
