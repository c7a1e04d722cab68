//! The first screen: how much there is, who holds it, and what it consists of.

use super::names::{bytes, number};
use super::{Asked, histo, suspects};
use crate::figures::wrap;
use crate::term::{self, BOLD, DIM, WARN};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_heapdump::analyses::histogram::By;
use tare_heapdump::analyses::suspects::FEW;
use tare_heapdump::{Heap, Level};

const CLASSES: usize = 8;

pub fn run(asked: &Asked<'_>) -> Result<()> {
    let heap = asked.heap;
    let (least, most) = FEW;
    let found = heap.suspects(least, most)?;
    let rows = heap.histogram(By::Class);
    if asked.args.json {
        let mut value = totals(heap);
        value["suspects"] = suspects::all_json(asked, &found)?;
        value["classes"] = histo::json(&rows[..rows.len().min(asked.rows())]);
        return term::json(&value);
    }
    let mut out = Vec::new();
    head(asked, &mut out)?;
    writeln!(out, "\n{BOLD}Who holds it{BOLD:#}")?;
    if found.is_empty() {
        let share = least * 100.0;
        writeln!(out, "  Nobody holds more than {share} % of it; see `dominators` and `histo`.")?;
    }
    suspects::print(asked, &mut out, &found)?;
    writeln!(out, "\n{BOLD}What it consists of{BOLD:#}")?;
    let mut rows = rows;
    rows.sort_by_key(|row| std::cmp::Reverse(row.held.bytes));
    histo::print(asked, &mut out, &rows, CLASSES)?;
    // A snapshot that is kept need not be taken again.
    let kept = asked.args.output.as_ref().map(|path| path.display().to_string());
    let file = term::plain(kept.as_deref().unwrap_or(&asked.args.target)).into_owned();
    writeln!(
        out,
        "\n{DIM}All of them:            tare heap {file} suspects\n\
         All that can be asked:  tare heap --help{DIM:#}"
    )?;
    term::show(&out, false)
}

/// How much there is, and how it is held.
fn head(asked: &Asked<'_>, out: &mut impl Write) -> Result<()> {
    let heap = asked.heap;
    let held = heap.sum(Level::Strong);
    let file = &asked.args.target;
    writeln!(
        out,
        "{BOLD}{file}{BOLD:#}: {} in {} objects",
        bytes(held.bytes),
        number(held.objects)
    )?;
    let others: Vec<String> = Level::ALL[1..]
        .iter()
        .map(|level| (level, heap.sum(*level)))
        .filter(|(_, sum)| sum.objects > 0)
        .map(|(level, sum)| match level {
            Level::Unreachable => format!("{} of garbage", bytes(sum.bytes)),
            level => format!("{} held {}", bytes(sum.bytes), level.name()),
        })
        .collect();
    let origin = heap.about().origin;
    if !origin.is_empty() {
        writeln!(out, "  {DIM}{}{DIM:#}", term::plain(&origin))?;
    }
    if !others.is_empty() {
        let text = format!("besides {}", others.join(", "));
        for line in wrap(&text, asked.width.saturating_sub(2)) {
            writeln!(out, "  {DIM}{line}{DIM:#}")?;
        }
    }
    let losses = heap.losses();
    // A dump of HotSpot refers to some classes that it does not have, since they are not loaded.
    if losses.unknown + losses.twice > 0 || losses.dangling * 100 > heap.objects() {
        let (dangling, unknown) = (number(losses.dangling), number(losses.unknown));
        let text = format!(
            "the dump is incomplete: {dangling} references lead to objects that it does not have, \
             {unknown} objects have no class"
        );
        for line in wrap(&text, asked.width.saturating_sub(2)) {
            writeln!(out, "  {WARN}{line}{WARN:#}")?;
        }
    }
    Ok(())
}

fn totals(heap: &Heap) -> Value {
    let about = heap.about();
    let levels: serde_json::Map<String, Value> = Level::ALL
        .iter()
        .map(|level| {
            let sum = heap.sum(*level);
            let name = format!("{level:?}").to_lowercase();
            (name, json!({ "objects": sum.objects, "bytes": sum.bytes }))
        })
        .collect();
    let losses = heap.losses();
    json!({
        "taken_ms": about.taken,
        "origin": about.origin,
        "redacted": about.is_redacted,
        "notes": about.notes,
        "reachable": levels,
        "dangling_references": losses.dangling,
        "objects_without_class": losses.unknown,
        "objects_twice": losses.twice,
    })
}
