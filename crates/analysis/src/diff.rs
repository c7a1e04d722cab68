//! Two profiles side by side: what grew, what shrank, and how much they have in common.
//!
//! Nodes meet by the names on their path, without the numbers that the JVM makes up in every run,
//! and without descriptors if one of the profiles has none. Which differences may be chance is told
//! by `noise`.

use crate::aside::{NO_JAVA, OF_JVM, OF_NATIVE};
use crate::filter::{AnalysisError, Filter};
use crate::hot::{Hot, hot_list};
use crate::labels::{Label, LabelKind};
use crate::noise::{Noise, Parted, Spread, TOO_FEW, deviations};
use crate::tree::{NodeId, Tree};
use std::collections::HashMap;
use tare_java_names::stable;
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
    /// By how much the differences may be off by chance, either way, in values of the old.
    pub doubt: Doubt,
}

/// What [`Diff::delta`] may be off by; zero where nothing was sampled.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Doubt {
    pub own: f64,
    pub total: f64,
}

/// A growth, as a share of the old whole.
#[derive(Clone, PartialEq, Debug)]
pub struct Growth {
    /// What grew by itself; `None` for the whole.
    pub label: Option<String>,
    pub share: f64,
    /// What it is at least, whatever chance did.
    pub at_least: f64,
}

/// The comparison of two profiles.
#[derive(Clone, Debug)]
pub struct Diff {
    pub sums: [i64; 2],
    /// What kind of chance is in the values.
    pub noise: Noise,
    /// By how much the difference of the sums may be off.
    pub doubt: f64,
    /// What one value scatters by in each profile, as a variance, on average over all labels, and
    /// how many deviations are more than chance: for who sums up in his own way.
    pub scatter: [f64; 2],
    pub deviations: f64,
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
    pub doubt: Doubt,
}

