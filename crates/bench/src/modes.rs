//! The question that is asked most: workloads under several configurations, in turns with the plain
//! program, and the ratios. `peers`, `bytecodes`, `suite` and `demotion` ask it of others.
//!
//! This file reads its options and walks over workloads, JDKs and launches; `config` says what each
//! configuration is.

use crate::config::{self, Config, Mode};
use crate::figures::{self, Row};
use crate::launch::Bench;
use crate::peers::Peers;
use crate::ready::Ready;
use crate::workloads::{self, Workload};
use crate::{HELP, command, demotion, docs, jdks, machine, plot, stats, table, write};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tare_toolbox::jars::async_profiler;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::stages::Stages;

/// What `--brief` leaves out, for the reader of a page.
const BRIEFLY: &str = "Briefly: three iterations and three seconds to warm up, one iteration and a second measured, nothing attached to";

/// What a run is to tell.
#[derive(Clone, Copy, PartialEq)]
enum Question {
    Modes,
    Peers,
    Bytecodes,
    Suite,
    Demotion,
}

impl Question {
    fn configs(self, brief: bool) -> &'static [Config] {
        match self {
            Question::Suite if brief => &config::BRIEF,
            Question::Modes => &config::ALL,
            Question::Peers => &config::PEERS,
            Question::Bytecodes => &config::BYTECODES,
            Question::Suite => &config::SUITE,
            Question::Demotion => &config::DEMOTION,
        }
    }

    fn page(self) -> &'static str {
        match self {
            Question::Modes => "docs/measured/cost.md",
            Question::Peers => "docs/measured/peers.md",
            Question::Bytecodes => "docs/measured/bytecodes.md",
            Question::Suite => "docs/measured/programs.md",
            Question::Demotion => "docs/measured/overhead-budget.md",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Question::Modes => "What profiling costs",
            Question::Peers => "Beside other profilers that see every call",
            Question::Bytecodes => "What counting bytecodes costs",
            Question::Suite => "What profiling costs, program by program",
            Question::Demotion => "What times cost within a budget",
        }
    }

    /// What is told beside the tables.
    fn beside(self) -> &'static str {
        match self {
            Question::Demotion => "How far the sum of times is off",
            _ => "Samples and the exact profile",
        }
    }

    /// Unless names are given.
    fn workloads(self) -> Vec<String> {
        let names: Vec<&str> = match self {
            Question::Suite => workloads::names().collect(),
            Question::Demotion => vec!["javac"],
            Question::Peers => workloads::DEFAULT.into_iter().chain(["trees"]).collect(),
            _ => workloads::DEFAULT.into(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    /// Launches and JDKs.
    fn defaults(self, quick: bool) -> (u32, Vec<u32>) {
        match (quick, self) {
            // The slowest of them needs small inputs, and the one that matters knows no later JDK.
            (_, Question::Peers) => (if quick { 1 } else { 3 }, vec![17]),
            (true, _) => (1, vec![25]),
            (_, Question::Suite) => (2, vec![25]),
            _ => (5, vec![17, 25]),
        }
    }
}

struct Args {
    names: Vec<String>,
    question: Question,
    quick: bool,
    brief: bool,
    launches: u32,
    minutes: Option<f64>,
    jdks: Vec<u32>,
    json: Option<PathBuf>,
    tare: Option<PathBuf>,
    write_docs: bool,
}

impl Args {
    fn parse(words: &[&str]) -> Result<Args> {
        let (mut names, mut quick, mut write_docs) = (Vec::new(), false, false);
        let mut question = Question::Modes;
        let (mut launches, mut jdks, mut json, mut tare) = (None, None, None, None);
        let (mut minutes, mut brief) = (None, false);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--quick" => quick = true,
                "--brief" => brief = true,
                "--write-docs" => write_docs = true,
                "--launches" => {
                    let number = value()?.parse().ok().filter(|n: &u32| *n > 0);
                    launches = Some(number.context("--launches needs a number above 0")?);
                }
                "--minutes" => {
                    minutes = Some(value()?.parse().context("--minutes needs a number")?);
                }
                "--jdk" => {
                    let numbers = value()?.split(',').map(str::parse).collect::<Result<_, _>>();
                    jdks = Some(numbers.context("--jdk needs numbers, such as 17,25")?);
                }
                "--json" => json = Some(PathBuf::from(value()?)),
                "--tare" => tare = Some(PathBuf::from(value()?)),
                word if word.starts_with('-') => bail!("unknown option {word}\n\n{HELP}"),
                "peers" => question = Question::Peers,
                "bytecodes" => question = Question::Bytecodes,
                "suite" => question = Question::Suite,
                "demotion" => question = Question::Demotion,
                "all" => names.extend(workloads::names().map(str::to_owned)),
                name if workloads::names().any(|known| known == name) => {
                    names.push(name.to_owned());
                }
                name => {
                    let known: Vec<_> = workloads::names().collect();
                    bail!("no workload is called {name}; there are {}", known.join(", "))
                }
            }
        }
        if names.is_empty() {
            names = question.workloads();
        }
        let defaults = question.defaults(quick);
        Ok(Args {
            names,
            question,
            quick,
            brief,
            launches: launches.unwrap_or(defaults.0),
            minutes,
            jdks: jdks.unwrap_or(defaults.1),
            json,
            tare,
            write_docs,
        })
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    let args = Args::parse(words)?;
    let ready = Ready::alone(args.tare.clone())?;
    let Ready { workspace, tare, work, .. } = &ready;
    let mut stages = Stages::new();
    let with_peers = args.question == Question::Peers;
    let kitchen = ready.kitchen(args.quick || with_peers);
    let mut workloads = Vec::new();
    let mut notes = Vec::new();
    for name in &args.names {
        workloads.extend(workloads::prepare(name, &kitchen, &mut stages)?);
    }
    if args.brief {
        workloads.iter_mut().for_each(Workload::be_brief);
        notes.push(BRIEFLY.to_owned());
    }
    if with_peers {
        // Small inputs, but the JVM must have compiled them.
        workloads.iter_mut().for_each(Workload::warm_up_well);
    }
    if args.question == Question::Demotion && !args.quick {
        workloads.iter_mut().for_each(Workload::warm_up_for_long);
    }
    let async_profiler = match with_peers {
        true => None,
        false => async_profiler(kitchen.javac, work, &mut stages),
    };
    let jdks = jdks(&args.jdks, &mut stages)?;
    let others = match with_peers {
        true => Peers::prepare(&kitchen, &jdks[0], &mut stages),
        false => Peers::default(),
    };
    let bench = Bench { tare: tare.clone(), async_profiler, peers: others, work: work.clone() };
    let load = machine::load();

    let configs = args.question.configs(args.brief);
    let mut groups = groups(&bench, configs, &workloads, &jdks, &mut notes);
    let began = Instant::now();
    let mut agreements = Vec::new();
    let mut skipped = 0;
    for turn in 1..=args.launches {
        for group in &mut groups {
            let late = args.minutes.is_some_and(|m| began.elapsed().as_secs_f64() > m * 60.0);
            if late && turn == 1 && args.question == Question::Suite {
                // Its workloads are many, and each stands for itself.
                let (name, jdk) = (group.workload.name, group.jdk.major);
                notes.push(format!("The time was up before {name} on {jdk}"));
                group.rows.clear();
            } else if late && turn > 1 {
                skipped += 1;
            } else {
                group.take_turn(&bench, turn, &mut notes);
                if args.question == Question::Bytecodes && turn == 1 {
                    agreements.extend(group.overlaps(&bench));
                }
            }
        }
    }
    if args.question == Question::Demotion {
        for Group { workload, jdk, .. } in &groups {
            match demotion::total_error(&bench, workload, jdk, args.quick) {
                Ok(lines) => agreements.extend(lines),
                Err(error) => notes.push(format!("FAILED: the sum of times: {error:#}")),
            }
        }
    }
    if skipped > 0 {
        let all = groups.len() * args.launches as usize;
        notes.push(format!("The time was up: {skipped} of {all} turns were left out"));
    }
    let rows: Vec<Row> = groups.into_iter().flat_map(|group| group.rows).collect();
    for note in &notes {
        stages.note(note.clone());
    }
    print!("{}\n{}", table::text(&rows), table::LEGEND);
    let means = match args.question {
        Question::Suite => [false, true].map(|small| table::means(&rows, small)).concat(),
        _ => String::new(),
    };
    print!("{means}");
    if !agreements.is_empty() {
        println!("\n{}:", args.question.beside());
        agreements.iter().for_each(|line| println!("  {line}"));
    }
    let about = docs::About {
        title: args.question.title(),
        machine: machine::describe(),
        jdks: jdks.iter().map(|jdk| (jdk.major, jdk.version.clone())).collect(),
        launches: args.launches,
        command: command(words),
        revision: if args.tare.is_none() { workspace.revision() } else { None },
        load,
        notes,
    };
    let json = args.json.unwrap_or_else(|| work.join("results.json"));
    write_results(&json, &work.join("results.svg"), &about, &rows)?;
    if args.write_docs {
        let shown: Vec<&Workload> = workloads.iter().collect();
        let page = docs::page(
            &about,
            &shown,
            &rows,
            configs,
            (args.question.beside(), &agreements),
            &means,
        );
        write(&workspace.root.join(args.question.page()), &page)?;
        if args.question == Question::Modes {
            write(&workspace.root.join("bench/results.svg"), &plot::svg(&rows))?;
            let readme = workspace.root.join("README.md");
            let text = fs::read_to_string(&readme).context("reading README.md")?;
            let text = docs::quoted_in(&text, &rows).context("README.md has no marks")?;
            write(&readme, &text)?;
        }
    }
    stages.run("our configurations ran", || {
        let missing: Vec<String> =
            rows.iter().filter(|row| row.is_missing()).map(Row::describe).collect();
        if !missing.is_empty() || rows.is_empty() {
            bail!("without a figure: {}", missing.join("; "));
        }
        Ok(())
    });
    stages.finish()
}

/// A workload on a JDK, with all of its configurations.
struct Group<'a> {
    workload: &'a Workload,
    jdk: &'a Jdk,
    rows: Vec<Row>,
    /// What every launch must compute.
    result: Option<String>,
}

