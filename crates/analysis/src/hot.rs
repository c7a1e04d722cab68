//! Hot lists, and the callers and callees of a label.

use crate::hash::{PairMap, pair};
use crate::tree::{Children, LabelId, NodeId, Tree};
use crate::workers;
use std::collections::{HashMap, HashSet};

/// The values of a label in the whole tree, by metric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hot {
    pub label: LabelId,
    pub own: Vec<i64>,
    /// What it and all it called took; a recursion counts once.
    pub total: Vec<i64>,
}

/// Every label that has a value, the largest own value first.
pub fn hot_list(tree: &Tree) -> Vec<Hot> {
    let metrics = tree.metrics();
    let labels = tree.all_labels().len();
    let mut seen = vec![false; labels];
    tree.nodes().skip(1).for_each(|node| seen[tree.label_id(node).index()] = true);
    let outermost = outermost(tree);
    let sums = workers::each(metrics, tree.len(), |metric, scratch| {
        let (mut own, mut total) = (vec![0_i64; labels], vec![0_i64; labels]);
        let totals = tree.all_totals(metric, scratch);
        for ((node, value), outermost) in tree.nodes().zip(tree.all_own(metric)).zip(&outermost) {
            let label = tree.label_id(node).index();
            own[label] = own[label].saturating_add(value);
            if *outermost {
                total[label] = total[label].saturating_add(totals[node.index()]);
            }
        }
        (own, total)
    });
    let mut list: Vec<Hot> = (0..labels)
        .filter(|label| seen[*label])
        .map(|label| Hot {
            label: LabelId(label as u32),
            own: sums.iter().map(|(own, _)| own[label]).collect(),
            total: sums.iter().map(|(_, total)| total[label]).collect(),
        })
        .collect();
    list.sort_by(|a, b| (b.own[0], b.total[0], a.label).cmp(&(a.own[0], a.total[0], b.label)));
    list
}

/// Labels that only pass on: nearly all that each takes is of one that it calls, which says more.
pub fn passing_on(tree: &Tree) -> HashSet<LabelId> {
    const NEARLY: f64 = 0.98;
    let mut totals = vec![0_i64; tree.all_labels().len()];
    let mut calls: PairMap<i64> = PairMap::default();
    for node in tree.nodes().skip(1) {
        let (label, total) = (tree.label_id(node), tree.total(0, node));
        let sum = &mut totals[label.index()];
        *sum = sum.saturating_add(total);
        let caller = tree.parent(node).map(|parent| tree.label_id(parent));
        if let Some(caller) = caller.filter(|caller| *caller != label) {
            let sum = calls.entry(pair(caller.0, label.0)).or_default();
            *sum = sum.saturating_add(total);
        }
    }
    let passes = |caller: LabelId, called: i64| {
        let total = totals[caller.index()];
        total > 0 && called as f64 >= total as f64 * NEARLY
    };
    let calls = calls.iter().map(|(pair, called)| (LabelId((pair >> 32) as u32), *called));
    calls.filter(|(caller, called)| passes(*caller, *called)).map(|(caller, _)| caller).collect()
}

/// By node, whether no node above it has the same label.
fn outermost(tree: &Tree) -> Vec<bool> {
    const NONE: u32 = 0;
    // The first child of each node, and the next one of its caller's: nobody calls the root.
    let mut first = vec![NONE; tree.len()];
    let mut next = vec![NONE; tree.len()];
    for node in tree.nodes().rev() {
        if let Some(parent) = tree.parent(node) {
            next[node.index()] = std::mem::replace(&mut first[parent.index()], node.0);
        }
    }
    let mut outermost = vec![false; tree.len()];
    let mut open = vec![0_u32; tree.all_labels().len()];
    let mut at = NodeId::ROOT;
    loop {
        let label = tree.label_id(at).index();
        outermost[at.index()] = open[label] == 0;
        open[label] += 1;
        let mut to = first[at.index()];
        // Up to the next one that was not visited yet.
        while to == NONE {
            open[tree.label_id(at).index()] -= 1;
            let Some(parent) = tree.parent(at) else { return outermost };
            to = next[at.index()];
            at = parent;
        }
        at = NodeId(to);
    }
}

/// Calls `visit` for every node, and says whether no node above it has the same label.
fn walk_outermost(tree: &Tree, children: &Children, mut visit: impl FnMut(NodeId, bool)) {
    enum Step {
        Enter(NodeId),
        Leave(LabelId),
    }
    let mut open = vec![0_u32; tree.all_labels().len()];
    let mut stack = vec![Step::Enter(NodeId::ROOT)];
    while let Some(step) = stack.pop() {
        match step {
            Step::Leave(label) => open[label.index()] -= 1,
            Step::Enter(node) => {
                let label = tree.label_id(node);
                visit(node, open[label.index()] == 0);
                let below = children.of(node);
                if !below.is_empty() {
                    open[label.index()] += 1;
                    stack.push(Step::Leave(label));
                    stack.extend(below.iter().map(|child| Step::Enter(*child)));
                }
            }
        }
    }
}

/// A label between those that called it and those it called, by the first metric.
///
/// `own` and the callees add up to `total`, and so do the callers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbours {
    pub own: i64,
    pub total: i64,
    /// Who called it from outside, the largest first; the root stands for "nobody".
    pub callers: Vec<(LabelId, i64)>,
    /// What it called, the largest first. A direct recursion is not a callee.
    pub callees: Vec<(LabelId, i64)>,
}

pub fn neighbours(tree: &Tree, label: LabelId) -> Neighbours {
    let children = tree.children();
    let (mut own, mut total) = (0_i64, 0_i64);
    let mut callers: HashMap<LabelId, i64> = HashMap::new();
    let mut callees: HashMap<LabelId, i64> = HashMap::new();
    let add = |map: &mut HashMap<LabelId, i64>, label, value| {
        let sum = map.entry(label).or_default();
        *sum = sum.saturating_add(value);
    };
    walk_outermost(tree, &children, |node, outermost| {
        if !outermost || tree.label_id(node) != label {
            return;
        }
        total = total.saturating_add(tree.total(0, node));
        let caller = tree.parent(node).unwrap_or(NodeId::ROOT);
        add(&mut callers, tree.label_id(caller), tree.total(0, node));
        // The call and its direct recursions are one.
        let mut cluster = vec![node];
        while let Some(at) = cluster.pop() {
            own = own.saturating_add(tree.own(0, at));
            for child in children.of(at) {
                if tree.label_id(*child) == label {
                    cluster.push(*child);
                } else {
                    add(&mut callees, tree.label_id(*child), tree.total(0, *child));
                }
            }
        }
    });
    let sorted = |map: HashMap<LabelId, i64>| {
        let mut list: Vec<(LabelId, i64)> = map.into_iter().collect();
        list.sort_by_key(|(label, value)| (-i128::from(*value), *label));
        list
    };
    Neighbours { own, total, callers: sorted(callers), callees: sorted(callees) }
}
