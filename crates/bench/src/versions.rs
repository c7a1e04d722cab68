//! `cargo xtask bench versions`: whether a change of Tare made profiling dearer. Two builds measure
//! the same program in turns, so that both meet whatever else the machine does meanwhile.
//!
//! What a configuration costs beside the plain program, `modes` tells.

use crate::config::{Config, Every, Mode};
use crate::jdks;
use crate::launch::{Bench, Launch};
use crate::options::Options;
use crate::peers::Peers;
use crate::ready::Ready;
use crate::stats::{median, spread};
use crate::workloads::{self, Workload};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Measures two builds of Tare in turns: did a change make profiling dearer?

Usage: cargo xtask bench versions --before FILE [OPTION…] [NAME…]

FILE is the `tare` of the earlier build, with its agent beside it. Each workload NAME (fib, trees
and javac unless named) runs sampled every millisecond, counted and timed. The table has the time of an
iteration, later build / earlier build, on the processor and by the wall clock: the median over
launches. It also has the spread of each build's own launches. A ratio within the spread is chance.
The last two columns are each build's time on the processor beside the plain program's, which takes
turns with them.

Options:
  --tare FILE      the `tare` of the later build (default: one is built)
  --launches N     launches of each (default: 5; 1 with --quick)
  --quick          small inputs
  --jdk N          the JDK to run on (default: 25)
  --settled        warm up until iterations get no faster: for a machine that others use, too
  --only MODE      of these alone: sampled, count, time, every-time, followed, bytecodes, every-10k (may be
                   given more than once)
";

/// The place of the plain program behind the two builds.
const PLAIN: usize = 2;

const CONFIGS: [Config; 3] =
    [Config::Sampled(Every::Ms1), Config::Launched(Mode::Count), Config::Launched(Mode::Time)];

/// What `--only` takes.
const MODES: [(&str, Config); 7] = [
    ("sampled", Config::Sampled(Every::Ms1)),
    ("count", Config::Launched(Mode::Count)),
    ("time", Config::Launched(Mode::Time)),
    ("every-time", Config::Launched(Mode::EveryTime)),
    ("followed", Config::Launched(Mode::Followed)),
    ("bytecodes", Config::Launched(Mode::Bytecodes)),
    ("every-10k", Config::Launched(Mode::Every10k)),
];

/// What the launches of one build took: the median iteration of each, in milliseconds.
#[derive(Default)]
struct Took {
    cpu: Vec<f64>,
    wall: Vec<f64>,
}

impl Took {
    fn add(&mut self, launch: &Launch) {
        self.cpu.extend(median(&launch.iterations.cpu));
        self.wall.extend(median(&launch.iterations.wall));
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let (mut before, mut launches, mut names) = (None, None, Vec::new());
    let (mut configs, mut settled) = (Vec::new(), false);
    let mut rest = options.rest.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
        match *word {
            "--before" => before = Some(PathBuf::from(value()?)),
            "--launches" => {
                let number = value()?.parse().ok().filter(|n: &u32| *n > 0);
                launches = Some(number.context("--launches needs a number above 0")?);
            }
            "--settled" => settled = true,
            "--only" => {
                let mode = value()?;
                let known = MODES.iter().find(|(name, _)| name == mode);
                configs.push(known.with_context(|| format!("--only {mode}: see --help"))?.1);
            }
            name if workloads::names().any(|known| known == name) => names.push(name),
            other => bail!("{other} is neither an option nor a workload; see --help"),
        }
    }
    let before = before.context("--before FILE names the earlier build; see --help")?;
    if !before.is_file() {
        bail!("there is no {}", before.display());
    }
    if names.is_empty() {
        names = vec!["fib", "trees", "javac"];
    }
    if configs.is_empty() {
        configs.extend(CONFIGS);
    }
    let launches = launches.unwrap_or(if options.quick { 1 } else { 5 });
    let ready = Ready::alone(options.tare)?;
    let mut stages = Stages::new();
    let kitchen = ready.kitchen(options.quick);
    let mut all = Vec::new();
    for name in names {
        all.extend(workloads::prepare(name, &kitchen, &mut stages)?);
    }
    if settled {
        all.iter_mut().for_each(Workload::warm_up_well);
    }
    let jdks = jdks(&[options.jdk], &mut stages)?;
    let bench = |tare: &Path| Bench {
        tare: tare.to_owned(),
        async_profiler: None,
        peers: Peers::default(),
        work: ready.work.clone(),
    };
    let builds = [bench(&before), bench(&ready.tare)];
    println!("| workload | configuration | cpu | spread | wall | spread | before | after |");
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    for workload in &all {
        for &config in &configs {
            let took = in_turns(&builds, workload, &jdks[0], config, launches)?;
            println!("{}", line(workload.name, config.name(), &took));
        }
    }
    stages.finish()
}

