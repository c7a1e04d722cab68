//! `cargo xtask bench sampling`: what sampling costs beside async-profiler's, and how far the two
//! agree.
//!
//! Both come and go in one JVM that is warm, window by window, with plain windows between them: how
//! a JVM happened to compile the program in its life then meets all of them. Each round has one
//! window of each kind; figures are ratios within a round. What both cost at the start of a program
//! needs launches of its own. `windows` measures, `page` writes; profiles are compared by
//! `overlap`.
//!
//! A run writes one piece for each program and JDK; the page is made of all pieces that are there,
//! so it need not be measured at one go.

mod page;
mod windows;

use super::config::{Config, Every};
use super::launch::{Bench, Launch};
use super::machine;
use super::peers::Peers;
use super::program::Amount;
use super::ready::Ready;
use super::workloads::{self, Workload};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use tare_toolbox::jars::async_profiler;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell::Workspace;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Measures what sampling costs beside async-profiler, and how far their profiles agree.

Usage: cargo xtask bench sampling [OPTION…] [NAME…]

NAMEs are workloads (see `cargo xtask bench --help`), `crowd` for 10,000 threads, `smaller-crowd` for so many that each
can have a perf event within our share of this system's limits, and `start` for what both cost at the start of a program;
without NAMEs it is javac, h2, lucene, saxon, crowd, smaller-crowd and start.

Options:
  --quick         a smoke test: small inputs, two rounds, one JDK
  --rounds N      windows of each kind in a JVM, and launches of `start` (default: 6; 2 with --quick)
  --jdk N[,N…]    the JDKs to run on (default: 17,25; 25 with --quick)
  --tare FILE     measure this `tare` instead of building one
  --write-docs    write docs/measured/sampling.md from this run and the pieces of earlier ones
  --only-docs     the same without measuring anything
";

/// Where the figures are told, in the repository.
const PAGE: &str = "docs/measured/sampling.md";

const DEFAULT: [&str; 7] = ["javac", "h2", "lucene", "saxon", CROWD, SMALLER_CROWD, START];
const CROWD: &str = "crowd";
const SMALLER_CROWD: &str = "smaller-crowd";
const START: &str = "start";

/// Threads of the crowds. With more than a quarter of the descriptors that a process may have, some
/// get timers instead of perf events, which are cheaper and see less; async-profiler opens as many
/// as it can.
const CROWD_SIZE: u32 = 10_000;
const SMALLER_CROWD_SIZE: u32 = 4_000;

struct Args {
    names: Vec<String>,
    quick: bool,
    rounds: usize,
    jdks: Vec<u32>,
    tare: Option<PathBuf>,
    write_docs: bool,
    only_docs: bool,
}

