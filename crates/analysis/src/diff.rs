//! Two profiles side by side: what grew, what shrank, and how much they have in common.
//!
//! Nodes meet by the names on their path, without the numbers that the JVM makes up in every run, and
//! without descriptors if one of the profiles has none.

use crate::filter::{AnalysisError, Filter};
use crate::hot::{Hot, hot_list};
use crate::labels::{Label, LabelKind};
use crate::names::stable;
use crate::tree::{NodeId, Tree};
use std::collections::HashMap;
use tare_profile::{ContextId, Contexts, FrameId, Profile, SeriesId};

#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// Compare shares of the whole instead of values: for runs of different length.
    pub normalise: bool,
    /// Applied to both; `min_share` is not, since what is small in one may be large in the other.
    pub filter: Filter,
}

/// How much a label has in each profile: first the old, then the new.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub label: String,
    pub own: [i64; 2],
    pub total: [i64; 2],
}

/// The comparison of two profiles.
#[derive(Clone, Debug)]
pub struct Diff {
    pub sums: [i64; 2],
    pub normalised: bool,
    /// One entry per label, the largest growth of own values first.
    pub methods: Vec<Change>,
    /// The common tree; parents stand before children, and the first is the root.
    pub tree: Vec<DiffNode>,
    /// What the nodes of the tree are called.
    pub labels: Vec<String>,
    /// The share of the profiles that is in both, from 0 to 1: the sum over all contexts of the
    /// smaller of their two shares.
    pub overlap: f64,
    /// The same over labels instead of contexts: never less, and not disturbed by other callers.
    pub label_overlap: f64,
}

/// A node of the common tree, with its values in the old and in the new profile.
#[derive(Clone, PartialEq, Debug)]
pub struct DiffNode {
    /// The number of the parent; the root is its own.
    pub parent: usize,
    /// The number of the label in [`Diff::labels`].
    pub label: usize,
    pub own: [i64; 2],
    pub total: [i64; 2],
}

impl Diff {
    /// Compares `old` with `new`, each with the series that is to be compared.
    pub fn build(
        old: (&Profile, SeriesId),
        new: (&Profile, SeriesId),
        options: &DiffOptions,
    ) -> Result<Diff, AnalysisError> {
        let filter = Filter { min_share: 0.0, ..options.filter.clone() };
        let trees =
            [Tree::build(old.0, &[old.1], &filter)?, Tree::build(new.0, &[new.1], &filter)?];
        let descriptors = has_descriptors(old.0) && has_descriptors(new.0);
        let mut names = Names { descriptors, known: HashMap::new(), texts: Vec::new() };
        let of_label = [names.of(old.0, &trees[0]), names.of(new.0, &trees[1])];
        let labels = names.texts;
        let sums = [trees[0].sum(0), trees[1].sum(0)];
        let tree = common_tree(&trees, &of_label);
        let methods = common_list(&trees, &of_label, &labels);
        let root = tree[0].own;
        let mut diff = Diff {
            sums,
            normalised: options.normalise,
            overlap: overlap(tree.iter().map(|node| node.own), sums),
            label_overlap: overlap(methods.iter().map(|change| change.own).chain([root]), sums),
            methods,
            tree,
            labels,
        };
        let mut methods = std::mem::take(&mut diff.methods);
        methods.sort_by(|a, b| {
            let by_total = diff.delta(b.total).total_cmp(&diff.delta(a.total));
            diff.delta(b.own)
                .total_cmp(&diff.delta(a.own))
                .then(by_total)
                .then(a.label.cmp(&b.label))
        });
        diff.methods = methods;
        Ok(diff)
    }

    /// How much more the new profile has, in values of the old one.
    pub fn delta(&self, values: [i64; 2]) -> f64 {
        values[1] as f64 * self.scale() - values[0] as f64
    }

    /// What a new value is multiplied by, to compare it with an old one.
    fn scale(&self) -> f64 {
        match (self.normalised, self.sums) {
            (true, [old, new]) if new != 0 && old != 0 => old as f64 / new as f64,
            _ => 1.0,
        }
    }

    /// Whether a difference between numbers of samples may well be chance: one in twenty that is
    /// so large comes from equal programs. Means nothing for values that are not numbers of samples.
    pub fn may_be_chance(&self, samples: [i64; 2]) -> bool {
        let [old, new] = samples.map(|count| count.max(0) as f64);
        let spread = (old + new * self.scale() * self.scale()).sqrt();
        self.delta(samples).abs() < 1.96 * spread
    }

