//! A picture of a tree as wide as a window: columns of numbers, row by row. Nodes below a pixel are
//! summed up, so an answer is as large as the window and not as the recording.

use crate::graph::{Graph, Numbered};
use serde_json::{Value, json};
use std::collections::HashSet;
use tare_analysis::NodeId;

/// Frames narrower than this have no room for a name.
const NAMED: f64 = 20.0;
/// No picture has more nodes, whatever is asked for.
const MOST: usize = 400_000;

/// What is asked for.
pub struct Window {
    pub node: NodeId,
    pub found: bool,
    /// Pixels of what is between `from` and `to`, shares of the node's width.
    pub width: f64,
    pub from: f64,
    pub to: f64,
    pub rows: usize,
    pub search: Option<String>,
}

/// A node of the picture.
struct Placed {
    node: NodeId,
    /// Where it begins, from where the zoomed node does.
    left: i64,
    width: i64,
    /// In the answer.
    parent: usize,
    /// It stands for this and smaller siblings.
    is_rest: bool,
}

/// Bytes that are appended as LEB128.
#[derive(Default)]
pub struct Varints(pub Vec<u8>);

impl Varints {
    pub fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn push_signed(&mut self, number: i64) {
        self.push(((number << 1) ^ (number >> 63)) as u64);
    }
}

/// The answer: the length of its head, the head, columns. `head` is what else is to be said.
pub fn answer(graph: &Graph, window: &Window, mut head: Value) -> Vec<u8> {
    let tree = &graph.tree;
    let whole = graph.width(window.node);
    let placed = place(graph, window);
    let hits = window.search.as_ref().map(|text| graph.hits(text));
    let scale = window.width / ((window.to - window.from) * whole.max(1) as f64);

    let mut labels = Numbered::default();
    let mut named: HashSet<usize> = HashSet::new();
    let is_part = window.from > 0.0 || window.to < 1.0;
    let mut columns: Vec<(&str, Varints)> = ["parent", "label", "width", "node"]
        .into_iter()
        .chain(is_part.then_some("left"))
        .chain(hits.is_some().then_some("hit"))
        .chain((graph.is_signed() && !graph.is_of_both).then_some("value"))
        .chain(["old", "new"].into_iter().filter(|_| graph.is_of_both))
        .map(|name| (name, Varints::default()))
        .collect();
    let (mut parent, mut number, mut deepest) = (0, 0, 0);
    let mut depths: Vec<usize> = Vec::with_capacity(placed.len());
    for (at, one) in placed.iter().enumerate() {
        let depth = if at == 0 { 0 } else { depths[one.parent] + 1 };
        depths.push(depth);
        deepest = deepest.max(depth);
        let label = tree.label_id(one.node);
        let shown = if one.is_rest { 0 } else { labels.number(label) + 1 };
        if !one.is_rest && one.width as f64 * scale >= NAMED {
            named.insert(shown);
        }
        for (name, column) in &mut columns {
            match *name {
                "parent" => column.push((one.parent - parent) as u64),
                "label" => column.push(shown as u64),
                "width" => column.push(one.width as u64),
                "node" => column.push_signed(one.node.index() as i64 - number),
                "left" => column.push(one.left as u64),
                "hit" => {
                    let hit = hits.as_ref().is_some_and(|hits| hits[label.index()]);
                    column.push(u64::from(hit && !one.is_rest));
                }
                "old" | "new" => {
                    // Of a rest it is not told which of both has more of it.
                    let metric = usize::from(*name == "old");
                    let value = if one.is_rest { one.width } else { tree.total(metric, one.node) };
                    column.push(value.max(0) as u64);
                }
                _ => {
                    let value = if one.is_rest { one.width } else { tree.total(0, one.node) };
                    column.push_signed(value - one.width);
                }
            }
        }
        (parent, number) = (one.parent, one.node.index() as i64);
    }
    let texts = labels
        .list
        .iter()
        .enumerate()
        .map(|(at, label)| named.contains(&(at + 1)).then(|| tree.label(*label).text.as_str()));
    let kinds: String = labels.list.iter().map(|label| graph.kind(*label)).collect();
    let matched = hits.as_ref().map(|hits| matched(graph, window.node, hits));
    let crumbs = graph.above(window.node);
    let crumbs = crumbs.into_iter().chain([window.node]).map(|node| {
        let text = &tree.label_of(node).text;
        json!({ "node": node.index(), "path": graph.path(node), "text": text })
    });
    head["tree"] = graph.key.as_str().into();
    head["node"] = window.node.index().into();
    head["path"] = graph.path(window.node).into();
    head["found"] = window.found.into();
    head["count"] = placed.len().into();
    head["rows"] = (deepest + 1).into();
    head["total"] = tree.total(0, window.node).into();
    head["whole"] = tree.sum(0).into();
    head["width"] = whole.into();
    head["from"] = window.from.into();
    head["to"] = window.to.into();
    head["crumbs"] = crumbs.collect();
    head["labels"] = std::iter::once(None).chain(texts).map(Value::from).collect();
    head["kinds"] = format!("r{kinds}").into();
    head["matched"] = matched.into();
    head["signed"] = (graph.is_signed() && !graph.is_of_both).into();
    head["columns"] = columns.iter().map(|(name, column)| json!([name, column.0.len()])).collect();
    let head = head.to_string();
    let mut out = Vec::with_capacity(4 + head.len());
    out.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(head.as_bytes());
    columns.iter().for_each(|(_, column)| out.extend_from_slice(&column.0));
    out
}

