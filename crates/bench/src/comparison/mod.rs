//! What an engine costs that comes to a running program and goes again, beside other profilers
//! that do the same: windows of each in JVMs that are warm, with plain windows between them.
//!
//! `windows` measures; this file reads the command line and writes the page. Which windows there
//! are, and what they tell beside their cost, a [`Comparison`] says: `alloc` and `locks` are two.

mod windows;

use super::launch::Bench;
use super::machine;
use super::options::Options;
use super::peers::Peers;
use super::program::Amount;
use super::ready::Ready;
use super::stats::{beside, median, shown};
use super::warm::Cost;
use super::workloads;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use tare_toolbox::jars::async_profiler;
use tare_toolbox::stages::Stages;
use windows::{Measured, Windows};

/// The kernel tells processor time in hundredths of a second: of four seconds a quarter of a per
/// cent.
const WINDOW: Amount = Amount { iterations: 3, seconds: 4.0 };

/// What is measured, and what its page says.
pub struct Comparison {
    /// The word after `cargo xtask bench`, and the name of the page.
    pub name: &'static str,
    pub help: &'static str,
    pub title: &'static str,
    /// Why the peers have a JVM of their own: goes on after "in the other, because".
    pub apart: &'static str,
    /// What the columns mean that are this comparison's own.
    pub about: &'static str,
    /// What is measured if nobody names anything.
    pub workloads: &'static [&'static str],
    /// One window of each in a round: ours, and those of the peers. Each has a plain one beside.
    pub ours: &'static [Kind],
    pub peers: &'static [Kind],
    /// The names of two columns: what is counted in a window, and what else ours tells.
    pub columns: [&'static str; 2],
    /// Both, from the facts of a recording.
    pub told: fn(&Value) -> Result<Told>,
    /// The events of the JVM's recorder that are counted, by their names.
    pub events: &'static [&'static str],
    /// How the second column is shown.
    pub show: fn(f64) -> String,
}

/// What a window tells beside its cost.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub counted: f64,
    pub other: Option<f64>,
}

/// Who records in a window.
pub struct Kind {
    pub name: &'static str,
    pub who: Who,
    /// The processor time that is aimed at, beside the plain window.
    pub goal: Option<f64>,
}

pub enum Who {
    /// The options of `tare record`.
    Tare(&'static [&'static str]),
    /// What async-profiler is started with.
    Async(&'static str),
    /// What `JFR.start` is given beside the settings.
    Jfr(&'static [&'static str]),
}

impl Kind {
    /// What a user would type.
    fn command(&self) -> String {
        match self.who {
            Who::Tare(options) => format!("tare record {} PID", options.join(" ")),
            Who::Async(options) => format!("asprof {options}"),
            Who::Jfr(options) => {
                [&["jcmd PID JFR.start settings=profile"], options].concat().join(" ")
            }
        }
    }
}

pub fn run(comparison: &Comparison, words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, comparison.help, 25)? else { return Ok(()) };
    let (rounds, mut names) = options.rounds_and_names()?;
    if names.is_empty() {
        names = comparison.workloads.into();
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
    let mut page = comparison.head(&super::command(&[&[comparison.name], words].concat()));
    let revision = ready.workspace.revision().unwrap_or_default();
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
        let measured = windows::measure(comparison, &bench, &jcmd, &workload, jdk, rounds)?;
        let what = workload.what.split(", all of").next().unwrap_or(&workload.what);
        let table = comparison.table(&measured);
        let piece = format!("\n## {name}\n\nThis is {what}.\n\n{table}");
        println!("{piece}");
        page += &piece;
    }
    page += &comparison.commands();
    if options.write_docs {
        let file = format!("docs/measured/{}.md", comparison.name);
        super::write(&ready.workspace.root.join(file), &page)?;
    }
    stages.finish()
}

impl Comparison {
    /// A line for each kind, beside the plain windows of the same JVM and round.
    fn table(&self, measured: &Measured) -> String {
        let [counted, other] = self.columns;
        let mut text = format!(
            "| | processor time | of that our threads | time | {counted} | {other} | goal |\n\
             |---|--:|--:|--:|--:|--:|--:|\n"
        );
        for windows in [&measured.ours, &measured.peers] {
            let Some(plain) = windows.iter().find(|w| w.kind.is_none()) else { continue };
            for one in windows {
                if let Some(kind) = one.kind {
                    let _ = writeln!(text, "{}", self.line(kind, one, plain));
                }
            }
        }
        text
    }

