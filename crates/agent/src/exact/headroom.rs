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
        let limit = Limit { most: group.join(most), now: group.join(now) };
        if limit.most.exists() {
            limits.push(limit);
        }
    }
}

/// `max`, and whatever else is no number, means no limit.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
