//! `cargo xtask chaos`: a program that does at once whatever profilers have it hard with, an
//! adversary that profiles it in every way and ends that in every way, and then everything must be
//! as if nobody had been there.
//!
//! The program is in `crates/jvm-tests/java/chaos`. A round is one JVM; all of it is drawn from a
//! seed (`plan`), so that it can be repeated, except for what the machine's own timing makes of it.

mod checks;
mod companions;
mod engines;
mod evidence;
mod ground;
mod plan;
mod program;
mod random;
mod round;
mod tool;
mod watch;

use crate::ledger::{Account, Row};
use anyhow::{Context, Result, bail};
use ground::Ground;
use plan::Plan;
use random::Random;
use round::Counts;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use tare_toolbox::setup;
use tare_toolbox::shell::Workspace;

pub const HELP: &str = "\
Tries to break Tare, and programs by it: a program that checks its own results is recorded by every engine, alone and
together; recordings are interrupted, stopped, killed and frozen; others look at the same JVM; disks are full, system
calls forbidden, descriptors few. After each round the program's results must be right, nothing of ours may be left,
and the program must be as quick as before.

Usage: cargo xtask chaos [OPTIONS]

Options:
  --minutes N   so long (10); rounds take some twenty seconds
  --seed S      what is done (by default another one each time; it is printed)
  --round N     only this round of the seed
  --jdk LIST    only these versions: 17,21,25. They are part of what a round is
  --plan        only print what would be done
  --write-docs  add the rounds to the account in docs/measured/chaos.md

A failed round leaves its logs, crash reports, recordings and its plan in target/chaos/SEED-ROUND, and the command that
repeats it.

Examples:
  cargo xtask chaos --minutes 60 --write-docs
  cargo xtask chaos --seed 7 --round 12
";

pub const ACCOUNT: Account = Account {
    page: "docs/measured/chaos.md",
    head: "\
# What chaos did

`cargo xtask chaos --write-docs` adds its rounds to this page. Do not edit it.

A round is one JVM with a program that checks its own results, recorded by every engine while
recordings are interrupted, killed and frozen, others look at it too, and the place is hostile
(`cargo xtask chaos --help`). Recordings are those that came to an end, killed ones those whose
`tare` got `kill -9`; classes are those that the program loaded. A round fails if a result is wrong,
a JVM or `tare` crashes or hangs, or anything of ours is left. What failed, the commit that mends it
tells.
",
    kinds: &["JDK"],
    counts: &["rounds", "recordings", "killed", "classes"],
};

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    minutes: Option<u64>,
    seed: Option<u64>,
    round: Option<u64>,
    jdks: Option<Vec<u32>>,
    plan: bool,
    write_docs: bool,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = || {
                let text = words.next().with_context(|| format!("{word} needs a value"))?;
                text.parse().with_context(|| format!("{word} {text}: no number"))
            };
            match *word {
                "--minutes" => options.minutes = Some(number()?),
                "--seed" => options.seed = Some(number()?),
                "--round" => options.round = Some(number()?),
                "--jdk" => {
                    let list = words.next().context("--jdk needs a value")?;
                    let jdks: Result<Vec<u32>, _> = list.split(',').map(str::parse).collect();
                    options.jdks = Some(jdks.with_context(|| format!("--jdk {list}"))?);
                }
                "--plan" => options.plan = true,
                "--write-docs" => options.write_docs = true,
                other => bail!("unknown option {other}\n\n{HELP}"),
            }
        }
        Ok(options)
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    let seed = options.seed.unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        since.as_secs() % 1_000_000
    });
    println!("seed {seed}");
    let workspace = Workspace::open()?;
    let ready = setup::prepare()?;
    let ground = Ground::prepare(&workspace, &ready, options.jdks.as_deref())?;
    ground.not_covered().iter().for_each(|line| println!("NOT COVERED: {line}"));
    let mut chaos = Chaos::new(&ground, seed, options.jdks.as_deref());
    if options.plan {
        let rounds = options.round.map_or(0..5, |round| round..round + 1);
        for round in rounds {
            let (subject, plan) = chaos.plan(round);
            println!("round {round}, JDK {}\n{}", subject.jdk.version, round::describe(&plan));
        }
        return Ok(());
    }
    match options.round {
        Some(round) => chaos.round(round)?,
        None => {
            chaos.rounds(Duration::from_secs(60) * options.minutes.unwrap_or(10) as u32)?;
        }
    }
    chaos.tell();
    if options.write_docs {
        let commit = workspace.revision().context("no commit is known")?;
        for (jdk, sum) in &chaos.sums {
            ACCOUNT.add(&workspace.root, sum.row(jdk, &commit))?;
        }
    }
    chaos.verdict()
}

/// What came of the rounds on one JDK.
#[derive(Default)]
struct Sum {
    rounds: u64,
    recordings: u64,
    killed: u64,
    classes: u64,
    seconds: u64,
    failed: u64,
}

