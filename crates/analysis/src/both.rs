//! Two profiles as one tree, for pictures of what has changed.

use crate::diff::Diff;
use crate::labels::{Label, LabelKind};
use crate::tree::Tree;
use tare_profile::MethodKind;

impl Diff {
    /// The common tree as one of two metrics: what the new profile has, and what the old has. A
    /// node's number is that in [`Diff::tree`].
    pub fn both(&self) -> Tree {
        let label = |text: &String| Label { kind: kind_of(text), ..Label::folded(text) };
        let root = [Label::root()];
        let labels = root.into_iter().chain(self.labels.iter().map(label)).collect();
        let mut tree = Tree::empty(labels, 2);
        for (number, node) in self.tree.iter().enumerate() {
            let at = match number {
                0 => 0,
                _ => tree.add(node.parent as u32, node.label as u32 + 1),
            };
            tree.add_value(0, at, node.own[1]);
            tree.add_value(1, at, node.own[0]);
        }
        tree.finish()
    }
}

/// What a label was that only its text is left of: accounts stand in brackets.
fn kind_of(text: &str) -> LabelKind {
    if text.starts_with('[') { LabelKind::Folded } else { LabelKind::Method(MethodKind::Java) }
}
