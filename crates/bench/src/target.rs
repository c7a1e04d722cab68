//! How far estimates of processor time on another JVM are off: real programs, as `tare record
//! --bytecodes --target` estimates one iteration of them, beside what it takes there.

use super::jdks;
use super::options::Options;
use super::program::{Amount, Program};
use super::ready::Ready;
use super::workloads::{self, Workload};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;
use tare_toolbox::stages::Stages;

pub const HELP: &str = "\
Measures how far estimates of processor time on another JVM are off.

Usage: cargo xtask bench target [--jdk N] [--tare FILE] [--minutes N] [--force] [--write-docs]
                                [NAME…]

Targets are the JDK's interpreter (-Xint), and the JVM as it is, with its compilers; each is calibrated first. Of each program (without NAMEs: fib, trees, javac, h2, saxon, on small inputs) one iteration is
estimated from all bytecodes that it executes, the JDK's among them, counted on the JVM as it is; and measured on the
target: processor time of its thread, the mean of several iterations.
--minutes begins no further program after that time; --force calibrates on a busy machine, too, and
the page says so; --write-docs writes docs/measured/other-jvm.md.
";

const PROGRAMS: [&str; 5] = ["fib", "trees", "javac", "h2", "saxon"];

/// A target's name, its options, and how long to run before iterations count.
const TARGETS: [(&str, &[&str], f64); 2] =
    [("interpreter", &["-Xint"], 0.0), ("compilers", &[], 5.0)];

/// Estimated and measured, in milliseconds an iteration.
struct Line {
    program: &'static str,
    target: &'static str,
    estimated: f64,
    measured: f64,
}

struct Bench<'a> {
    ready: &'a Ready,
    jdk: &'a Jdk,
}

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 17)? else { return Ok(()) };
    let Options { jdk, tare, write_docs: write, rest, .. } = options;
    let (mut names, mut minutes) = (Vec::new(), f64::MAX);
    let mut force = false;
    let mut rest = rest.into_iter();
    while let Some(word) = rest.next() {
        match word {
            "--minutes" => {
                minutes = rest.next().context("--minutes needs a value")?.parse()?;
            }
            "--force" => force = true,
            name if workloads::names().any(|known| known == name) => names.push(name),
            _ => bail!("{word} is neither an option nor a program; see --help"),
        }
    }
    if names.is_empty() {
        names.extend(PROGRAMS);
    }
    let ready = Ready::alone(tare)?;
    let mut stages = Stages::new();
    let kitchen = ready.kitchen(true);
    let mut programs = Vec::new();
    for name in names {
        programs.extend(workloads::prepare(name, &kitchen, &mut stages)?);
    }
    let jdks = jdks(&[jdk], &mut stages)?;
    let bench = Bench { ready: &ready, jdk: &jdks[0] };
    let began = std::time::Instant::now();
    let mut targets = Vec::new();
    for (at, (name, options, _)) in TARGETS.iter().enumerate() {
        let file = ready.work.join(format!("target-{at}.txt"));
        println!("calibrating: {name}");
        let mut calibrate = Command::new(&ready.tare);
        calibrate.arg("calibrate-target").args(force.then_some("--force"));
        calibrate.arg("-o").arg(&file).arg("--");
        shell::output(calibrate.arg(bench.jdk.home.join("bin/java")).args(*options))?;
        targets.push(file);
    }
    let mut lines = Vec::new();
    for program in &programs {
        if began.elapsed().as_secs_f64() > minutes * 60.0 {
            stages.note(format!("The time was up: {} is left out", program.name));
            continue;
        }
        for ((name, options, warm_up), file) in TARGETS.iter().zip(&targets) {
            let estimated = bench.estimate(program, file)?;
            let measured = bench.measure(program, options, *warm_up)?;
            let line = Line { program: program.name, target: name, estimated, measured };
            println!("{}", row(&line));
            lines.push(line);
        }
    }
    let page = page(&lines, bench.jdk, force);
    print!("\n{page}");
    if write {
        let path = ready.workspace.root.join("docs/measured/other-jvm.md");
        super::write(&path, &page)?;
    }
    stages.finish()
}