fn groups<'a>(
    bench: &Bench,
    configs: &[Config],
    workloads: &'a [Workload],
    jdks: &'a [Jdk],
    notes: &mut Vec<String>,
) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    for (workload, jdk) in workloads.iter().flat_map(|w| jdks.iter().map(move |jdk| (w, jdk))) {
        if workload.needs_compiler && !jdk.javac {
            notes.push(format!("NOT COVERED: {} needs a whole JDK {}", workload.name, jdk.major));
            continue;
        }
        if jdk.major < workload.since {
            continue;
        }
        let rows = configs
            .iter()
            .filter(|config| config.can_run(bench, workload, jdk.major))
            .map(|config| Row {
                workload: workload.name,
                jdk: jdk.major,
                config: *config,
                launches: Vec::new(),
            })
            .collect();
        groups.push(Group { workload, jdk, rows, result: None });
    }
    groups
}

impl Group<'_> {
    /// One launch of each configuration, one after the other, so that whatever changes on the
    /// machine meanwhile meets them all.
    fn take_turn(&mut self, bench: &Bench, turn: u32, notes: &mut Vec<String>) {
        for row in &mut self.rows {
            let began = Instant::now();
            let outcome = bench.launch(self.workload, self.jdk, row.config).and_then(|launch| {
                // A profiled program that computes something else is worse than a slow one.
                let expected = self.result.get_or_insert_with(|| launch.result.clone());
                if *expected != launch.result {
                    bail!("computed {}, not {expected}", launch.result);
                }
                Ok(launch)
            });
            let took = began.elapsed().as_secs_f64();
            match outcome {
                Ok(launch) => {
                    let time = stats::median(&launch.iterations.wall).unwrap_or(0.0);
                    let recorded = launch.recorded.as_deref().unwrap_or("");
                    let what = row.describe();
                    println!("{turn}  {what:<40} {time:>9.1} ms  ({took:>4.1} s)  {recorded}");
                    row.launches.push(launch);
                }
                Err(error) => {
                    let note = format!("FAILED: {}, launch {turn}: {error:#}", row.describe());
                    println!("{note}");
                    notes.push(note.lines().next().unwrap_or_default().to_owned());
                }
            }
        }
    }
}

