//! The figures of code regions, for people and as JSON.

use super::Report;
use crate::figures::{fit, grouped, value};
use crate::term::{self, BOLD, DIM};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::Passages;
use tare_profile::Unit;

const QUANTILES: [(f64, &str); 4] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];
/// Columns of a name, where there is room for all figures and where there is not.
const NAME: [usize; 2] = [44, 26];
/// The figures, with which of them give way first where there is not: the larger number.
const FIGURES: [(&str, u8); 8] = [
    ("total", 4),
    ("least", 6),
    ("mean", 0),
    ("most", 2),
    ("p50", 3),
    ("p90", 5),
    ("p99", 1),
    ("p99.9", 7),
];
/// More threads than these are counted, not shown.
const THREADS: usize = 10;

pub fn print(out: &mut impl Write, report: &Report<'_>, width: usize) -> Result<()> {
    if report.regions.is_empty() {
        return Ok(());
    }
    let shape = Shape::for_width(width);
    let titles = FIGURES.map(|(title, _)| title.to_owned());
    let head = shape.line("Regions", "passages", &titles);
    writeln!(out, "\n{BOLD}{head}{BOLD:#}")?;
    for region in &report.regions {
        let name = format!("  {}", fit(&region.name, shape.name - 2));
        writeln!(out, "{}", shape.passages(&name, &region.all))?;
        if region.threads.len() < 2 {
            continue;
        }
        for (thread, passages) in region.threads.iter().take(THREADS) {
            let name = report.profile.thread_name(*thread);
            let name = format!("    {}", term::clip(&name, shape.name - 4));
            writeln!(out, "{}", shape.passages(&name, passages))?;
        }
        if let Some(more @ 1..) = region.threads.len().checked_sub(THREADS) {
            writeln!(out, "{DIM}    {more} more threads{DIM:#}")?;
        }
    }
    Ok(writeln!(out)?)
}

/// What of a line there is room for.
struct Shape {
    name: usize,
    /// Figures up to this number.
    most: usize,
}

impl Shape {
    fn for_width(width: usize) -> Self {
        let room = |name: usize| width.saturating_sub(name + 13) / 10;
        match NAME.map(room) {
            [all, _] if all >= FIGURES.len() => Shape { name: NAME[0], most: FIGURES.len() },
            [_, some] => Shape { name: NAME[1], most: some },
        }
    }

    fn line(&self, name: &str, count: &str, figures: &[String; 8]) -> String {
        let mut text = format!("{name:<width$} {count:>12}", width = self.name);
        for ((_, rank), figure) in FIGURES.iter().zip(figures) {
            if usize::from(*rank) < self.most {
                text += &format!(" {figure:>9}");
            }
        }
        text
    }

    fn passages(&self, name: &str, passages: &Passages) -> String {
        let [p50, p90, p99, p999] = QUANTILES.map(|(share, _)| passages.quantile(share));
        let sums = [passages.total, passages.min, passages.mean(), passages.max];
        let [total, least, mean, most] = sums;
        let figures = [total, least, mean, most, p50, p90, p99, p999];
        let figures = figures.map(|time| value(time, Unit::Nanoseconds));
        self.line(name, &grouped(passages.count), &figures)
    }
}

pub fn json(report: &Report<'_>) -> Value {
    let regions = report.regions.iter().map(|region| {
        let mut row = figures(&region.all);
        row["name"] = region.name.clone().into();
        let threads = region.threads.iter().map(|(thread, passages)| {
            let mut row = figures(passages);
            row["name"] = report.profile.thread_name(*thread).into();
            row
        });
        row["threads"] = threads.collect();
        row
    });
    regions.collect()
}

fn figures(passages: &Passages) -> Value {
    let stretches = passages.times.iter();
    let histogram =
        stretches.map(|((from, to), n)| json!({ "from_ns": from, "to_ns": to, "count": n }));
    let mut row = json!({
        "count": passages.count,
        "total_ns": passages.total,
        "min_ns": passages.min,
        "mean_ns": passages.mean(),
        "max_ns": passages.max,
        "histogram": histogram.collect::<Value>(),
    });
    for (share, name) in QUANTILES {
        row[format!("{}_ns", name.replace('.', "_"))] = passages.quantile(share).into();
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_give_way_to_the_width() {
        let line = |width: usize| {
            let titles = FIGURES.map(|(title, _)| title.to_owned());
            Shape::for_width(width).line("Regions", "passages", &titles)
        };
        let words =
            |width: usize| line(width).split_whitespace().skip(2).collect::<Vec<_>>().join(" ");
        assert_eq!(words(usize::MAX), "total least mean most p50 p90 p99 p99.9");
        assert_eq!(words(137), "total least mean most p50 p90 p99 p99.9");
        assert_eq!(words(80), "mean most p50 p99");
        assert_eq!(words(70), "mean most p99");
        assert!([70, 80, 100, 136, 137].iter().all(|width| line(*width).chars().count() <= *width));
    }
}
