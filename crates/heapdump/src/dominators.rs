//! Which objects keep which others alive alone: the dominator tree by the Semi-NCA algorithm, and
//! retained sizes by one sweep over it.
//!
//! Everything here is by *place*, a node's number in the order of a depth-first search from the
//! roots, where 0 stands for the JVM that holds all roots. A dominator has a lower place than what
//! it dominates.

use crate::graph::{Graph, List, UNIT};
use crate::ids::Node;
use crate::index::Column;
use crate::levels::Levels;
use crate::progress::Progress;

pub type Place = u32;

/// Whatever an index claims, places lead upwards here, and to nodes that are there.
pub struct Tree {
    /// The node at each place; that of place 0 means nothing.
    pub(crate) order: Column<Node>,
    /// The place of each node, 0 for what cannot be reached.
    pub(crate) place: Column<Place>,
    /// From where the search came.
    pub(crate) parent: Column<Place>,
    /// Who else refers to each place.
    pub(crate) referrers: Referrers,
    pub(crate) dominator: Column<Place>,
    pub(crate) retained: Column<u64>,
}

/// [`Lists`] that are done.
pub struct Referrers {
    pub(crate) base: Column<u64>,
    pub(crate) offset: Column<u32>,
    pub(crate) all: Column<Place>,
}

impl Referrers {
    fn begin(&self, place: usize) -> usize {
        let offset = u64::from(self.offset.get(place));
        let begin = self.base.get(place / GROUP).saturating_add(offset);
        begin.min(self.all.len() as u64) as usize
    }
}

/// Lists of places one after the other.
struct Lists {
    /// Where the lists of every so many places begin, and the distance from there.
    base: Vec<u64>,
    offset: Vec<u32>,
    all: Vec<Place>,
}

const GROUP: usize = 1 << 12;

/// No JVM has more.
const LARGEST_HEAP: u64 = 16 << 40;

impl Lists {
    fn begin(&self, place: usize) -> usize {
        (self.base[place / GROUP] + u64::from(self.offset[place])) as usize
    }

    #[inline]
    fn get(&self, place: Place) -> &[Place] {
        let place = place as usize;
        &self.all[self.begin(place)..self.begin(place + 1)]
    }
}

/// A depth-first search that is done.
struct Search {
    order: Vec<Node>,
    place: Vec<Place>,
    parent: Vec<Place>,
    /// How many refer to each place, without the one from which the search came; and one more.
    others: Vec<u32>,
}

/// A list that the search is in.
#[derive(Clone, Copy)]
struct Inside {
    place: Place,
    list: List,
    /// How far it is done, and how many references of it are to be kept.
    done: u32,
    kept: u32,
}

/// Searches from the roots. Those whose lists are not done are on a stack of their own, so that a
/// list of millions of elements is no danger.
///
/// The lists of what was reached have places in place of nodes afterwards, and only those from
/// which the search did not come.
fn search(graph: &mut Graph, progress: &dyn Progress) -> Search {
    let count = graph.len();
    let mut place: Vec<Place> = vec![0; count];
    let mut order: Vec<Node> = vec![0; count + 1];
    let mut parent: Vec<Place> = vec![0; count + 1];
    let mut others: Vec<u32> = vec![0; count + 2];
    let mut last: Place = 0;
    let mut above: Vec<Inside> = Vec::new();
    for root in std::mem::take(&mut graph.roots) {
        if place[root as usize] != 0 {
            continue;
        }
        last += 1;
        place[root as usize] = last;
        order[last as usize] = root;
        let Some(list) = graph.list_of(root) else { continue };
        let mut here = Inside { place: last, list, done: 0, kept: 0 };
        loop {
            let list = graph.references(here.list);
            if here.done as usize == list.len() {
                graph.shorten(here.list, here.kept);
                let Some(before) = above.pop() else { break };
                here = before;
                continue;
            }
            let node = list[here.done as usize];
            here.done += 1;
            let known = place[node as usize];
            if known != 0 {
                if parent[known as usize] != here.place {
                    list[here.kept as usize] = known;
                    here.kept += 1;
                    others[known as usize] += 1;
                }
                continue;
            }
            last += 1;
            place[node as usize] = last;
            order[last as usize] = node;
            parent[last as usize] = here.place;
            if let Some(list) = graph.list_of(node) {
                above.push(here);
                here = Inside { place: last, list, done: 0, kept: 0 };
            }
            if last.is_multiple_of(1 << 20) {
                progress.tell("searching", u64::from(last), count as u64);
            }
        }
    }
    order.truncate(last as usize + 1);
    parent.truncate(last as usize + 1);
    others.truncate(last as usize + 2);
    order.shrink_to_fit();
    parent.shrink_to_fit();
    others.shrink_to_fit();
    Search { order, place, parent, others }
}