impl Args {
    fn parse(words: &[&str]) -> Result<Args> {
        let (mut names, mut quick, mut write_docs) = (Vec::new(), false, false);
        let (mut rounds, mut jdks, mut tare, mut only_docs) = (None, None, None, false);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--quick" => quick = true,
                "--write-docs" => write_docs = true,
                "--only-docs" => only_docs = true,
                "--rounds" => {
                    // Halves are compared with each other.
                    let number = value()?.parse().ok().filter(|n: &usize| *n >= 2);
                    rounds = Some(number.context("--rounds needs a number of at least 2")?);
                }
                "--jdk" => {
                    let numbers = value()?.split(',').map(str::parse).collect::<Result<_, _>>();
                    jdks = Some(numbers.context("--jdk needs numbers, such as 17,25")?);
                }
                "--tare" => tare = Some(PathBuf::from(value()?)),
                word if word.starts_with('-') => bail!("unknown option {word}\n\n{HELP}"),
                name if [CROWD, SMALLER_CROWD, START].contains(&name)
                    || workloads::names().any(|n| n == name) =>
                {
                    names.push(name.to_owned());
                }
                name => bail!("no workload is called {name}\n\n{HELP}"),
            }
        }
        if names.is_empty() {
            names = DEFAULT.map(str::to_owned).into();
        }
        let jdks = jdks.unwrap_or(if quick { vec![25] } else { vec![17, 25] });
        let rounds = rounds.unwrap_or(if quick { 2 } else { 6 });
        Ok(Args { names, quick, rounds, jdks, tare, write_docs, only_docs })
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    if matches!(words, ["--help" | "-h"]) {
        print!("{HELP}");
        return Ok(());
    }
    let args = Args::parse(words)?;
    if args.only_docs {
        let workspace = Workspace::open()?;
        let pieces = page::whole(&workspace.target.join("bench/sampling"))?;
        return super::write(&workspace.root.join(PAGE), &pieces);
    }
    let ready = Ready::alone(args.tare.clone())?;
    let Ready { workspace, javac, tare, work, classes, .. } = &ready;
    let page = workspace.root.join(PAGE);
    let pieces = work.join("sampling");
    fs::create_dir_all(&pieces).with_context(|| format!("creating {}", pieces.display()))?;
    let mut stages = Stages::new();
    let kitchen = ready.kitchen(args.quick);
    let jdks = super::jdks(&args.jdks, &mut stages)?;
    let async_profiler = async_profiler(kitchen.javac, kitchen.work, &mut stages);
    if async_profiler.is_none() {
        bail!("without async-profiler there is nothing to measure beside");
    }
    let bench =
        Bench { tare: tare.clone(), async_profiler, peers: Peers::default(), work: work.clone() };
    let about = page::About {
        command: super::command(&[&["sampling"], words].concat()),
        revision: workspace.revision(),
        machine: machine::describe(),
        load: machine::load(),
    };
    for (name, jdk) in args.names.iter().flat_map(|name| jdks.iter().map(move |jdk| (name, jdk))) {
        let file = pieces.join(format!("{name}-{}.md", jdk.major));
        let piece = |stages: &mut Stages| -> Result<Option<String>> {
            if name == START {
                let Some(workload) = workloads::prepare("javac", &kitchen, stages)? else {
                    return Ok(None);
                };
                let starts = starts(&bench, &workload, jdk, args.rounds)?;
                return Ok(Some(page::starts(&about, &workload, jdk, &starts)));
            }
            let prepared = match name.as_str() {
                CROWD => Some(crowd(classes, CROWD_SIZE, args.quick)),
                SMALLER_CROWD => Some(crowd(classes, SMALLER_CROWD_SIZE, args.quick)),
                name => workloads::prepare(name, &kitchen, stages)?,
            };
            let Some(workload) = prepared.filter(|w| jdk.javac || !w.needs_compiler) else {
                return Ok(None);
            };
            let tool = javac.home.join("bin/jcmd");
            let measured = windows::measure(&bench, &tool, &workload, jdk, args.rounds)?;
            Ok(Some(page::windows(&about, name, &workload, jdk, &measured)))
        };
        match piece(&mut stages) {
            Ok(Some(text)) => {
                println!("{text}");
                fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
            }
            Ok(None) => stages.note(format!("NOT COVERED: {name} on {}", jdk.major)),
            Err(error) => {
                stages.run(&format!("{name} on {}", jdk.major), || Err::<(), _>(error));
            }
        }
    }
    if args.write_docs {
        super::write(&page, &page::whole(&pieces)?)?;
    }
    stages.finish()
}

/// Many threads, few of which work at a time: what is done for each thread is what it costs.
fn crowd(classes: &std::path::Path, size: u32, quick: bool) -> Workload {
    let size = if quick { size / 10 } else { size };
    Workload {
        name: CROWD,
        include: "bench.Crowd",
        root: String::new(),
        what: format!("{size} threads that work in turns, ten at a time"),
        class_path: vec![classes.to_owned()],
        arguments: vec![size.to_string()],
        options: Vec::new(),
        needs_compiler: false,
        since: 0,
        settles_within: 0.0,
        warm_up: Amount { iterations: 2, seconds: 2.0 },
        measured: Amount { iterations: 1, seconds: 1.0 },
    }
}

/// Launches of the plain program and of both samplers from the start on, in turns.
fn starts(
    bench: &Bench,
    workload: &Workload,
    jdk: &Jdk,
    rounds: usize,
) -> Result<Vec<(Config, Vec<Launch>)>> {
    let mut all = vec![(Config::Plain, Vec::new())];
    for every in Every::ALL {
        all.push((Config::Sampled(every), Vec::new()));
        all.push((Config::AsyncSampled(every), Vec::new()));
    }
    for _ in 0..rounds {
        for (config, launches) in &mut all {
            launches.push(bench.start(workload, jdk, *config)?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let args = Args::parse(&["--jdk", "17,25", "h2", "start", "--rounds", "3"]).unwrap();
        assert_eq!((args.jdks, args.rounds), (vec![17, 25], 3));
        assert_eq!(args.names, ["h2", "start"]);
        let quick = Args::parse(&["--quick"]).unwrap();
        assert_eq!((quick.names.len(), quick.rounds, quick.jdks), (7, 2, vec![25]));
        for wrong in [&["--rounds", "1"][..], &["--jdk", "x"], &["--jdk"], &["--no"], &["fob"]] {
            assert!(Args::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
