//! Sessions in which one call of a root in so many is followed: what the trees of those calls tell
//! of all calls, how far that may be off, and which calls were kept whole.
//!
//! A root's own calls are all counted and timed. What lies below was measured in the calls that
//! were followed, each with the weight of as many calls as one was drawn of at that moment. Its
//! calls are scaled so that the weights add up to the calls of the root; its times, so that the
//! times of followed calls with their weights add up to what all calls of the root took. So times
//! add up to what the root's calls took, most of which ran without probes.

use crate::layout::{self, PAGE, header, kept, node, others, tree};
use crate::nodes::Node;
use crate::spread::Spread;
use crate::tree::{Tree, u32_at, u64_at};
use std::collections::HashMap;

/// How far the figures of a context may be off: variances, of ticks squared but for the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Variances {
    pub calls: f64,
    pub own: f64,
    pub total: f64,
}

/// What is known of the calls of a root, as they were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RootCalls {
    pub root: i32,
    /// All of them, and the ticks that they took.
    pub calls: u64,
    pub ticks: u64,
    /// Of these, the ones that were followed.
    pub followed: u64,
    pub followed_ticks: u64,
    /// Ticks that following took beside them.
    pub beside: u64,
    /// The variance of what a followed call took.
    pub variance: f64,
}

/// What a session tells of the calls of its roots, beside its trees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FollowedCalls {
    /// Those that are kept whole.
    pub kept: Vec<KeptCall>,
    /// What is known of each root's calls.
    pub roots: Vec<RootCalls>,
    /// How long the calls of contexts took.
    pub spreads: Vec<Spread>,
    /// Calls whose length found no room there.
    pub unspread: u64,
}

/// Makes estimates of the figures of trees, and tells what is known of the calls of roots.
pub(crate) fn known(bytes: &[u8], trees: &mut [Tree]) -> FollowedCalls {
    let nodes = || trees.iter().flat_map(|tree| tree.nodes.iter()).map(|node| node.at as usize);
    let sums = nodes().map(|at| (at as u32, Sums::read(bytes, at))).collect();
    let spreads = nodes().filter_map(|at| Spread::read(bytes, at)).collect();
    let unspread = u64_at(bytes, header::UNSPREAD).unwrap_or(0);
    let roots = estimate(trees, &sums);
    FollowedCalls { kept: Vec::new(), roots, spreads, unspread }
}

/// Sums over calls of a root: of what a context did in each of them, with what that adds to the
/// variance of a sum of weights.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    calls: f64,
    own: f64,
    total: f64,
    /// Of its own time in a call with what that call took.
    with_own: f64,
    with_total: f64,
    with_calls: f64,
    /// Of the node that counts a root's other calls, in the same places.
    weights: Weights,
}

/// Sums of weights of followed calls, see [`others`].
#[derive(Clone, Copy, Debug, Default)]
struct Weights {
    calls: f64,
    ticks: f64,
    spread: f64,
    squares: f64,
    beside: f64,
}

impl Sums {
    /// Of the node at a place.
    pub(crate) fn read(bytes: &[u8], at: usize) -> Self {
        let real = |field| f64::from_bits(u64_at(bytes, at + field).unwrap_or(0));
        // A float that is none, in damaged bytes, is zero.
        let real = |field| Some(real(field)).filter(|real| real.is_finite()).unwrap_or(0.0);
        Sums {
            calls: real(node::SQUARE_CALLS),
            own: real(node::SQUARE_OWN),
            total: real(node::SQUARE_TOTAL),
            with_own: real(node::WITH_OWN),
            with_total: real(node::WITH_TOTAL),
            with_calls: real(node::WITH_CALLS),
            weights: Weights {
                calls: real(others::WEIGHTS),
                ticks: real(others::TICKS),
                spread: real(others::SPREAD),
                squares: real(others::SQUARES),
                beside: real(others::BESIDE),
            },
        }
    }
}

/// A call that was kept whole.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptCall {
    /// The method that was called: a root.
    pub root: i32,
    /// The position, in the snapshot, of the tree of the thread that ran it.
    pub thread: Option<usize>,
    /// Ticks when it began, and ticks that it took.
    pub begun: u64,
    pub took: u64,
    /// One of the slowest of its root; one that was drawn.
    pub slow: bool,
    pub drawn: bool,
    /// Its contexts, as in any tree, the root node first.
    pub tree: Tree,
}

/// Of fewer followed calls than these a thread's own rate is not known: such threads have one
/// together.
const FEW: u64 = 8;

/// The calls of one root.
#[derive(Clone, Copy, Debug, Default)]
struct Stratum {
    calls: u64,
    ticks: u64,
    followed: u64,
    followed_ticks: u64,
    weights: Weights,
}

