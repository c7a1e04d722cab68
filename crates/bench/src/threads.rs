//! `cargo xtask bench threads`: how long a dump of a thousand threads stops the JVM, beside the
//! JDK's own in the same JVM, by the JVM's own log of its safepoints. `ways` measures what else
//! could be asked of the JVM.

mod ways;

use super::options::Options;
use super::ready::Ready;
use super::stats::{beside, median, shown};
use super::{jdks, machine, write};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Measures how long `tare threads` stops a JVM with many threads, beside `jcmd Thread.print` in the same JVM.

Usage: cargo xtask bench threads [OPTION…]

Options:
  --quick         a smoke test: fewer threads and rounds
  --rounds N      dumps of each kind in a JVM (default: 20; 3 with --quick)
  --ways          instead, what the JVM takes for each way of looking at all threads, by the processor time of the
                  thread that does it, beside the way that `tare threads` takes
  --jdk N         the JDK to run on (default: 17, 21 and 25, as far as they are here)
  --tare FILE     measure this `tare` instead of building one
  --write-docs    write docs/measured/threads.md
";

const PAGE: &str = "docs/measured/threads.md";
const ALL: [u32; 3] = [17, 21, 25];

/// Threads, and frames of each.
const THREADS: usize = 1_000;
const DEPTH: usize = 20;

/// The longest pause that is aimed at, in milliseconds.
const GOAL: f64 = 5.0;

/// Who dumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Ours,
    Jcmd,
}

const KINDS: [Kind; 2] = [Kind::Ours, Kind::Jcmd];

/// Pauses of dumps of one kind, a dump each, in milliseconds: the longest, and all together.
#[derive(Clone, Debug, Default)]
struct Pauses {
    longest: Vec<f64>,
    all: Vec<f64>,
}

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 0)? else { return Ok(()) };
    let (of_ways, rest): (Vec<&str>, Vec<&str>) =
        options.rest.iter().partition(|word| **word == "--ways");
    let rounds = match rest[..] {
        [] if options.quick => 3,
        [] => 20,
        ["--rounds", n] => n.parse().ok().filter(|n: &usize| *n > 0).context("--rounds N")?,
        _ => bail!("unknown: {}\n\n{HELP}", rest.join(" ")),
    };
    let threads = if options.quick { 50 } else { THREADS };
    let ready = Ready::alone(options.tare.clone())?;
    let mut stages = Stages::new();
    let wanted = if options.jdk == 0 { &ALL[..] } else { &[options.jdk] };
    if !of_ways.is_empty() {
        let jdks = jdks(wanted, &mut stages)?;
        println!("\n{}", ways::table(&ways::measure(&ready, &jdks, threads, rounds)?));
        return stages.finish();
    }
    let mut measured = Vec::new();
    for jdk in jdks(wanted, &mut stages)? {
        measured.push((jdk.version.clone(), measure(&ready, &jdk, threads, rounds)?));
    }
    let text = table(&measured);
    println!("\n{text}");
    if options.write_docs {
        let revision = ready.workspace.revision().unwrap_or_default();
        let page = head(&super::command(&[&["threads"], words].concat()), threads, rounds);
        let machine = machine::describe();
        let page = format!("{page}\nCommit {revision}; {machine}.\n\n{text}");
        write(&ready.workspace.root.join(PAGE), &page)?;
    }
    stages.finish()
}

/// Both kinds in turns, in one JVM. The first of each is no part of it: the agent comes, and code is
/// compiled.
fn measure(ready: &Ready, jdk: &Jdk, threads: usize, rounds: usize) -> Result<[Pauses; 2]> {
    let mut jvm = Jvm::start(ready, jdk, threads)?;
    let mut pauses: [Pauses; 2] = Default::default();
    for round in 0..=rounds {
        for (kind, pauses) in KINDS.into_iter().zip(&mut pauses) {
            let told = jvm.dump(ready, kind)?;
            let longest = told.iter().copied().fold(0.0, f64::max);
            if round > 0 {
                pauses.longest.push(longest);
                pauses.all.push(told.iter().sum());
            }
        }
    }
    jvm.end()?;
    Ok(pauses)
}

fn table(measured: &[(String, [Pauses; 2])]) -> String {
    let mut text = "| JDK | longest pause | goal | all pauses | beside jcmd's longest | beside jcmd's pauses |\n\
                    |---|--:|--:|--:|--:|--:|\n"
        .to_owned();
    let ms = |values: &[f64]| median(values).map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
    for (jdk, [ours, jcmd]) in measured {
        let _ = writeln!(
            text,
            "| {jdk} | {} | ≤ {GOAL} ms | {} | {} | {} |",
            ms(&ours.longest),
            ms(&ours.all),
            shown(beside(&ours.longest, &jcmd.longest)),
            shown(beside(&ours.all, &jcmd.all)),
        );
    }
    text
}