/// Launches of both builds, and of the plain program. Who is first changes with each turn.
fn in_turns(
    builds: &[Bench; 2],
    workload: &Workload,
    jdk: &Jdk,
    config: Config,
    launches: u32,
) -> Result<[Took; 3]> {
    let mut took = [Took::default(), Took::default(), Took::default()];
    let mut result = None;
    for turn in 0..launches {
        for which in if turn % 2 == 0 { [0, 1, PLAIN] } else { [1, 0, PLAIN] } {
            let config = if which == PLAIN { Config::Plain } else { config };
            let launch = builds[which % PLAIN].launch(workload, jdk, config)?;
            let expected = result.get_or_insert_with(|| launch.result.clone());
            if *expected != launch.result {
                bail!("{} computed {}, not {expected}", workload.name, launch.result);
            }
            took[which].add(&launch);
        }
    }
    Ok(took)
}

fn line(workload: &str, config: &str, [before, after, plain]: &[Took; 3]) -> String {
    let cell = |before: &[f64], after: &[f64]| {
        let ratio = median(after).zip(median(before)).filter(|(_, before)| *before > 0.0);
        let ratio =
            ratio.map_or("–".to_owned(), |(after, before)| format!("{:.3}", after / before));
        let percent = |values| {
            spread(values).map_or("–".to_owned(), |share| format!("{:.0}", share * 100.0))
        };
        format!("{ratio} | {} / {} %", percent(before), percent(after))
    };
    let (cpu, wall) = (cell(&before.cpu, &after.cpu), cell(&before.wall, &after.wall));
    let beside = |build: &Took| {
        let ratio = median(&build.cpu).zip(median(&plain.cpu)).filter(|(_, plain)| *plain > 0.0);
        ratio.map_or("–".to_owned(), |(build, plain)| format!("{:.2}", build / plain))
    };
    format!("| {workload} | {config} | {cpu} | {wall} | {} | {} |", beside(before), beside(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_ratios_and_the_spread_of_both() {
        let before = Took { cpu: vec![10.0, 10.0, 12.0], wall: vec![20.0] };
        let after = Took { cpu: vec![11.0, 11.0, 11.0], wall: vec![10.0] };
        let plain = Took { cpu: vec![5.0], wall: vec![] };
        let text = line("fib", "count, launched", &[before, after, plain]);
        assert_eq!(
            text,
            "| fib | count, launched | 1.100 | 20 / 0 % | 0.500 | 0 / 0 % | 2.00 | 2.20 |"
        );
        let nothing = [Took::default(), Took::default(), Took::default()];
        let none = line("fib", "plain", &nothing);
        assert_eq!(none, "| fib | plain | – | – / – % | – | – / – % | – | – |");
    }

    #[test]
    fn an_earlier_build_must_be_named_and_be_there() {
        for words in [&[][..], &["--before"], &["--before", "/no/such/tare"], &["nothing"]] {
            assert!(run(words).is_err(), "{words:?}");
        }
    }
}