impl Stratum {
    fn add(&mut self, other: Stratum) {
        self.calls += other.calls;
        self.ticks = self.ticks.saturating_add(other.ticks);
        self.followed += other.followed;
        self.followed_ticks = self.followed_ticks.saturating_add(other.followed_ticks);
        self.weights.calls += other.weights.calls;
        self.weights.ticks += other.weights.ticks;
        self.weights.spread += other.weights.spread;
        self.weights.squares += other.weights.squares;
        self.weights.beside += other.weights.beside;
    }

    /// By what sums of weighted calls and ticks are multiplied, so that they fit all calls.
    fn scales(&self) -> Option<(f64, f64)> {
        let weights = Some(self.weights).filter(|weights| weights.calls > 0.0)?;
        let calls = self.calls as f64 / weights.calls;
        let ticks = if weights.ticks > 0.0 { self.ticks as f64 / weights.ticks } else { calls };
        Some((calls, ticks))
    }

    fn known(&self, root: i32) -> RootCalls {
        let mean = self.followed_ticks as f64 / (self.followed as f64).max(1.0);
        let square = match self.weights.spread {
            spread if spread > 0.0 => self.weights.squares / spread,
            _ => 0.0,
        };
        RootCalls {
            root,
            calls: self.calls,
            ticks: self.ticks,
            followed: self.followed,
            followed_ticks: self.followed_ticks,
            beside: self.weights.beside as u64,
            variance: (square - mean * mean).max(0.0),
        }
    }
}

/// Where in a tree the calls of a root are: those that were followed, and the others.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    followed: Option<usize>,
    other: Option<usize>,
}

/// Turns figures of followed calls into those of all calls. A node that counts calls which were not
/// followed becomes one of their method; whoever adds up contexts has all calls. What is known of
/// the calls of each root.
fn estimate(trees: &mut [Tree], sums: &HashMap<u32, Sums>) -> Vec<RootCalls> {
    let places: Vec<HashMap<i32, Places>> = trees.iter().map(roots_of).collect();
    let mut few: HashMap<i32, Stratum> = HashMap::new();
    for (tree, places) in trees.iter().zip(&places) {
        for (root, places) in places {
            let stratum = stratum(tree, *places, sums);
            if stratum.followed < FEW {
                few.entry(*root).or_default().add(stratum);
            }
        }
    }
    let mut all: HashMap<i32, Stratum> = HashMap::new();
    for (tree, places) in trees.iter_mut().zip(&places) {
        for (root, places) in places {
            let own = stratum(tree, *places, sums);
            all.entry(*root).or_default().add(own);
            let of = if own.followed < FEW { few.get(root).copied() } else { Some(own) };
            if let (Some(followed), Some(scales)) = (places.followed, of.and_then(|of| of.scales()))
            {
                scale(tree, followed, own, scales, sums);
            }
            if let Some(other) = places.other {
                let counted = Node { method: *root, ..tree.nodes.get(other) };
                tree.nodes.set(other, counted);
            }
        }
    }
    let mut all: Vec<RootCalls> = all.iter().map(|(root, all)| all.known(*root)).collect();
    all.sort_unstable_by_key(|calls| calls.root);
    all
}

fn roots_of(tree: &Tree) -> HashMap<i32, Places> {
    let mut places: HashMap<i32, Places> = HashMap::new();
    for (at, node) in tree.nodes.iter().enumerate().skip(1).filter(|(_, node)| node.parent == 0) {
        if node.method > 0 {
            places.entry(node.method).or_default().followed = Some(at);
        } else if let Some(root) = layout::unfollowed(node.method) {
            places.entry(root).or_default().other = Some(at);
        }
    }
    places
}

fn stratum(tree: &Tree, places: Places, sums: &HashMap<u32, Sums>) -> Stratum {
    let node = |at: Option<usize>| at.map(|at| tree.nodes.get(at));
    let (followed, other) = (node(places.followed), node(places.other));
    let count = |node: Option<Node>| node.map_or(0, |node| node.count);
    let ticks = |node: Option<Node>| node.map_or(0, |node| node.total);
    let weights = other.and_then(|node| sums.get(&node.at));
    Stratum {
        calls: count(followed).saturating_add(count(other)),
        ticks: ticks(followed).saturating_add(ticks(other)),
        followed: count(followed),
        followed_ticks: ticks(followed),
        weights: weights.map(|sums| sums.weights).unwrap_or_default(),
    }
}

