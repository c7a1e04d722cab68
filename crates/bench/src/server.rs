//! `cargo xtask bench server`: a server under load is attached to, looked at below one root, and
//! left, again and again. Its answers must stay right all the time, and as quick as before whenever
//! we are not there.

use super::options::Options;
use super::ready::Ready;
use super::recorder::Recorder;
use super::stats::median;
use super::workloads::{self, WEB_ROOT};
use super::{jdks, machine, write};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Profiles one root of a server under load, several times over, and tells what the requests felt of it.

Usage: cargo xtask bench server [OPTION…]

Options:
  --jdk N          the JDK to run on (default: 25)
  --seconds N      how long each recording is (default: 30)
  --quick          one short recording
  --tare FILE      use this `tare` instead of building one
  --write-docs     write docs/measured/server.md from this run
";

/// What all is compared with.
const BEFORE: &str = "before";

const CONNECTIONS: &str = "2";

/// How often it is recorded, and the seconds of each recording and of the phases without one.
struct Course {
    rounds: usize,
    seconds: f64,
    just: f64,
    outside: f64,
}

const WHOLE: Course = Course { rounds: 5, seconds: 30.0, just: 5.0, outside: 10.0 };
const QUICK: Course = Course { rounds: 1, seconds: 3.0, just: 1.0, outside: 2.0 };

/// What the requests of a stretch of time felt; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Phase {
    requests: u64,
    errors: u64,
    p50: f64,
    p99: f64,
    worst: f64,
}

/// Phases of one kind that follow each other in rounds, or the only one of its kind.
struct Stretch {
    kind: &'static str,
    round: Option<usize>,
    phase: Phase,
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
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut stretch = |kind, round, seconds| -> Result<()> {
        stretches.push(Stretch { kind, round, phase: load.phase(seconds)? });
        Ok(())
    };
    stretch("just after the start", None, course.just)?;
    stretch("soon after the start", None, course.outside)?;
    for round in 1..=course.rounds {
        stretch(BEFORE, Some(round), course.outside)?;
    }
    for round in (1..=course.rounds).map(Some) {
        let mut record = Command::new(tare);
        record.args(["record", "--exact", "--root", WEB_ROOT, "-o"]).arg(work.join("server.tare"));
        let said = work.join("server.log");
        let pid = server.child.id();
        let mut recorder = Recorder::start(record.arg(pid.to_string()), &said)?;
        stretch("profiled", round, course.seconds)?;
        recorder.stop()?;
        let text = fs::read_to_string(&said)?;
        println!("{}", text.lines().take(6).collect::<Vec<_>>().join("\n"));
        stretch("just after", round, course.just)?;
        stretch("soon after", round, course.outside)?;
        stretch("outside", round, course.outside)?;
    }
    let text = table(&stretches);
    println!("\n{text}");
    if options.write_docs {
        let page = format!(
            "# A server that is looked at under load\n\n\
             This page is generated; `{}` writes it anew. Do not edit it.\n\n\
             - Machine: {}\n- JDK: {}\n- Server: {}, {CONNECTIONS} connections that ask and pause 2 ms in turn\n\
             - Root: `{WEB_ROOT}`, with times, {} s each time\n\n\
             Times are ratios against the median of the phases before the first recording; the agent is \
             gone after each one. A JVM compiles for a while after its start, and so it does after a recording, because \
             HotSpot throws away what it compiled of classes that change, and at the first recording all the rest too. So the {} s *just after* and \
             the {} s *soon after* them are told apart, for the start as for a recording; then come {} s *outside*.\n\n{text}",
            super::command(&[&["server"], words].concat()),
            machine::describe(),
            found[0].version,
            workloads::SERVER,
            course.seconds,
            course.just,
            course.outside,
            course.outside,
        );
        write(&workspace.root.join("docs/measured/server.md"), &page)?;
    }
    stages.run("no answer was wrong or missing", || {
        let errors: u64 = stretches.iter().map(|stretch| stretch.phase.errors).sum();
        if errors > 0 {
            bail!("{errors} were");
        }
        Ok(())
    });
    stages.finish()
}

fn table(stretches: &[Stretch]) -> String {
    let mut text =
        "| phase | requests | errors | p50 | p99 | worst |\n|---|--:|--:|--:|--:|--:|\n".to_owned();
    let times: [fn(&Phase) -> f64; 3] = [|p| p.p50, |p| p.p99, |p| p.worst];
    let of = |kind: &str, time: fn(&Phase) -> f64| -> Vec<f64> {
        let all = stretches.iter().filter(|stretch| stretch.kind == kind);
        all.map(|stretch| time(&stretch.phase)).collect()
    };
    let before = times.map(|time| median(&of(BEFORE, time)).unwrap_or(1.0).max(1.0));
    let mut kinds: Vec<&str> = Vec::new();
    for Stretch { kind, round, phase } in stretches {
        let [p50, p99, worst] = [0, 1, 2].map(|at| times[at](phase) / before[at]);
        let name = round.map_or_else(|| kind.to_string(), |round| format!("{kind}, {round}"));
        let Phase { requests, errors, .. } = phase;
        let _ =
            writeln!(text, "| {name} | {requests} | {errors} | {p50:.2} | {p99:.2} | {worst:.2} |");
        if !kinds.contains(kind) {
            kinds.push(kind);
        }
    }
    text += "\nLeast and most of each:\n\n| | p50 | p99 | worst |\n|---|--:|--:|--:|\n";
    for kind in kinds {
        let [p50, p99, worst] = [0, 1, 2].map(|at| {
            let ratios = of(kind, times[at]).into_iter().map(|time| time / before[at]);
            let (least, most) =
                ratios.fold((f64::MAX, 0.0_f64), |(a, b), ratio| (a.min(ratio), b.max(ratio)));
            format!("{least:.2} to {most:.2}")
        });
        let _ = writeln!(text, "| {kind} | {p50} | {p99} | {worst} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_read_and_shown_as_ratios() {
        let kinds = [BEFORE, BEFORE, BEFORE, "profiled", "outside"];
        let rounds = [1, 2, 3, 1, 1];
        let lines = [
            "100 0 1000 2000 4000",
            "100 0 800 3000 4000",
            "100 0 1200 1000 4000",
            "90 1 1500 2000 4000",
            "100 0 1000 2400 2000",
        ];
        let stretches = kinds.iter().zip(rounds).zip(lines).map(|((kind, round), line)| Stretch {
            kind,
            round: Some(round),
            phase: phase(line).unwrap(),
        });
        let text = table(&stretches.collect::<Vec<_>>());
        for line in [
            "| before, 1 | 100 | 0 | 1.00 | 1.00 | 1.00 |",
            "| profiled, 1 | 90 | 1 | 1.50 | 1.00 | 1.00 |",
            "| before | 0.80 to 1.20 | 0.50 to 1.50 | 1.00 to 1.00 |",
            "| outside | 1.00 to 1.00 | 1.20 to 1.20 | 0.50 to 0.50 |",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert_eq!(phase("100 0 1000"), None);
    }
}
