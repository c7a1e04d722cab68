//! How far the sum of times is off on a real program, with the probes held to a budget.
//!
//! The truth is what the program itself measures of its iterations while nobody looks. Beside it
//! stands what a recording (`--exact --cpu`, in the same JVM) says of iterations after the warm-up,
//! by every way of compensation: the times of all methods, summed up. The method that runs an
//! iteration is woven too, so that all of an iteration is in somebody's time.

use super::accuracy::{said, since_start};
use super::config::Config;
use super::launch::Bench;
use super::program::{Amount, Program};
use super::recorder::Recorder;
use super::stats::median;
use super::workloads::Workload;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tare_toolbox::jdks::Jdk;

struct Course {
    /// Long enough for the budget to be settled: what was woven anew must be compiled again.
    warm_up: Amount,
    plain_warm_up: Amount,
    measured: Amount,
    /// For so long samples are taken.
    window: &'static str,
}

const WHOLE: Course = Course {
    warm_up: Amount { iterations: 5, seconds: 40.0 },
    plain_warm_up: Amount { iterations: 5, seconds: 8.0 },
    measured: Amount { iterations: 10, seconds: 8.0 },
    window: "15s",
};

const ONCE: Amount = Amount { iterations: 1, seconds: 0.0 };
const QUICK: Course = Course { warm_up: ONCE, plain_warm_up: ONCE, measured: ONCE, window: "1s" };

/// Sentences for the page.
pub fn total_error(
    bench: &Bench,
    workload: &Workload,
    jdk: &Jdk,
    quick: bool,
) -> Result<Vec<String>> {
    let course = if quick { QUICK } else { WHOLE };
    let java = bench.java(workload, jdk, Config::Plain)?;
    let mut command = Command::new(java.get_program());
    // So that samples tell inlined methods from their callers.
    command.args(["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]);
    let log = File::create(bench.work.join("stderr.log")).context("creating a log")?;
    let mut program = Program::start(command.args(java.get_args()).stderr(log))?;
    let before = plain(&mut program, &course)?;

    let file = bench.work.join("demotion.tare");
    let mut tare = Command::new(&bench.tare);
    tare.args(["record", "--exact", "--cpu", "--window", course.window, "--overhead", "20%"]);
    let (class, _) = workload.root.rsplit_once('.').context("a root")?;
    tare.args(["--include", workload.include, "--include", class, "-o"]).arg(&file);
    tare.arg(program.pid().to_string());
    let mut recorder = Recorder::start(&mut tare, &bench.work.join("record.log"))?;
    while !recorder.has_begun(&file)? {
        program.run(ONCE)?;
    }
    program.run(course.warm_up)?;
    let gap = between_looks(&file)?;
    let times = program.run(course.measured)?;
    recorder.stop()?;
    let behind = plain(&mut program, &course)?;
    program.quit()?;

    // Joined times are those of the processor.
    let [truth, on_cpu] = [0, 1].map(|of| (before[of] + behind[of]) / 2.0);
    let mut lines = vec![format!(
        "{} on {}: a plain iteration before and one after, in the same JVM, differ by {:.1} %; with the budget it \
         takes {:.2} times their mean",
        workload.name,
        jdk.major,
        (before[0] / behind[0] - 1.0).abs() * 100.0,
        median(&times.wall).unwrap_or(0.0) / truth,
    )];
    let since = format!("{:.1}s..", since_start(&bench.tare, &file, gap)?.as_secs_f64());
    let ways: [(&str, [&str; 4]); 4] = [
        ("as measured", ["--metric", "wall-time", "--compensate", "none"]),
        ("calibrated", ["--metric", "wall-time", "--compensate", "calibrated"]),
        ("sequences", ["--metric", "wall-time", "--compensate", "sequences"]),
        ("joined with samples", ["--metric", "joined", "--compensate", "calibrated"]),
    ];
    for (name, more) in ways {
        let methods = said(&bench.tare, &file, &[&["--time", since.as_str()], &more[..]].concat())?;
        let seen = methods.get(&workload.root).map_or(0.0, |said| said.calls);
        let sum: f64 = methods.values().map(|said| said.own).sum();
        let truth = if more.contains(&"joined") { on_cpu } else { truth };
        lines.push(line(name, sum / 1e6, times.wall.len() as f64, seen, truth));
    }
    Ok(lines)
}

/// Looks at trees of millions of contexts are seconds apart, and what they find is told of the time
/// before. Nothing runs meanwhile; the second one from now has begun after all was done. When:
/// between the two.
fn between_looks(file: &Path) -> Result<SystemTime> {
    let written = || fs::metadata(file).and_then(|known| known.modified()).context("the recording");
    let limit = Instant::now() + Duration::from_secs(120);
    let mut ends = [SystemTime::UNIX_EPOCH; 2];
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
        *end = SystemTime::now();
    }
    let [first, second] = ends;
    Ok(first + second.duration_since(first).unwrap_or_default() / 2)
}

/// `sum` of all times and `truth` of one iteration in milliseconds; `seen` are the iterations in
/// the recording.
fn line(name: &str, sum: f64, ran: f64, seen: f64, truth: f64) -> String {
    if seen != ran {
        return format!(
            "{name}: the recording has {seen} iterations and not {ran}, no sum is told"
        );
    }
    format!("{name}: the sum of all times is off by {:+.1} %", (sum / ran / truth - 1.0) * 100.0)
}

/// What a plain iteration takes, by the clock and on the processor.
fn plain(program: &mut Program, course: &Course) -> Result<[f64; 2]> {
    program.run(course.plain_warm_up)?;
    let times = program.run(course.measured)?;
    let wall = median(&times.wall).context("no iteration")?;
    Ok([wall, median(&times.cpu).unwrap_or(wall)])
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
