//! The account of all soaks, docs/measured/soak.md: what takes many hours is done in parts, on
//! several days, and each part adds its runs. The page is read, a row added, and written again.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

pub const PAGE: &str = "docs/measured/soak.md";

const HEAD: &str = "\
# What soaks found

`cargo xtask soak WHAT --write-docs` adds its runs to this page. Do not edit it.

A soak does the same thing again and again and looks for what comes once in dozens of times: a JVM
that crashes, a program whose own checks fail, a copy that is left, a deadlock that is none.
`cargo xtask soak --help` says what each does.
";

const COLUMNS: &str = "\
| soak | JDK | every | commit | runs | time | failed |
|---|---|---|---|--:|--:|--:|
";

/// Runs of one soak on one JDK with one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub what: String,
    pub jdk: String,
    pub interval: String,
    pub commit: String,
    pub runs: u32,
    pub seconds: u64,
    pub failed: u32,
}

impl Row {
    fn parse(line: &str) -> Option<Row> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", what, jdk, interval, commit, runs, time, failed, ""] = cells[..] else {
            return None;
        };
        let (minutes, seconds) = time.split_once(':')?;
        Some(Row {
            what: what.to_owned(),
            jdk: jdk.to_owned(),
            interval: interval.to_owned(),
            commit: commit.to_owned(),
            runs: runs.parse().ok()?,
            seconds: minutes.parse::<u64>().ok()? * 60 + seconds.parse::<u64>().ok()?,
            failed: failed.parse().ok()?,
        })
    }

    fn line(&self) -> String {
        let Row { what, jdk, interval, commit, runs, seconds, failed } = self;
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        format!(
            "| {what} | {jdk} | {interval} | {commit} | {runs} | {minutes}:{seconds:02} | {failed} |\n"
        )
    }

    /// What was done on which JDK, whatever the commit.
    fn kind(&self) -> (&str, &str, &str) {
        (&self.what, &self.jdk, &self.interval)
    }

    fn add(&mut self, other: &Row) {
        self.runs += other.runs;
        self.seconds += other.seconds;
        self.failed += other.failed;
    }
}

pub fn add(page: &Path, row: Row) -> Result<()> {
    let text = match fs::read_to_string(page) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("reading {}", page.display())),
    };
    fs::write(page, with(&text, row)).with_context(|| format!("writing {}", page.display()))
}

/// The page with one row more.
fn with(page: &str, row: Row) -> String {
    let by_commit = page.split_once("## By commit").map_or("", |(_, rest)| rest);
    let mut rows: Vec<Row> = by_commit.lines().filter_map(Row::parse).collect();
    match rows.iter_mut().find(|old| old.kind() == row.kind() && old.commit == row.commit) {
        Some(old) => old.add(&row),
        None => rows.push(row),
    }
    rows.sort_by(|a, b| a.kind().cmp(&b.kind()));
    let mut sums: Vec<Row> = Vec::new();
    for row in &rows {
        match sums.iter_mut().find(|sum| sum.kind() == row.kind()) {
            Some(sum) => sum.add(row),
            None => sums.push(Row { commit: "all".to_owned(), ..row.clone() }),
        }
    }
    let table = |rows: &[Row]| rows.iter().map(Row::line).collect::<String>();
    format!(
        "{HEAD}\n## In all\n\nTime is in minutes and seconds.\n\n{COLUMNS}{}\n## By commit\n\n\
         {COLUMNS}{}",
        table(&sums),
        table(&rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(what: &str, jdk: &str, commit: &str, runs: u32, failed: u32) -> Row {
        Row {
            what: what.to_owned(),
            jdk: jdk.to_owned(),
            interval: "50us".to_owned(),
            commit: commit.to_owned(),
            runs,
            seconds: 61,
            failed,
        }
    }

    #[test]
    fn runs_add_up() {
        let rows = [
            row("launches", "21.0.8", "abc", 50, 0),
            row("launches", "17.0.15", "abc", 50, 1),
            row("churn", "17.0.15", "abc", 3, 0),
            row("launches", "17.0.15", "abc", 20, 0),
            row("launches", "17.0.15", "def, with changes", 5, 0),
        ];
        let page = rows.into_iter().fold(String::new(), |page, row| with(&page, row));
        let (sums, by_commit) = page.split_once("## By commit").expect("two tables");
        let rows = |text: &str| text.lines().filter_map(Row::parse).collect::<Vec<_>>();
        let told = |rows: Vec<Row>| {
            rows.iter().map(|row| (row.jdk.clone(), row.runs, row.failed)).collect::<Vec<_>>()
        };
        let expected = [("17.0.15", 3, 0), ("17.0.15", 75, 1), ("21.0.8", 50, 0)]
            .map(|(jdk, runs, failed)| (jdk.to_owned(), runs, failed));
        assert_eq!(told(rows(sums)), expected);
        assert_eq!(rows(by_commit).len(), 4);
        assert!(page.contains("| launches | 17.0.15 | 50us | all | 75 | 3:03 | 1 |"), "{page}");
    }
}
