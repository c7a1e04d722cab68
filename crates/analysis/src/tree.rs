//! Trees of labels with values: made from a profile's contexts, folded, and walked.
//!
//! As in the profile, a parent stands before its children: totals are one sweep backwards.

use crate::aside::NO_JAVA;
use crate::filter::{AnalysisError, Filter, Grouping};
use crate::hash::{PairMap, pair};
use crate::labels::{Label, Labelling, label_frames};
use crate::select::Selection;
use crate::workers;
use std::sync::OnceLock;
use tare_profile::{ContextId, Contexts, FrameId, Packed, Profile, SeriesId};

/// A node of a [`Tree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub(crate) u32);

/// A label of a [`Tree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelId(pub(crate) u32);

impl NodeId {
    pub const ROOT: NodeId = NodeId(0);

    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LabelId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tree of labels. Each node has an own value and a total for every metric it was made of.
#[derive(Clone, Debug)]
pub struct Tree {
    labels: Vec<Label>,
    nodes: Vec<Node>,
    /// Of nodes that something was folded into, as far as the last of them.
    folds: Vec<Fold>,
    /// Values while they are being added; by metric, then by node, as all that follow.
    open: Vec<Vec<i64>>,
    own: Vec<Packed>,
    /// The first metric's: it decides what is shown.
    total: Vec<i64>,
    /// Those of the others, once one of them is asked for.
    totals: Vec<OnceLock<Vec<i64>>>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    label: u32,
}

#[derive(Clone, Copy, Debug)]
struct Fold {
    /// How many nodes were folded into this one, if it is where the small ones went.
    folded: u32,
    /// How many times in a row it was called in a run that was folded; else one.
    times: u32,
}

impl Fold {
    const NONE: Fold = Fold { folded: 0, times: 1 };
}

impl Tree {
    /// The tree of what a filter lets through; the first metric decides what is small or large.
    /// `min_share` is applied too.
    pub fn build(
        profile: &Profile,
        metrics: &[SeriesId],
        filter: &Filter,
    ) -> Result<Tree, AnalysisError> {
        if metrics.is_empty() {
            return Err(AnalysisError::NoSeries);
        }
        let selection = Selection::new(profile, filter)?;
        // There may be millions of values of each metric: they are looked at twice, and not held.
        let contexts = profile.contexts.len();
        let marked = workers::each(metrics.len(), contexts, |at, sums| {
            let by_context = |context: ContextId| context.index();
            selection.add_up(profile, metrics[at], filter, sums, contexts, by_context)?;
            Ok(sums.iter().map(|sum| *sum != 0).collect::<Vec<bool>>())
        });
        let mut valued = vec![false; contexts];
        for marked in marked {
            valued.iter_mut().zip(marked?).for_each(|(all, one)| *all |= one);
        }
        let (mut tree, place) = from_contexts(profile, &selection, valued, filter);
        let own = workers::each(metrics.len(), contexts, |at, sums| {
            let by_node = |context: ContextId| place[context.index()] as usize;
            selection.add_up(profile, metrics[at], filter, sums, tree.nodes.len(), by_node)?;
            Ok(sums.iter().copied().collect::<Packed>())
        });
        tree.own = own.into_iter().collect::<Result<_, _>>()?;
        let tree = tree.finish();
        Ok(if filter.min_share > 0.0 { tree.fold_small(filter.min_share) } else { tree })
    }

    /// The tree of some values per context, and for every context of the profile its node.
    pub(crate) fn with_places(
        profile: &Profile,
        selection: &Selection,
        values: &[Vec<i64>],
        filter: &Filter,
    ) -> (Tree, Vec<u32>) {
        let has_value = |at: usize| values.iter().any(|column| column[at] != 0);
        let valued = (0..profile.contexts.len()).map(has_value).collect();
        let (mut tree, mut place) = from_contexts(profile, selection, valued, filter);
        let own = values.iter().map(|column| {
            let mut own = vec![0_i64; tree.nodes.len()];
            for (node, value) in place.iter().zip(column) {
                let own = &mut own[*node as usize];
                *own = own.saturating_add(*value);
            }
            own.into_iter().collect()
        });
        tree.own = own.collect();
        let tree = tree.finish();
        if filter.min_share <= 0.0 {
            return (tree, place);
        }
        let (folded, joined) = tree.folded_places(filter.min_share, None);
        place.iter_mut().for_each(|node| *node = joined[*node as usize]);
        (folded, place)
    }