/// Who refers to each place, without the one from which the search came.
fn referrers(graph: &Graph, places: &[Place], others: Vec<u32>) -> Lists {
    let mut offset = others;
    let mut base = Vec::with_capacity(offset.len() / GROUP + 1);
    let mut sum = 0_u64;
    for (place, offset) in offset.iter_mut().enumerate() {
        if place % GROUP == 0 {
            base.push(sum);
        }
        let length = *offset;
        *offset = (sum - base[place / GROUP]).min(u64::from(u32::MAX)) as u32;
        sum += u64::from(length);
    }
    let mut lists = Lists { base, offset, all: vec![0; sum as usize] };
    // In the order of nodes, as their lists are: only what is written is all over the place.
    for (node, from) in (0..).zip(places).filter(|(_, place)| **place != 0) {
        for to in graph.list(node) {
            // Filled from the front: the beginning of each list moves to its end.
            let at = lists.begin(*to as usize);
            lists.all[at] = *from;
            lists.offset[*to as usize] += 1;
        }
    }
    lists.move_back();
    lists
}

impl Lists {
    /// After each beginning has moved to the end of its list: the end of one is the beginning of
    /// the next, and the first of a group begins at the group's base.
    fn move_back(&mut self) {
        for group in self.offset.chunks_mut(GROUP) {
            group.copy_within(..group.len() - 1, 1);
            group[0] = 0;
        }
    }
}

/// A place in the forest of those that are done: the next one above that is known, and the lowest
/// semidominator on the way there.
#[derive(Clone, Copy)]
struct Link {
    above: Place,
    lowest: Place,
}

/// The immediate dominator of each place.
fn dominators(parent: &[Place], referrers: &Lists, progress: &dyn Progress) -> Vec<Place> {
    let count = parent.len();
    let mut links: Vec<Link> =
        (0..).zip(parent).map(|(place, above)| Link { above: *above, lowest: place }).collect();
    let mut semi: Vec<Place> = vec![0; count];
    let mut way = Vec::new();
    for here in (1..count as Place).rev() {
        let mut lowest = parent[here as usize];
        for from in referrers.get(here) {
            let candidate =
                if *from <= here { *from } else { eval(&mut links, *from, here, &mut way) };
            lowest = lowest.min(candidate);
        }
        semi[here as usize] = lowest;
        links[here as usize].lowest = lowest;
        if here.is_multiple_of(1 << 20) {
            progress.tell("finding dominators", (count as Place - here).into(), count as u64);
        }
    }
    drop(links);
    // In place: the semidominator of each is needed until its own dominator is known.
    let mut dominator = semi;
    for here in 1..count {
        let semi = dominator[here];
        let mut candidate = parent[here];
        while candidate > semi {
            candidate = dominator[candidate as usize];
        }
        dominator[here] = candidate;
    }
    dominator
}

