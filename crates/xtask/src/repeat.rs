//! The same tests again and again, also on a machine that is busy: which of them ever fails.
//!
//! `cargo xtask test --times N --beside M`. A run that fails does not stop the others. What it said
//! is kept in a file; the summary counts the failures of each test. What is run, `test` decides.

use crate::alone::failed_tests;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use tare_toolbox::shell;

/// What `cargo xtask test` was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// How often the tests run and are tallied; nothing if they run once, on the terminal.
    pub times: Option<usize>,
    /// Busy loops beside the tests.
    pub beside: usize,
    /// Whether the runs are added to the account of soaks.
    pub write_docs: bool,
    pub filters: Vec<&'a str>,
}

impl<'a> Options<'a> {
    pub fn parse(words: &[&'a str]) -> Result<Self> {
        let mut options = Options::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let mut number = |most: usize| {
                let text = words.next().with_context(|| format!("{word} needs a number"))?;
                let number: Option<usize> = text.parse().ok().filter(|n| (1..=most).contains(n));
                number.with_context(|| format!("{word} {text}: a number from 1 to {most}"))
            };
            match word {
                "--times" => options.times = Some(number(1000)?),
                "--beside" => options.beside = number(1000)?,
                "--write-docs" => options.write_docs = true,
                _ if word.starts_with('-') => bail!("unknown: {word}"),
                _ => options.filters.push(word),
            }
        }
        if options.beside > 0 {
            options.times.get_or_insert(1);
        }
        if options.write_docs && (options.times.is_none() || !options.filters.is_empty()) {
            bail!("--write-docs counts runs of all tests: give --times N, and no FILTER");
        }
        Ok(options)
    }
}

/// Threads that only use up processor time. They end with the value, and at the latest with this
/// process.
pub struct Busy {
    over: Arc<AtomicBool>,
    loops: Vec<JoinHandle<()>>,
}

impl Busy {
    pub fn start(count: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let begin = |_| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let loops = (0..count).map(begin).collect();
        Busy { over, loops }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        for one in self.loops.drain(..) {
            let _ = one.join();
        }
    }
}

/// What came of some runs.
pub struct Tally {
    directory: PathBuf,
    runs: usize,
    failed: usize,
    /// For each test that ever failed, the runs in which it did.
    failures: BTreeMap<String, Vec<usize>>,
}

impl Tally {
    /// An empty one; what runs say is kept below `target`, and what earlier ones said is removed.
    pub fn new(target: &Path) -> Result<Self> {
        let directory = target.join("test-runs");
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("removing {}", directory.display()))?;
        }
        fs::create_dir_all(&directory)
            .with_context(|| format!("creating {}", directory.display()))?;
        Ok(Tally { directory, runs: 0, failed: 0, failures: BTreeMap::new() })
    }

    /// One run of all that `commands` do; all of them run, whichever failed. Says what failed.
    pub fn run(&mut self, commands: &mut [Command]) -> Result<()> {
        self.runs += 1;
        let log = self.directory.join(format!("run-{}.txt", self.runs));
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let mut well = true;
        for command in commands {
            command.stdout(file.try_clone()?).stderr(file.try_clone()?);
            well &= shell::run(command).is_ok();
        }
        drop(file);
        if well {
            return fs::remove_file(&log).with_context(|| format!("removing {}", log.display()));
        }
        self.failed += 1;
        let text = fs::read(&log).with_context(|| format!("reading {}", log.display()))?;
        let mut names = failed_tests(&String::from_utf8_lossy(&text));
        if names.is_empty() {
            names.push("(no test by name)".to_owned());
        }
        for name in &names {
            self.failures.entry(name.clone()).or_default().push(self.runs);
        }
        bail!("{}; see {}", names.join(", "), log.display());
    }

    /// What failed how often, for the summary.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} of {} runs failed", self.failed, self.runs)];
        for (name, runs) in &self.failures {
            let files: Vec<String> = runs.iter().map(|run| format!("run-{run}.txt")).collect();
            lines.push(format!("FAILED {} ×: {name} ({})", runs.len(), files.join(", ")));
        }
        if self.failed > 0 {
            lines.push(format!("what they said is in {}", self.directory.display()));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood_or_refused() {
        assert_eq!(Options::parse(&[]).unwrap(), Options::default());
        let filters = vec!["exact", "jdk17"];
        let some = Options { times: Some(3), beside: 14, write_docs: false, filters };
        let words = ["exact", "--times", "3", "--beside", "14", "jdk17"];
        assert_eq!(Options::parse(&words).unwrap(), some);
        assert_eq!(Options::parse(&["--beside", "2"]).unwrap().times, Some(1));
        for (words, part) in [
            (&["--times"][..], "--times needs a number"),
            (&["--times", "x"], "--times x"),
            (&["--beside", "0"], "--beside 0"),
            (&["--often", "3"], "unknown: --often"),
            (&["--write-docs"], "give --times N"),
            (&["--times", "2", "--write-docs", "exact"], "no FILTER"),
        ] {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    }

    #[test]
    fn failures_are_counted_by_test_and_their_output_is_kept() {
        let target = std::env::temp_dir().join(format!("xtask-repeat-{}", std::process::id()));
        let mut tally = Tally::new(&target).unwrap();
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let bad = "echo 'test a::b::jdk17 ... FAILED'; echo 'test c ... ok'; exit 1";
        tally.run(&mut [shell("exit 0")]).unwrap();
        let said = tally.run(&mut [shell(bad), shell("echo later")]).unwrap_err().to_string();
        assert!(tally.run(&mut [shell(bad)]).is_err());
        assert!(tally.run(&mut [shell("exit 3")]).is_err());
        let kept = |run: usize| target.join(format!("test-runs/run-{run}.txt"));
        let text = fs::read_to_string(kept(2)).unwrap();
        let there = [1, 2, 3, 4].map(|run| kept(run).exists());
        let lines = tally.lines().join("\n");
        let afresh = Tally::new(&target).unwrap().lines().join("\n");
        let left = kept(2).exists();
        fs::remove_dir_all(&target).unwrap();
        assert!(text.contains("a::b") && text.contains("later"), "{text}");
        assert_eq!(there, [false, true, true, true]);
        for part in [
            "3 of 4 runs failed",
            "FAILED 2 ×: a::b::jdk17 (run-2.txt, run-3.txt)",
            "FAILED 1 ×: (no test by name) (run-4.txt)",
        ] {
            assert!(lines.contains(part), "{part:?} is not in {lines}");
        }
        assert!(said.contains("a::b::jdk17; see ") && said.contains("run-2.txt"), "{said}");
        assert!(afresh == "0 of 0 runs failed" && !left, "{afresh}");
    }

    #[test]
    fn busy_loops_run_and_end() {
        let busy = Busy::start(2);
        assert!(busy.loops.iter().all(|one| !one.is_finished()));
        drop(busy);
    }
}