impl Group<'_> {
    /// How far samples of bytecodes agree with the exact profile of the same turn.
    fn overlaps(&self, bench: &Bench) -> Vec<String> {
        let line = |mode: Mode| {
            let place = format!("{} on {}", self.workload.name, self.jdk.major);
            let name = Config::Launched(mode).name();
            match bench.overlap(mode) {
                Ok(overlap) => format!("{place}, {name}: {overlap}"),
                Err(error) => format!("{place}, {name}: {error:#}"),
            }
        };
        config::BYTECODE_SAMPLES.map(line).into()
    }
}

impl Row {
    fn describe(&self) -> String {
        format!("{} on {}: {}", self.workload, self.jdk, self.config.name())
    }

    /// A peer that does not run here is noted; one of ours that does not is a fault.
    fn is_missing(&self) -> bool {
        let needed = self.config == Config::Plain || self.config.is_ours();
        needed && self.launches.is_empty()
    }
}

fn write_results(json: &Path, svg: &Path, about: &docs::About, rows: &[Row]) -> Result<()> {
    let groups = figures::groups(rows);
    let results: Vec<_> =
        groups.iter().flat_map(|(plain, same)| same.iter().map(|row| row.json(plain))).collect();
    let value = serde_json::json!({
        "machine": about.machine,
        "jdks": about.jdks.iter().map(|(_, version)| version).collect::<Vec<_>>(),
        "command": about.command,
        "revision": about.revision,
        "load_before": about.load,
        "notes": about.notes,
        "results": results,
    });
    write(json, &format!("{value:#}\n"))?;
    write(svg, &plot::svg(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let args = Args::parse(&["--jdk", "17,25", "fib", "--launches", "3", "h2"]).unwrap();
        assert_eq!((args.jdks, args.launches), (vec![17, 25], 3));
        assert_eq!(args.names, ["fib", "h2"]);
        let quick = Args::parse(&["--quick"]).unwrap();
        assert_eq!((quick.names.len(), quick.launches, quick.jdks), (3, 1, vec![25]));
        let suite = Args::parse(&["suite"]).unwrap();
        assert_eq!(suite.names.len(), workloads::names().count());
        for wrong in [&["--launches", "0"][..], &["--jdk", "x"], &["--jdk"], &["--no"], &["fob"]] {
            assert!(Args::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