/// The lowest semidominator on the way up from a place, as far as places above `limit` go; later
/// ways take the short cut.
fn eval(links: &mut [Link], from: Place, limit: Place, way: &mut Vec<Place>) -> Place {
    let mut at = from;
    while links[at as usize].above > limit {
        way.push(at);
        at = links[at as usize].above;
    }
    let top = links[at as usize];
    let mut lowest = top.lowest;
    while let Some(place) = way.pop() {
        let link = &mut links[place as usize];
        lowest = lowest.min(link.lowest);
        *link = Link { above: top.above, lowest };
    }
    lowest
}

impl Tree {
    /// Uses the lists of a graph up: only the referrers stay.
    pub fn new(graph: &mut Graph, progress: &dyn Progress) -> (Tree, Levels) {
        let search = search(graph, progress);
        let levels = Levels::new(graph, &search.place);
        progress.tell("finding referrers", 0, 1);
        let Search { order, place, parent, others } = search;
        let referrers = referrers(graph, &place, others);
        graph.drop_lists();
        let dominator = dominators(&parent, &referrers, progress);
        progress.tell("adding up", 0, 1);
        let size = |place: usize| u64::from(graph.size[order[place] as usize]) * UNIT;
        let mut retained: Vec<u64> = vec![0; order.len()];
        for place in (1..retained.len()).rev() {
            retained[place] += size(place);
            retained[dominator[place] as usize] += retained[place];
        }
        let Lists { base, offset, all } = referrers;
        let tree = Tree {
            order: order.into(),
            place: place.into(),
            parent: parent.into(),
            referrers: Referrers { base: base.into(), offset: offset.into(), all: all.into() },
            dominator: dominator.into(),
            retained: retained.into(),
        };
        (tree, levels)
    }

    /// How many objects can be reached.
    pub fn reached(&self) -> usize {
        self.order.len() - 1
    }

    /// How many strong references there are between them, with those to roots.
    pub fn references(&self) -> usize {
        self.reached() + self.referrers.all.len()
    }

    /// The place of a node; `None` if nothing strong holds it.
    #[inline]
    pub fn place(&self, node: Node) -> Option<Place> {
        let place = self.place.get(node as usize);
        Some(place).filter(|place| *place != 0 && *place as usize <= self.reached())
    }

    #[inline]
    pub fn node(&self, place: Place) -> Node {
        self.order.get(place as usize).min(self.place.len() as Node - 1)
    }

    /// The place that dominates another; 0 is the JVM itself.
    #[inline]
    pub fn dominator(&self, place: Place) -> Place {
        let above = self.dominator.get(place as usize);
        if above < place { above } else { 0 }
    }

    /// Bytes that would be free without what is at a place.
    #[inline]
    pub fn retained(&self, place: Place) -> u64 {
        self.retained.get(place as usize).min(LARGEST_HEAP)
    }

    /// All that refer to a place; 0 is among them for a root.
    pub fn referrers(&self, place: Place) -> impl Iterator<Item = Place> {
        let at = place as usize;
        let others = self.referrers.begin(at)..self.referrers.begin(at + 1);
        let others = others.map(|at| self.referrers.all.get(at));
        let parent = self.parent.get(at);
        let parent = if parent < place { parent } else { 0 };
        let reached = self.reached();
        std::iter::once(parent).chain(others).filter(move |place| *place as usize <= reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    /// Numbers that look random and are the same in every run.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, limit: u32) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            ((self.0 >> 33) % u64::from(limit)) as u32
        }
    }

    type Lists = Vec<(u32, Vec<Node>)>;

    /// What can be reached from the roots without passing through a node.
    fn reach(lists: &Lists, roots: &[Node], without: Option<Node>) -> Vec<bool> {
        let mut reached = vec![false; lists.len()];
        let mut waiting: Vec<Node> = roots.to_vec();
        while let Some(node) = waiting.pop() {
            if Some(node) != without && !reached[node as usize] {
                reached[node as usize] = true;
                waiting.extend(&lists[node as usize].1);
            }
        }
        reached
    }

