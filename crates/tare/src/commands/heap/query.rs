//! Objects that fulfil conditions.

use super::Asked;
use super::dominators;
use super::names::{bytes, number, object_json};
use crate::term::{self, BOLD, DIM};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::io::Write;
use tare_heapdump::analyses::query::Query;

pub fn run(asked: &Asked<'_>, text: &str) -> Result<()> {
    let heap = asked.heap;
    let query: Query = text.parse().with_context(|| format!("{text:?} cannot be asked"))?;
    let answer = heap.query(&query, asked.rows())?;
    if asked.args.json {
        let rows = answer.nodes.iter().map(|node| object_json(heap, *node));
        let rows: Vec<Value> = rows.collect::<Result<_>>()?;
        let (objects, bytes) = (answer.sum.objects, answer.sum.bytes);
        return term::json(&json!({ "objects": objects, "bytes": bytes, "largest": rows }));
    }
    let mut out = Vec::new();
    let (count, size) = (number(answer.sum.objects), bytes(answer.sum.bytes));
    writeln!(out, "{BOLD}{count} objects{BOLD:#} of {size}")?;
    if !answer.nodes.is_empty() {
        dominators::print(asked, &mut out, &answer.nodes)?;
    }
    let more = answer.sum.objects - answer.nodes.len() as u64;
    if more > 0 {
        writeln!(out, "{DIM}{} more; -n shows more{DIM:#}", number(more))?;
    }
    term::show(&out, false)
}
