//! `cargo xtask soak cycles`: thousands of times into one JVM and out of it again. What stays in
//! every cycle, or in every tenth, shows as growth.

use super::running::{Running, until};
use super::{Outcome, Soak, Tally};
use crate::processes::{Usage, traces};
use anyhow::{Result, anyhow, bail};
use std::process::{Command, Stdio};
use std::time::Instant;
use tare_toolbox::jdks::Jdk;

/// It does nothing that could grow by itself.
const PROGRAM: &str = "targets/Idle.java";

/// So many cycles are looked at together. Passing things (a compiler thread, a mapping about to be
/// freed) come and go; what counts is the least of some.
const STRETCH: u32 = 50;

/// What the JVM itself may add meanwhile.
const MORE_MAPPINGS: usize = 12;
const MORE_KIB: u64 = 3 << 10;

/// And bytes for each cycle: the JVM notes each command, and names of threads.
const MORE_BYTES: u64 = 256;

pub fn run(soak: &Soak, jdk: &Jdk, times: u32) -> Result<Outcome> {
    if times < 4 * STRETCH {
        bail!("fewer than {} cycles say nothing", 4 * STRETCH);
    }
    let directory = soak.directory("cycles", jdk)?;
    let classes = soak.compile(&directory, PROGRAM, 17)?;
    let mut java = Command::new(jdk.home.join("bin/java"));
    // The heap is there from the beginning, so that it does not grow either.
    java.current_dir(&directory).args(["-Xmx32m", "-Xms32m", "-XX:+AlwaysPreTouch"]);
    java.args(["-XX:+UseSerialGC", "-cp"]).arg(classes).arg("Idle");
    let mut program = Running::start(&mut java, &directory.join("program.log"))?;
    let begun = Instant::now();
    let mut early = None;
    let mut failed = 0;
    let mut stretch = Vec::new();
    for cycle in 1..=times {
        failed += u32::from(!soak.cycle(program.pid())?);
        stretch.push(Usage::of(program.pid()));
        if !cycle.is_multiple_of(STRETCH) && cycle != times {
            continue;
        }
        let all = std::mem::take(&mut stretch);
        let now = Usage::least(&all);
        // The first ones load classes and compile.
        if cycle.is_multiple_of(STRETCH) && cycle * 10 >= times && early.is_none() {
            early = Some((cycle, now));
        }
        if cycle.is_multiple_of(20 * STRETCH) || cycle == times {
            println!("{cycle} cycles, {failed} failed, {} s, {now:?}", begun.elapsed().as_secs());
        }
        if cycle == times {
            let (from, early) = early.ok_or_else(|| anyhow!("nothing to compare with"))?;
            failed += u32::from(has_grown(&early, &now, times - from));
        }
    }
    program.end()?;
    failed += Tally::new(&directory).crash_reports()?.len() as u32;
    let verdict = match failed {
        0 => Ok(()),
        _ => Err(anyhow!("{failed} of {times} cycles failed; see {}", directory.display())),
    };
    Ok(Outcome { runs: times, failed, verdict })
}

fn has_grown(early: &Usage, late: &Usage, cycles: u32) -> bool {
    let memory = |usage: &Usage| usage.own + usage.shared;
    let bytes = (memory(late) as i64 - memory(early) as i64) * 1024 / i64::from(cycles);
    println!("in {cycles} cycles: {bytes} bytes a cycle, from {early:?} to {late:?}");
    late.threads > early.threads + 1
        || late.descriptors > early.descriptors + 1
        || late.mappings > early.mappings + MORE_MAPPINGS
        || memory(late) > memory(early) + MORE_KIB + u64::from(cycles) * MORE_BYTES / 1024
}

impl Soak {
    /// In and out; false if that failed, which is printed.
    fn cycle(&self, pid: u32) -> Result<bool> {
        for verb in ["status", "detach"] {
            let mut tare = Command::new(&self.tare);
            tare.args([verb, &pid.to_string(), "--timeout", "200s"]);
            let output = tare.stdin(Stdio::null()).output()?;
            if !output.status.success() {
                println!("{verb}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
                return Ok(false);
            }
        }
        let mut left = Vec::new();
        let gone = until("nothing of ours is left", || {
            left = traces(pid);
            left.is_empty()
        });
        if gone.is_err() {
            println!("left: {}", left.join("; "));
        }
        Ok(gone.is_ok())
    }
}
