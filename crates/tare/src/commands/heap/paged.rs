//! What the page of `tare view` asks of a heap: the same answers as `tare heap --json`, a part at a
//! time.

use super::names::{classes, find, object_json};
use super::suspects::{self, path_json};
use super::{Asked, histo, html, path, read, take};
use crate::cli::HeapArgs;
use anyhow::{Result, bail};
use clap::Parser;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tare_heapdump::analyses::histogram::{By, Row};
use tare_heapdump::analyses::suspects::MANY;
use tare_heapdump::{Heap, Level, Node, Sum};

/// Of the map: smaller parts are summed up, and no area has more.
const LEAST: f64 = 0.001;
const MOST_PARTS: usize = 60;

/// Rows of one answer.
const ROWS: usize = 500;

/// Instances of a class whose ways are told, the largest first.
const INSTANCES: usize = 5;

/// A heap that was read, to be asked again and again.
pub struct Paged {
    heap: Heap,
    args: HeapArgs,
}

impl Paged {
    /// Of a file; Ctrl-C ends the reading, and us.
    pub fn of_file(path: &Path, stop: &Arc<AtomicBool>) -> Result<Self> {
        Paged::open(&["heap", "--", &path.display().to_string()], Some(Arc::clone(stop)))
    }

    /// Of a JVM, of which a snapshot is taken. Ctrl-C ends the server, and this with it.
    pub fn of_jvm(pid: u32) -> Result<Self> {
        Paged::open(&["heap", "--quiet", "--", &pid.to_string()], None)
    }

    fn open(words: &[&str], stop: Option<Arc<AtomicBool>>) -> Result<Self> {
        #[derive(Parser)]
        struct Alone {
            #[command(flatten)]
            args: HeapArgs,
        }
        let args = Alone::try_parse_from(words)?.args;
        let never = || Arc::new(AtomicBool::new(false));
        let mut dump = take::open(&args, &args.target, None, Some(never()))?;
        dump.stop = stop;
        let (heap, _unwritten) = read(dump, &args)?;
        Ok(Paged { heap, args })
    }

    /// The answer to a question; `what` is a class, an object or a grouping. `before` is what changes
    /// are told of.
    pub fn answer(
        &self,
        question: &str,
        what: Option<&str>,
        before: Option<&Paged>,
    ) -> Result<Value> {
        let heap = &self.heap;
        let asked = Asked { heap, allocations: None, args: &self.args, width: usize::MAX };
        let held = heap.sum(Level::Strong);
        match (question, what) {
            ("overview", _) => Ok(json!({
                "origin": heap.about().origin,
                "notes": heap.about().notes,
                "bytes": held.bytes,
                "objects": held.objects,
                "tree": html::area(heap, &heap.outline(LEAST, MOST_PARTS)?)?,
                "suspects": suspects::all_json(&asked, &heap.suspects(MANY.0, MANY.1)?)?,
            })),
            ("histo" | "changes", by) => {
                let by = match by {
                    None | Some("class") => By::Class,
                    Some("loader") => By::Loader,
                    Some("package") => By::Package,
                    Some(other) => bail!("rows are by class, loader or package, not {other:?}"),
                };
                let rows = heap.histogram(by);
                let shown = &rows[..rows.len().min(ROWS)];
                let answer =
                    json!({ "bytes": held.bytes, "all": rows.len(), "rows": histo::json(shown) });
                Ok(match before.filter(|_| question == "changes") {
                    Some(before) => changed(answer, &rows, &before.heap, by),
                    None => answer,
                })
            }
            ("dominators", of) => {
                let above = of.map(|text| find(&asked, text)).transpose()?;
                let nodes = heap.dominated(above);
                let rows = nodes.iter().take(ROWS).map(|node| {
                    let mut row = object_json(heap, *node)?;
                    row["holds"] = (heap.retained(*node) > heap.size(*node)).into();
                    Ok(row)
                });
                let rows: Vec<Value> = rows.collect::<Result<_>>()?;
                Ok(json!({ "bytes": held.bytes, "all": nodes.len(), "rows": rows }))
            }
            ("path", Some(what)) => {
                let (nodes, count) = match what.starts_with('@') {
                    true => (vec![find(&asked, what)?], 1),
                    false => path::largest(heap, &classes(heap, what)?, INSTANCES),
                };
                let one = |node: &Node| -> Result<Value> {
                    let path = heap.path(*node)?.map(|path| path_json(heap, &path)).transpose()?;
                    let level = heap.level(*node).name();
                    Ok(json!({ "object": object_json(heap, *node)?, "path": path, "level": level }))
                };
                let paths: Vec<Value> = nodes.iter().map(one).collect::<Result<_>>()?;
                Ok(json!({ "instances": count, "paths": paths }))
            }
            ("path", None) => bail!("a class or an object is missing: what=com.acme.Session"),
            (other, _) => bail!("nobody knows what {other:?} of a heap is"),
        }
    }
}

/// A histogram beside the one before: what grew most first, and what shrank most last.
fn changed(mut answer: Value, now: &[Row], before: &Heap, by: By) -> Value {
    let old = before.histogram(by);
    let by_name: HashMap<&str, &Row> = old.iter().map(|row| (row.name.as_str(), row)).collect();
    let names: HashSet<&str> = now.iter().map(|row| row.name.as_str()).collect();
    let none =
        |row: &Row| Row { held: Sum::default(), all: Sum::default(), retained: 0, ..row.clone() };
    let gone = old.iter().filter(|row| !names.contains(row.name.as_str())).map(none);
    let mut rows: Vec<(Row, i64, i64)> = now
        .iter()
        .cloned()
        .chain(gone)
        .map(|row| {
            let was = by_name.get(row.name.as_str()).map_or(Sum::default(), |old| old.held);
            let bytes = row.held.bytes as i64 - was.bytes as i64;
            let objects = row.held.objects as i64 - was.objects as i64;
            (row, bytes, objects)
        })
        .collect();
    rows.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    answer["all"] = rows.len().into();
    answer["before"] = before.sum(Level::Strong).bytes.into();
    // Both ends have what is worth a look.
    let end = rows.len().saturating_sub(ROWS / 2).max(ROWS / 2);
    let rows = rows.iter().enumerate().filter(|(at, _)| *at < ROWS / 2 || *at >= end);
    answer["rows"] = rows
        .map(|(_, (row, bytes, objects))| {
            let mut told = histo::json(std::slice::from_ref(row))[0].take();
            told["more_bytes"] = (*bytes).into();
            told["more_objects"] = (*objects).into();
            told
        })
        .collect();
    answer
}