    fn line(&self, kind: &Kind, one: &Windows, plain: &Windows) -> String {
        let cpu = |w: &Windows| w.costs.iter().map(|cost| cost.cpu).collect::<Vec<_>>();
        let wall = |w: &Windows| w.costs.iter().map(|cost| cost.wall).collect::<Vec<_>>();
        let own = |cost: &Cost| cost.own / cost.cpu * 100.0;
        let own = median(&one.costs.iter().map(own).collect::<Vec<_>>());
        let own = own.filter(|_| matches!(kind.who, Who::Tare(_)));
        let dash = || "–".to_owned();
        format!(
            "| {} | {} | {} | {} | {:.0} | {} | {} |",
            kind.name,
            shown(beside(&cpu(one), &cpu(plain))),
            own.map_or_else(dash, |own| format!("{own:.2} %")),
            shown(beside(&wall(one), &wall(plain))),
            median(&one.counted).unwrap_or(0.0),
            median(&one.other).map_or_else(dash, self.show),
            kind.goal.map_or_else(dash, |goal| format!("≤ {goal}")),
        )
    }

    fn head(&self, command: &str) -> String {
        let Comparison { title, apart, about, .. } = self;
        format!(
            "# {title}\n\n\
             This page is generated; `{command}` writes it anew. Do not edit it.\n\n\
             Of each program two JVMs are warm at the same time: Tare comes and goes in the one, \
             async-profiler 4 and JFR in the other, because {apart}. In each round there is a \
             window of each kind and a plain one.\n\n\
             **Processor time** is that of the whole process for an iteration, **time** that of \
             an iteration, both beside the plain window of the same JVM and round: the median \
             over rounds, and in brackets the bounds of 95 % of 4,000 bootstrap draws of rounds. \
             **Of that our threads** is what threads of the agent took of it, by the scheduler's \
             clock, which a noisy neighbour does not change much. {about} JFR's profile settings \
             sample methods, too.\n"
        )
    }

    fn commands(&self) -> String {
        let mut text = "\n## Commands\n\n| | command |\n|---|---|\n".to_owned();
        for kind in self.ours.iter().chain(self.peers) {
            let _ = writeln!(text, "| {} | `{}` |", kind.name, kind.command());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::{alloc, locks};
    use super::*;

    fn windows(kind: Option<&'static Kind>, cpu: &[f64], other: &[f64]) -> Windows {
        let costs = cpu
            .iter()
            .map(|&cpu| Cost {
                wall: cpu * 2.0,
                cpu,
                own: cpu / 200.0,
                iterations: 1,
                ..Cost::default()
            })
            .collect();
        Windows { kind, costs, counted: vec![10.0, 30.0, 20.0], other: other.to_vec() }
    }

    #[test]
    fn each_window_is_compared_with_the_plain_one_of_its_jvm_and_round() {
        let ours = |comparison: &'static Comparison, other: &[f64]| {
            let ours = windows(Some(&comparison.ours[0]), &[11.0, 22.0], other);
            vec![windows(None, &[10.0, 20.0], &[]), ours]
        };
        let jfr = alloc::COMPARISON.peers.last();
        let peers = vec![windows(None, &[5.0, 5.0], &[]), windows(jfr, &[10.0, 10.0], &[])];
        let ours_alloc = ours(&alloc::COMPARISON, &[(3 << 20) as f64]);
        let text = alloc::COMPARISON.table(&Measured { ours: ours_alloc, peers });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "| | processor time | of that our threads | time | samples | table | goal |"
        );
        assert_eq!(
            lines[2],
            "| tare, 512K, with what lives | 1.100 (1.100–1.100) | 0.50 % | 1.100 (1.100–1.100) | 20 \
             | 3.0 MiB | ≤ 1.01 |"
        );
        assert!(lines[3].starts_with("| JFR, profile | 2.000 "), "{text}");
        assert!(lines[3].ends_with("| 20 | – | – |"), "{text}");
        assert_eq!(lines.len(), 4);

        let measured =
            Measured { ours: ours(&locks::COMPARISON, &[0.9, 0.8, 1.0]), peers: Vec::new() };
        let text = locks::COMPARISON.table(&measured);
        assert!(text.contains("| tare | 1.100 (1.100–1.100) "), "{text}");
        assert!(text.contains("| 20 | 90 % | ≤ 1.02 |"), "{text}");
    }

    #[test]
    fn the_commands_are_those_that_are_run() {
        let text = alloc::COMPARISON.commands();
        for part in [
            "tare record --alloc --interval-bytes 512K --no-live PID",
            "asprof start,event=alloc,alloc=64k,live",
            "`jcmd PID JFR.start settings=profile`",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let text = locks::COMPARISON.commands();
        for part in ["tare record --lock PID", "start,event=lock,lock=10us", "JavaMonitorEnter"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