    pub(crate) fn empty(labels: Vec<Label>, metrics: usize) -> Tree {
        Tree {
            labels,
            nodes: vec![Node { parent: 0, label: 0 }],
            folds: Vec::new(),
            open: vec![vec![0]; metrics],
            own: Vec::new(),
            total: Vec::new(),
            totals: Vec::new(),
        }
    }

    /// Appends a node; its parent must be there.
    pub(crate) fn add(&mut self, parent: u32, label: u32) -> u32 {
        self.nodes.push(Node { parent, label });
        self.open.iter_mut().for_each(|column| column.push(0));
        self.nodes.len() as u32 - 1
    }

    pub(crate) fn add_label(&mut self, label: Label) -> u32 {
        self.labels.push(label);
        self.labels.len() as u32 - 1
    }

    pub(crate) fn add_value(&mut self, metric: usize, node: u32, value: i64) {
        let own = &mut self.open[metric][node as usize];
        *own = own.saturating_add(value);
    }

    pub(crate) fn note_folded(&mut self, node: u32, count: u32) {
        if count > 0 {
            self.fold_mut(node).folded += count;
        }
    }

    pub(crate) fn note_times(&mut self, node: u32, times: u32) {
        if times > 1 {
            let known = &mut self.fold_mut(node).times;
            *known = times.max(*known);
        }
    }

    fn fold_mut(&mut self, node: u32) -> &mut Fold {
        if self.folds.len() <= node as usize {
            self.folds.resize(node as usize + 1, Fold::NONE);
        }
        &mut self.folds[node as usize]
    }

    fn fold(&self, node: NodeId) -> Fold {
        self.folds.get(node.index()).copied().unwrap_or(Fold::NONE)
    }

    /// Sums subtrees; to be called once, after the last value.
    pub(crate) fn finish(mut self) -> Tree {
        let open = std::mem::take(&mut self.open);
        self.own.extend(open.into_iter().map(|column| column.into_iter().collect()));
        self.totals = vec![OnceLock::new(); self.own.len()];
        self.total = self.sums(0);
        self
    }

    fn sums(&self, metric: usize) -> Vec<i64> {
        let mut total = Vec::new();
        self.add_up(metric, &mut total);
        total
    }

    fn add_up(&self, metric: usize, total: &mut Vec<i64>) {
        total.clear();
        total.extend(self.all_own(metric));
        for (at, node) in self.nodes.iter().enumerate().skip(1).rev() {
            total[node.parent as usize] = total[node.parent as usize].saturating_add(total[at]);
        }
    }

    /// By node, what it has in or below it, for who looks at all nodes once.
    pub(crate) fn all_totals<'a>(&'a self, metric: usize, scratch: &'a mut Vec<i64>) -> &'a [i64] {
        match self.totals[metric].get() {
            _ if metric == 0 => &self.total,
            Some(known) => known,
            None => {
                self.add_up(metric, scratch);
                scratch
            }
        }
    }

    /// By node, what it has itself.
    pub(crate) fn all_own(&self, metric: usize) -> impl Iterator<Item = i64> + '_ {
        self.own[metric].iter()
    }

    pub fn metrics(&self) -> usize {
        self.own.len()
    }

    /// The number of nodes, with the root.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node but the root.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// The whole value of a metric.
    pub fn sum(&self, metric: usize) -> i64 {
        self.total(metric, NodeId::ROOT)
    }

    pub fn own(&self, metric: usize, node: NodeId) -> i64 {
        self.own[metric].get(node.index()).unwrap_or(0)
    }

    pub fn total(&self, metric: usize, node: NodeId) -> i64 {
        match metric {
            0 => self.total[node.index()],
            _ => self.totals[metric].get_or_init(|| self.sums(metric))[node.index()],
        }
    }

