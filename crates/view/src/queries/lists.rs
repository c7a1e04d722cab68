//! Tables: methods, threads, a method between its neighbours, and the call tree as rows.

use super::{Question, no_method};
use crate::graph::{Graph, Search};
use crate::prepared::Prepared;
use crate::source::Problem;
use serde_json::{Value, json};
use std::cmp::Reverse;
use tare_analysis::{Hot, LabelId, NodeId, neighbours};
use tare_profile::{ThreadKind, Unit};

/// Rows that one answer has at most.
pub const MOST: usize = 2000;

pub fn methods(question: &Question<'_>) -> Result<Value, Problem> {
    let prepared = question.prepared()?;
    let tree = &prepared.graph.tree;
    let search = question.get("q").map(Search::new);
    let text = |hot: &Hot| tree.label(hot.label).text.as_str();
    let fits = |hot: &&Hot| search.as_ref().is_none_or(|search| search.finds(text(hot)));
    let mut rows: Vec<&Hot> = prepared.hot().iter().filter(fits).collect();
    match question.get("sort").unwrap_or("self") {
        // As they are.
        "self" => {}
        "total" => rows.sort_by_key(|hot| Reverse(hot.total[0])),
        "calls" if prepared.has_calls() => rows.sort_by_key(|hot| Reverse(hot.own[1])),
        "mean" if prepared.has_calls() => {
            rows.sort_by_key(|hot| Reverse(mean(hot).map(|mean| (mean * 100.0) as i64)));
        }
        "name" => rows.sort_by_key(|hot| text(hot)),
        other => return Err(Problem::new(400, format!("methods are not sorted by {other:?}"))),
    }
    if question.get("desc") == Some("0") {
        rows.reverse();
    }
    let offset = question.number("offset", 0, usize::MAX)?;
    let limit = question.number("limit", 200, MOST)?;
    Ok(json!({
        "epoch": question.epoch,
        "total": tree.sum(0),
        "unit": question.unit(&prepared),
        "has_calls": prepared.has_calls(),
        "count": rows.len(),
        "all": prepared.hot().len(),
        "rows": method_rows(&prepared, rows.into_iter().skip(offset).take(limit)),
    }))
}

/// What one call took by itself, of a method that has calls and a time.
fn mean(hot: &Hot) -> Option<f64> {
    let calls = hot.own.get(1).filter(|calls| **calls > 0)?;
    Some(hot.own[0] as f64 / *calls as f64)
}

pub fn method_rows<'a>(prepared: &Prepared, rows: impl Iterator<Item = &'a Hot>) -> Value {
    let tree = &prepared.graph.tree;
    let loaded = &prepared.loaded;
    let timed = loaded.profile.series(loaded.metrics[0]).info().kind.unit() == Unit::Nanoseconds;
    rows.map(|hot| {
        json!({
            "name": tree.label(hot.label).text,
            "kind": prepared.graph.kind(hot.label).to_string(),
            "self": hot.own[0],
            "total": hot.total[0],
            "calls": hot.own.get(1).filter(|_| prepared.has_calls()),
            "self_interval": prepared.interval(|metric| hot.own[metric]),
            "mean_ns": mean(hot).filter(|_| timed && prepared.has_calls()),
        })
    })
    .collect()
}

pub fn threads(question: &Question<'_>) -> Result<Value, Problem> {
    let prepared = question.prepared()?;
    let mut threads = thread_rows(&prepared, MOST)?;
    let cells = question.number("cells", 0, 400)?;
    if cells > 0 {
        let lanes = super::timeline::by_thread(question, cells)?;
        for row in threads.as_array_mut().into_iter().flatten() {
            let lane = row["row"].as_u64().and_then(|row| lanes.get(&(row as u32)));
            row["values"] = lane.map_or(Value::Null, |lane| lane.clone().into());
        }
    }
    let all = prepared.threads()?.len();
    Ok(json!({
        "epoch": question.epoch,
        "total": prepared.graph.tree.sum(0),
        "unit": question.unit(&prepared),
        "idle": prepared.loaded.idle,
        "all": all,
        "threads": threads,
    }))
}