/// Scales what is below a root, and tells how far it may be off.
fn scale(
    tree: &mut Tree,
    root: usize,
    own: Stratum,
    (calls, ticks): (f64, f64),
    sums: &HashMap<u32, Sums>,
) {
    tree.variances.resize(tree.nodes.len(), Variances::default());
    // A parent comes before its children.
    let mut below = vec![false; tree.nodes.len()];
    below[root] = true;
    let mut net: Vec<f64> = tree.nodes.iter().map(|node| node.total as f64).collect();
    // The root has its times as they were, what is below it with their weights.
    net[root] = own.weights.ticks;
    for at in (root + 1)..tree.nodes.len() {
        let node = tree.nodes.get(at);
        below[at] = below[node.parent as usize];
        let caller = tree.caller_with_time(at);
        if below[at] && caller != at {
            net[caller] -= node.total as f64;
        }
    }
    // Of one call nobody knows how much they differ.
    let one = own.followed < 2;
    let number = own.followed as f64;
    let freedom = if one { 1.0 } else { number / (number - 1.0) };
    let rate = |sum: f64, all: f64| if one || all <= 0.0 { 0.0 } else { sum / all };
    for at in root..tree.nodes.len() {
        if !below[at] {
            continue;
        }
        let mut node = tree.nodes.get(at);
        let sums = sums.get(&node.at).copied().unwrap_or_default();
        // What remains of a context's figures where they do not go with those of the root's call.
        let rest = |rate: f64, squares: f64, with: f64, of_root: f64| {
            (squares - 2.0 * rate * with + rate * rate * of_root).max(0.0)
        };
        let per_call = rate(node.count as f64, own.weights.calls);
        let of_calls = rest(per_call, sums.calls, sums.with_calls, own.weights.spread);
        let of_ticks = |sum: f64, squares: f64, with: f64| {
            rest(rate(sum, own.weights.ticks), squares, with, own.weights.squares)
        };
        let of_total = of_ticks(node.total as f64, sums.total, sums.with_total);
        let of_own = of_ticks(net[at], sums.own, sums.with_own);
        let variance = |scale: f64, rest: f64| scale * scale * freedom * rest;
        tree.variances[at] = Variances {
            calls: if at == root { 0.0 } else { variance(calls, of_calls) },
            own: variance(ticks, of_own),
            total: if at == root { 0.0 } else { variance(ticks, of_total) },
        };
        if at != root {
            node.count = (node.count as f64 * calls).round() as u64;
            node.total = (node.total as f64 * ticks).round() as u64;
            node.calling = (node.calling as f64 * calls).round() as u64;
            tree.nodes.set(at, node);
        }
    }
}