    /// A value of the first metric as a share of the whole, between 0 and 1; zero of nothing is
    /// zero.
    pub fn share(&self, value: i64) -> f64 {
        match self.sum(0) {
            0 => 0.0,
            sum => value as f64 / sum as f64,
        }
    }

    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        (node != NodeId::ROOT).then(|| NodeId(self.nodes[node.index()].parent))
    }

    pub fn label_id(&self, node: NodeId) -> LabelId {
        LabelId(self.nodes[node.index()].label)
    }

    pub fn label(&self, label: LabelId) -> &Label {
        &self.labels[label.index()]
    }

    pub fn label_of(&self, node: NodeId) -> &Label {
        self.label(self.label_id(node))
    }

    pub fn labels(&self) -> impl Iterator<Item = (LabelId, &Label)> {
        (0..).zip(&self.labels).map(|(number, label)| (LabelId(number), label))
    }

    pub(crate) fn all_labels(&self) -> &[Label] {
        &self.labels
    }

    /// How many small nodes a node stands for; zero for those that stand for themselves.
    pub fn folded(&self, node: NodeId) -> u32 {
        self.fold(node).folded
    }

    /// How many calls in a row a node stands for, at most: more than one where [`Tree::fold_runs`]
    /// made one of a recursion.
    pub fn times(&self, node: NodeId) -> u32 {
        self.fold(node).times
    }

    /// The node of a number, if there is one.
    pub fn node(&self, number: usize) -> Option<NodeId> {
        let number = u32::try_from(number).ok().filter(|_| number < self.nodes.len())?;
        Some(NodeId(number))
    }

    /// All nodes, parents first.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The children of every node, the largest first.
    pub fn children(&self) -> Children {
        let mut starts = vec![0_u32; self.nodes.len() + 1];
        for node in &self.nodes[1..] {
            starts[node.parent as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut list = vec![NodeId::ROOT; self.nodes.len() - 1];
        let mut next = starts.clone();
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            let place = &mut next[node.parent as usize];
            list[*place as usize] = NodeId(at as u32);
            *place += 1;
        }
        for at in 0..self.nodes.len() {
            let (start, end) = (starts[at] as usize, starts[at + 1] as usize);
            list[start..end].sort_by_key(|node| {
                // What was folded comes last, however much it is, and before it what stands aside.
                let aside = self.label_of(*node).is_aside();
                (self.folded(*node) > 0, aside, -i128::from(self.total(0, *node)))
            });
        }
        Children { starts, list }
    }

    /// The same tree in which every node below a share of the whole has joined its small siblings
    /// in one node, `[smaller]`.
    #[must_use]
    pub fn fold_small(&self, min_share: f64) -> Tree {
        self.folded_places(min_share, None).0
    }

    /// Of a tree that [`Tree::fold_small`] has made, what it makes of the same tree with a larger
    /// share: quickly, since nearly all nodes are gone.
    #[must_use]
    pub fn fold_smaller(&self, min_share: f64) -> Tree {
        let smaller = self.labels.len().saturating_sub(1) as u32;
        self.folded_places(min_share, Some(smaller)).0
    }

    /// The folded tree, and for each node of this one where it is in that. `folded` is the label of
    /// nodes in which small ones were joined before.
    fn folded_places(&self, min_share: f64, folded: Option<u32>) -> (Tree, Vec<u32>) {
        const NOWHERE: u32 = u32::MAX;
        let least = (self.sum(0) as f64 * min_share).abs();
        let mut out = Tree::empty(self.labels.clone(), 0);
        let smaller = folded.unwrap_or_else(|| out.add_label(Label::folded("[smaller]")));
        let mut place = vec![0_u32; self.nodes.len()];
        // By node of the new tree, where its small children are.
        let mut smaller_of = vec![NOWHERE];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            let parent = place[node.parent as usize];
            place[at] = if out.nodes[parent as usize].label == smaller {
                parent
            } else if (self.total[at] as f64).abs() >= least && folded != Some(node.label) {
                let (new, fold) = (out.add(parent, node.label), self.fold(NodeId(at as u32)));
                out.note_folded(new, fold.folded);
                out.note_times(new, fold.times);
                new
            } else {
                if smaller_of[parent as usize] == NOWHERE {
                    smaller_of[parent as usize] = out.add(parent, smaller);
                }
                let joined = match folded == Some(node.label) {
                    true => self.folded(NodeId(at as u32)),
                    false => 1,
                };
                out.note_folded(smaller_of[parent as usize], joined);
                smaller_of[parent as usize]
            };
            smaller_of.resize(out.nodes.len(), NOWHERE);
        }
        out.own = workers::each(self.own.len(), self.nodes.len(), |metric, _| {
            let mut sums = vec![0_i64; out.nodes.len()];
            for (node, value) in place.iter().zip(self.all_own(metric)).filter(|(_, v)| *v != 0) {
                let sum = &mut sums[*node as usize];
                *sum = sum.saturating_add(value);
            }
            sums.into_iter().collect()
        });
        (out.finish(), place)
    }
}

