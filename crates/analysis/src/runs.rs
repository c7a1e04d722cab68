//! Deep recursion made short: a method that calls itself, or a circle of a few methods, many times
//! in a row stands once in the tree, and says how often it follows itself.
//!
//! A node of such a run joins the one a circle before it. So the outermost keeps what it took with
//! all that it called, what the calls took themselves adds up, and what they called besides is one.

use crate::tree::{LabelId, NodeId, Tree};
use std::borrow::Cow;
use tare_profile::{ContextId, Contexts, FrameId};

/// The longest circle of calls that is seen as one.
const LONGEST: usize = 8;
/// Circles that follow each other fewer times than this are left as they are.
const TIMES: usize = 16;

/// A path with long runs of the same calls folded: pieces of it, and how often each follows itself.
pub fn fold_path<T: PartialEq>(path: &[T]) -> Vec<(&[T], usize)> {
    let mut pieces = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let times = |length: usize| {
            let circle = &rest[..length];
            rest.chunks_exact(length).take_while(|piece| *piece == circle).count()
        };
        let lengths = 1..=LONGEST.min(rest.len());
        let found = lengths.map(|length| (length, times(length))).find(|(_, n)| *n >= TIMES);
        let (length, times) = found.unwrap_or((1, 1));
        pieces.push((&rest[..length], times));
        rest = &rest[length * times..];
    }
    pieces
}

impl Tree {
    /// The same tree with long runs of the same calls folded; see [`Tree::times`].
    pub fn fold_runs(&self) -> Cow<'_, Tree> {
        let runs = self.runs();
        let circles = self.circles(&runs);
        drop(runs);
        if circles.iter().all(|circle| *circle == 0) {
            return Cow::Borrowed(self);
        }
        let mut out = Tree::empty(self.all_labels().to_vec(), self.metrics());
        // A tree of labels is found as one of frames is.
        let mut known = Contexts::default();
        let mut place = vec![0_u32; self.len()];
        let mut times = vec![1_u32; self.len()];
        for node in self.nodes() {
            let at = node.index();
            if let Some(parent) = self.parent(node) {
                place[at] = if circles[at] > 0 {
                    let same = self.up(node, usize::from(circles[at])).index();
                    times[at] = times[same] + 1;
                    place[same]
                } else {
                    let (above, LabelId(label)) = (place[parent.index()], self.label_id(node));
                    let made = known.child(ContextId::new(above), FrameId::new(label)).raw();
                    if made as usize == out.len() { out.add(above, label) } else { made }
                };
                out.note_times(place[at], times[at]);
                out.note_folded(place[at], self.folded(node));
            }
        }
        for metric in 0..self.metrics() {
            for (place, value) in place.iter().zip(self.all_own(metric)) {
                out.add_value(metric, *place, value);
            }
        }
        Cow::Owned(out.finish())
    }

    /// The ancestor so many steps above a node.
    fn up(&self, node: NodeId, steps: usize) -> NodeId {
        (0..steps).fold(node, |at, _| self.parent(at).unwrap_or(NodeId::ROOT))
    }

    /// By node, and for each length of a circle: how many labels up to it are as those that far
    /// before; more than make a run are not counted.
    fn runs(&self) -> Vec<[u8; LONGEST]> {
        const { assert!((TIMES - 1) * LONGEST < u8::MAX as usize) };
        let mut runs = vec![[0_u8; LONGEST]; self.len()];
        for node in self.nodes().skip(1) {
            let Some(parent) = self.parent(node) else { continue };
            let of_caller = runs[parent.index()];
            let mut before = parent;
            for (run, of_caller) in runs[node.index()].iter_mut().zip(of_caller) {
                if before == NodeId::ROOT {
                    break;
                }
                if self.label_id(before) == self.label_id(node) {
                    *run = of_caller.saturating_add(1);
                }
                before = self.up(before, 1);
            }
        }
        runs
    }

    /// By node: the length of the circle that it repeats as a part of a long run, or zero.
    fn circles(&self, runs: &[[u8; LONGEST]]) -> Vec<u8> {
        // One bit for each length: whether a long run leads through the node.
        let mut long = vec![0_u8; self.len()];
        for node in self.nodes().rev() {
            let at = node.index();
            for (length, run) in (1..).zip(runs[at]) {
                let bit = 1 << (length - 1);
                if usize::from(run) >= (TIMES - 1) * length {
                    long[at] |= bit;
                }
                if run > 0
                    && long[at] & bit != 0
                    && let Some(parent) = self.parent(node)
                {
                    long[parent.index()] |= bit;
                }
            }
        }
        let shortest = |(run, long): (&[u8; LONGEST], &u8)| {
            let found = (0..LONGEST).find(|length| run[*length] > 0 && long & (1 << length) != 0);
            found.map_or(0, |length| length as u8 + 1)
        };
        runs.iter().zip(&long).map(shortest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_path_are_pieces() {
        let path: Vec<&str> = ["a"]
            .into_iter()
            .chain(std::iter::repeat_n(["f", "g"], 4500).flatten())
            .chain(["f", "b", "b"])
            .collect();
        let folded = fold_path(&path);
        let expected: [(&[&str], usize); 5] =
            [(&["a"], 1), (&["f", "g"], 4500), (&["f"], 1), (&["b"], 1), (&["b"], 1)];
        assert_eq!(folded, expected);
        assert_eq!(fold_path(&path[..0]), []);
        let whole: usize = folded.iter().map(|(piece, times)| piece.len() * times).sum();
        assert_eq!(whole, path.len());
    }
}
