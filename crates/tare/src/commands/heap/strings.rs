//! Texts that are there more than once.

use super::Asked;
use super::names::{bytes, number};
use crate::term::{self, DIM, clip};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;

/// Characters of a text in JSON.
const LONGEST: u32 = 200;

pub fn run(asked: &Asked<'_>) -> Result<()> {
    let heap = asked.heap;
    let strings = heap.strings(asked.rows())?;
    if asked.args.json {
        let mut rows = Vec::new();
        for row in &strings.rows {
            let text = heap.string(row.string, LONGEST)?;
            rows.push(json!({ "text": text, "arrays": row.arrays, "wasted": row.wasted }));
        }
        return term::json(&json!({
            "strings": strings.all.objects,
            "bytes": strings.all.bytes,
            "repeated": strings.repeated.objects,
            "wasted": strings.repeated.bytes,
            "texts": Value::Array(rows),
        }));
    }
    let mut out = Vec::new();
    let (count, size) = (number(strings.all.objects), bytes(strings.all.bytes));
    let (repeated, wasted) = (number(strings.repeated.objects), bytes(strings.repeated.bytes));
    writeln!(out, "{count} strings take {size}; {repeated} repeat a text, which wastes {wasted}")?;
    if !strings.rows.is_empty() {
        writeln!(out, "\n{DIM}    wasted        times  {DIM:#}")?;
    }
    for row in &strings.rows {
        let text = heap.string(row.string, LONGEST)?.unwrap_or_default();
        let text = clip(&format!("\"{text}\""), asked.width.saturating_sub(26).max(20));
        writeln!(out, "{:>10} {:>12}  {text}", bytes(row.wasted), number(row.arrays))?;
    }
    term::show(&out, false)
}
