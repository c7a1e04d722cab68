//! The parts of a long command: each is announced, timed, and remembered for the summary.
//!
//! A failed stage does not stop the next one: a person would rather see all that is wrong.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

pub struct Stages {
    begun: Instant,
    done: Vec<(String, Duration, Result<(), String>)>,
    notes: Vec<String>,
}

impl Default for Stages {
    fn default() -> Self {
        Stages { begun: Instant::now(), done: Vec::new(), notes: Vec::new() }
    }
}

impl Stages {
    pub fn new() -> Self {
        Stages::default()
    }

    /// Runs one stage; its value is there only if it went well.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        println!("\n── {name}");
        let begun = Instant::now();
        let outcome = work();
        if let Err(error) = &outcome {
            println!("── {name} FAILED: {error:#}");
        }
        let (value, result) = match outcome {
            Ok(value) => (Some(value), Ok(())),
            Err(error) => (None, Err(format!("{error:#}"))),
        };
        self.done.push((name.to_owned(), begun.elapsed(), result));
        value
    }

    /// A line for the summary.
    pub fn note(&mut self, line: String) {
        self.notes.push(line);
    }

    /// Prints the summary and turns failed stages into an error.
    pub fn finish(self) -> Result<()> {
        print!("{}", self.summary());
        let failed: Vec<_> =
            self.done.iter().filter(|d| d.2.is_err()).map(|d| d.0.as_str()).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }

    fn summary(&self) -> String {
        let mut text = String::from("\n── summary\n");
        for (name, time, result) in &self.done {
            let outcome = if result.is_ok() { "ok" } else { "FAILED" };
            text.push_str(&format!("{outcome:>7}  {:>6.1} s  {name}\n", time.as_secs_f64()));
        }
        let total = self.begun.elapsed().as_secs_f64();
        text.push_str(&format!("{:>7}  {total:>6.1} s  all together\n", ""));
        for note in &self.notes {
            text.push_str(note);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_stage_does_not_hide_the_others_and_fails_the_whole() {
        let mut stages = Stages::new();
        assert_eq!(stages.run("one", || Ok(1)), Some(1));
        assert_eq!(stages.run::<()>("two", || bail!("broken")), None);
        assert_eq!(stages.run("three", || Ok(3)), Some(3));
        stages.note("NOT COVERED: JDK 99".into());
        let summary = stages.summary();
        for part in ["ok", "one", "FAILED", "two", "three", "NOT COVERED: JDK 99"] {
            assert!(summary.contains(part), "{part} is not in {summary}");
        }
        assert_eq!(stages.finish().unwrap_err().to_string(), "failed: two");
    }

    #[test]
    fn all_well_is_no_error() {
        let mut stages = Stages::new();
        stages.run("one", || Ok(()));
        assert!(stages.finish().is_ok());
    }
}