    /// By the definition: a node retains what cannot be reached without it, and the closest of
    /// those that dominate a node is the one that the others dominate.
    fn check(lists: &Lists, roots: &[Node]) {
        let mut graph = Graph::of_lists(lists, roots);
        let (tree, _) = Tree::new(&mut graph, &Silent);
        let all = reach(lists, roots, None);
        let without: Vec<Vec<bool>> =
            (0..lists.len() as u32).map(|node| reach(lists, roots, Some(node))).collect();
        for node in 0..lists.len() as u32 {
            let at = node as usize;
            assert_eq!(tree.place(node).is_some(), all[at], "{lists:?} {roots:?}: {node}");
            let Some(place) = tree.place(node) else { continue };
            let lost = (0..lists.len()).filter(|other| all[*other] && !without[at][*other]);
            let retained: u64 = lost.map(|other| u64::from(lists[other].0) * UNIT).sum();
            assert_eq!(tree.retained(place), retained, "{lists:?} {roots:?}: {node}");
            let dominates = |a: usize, b: usize| a != b && all[b] && !without[a][b];
            let above: Vec<usize> =
                (0..lists.len()).filter(|a| all[*a] && dominates(*a, at)).collect();
            let closest =
                above.iter().find(|a| above.iter().all(|b| a == &b || dominates(*b, **a)));
            let found = Some(tree.dominator(place)).filter(|place| *place != 0);
            let found = found.map(|place| tree.node(place) as usize);
            assert_eq!(found, closest.copied(), "{lists:?} {roots:?}: {node}");
            let mut referrers: Vec<Place> = tree.referrers(place).collect();
            referrers.sort_unstable();
            referrers.dedup();
            let mut expected: Vec<Place> = (0..lists.len() as u32)
                .filter(|from| lists[*from as usize].1.contains(&node) && !roots.contains(&node))
                .filter_map(|from| tree.place(from))
                .collect();
            if roots.contains(&node) {
                expected = vec![0];
            }
            expected.sort_unstable();
            assert_eq!(referrers, expected, "{lists:?} {roots:?}: {node}");
        }
    }

    #[test]
    fn ten_thousand_random_graphs_agree_with_the_definition() {
        let mut chance = Chance(1);
        for round in 0..10_000 {
            let count = 1 + chance.below(14);
            let density = 1 + round % 4;
            let lists: Lists = (0..count)
                .map(|node| {
                    let degree = chance.below(density + 1);
                    let list = (0..degree).map(|_| chance.below(count)).filter(|to| *to != node);
                    (1 + node, list.collect())
                })
                .collect();
            let mut roots: Vec<Node> =
                (0..1 + chance.below(3)).map(|_| chance.below(count)).collect();
            roots.sort_unstable();
            roots.dedup();
            check(&lists, &roots);
        }
    }

    #[test]
    fn larger_graphs_and_long_lists_agree_as_well() {
        let mut chance = Chance(7);
        for _ in 0..20 {
            let count = 150;
            let lists: Lists = (0..count)
                .map(|node| {
                    let near = (node + 1).min(count - 1);
                    let mut list = vec![near, chance.below(count)];
                    list.retain(|to| *to != node);
                    (1, list)
                })
                .collect();
            check(&lists, &[0]);
        }
    }

    #[test]
    fn a_list_of_a_million_needs_no_stack() {
        let count = 1_000_000_u32;
        let lists: Lists = (0..count)
            .map(|node| (1, if node + 1 < count { vec![node + 1] } else { vec![] }))
            .collect();
        let mut graph = Graph::of_lists(&lists, &[0]);
        let (tree, _) = Tree::new(&mut graph, &Silent);
        assert_eq!(tree.reached(), count as usize);
        assert_eq!(tree.retained(1), u64::from(count) * UNIT);
        assert_eq!(tree.retained(count), UNIT);
    }
}
