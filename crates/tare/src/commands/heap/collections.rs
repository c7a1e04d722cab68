//! Collections, boxed numbers and arrays that waste memory.

use super::Asked;
use super::names::{bytes, number};
use crate::figures::fit;
use crate::term::{self, BOLD, DIM};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;

pub fn run(asked: &Asked<'_>) -> Result<()> {
    let heap = asked.heap;
    let (rows, boxed) = (heap.collection_rows()?, heap.boxed_rows()?);
    let zeros = heap.strings(0)?.zeros;
    let name = |class| heap.classes().get(class).name.as_str();
    if asked.args.json {
        let collections = rows.iter().map(|row| {
            json!({
                "class": name(row.class),
                "objects": row.all.objects,
                "empty": row.empty.objects,
                "empty_bytes": row.empty.bytes,
                "sparse": row.sparse.objects,
                "sparse_bytes": row.sparse.bytes,
            })
        });
        let boxed = boxed.iter().map(|row| {
            let (objects, bytes) = (row.all.objects, row.all.bytes);
            json!({ "class": name(row.class), "objects": objects, "bytes": bytes, "values": row.values })
        });
        let zeros = zeros.iter().map(
            |(kind, sum)| json!({ "type": kind.name(), "arrays": sum.objects, "bytes": sum.bytes }),
        );
        return term::json(&json!({
            "collections": collections.collect::<Vec<Value>>(),
            "boxed": boxed.collect::<Vec<Value>>(),
            "zeros": zeros.collect::<Vec<Value>>(),
        }));
    }
    let mut out = Vec::new();
    let room = asked.width.saturating_sub(60).max(20);
    writeln!(out, "{BOLD}Collections{BOLD:#}, sparse if less than a quarter is used")?;
    writeln!(out, "{DIM}    wasted          all        empty       sparse  {DIM:#}")?;
    for row in rows.iter().take(asked.rows()) {
        let (all, empty) = (number(row.all.objects), number(row.empty.objects));
        let (sparse, wasted) = (number(row.sparse.objects), bytes(row.wasted()));
        let name = fit(name(row.class), room);
        writeln!(out, "{wasted:>10} {all:>12} {empty:>12} {sparse:>12}  {name}")?;
    }
    if !boxed.is_empty() {
        writeln!(out, "\n{BOLD}Numbers in objects of their own{BOLD:#}")?;
        writeln!(out, "{DIM}     bytes      objects    different  {DIM:#}")?;
    }
    for row in &boxed {
        let (size, count) = (bytes(row.all.bytes), number(row.all.objects));
        writeln!(out, "{size:>10} {count:>12} {:>12}  {}", number(row.values), name(row.class))?;
    }
    if !zeros.is_empty() {
        writeln!(out, "\n{BOLD}Arrays with nothing but zeros{BOLD:#}")?;
        writeln!(out, "{DIM}     bytes       arrays  {DIM:#}")?;
    }
    for (kind, sum) in &zeros {
        let (size, count) = (bytes(sum.bytes), number(sum.objects));
        writeln!(out, "{size:>10} {count:>12}  {}[]", kind.name())?;
    }
    term::show(&out, false)
}
