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
    writeln!(out, "{DIM}  retained    classes    instances  copies  {DIM:#}")?;
    for row in rows.iter().take(asked.rows()) {
        let name = fit(&row.name, asked.width.saturating_sub(44).max(20));
        let copies = if row.copies > 1 { number(row.copies) } else { String::new() };
        let (retained, classes) = (bytes(row.retained), number(row.classes));
        let instances = number(row.instances.objects);
        writeln!(out, "{retained:>10} {classes:>10} {instances:>12}  {copies:>6}  {name}")?;
    }
    if rows.len() > asked.rows() {
        let rest = number((rows.len() - asked.rows()) as u64);
        writeln!(out, "{DIM}{rest} more; -n {} shows all{DIM:#}", rows.len())?;
    }
    // Of those that have a class in common, one tells as much as all.
    let mut told = Vec::new();
    for row in rows.iter().filter(|row| row.copies > 1) {
        if told.contains(&row.common.as_deref()) || told.len() == CHAINS {
            continue;
        }
        told.push(row.common.as_deref());
        let Some(node) = row.node else { continue };
        let class = row.common.as_deref().unwrap_or_default();
        let (copies, name) = (number(row.copies), plain(&row.name));
        writeln!(
            out,
            "\n{WARN}{} was loaded {copies} times;{WARN:#} {name} is held by",
            plain(class)
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
        "copies": row.copies,
        "common_class": row.common,
    })
}
