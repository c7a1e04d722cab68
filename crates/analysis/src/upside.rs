//! The tree upside down: who spent it on top, from where it was called below.

use crate::hash::PairMap;
use crate::labels::Label;
use crate::tree::{NodeId, Tree};

/// A node whose value is being placed, and the ancestor at which its way up has arrived.
type Traveller = (NodeId, NodeId);

impl Tree {
    /// The tree from the leaves to the root. The first level is the labels with their own values,
    /// below each its callers. A node's own value is what came from stacks that begin there, or,
    /// beyond `max_depth` levels, from anywhere above.
    ///
    /// Callers below `min_share` of the whole join in `[smaller]`: without that the result could be
    /// larger than the tree by its depth.
    #[must_use]
    pub fn bottom_up(&self, min_share: f64, max_depth: usize) -> Tree {
        let least = (self.sum(0) as f64 * min_share).abs();
        let mut out = Tree::empty(self.all_labels().to_vec(), self.metrics());
        let smaller = out.add_label(Label::folded("[smaller]"));
        let starts = self
            .nodes()
            .filter(|node| (0..self.metrics()).any(|metric| self.own(metric, *node) != 0));
        let starts: Vec<Traveller> = starts.map(|node| (node, node)).collect();
        let mut waiting = vec![(0_u32, 0_usize, starts)];
        while let Some((above, depth, travellers)) = waiting.pop() {
            // Who has arrived at the root stays; the others are sorted by where they are.
            let (stay, mut go): (Vec<_>, Vec<_>) = travellers
                .into_iter()
                .partition(|(_, at)| *at == NodeId::ROOT || depth == max_depth.max(1));
            self.settle(&mut out, above, &stay);
            // Most labels are small, and their travellers need not be sorted.
            let mut sums: PairMap<i64> = PairMap::default();
            let key = |at: NodeId| u64::from(self.label_id(at).0);
            for (from, at) in &go {
                let sum = sums.entry(key(*at)).or_default();
                *sum = sum.saturating_add(self.own(0, *from));
            }
            sums.retain(|_, sum| (*sum as f64).abs() < least);
            if !sums.is_empty() {
                let small: Vec<Traveller> =
                    go.extract_if(.., |(_, at)| sums.contains_key(&key(*at))).collect();
                let node = out.add(above, smaller);
                out.note_folded(node, sums.len() as u32);
                self.settle(&mut out, node, &small);
            }
            go.sort_by_key(|(_, at)| self.label_id(*at));
            for group in go.chunk_by(|a, b| self.label_id(a.1) == self.label_id(b.1)) {
                let node = out.add(above, self.label_id(group[0].1).0);
                let up = |&(from, at): &Traveller| (from, self.parent(at).unwrap_or(NodeId::ROOT));
                waiting.push((node, depth + 1, group.iter().map(up).collect()));
            }
        }
        out.finish()
    }

    fn settle(&self, out: &mut Tree, node: u32, travellers: &[Traveller]) {
        for (from, _) in travellers {
            for metric in 0..self.metrics() {
                out.add_value(metric, node, self.own(metric, *from));
            }
        }
    }
}
