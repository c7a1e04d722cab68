//! Calling contexts as a prefix tree: each node is a frame and the context that called it.
//!
//! Ordering invariant: a parent stands before its children. So one sweep forwards visits callers
//! before callees, and one sweep backwards sums subtrees, without recursion and without child
//! lists. A node takes eight bytes, and four to nine more while new ones are being looked up.

use crate::handle::{ContextId, FrameId};
use crate::index::Index;

const NO_FRAME: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    parent: u32,
    frame: u32,
}

/// All contexts of a profile, each once. Row 0 is the root, which has no frame.
#[derive(Clone, Debug)]
pub struct Contexts {
    nodes: Vec<Node>,
    /// Made when it is first needed: a profile that is only read does without.
    index: Option<Children>,
}

/// Which children contexts have. Trees grow along paths: a context mostly has one child or none,
/// made just after it. So the first few children of neighbours lie together, where looking them up
/// meets memory that was just in use, and only the others are found by a hash, which is anywhere.
#[derive(Clone, Debug)]
struct Children {
    /// For each [`NEIGHBOURS`] rows, the first that have one of them as their parent; the free
    /// places are the last ones.
    near: Vec<[u32; NEIGHBOURS]>,
    far: Index,
}

const NEIGHBOURS: usize = 8;
const FREE: u32 = u32::MAX;

impl Children {
    fn of(nodes: &[Node]) -> Self {
        let near = vec![[FREE; NEIGHBOURS]; nodes.len().div_ceil(NEIGHBOURS)];
        let mut all = Children { near, far: Index::of(0, |_, _| 0) };
        for (row, node) in (0..).zip(nodes) {
            all.insert(*node, row, nodes);
        }
        all
    }

    fn find(&self, node: Node, nodes: &[Node]) -> Option<u32> {
        let line = self.near.get(node.parent as usize / NEIGHBOURS)?;
        for &row in line {
            if row == FREE {
                return None;
            }
            if nodes[row as usize] == node {
                return Some(row);
            }
        }
        self.far.find(hash(&self.far, node), |row| nodes[row as usize] == node)
    }

    /// Adds a row that `find` did not find.
    fn insert(&mut self, node: Node, row: u32, nodes: &[Node]) {
        let line = node.parent as usize / NEIGHBOURS;
        if line >= self.near.len() {
            self.near.resize(line + 1, [FREE; NEIGHBOURS]);
        }
        match self.near[line].iter_mut().find(|place| **place == FREE) {
            Some(place) => *place = row,
            None => {
                let code = hash(&self.far, node);
                self.far.insert(code, row, |index, row| hash(index, nodes[row as usize]));
            }
        }
    }

    fn memory(&self) -> usize {
        self.near.capacity() * size_of::<[u32; NEIGHBOURS]>() + self.far.memory()
    }
}

impl Default for Contexts {
    fn default() -> Self {
        Contexts { nodes: vec![Node { parent: 0, frame: NO_FRAME }], index: None }
    }
}

impl Contexts {
    /// The context of `frame` called from `parent`, which is added if it is new.
    ///
    /// # Panics
    /// If there would be more than 2³²−1 contexts, or `parent` is of another profile.
    pub fn child(&mut self, parent: ContextId, frame: FrameId) -> ContextId {
        assert!(parent.index() < self.nodes.len(), "the parent is not of this profile");
        let node = Node { parent: parent.raw(), frame: frame.raw() };
        let nodes = &mut self.nodes;
        let children = self.index.get_or_insert_with(|| Children::of(nodes));
        if let Some(row) = children.find(node, nodes) {
            return ContextId::new(row);
        }
        let row = u32::try_from(nodes.len()).ok().filter(|&row| row < u32::MAX);
        let row = row.expect("more than 2³²−1 contexts");
        nodes.push(node);
        children.insert(node, row, nodes);
        ContextId::new(row)
    }

    /// The context of a whole stack, outermost frame first.
    pub fn stack(&mut self, frames: impl IntoIterator<Item = FrameId>) -> ContextId {
        frames.into_iter().fold(ContextId::ROOT, |parent, frame| self.child(parent, frame))
    }

    /// `None` for the root.
    pub fn parent(&self, id: ContextId) -> Option<ContextId> {
        (id != ContextId::ROOT).then(|| ContextId::new(self.nodes[id.index()].parent))
    }

    /// `None` for the root.
    pub fn frame(&self, id: ContextId) -> Option<FrameId> {
        (id != ContextId::ROOT).then(|| FrameId::new(self.nodes[id.index()].frame))
    }