/// The children of every node of a tree.
#[derive(Clone, Debug)]
pub struct Children {
    starts: Vec<u32>,
    list: Vec<NodeId>,
}

impl Children {
    /// The largest first.
    pub fn of(&self, node: NodeId) -> &[NodeId] {
        &self.list[self.starts[node.index()] as usize..self.starts[node.index() + 1] as usize]
    }
}

/// A tree that has no metrics yet, and for every context of the profile its node.
fn from_contexts(
    profile: &Profile,
    selection: &Selection,
    valued: Vec<bool>,
    filter: &Filter,
) -> (Tree, Vec<u32>) {
    // Only contexts with something in or below them become nodes.
    let mut needed = valued.clone();
    for (id, parent, _) in profile.contexts.iter().rev() {
        if needed[id.index()] {
            needed[parent.index()] = true;
        }
    }
    let labelling = label_frames(profile, filter);
    let of_one_frame = of_one_frame(&labelling);
    let shows_all = !selection.has_roots() && labelling.of_frame.iter().all(Option::is_some);
    let mut tree = Tree::empty(labelling.labels, 0);
    // Neighbours of one package are one node; neighbours of one line are a recursion.
    let joins = !matches!(filter.group, Grouping::Method | Grouping::Line);
    // Where every frame is shown as itself, a context is a node: nothing needs to be looked up but
    // what is in or below a label that several frames have.
    let mut alone = vec![false; profile.contexts.len()];
    alone[ContextId::ROOT.index()] = true;
    let mut shared: PairMap<u32> = PairMap::default();
    // Else a tree of labels is found as a tree of frames is: the model's table does it, in little
    // memory.
    let mut known = Contexts::default();
    let mut place = vec![0_u32; profile.contexts.len()];
    for (id, parent, frame) in profile.contexts.iter() {
        if !needed[id.index()] || !selection.is_below_root(id) {
            continue;
        }
        let above = place[parent.index()];
        let Some(label) = labelling.of_frame[frame.index()] else {
            place[id.index()] = above;
            continue;
        };
        if shows_all && !joins && !filter.fold_recursion {
            alone[id.index()] = alone[parent.index()] && of_one_frame[label as usize];
            place[id.index()] = match alone[id.index()] {
                true => tree.add(above, label),
                false => {
                    *shared.entry(pair(above, label)).or_insert_with(|| tree.add(above, label))
                }
            };
            continue;
        }
        let outer = if filter.fold_recursion {
            outermost(&tree, above, label)
        } else {
            (joins && tree.nodes[above as usize].label == label).then_some(above)
        };
        place[id.index()] = outer.unwrap_or_else(|| {
            let node = known.child(ContextId::new(above), FrameId::new(label)).raw();
            if node as usize == tree.len() { tree.add(above, label) } else { node }
        });
    }
    // Where nothing of a stack is left, its value still is.
    let mut hidden = None;
    for (at, place) in place.iter_mut().enumerate().skip(1) {
        if *place == 0 && valued[at] {
            *place = *hidden.get_or_insert_with(|| {
                let text = if filter.hides() { "[hidden]" } else { NO_JAVA };
                let label = tree.add_label(Label::folded(text));
                tree.add(0, label)
            });
        }
    }
    (tree, place)
}

/// By label, whether no two frames have it.
fn of_one_frame(labelling: &Labelling) -> Vec<bool> {
    let mut frames = vec![0_u32; labelling.labels.len()];
    labelling.of_frame.iter().flatten().for_each(|label| frames[*label as usize] += 1);
    frames.into_iter().map(|count| count <= 1).collect()
}

/// The node of a label on the path from `from` to the root.
fn outermost(tree: &Tree, from: u32, label: u32) -> Option<u32> {
    let mut at = from;
    while at != 0 {
        let node = tree.nodes[at as usize];
        if node.label == label {
            return Some(at);
        }
        at = node.parent;
    }
    None
}
