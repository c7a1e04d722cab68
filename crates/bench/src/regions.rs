//! `cargo xtask bench regions`: what a passage of a code region costs, beside the plain program and
//! beside one that reads the clock twice itself, which is the least that a time can cost.

use super::options::Options;
use super::ready::Ready;
use super::recorder::Recorder;
use super::trace::{ROUNDS, best};
use super::{jdks, machine, write};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use tare_toolbox::shell;
use tare_toolbox::stages::Stages;

pub const HELP: &str = "\
Measures what a passage of a code region costs, at several distances between two passages.

Usage: cargo xtask bench regions [--quick] [--jdk N] [--tare FILE] [--write-docs]

A program calls a method that does next to nothing, with work between two calls. Beside the plain program: one that times
each call itself by two readings of the clock, and `tare record --region` of that method, launched and
attached. Each figure is from the best of eight rounds of five million calls. --quick looks at
one distance only; --write-docs writes docs/measured/regions.md.
";

/// Steps of work between two passages, each about a nanosecond.
const PACES: [u32; 4] = [0, 30, 100, 300];
const REGION: &str = "bench.Rate.call";

/// Nanoseconds from one passage to the next.
struct Times {
    plain: f64,
    by_hand: f64,
    launched: f64,
    attached: f64,
}

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let Options { jdk, tare, quick, write_docs, rest } = options;
    if let Some(word) = rest.first() {
        bail!("{word} is no option; see --help");
    }
    let ready = Ready::alone(tare)?;
    let jdks = jdks(&[jdk], &mut Stages::new())?;
    let java = jdks[0].home.join("bin/java");
    let mut all = Vec::new();
    for &pace in if quick { &PACES[..1] } else { &PACES } {
        all.push((pace, measure(&ready, &java, pace)?));
    }
    let text = table(&all);
    print!("{text}");
    if write_docs {
        let page = format!(
            "# What a code region costs\n\n\
             This page is generated; `cargo xtask bench regions --write-docs` writes it anew. Do not edit it.\n\n\
             - Machine: {}\n- JDK: {}\n\n\
             A program calls a method that does next to nothing, with work between two calls. Each figure is the time from one \
             call to the next beside the plain program's, from the best of {ROUNDS} rounds of five million calls. *By hand*: the \
             program times the call itself, by two readings of `System.nanoTime()`, and keeps no more than the sum. *Launched* and \
             *attached*: `tare record --region {REGION}`. *A passage*: what the region adds to it when attached, beside what \
             the two readings add.\n\n{text}",
            machine::describe(),
            jdks[0].version,
        );
        write(&ready.workspace.root.join("docs/measured/regions.md"), &page)?;
    }
    Ok(())
}

fn table(all: &[(u32, Times)]) -> String {
    let mut text = "| steps of work between | by hand | launched | attached | a passage |\n\
                    |--:|--:|--:|--:|--:|\n"
        .to_owned();
    for (pace, times) in all {
        let Times { plain, by_hand, launched, attached } = times;
        let _ = writeln!(
            text,
            "| {pace} | {:.3} | {:.3} | {:.3} | {:.1} |",
            by_hand / plain,
            launched / plain,
            attached / plain,
            (attached - plain) / (by_hand - plain).max(0.1),
        );
    }
    text
}

fn measure(ready: &Ready, java: &Path, pace: u32) -> Result<Times> {
    let Ready { tare, work, classes, .. } = ready;
    let file = work.join("regions.tare");
    let program = |command: &mut Command, how: &str| {
        let (pace, rounds) = (pace.to_string(), ROUNDS.to_string());
        command.arg("-cp").arg(classes).args(["bench.Rate", &pace, &rounds, how]);
    };
    let alone = |how: &str| {
        let mut plain = Command::new(java);
        program(&mut plain, how);
        best(&shell::output(&mut plain)?)
    };
    let mut launched = Command::new(tare);
    launched.args(["record", "-q", "--region", REGION, "-o"]).arg(&file).arg("--").arg(java);
    program(&mut launched, "plain");
    Ok(Times {
        plain: alone("plain")?,
        by_hand: alone("clock")?,
        launched: best(&shell::output(&mut launched)?)?,
        attached: {
            let mut waiting = Command::new(java);
            waiting.arg("-XX:+EnableDynamicAgentLoading");
            program(&mut waiting, "wait");
            attached(tare, waiting, &file, &work.join("regions.log"))?
        },
    })
}

fn attached(tare: &Path, mut java: Command, file: &Path, said: &Path) -> Result<f64> {
    let mut child = java.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let mut record = Command::new(tare);
    record.args(["record", "-q", "--region", REGION, "-o"]).arg(file);
    let mut recorder = Recorder::start(record.arg(child.id().to_string()), said)?;
    recorder.wait_for(file)?;
    child.stdin.take().context("no input")?.write_all(b"\n")?;
    let mut text = String::new();
    lines.read_to_string(&mut text)?;
    child.wait()?;
    recorder.wait()?;
    best(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_are_told_beside_two_readings_of_the_clock() {
        let times = Times { plain: 10.0, by_hand: 50.0, launched: 60.0, attached: 70.0 };
        assert!(table(&[(0, times)]).contains("| 0 | 5.000 | 6.000 | 7.000 | 1.5 |"));
    }
}
