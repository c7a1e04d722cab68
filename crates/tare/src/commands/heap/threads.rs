//! Threads with what they retain, and the variables that hold it.

use super::Asked;
use super::names::{bytes, number, object, object_json};
use crate::figures::{fit, several};
use crate::term::{self, BOLD, DIM, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_heapdump::Node;
use tare_heapdump::analyses::threads::{FrameRow, ThreadRow};

/// Variables of less than this say nothing.
const LEAST: u64 = 1024;

/// Variables of a frame that are told.
const VARIABLES: usize = 5;

pub fn run(asked: &Asked<'_>) -> Result<()> {
    let rows = asked.heap.thread_rows();
    if asked.args.json {
        let rows = rows.iter().map(|row| row_json(asked, row));
        return term::json(&rows.collect::<Result<Vec<Value>>>()?);
    }
    let mut out = Vec::new();
    writeln!(out, "{DIM}  retained  by variables  {DIM:#}")?;
    for row in rows.iter().take(asked.rows()) {
        print(asked, &mut out, row)?;
    }
    if rows.len() > asked.rows() {
        let rest = number((rows.len() - asked.rows()) as u64);
        writeln!(out, "{DIM}{rest} more; -n {} shows all{DIM:#}", rows.len())?;
    }
    if rows.is_empty() {
        writeln!(out, "The dump has no threads.")?;
    }
    term::show(&out, false)
}

fn print(asked: &Asked<'_>, out: &mut impl Write, row: &ThreadRow) -> Result<()> {
    let (retained, locals) = (bytes(row.retained), bytes(row.locals));
    let kind = if row.is_virtual { " (virtual)" } else { "" };
    let place = row.node.map(|node| format!(" @{:x}", asked.heap.address(node)));
    let (name, place) = (plain(&row.name), place.unwrap_or_default());
    writeln!(out, "{retained:>10}  {locals:>12}  {BOLD}{name}{BOLD:#}{kind}{place}")?;
    for frame in &row.frames {
        let large = |(_, retained): &&(Node, Option<u64>)| retained.is_some_and(|r| r >= LEAST);
        let shown: Vec<_> = frame.locals.iter().filter(large).take(VARIABLES).collect();
        if shown.is_empty() {
            continue;
        }
        let text = fit(&frame.text, asked.width.saturating_sub(28));
        writeln!(out, "{:>26}{DIM}in {text}{DIM:#}", "")?;
        for (node, retained) in shown {
            let name = object(asked.heap, *node, asked.width.saturating_sub(42))?;
            writeln!(out, "{:>28}{:>10}  {name}", "", bytes(retained.unwrap_or(0)))?;
        }
        let more = frame.locals.iter().filter(large).count().saturating_sub(VARIABLES);
        if more > 0 {
            writeln!(out, "{:>40}{DIM}{}{DIM:#}", "", several(more, "smaller one"))?;
        }
    }
    Ok(())
}

fn row_json(asked: &Asked<'_>, row: &ThreadRow) -> Result<Value> {
    let frame = |frame: &FrameRow| -> Result<Value> {
        let local = |(node, retained): &(Node, Option<u64>)| -> Result<Value> {
            let mut value = object_json(asked.heap, *node)?;
            value["only_here"] = retained.is_some().into();
            Ok(value)
        };
        let locals: Vec<Value> = frame.locals.iter().map(local).collect::<Result<_>>()?;
        Ok(json!({ "frame": frame.text, "locals": locals }))
    };
    let frames: Vec<Value> = row.frames.iter().map(frame).collect::<Result<_>>()?;
    Ok(json!({
        "name": row.name,
        "address": row.node.map(|node| format!("{:x}", asked.heap.address(node))),
        "virtual": row.is_virtual,
        "retained": row.retained,
        "retained_by_locals": row.locals,
        "frames": frames,
    }))
}
