//! `cargo xtask bench server`: a server under load is attached to, looked at below one root, and left, again and
//! again. Its answers must stay right all the time, and as quick as before whenever we are not there.

use super::options::Options;
use super::ready::Ready;
use super::recorder::Recorder;
use super::workloads::{self, WEB_ROOT};
use super::{jdks, machine, write};
use crate::stages::Stages;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const HELP: &str = "\
Profiles one root of a server under load, several times over, and tells what the requests felt of it.

Usage: cargo xtask bench server [OPTION…]

Options:
  --jdk N          the JDK to run on (default: 25)
  --seconds N      how long each recording is (default: 30)
  --quick          one short recording
  --tare FILE      use this `tare` instead of building one
  --write-docs     write docs/server.md from this run
";

const CONNECTIONS: &str = "2";
/// Between recordings; the first seconds after one are told apart, because compiled code comes back then.
const SETTLING: f64 = 5.0;

/// How often it is recorded, and the seconds of each recording and of what lies between them.
struct Course {
    rounds: usize,
    seconds: f64,
    outside: f64,
}

const WHOLE: Course = Course { rounds: 5, seconds: 30.0, outside: 10.0 };
const QUICK: Course = Course { rounds: 1, seconds: 3.0, outside: 2.0 };

/// What the requests of a stretch of time felt; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Phase {
    requests: u64,
    errors: u64,
    p50: f64,
    p99: f64,
    worst: f64,
}

/// A JVM of ours that is told what to do line by line.
struct Helper {
    child: Child,
    input: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Helper {
    fn start(command: &mut Command) -> Result<Helper> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no input")?;
        let lines = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Helper { child, input, lines })
    }

    /// The rest of the next line, which must begin with this word.
    fn expect(&mut self, word: &str) -> Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        let rest =
            line.trim().strip_prefix(word).with_context(|| format!("{line:?}, not {word}"))?;
        Ok(rest.trim().to_owned())
    }

    fn phase(&mut self, seconds: f64) -> Result<Phase> {
        writeln!(self.input, "phase {seconds}")?;
        self.input.flush()?;
        let line = self.expect("phase")?;
        phase(&line).with_context(|| format!("{line:?} is no phase"))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn phase(line: &str) -> Option<Phase> {
    let mut words = line.split(' ');
    let (requests, errors) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let mut time = || words.next()?.parse().ok();
    Some(Phase { requests, errors, p50: time()?, p99: time()?, worst: time()? })
}

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let mut course = if options.quick { QUICK } else { WHOLE };
    match options.rest[..] {
        [] => {}
        ["--seconds", n] => course.seconds = n.parse().context("--seconds needs a number")?,
        _ => bail!("unknown: {}\n\n{HELP}", options.rest.join(" ")),
    }
    let ready = Ready::alone(options.tare)?;
    let Ready { workspace, tare, work, .. } = &ready;
    let mut stages = Stages::new();
    let kitchen = ready.kitchen(false);
    let found = jdks(&[options.jdk], &mut stages)?;
    let Some(web) = workloads::prepare("web", &kitchen, &mut stages)? else {
        return stages.finish();
    };
    let path: Vec<String> =
        web.class_path.iter().map(|entry| entry.display().to_string()).collect();
    let java = || {
        let mut java = Command::new(found[0].home.join("bin/java"));
        java.args(["-Xms256m", "-Xmx256m"]).arg(ready.temporary()).args(["-cp", &path.join(":")]);
        java
    };
    let mut server = Helper::start(java().arg("bench.WebServer"))?;
    let port = server.expect("port")?;
    let mut load = Helper::start(java().args(["bench.Load", &port, CONNECTIONS]))?;
    load.expect("ready")?;
    // Until the server is compiled.
    load.phase(2.0 * course.outside)?;
    let mut phases: Vec<(String, Phase)> = vec![("before".to_owned(), load.phase(course.outside)?)];
    for round in 1..=course.rounds {
        let mut record = Command::new(tare);
        record.args(["record", "--exact", "--root", WEB_ROOT, "-o"]).arg(work.join("server.tare"));
        let said = work.join("server.log");
        let pid = server.child.id();
        let mut recorder = Recorder::start(record.arg(pid.to_string()), &said)?;
        phases.push((format!("profiled, {round}"), load.phase(course.seconds)?));
        recorder.stop()?;
        let text = fs::read_to_string(&said)?;
        println!("{}", text.lines().take(6).collect::<Vec<_>>().join("\n"));
        phases.push((format!("just after, {round}"), load.phase(SETTLING)?));
        phases.push((format!("outside, {round}"), load.phase(course.outside)?));
    }
    let text = table(&phases);
    println!("\n{text}");
    if options.write_docs {
        let page = format!(
            "# A server that is looked at under load\n\n\
             This page is generated; `{}` writes it anew. Do not edit it.\n\n\
             - Machine: {}\n- JDK: {}\n- Server: {}, {CONNECTIONS} connections that ask and pause 2 ms in turn\n\
             - Root: `{WEB_ROOT}`, with times, {} s each time\n\n\
             Times are ratios against the phase before the first recording; the agent is gone after each one. The \
             first recording of a JVM makes HotSpot throw its compiled code away, and so do changes of classes \
             for what they concern: what that costs is in the {SETTLING} s *just after*.\n\n{text}",
            super::command(&[&["server"], words].concat()),
            machine::describe(),
            found[0].version,
            workloads::SERVER,
            course.seconds,
        );
        write(&workspace.root.join("docs/server.md"), &page)?;
    }
    stages.run("no answer was wrong or missing", || {
        let errors: u64 = phases.iter().map(|(_, phase)| phase.errors).sum();
        if errors > 0 {
            bail!("{errors} were");
        }
        Ok(())
    });
    stages.finish()
}

fn table(phases: &[(String, Phase)]) -> String {
    let mut text =
        "| phase | requests | errors | p50 | p99 | worst |\n|---|--:|--:|--:|--:|--:|\n".to_owned();
    let Some((_, before)) = phases.first() else { return text };
    for (name, phase) in phases {
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {:.2} | {:.2} | {:.2} |",
            phase.requests,
            phase.errors,
            phase.p50 / before.p50.max(1.0),
            phase.p99 / before.p99.max(1.0),
            phase.worst / before.worst.max(1.0),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_read_and_shown_as_ratios() {
        let before = phase("100 0 1000 2000 4000").unwrap();
        let after = phase("90 1 1500 2000 4000").unwrap();
        assert_eq!(after.errors, 1);
        let text = table(&[("before".to_owned(), before), ("after".to_owned(), after)]);
        assert!(text.contains("| before | 100 | 0 | 1.00 | 1.00 | 1.00 |"), "{text}");
        assert!(text.contains("| after | 90 | 1 | 1.50 | 1.00 | 1.00 |"), "{text}");
        assert_eq!(phase("100 0 1000"), None);
    }
}
