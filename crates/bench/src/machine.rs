//! What the figures were measured on: without it no figure means anything.

use std::fs;
use std::thread;
use std::time::Duration;

/// One line about processor, cores, memory and kernel.
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .map_or_else(String::new, |kib| format!(", {:.0} GiB", kib as f64 / 1048576.0));
    let model = field(&read("/proc/cpuinfo"), "model name").unwrap_or("unknown cpu".to_owned());
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{model}, {cores} cores{memory}, Linux {}", kernel.trim())
}

/// How many others want a processor now, on average over a second. The kernel's own average over a
/// minute still tells of ten thousand threads when they are long gone.
pub fn load() -> Option<f64> {
    const LOOKS: u32 = 50;
    let mut sum = 0;
    for _ in 0..LOOKS {
        sum += wanting(&read("/proc/stat"))?;
        thread::sleep(Duration::from_secs(1) / LOOKS);
    }
    Some(f64::from(sum) / f64::from(LOOKS))
}

/// Waits until others leave the machine alone, or a quarter of a minute is over.
pub fn settle() {
    for _ in 0..15 {
        if load().is_none_or(|load| load < QUIET) {
            return;
        }
    }
}

/// What always runs somewhere.
const QUIET: f64 = 0.3;

/// How many threads run or could, but for the one that asks.
fn wanting(stat: &str) -> Option<u32> {
    let line = stat.lines().find_map(|line| line.strip_prefix("procs_running "))?;
    Some(line.trim().parse::<u32>().ok()?.saturating_sub(1))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value of the first `key : value` line.
fn field(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_does_not_count_among_those_who_want_a_processor() {
        let stat = "cpu  1 2 3\nprocs_running 3\nprocs_blocked 0\n";
        assert_eq!(wanting(stat), Some(2));
        assert_eq!(wanting("cpu  1 2 3\n"), None);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 85\nmodel name\t: Some CPU @ 2 GHz\nflags : a b\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(field(text, "flags").as_deref(), Some("a b"));
        assert_eq!(field(text, "name"), None);
    }
}