/// The calls that were kept whole, out of the trees of followed calls.
pub(crate) fn kept_calls(bytes: &[u8], trees: &[Tree], followed: Vec<Tree>) -> Vec<KeptCall> {
    let most = u32_at(bytes, header::KEPT).unwrap_or(0).min(kept::MOST) as usize;
    let from = u32_at(bytes, header::KEPT_AT).unwrap_or(0) as usize;
    let mut lists: HashMap<u32, (bool, bool)> = HashMap::new();
    for page in (0..kept::ROOTS).map(|number| from + number * PAGE).filter(|_| from > 0) {
        for number in 0..2 * most {
            let at = page + kept::FIRST + number * kept::PLACE;
            let tree = u32_at(bytes, at).unwrap_or(0);
            let entry = lists.entry(tree).or_default();
            entry.0 |= number < most;
            entry.1 |= number >= most;
        }
    }
    let by_place: HashMap<u32, usize> = trees.iter().map(|t| t.at).zip(0..).collect();
    let mut kept: Vec<KeptCall> = Vec::new();
    for tree in followed {
        let Some((slow, drawn)) = lists.get(&tree.at).copied() else { continue };
        // Beside the root's rest.
        let called = tree.nodes.iter().find(|node| node.parent == 0 && node.method > 0);
        let Some(root) = called.map(|node| node.method) else { continue };
        let field = |at| u64_at(bytes, tree.at as usize + at).unwrap_or(0);
        let owner = u32_at(bytes, tree.at as usize + tree::OWNER).unwrap_or(0);
        kept.push(KeptCall {
            root,
            thread: by_place.get(&owner).copied(),
            begun: field(tree::BEGUN),
            took: field(tree::TOOK),
            slow,
            drawn,
            tree,
        });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Nodes;

    fn node(at: u32, parent: u32, method: i32, count: u64, total: u64) -> Node {
        Node { at, parent, method, count, total, ..Node::default() }
    }

    /// Calls of root 7 of a thread, of which some were followed; below it is method 8, with the
    /// weights of the followed calls.
    fn tree(others: (u64, u64), followed: (u64, u64), below: (u64, u64)) -> Tree {
        Tree {
            nodes: Nodes::from_iter([
                node(0, 0, layout::ROOT, 0, 0),
                node(128, 0, layout::UNFOLLOWED - 7, others.0, others.1),
                node(256, 0, 7, followed.0, followed.1),
                node(384, 2, 8, below.0, below.1),
            ]),
            ..Tree::default()
        }
    }

    /// What the node of the other calls has of followed ones: how many with a weight and a length.
    fn weights(calls: &[(f64, f64, f64)]) -> Sums {
        let sum = |of: fn(f64, f64) -> f64| -> f64 {
            calls.iter().map(|(number, weight, ticks)| number * of(*weight, *ticks)).sum()
        };
        let weights = Weights {
            calls: sum(|weight, _| weight),
            ticks: sum(|weight, ticks| weight * ticks),
            spread: sum(|weight, _| weight * weight - weight),
            squares: sum(|weight, ticks| (weight * weight - weight) * ticks * ticks),
            beside: 3.0,
        };
        Sums { weights, ..Sums::default() }
    }

    #[test]
    fn what_is_below_a_root_stands_for_all_its_calls() {
        let mut trees = [tree((90, 900), (10, 200), (200, 1_000))];
        let known = estimate(&mut trees, &HashMap::from([(128, weights(&[(10.0, 10.0, 20.0)]))]));
        let seen: Vec<_> = trees[0].nodes.iter().map(|n| (n.method, n.count, n.total)).collect();
        // A hundred calls for ten; and 1,100 ticks for 200, since calls without probes are quicker.
        assert_eq!(seen, [(layout::ROOT, 0, 0), (7, 90, 900), (7, 10, 200), (8, 200, 550)]);
        let all = RootCalls {
            root: 7,
            calls: 100,
            ticks: 1_100,
            followed: 10,
            followed_ticks: 200,
            beside: 3,
            variance: 0.0,
        };
        assert_eq!(known, [all]);
    }

    #[test]
    fn calls_count_by_what_was_drawn_when_they_began() {
        // Ten calls of one in two, and one of one in a hundred, which alone came to method 8: as
        // often as 100 of 120 calls do.
        let mut trees = [tree((109, 1_090), (11, 110), (100, 500))];
        let of_calls = weights(&[(10.0, 2.0, 10.0), (1.0, 100.0, 10.0)]);
        estimate(&mut trees, &HashMap::from([(128, of_calls)]));
        assert_eq!((trees[0].nodes.get(3).count, trees[0].nodes.get(3).total), (100, 500));
    }

    #[test]
    fn a_thread_of_which_no_call_was_followed_counts_for_the_others() {
        let mut trees = [tree((4, 40), (0, 0), (0, 0)), tree((4, 40), (2, 20), (15, 25))];
        trees[0].nodes = trees[0].nodes.iter().take(2).collect();
        let other = Node { at: 512, ..trees[1].nodes.get(1) };
        trees[1].nodes.set(1, other);
        estimate(&mut trees, &HashMap::from([(512, weights(&[(2.0, 2.5, 10.0)]))]));
        assert_eq!((trees[0].nodes.get(1).method, trees[0].nodes.get(1).count), (7, 4));
        // Ten calls for two, 100 ticks for 20.
        assert_eq!((trees[1].nodes.get(3).count, trees[1].nodes.get(3).total), (30, 50));
    }

    #[test]
    fn an_interval_follows_from_how_much_followed_calls_differ() {
        // Ten of a hundred calls, each of 10 ticks; method 8 took 10 in five of them, called once.
        let mut trees = [tree((90, 900), (10, 100), (50, 500))];
        let spread = 10.0 * 10.0 - 10.0;
        let of = |calls: f64, own: f64, total: f64| Sums {
            calls: spread * calls,
            own: spread * own,
            total: spread * total,
            with_own: spread * own,
            with_total: spread * total,
            with_calls: spread * calls,
            ..Sums::default()
        };
        let (alike, some) = (of(10.0, 0.0, 1_000.0), of(5.0, 500.0, 500.0));
        let sums = [(128, weights(&[(10.0, 10.0, 10.0)])), (256, alike), (384, some)];
        estimate(&mut trees, &HashMap::from(sums));
        let root = trees[0].variances[2];
        assert_eq!((root.calls, root.total), (0.0, 0.0));
        let below = trees[0].variances[3];
        // 10 · 9 · 10/9 · (5 − 2·½·5 + ¼·10), and the same with 500 − 2·½·500 + ¼·1,000.
        assert!((below.calls - 250.0).abs() < 1e-6, "{below:?}");
        assert!((below.total - 25_000.0).abs() < 1e-6, "{below:?}");
        assert_eq!(below.own, below.total);
    }
}
