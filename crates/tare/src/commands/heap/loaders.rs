//! Class loaders, and which look left over.

use super::Asked;
use super::names::{bytes, number};
use super::suspects::print_path;
use crate::figures::fit;
use crate::term::{self, DIM, WARN, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_heapdump::analyses::loaders::LoaderRow;

/// Kinds of loaders for one of which the chain is shown because it looks left over.
const CHAINS: usize = 3;

pub fn run(asked: &Asked<'_>) -> Result<()> {
    let rows = asked.heap.loader_rows();
    if asked.args.json {
        return term::json(&rows.iter().map(row_json).collect::<Vec<Value>>());
    }
    let mut out = Vec::new();
    writeln!(out, "{DIM}  retained    classes    instances  copies  held  {DIM:#}")?;
    for row in rows.iter().take(asked.rows()) {
        let name = fit(&row.name, asked.width.saturating_sub(50).max(20));
        let copies = if row.copies > 1 { number(row.copies) } else { String::new() };
        let (retained, classes) = (bytes(row.retained), number(row.classes));
        let instances = number(row.instances.objects);
        let held = if row.is_held { "yes" } else { "no" };
        writeln!(
            out,
            "{retained:>10} {classes:>10} {instances:>12}  {copies:>6}  {held:<4}  {name}"
        )?;
    }
    if rows.len() > asked.rows() {
        let rest = number((rows.len() - asked.rows()) as u64);
        writeln!(out, "{DIM}{rest} more; -n {} shows all{DIM:#}", rows.len())?;
    }
    let idle = rows.iter().filter(|row| !row.is_held).count();
    if idle > 0 {
        let idle = number(idle as u64);
        writeln!(
            out,
            "\n{idle} are held by nothing: they go with the next collection that unloads classes."
        )?;
    }
    // Of those that have a class in common, one tells as much as all: the one of whose classes there
    // are the fewest instances is the least needed.
    let mut told = Vec::new();
    for row in rows.iter().filter(|row| row.copies > 1) {
        if told.contains(&row.common.as_deref()) || told.len() == CHAINS {
            continue;
        }
        told.push(row.common.as_deref());
        let alike = rows.iter().filter(|other| other.copies > 1 && other.common == row.common);
        let least = alike.min_by_key(|row| row.instances.objects).unwrap_or(row);
        let Some(node) = least.node else { continue };
        let class = plain(row.common.as_deref().unwrap_or_default());
        let (copies, name) = (number(row.copies), plain(&least.name));
        writeln!(
            out,
            "\n{WARN}{class} is there {copies} times, by loaders of its own each;{WARN:#}\n\
             {name} is held by"
        )?;
        match asked.heap.path(node)? {
            Some(path) => print_path(asked, &mut out, &path, 2)?,
            None => writeln!(out, "  nothing strong")?,
        }
    }
    term::show(&out, false)
}

fn row_json(row: &LoaderRow) -> Value {
    json!({
        "name": row.name,
        "classes": row.classes,
        "instances": row.instances.objects,
        "instance_bytes": row.instances.bytes,
        "retained": row.retained,
        "held": row.is_held,
        "copies": row.copies,
        "common_class": row.common,
    })
}
