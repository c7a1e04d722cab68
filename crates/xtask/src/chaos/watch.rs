//! The processes of a round: which there are, signals, and waiting with a patience that grows with
//! the load.

use super::evidence::Failure;
use crate::processes::list;
use std::path::Path;
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
