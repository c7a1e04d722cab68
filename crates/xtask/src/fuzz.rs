//! `cargo xtask fuzz`: everything that reads bytes of others, with inputs that are changed seeds, on
//! the stable compiler. What the targets are and how inputs are made is told by
//! `crates/fuzz-targets`; here they are built, started, and the account is kept.

use crate::ledger::{Account, Row};
use anyhow::{Context, Result, bail};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::setup;
use tare_toolbox::shell::{self, Workspace};

pub const HELP: &str = "\
Feeds everything that reads bytes of others with inputs that are changed seeds: a panic, memory beyond a bound,
a stack that is used up, or no end, is a failure.

Usage: cargo xtask fuzz [TARGET…]            all targets, or these
       cargo xtask fuzz TARGET --input FILE  one input that was stored
       cargo xtask fuzz --corpus DIR         only write the seeds, for cargo-fuzz (fuzz/README.md)
       cargo xtask fuzz --list               what targets there are

Options:
  --minutes N   so long in all, divided among the targets (10)
  --seed S      which inputs are made (1): the same ones in every run with the same sources
  --write-docs  add the executions to the account in docs/measured/fuzz.md

A failure stores its input in target/fuzz and prints the command that repeats it.

Examples:
  cargo xtask fuzz --minutes 60 --seed 7
  cargo xtask fuzz jfr pprof --minutes 5
";

pub const ACCOUNT: Account = Account {
    page: "docs/measured/fuzz.md",
    head: "\
# What fuzzing executed

`cargo xtask fuzz --write-docs` adds its executions to this page. Do not edit it.

A target reads bytes that somebody else may have chosen. An execution is one input, made of seeds by
plain changes. It fails if the reader panics, takes more memory than it may, or does not end.
`cargo xtask fuzz --list` says what each target reads.
",
    kinds: &["target"],
    counts: &["executions"],
};

/// Programs of the tests whose classes are seeds.
const SOURCES: &str = "crates/jvm-tests/java/targets";

/// So long the bounded run of `cargo xtask test` takes, on one processor.
const BOUNDED: Duration = Duration::from_secs(60);

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    targets: Vec<String>,
    minutes: Option<u64>,
    seed: Option<u64>,
    input: Option<PathBuf>,
    corpus: Option<PathBuf>,
    list: bool,
    write_docs: bool,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--minutes" => {
                    let text = value()?;
                    let number = text.parse().ok().filter(|number| (1..=100_000).contains(number));
                    options.minutes =
                        Some(number.with_context(|| format!("--minutes {text}: from 1 on"))?);
                }
                "--seed" => {
                    let text = value()?;
                    options.seed =
                        Some(text.parse().with_context(|| format!("--seed {text}: no number"))?);
                }
                "--input" => options.input = Some(value()?.into()),
                "--corpus" => options.corpus = Some(value()?.into()),
                "--list" => options.list = true,
                "--write-docs" => options.write_docs = true,
                other if other.starts_with('-') => bail!("unknown option {other}\n\n{HELP}"),
                other => options.targets.push(other.to_owned()),
            }
        }
        Ok(options)
    }
}

struct Fuzz {
    driver: PathBuf,
    /// Class files to begin with.
    classes: PathBuf,
    /// Where inputs are stored.
    work: PathBuf,
}

pub fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    let workspace = Workspace::open()?;
    let fuzz = Fuzz::build(&workspace, &setup::compiler()?)?;
    let known = fuzz.targets()?;
    if options.list {
        known.iter().for_each(|(name, what)| println!("{name:14}{what}"));
        return Ok(());
    }
    if let Some(directory) = &options.corpus {
        return shell::run(&mut fuzz.command("corpus", &[&directory.display().to_string()]));
    }
    for name in &options.targets {
        if !known.iter().any(|(known, _)| known == name) {
            bail!("there is no target {name}; `cargo xtask fuzz --list` names all");
        }
    }
    if let Some(input) = &options.input {
        let [target] = options.targets.as_slice() else { bail!("--input is for one target") };
        return shell::run(Command::new(&fuzz.driver).arg("repeat").arg(target).arg(input));
    }
    let all = known.into_iter().map(|(name, _)| name);
    let targets = if options.targets.is_empty() { all.collect() } else { options.targets };
    let time = Duration::from_secs(60) * options.minutes.unwrap_or(10) as u32;
    let outcomes = fuzz.run(&targets, options.seed.unwrap_or(1), time * processors() as u32)?;
    if options.write_docs {
        let commit = workspace.revision().context("no commit is known")?;
        for outcome in &outcomes {
            ACCOUNT.add(&workspace.root, outcome.row(&commit))?;
        }
    }
    verdict(&outcomes)
}

/// The run of `cargo xtask test`: bounded, with one seed. What it says for the summary.
pub fn bounded(workspace: &Workspace, javac: &Jdk) -> Result<String> {
    let fuzz = Fuzz::build(workspace, javac)?;
    let targets: Vec<String> = fuzz.targets()?.into_iter().map(|(name, _)| name).collect();
    let outcomes = fuzz.run(&targets, 1, BOUNDED)?;
    verdict(&outcomes)?;
    let executions: u64 = outcomes.iter().map(|outcome| outcome.executions).sum();
    Ok(format!("fuzzed: {executions} executions of {} targets", outcomes.len()))
}

