//! Accounts of what takes many hours: it is done in parts, on several days, and each part adds its
//! runs to a page. The page is read, a row added, and written again. What a page is about, its owner
//! says (`soak`, `fuzz`, `chaos`).

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// A page: an introduction, and the names of columns. After those that say what was done come the
/// commit, what is counted, time and failures.
pub struct Account {
    pub page: &'static str,
    pub head: &'static str,
    pub kinds: &'static [&'static str],
    pub counts: &'static [&'static str],
}

/// What was done with one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// A text for each of the account's kinds.
    pub kind: Vec<String>,
    pub commit: String,
    /// A number for each of its counts.
    pub counts: Vec<u64>,
    pub seconds: u64,
    pub failed: u64,
}

impl Row {
    fn line(&self) -> String {
        let mut cells = self.kind.clone();
        cells.push(self.commit.clone());
        cells.extend(self.counts.iter().map(u64::to_string));
        cells.push(format!("{}:{:02}", self.seconds / 60, self.seconds % 60));
        cells.push(self.failed.to_string());
        format!("| {} |\n", cells.join(" | "))
    }

    fn add(&mut self, other: &Row) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, more)| *sum += more);
        self.seconds += other.seconds;
        self.failed += other.failed;
    }
}

impl Account {
    /// Adds a row to the page below `root`.
    pub fn add(&self, root: &Path, row: Row) -> Result<()> {
        let page = root.join(self.page);
        let text = match fs::read_to_string(&page) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("reading {}", page.display())),
        };
        fs::write(&page, self.with(&text, row))
            .with_context(|| format!("writing {}", page.display()))
    }

    fn parse(&self, line: &str) -> Option<Row> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", cells @ .., ""] = cells.as_slice() else { return None };
        let (kind, cells) = cells.split_at_checked(self.kinds.len())?;
        let [commit, counts @ .., time, failed] = cells else { return None };
        let (minutes, seconds) = time.split_once(':')?;
        let counts: Option<Vec<u64>> = counts.iter().map(|count| count.parse().ok()).collect();
        Some(Row {
            kind: kind.iter().map(|&text| text.to_owned()).collect(),
            commit: (*commit).to_owned(),
            counts: counts.filter(|counts| counts.len() == self.counts.len())?,
            seconds: minutes.parse::<u64>().ok()? * 60 + seconds.parse::<u64>().ok()?,
            failed: failed.parse().ok()?,
        })
    }

    /// The page with one row more.
    fn with(&self, page: &str, row: Row) -> String {
        let by_commit = page.split_once("## By commit").map_or("", |(_, rest)| rest);
        let mut rows: Vec<Row> = by_commit.lines().filter_map(|line| self.parse(line)).collect();
        match rows.iter_mut().find(|old| old.kind == row.kind && old.commit == row.commit) {
            Some(old) => old.add(&row),
            None => rows.push(row),
        }
        rows.sort_by(|a, b| a.kind.cmp(&b.kind));
        let mut sums: Vec<Row> = Vec::new();
        for row in &rows {
            match sums.iter_mut().find(|sum| sum.kind == row.kind) {
                Some(sum) => sum.add(row),
                None => sums.push(Row { commit: "all".to_owned(), ..row.clone() }),
            }
        }
        let columns = self.columns();
        let table = |rows: &[Row]| rows.iter().map(Row::line).collect::<String>();
        format!(
            "{}\n## In all\n\nTime is in minutes and seconds.\n\n{columns}{}\n## By commit\n\n\
             {columns}{}",
            self.head,
            table(&sums),
            table(&rows)
        )
    }

    fn columns(&self) -> String {
        let texts = self.kinds.iter().chain(&["commit"]);
        let numbers = self.counts.iter().chain(&["time", "failed"]);
        let names: Vec<&str> = texts.chain(numbers).copied().collect();
        let marks = "---|".repeat(self.kinds.len() + 1) + &"--:|".repeat(self.counts.len() + 2);
        format!("| {} |\n|{marks}\n", names.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: Account =
        Account { page: "x.md", head: "# X\n", kinds: &["soak", "JDK"], counts: &["runs"] };

    fn row(what: &str, jdk: &str, commit: &str, runs: u64, failed: u64) -> Row {
        Row {
            kind: vec![what.to_owned(), jdk.to_owned()],
            commit: commit.to_owned(),
            counts: vec![runs],
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
        let page = rows.into_iter().fold(String::new(), |page, row| ACCOUNT.with(&page, row));
        let (sums, by_commit) = page.split_once("## By commit").expect("two tables");
        let rows = |text: &str| text.lines().filter_map(|line| ACCOUNT.parse(line)).collect();
        let told = |rows: Vec<Row>| {
            let told = rows.iter().map(|row| (row.kind[1].clone(), row.counts[0], row.failed));
            told.collect::<Vec<_>>()
        };
        let expected = [("17.0.15", 3, 0), ("17.0.15", 75, 1), ("21.0.8", 50, 0)]
            .map(|(jdk, runs, failed)| (jdk.to_owned(), runs, failed));
        assert_eq!(told(rows(sums)), expected);
        let by_commit: Vec<Row> = rows(by_commit);
        assert_eq!(by_commit.len(), 4);
        assert!(page.contains("| launches | 17.0.15 | all | 75 | 3:03 | 1 |"), "{page}");
    }

    /// What was counted before stays.
    #[test]
    fn the_pages_of_this_repository_are_read_as_they_are() {
        let accounts = [&crate::soak::ACCOUNT, &crate::fuzz::ACCOUNT, &crate::chaos::ACCOUNT];
        for account in accounts {
            let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(account.page);
            let Ok(text) = fs::read_to_string(page) else { continue };
            let (_, by_commit) = text.split_once("## By commit").expect("two tables");
            let lines = by_commit.lines().filter(|line| line.starts_with("| ")).skip(1);
            let rows: Vec<Row> = lines.map(|line| account.parse(line).expect(line)).collect();
            let again = rows.into_iter().fold(String::new(), |page, row| account.with(&page, row));
            assert_eq!(again, text, "{}", account.page);
        }
    }
}