pub fn thread_rows(prepared: &Prepared, most: usize) -> Result<Value, Problem> {
    let profile = &prepared.loaded.profile;
    let rows = prepared.threads()?.iter().take(most).map(|share| {
        let thread = profile.threads.get(share.thread);
        let (kind, aside) = match thread.kind {
            ThreadKind::Java => ("java", false),
            ThreadKind::Virtual => ("virtual", false),
            ThreadKind::Vm => ("vm", true),
            ThreadKind::Native => ("native", true),
        };
        json!({
            "row": share.thread.index(),
            "name": profile.thread_name(share.thread),
            "kind": kind,
            "aside": aside,
            "java_id": thread.java_id,
            "os_id": thread.os_id,
            "started_ns": thread.started,
            "ended_ns": thread.ended,
            "value": share.value,
            "top": share.top.as_ref().map(|(label, own)| json!({ "name": label.text, "self": own })),
        })
    });
    Ok(rows.collect())
}

pub fn around(question: &Question<'_>) -> Result<Value, Problem> {
    let prepared = question.prepared()?;
    let graph = &prepared.graph;
    let wanted = question.get("method").ok_or_else(|| Problem::new(400, "no method is named"))?;
    let label = graph.label(wanted).ok_or_else(|| no_method(wanted))?;
    let around = neighbours(&graph.tree, label);
    let root = graph.tree.label_id(NodeId::ROOT);
    let list = |list: &[(LabelId, i64)]| -> Value {
        let others = list.iter().filter(|(label, _)| *label != root);
        let row = |(label, value): &(LabelId, i64)| {
            let (name, kind) = (&graph.tree.label(*label).text, graph.kind(*label).to_string());
            json!({ "name": name, "kind": kind, "total": value })
        };
        others.map(row).collect()
    };
    let nobody = around.callers.iter().find(|(label, _)| *label == root).map_or(0, |one| one.1);
    let hot = prepared.hot().iter().find(|hot| hot.label == label);
    let calls = hot.filter(|_| prepared.has_calls()).map(|hot| hot.own[1]);
    Ok(json!({
        "epoch": question.epoch,
        "unit": question.unit(&prepared),
        "whole": graph.tree.sum(0),
        "name": wanted,
        "kind": graph.kind(label).to_string(),
        "self": around.own,
        "total": around.total,
        "calls": calls,
        "callers": list(&around.callers),
        "callees": list(&around.callees),
        "nobody": nobody,
    }))
}

pub fn tree(question: &Question<'_>) -> Result<Value, Problem> {
    let graph = question.graph()?;
    let prepared = question.prepared()?;
    let node = graph.node(&question.asked()?)?;
    let node = node.ok_or_else(|| Problem::new(404, "that stack is not there any more"))?;
    let open = question.share("open", 1.0)?;
    let offset = question.number("offset", 0, usize::MAX)?;
    let limit = question.number("limit", 500, MOST)?;
    let (rows, all) = rows(&graph, node, open, offset, limit);
    let tree = &graph.tree;
    let shown = rows.len();
    let rows = rows.into_iter().map(|(node, depth, open)| {
        json!({
            "node": node.index(),
            "path": graph.path(node),
            "parent": tree.parent(node).map(NodeId::index),
            "depth": depth,
            "text": tree.label_of(node).text,
            "kind": graph.kind(tree.label_id(node)).to_string(),
            "own": tree.own(0, node),
            "total": tree.total(0, node),
            "calls": prepared.has_calls().then(|| tree.own(1, node)),
            "children": graph.children().of(node).len(),
            "open": open,
            "folded": tree.folded(node),
            "times": tree.times(node),
        })
    });
    Ok(json!({
        "epoch": question.epoch,
        "tree": graph.key,
        "node": node.index(),
        "path": graph.path(node),
        "total": tree.sum(0),
        "unit": question.unit(&prepared),
        "rows": rows.collect::<Value>(),
        "more": all.saturating_sub(offset + shown),
    }))
}

/// The nodes below one, children behind their parents where those are open, with their depth and
/// whether they are; and how many there are in all.
fn rows(
    graph: &Graph,
    below: NodeId,
    open: f64,
    offset: usize,
    limit: usize,
) -> (Vec<(NodeId, usize, bool)>, usize) {
    let least = graph.tree.sum(0) as f64 * open;
    let (mut rows, mut all) = (Vec::new(), 0);
    let children = graph.children();
    let mut waiting: Vec<(NodeId, usize)> =
        children.of(below).iter().rev().map(|child| (*child, 0)).collect();
    while let Some((node, depth)) = waiting.pop() {
        let below = children.of(node);
        let total = graph.tree.total(0, node) as f64;
        let is_open = open < 1.0 && total >= least && total > 0.0 && !below.is_empty();
        if all >= offset && rows.len() < limit {
            rows.push((node, depth, is_open));
        }
        all += 1;
        if is_open {
            waiting.extend(below.iter().rev().map(|child| (*child, depth + 1)));
        }
    }
    (rows, all)
}
