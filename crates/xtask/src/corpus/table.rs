//! The figures of a run, as a table that a person reads and a verdict that a script needs.

use super::judge::Difference;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The share of methods that may be refused, in percent, without those that are too large for
/// HotSpot's compilers.
const MOST_REFUSED: f64 = 0.05;

/// A subject woven in one mode.
pub struct Row {
    mode: String,
    classes: u64,
    methods: u64,
    woven: u64,
    untouched: u64,
    refused: BTreeMap<String, u64>,
    failed: BTreeMap<String, u64>,
    megabytes: f64,
    growth: f64,
    weaving: Duration,
    slowest: Duration,
    /// With reading and writing of jars.
    whole: Duration,
    judged: Vec<(u32, Difference)>,
    /// What ASM finds, and how many of the untouched classes it does not like.
    pub asm: Option<(Difference, usize)>,
}

impl Row {
    /// From the report of `tare class weave --json`.
    pub fn new(mode: &str, report: &Value, whole: Duration) -> Result<Row> {
        let number =
            |key: &str| report[key].as_u64().with_context(|| format!("the report has no {key}"));
        let counts = |key: &str| -> Result<BTreeMap<String, u64>> {
            let map = report[key].as_object().with_context(|| format!("no {key}"))?;
            Ok(map.iter().map(|(k, v)| (k.clone(), v.as_u64().unwrap_or(0))).collect())
        };
        let (before, after) = (number("bytes_in")? as f64, number("bytes_out")? as f64);
        Ok(Row {
            mode: mode.to_owned(),
            classes: number("classes")?,
            methods: number("methods")?,
            woven: number("woven")?,
            untouched: number("untouched")?,
            refused: counts("refused")?,
            failed: counts("failed")?,
            megabytes: before / 1e6,
            growth: after / before.max(1.0),
            weaving: Duration::from_nanos(number("weaving_ns")?),
            slowest: Duration::from_nanos(number("slowest_ns")?),
            whole,
            judged: Vec::new(),
            asm: None,
        })
    }

    pub fn judged(&mut self, jdk: u32, difference: Difference) {
        self.judged.push((jdk, difference));
    }

    /// Whether nothing was woven at all.
    pub fn is_empty(&self) -> bool {
        self.woven == 0
    }

    fn huge(&self) -> u64 {
        self.refused.get("huge").copied().unwrap_or(0)
    }

    /// Refused for other reasons than HotSpot's limit.
    fn refused(&self) -> u64 {
        self.refused.values().sum::<u64>() - self.huge()
    }

    fn share(&self) -> f64 {
        100.0 * self.refused() as f64 / self.methods.max(1) as f64
    }

    fn errors(&self) -> usize {
        self.judged.iter().map(|(_, d)| d.errors.len()).sum()
    }

    pub fn line(&self, subject: &str) -> String {
        let judges: Vec<_> = self
            .judged
            .iter()
            .map(|(jdk, d)| format!("{jdk}: {} of {} linked", d.linked, d.seen))
            .collect();
        let asm = match &self.asm {
            None => "-".to_owned(),
            Some((difference, known)) => format!("{} ({known})", difference.errors.len()),
        };
        columns(&[
            subject.to_owned(),
            self.mode.clone(),
            self.classes.to_string(),
            self.methods.to_string(),
            self.woven.to_string(),
            self.untouched.to_string(),
            self.refused().to_string(),
            format!("{:.4}", self.share()),
            self.huge().to_string(),
            self.errors().to_string(),
            asm,
            format!("{:.0}", self.megabytes / self.weaving.as_secs_f64().max(1e-9)),
            format!("{:.1}", self.slowest.as_secs_f64() * 1e3),
            format!("{:.2}", self.growth),
            judges.join(", "),
        ])
    }
}

#[derive(Default)]
pub struct Table {
    rows: Vec<(String, Row)>,
}

impl Table {
    pub fn add(&mut self, subject: &str, row: Row) {
        self.rows.push((subject.to_owned(), row));
    }

    /// Everything that must not be.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let (mut methods, mut refused) = (0, 0);
        for (subject, row) in &self.rows {
            methods += row.methods;
            refused += row.refused();
            let name = format!("{subject} with {}", row.mode);
            for (judge, difference) in &row.judged {
                if let Some(first) = difference.errors.first() {
                    let n = difference.errors.len();
                    problems.push(format!("{name}: {n} errors on JDK {judge}, as {first}"));
                }
            }
            if let Some((difference, _)) = &row.asm
                && let Some(first) = difference.errors.first()
            {
                let n = difference.errors.len();
                problems.push(format!("{name}: ASM finds {n} faults, as {first}"));
            }
            for (reason, count) in &row.failed {
                problems.push(format!("{name}: {count} classes not woven: {reason}"));
            }
        }
        let share =
            100.0 * refused as f64 / f64::from(u32::try_from(methods).unwrap_or(u32::MAX)).max(1.0);
        if share > MOST_REFUSED {
            problems.push(format!("{share:.4} % of all methods are refused, not {MOST_REFUSED} %"));
        }
        if self.rows.is_empty() {
            problems.push("nothing was judged".to_owned());
        }
        problems
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", heading())?;
        for (subject, row) in &self.rows {
            writeln!(f, "{}", row.line(subject))?;
        }
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut methods, mut woven, mut bytes, mut time) = (0, 0, 0.0, 0.0);
        let (mut errors, mut refused) = (0, 0);
        for (_, row) in &self.rows {
            for (reason, count) in &row.refused {
                *reasons.entry(reason).or_default() += count;
            }
            methods += row.methods;
            woven += row.woven;
            refused += row.refused();
            errors += row.errors();
            bytes += row.megabytes;
            time += row.weaving.as_secs_f64();
        }
        let share = 100.0 * refused as f64 / (methods.max(1) as f64);
        writeln!(
            f,
            "\nall together: {methods} methods, {woven} woven, {refused} refused ({share:.4} %) \
             beside the huge ones, {errors} verification errors, {:.0} MB/s",
            bytes / f64::max(time, 1e-9)
        )?;
        let reasons: Vec<_> = reasons.iter().map(|(name, n)| format!("{name} {n}")).collect();
        writeln!(f, "refused by reason: {}", reasons.join(", "))?;
        let slow: f64 = self.rows.iter().map(|(_, row)| row.whole.as_secs_f64()).sum();
        writeln!(f, "weaving took {time:.1} s of {slow:.1} s with reading and writing jars")
    }
}

/// Two lines of words over the columns.
fn heading() -> String {
    let words = |line: [&str; 15]| columns(&line.map(str::to_owned));
    let upper = words([
        "subject", "mode", "classes", "methods", "woven", "nothing", "re-", "refused", "huge",
        "verify", "ASM new", "MB/s", "slowest", "size", "linked",
    ]);
    let lower = words([
        "", "", "", "", "", "to do", "fused", "%", "", "errors", "(known)", "", "ms", "×", "",
    ]);
    format!("{upper}\n{lower}")
}

/// The first two columns are names, the last one is a sentence, the others are numbers.
fn columns(cells: &[String; 15]) -> String {
    const WIDTHS: [usize; 15] = [14, 18, 8, 8, 8, 8, 6, 8, 6, 7, 9, 6, 8, 6, 0];
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        let padded = match at {
            0 | 1 => format!("{cell:<width$}"),
            14 => format!("  {cell}"),
            _ => format!("{cell:>width$}"),
        };
        line.push_str(&padded);
    }
    line.trim_end().to_owned()
}
