//! How far the sum of times is off on a real program, with the probes held to a budget.
//!
//! The truth is what the program itself measures of its iterations while nobody looks. Beside it stands what a
//! recording says of iterations after the warm-up, by every way of compensation: the times of all methods, summed up.
//! The method that runs an iteration is woven too, so that all of an iteration is in somebody's time.

use super::accuracy::said;
use super::config::{Bench, Config, after};
use super::program::{Amount, Program};
use super::recorder::Recorder;
use super::stats::median;
use super::workloads::Workload;
use crate::jdks::Jdk;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

struct Course {
    /// Long enough for the budget to be settled: what was woven anew must be compiled again.
    warm_up: Amount,
    plain_warm_up: Amount,
    measured: Amount,
}

const WHOLE: Course = Course {
    warm_up: Amount { iterations: 5, seconds: 40.0 },
    plain_warm_up: Amount { iterations: 5, seconds: 8.0 },
    measured: Amount { iterations: 10, seconds: 8.0 },
};

const ONCE: Amount = Amount { iterations: 1, seconds: 0.0 };
const QUICK: Course = Course { warm_up: ONCE, plain_warm_up: ONCE, measured: ONCE };

/// Sentences for the page.
pub fn total_error(
    bench: &Bench,
    workload: &Workload,
    jdk: &Jdk,
    quick: bool,
) -> Result<Vec<String>> {
    let course = if quick { QUICK } else { WHOLE };
    let before = plain(bench, workload, jdk, &course, true)?;
    let file = bench.work.join("demotion.tare");
    let mut tare = Command::new(&bench.tare);
    // Enough memory: what is pruned belongs to no time.
    tare.args(["record", "--exact", "--overhead", "20%", "--memory", "1G"]);
    let (class, _) = workload.root.rsplit_once('.').context("a root")?;
    tare.args(["--include", workload.include, "--include", class, "-o"]).arg(&file);
    let java = bench.java(workload, jdk, Config::Plain)?;
    let began = Instant::now();
    let mut program = Program::start(after(tare, &java).stderr(log(bench)?))?;
    program.run(course.warm_up)?;
    let since = format!("{:.1}s..", between_looks(&file, began)?.as_secs_f64());
    let times = program.run(course.measured)?;
    program.quit()?;
    let behind = plain(bench, workload, jdk, &course, false)?;

    let truth = (before + behind) / 2.0;
    let mut lines = vec![format!(
        "{} on {}: a plain iteration in one JVM before and in one after differs by {:.1} %; with the budget it \
         takes {:.2} times their mean",
        workload.name,
        jdk.major,
        (before / behind - 1.0).abs() * 100.0,
        median(&times.wall).unwrap_or(0.0) / truth,
    )];
    let samples = samples(bench).display().to_string();
    let ways: [(&str, &[&str]); 4] = [
        ("as measured", &["--compensate", "none"]),
        ("calibrated", &["--compensate", "calibrated"]),
        ("sequences", &["--compensate", "sequences"]),
        ("joined with samples", &["--samples", &samples, "--metric", "joined"]),
    ];
    for (name, more) in ways {
        let methods = said(&bench.tare, &file, &[&["--time", since.as_str()], more].concat())?;
        let seen = methods.get(&workload.root).map_or(0.0, |said| said.calls);
        let sum: f64 = methods.values().map(|said| said.own).sum();
        lines.push(line(name, sum / 1e6, times.wall.len() as f64, seen, truth));
    }
    Ok(lines)
}

/// Looks at trees of millions of contexts are seconds apart, and what they find is told of the time before. Nothing
/// runs meanwhile; the second one from now has begun after all was done. When, since `began`: between the two.
fn between_looks(file: &Path, began: Instant) -> Result<Duration> {
    let written = || fs::metadata(file).and_then(|known| known.modified()).context("the recording");
    let limit = Instant::now() + Duration::from_secs(120);
    let mut ends = [Duration::ZERO; 2];
    let mut last = written()?;
    for end in &mut ends {
        while written()? == last {
            if Instant::now() > limit {
                bail!("no look in two minutes");
            }
            thread::sleep(Duration::from_millis(20));
        }
        // What is written after a look is written at once.
        thread::sleep(Duration::from_millis(500));
        last = written()?;
        *end = began.elapsed();
    }
    Ok((ends[0] + ends[1]) / 2)
}

/// `sum` of all times and `truth` of one iteration in milliseconds; `seen` are the iterations in the recording.
fn line(name: &str, sum: f64, ran: f64, seen: f64, truth: f64) -> String {
    if seen != ran {
        return format!(
            "{name}: the recording has {seen} iterations and not {ran}, no sum is told"
        );
    }
    format!("{name}: the sum of all times is off by {:+.1} %", (sum / ran / truth - 1.0) * 100.0)
}

/// What a plain iteration takes, by the clock. Further ones are sampled if that is wanted.
fn plain(
    bench: &Bench,
    workload: &Workload,
    jdk: &Jdk,
    course: &Course,
    sampled: bool,
) -> Result<f64> {
    let java = bench.java(workload, jdk, Config::Plain)?;
    let mut command = Command::new(java.get_program());
    // So that samples tell inlined methods from their callers.
    command.args(["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]);
    let mut program = Program::start(command.args(java.get_args()).stderr(log(bench)?))?;
    program.run(course.plain_warm_up)?;
    let time = median(&program.run(course.measured)?.wall).context("no iteration")?;
    if sampled {
        let file = samples(bench);
        let mut tare = Command::new(&bench.tare);
        tare.args(["record", "--interval", "1ms", "-o"]).arg(&file);
        let said = bench.work.join("record.log");
        let mut recorder = Recorder::start(tare.arg(program.pid().to_string()), &said)?;
        recorder.wait_for(&file)?;
        program.run(course.measured)?;
        recorder.stop()?;
    }
    program.quit()?;
    Ok(time)
}

fn samples(bench: &Bench) -> PathBuf {
    bench.work.join("demotion-samples.tare")
}

fn log(bench: &Bench) -> Result<File> {
    File::create(bench.work.join("stderr.log")).context("creating a log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_that_are_not_all_in_the_recording_have_no_error() {
        assert_eq!(line("x", 210.0, 10.0, 10.0, 20.0), "x: the sum of all times is off by +5.0 %");
        assert!(line("x", 210.0, 10.0, 11.0, 20.0).contains("no sum"));
    }
}