fn verdict(outcomes: &[Outcome]) -> Result<()> {
    let failed: Vec<&str> =
        outcomes.iter().filter(|o| !o.well).map(|outcome| outcome.target.as_str()).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What came of one target.
struct Outcome {
    target: String,
    executions: u64,
    seconds: u64,
    well: bool,
}

impl Outcome {
    fn row(&self, commit: &str) -> Row {
        Row {
            kind: vec![self.target.clone()],
            commit: commit.to_owned(),
            counts: vec![self.executions],
            seconds: self.seconds,
            failed: u64::from(!self.well),
        }
    }
}

impl Fuzz {
    fn build(workspace: &Workspace, javac: &Jdk) -> Result<Self> {
        let package = ["build", "-p", "tare-fuzz-targets", "--profile", "fuzz"];
        shell::run(&mut workspace.cargo(&package))?;
        let driver = workspace.target.join("fuzz/tare-fuzz-targets");
        let work = workspace.target.join("fuzz-failures");
        fs::create_dir_all(&work)?;
        let classes = workspace.target.join("fuzz-classes");
        compile(javac, &workspace.root.join(SOURCES), &classes)?;
        Ok(Fuzz { driver, classes, work })
    }

    /// A command of the driver, with the places of seeds and failures.
    fn command(&self, verb: &str, words: &[&str]) -> Command {
        let mut command = Command::new(&self.driver);
        command.arg(verb).args(words).arg("--classes").arg(&self.classes);
        command.arg("--failures").arg(&self.work).stdin(Stdio::null());
        command
    }

    /// Names, and what each is.
    fn targets(&self) -> Result<Vec<(String, String)>> {
        let list = shell::output(Command::new(&self.driver).arg("list"))?;
        let pair = |line: &str| {
            let (name, what) = line.split_once('\t')?;
            Some((name.to_owned(), what.to_owned()))
        };
        Ok(list.lines().filter_map(pair).collect())
    }

    /// Runs targets beside each other, as many as there are processors; `time` is for all of them
    /// together.
    fn run(&self, targets: &[String], seed: u64, time: Duration) -> Result<Vec<Outcome>> {
        let seconds = (time.as_secs() / targets.len() as u64).max(1);
        println!("{} targets, {seconds} s each, seed {seed}", targets.len());
        let waiting: Mutex<VecDeque<&String>> = Mutex::new(targets.iter().collect());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let worker = || {
            let mut outcomes = Vec::new();
            while let Some(target) = next() {
                outcomes.push(self.one(target, seed, seconds)?);
            }
            Ok(outcomes)
        };
        let outcomes: Vec<Result<Vec<Outcome>>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..processors()).map(|_| scope.spawn(worker)).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
                .collect()
        });
        let mut all = Vec::new();
        for outcome in outcomes {
            all.extend(outcome?);
        }
        Ok(all)
    }

    fn one(&self, target: &str, seed: u64, seconds: u64) -> Result<Outcome> {
        let begun = Instant::now();
        let (seed, limit) = (seed.to_string(), seconds.to_string());
        let mut run = self.command("run", &[target, "--seed", &seed, "--seconds", &limit]);
        let output = run.stderr(Stdio::inherit()).output().context("the driver")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let progress = self.work.join(format!("{target}.progress"));
        let told = said.lines().find_map(|line| line.strip_prefix("executions ")?.parse().ok());
        let reached = read_number(&progress);
        let _ = fs::remove_file(&progress);
        let executions = told.or(reached.map(|number| number + 1)).unwrap_or(0);
        let mut stored =
            said.lines().find_map(|line| line.strip_prefix("input ")).map(str::to_owned);
        // What ended the process has told nothing: the input is made again by its number.
        if !output.status.success() && stored.is_none() {
            let number = reached.with_context(|| format!("{target}: {}", output.status))?;
            let number = number.to_string();
            let mut make = self.command("input", &[target, "--seed", &seed, "--number", &number]);
            stored = Some(shell::output(&mut make)?.trim().to_owned());
            println!("{target}: it ended by {}", output.status);
        }
        if let Some(stored) = &stored {
            print!("{said}");
            println!("repeat it: cargo xtask fuzz {target} --input {stored}");
        }
        let outcome = Outcome {
            target: target.to_owned(),
            executions,
            seconds: begun.elapsed().as_secs(),
            well: output.status.success(),
        };
        println!("{target:14} {executions:>10} executions");
        Ok(outcome)
    }
}

fn read_number(file: &Path) -> Option<u64> {
    Some(u64::from_le_bytes(*fs::read(file).ok()?.first_chunk()?))
}

/// Compiles the programs of the tests, if that was not done before: their classes are seeds.
fn compile(javac: &Jdk, sources: &Path, classes: &Path) -> Result<()> {
    if classes.exists() {
        return Ok(());
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(sources)? {
        files.push(entry?.path());
    }
    files.sort();
    // Complete or not there, also if this is ended half-way.
    let part = classes.with_extension("part");
    let _ = fs::remove_dir_all(&part);
    let mut command = Command::new(javac.home.join("bin/javac"));
    let release = setup::RELEASE.to_string();
    command.args(["--release", &release, "-nowarn", "-g", "-d"]).arg(&part).args(files);
    shell::run(command.arg("-Xlint:none"))?;
    fs::rename(&part, classes).with_context(|| format!("creating {}", classes.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood_or_refused() {
        let options = Options::parse(&["jfr", "--minutes", "5", "--seed", "7", "pprof"]).unwrap();
        assert_eq!(options.targets, ["jfr", "pprof"]);
        assert_eq!((options.minutes, options.seed), (Some(5), Some(7)));
        for (words, part) in [
            (&["--minutes", "0"][..], "--minutes 0"),
            (&["--seed"], "--seed needs a value"),
            (&["--often"], "unknown option --often"),
        ] {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    }
}
