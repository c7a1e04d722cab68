//! `cargo xtask bench locks`: what recording locks costs, on a program whose threads fight for one
//! and on a database, beside async-profiler and the JVM's own recorder.
//!
//! `windows` measures; this file reads the command line and writes the page.

mod windows;

use super::launch::Bench;
use super::machine;
use super::options::Options;
use super::peers::Peers;
use super::program::Amount;
use super::ready::Ready;
use super::stats::{beside, median, shown};
use super::workloads;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use tare_toolbox::jars::async_profiler;
use tare_toolbox::stages::Stages;
use windows::{Kind, Measured, OURS, PEERS, Windows};

const HELP: &str = "\
Measures what recording locks costs beside the plain program, async-profiler and JFR.

Usage: cargo xtask bench locks [OPTION…] [NAME…]

NAMEs are workloads (see `cargo xtask bench --help`); without NAMEs it is locks, whose threads fight for one lock,
and h2. Of each, two JVMs are warm at the same time: Tare comes and goes in the one, the peers in the other, with
plain windows between them.

Options:
  --quick         a smoke test: small inputs and two rounds
  --rounds N      windows of each kind (default: 8; 2 with --quick)
  --jdk N         the JDK to run on (default: 25)
  --tare FILE     measure this `tare` instead of building one
  --write-docs    write docs/measured/locks.md
";

/// Where the figures are told, in the repository.
const PAGE: &str = "docs/measured/locks.md";

const DEFAULT: [&str; 2] = ["locks", "h2"];

/// The kernel tells processor time in hundredths of a second: of four seconds a quarter of a per
/// cent.
const WINDOW: Amount = Amount { iterations: 3, seconds: 4.0 };

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let (mut rounds, mut names) = (None, Vec::new());
    let mut rest = options.rest.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--rounds" => {
                let number = rest.next().and_then(|n| n.parse().ok()).filter(|n: &usize| *n > 0);
                rounds = Some(number.context("--rounds needs a number above 0")?);
            }
            name if workloads::names().any(|known| known == name) => names.push(name),
            other => bail!("{other} is neither an option nor a workload; see --help"),
        }
    }
    if names.is_empty() {
        names = DEFAULT.into();
    }
    let rounds = rounds.unwrap_or(if options.quick { 2 } else { 8 });
    let ready = Ready::alone(options.tare.clone())?;
    let mut stages = Stages::new();
    let kitchen = ready.kitchen(options.quick);
    let jdks = super::jdks(&[options.jdk], &mut stages)?;
    let jdk = jdks.first().context("no JDK")?;
    let async_profiler = async_profiler(kitchen.javac, kitchen.work, &mut stages);
    if async_profiler.is_none() {
        bail!("without async-profiler there is nothing to measure beside");
    }
    let bench = Bench {
        tare: ready.tare.clone(),
        async_profiler,
        peers: Peers::default(),
        work: ready.work.clone(),
    };
    let jcmd = ready.javac.home.join("bin/jcmd");
    let mut page = head(&super::command(&[&["locks"], words].concat()));
    let revision = super::revision(&ready.workspace).unwrap_or_default();
    let load = machine::load().map_or(String::new(), |load| format!("; load before: {load:.1}"));
    let _ = writeln!(
        page,
        "\nCommit {revision}; {}; Java {}{load}; {rounds} rounds.",
        machine::describe(),
        jdk.version
    );
    for name in names {
        let Some(mut workload) = workloads::prepare(name, &kitchen, &mut stages)? else {
            stages.note(format!("NOT COVERED: {name}"));
            continue;
        };
        if !options.quick {
            workload.measured = WINDOW;
        }
        let measured = windows::measure(&bench, &jcmd, &workload, jdk, rounds)?;
        let what = workload.what.split(", all of").next().unwrap_or(&workload.what);
        let piece = format!("\n## {name}\n\nThis is {what}.\n\n{}", table(&measured));
        println!("{piece}");
        page += &piece;
    }
    page += &commands();
    if options.write_docs {
        super::write(&ready.workspace.root.join(PAGE), &page)?;
    }
    stages.finish()
}

