//! How much memory the program may still take before its container would be in trouble.
//!
//! Memory of ours is charged to the container like the program's own, and the kernel answers a
//! container that is full by killing. So we ask first, and leave a margin.

use std::fs;
use std::path::{Path, PathBuf};

/// What is left for the program itself whatever we would like to have.
const MARGIN: u64 = 24 << 20;

/// The limits of this process's control groups, from the innermost outwards.
pub struct Headroom {
    limits: Vec<Limit>,
}

struct Limit {
    most: PathBuf,
    now: PathBuf,
    parts: PathBuf,
}

impl Headroom {
    /// Finds the limits once; they are read anew at each question.
    pub fn new() -> Self {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut limits = Vec::new();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next(), parts.next(), parts.next());
            let (Some(controllers), Some(path)) = (controllers, path) else { continue };
            if controllers.is_empty() {
                add(&mut limits, Path::new("/sys/fs/cgroup"), path, "memory.max", "memory.current");
            } else if controllers.split(',').any(|name| name == "memory") {
                let root = Path::new("/sys/fs/cgroup/memory");
                add(&mut limits, root, path, "memory.limit_in_bytes", "memory.usage_in_bytes");
            }
        }
        Headroom { limits }
    }

    /// Whether so many bytes more can be had if the kernel first gives up what it keeps of files
    /// that nobody has used lately. That takes it time, so it is for a moment's need only.
    pub fn allows_for_a_moment(&self, bytes: u64) -> bool {
        self.limits.iter().all(|limit| {
            let (Some(most), Some(now)) = (number(&limit.most), number(&limit.now)) else {
                return true;
            };
            let parts = fs::read_to_string(&limit.parts).unwrap_or_default();
            let now = now.saturating_sub(idle_files(&parts));
            most.saturating_sub(now) >= bytes.saturating_add(MARGIN)
        })
    }

    /// Whether so many bytes more can be had without harm. No limit known means yes: the machine
    /// as a whole answers by an error, which the caller handles.
    pub fn allows(&self, bytes: u64) -> bool {
        self.limits.iter().all(|limit| {
            let (Some(most), Some(now)) = (number(&limit.most), number(&limit.now)) else {
                return true;
            };
            most.saturating_sub(now) >= bytes.saturating_add(MARGIN)
        })
    }
}

/// A limit of any group above counts too. Inside a container the path may be that of the world
/// outside, of which only the root is mounted; that one is always looked at.
fn add(limits: &mut Vec<Limit>, root: &Path, path: &str, most: &str, now: &str) {
    let own = root.join(path.trim_start_matches('/'));
    for group in own.ancestors().take_while(|group| group.starts_with(root)) {
        let parts = group.join("memory.stat");
        let limit = Limit { most: group.join(most), now: group.join(now), parts };
        if limit.most.exists() {
            limits.push(limit);
        }
    }
}

/// What of a group's memory holds files that were not used lately, those of groups below it
/// included.
fn idle_files(parts: &str) -> u64 {
    let of = |key: &str| {
        let mut lines = parts.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key).and_then(|(_, bytes)| bytes.parse().ok())
    };
    of("total_inactive_file").or_else(|| of("inactive_file")).unwrap_or(0)
}

/// `max`, and whatever else is no number, means no limit.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_nobody_uses_are_told_by_both_kinds_of_groups() {
        assert_eq!(idle_files("anon 1\ninactive_file 7\nactive_file 9\n"), 7);
        assert_eq!(idle_files("inactive_file 7\ntotal_inactive_file 8\n"), 8);
        assert_eq!(idle_files(""), 0);
    }
}
