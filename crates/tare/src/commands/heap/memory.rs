//! How much memory there is for reading a dump: what the machine and the control groups of this
//! process have left. What the kernel keeps of files counts as left: it gives that up first.

use std::fs;
use std::path::Path;

/// `None` if nobody tells.
pub fn free() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    free_in(&machine, &own, Path::new("/sys/fs/cgroup"))
}

fn free_in(machine: &str, own: &str, groups: &Path) -> Option<u64> {
    let mut least = available(machine);
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, most, now) = match controllers {
            "" => (groups.to_owned(), "memory.max", "memory.current"),
            names if names.split(',').any(|name| name == "memory") => {
                (groups.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        // A limit of any group above counts, too.
        let own = root.join(path.trim_start_matches('/'));
        for group in own.ancestors().take_while(|group| group.starts_with(&root)) {
            // `max` is no number: there is no limit.
            let number = |file| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok();
            let (Some(most), Some(now)) = (number(most), number(now)) else { continue };
            let parts = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
            let used = u64::saturating_sub(now, files(&parts));
            let left = u64::saturating_sub(most, used);
            least = Some(least.map_or(left, |least| least.min(left)));
        }
    }
    least
}

/// What the whole machine has left, swap aside.
fn available(machine: &str) -> Option<u64> {
    let line = machine.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// What of a group's memory holds files, those of groups below it included.
fn files(parts: &str) -> u64 {
    let of = |key: &str| {
        let mut lines = parts.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key).and_then(|(_, bytes)| bytes.parse::<u64>().ok())
    };
    let total = |name: &str| of(&format!("total_{name}")).or_else(|| of(name)).unwrap_or(0);
    total("active_file") + total("inactive_file")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "MemTotal:  16000 kB\nMemFree: 10 kB\nMemAvailable:    9000 kB\n";

    #[test]
    fn the_narrowest_limit_counts() {
        let root = std::env::temp_dir().join(format!("tare-heap-memory-{}", std::process::id()));
        let inner = root.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let put = |group: &Path, most: &str, now: &str, parts: &str| {
            fs::write(group.join("memory.max"), most).unwrap();
            fs::write(group.join("memory.current"), now).unwrap();
            fs::write(group.join("memory.stat"), parts).unwrap();
        };
        let own = "1:cpu:/x\n0::/a/b\n";
        let machine = 9000 * 1024;
        assert_eq!(free_in(MACHINE, own, &root), Some(machine));
        put(&inner, "max\n", "100\n", "");
        assert_eq!(free_in(MACHINE, own, &root), Some(machine));
        put(&root.join("a"), "5000\n", "4500\n", "anon 9\nactive_file 100\ninactive_file 200\n");
        assert_eq!(free_in(MACHINE, own, &root), Some(800));
        put(&inner, "50\n", "60\n", "");
        assert_eq!(free_in(MACHINE, own, &root), Some(0));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(free_in("", "", &root), None);
    }

    #[test]
    fn old_groups_tell_of_all_below_them() {
        let parts = "active_file 1\ntotal_active_file 10\ntotal_inactive_file 20\n";
        assert_eq!(files(parts), 30);
        assert_eq!(files(""), 0);
    }
}
