//! The figures as a table, for a terminal and for Markdown.

use super::config::Config;
use super::figures::{Figures, Row, groups};
use super::stats::{self, Ratio};
use super::workloads;

const HEADINGS: [&str; 12] = [
    "configuration",
    "steady",
    "95 %",
    "cpu",
    "spread",
    "aim",
    "start-up",
    "first",
    "memory",
    "attach",
    "pauses",
    "after",
];

/// What the columns mean; for the terminal and the documentation alike.
pub const LEGEND: &str = "\
All columns are ratios against the plain launches of the same table, which ran in turns with the
others. steady: time of an iteration after warm-up, median over launches of each launch's median,
with the bounds of 95 % of 4000 bootstrap draws of launches; cpu: the same of the processor time of
the thread that does the work, which feels less of what else the machine does. spread: how far the
launches lie apart (largest minus smallest, of the median). aim: what we want to stay below.
start-up: from the start of the process to `main`; first: to the end of the first iteration. memory:
peak resident memory of the JVM's process. attach: from the start of the tool until all is woven, and
from Ctrl-C until all is restored and written, in plain iterations. pauses: the longest, and all together, that weaving held
the program up, in plain iterations. after: time of an iteration after leaving the JVM beside that
before attaching, in the same JVM, by the clock and on the processor. An asterisk: the memory for
the trees was used up, so some calls were only summed up.
";

fn cells(config: Config, figures: &Figures) -> [String; 12] {
    let times = |ratio: Option<Ratio>| ratio.map_or("–".to_owned(), |r| number(r.value));
    // One launch says nothing about the next.
    let bounds = figures.steady.filter(|r| r.low < r.high);
    let bounds = bounds.map(|r| format!("{}…{}", number(r.low), number(r.high)));
    let two = |pair: Option<(f64, f64)>| {
        pair.map_or("–".to_owned(), |(one, all)| format!("{} / {}", number(one), number(all)))
    };
    let star = if figures.full { "*" } else { "" };
    [
        config.name().to_owned(),
        times(figures.steady) + star,
        bounds.unwrap_or("–".to_owned()),
        times(figures.cpu),
        figures.spread.map_or("–".to_owned(), |s| format!("{:.0} %", s * 100.0)),
        figures.target.map_or(String::new(), |t| format!("≤ {t}")),
        times(figures.startup),
        times(figures.first),
        times(figures.memory),
        two(figures.attach.zip(figures.detach)),
        two(figures.longest_pause.zip(figures.all_pauses)),
        figures.after.map_or("–".to_owned(), |after| {
            format!("{} / {}", number(after.value), times(figures.after_cpu))
        }),
    ]
}

/// Three digits that mean something.
pub fn number(value: f64) -> String {
    if value < 9.995 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// The table of a group, with its heading.
fn table(plain: &Row, rows: &[&Row]) -> Vec<[String; 12]> {
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| cells(row.config, &row.figures(plain))));
    lines
}

/// For a terminal: columns of equal width.
pub fn text(rows: &[Row]) -> String {
    let mut text = String::new();
    for (plain, same) in groups(rows) {
        let lines = table(plain, &same);
        text += &format!("\n{} on JDK {}\n", plain.workload, plain.jdk);
        let width = |column: usize| {
            lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
        for line in &lines {
            let mut cells = line.iter().zip(&widths);
            let (name, first) = cells.next().expect("a table has columns");
            let rest: String = cells.map(|(cell, &width)| format!("  {cell:>width$}")).collect();
            text += &format!("  {name:<first$}{rest}\n");
        }
    }
    text
}

/// Geometric means over real programs, or over small ones, of those that have a figure, as a
/// Markdown table.
pub fn means(rows: &[Row], small: bool) -> String {
    let mut groups = groups(rows);
    groups.retain(|(plain, _)| workloads::is_small(plain.workload) == small);
    if groups.is_empty() {
        return String::new();
    }
    let kind = if small { "Programs of one hard case each" } else { "Real programs" };
    let mut text =
        format!("\n{kind}:\n\n| configuration | workloads | steady | cpu |\n|---|--:|--:|--:|\n");
    let mut configs: Vec<Config> = Vec::new();
    for row in groups.iter().flat_map(|(_, same)| same) {
        if row.config != Config::Plain && !configs.contains(&row.config) {
            configs.push(row.config);
        }
    }
    for config in configs {
        let figures: Vec<Figures> = groups
            .iter()
            .flat_map(|(plain, same)| same.iter().map(move |row| (plain, row)))
            .filter(|(_, row)| row.config == config)
            .map(|(plain, row)| row.figures(plain))
            .collect();
        let mean = |get: fn(&Figures) -> Option<Ratio>| {
            let ratios: Vec<f64> = figures.iter().filter_map(|f| Some(get(f)?.value)).collect();
            stats::geometric_mean(&ratios).map_or("–".to_owned(), number)
        };
        let (steady, cpu) = (mean(|f| f.steady), mean(|f| f.cpu));
        text += &format!("| {} | {} | {steady} | {cpu} |\n", config.name(), figures.len());
    }
    text
}

/// One Markdown table.
pub fn markdown(plain: &Row, rows: &[&Row]) -> String {
    let mut text = String::new();
    for (index, line) in table(plain, rows).iter().enumerate() {
        text += &format!("| {} |\n", line.join(" | "));
        if index == 0 {
            text += &format!("|---|{}\n", "--:|".repeat(HEADINGS.len() - 1));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mode;
    use crate::figures::tests::row;

    fn rows() -> [Row; 2] {
        [
            row(Config::Plain, &[10.0, 10.0, 10.0]),
            row(Config::Launched(Mode::EveryTime), &[230.0, 231.0, 232.0]),
        ]
    }

    #[test]
    fn columns_stand_below_each_other() {
        let text = text(&rows());
        let lines: Vec<&str> = text.lines().skip(2).collect();
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width), "{text}");
        assert!(text.contains("fib on JDK 17") && text.contains("23.1"), "{text}");
        assert!(text.contains("23.0…23.2") && text.contains("≤ 24"), "{text}");
    }

    #[test]
    fn every_markdown_line_has_all_columns() {
        let [plain, time] = rows();
        let text = markdown(&plain, &[&plain, &time]);
        assert_eq!(text.lines().count(), 4);
        for line in text.lines() {
            assert_eq!(line.matches('|').count(), HEADINGS.len() + 1, "{line}");
        }
    }

    #[test]
    fn means_are_geometric_and_over_workloads() {
        let mut rows = Vec::new();
        for (workload, cost) in [("javac", 40.0), ("h2", 10.0), ("fib", 50.0)] {
            rows.push(row(Config::Plain, &[10.0]));
            rows.push(row(Config::Launched(Mode::Count), &[cost]));
            rows.iter_mut().rev().take(2).for_each(|row| row.workload = workload);
        }
        let text = means(&rows, false);
        assert!(text.contains("| count, launched | 2 | 2.00 |"), "{text}");
        assert!(!text.contains("plain"), "{text}");
        assert!(means(&rows, true).contains("| count, launched | 1 | 5.00 |"));
    }

    #[test]
    fn one_launch_has_no_bounds() {
        let plain = row(Config::Plain, &[10.0]);
        let time = row(Config::Launched(Mode::Time), &[230.0]);
        assert!(markdown(&plain, &[&time]).contains("| 23.0 | – | 12.0 |"));
    }

    #[test]
    fn a_full_tree_is_marked() {
        let [plain, mut time] = rows();
        time.launches[1].full = true;
        assert!(markdown(&plain, &[&time]).contains("| 23.1* |"));
    }
}