    /// The frames of a context, innermost first.
    pub fn frames(&self, id: ContextId) -> impl Iterator<Item = FrameId> + '_ {
        let mut at = id;
        std::iter::from_fn(move || {
            let frame = self.frame(at)?;
            at = self.parent(at)?;
            Some(frame)
        })
    }

    /// The number of frames.
    pub fn depth(&self, id: ContextId) -> usize {
        self.frames(id).count()
    }

    /// The number of contexts, with the root.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no context but the root.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Every context but the root, with its parent and frame; parents come first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ContextId, ContextId, FrameId)> + '_ {
        (1..self.nodes.len()).map(|row| {
            let Node { parent, frame } = self.nodes[row];
            (ContextId::new(row as u32), ContextId::new(parent), FrameId::new(frame))
        })
    }

    /// Appends a node without looking for an equal one. For readers of files that hold a table
    /// whole. `None`, and nothing changed, if the parent does not stand before it or the table is
    /// full.
    pub fn push(&mut self, parent: ContextId, frame: FrameId) -> Option<ContextId> {
        let row = u32::try_from(self.nodes.len()).ok().filter(|&row| row < u32::MAX)?;
        if parent.raw() >= row || frame.raw() == NO_FRAME {
            return None;
        }
        self.nodes.push(Node { parent: parent.raw(), frame: frame.raw() });
        self.index = None;
        Some(ContextId::new(row))
    }

    pub fn reserve(&mut self, more: usize) {
        self.nodes.reserve(more);
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let index = self.index.as_ref().map_or(0, Children::memory);
        self.nodes.capacity() * size_of::<Node>() + index
    }
}

fn hash(index: &Index, node: Node) -> u64 {
    index.hash_numbers(u64::from(node.parent), u64::from(node.frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(n: u32) -> FrameId {
        FrameId::new(n)
    }

    #[test]
    fn equal_stacks_share_their_nodes() {
        let mut contexts = Contexts::default();
        let a = contexts.stack([frame(1), frame(2), frame(3)]);
        let b = contexts.stack([frame(1), frame(2), frame(4)]);
        assert_eq!(contexts.stack([frame(1), frame(2), frame(3)]), a);
        assert_eq!(contexts.len(), 5);
        assert_eq!(contexts.parent(a), contexts.parent(b));
        assert_eq!(contexts.frames(b).collect::<Vec<_>>(), [frame(4), frame(2), frame(1)]);
        assert_eq!(contexts.stack([]), ContextId::ROOT);
        assert_eq!(
            (contexts.frame(ContextId::ROOT), contexts.parent(ContextId::ROOT)),
            (None, None)
        );
    }

    #[test]
    fn children_are_found_again_however_many_a_context_has() {
        let mut contexts = Contexts::default();
        // A chain, from every tenth of which a hundred others hang, and one from which all do.
        let mut made = Vec::new();
        let mut parent = ContextId::ROOT;
        for n in 0..1000_u32 {
            let width = if n == 500 { 10_000 } else { 100 * u32::from(n % 10 == 0) };
            made.extend((0..=width).map(|w| (parent, frame(w), contexts.child(parent, frame(w)))));
            parent = contexts.child(parent, frame(0));
        }
        let count = contexts.len();
        let check = |contexts: &mut Contexts| {
            for &(parent, frame, id) in &made {
                assert_eq!(contexts.child(parent, frame), id);
                assert_eq!((contexts.parent(id), contexts.frame(id)), (Some(parent), Some(frame)));
            }
            assert_eq!(contexts.len(), count);
        };
        check(&mut contexts);
        // And in a table that was read whole.
        let mut read = Contexts::default();
        let pushed = contexts.iter().all(|(_, parent, frame)| read.push(parent, frame).is_some());
        assert!(pushed);
        check(&mut read);
    }

    #[test]
    fn parents_stand_before_children() {
        let mut contexts = Contexts::default();
        for n in 0..1000_u32 {
            contexts.stack((0..n % 17).map(|depth| frame(n / (depth + 1))));
        }
        assert!(contexts.iter().all(|(id, parent, _)| parent < id));
    }

    #[test]
    fn pushed_nodes_are_checked_and_found() {
        let mut contexts = Contexts::default();
        assert_eq!(contexts.push(ContextId::new(1), frame(0)), None);
        let a = contexts.push(ContextId::ROOT, frame(7)).unwrap();
        assert_eq!(contexts.stack([frame(7)]), a);
        assert_eq!(contexts.push(a, frame(u32::MAX)), None);
    }

    #[test]
    fn a_million_nodes_take_what_the_documentation_says() {
        let mut contexts = Contexts::default();
        let mut parent = ContextId::ROOT;
        for n in 0..1_000_000_u32 {
            parent = if n % 100 == 0 { ContextId::ROOT } else { parent };
            parent = contexts.child(parent, frame(n));
        }
        assert_eq!(contexts.len(), 1_000_001);
        // A vector that doubles may hold twice what it needs.
        assert!(contexts.memory() <= 1_000_001 * (8 + 5) * 2, "{}", contexts.memory());
    }
}