fn head(command: &str, threads: usize, rounds: usize) -> String {
    format!(
        "# How long a dump of threads stops a JVM\n\n\
         This page is generated; `{command}` writes it anew. Do not edit it.\n\n\
         A JVM has {threads} threads with about {DEPTH} frames each; half are parked, half wait for a monitor. \
         `tare threads` and `jcmd PID Thread.print` dump them in turns, {rounds} times each, after the first of each. \
         Pauses are those of the JVM's own log (`-Xlog:safepoint`, without the time to reach the safepoint), medians over \
         the dumps. Ratios are of dumps that followed each other, with the bounds of 95 % of 4,000 bootstrap draws.\n"
    )
}

/// The pauses that a piece of the log tells of, in milliseconds.
fn pauses(log: &str) -> Vec<f64> {
    let pause = |line: &str| {
        let (_, rest) = line.split_once("Safepoint \"")?;
        let (_, after) = rest.split_once("At safepoint:")?;
        let nanos: f64 = after.trim_start().split(' ').next()?.parse().ok()?;
        Some(nanos / 1e6)
    };
    log.lines().filter_map(pause).collect()
}

/// A JVM with many threads.
struct Jvm {
    child: Child,
    log: PathBuf,
    /// How much of the log was read.
    read: usize,
}

impl Jvm {
    fn start(ready: &Ready, jdk: &Jdk, threads: usize) -> Result<Jvm> {
        let log = ready.work.join("safepoints.log");
        let _ = fs::remove_file(&log);
        let mut java = Command::new(jdk.home.join("bin/java"));
        // No collection comes in between.
        java.args(["-Xms512m", "-Xmx512m"]).arg(ready.temporary());
        java.arg(format!("-Xlog:safepoint:file={}:uptime:filecount=0", log.display()));
        java.arg("-cp").arg(&ready.classes).arg("bench.ManyThreads");
        java.args([threads.to_string(), DEPTH.to_string()]);
        let errors = File::create(ready.work.join("stderr.log"))?;
        java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = java.spawn().context("java")?;
        let output = child.stdout.take().context("the program has no output")?;
        let jvm = Jvm { child, log, read: 0 };
        match BufReader::new(output).lines().next() {
            Some(Ok(line)) if line.starts_with("ready") => Ok(jvm),
            other => bail!("the program does not begin: {other:?}"),
        }
    }

    /// Has somebody dump the threads; the pauses that brought about.
    fn dump(&mut self, ready: &Ready, kind: Kind) -> Result<Vec<f64>> {
        self.news()?;
        let pid = self.child.id().to_string();
        let mut command = match kind {
            Kind::Ours => Command::new(&ready.tare),
            Kind::Jcmd => Command::new(ready.javac.home.join("bin/jcmd")),
        };
        match kind {
            Kind::Ours => command.args(["threads", &pid, "--no-virtual", "--json"]),
            Kind::Jcmd => command.args([&pid, "Thread.print"]),
        };
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        if !status.success() {
            bail!("{kind:?} ended badly ({status})");
        }
        let pauses = pauses(&self.news()?);
        if pauses.is_empty() {
            bail!("the JVM's log tells of no pause for {kind:?}");
        }
        Ok(pauses)
    }

    /// What the log has told since the last time.
    fn news(&mut self) -> Result<String> {
        let log = fs::read_to_string(Path::new(&self.log)).context("the JVM's log")?;
        let news = log.get(self.read..).unwrap_or_default().to_owned();
        self.read = log.len();
        Ok(news)
    }

    fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the program ended badly ({status})");
        }
        Ok(())
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_read_from_the_logs_of_all_versions() {
        let log = "[1.0s] Safepoint \"ThreadDump\", Time since last: 9 ns, Reaching safepoint: 70000 ns, \
                   At safepoint: 2500000 ns, Total: 2570000 ns\n\
                   [1.1s] Safepoint \"PrintThreads\", Time since last: 9 ns, Reaching safepoint: 7 ns, \
                   Cleanup: 3 ns, At safepoint: 4000000 ns, Leaving safepoint: 5 ns, Total: 8 ns\n\
                   [1.2s] something else\n";
        assert_eq!(pauses(log), [2.5, 4.0]);
    }

    #[test]
    fn a_line_has_our_pauses_and_their_ratios() {
        let pauses =
            |longest: &[f64], all: &[f64]| Pauses { longest: longest.to_vec(), all: all.to_vec() };
        let ours = pauses(&[3.0, 2.0, 4.0], &[3.5, 2.5, 4.5]);
        let jcmd = pauses(&[6.0, 4.0, 8.0], &[7.0, 5.0, 9.0]);
        let text = table(&[("25".to_owned(), [ours, jcmd])]);
        let line = "| 25 | 3.0 ms | ≤ 5 ms | 3.5 ms | 0.500 (0.500–0.500) | 0.500 (0.500–0.500) |";
        assert!(text.contains(line), "{text}");
    }
}