impl Sum {
    fn row(&self, jdk: &str, commit: &str) -> Row {
        Row {
            kind: vec![jdk.to_owned()],
            commit: commit.to_owned(),
            counts: vec![self.rounds, self.recordings, self.killed, self.classes],
            seconds: self.seconds,
            failed: self.failed,
        }
    }
}

struct Chaos<'a> {
    ground: &'a Ground,
    seed: u64,
    /// What of the command line is needed to repeat a round.
    options: String,
    /// By version of the JDK.
    sums: BTreeMap<String, Sum>,
    refusals: BTreeMap<String, u64>,
    failures: Vec<String>,
}

impl<'a> Chaos<'a> {
    fn new(ground: &'a Ground, seed: u64, jdks: Option<&[u32]>) -> Self {
        let list = |jdks: &[u32]| jdks.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let options = jdks.map_or(String::new(), |jdks| format!(" --jdk {}", list(jdks)));
        let (sums, refusals) = Default::default();
        Chaos { ground, seed, options, sums, refusals, failures: Vec::new() }
    }

    fn plan(&self, round: u64) -> (&'a ground::Subject, Plan) {
        let subjects = &self.ground.subjects;
        let subject = &subjects[(round % subjects.len() as u64) as usize];
        let seed = Random::part(self.seed, round);
        (subject, Plan::draw(seed, &subject.abilities, self.ground.means))
    }

    /// Rounds until the time is up, whatever becomes of them.
    fn rounds(&mut self, span: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut round = 0;
        while round == 0 || begun.elapsed() < span {
            self.round(round)?;
            round += 1;
        }
        Ok(())
    }

    fn round(&mut self, round: u64) -> Result<()> {
        let begun = Instant::now();
        let (subject, plan) = self.plan(round);
        let directory = self.ground.work.join(format!("{}-{round}", self.seed));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        let described = round::describe(&plan);
        fs::write(directory.join("plan.txt"), &described)?;
        let (counts, outcome) = round::run(self.ground, subject, &plan, &directory);
        let how = if plan.launched { "launched" } else { "attached" };
        let version = &subject.jdk.version;
        let flags = plan.flags.join(" ");
        let seconds = begun.elapsed().as_secs();
        let Counts { recordings, killed, classes, .. } = counts;
        println!(
            "round {round}: {version} {flags}, {how}, {:?}, {:?}: {recordings} recordings, \
             {killed} killed, {seconds} s, {}",
            plan.place, plan.ending, counts.found
        );
        let sum = self.sums.entry(version.clone()).or_default();
        sum.rounds += 1;
        sum.recordings += recordings;
        sum.killed += killed;
        sum.classes += classes;
        sum.seconds += seconds;
        for (reason, times) in counts.refusals {
            *self.refusals.entry(reason).or_default() += times;
        }
        match outcome {
            Ok(()) => fs::remove_dir_all(&directory)?,
            Err(failure) => {
                sum.failed += 1;
                self.fail(round, &failure.reason, &directory)?;
            }
        }
        Ok(())
    }

    fn fail(&mut self, round: u64, reason: &str, directory: &Path) -> Result<()> {
        let repeat =
            format!("cargo xtask chaos --seed {} --round {round}{}", self.seed, self.options);
        let text = format!("{reason}\nrepeat it: {repeat}\n");
        fs::write(directory.join("failure.txt"), &text)?;
        println!("round {round} FAILED: {text}see {}", directory.display());
        self.failures.push(format!("round {round}: {reason}"));
        Ok(())
    }

    fn tell(&self) {
        let mut refusals: Vec<_> = self.refusals.iter().collect();
        refusals.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        if !refusals.is_empty() {
            println!("refused, with a reason:");
        }
        for (reason, times) in refusals {
            println!("{times:6}  {reason}");
        }
        for (jdk, sum) in &self.sums {
            println!(
                "{jdk}: {} rounds, {} failed; {} recordings, {} killed; {} classes; {} s",
                sum.rounds, sum.failed, sum.recordings, sum.killed, sum.classes, sum.seconds
            );
        }
    }

    fn verdict(&self) -> Result<()> {
        match self.failures.as_slice() {
            [] => Ok(()),
            failures => bail!("seed {}: {}", self.seed, failures.join("\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood_or_refused() {
        let options = Options::parse(&["--seed", "7", "--round", "12", "--jdk", "17,25"]).unwrap();
        assert_eq!((options.seed, options.round), (Some(7), Some(12)));
        assert_eq!(options.jdks, Some(vec![17, 25]));
        for (words, part) in [
            (&["--minutes", "some"][..], "no number"),
            (&["--seed"], "--seed needs a value"),
            (&["--jdk", "x"], "--jdk x"),
            (&["--hard"], "unknown option --hard"),
        ] {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    }
}
