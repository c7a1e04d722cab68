//! A page with a map of who holds what; it needs nothing but a browser.

use super::Asked;
use super::names::{by_text, object};
use super::{histo, suspects};
use crate::files;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::Path;
use tare_heapdump::analyses::histogram::By;
use tare_heapdump::analyses::outline::Outline;
use tare_heapdump::analyses::suspects::MANY;
use tare_heapdump::{Heap, Level};

const PAGE: &str = include_str!("page.html");

/// Smaller parts are less than a dot.
const LEAST: f64 = 0.0005;

/// Of one object; the rest is one area.
const MOST_CHILDREN: usize = 200;

const CLASSES: usize = 100;

/// Where the data goes in the page.
const PLACE: &str = "/*DATA*/null";

pub fn run(asked: &Asked<'_>, path: &Path) -> Result<()> {
    let name = path.display();
    if path.exists() {
        bail!("{name} is there already; name another file");
    }
    let heap = asked.heap;
    let held = heap.sum(Level::Strong);
    let rows = heap.histogram(By::Class);
    let data = json!({
        "name": asked.args.target,
        "origin": heap.about().origin,
        "bytes": held.bytes,
        "objects": held.objects,
        "tree": area(heap, &heap.outline(LEAST, MOST_CHILDREN)?)?,
        "suspects": suspects::all_json(asked, &heap.suspects(MANY.0, MANY.1)?)?,
        "classes": histo::json(&rows[..rows.len().min(CLASSES)]),
    });
    // Nothing in a text of the program ends the script that it is in.
    let data = data.to_string().replace('<', "\\u003c");
    let page = PAGE.replacen(PLACE, &data, 1);
    files::replace(path, page.as_bytes()).with_context(|| format!("{name} cannot be written"))?;
    errln!("{name}: {} kB", page.len() / 1000);
    Ok(())
}

/// A part of the map, with what is in it.
pub fn area(heap: &Heap, outline: &Outline) -> Result<Value> {
    let name = match outline.node {
        Some(node) => object(heap, node, usize::MAX)?,
        None => "all that is held".to_owned(),
    };
    let by = outline.by.as_ref().map(by_text).unwrap_or_default();
    let children: Vec<Value> =
        outline.children.iter().map(|child| area(heap, child)).collect::<Result<_>>()?;
    Ok(json!({ "n": name, "b": by, "r": outline.retained, "c": children }))
}