    /// The same as a share of the whole of the old profile.
    pub fn delta_share(&self, values: [i64; 2]) -> f64 {
        match self.sums[0] {
            0 if self.delta(values) == 0.0 => 0.0,
            // Out of nothing anything is infinitely more.
            0 => f64::INFINITY.copysign(self.delta(values)),
            sum => self.delta(values) / (sum as f64).abs(),
        }
    }

    /// The path of a node of the common tree, outermost first, without the root.
    pub fn path(&self, node: usize) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = node;
        while at != NodeId::ROOT.index() {
            path.push(self.labels[self.tree[at].label].as_str());
            at = self.tree[at].parent;
        }
        path.reverse();
        path
    }

    /// The largest growth: of the whole, or of one label's own values, as a share of the old whole.
    pub fn worst(&self) -> f64 {
        let whole = self.delta_share(self.sums);
        let methods = self.methods.iter().map(|change| self.delta_share(change.own));
        methods.fold(whole, f64::max)
    }
}

/// The names of both trees' labels, as numbers.
struct Names {
    descriptors: bool,
    known: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Names {
    fn of(&mut self, profile: &Profile, tree: &Tree) -> Vec<u32> {
        tree.all_labels().iter().map(|label| self.number(profile, label)).collect()
    }

    fn number(&mut self, profile: &Profile, label: &Label) -> u32 {
        let next = self.texts.len() as u32;
        let identity = self.identity(profile, label);
        *self.known.entry(identity).or_insert_with(|| {
            self.texts.push(stable(&label.text));
            next
        })
    }

    fn identity(&self, profile: &Profile, label: &Label) -> String {
        let (LabelKind::Method(_), Some(id)) = (label.kind, label.method) else {
            return stable(&label.text);
        };
        let mut identity = stable(&profile.method_name(id));
        if let Some(line) = label.line {
            identity.push_str(&format!(":{line}"));
        }
        if self.descriptors {
            identity.push_str(profile.strings.get(profile.methods.get(id).descriptor));
        }
        identity
    }
}

fn has_descriptors(profile: &Profile) -> bool {
    profile.methods.iter().any(|(_, method)| !method.descriptor.is_empty())
}

fn common_tree(trees: &[Tree; 2], of_label: &[Vec<u32>; 2]) -> Vec<DiffNode> {
    let new = |parent: u32, label: u32| DiffNode {
        parent: parent as usize,
        label: label as usize,
        own: [0; 2],
        total: [0; 2],
    };
    // The first label of both trees is the root's.
    let mut nodes = vec![new(0, 0)];
    let mut known = Contexts::default();
    for (which, tree) in trees.iter().enumerate() {
        let mut place = vec![0_u32; tree.len()];
        for node in tree.nodes() {
            if let Some(parent) = tree.parent(node) {
                let above = place[parent.index()];
                let label = of_label[which][tree.label_id(node).index()];
                let node_here = known.child(ContextId::new(above), FrameId::new(label)).raw();
                if node_here as usize == nodes.len() {
                    nodes.push(new(above, label));
                }
                place[node.index()] = node_here;
            }
            let own = &mut nodes[place[node.index()] as usize].own[which];
            *own = own.saturating_add(tree.own(0, node));
        }
    }
    for at in (0..nodes.len()).rev() {
        let DiffNode { parent, own, total, .. } = &mut nodes[at];
        for which in 0..2 {
            total[which] = total[which].saturating_add(own[which]);
        }
        let (sums, parent) = (*total, *parent);
        if at != 0 {
            for (above, sum) in nodes[parent].total.iter_mut().zip(sums) {
                *above = above.saturating_add(sum);
            }
        }
    }
    nodes
}

fn common_list(trees: &[Tree; 2], of_label: &[Vec<u32>; 2], texts: &[String]) -> Vec<Change> {
    let mut changes: Vec<Option<Change>> = vec![None; texts.len()];
    for (which, tree) in trees.iter().enumerate() {
        for Hot { label, own, total } in hot_list(tree) {
            let name = of_label[which][label.index()] as usize;
            let new = || Change { label: texts[name].clone(), own: [0; 2], total: [0; 2] };
            let change = changes[name].get_or_insert_with(new);
            change.own[which] = change.own[which].saturating_add(own[0]);
            change.total[which] = change.total[which].saturating_add(total[0]);
        }
    }
    changes.into_iter().flatten().collect()
}

fn overlap(values: impl Iterator<Item = [i64; 2]>, sums: [i64; 2]) -> f64 {
    let share = |value: i64, sum: i64| if sum > 0 { value.max(0) as f64 / sum as f64 } else { 0.0 };
    values.map(|[old, new]| share(old, sums[0]).min(share(new, sums[1]))).sum()
}
