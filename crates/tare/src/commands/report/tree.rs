//! A call tree as text. It only moves to the right where it branches: stacks are deep and terminals
//! narrow. A row of calls in which nothing else happens is shown by its two ends, and a recursion
//! that was folded by its depth.

use super::page::{NARROW, name};
use crate::figures::{percent, several, value};
use crate::term::DIM;
use anyhow::Result;
use std::io::Write;
use tare_analysis::{Children, NodeId, Tree};
use tare_profile::Unit;

/// Chains of more nodes than this are shortened.
const CHAIN: usize = 4;
/// Columns of branches; what is deeper stays there. A line that moves to the right with each of ten
/// thousand calls could not be read, and all of them would be megabytes.
const INDENT: usize = 200;

/// Columns that a name has at least, where the terminal has them.
const NAME: usize = 30;

pub struct Line {
    node: NodeId,
    /// What stands before the name: the branches that it hangs on.
    prefix: String,
    /// How many nodes were left out before this one.
    left_out: usize,
}

/// How lines move to the right.
#[derive(Clone, Copy)]
pub struct Indent {
    /// Columns for all branches, and for each.
    most: usize,
    step: usize,
}

impl Indent {
    /// As far as it takes.
    pub const ANY: Indent = Indent { most: usize::MAX, step: 1 };
}

/// How a tree is laid out.
pub struct Shape {
    /// Columns of the terminal.
    pub width: usize,
    /// What is smaller was folded.
    pub min_share: f64,
    /// Nothing is shortened.
    pub full: bool,
    /// Lines of it that are shown.
    pub most: usize,
}

pub fn print(out: &mut impl Write, tree: &Tree, unit: Unit, shape: &Shape) -> Result<()> {
    let calls = tree.metrics() > 1;
    // The lists have values, too; here names need the room more, if there is little.
    let values = shape.width >= NARROW;
    let mut head = "    total   itself".to_owned();
    if values {
        head.push_str(&format!(" {:>10}", "value"));
    }
    if calls {
        head.push_str(&format!("{:>12}", "calls"));
    }
    writeln!(out, "{DIM}{head}{DIM:#}")?;
    let blank = head.chars().count() + 2;
    let most = INDENT.min(shape.width.saturating_sub(blank + NAME));
    let indent = Indent { most, step: if values { 2 } else { 1 } };
    let lines = lines(tree, shape.min_share, shape.full, indent);
    let more = lines.len().saturating_sub(shape.most);
    for line in lines.into_iter().take(shape.most) {
        let Line { node, prefix, left_out } = line;
        if left_out > 0 {
            let left_out = several(left_out, "call");
            let bars: String = prefix.replace('├', "│").replace('└', " ").replace(['─', '»'], " ");
            writeln!(out, "{:blank$}{bars}{DIM}⋮ {left_out}, nothing beside{DIM:#}", "")?;
        }
        let mut figures = format!(
            "  {}  {}",
            percent(tree.share(tree.total(0, node))),
            percent(tree.share(tree.own(0, node))),
        );
        if values {
            figures.push_str(&format!(" {:>10}", value(tree.total(0, node), unit)));
        }
        if calls {
            figures.push_str(&format!("{:>12}", value(tree.own(1, node), Unit::Count)));
        }
        let taken = figures.chars().count() + 2 + prefix.chars().count();
        let times = match tree.times(node) {
            1 => String::new(),
            times => format!(" × {}", value(i64::from(times), Unit::Count)),
        };
        let room = shape.width.saturating_sub(taken + times.chars().count()).max(12);
        let label = tree.label_of(node);
        let text = match tree.folded(node) {
            0 => format!("{}{DIM}{times}{DIM:#}", name(label.kind, &label.text, room)),
            1 => format!("{DIM}[1 smaller]{DIM:#}"),
            count => format!("{DIM}[{count} smaller]{DIM:#}"),
        };
        writeln!(out, "{figures}  {prefix}{text}")?;
    }
    if more > 0 {
        writeln!(out, "{DIM}  {more} more lines; --full or --min-share shows them{DIM:#}")?;
    }
    Ok(())
}

/// What the small ones come to together has a line only if it is not small itself.
pub fn lines(tree: &Tree, min_share: f64, full: bool, indent: Indent) -> Vec<Line> {
    let children = tree.children();
    let small = |node: NodeId| {
        tree.folded(node) > 0 && tree.share(tree.total(0, node)).abs() < min_share && !full
    };
    let mut lines = Vec::new();
    // Each with the prefix of its own line, and the one for lines below it.
    let mut stack: Vec<(NodeId, String, String)> = Vec::new();
    push_children(&mut stack, &shown(&children, NodeId::ROOT, small), "", true, indent);
    while let Some((first, prefix, below)) = stack.pop() {
        let chain = chain(tree, &children, first);
        let keep_all = full || chain.len() <= CHAIN;
        let last = chain.len() - 1;
        for (at, node) in chain.iter().enumerate() {
            if !keep_all && at > 0 && at < last {
                continue;
            }
            let prefix = if at == 0 { prefix.clone() } else { below.clone() };
            let left_out = if !keep_all && at == last { chain.len() - 2 } else { 0 };
            lines.push(Line { node: *node, prefix, left_out });
        }
        push_children(&mut stack, &shown(&children, chain[last], small), &below, false, indent);
    }
    lines
}

fn shown(children: &Children, node: NodeId, small: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
    children.of(node).iter().copied().filter(|child| !small(*child)).collect()
}

/// The node, and those below it as long as each is all that its caller did.
fn chain(tree: &Tree, children: &Children, first: NodeId) -> Vec<NodeId> {
    let mut chain = vec![first];
    let mut at = first;
    while let [only] = children.of(at) {
        if tree.own(0, at) != 0 || tree.folded(*only) > 0 {
            break;
        }
        chain.push(*only);
        at = *only;
    }
    chain
}

fn push_children(
    stack: &mut Vec<(NodeId, String, String)>,
    list: &[NodeId],
    below: &str,
    top: bool,
    indent: Indent,
) {
    for (at, child) in list.iter().enumerate().rev() {
        let is_last = at + 1 == list.len();
        let (own, further) = match indent.step {
            _ if top => ("", ""),
            // Further right than there is room: how far is not shown, but that it is.
            step if below.chars().count() + step > indent.most => ("»", ""),
            1 if is_last => ("└", " "),
            1 => ("├", "│"),
            _ if is_last => ("└─", "  "),
            _ => ("├─", "│ "),
        };
        stack.push((*child, format!("{below}{own}"), format!("{below}{further}")));
    }
}