impl Diff {
    /// Compares `old` with `new`, each with the series that is to be compared.
    pub fn build(
        old: (&Profile, SeriesId),
        new: (&Profile, SeriesId),
        options: &DiffOptions,
    ) -> Result<Diff, AnalysisError> {
        let filter = Filter { min_share: 0.0, ..options.filter.clone() };
        let [of_old, of_new] = [old, new].map(|(profile, series)| Noise::of(profile, series));
        let noise = of_old.and(of_new);
        let (trees, spreads) = match noise {
            Noise::Samples => {
                let parted = [Parted::new(old.0, old.1), Parted::new(new.0, new.1)];
                let tree = |at: &Parted| Tree::build(&at.profile, &at.series, &filter);
                let trees = [tree(&parted[0])?, tree(&parted[1])?];
                (trees, Some(parted.map(|parted| parted.spread())))
            }
            Noise::None | Noise::Unknown => {
                let tree = |(profile, series)| Tree::build(profile, &[series], &filter);
                ([tree(old)?, tree(new)?], None)
            }
        };
        let descriptors = has_descriptors(old.0) && has_descriptors(new.0);
        let mut names = Names { descriptors, known: HashMap::new(), texts: Vec::new() };
        let of_label = [names.of(old.0, &trees[0]), names.of(new.0, &trees[1])];
        let labels = names.texts;
        let sums = [trees[0].sum(0), trees[1].sum(0)];
        let mut diff = Diff {
            sums,
            noise,
            doubt: 0.0,
            scatter: [0.0; 2],
            deviations: 0.0,
            normalised: options.normalise,
            overlap: 0.0,
            label_overlap: 0.0,
            methods: Vec::new(),
            tree: Vec::new(),
            labels,
        };
        let mut judge = Judge::new(spreads, options.normalise);
        let mut tree = common_tree(&trees, &of_label, &mut judge);
        let mut methods = common_list(&trees, &of_label, &diff.labels, &mut judge);
        if spreads.is_some() {
            // The whole, methods and contexts are three questions, each with its own chance.
            let [of_nodes, of_labels] = judge.compared.map(deviations);
            diff.deviations = of_nodes;
            diff.scatter = judge.scatter();
            let doubts = |deviations: f64, [own, total]: [[f64; 2]; 2]| Doubt {
                own: deviations * diff.deviation(own),
                total: deviations * diff.deviation(total),
            };
            // Shares of the whole have the whole in common.
            let whole = deviations(1) * diff.deviation(judge.of_nodes[0][1]);
            for (node, variances) in tree.iter_mut().zip(judge.of_nodes) {
                node.doubt = doubts(of_nodes, variances);
            }
            for (method, variances) in methods.iter_mut().zip(judge.of_labels) {
                method.doubt = doubts(of_labels, variances);
            }
            diff.doubt = if diff.normalised { 0.0 } else { whole };
        }
        let root = tree[0].own;
        diff.overlap = overlap(tree.iter().map(|node| node.own), sums);
        diff.label_overlap = overlap(methods.iter().map(|change| change.own).chain([root]), sums);
        (diff.tree, diff.methods) = (tree, methods);
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
    pub fn scale(&self) -> f64 {
        match (self.normalised, self.sums) {
            (true, [old, new]) if new != 0 && old != 0 => old as f64 / new as f64,
            _ => 1.0,
        }
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

    /// The standard deviation of a difference whose values have these variances.
    fn deviation(&self, [old, new]: [f64; 2]) -> f64 {
        (old + self.scale() * self.scale() * new).sqrt()
    }

    /// Something that [`Diff::delta`] is off by, as a share of the whole of the old profile.
    pub fn doubt_share(&self, doubt: f64) -> f64 {
        // Out of nothing anything is infinitely more, by chance as well.
        if doubt == 0.0 { 0.0 } else { doubt / (self.sums[0] as f64).abs() }
    }

    /// Whether a difference may be chance; `None` if two recordings do not tell.
    pub fn may_be_chance(&self, values: [i64; 2], doubt: f64) -> Option<bool> {
        match self.noise {
            Noise::None => Some(false),
            Noise::Samples => Some(self.delta(values).abs() <= doubt),
            Noise::Unknown => None,
        }
    }

    /// How many contexts differ by their own values, and the first of them from the outside
    /// inwards: what is below it may only follow from it.
    pub fn first_difference(&self) -> (usize, Option<usize>) {
        let mut depths = vec![0_u32; self.tree.len()];
        for at in 1..self.tree.len() {
            depths[at] = depths[self.tree[at].parent] + 1;
        }
        let differ = |at: &usize| self.tree[*at].own[0] != self.tree[*at].own[1];
        let count = (0..self.tree.len()).filter(differ).count();
        let least = (0..self.tree.len()).filter(differ).map(|at| depths[at]).min();
        let nearest = (0..self.tree.len()).filter(|at| Some(depths[*at]) == least).filter(differ);
        (count, nearest.min_by_key(|at| self.path(*at)))
    }

    /// The largest growth that chance cannot explain: of the whole, or of one label's own values.
    pub fn worst(&self) -> Growth {
        let growth = |label, values, doubt| {
            let share = self.delta_share(values);
            Growth { label, share, at_least: share - self.doubt_share(doubt) }
        };
        // Of shares the whole is the same, but for rounding.
        let sums = if self.normalised { [0; 2] } else { self.sums };
        let whole = growth(None, sums, self.doubt);
        let at_least =
            |change: &Change| self.delta_share(change.own) - self.doubt_share(change.doubt.own);
        let method = self.of_program().max_by(|a, b| at_least(a).total_cmp(&at_least(b)));
        let method = method.map(|m| growth(Some(m.label.clone()), m.own, m.doubt.own));
        method.filter(|method| method.at_least > whole.at_least).unwrap_or(whole)
    }

    /// Methods, without the lines that stand for threads of the JVM and others that run no Java:
    /// how much those did is in the whole, and which of them it was is no matter of the program.
    fn of_program(&self) -> impl Iterator<Item = &Change> {
        let is_aside = |label: &str| [OF_JVM, OF_NATIVE, NO_JAVA].contains(&label);
        self.methods.iter().filter(move |change| !is_aside(&change.label))
    }

    /// The largest growth as it was measured, chance or not.
    pub fn largest(&self) -> f64 {
        let methods = self.of_program().map(|change| self.delta_share(change.own));
        let whole = if self.normalised { 0.0 } else { self.delta_share(self.sums) };
        methods.fold(whole, f64::max)
    }
}

/// How much values scatter: of nodes and of labels, own and total, in both profiles.
struct Judge {
    spreads: Option<[Spread; 2]>,
    normalise: bool,
    of_nodes: Vec<[[f64; 2]; 2]>,
    of_labels: Vec<[[f64; 2]; 2]>,
    /// The sum of own values of labels, and how much they scatter in all.
    sums: [[f64; 2]; 2],
    /// How many nodes and labels have enough samples to be compared.
    compared: [usize; 2],
}

impl Judge {
    fn new(spreads: Option<[Spread; 2]>, normalise: bool) -> Self {
        let (of_nodes, of_labels) = (Vec::new(), Vec::new());
        Judge { spreads, normalise, of_nodes, of_labels, sums: [[0.0; 2]; 2], compared: [0; 2] }
    }

    fn of(&self, which: usize, values: &[i64], whole: &[i64]) -> f64 {
        let whole = self.normalise.then_some(whole);
        self.spreads.map_or(0.0, |spreads| spreads[which].variance(values, whole))
    }

    fn samples(&self, which: usize, values: &[i64]) -> f64 {
        self.spreads.map_or(0.0, |spreads| spreads[which].samples(values))
    }

    fn nodes(&mut self, which: usize, own: &Columns, total: &Columns, samples: &mut [f64]) {
        self.of_nodes.resize(own.len(), Default::default());
        for (at, samples) in samples.iter_mut().enumerate() {
            *samples += self.samples(which, total.row(at));
            for (kind, columns) in [own, total].into_iter().enumerate() {
                let variance = self.of(which, columns.row(at), total.row(0));
                self.of_nodes[at][kind][which] = variance;
            }
        }
    }

    fn scatter(&self) -> [f64; 2] {
        self.sums.map(|[sum, variance]| if sum > 0.0 { variance / sum } else { 0.0 })
    }
}

/// How many have enough samples to be told from chance at all.
fn enough(samples: &[f64]) -> usize {
    samples.iter().filter(|samples| **samples >= TOO_FEW).count()
}

/// Rows of values, one for each series of a tree.
struct Columns {
    width: usize,
    values: Vec<i64>,
}

impl Columns {
    fn new(width: usize, rows: usize) -> Self {
        Columns { width, values: vec![0; width * rows] }
    }

    fn len(&self) -> usize {
        self.values.len() / self.width
    }

    fn row(&self, at: usize) -> &[i64] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    fn add(&mut self, at: usize, values: impl Iterator<Item = i64>) {
        let row = &mut self.values[at * self.width..(at + 1) * self.width];
        row.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(value));
    }

    /// Adds one row to another.
    fn join(&mut self, from: usize, to: usize) {
        for column in 0..self.width {
            let value = self.values[from * self.width + column];
            let sum = &mut self.values[to * self.width + column];
            *sum = sum.saturating_add(value);
        }
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

fn common_tree(trees: &[Tree; 2], of_label: &[Vec<u32>; 2], judge: &mut Judge) -> Vec<DiffNode> {
    let new = |parent: u32, label: u32| DiffNode {
        parent: parent as usize,
        label: label as usize,
        own: [0; 2],
        total: [0; 2],
        doubt: Doubt::default(),
    };
    // The first label of both trees is the root's.
    let mut nodes = vec![new(0, 0)];
    let mut known = Contexts::default();
    let mut places = [Vec::new(), Vec::new()];
    for (which, tree) in trees.iter().enumerate() {
        let mut place = vec![0_u32; tree.len()];
        for node in tree.nodes() {
            let Some(parent) = tree.parent(node) else { continue };
            let above = place[parent.index()];
            let label = of_label[which][tree.label_id(node).index()];
            let node_here = known.child(ContextId::new(above), FrameId::new(label)).raw();
            if node_here as usize == nodes.len() {
                nodes.push(new(above, label));
            }
            place[node.index()] = node_here;
        }
        places[which] = place;
    }
    let mut samples = vec![0.0; nodes.len()];
    for (which, (tree, place)) in trees.iter().zip(places).enumerate() {
        let mut own = Columns::new(tree.metrics(), nodes.len());
        for node in tree.nodes() {
            let values = (0..tree.metrics()).map(|metric| tree.own(metric, node));
            own.add(place[node.index()] as usize, values);
        }
        let mut total = Columns { width: own.width, values: own.values.clone() };
        for at in (1..nodes.len()).rev() {
            total.join(at, nodes[at].parent);
        }
        for (at, node) in nodes.iter_mut().enumerate() {
            (node.own[which], node.total[which]) = (own.row(at)[0], total.row(at)[0]);
        }
        if judge.spreads.is_some() {
            judge.nodes(which, &own, &total, &mut samples);
        }
    }
    judge.compared[0] = enough(&samples);
    nodes
}

fn common_list(
    trees: &[Tree; 2],
    of_label: &[Vec<u32>; 2],
    texts: &[String],
    judge: &mut Judge,
) -> Vec<Change> {
    let new = |label: &String| Change {
        label: label.clone(),
        own: [0; 2],
        total: [0; 2],
        doubt: Doubt::default(),
    };
    let mut changes: Vec<Change> = texts.iter().map(new).collect();
    let mut seen = vec![false; texts.len()];
    let mut variances = vec![[[0.0; 2]; 2]; texts.len()];
    let mut samples = vec![0.0; texts.len()];
    for (which, tree) in trees.iter().enumerate() {
        let mut columns = [(); 2].map(|()| Columns::new(tree.metrics(), texts.len()));
        for Hot { label, own, total } in hot_list(tree) {
            let name = of_label[which][label.index()] as usize;
            seen[name] = true;
            columns[0].add(name, own.into_iter());
            columns[1].add(name, total.into_iter());
        }
        let whole: Vec<i64> = (0..tree.metrics()).map(|metric| tree.sum(metric)).collect();
        for name in (0..texts.len()).filter(|name| seen[*name]) {
            let [own, total] = [columns[0].row(name), columns[1].row(name)];
            (changes[name].own[which], changes[name].total[which]) = (own[0], total[0]);
            variances[name][0][which] = judge.of(which, own, &whole);
            variances[name][1][which] = judge.of(which, total, &whole);
            samples[name] += judge.samples(which, total);
            judge.sums[which][0] += own[0].max(0) as f64;
            judge.sums[which][1] += variances[name][0][which];
        }
    }
    judge.compared[1] = enough(&samples);
    let kept = |name: &usize| seen[*name];
    judge.of_labels = (0..texts.len()).filter(kept).map(|name| variances[name]).collect();
    let numbered = changes.into_iter().enumerate();
    numbered.filter(|(name, _)| kept(name)).map(|(_, change)| change).collect()
}

fn overlap(values: impl Iterator<Item = [i64; 2]>, sums: [i64; 2]) -> f64 {
    let share = |value: i64, sum: i64| if sum > 0 { value.max(0) as f64 / sum as f64 } else { 0.0 };
    values.map(|[old, new]| share(old, sums[0]).min(share(new, sums[1]))).sum()
}
