//! The nodes of a tree, in columns: there may be many millions, and most sessions count only a few
//! of the things that a node can hold.

use crate::layout;
use std::fmt;

/// One context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Where it lies in the arena: the same in every snapshot of a session.
    pub at: u32,
    /// Position of the parent in the tree; the root is its own parent.
    pub parent: u32,
    /// A method's id, or one of the ids in [`layout`] that no method has.
    pub method: i32,
    pub count: u64,
    /// Ticks spent in finished invocations; zero when the session is not timed. Where only some
    /// are timed, an estimate for all.
    pub total: u64,
    /// Where only some are timed: how many were, and the standard error of that estimate, in ticks.
    pub some_timed: u64,
    pub error: u64,
    /// When the invocation under way began; zero if there is none or the session is not timed.
    pub start: u64,
    /// Finished invocations that made timed calls; zero when the session is not timed.
    pub calling: u64,
    /// Bytecodes executed in the context itself; zero when they are not counted.
    pub bytecodes: u64,
    /// Objects and bytes allocated in the context itself; zero when they are not counted.
    pub objects: u64,
    pub bytes: u64,
}

impl Node {
    /// Whether it counts something of the program, and not of the agent.
    pub(crate) fn is_of_the_program(&self) -> bool {
        self.method > 0 || (self.method == layout::REST && self.count > 0)
    }
}

/// Numbers of which most columns have none: it takes memory from the first on that is not zero.
#[derive(Clone, Default, PartialEq)]
struct Column(Vec<u64>);

impl Column {
    fn get(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn set(&mut self, at: usize, value: u64) {
        if self.0.len() <= at {
            if value == 0 {
                return;
            }
            self.0.resize(at + 1, 0);
        }
        self.0[at] = value;
    }
}

/// All nodes of a tree, by position.
#[derive(Clone, Default, PartialEq)]
pub struct Nodes {
    /// Where each lies, and its parent.
    places: Vec<(u32, u32)>,
    methods: Vec<i32>,
    count: Column,
    total: Column,
    some_timed: Column,
    error: Column,
    start: Column,
    calling: Column,
    bytecodes: Column,
    objects: Column,
    bytes: Column,
}

impl Nodes {
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// # Panics
    /// If there is no node at this position.
    #[must_use]
    pub fn get(&self, at: usize) -> Node {
        let (place, parent) = self.places[at];
        Node {
            at: place,
            parent,
            method: self.methods[at],
            count: self.count.get(at),
            total: self.total.get(at),
            some_timed: self.some_timed.get(at),
            error: self.error.get(at),
            start: self.start.get(at),
            calling: self.calling.get(at),
            bytecodes: self.bytecodes.get(at),
            objects: self.objects.get(at),
            bytes: self.bytes.get(at),
        }
    }

    /// Puts another node in the place of one.
    ///
    /// # Panics
    /// If there is none.
    pub fn set(&mut self, at: usize, node: Node) {
        self.places[at] = (node.at, node.parent);
        self.methods[at] = node.method;
        self.count.set(at, node.count);
        self.total.set(at, node.total);
        self.some_timed.set(at, node.some_timed);
        self.error.set(at, node.error);
        self.start.set(at, node.start);
        self.calling.set(at, node.calling);
        self.bytecodes.set(at, node.bytecodes);
        self.objects.set(at, node.objects);
        self.bytes.set(at, node.bytes);
    }

    pub fn push(&mut self, node: Node) {
        self.places.push((node.at, node.parent));
        self.methods.push(node.method);
        self.set(self.places.len() - 1, node);
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Node> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Where a node lies.
    pub(crate) fn place(&self, at: usize) -> Option<u32> {
        self.places.get(at).map(|place| place.0)
    }

    pub(crate) fn parent(&self, at: usize) -> usize {
        self.places[at].1 as usize
    }

    pub(crate) fn set_parent(&mut self, at: usize, parent: u32) {
        self.places[at].1 = parent;
    }

    /// Whether a node of a timed session is timed: its first call has begun, or has ended.
    pub(crate) fn has_time(&self, at: usize) -> bool {
        self.total.get(at) != 0 || self.start.get(at) != 0
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<Node> for Nodes {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Self {
        let mut all = Nodes::default();
        nodes.into_iter().for_each(|node| all.push(node));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_give_back_what_was_put_in() {
        let node = |at: u32, total: u64, bytes: u64| Node { at, total, bytes, ..Node::default() };
        let given = [node(0, 0, 0), node(8, 7, 0), node(16, 0, 9), node(24, 3, 0)];
        let mut nodes: Nodes = given.into_iter().collect();
        assert_eq!(nodes.iter().collect::<Vec<_>>(), given);
        assert_eq!(
            nodes.iter().map(|n| n.total != 0).collect::<Vec<_>>(),
            [0, 1, 2, 3].map(|at| nodes.has_time(at))
        );
        assert!(nodes.objects.0.is_empty(), "what is all zeros takes no memory");
        nodes.set(3, node(24, 0, 5));
        assert_eq!((nodes.get(3), nodes.get(2)), (node(24, 0, 5), given[2]));
    }
}
