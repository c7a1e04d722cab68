//! What `tare top` takes of a processor while somebody looks at it, beside the program's own time.

use super::Jvm;
use crate::ready::Ready;
use crate::stats::median;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tare_toolbox::shell;

/// Threads, of which ten at a time do something.
const THREADS: usize = 1_000;
/// How long it is looked, and how often.
const LOOK: Duration = Duration::from_secs(5);
const LOOKS: usize = 5;
/// Until all is there that will be.
const SETTLE: Duration = Duration::from_secs(5);
const GOAL: f64 = 2.0;

pub fn measure(ready: &Ready, java: &Path, quick: bool) -> Result<String> {
    let mut text = format!(
        "\n## The live view\n\n`tare top` on a terminal of 80 columns and 24 lines: the processor \
         time of its process, in percent of one processor; the median of {LOOKS} looks of {} s, \
         after {} s. The program beside it, in percent of one processor as well.\n\n\
         | threads | page | top | goal | the program |\n|--:|---|--:|--:|--:|\n",
        LOOK.as_secs(),
        SETTLE.as_secs()
    );
    for (threads, page) in [(THREADS, "Methods"), (THREADS, "Threads"), (50, "Methods")] {
        let threads = if quick { threads / 10 } else { threads };
        let size = threads.to_string();
        let mut jvm = Jvm::start(ready, java, &["bench.Main", "crowd", &size])?;
        let pid = jvm.child.id();
        std::io::Write::write_all(&mut jvm.input, b"run 1 600\n")?;
        let tare = ready.tare.display();
        let line = format!("stty cols 80 rows 24; exec {tare} top {pid}");
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
        script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut terminal = script.spawn().context("script (util-linux)")?;
        let mut keys = terminal.stdin.take().context("no keyboard")?;
        std::thread::sleep(SETTLE);
        if page == "Threads" {
            std::io::Write::write_all(&mut keys, b"2")?;
        }
        let top = shell::output(Command::new("pgrep").args(["-n", "-f", &format!("top {pid}$")]))?;
        let top: u32 = top.trim().parse().context("tare top does not run")?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..if quick { 1 } else { LOOKS } {
            let (began, before) = (Instant::now(), [used(top)?, used(pid)?]);
            std::thread::sleep(LOOK);
            let passed = began.elapsed().as_secs_f64();
            ours.push((used(top)? - before[0]) / passed * 100.0);
            theirs.push((used(pid)? - before[1]) / passed * 100.0);
        }
        std::io::Write::write_all(&mut keys, b"q")?;
        terminal.wait()?;
        let shown = |values: &[f64]| median(values).unwrap_or_default();
        text += &format!(
            "| {threads} | {page} | {:.1} % | ≤ {GOAL} % | {:.0} % |\n",
            shown(&ours),
            shown(&theirs)
        );
    }
    Ok(text)
}

/// Seconds of a processor that a process has used, with its threads that have ended.
fn used(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    ticks(&text).map(|ticks| ticks as f64 / 100.0).context("/proc/PID/stat is unlike itself")
}

/// User and system time, which the kernel tells in hundredths of a second.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_past_any_name() {
        let stat = "7 (a b) S) S 1 7 7 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 9 0 1 1 1";
        assert_eq!(ticks(stat), Some(300));
    }
}