impl Bench<'_> {
    fn java(&self, command: &mut Command, program: &Workload, options: &[&str]) {
        let path = std::env::join_paths(&program.class_path).unwrap_or_default();
        command
            .args(options)
            .arg("-XX:+UseSerialGC")
            .arg(self.ready.temporary())
            .arg("-cp")
            .arg(path);
        command.args(["bench.Main", program.name]).args(&program.arguments);
    }

    /// What an iteration takes on the target's JVM, in milliseconds: the mean, because the kernel
    /// tells a thread's time only from tick to tick.
    fn measure(&self, program: &Workload, options: &[&str], warm_up: f64) -> Result<f64> {
        let mut command = Command::new(self.jdk.home.join("bin/java"));
        self.java(&mut command, program, options);
        let mut running = Program::start(&mut command)?;
        running.run(Amount { iterations: 2, seconds: warm_up })?;
        let times = running.run(Amount { iterations: 3, seconds: 3.0 })?;
        running.quit()?;
        if times.cpu.is_empty() {
            bail!("the kernel does not tell the processor time of threads");
        }
        // Where it told nothing yet, nothing was added; the next iteration has it.
        Ok(times.cpu.iter().sum::<f64>() / times.wall.len() as f64)
    }

    /// The estimate of one iteration: that of three without that of one, so that what is done once
    /// is in neither.
    fn estimate(&self, program: &Workload, target: &Path) -> Result<f64> {
        let (one, three) = (self.total(program, target, 1)?, self.total(program, target, 3)?);
        Ok((three - one) / 2.0)
    }

    fn total(&self, program: &Workload, target: &Path, iterations: u32) -> Result<f64> {
        let file = self.ready.work.join("target.tare");
        let mut command = Command::new(&self.ready.tare);
        command.args(["record", "--bytecodes", "--target"]).arg(target);
        command.args(["--include", "**", "--exclude", "bench.Main", "--fold-recursion", "-q"]);
        command.args(["--memory", "1900M", "-o"]).arg(&file);
        command.arg("--").arg(self.jdk.home.join("bin/java"));
        self.java(&mut command, program, &[]);
        let mut running = Program::start(&mut command)?;
        running.run(Amount { iterations, seconds: 0.0 })?;
        running.quit()?;
        let mut report = Command::new(&self.ready.tare);
        report.arg("report").arg(&file).args(["--format", "json", "--metric", "target-time"]);
        report.args(["--thread", "main", "--top", "1"]);
        let report: Value = serde_json::from_str(&shell::output(&mut report)?)?;
        let total = report["total"].as_f64().context("a report without a total")?;
        Ok(total / 1e6)
    }
}

fn row(line: &Line) -> String {
    let Line { program, target, estimated, measured } = line;
    let off = (estimated / measured - 1.0) * 100.0;
    format!("| {program} | {target} | {off:+.0} % |")
}

fn page(lines: &[Line], jdk: &Jdk, force: bool) -> String {
    let mut page = format!(
        "# How far estimates for another JVM are off\n\n\
         This page is generated; `cargo xtask bench target --write-docs` writes it anew. Do not edit it. JDK {}; how far the processor time of an iteration, estimated from bytecodes \
         that were counted elsewhere, is off what was measured on the target in the same run. [Estimate for another JVM](../guide/other-jvm.md) says what that means.\n\n\
         | program | target | off by |\n|---|---|--:|\n",
        jdk.version
    );
    if force {
        // A sentence of the head, before the table.
        page = page.replacen(
            "\n\n| program",
            " Others used the machine meanwhile (`--force`).\n\n| program",
            1,
        );
    }
    for line in lines {
        page += &(row(line) + "\n");
    }
    page += "\nThe geometric mean of estimated over measured, and how far single programs are from that mean, as a factor:\n\n";
    for (target, ..) in TARGETS {
        let logs: Vec<f64> = lines
            .iter()
            .filter(|line| line.target == target && line.estimated > 0.0)
            .map(|line| (line.estimated / line.measured).ln())
            .collect();
        if logs.is_empty() {
            continue;
        }
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let spread = logs.iter().map(|log| (log - mean).abs()).fold(0.0, f64::max);
        page += &format!(
            "- {target}: {:.2}, and single programs within ×{:.2} of it\n",
            mean.exp(),
            spread.exp()
        );
    }
    page + "\nIf estimates of each program were multiplied by what the others were off by, on \
            (geometric) average:\n\n"
        + &left_out(lines)
}

/// How far estimates would be off that were corrected by a factor which the other programs tell,
/// beside how far they are without: on the average of all programs, as a factor.
fn left_out(lines: &[Line]) -> String {
    let mut text = String::new();
    for (target, ..) in TARGETS {
        let of_it = lines.iter().filter(|line| line.target == target && line.estimated > 0.0);
        let logs: Vec<f64> = of_it.map(|line| (line.measured / line.estimated).ln()).collect();
        if logs.len() < 3 {
            continue;
        }
        let (count, sum) = (logs.len() as f64, logs.iter().sum::<f64>());
        let off = |errors: Vec<f64>| (errors.iter().map(|e| e.abs()).sum::<f64>() / count).exp();
        let corrected = logs.iter().map(|log| (sum - log) / (count - 1.0) - log).collect();
        text += &format!(
            "- {target}: by ×{:.2} in place of ×{:.2}; the factor of all programs is {:.1}\n",
            off(corrected),
            off(logs),
            (sum / count).exp()
        );
    }
    text
}
