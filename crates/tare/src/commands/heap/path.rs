//! Why an object, or the instances of a class, are still there.

use super::Asked;
use super::names::{bytes, classes, find, number, object_json};
use super::suspects::{path_json, print_path};
use crate::term::{self, BOLD};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::io::Write;
use tare_heapdump::{Heap, Node};

/// Instances whose chains are shown, the largest first.
const INSTANCES: usize = 3;

pub fn run(asked: &Asked<'_>, what: &str) -> Result<()> {
    let heap = asked.heap;
    let is_object = what.starts_with('@') || what.starts_with("0x");
    let (nodes, count) = if is_object {
        (vec![find(asked, what)?], 1)
    } else {
        largest(heap, &classes(heap, what)?, asked.args.limit.unwrap_or(INSTANCES))
    };
    if nodes.is_empty() {
        bail!("the dump has the class {what}, but no instance of it");
    }
    if asked.args.json {
        let one = |node: &Node| -> Result<Value> {
            let path = heap.path(*node)?.map(|path| path_json(heap, &path)).transpose()?;
            Ok(json!({ "object": object_json(heap, *node)?, "path": path }))
        };
        let paths: Vec<Value> = nodes.iter().map(one).collect::<Result<_>>()?;
        return term::json(&json!({ "instances": count, "paths": paths }));
    }
    let mut out = Vec::new();
    if !is_object {
        writeln!(out, "{BOLD}{} instances{BOLD:#}, the largest first\n", number(count))?;
    }
    for (at, node) in nodes.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        match heap.path(*node)? {
            Some(path) => {
                writeln!(out, "{:>10} retained", bytes(heap.retained(*node)))?;
                print_path(asked, &mut out, &path, 2)?;
            }
            None => {
                let name = super::names::object(heap, *node, asked.width)?;
                let level = heap.level(*node).name();
                writeln!(out, "{name} is {level} reachable: no chain of strong references")?;
            }
        }
    }
    term::show(&out, false)
}

/// The instances that retain most, and how many there are.
pub fn largest(heap: &Heap, ids: &[tare_heapdump::ClassId], most: usize) -> (Vec<Node>, u64) {
    let mut nodes: Vec<Node> =
        heap.nodes().filter(|node| ids.contains(&heap.class_id(*node))).collect();
    let count = nodes.len() as u64;
    nodes.sort_by_key(|node| (std::cmp::Reverse(heap.retained(*node)), *node));
    nodes.truncate(most);
    (nodes, count)
}
