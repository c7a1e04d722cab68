//! What the figures were measured on: without it no figure means anything.

use std::fs;

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

/// How many processes wanted a processor during the last minute, on average.
pub fn load() -> Option<f64> {
    read("/proc/loadavg").split(' ').next()?.parse().ok()
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
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 85\nmodel name\t: Some CPU @ 2 GHz\nflags : a b\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(field(text, "flags").as_deref(), Some("a b"));
        assert_eq!(field(text, "name"), None);
    }
}