/// All nodes that can be seen, row by row and in a row from left to right.
fn place(graph: &Graph, window: &Window) -> Vec<Placed> {
    let whole = graph.width(window.node);
    let root = Placed { node: window.node, left: 0, width: whole, parent: 0, is_rest: false };
    let mut placed = vec![root];
    let begin = window.from * whole as f64;
    let end = window.to * whole as f64;
    let least = (end - begin) / window.width.max(1.0);
    let seen =
        |left: i64, width: i64| (left as f64) < end && left.saturating_add(width) as f64 > begin;
    let (mut row, mut depth) = (0..1, 1);
    while !row.is_empty() && depth < window.rows && placed.len() < MOST {
        let next = placed.len();
        for parent in row {
            if placed[parent].is_rest {
                continue;
            }
            let mut left = placed[parent].left;
            let mut rest: Option<Placed> = None;
            for child in graph.children().of(placed[parent].node) {
                let width = graph.width(*child);
                if width <= 0 {
                    continue;
                }
                let one = Placed { node: *child, left, width, parent, is_rest: false };
                left = left.saturating_add(width);
                if (width as f64) < least {
                    match &mut rest {
                        Some(rest) => rest.width = rest.width.saturating_add(width),
                        None => rest = Some(Placed { is_rest: true, ..one }),
                    }
                    continue;
                }
                // What comes behind it must begin where it ends.
                placed.extend(rest.take().filter(|rest| seen(rest.left, rest.width)));
                if seen(one.left, one.width) {
                    placed.push(one);
                }
            }
            let visible = |rest: &Placed| rest.width as f64 >= least && seen(rest.left, rest.width);
            placed.extend(rest.filter(visible));
        }
        row = next..placed.len();
        depth += 1;
    }
    placed
}

/// The value of all nodes that are meant, below and with one; a recursion counts once.
fn matched(graph: &Graph, below: NodeId, hits: &[bool]) -> i64 {
    let mut sum = 0_i64;
    let mut waiting = vec![below];
    while let Some(node) = waiting.pop() {
        if hits[graph.tree.label_id(node).index()] {
            sum = sum.saturating_add(graph.tree.total(0, node));
        } else {
            waiting.extend_from_slice(graph.children().of(node));
        }
    }
    sum
}
