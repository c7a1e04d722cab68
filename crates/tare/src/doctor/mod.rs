//! `tare doctor`: each thing that Tare can use, whether it works here, why not, and the remedy.
//!
//! A check asks the system itself (it opens the event, creates the timer) instead of guessing
//! from versions; where it can only look at a setting it says so.

mod jvm;
mod machine;

use crate::figures::wrap;
use crate::term::{self, BAD, BOLD, DIM, GOOD, WARN, plain};
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Works,
    Limited,
    No,
    /// Only somebody else can tell.
    Unknown,
}

/// One line of the diagnosis.
#[derive(Debug, Serialize)]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
    /// What was found.
    pub finding: String,
    /// What to do about it, when there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    pub fn new(name: &str, verdict: Verdict, finding: impl Into<String>) -> Self {
        Check { name: name.to_owned(), verdict, finding: finding.into(), remedy: None }
    }

    pub fn works(name: &str, finding: impl Into<String>) -> Self {
        Check::new(name, Verdict::Works, finding)
    }

    pub fn limited(name: &str, finding: impl Into<String>) -> Self {
        Check::new(name, Verdict::Limited, finding)
    }

    pub fn no(name: &str, finding: impl Into<String>) -> Self {
        Check::new(name, Verdict::No, finding)
    }

    pub fn unknown(name: &str, finding: impl Into<String>) -> Self {
        Check::new(name, Verdict::Unknown, finding)
    }

    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

#[derive(Serialize)]
struct Diagnosis {
    machine: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jvm: Option<Vec<Check>>,
}

pub fn run(who: Option<&str>, attach: bool, json: bool, patience: Duration) -> Result<()> {
    // A wrong name is an error of its own, not a finding about the machine.
    let target = who.map(tare_attach::find).transpose()?;
    let diagnosis = Diagnosis {
        machine: machine::checks(),
        jvm: target.as_ref().map(|target| jvm::checks(target, attach, patience)),
    };
    if json {
        return term::json(&diagnosis);
    }
    let mut out = term::stdout();
    section(&mut out, "This machine", &diagnosis.machine)?;
    if let (Some(target), Some(checks)) = (&target, &diagnosis.jvm) {
        let name = target.name();
        section(&mut out, &format!("JVM {} ({name})", target.pid), checks)?;
    } else {
        writeln!(out, "\n{DIM}`tare doctor JVM` looks at one JVM as well.{DIM:#}")?;
    }
    Ok(())
}

fn section(out: &mut impl Write, title: &str, checks: &[Check]) -> Result<()> {
    let width = checks.iter().map(|c| c.name.chars().count()).max().unwrap_or(0);
    writeln!(out, "{BOLD}{}{BOLD:#}", plain(title))?;
    for check in checks {
        let (style, mark) = match check.verdict {
            Verdict::Works => (GOOD, "works  "),
            Verdict::Limited => (WARN, "limited"),
            Verdict::No => (BAD, "no     "),
            Verdict::Unknown => (WARN, "unknown"),
        };
        // What does not fit is continued below its beginning.
        let room = term::width().unwrap_or(usize::MAX).saturating_sub(width + 13).max(20);
        for (at, line) in wrap(&check.finding, room).iter().enumerate() {
            match at {
                0 => writeln!(out, "  {style}{mark}{style:#}  {:<width$}  {line}", check.name)?,
                _ => writeln!(out, "           {:<width$}  {line}", "")?,
            }
        }
        let remedy = check.remedy.iter().flat_map(|remedy| wrap(remedy, room - 2));
        for (at, line) in remedy.enumerate() {
            let arrow = if at == 0 { "→" } else { " " };
            writeln!(out, "           {:<width$}  {DIM}{arrow} {line}{DIM:#}", "")?;
        }
    }
    Ok(())
}
