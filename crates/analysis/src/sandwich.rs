//! A label between two trees: all that it called, merged, and all that called it.

use crate::hash::{PairMap, pair};
use crate::tree::{LabelId, NodeId, Tree};

/// More nodes than this are not made of callers: a picture shows far fewer, and every node of the
/// tree could have a way up of its own.
const CALLERS: usize = 1 << 20;

impl Tree {
    /// One node for a label, and below it all that it called, wherever that was. A recursion is
    /// called by the call around it, so the sum is what the label takes in all.
    #[must_use]
    pub fn callees_of(&self, label: LabelId) -> Tree {
        let mut out = Tree::empty(self.all_labels().to_vec(), self.metrics());
        let mut known: PairMap<u32> = PairMap::default();
        // For each node where it is in the new tree; the root is where nothing of it is.
        let mut place = vec![0_u32; self.len()];
        for node in self.nodes().skip(1) {
            let above = self.parent(node).map_or(0, |parent| place[parent.index()]);
            let own = self.label_id(node);
            if above == 0 && own != label {
                continue;
            }
            let at = *known.entry(pair(above, own.0)).or_insert_with(|| out.add(above, own.0));
            place[node.index()] = at;
            for metric in 0..self.metrics() {
                out.add_value(metric, at, self.own(metric, node));
            }
        }
        out.finish()
    }

    /// One node for a label, and below it who called it, below that who called them; with the same
    /// sum as [`Tree::callees_of`].
    #[must_use]
    pub fn callers_of(&self, label: LabelId) -> Tree {
        let mut out = Tree::empty(self.all_labels().to_vec(), self.metrics());
        let mut known: PairMap<u32> = PairMap::default();
        let mut inside = vec![false; self.len()];
        for node in self.nodes().skip(1) {
            let parent = self.parent(node).unwrap_or(NodeId::ROOT);
            let is_label = self.label_id(node) == label;
            inside[node.index()] = inside[parent.index()] || is_label;
            if inside[parent.index()] || !is_label {
                continue;
            }
            let (mut at, mut from) = (0, node);
            while from != NodeId::ROOT && out.len() < CALLERS {
                let own = self.label_id(from).0;
                at = *known.entry(pair(at, own)).or_insert_with(|| out.add(at, own));
                from = self.parent(from).unwrap_or(NodeId::ROOT);
            }
            for metric in 0..self.metrics() {
                out.add_value(metric, at, self.total(metric, node));
            }
        }
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Filter, Tree, neighbours};
    use tare_profile::{Frame, Method, Profile, Row, SeriesInfo, ThreadId, ValueKind};

    /// A profile of stacks, written as letters.
    fn tree(stacks: &[(&str, i64)]) -> Tree {
        let mut profile = Profile::new();
        let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::Samples));
        for (stack, value) in stacks {
            let frames: Vec<_> = stack
                .chars()
                .map(|letter| {
                    let name = profile.strings.intern(&letter.to_string());
                    let method = profile.methods.intern(Method { name, ..Method::default() });
                    profile.frames.intern(Frame::of(method))
                })
                .collect();
            let context = profile.contexts.stack(frames);
            profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, *value));
        }
        Tree::build(&profile, &[series], &Filter::default()).unwrap()
    }

    fn told(tree: &Tree) -> Vec<String> {
        let path = |mut node| {
            let mut text = String::new();
            while let Some(parent) = tree.parent(node) {
                text.insert_str(0, &tree.label_of(node).text);
                node = parent;
            }
            text
        };
        let mut lines: Vec<String> =
            tree.nodes().skip(1).map(|n| format!("{} {}", path(n), tree.total(0, n))).collect();
        lines.sort();
        lines
    }

    #[test]
    fn both_halves_have_the_sum_that_the_neighbours_have() {
        let tree = tree(&[("abc", 1), ("xbc", 2), ("abdb", 4), ("ab", 8), ("ac", 16), ("b", 32)]);
        let label = tree.labels().find(|(_, label)| label.text == "b").unwrap().0;
        let callees = tree.callees_of(label);
        assert_eq!(told(&callees), ["b 47", "bc 3", "bd 4", "bdb 4"]);
        let callers = tree.callers_of(label);
        assert_eq!(told(&callers), ["b 47", "ba 13", "bx 2"]);
        let around = neighbours(&tree, label);
        assert_eq!((callees.sum(0), callers.sum(0), around.total), (47, 47, 47));
    }
}
