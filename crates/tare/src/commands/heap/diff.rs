//! What grew from one dump to another.

use super::names::{bytes, number, way_text};
use super::{Asked, read, take};
use crate::figures::{fit, grouped};
use crate::term::{self, BOLD, DIM};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_heapdump::Level;
use tare_heapdump::analyses::diff::{self, ClassChange, PathChange, Ways};

pub fn run(asked: &Asked<'_>, new: &str) -> Result<()> {
    let old = asked.heap;
    let (new, unwritten) = read(take::open(asked.args, new, None, None)?, asked.args)?;
    // Before the answer, which has several ways out.
    unwritten.keep(&new, asked.args.quiet, || ());
    let (ways, new_ways) = (Ways::new(old)?, Ways::new(&new)?);
    let (paths, classes) = (diff::paths(&ways, &new_ways), diff::classes(old, &new));
    if asked.args.json {
        let most = asked.args.limit.unwrap_or(usize::MAX);
        return term::json(&json!({
            "old_bytes": old.sum(Level::Strong).bytes,
            "new_bytes": new.sum(Level::Strong).bytes,
            "paths": paths.iter().take(most).map(path_json).collect::<Vec<Value>>(),
            "classes": classes.iter().take(most).map(class_json).collect::<Vec<Value>>(),
        }));
    }
    let mut out = Vec::new();
    let (before, after) = (old.sum(Level::Strong), new.sum(Level::Strong));
    let change = signed(before.bytes, after.bytes);
    let (before, after) = (bytes(before.bytes), bytes(after.bytes));
    writeln!(out, "{BOLD}{change}{BOLD:#}: {before} before, {after} now")?;
    writeln!(out, "\n{BOLD}Where{BOLD:#}")?;
    if paths.is_empty() {
        writeln!(out, "  Nothing grew or shrank by a thousandth of the heap.")?;
    }
    for row in paths.iter().take(asked.rows()) {
        let way = way_text(&row.way);
        writeln!(
            out,
            "{:>10}  {DIM}now {:>9}{DIM:#}  {way}",
            signed(row.old, row.new),
            bytes(row.new)
        )?;
    }
    writeln!(out, "\n{BOLD}Of what{BOLD:#}")?;
    writeln!(out, "{DIM}     bytes      objects  {DIM:#}")?;
    let (grown, shrunk): (Vec<_>, Vec<_>) =
        classes.iter().partition(|row| row.new.bytes >= row.old.bytes);
    for row in grown.iter().take(asked.rows()).chain(shrunk.iter().rev().take(5)) {
        let objects = row.new.objects as i64 - row.old.objects as i64;
        let sign = if objects > 0 { "+" } else { "" };
        let objects = format!("{sign}{}", grouped(objects));
        let name = fit(&row.name, asked.width.saturating_sub(26).max(20));
        writeln!(out, "{:>10} {objects:>12}  {name}", signed(row.old.bytes, row.new.bytes))?;
    }
    if classes.is_empty() {
        writeln!(out, "  {} objects, all as before", number(new.objects()))?;
    }
    term::show(&out, false)
}

pub fn signed(old: u64, new: u64) -> String {
    if new >= old { format!("+{}", bytes(new - old)) } else { format!("-{}", bytes(old - new)) }
}

pub fn path_json(row: &PathChange) -> Value {
    json!({ "way": row.way, "old": row.old, "new": row.new })
}

fn class_json(row: &ClassChange) -> Value {
    json!({
        "class": row.name,
        "old_objects": row.old.objects,
        "new_objects": row.new.objects,
        "old_bytes": row.old.bytes,
        "new_bytes": row.new.bytes,
    })
}