/// A line for each kind, beside the plain windows of the same JVM and round.
fn table(measured: &Measured) -> String {
    let mut text = "| | processor time | time | waits | with owner's stack | goal |\n\
                    |---|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for windows in [&measured.ours, &measured.peers] {
        let Some(plain) = windows.iter().find(|w| w.kind == Kind::Plain) else { continue };
        for one in windows.iter().filter(|w| w.kind != Kind::Plain) {
            let _ = writeln!(text, "{}", line(one, plain));
        }
    }
    text
}

fn line(one: &Windows, plain: &Windows) -> String {
    let cpu = |w: &Windows| w.costs.iter().map(|cost| cost.cpu).collect::<Vec<_>>();
    let wall = |w: &Windows| w.costs.iter().map(|cost| cost.wall).collect::<Vec<_>>();
    let dash = || "–".to_owned();
    format!(
        "| {} | {} | {} | {:.0} | {} | {} |",
        one.kind.name(),
        shown(beside(&cpu(one), &cpu(plain))),
        shown(beside(&wall(one), &wall(plain))),
        median(&one.waits).unwrap_or(0.0),
        median(&one.answered).map_or_else(dash, |share| format!("{:.0} %", share * 100.0)),
        one.kind.target().map_or_else(dash, |goal| format!("≤ {goal}")),
    )
}

fn head(command: &str) -> String {
    format!(
        "# What recording locks costs\n\n\
         This page is generated; `{command}` writes it anew. Do not edit it.\n\n\
         Of each program two JVMs are warm at the same time: Tare comes and goes in the one, \
         async-profiler 4 and JFR in the other, because async-profiler leaves its own `Unsafe.park` behind. \
         In each round there is a window of each kind and a plain one.\n\n\
         **Processor time** is that of the whole process for an iteration, **time** that of an iteration, both \
         beside the plain window of the same JVM and round: the median over rounds, and in brackets the bounds of \
         95 % of 4,000 bootstrap draws of rounds. **Waits** are those of a window that are in the recording one by \
         one; of ours those for a monitor that somebody had, and the share whose owner has told its stack. Thresholds are our default, \
         10 µs, for all three. JFR's profile settings sample methods, too.\n"
    )
}

fn commands() -> String {
    let mut text = "\n## Commands\n\n| | command |\n|---|---|\n".to_owned();
    for kind in OURS.iter().chain(&PEERS[1..]) {
        let _ = writeln!(text, "| {} | `{}` |", kind.name(), kind.command());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warm::Cost;

    fn windows(kind: Kind, cpu: &[f64]) -> Windows {
        let costs = cpu.iter().map(|&cpu| Cost { wall: cpu * 2.0, cpu }).collect();
        let answered = if kind == Kind::Ours { vec![0.9, 0.8, 1.0] } else { Vec::new() };
        Windows { kind, costs, waits: vec![10.0, 30.0, 20.0], answered }
    }

    #[test]
    fn each_window_is_compared_with_the_plain_one_of_its_jvm_and_round() {
        let ours = vec![windows(Kind::Plain, &[10.0, 20.0]), windows(Kind::Ours, &[11.0, 22.0])];
        let peers = vec![windows(Kind::Plain, &[5.0, 5.0]), windows(Kind::Jfr, &[10.0, 10.0])];
        let text = table(&Measured { ours, peers });
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines[0],
            "| tare | 1.100 (1.100–1.100) | 1.100 (1.100–1.100) | 20 | 90 % | ≤ 1.02 |"
        );
        assert!(
            lines[1].starts_with("| JFR | 2.000 ") && lines[1].ends_with("| – | – |"),
            "{text}"
        );
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn the_commands_are_those_that_are_run() {
        let text = commands();
        for part in ["tare record --lock PID", "start,event=lock,lock=10us", "JavaMonitorEnter"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
