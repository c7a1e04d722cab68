//! The objects that retain most, or those below one of them.

use super::Asked;
use super::names::{bytes, find, object, object_json};
use crate::figures::percent;
use crate::term::{self, DIM};
use anyhow::Result;
use serde_json::Value;
use std::io::Write;
use tare_heapdump::{Level, Node};

pub fn run(asked: &Asked<'_>, of: Option<&str>) -> Result<()> {
    let heap = asked.heap;
    let above = of.map(|text| find(asked, text)).transpose()?;
    let nodes = heap.dominated(above);
    let shown = &nodes[..nodes.len().min(asked.rows())];
    if asked.args.json {
        let rows = shown.iter().map(|node| object_json(heap, *node));
        return term::json(&rows.collect::<Result<Vec<Value>>>()?);
    }
    let mut out = Vec::new();
    if let Some(node) = above {
        let (name, retained) =
            (object(heap, node, asked.width.saturating_sub(24))?, heap.retained(node));
        writeln!(out, "{name} retains {}, of which", bytes(retained))?;
    }
    print(asked, &mut out, shown)?;
    if nodes.len() > shown.len() {
        let rest: u64 = nodes[shown.len()..].iter().map(|node| heap.retained(*node)).sum();
        let count = super::names::number((nodes.len() - shown.len()) as u64);
        writeln!(out, "{DIM}{:>10} {:>20}  in {count} more{DIM:#}", bytes(rest), "")?;
    }
    if nodes.is_empty() {
        writeln!(out, "It is the only holder of nothing.")?;
    }
    term::show(&out, false)
}

pub fn print(asked: &Asked<'_>, out: &mut impl Write, nodes: &[Node]) -> Result<()> {
    let heap = asked.heap;
    let total = heap.sum(Level::Strong).bytes.max(1);
    writeln!(out, "{DIM}  retained    share      bytes  {DIM:#}")?;
    for node in nodes {
        let retained = heap.retained(*node);
        let share = percent(retained as f64 / total as f64);
        let name = object(heap, *node, asked.width.saturating_sub(32))?;
        let (retained, size) = (bytes(retained), bytes(heap.size(*node)));
        writeln!(out, "{retained:>10}  {share} {size:>10}  {name}")?;
    }
    Ok(())
}
