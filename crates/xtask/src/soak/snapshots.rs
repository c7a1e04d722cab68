//! `cargo xtask soak snapshots`: are heap snapshots of a program under load always had, and is the
//! program ever hurt? It loads classes, starts processes, overflows its stacks and checks its own
//! results meanwhile.

use super::running::{Running, until};
use super::{CHURN, Outcome, Soak, Tally, has_collector};
use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use tare_toolbox::jdks::Jdk;

/// Those whose heap can be copied.
const COLLECTORS: [&str; 4] = ["G1", "Serial", "Parallel", "Shenandoah"];

/// Snapshots of one JVM; then there is another one, with the next collector.
const EACH: u32 = 25;

/// Of a thousand snapshots so many may fail after all attempts.
const MOST_FAILED: u32 = 1;

#[derive(Default)]
struct Counts {
    taken: u32,
    /// After more than one attempt.
    late: u32,
    failed: u32,
    /// Programs that ended badly, and those that had a copy left.
    hurt: u32,
    left: u32,
    longest_pause_ms: f64,
}

pub fn run(soak: &Soak, jdk: &Jdk, times: u32) -> Result<Outcome> {
    let directory = soak.directory("snapshots", jdk)?;
    soak.compile(&directory, CHURN, 17)?;
    let there: Vec<&str> = COLLECTORS.into_iter().filter(|name| has_collector(jdk, name)).collect();
    let begun = Instant::now();
    let mut counts = Counts::default();
    for round in 0..times.div_ceil(EACH) {
        let collector = there[round as usize % there.len()];
        let number = (times - round * EACH).min(EACH);
        soak.program(jdk, &directory, collector, number, &mut counts)?;
        let crashed = Tally::new(&directory).crash_reports()?;
        if !crashed.is_empty() {
            bail!("a JVM with {collector} crashed: {}", crashed[0].display());
        }
        println!(
            "{collector}: {} taken, {} of them late, {} failed, longest pause {:.1} ms, {} s",
            counts.taken,
            counts.late,
            counts.failed,
            counts.longest_pause_ms,
            begun.elapsed().as_secs()
        );
    }
    let Counts { taken, late, failed, hurt, left, .. } = counts;
    println!(
        "{taken} snapshots, {late} of them after more than one attempt, {failed} failed; \
         {hurt} programs hurt, {left} with a copy left"
    );
    let too_many = u64::from(failed) * 1000 > u64::from(times) * u64::from(MOST_FAILED);
    let verdict = match too_many || hurt + left > 0 {
        true => Err(anyhow!("see {}", directory.display())),
        false => Ok(()),
    };
    Ok(Outcome { runs: taken + failed, failed: failed + hurt + left, verdict })
}

impl Soak {
    /// Takes so many snapshots of one JVM.
    fn program(
        &self,
        jdk: &Jdk,
        directory: &Path,
        collector: &str,
        number: u32,
        counts: &mut Counts,
    ) -> Result<()> {
        let log = directory.join("program.log");
        let mut java = Command::new(jdk.home.join("bin/java"));
        java.current_dir(directory).arg(format!("-XX:+Use{collector}GC")).arg("-Xmx256m");
        java.arg("-cp").arg(directory.join("classes")).arg("Soak");
        let mut program = Running::start(&mut java, &log)?;
        let before = counts.failed;
        for _ in 0..number {
            self.snapshot(program.pid(), directory, counts)?;
            if program.has_ended()? {
                break;
            }
        }
        let pid = program.pid();
        if until("no copy is left", || !has_copy(pid)).is_err() {
            counts.left += 1;
        }
        let ended = program.end();
        if ended.is_err() || !program.said().contains("done") {
            counts.hurt += 1;
            let kept = directory.join(format!("bad-{collector}-{}.log", counts.hurt));
            fs::rename(&log, &kept)?;
            println!("{collector}: {ended:?}; see {}", kept.display());
        } else if counts.failed > before {
            println!("{collector}: {} snapshots failed", counts.failed - before);
        }
        Ok(())
    }

    fn snapshot(&self, pid: u32, directory: &Path, counts: &mut Counts) -> Result<()> {
        let file = directory.join("x.tareheap");
        let _ = fs::remove_file(&file);
        let mut command = Command::new(&self.tare);
        command.args(["heap", &pid.to_string(), "--no-index", "--json", "-o"]).arg(&file);
        let output = command.stdin(Stdio::null()).output().context("tare")?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            counts.taken += 1;
            counts.late += u32::from(said.contains("attempt"));
            let pause = said.split("stood for ").nth(1).and_then(|rest| rest.split(' ').next());
            let pause = pause.and_then(|number| number.parse().ok()).context("no pause is told")?;
            counts.longest_pause_ms = counts.longest_pause_ms.max(pause);
        } else {
            counts.failed += 1;
            println!("{}", said.trim());
            fs::write(directory.join(format!("failed-{}.log", counts.failed)), &output.stderr)?;
        }
        Ok(())
    }
}

/// Whether a copy of a JVM is there.
fn has_copy(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let mut names = children
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|child| fs::read_to_string(format!("/proc/{child}/comm")).ok());
    names.any(|name| name.trim() == "tare-heap")
}
