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
const NAME: usize = 44;
/// More threads than these are counted, not shown.
const THREADS: usize = 10;

pub fn print(out: &mut impl Write, report: &Report<'_>, width: usize) -> Result<()> {
    if report.regions.is_empty() {
        return Ok(());
    }
    let mut head = format!("{:<NAME$} {:>12}", "Regions", "passages");
    for title in ["total", "least", "mean", "most"].into_iter().chain(QUANTILES.map(|(_, n)| n)) {
        head += &format!(" {title:>9}");
    }
    writeln!(out, "\n{BOLD}{}{BOLD:#}", term::clip(&head, width))?;
    for region in &report.regions {
        line(out, &format!("  {}", fit(&region.name, NAME - 2)), &region.all, width)?;
        if region.threads.len() < 2 {
            continue;
        }
        for (thread, passages) in region.threads.iter().take(THREADS) {
            let name = report.profile.thread_name(*thread);
            line(out, &format!("    {}", fit(&name, NAME - 4)), passages, width)?;
        }
        if let Some(more @ 1..) = region.threads.len().checked_sub(THREADS) {
            writeln!(out, "{DIM}    {more} more threads{DIM:#}")?;
        }
    }
    Ok(writeln!(out)?)
}

fn line(out: &mut impl Write, name: &str, passages: &Passages, width: usize) -> Result<()> {
    let mut text = format!("{name:<NAME$} {:>12}", grouped(passages.count));
    let sums = [passages.total, passages.min, passages.mean(), passages.max];
    for time in sums.into_iter().chain(QUANTILES.map(|(share, _)| passages.quantile(share))) {
        text += &format!(" {:>9}", value(time, Unit::Nanoseconds));
    }
    Ok(writeln!(out, "{}", term::clip(&text, width))?)
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
