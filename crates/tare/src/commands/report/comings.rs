//! Threads that came and went, for people and as JSON.

use super::Report;
use super::pauses::{FEW, NAME, at, time};
use crate::figures::{fit, wrap};
use crate::term::{DIM, clip, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::{Coming, Comings, Lives};

/// JSON tells so many threads one by one. A program that starts a thread for each request has
/// more; the sums are of all.
const LISTED: usize = 10_000;

/// A sentence on all of them, and how long those lived that came and went, at most so many lines.
pub fn print(out: &mut impl Write, report: &Report<'_>, most: usize, width: usize) -> Result<()> {
    let Some(comings) = Comings::of(report.profile, report.args.view.time.as_ref()) else {
        return Ok(());
    };
    for line in wrap(&came(&comings), width.saturating_sub(2)) {
        writeln!(out, "  {line}")?;
    }
    if comings.lives.is_empty() {
        return Ok(());
    }
    let columns = ["count", "lived", "longest", "first at", "last end"];
    let columns = columns.map(|column| format!("{column:>10}"));
    writeln!(out, "{DIM}  {:<NAME$}{}{DIM:#}", "threads that came and went", columns.concat())?;
    for one in comings.lives.iter().take(most) {
        let Lives { name, starter, count, longest, first, last, .. } = one;
        let figures = [time(one.mean()), time(*longest), at(*first), at(*last)];
        let figures = figures.map(|figure| format!("{figure:>10}"));
        let name = clip(&plain(name), NAME);
        writeln!(out, "  {name:<NAME$}{count:>10}{}", figures.concat())?;
        if let Some(starter) = starter {
            let room = width.saturating_sub(15).max(12);
            writeln!(out, "{DIM}    started in {}{DIM:#}", fit(&plain(starter), room))?;
        }
    }
    let rest = comings.lives.iter().skip(most);
    let (names, threads) = rest.fold((0, 0), |(n, sum), one| (n + 1, sum + one.count));
    if names > 0 {
        writeln!(out, "{DIM}  … {threads} more, of {names} names; --gc --top N shows them{DIM:#}")?;
    }
    Ok(())
}

/// Who came and went, in a sentence.
fn came(comings: &Comings) -> String {
    let Comings { started, ended, densest, names, starters, .. } = comings;
    let mut text = format!("threads: {started} started, {ended} ended");
    if densest.1 > 1 && densest.1 < *started {
        text += &format!(", {} of them within a second from {} on", densest.1, at(densest.0));
    }
    for (what, counts) in [("by name", names), ("started in", starters)] {
        let first = counts.iter().take(FEW);
        let first: Vec<String> = first.map(|(name, n)| format!("{} {n}", plain(name))).collect();
        if !first.is_empty() {
            text += &format!("; {what} {}", first.join(", "));
        }
    }
    text
}

/// Every thread that came or went, up to a number; and sums of all that did both.
pub fn json(report: &Report<'_>) -> Option<[(&'static str, Value); 3]> {
    let comings = Comings::of(report.profile, report.args.view.time.as_ref())?;
    let one = |one: &Coming| {
        let thread = report.profile.threads.get(one.thread);
        json!({
            "name": report.profile.thread_name(one.thread),
            "java_id": thread.java_id,
            "os_id": thread.os_id,
            "started_ns": one.started,
            "ended_ns": one.ended,
            "lived_ns": one.lived(),
            "started_by": one.by.map(|(by, _)| report.profile.thread_name(by)),
            "started_in": one.starter(report.profile),
        })
    };
    let lives = |one: &Lives| {
        json!({
            "name": one.name,
            "started_in": one.starter,
            "count": one.count,
            "lived_ns": one.total,
            "longest_ns": one.longest,
            "first_start_ns": one.first,
            "last_end_ns": one.last,
        })
    };
    Some([
        ("threads_came_and_went", comings.threads.iter().take(LISTED).map(one).collect()),
        ("threads_not_listed", comings.threads.len().saturating_sub(LISTED).into()),
        ("thread_lives", comings.lives.iter().map(lives).collect()),
    ])
}
