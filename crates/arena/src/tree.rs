//! Trees out of the bytes of an arena, while threads go on writing or after the JVM is gone.
//!
//! A thread adds to its tree, and a new node lies behind its parent, so one pass in the order of
//! addresses mostly rebuilds everything; trees that were pruned use nodes again, and are put in
//! order afterwards. What is half-written in the moment of reading has no method yet and is left
//! out; it will be there the next time.

use crate::clock::Clock;
use crate::follow::{FollowedCalls, Variances};
use crate::layout::{self, Holds, PAGE, header};
use crate::nodes::Nodes;
use crate::pages::{Trees, read_trees};
use crate::regions::RegionFigures;
use crate::window::{self, ReadAt, Window};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Shorter than its header, or not an arena at all.
    NotAnArena,
    /// The header contradicts itself.
    BadHeader(&'static str),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::NotAnArena => write!(f, "these bytes are no arena of Tare's"),
            ReadError::BadHeader(what) => write!(f, "the arena's header is damaged: {what}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// The contexts of one thread, or of the virtual threads that used this tree in turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Where its first page lies in the arena: the same in every snapshot of a session.
    pub at: u32,
    /// `Thread.threadId()`; zero for virtual threads.
    pub thread: u64,
    pub name: String,
    pub of_virtual_threads: bool,
    /// Used by several platform threads, one after the other had ended; named after the first.
    pub shared: bool,
    /// Ticks that its times leave out, against [`Clock::now`].
    pub adjust: u64,
    /// The root first; a parent comes before its children.
    pub nodes: Nodes,
    /// Where calls of roots are drawn: how far the nodes' figures may be off, if they are estimates.
    pub variances: Vec<Variances>,
}

impl Tree {
    /// The node in whose time the calls of another are. What has no time of its own is in its
    /// caller's, and what it calls is not; what stands for the begin of a thread or task is no code,
    /// and has no caller.
    #[must_use]
    pub fn caller_with_time(&self, node: usize) -> usize {
        let mut caller = self.nodes.parent(node);
        while !self.nodes.has_time(caller) && self.nodes.parent(caller) != caller {
            caller = self.nodes.parent(caller);
        }
        caller
    }
}

/// An arena as it was when its bytes were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    pub session: u32,
    pub holds: Holds,
    /// Times are those of the processor, per thread, and do not compare with [`Clock::now`].
    pub cpu_time: bool,
    /// Contexts deeper than this are in the rest of their ancestor; zero means no limit.
    pub depth: u32,
    pub clock: Clock,
    /// Bytes handed out, and bytes that are backed by memory.
    pub used: u64,
    pub limit: u64,
    /// Contexts that got no node of their own, and calls that were not counted at all.
    pub refused: u64,
    pub lost: u64,
    /// Contexts that were given up again, for more important ones.
    pub pruned: u64,
    /// Waits that may be in the times although they were for our sake, and threads that nobody
    /// looked at for that: there were too many.
    pub doubted_waits: u64,
    pub unseen_threads: u64,
    /// What an agent written in Java was not told of, or not yet.
    pub untold: u64,
    pub trees: Vec<Tree>,
    pub regions: Vec<RegionFigures>,
    /// Where calls of roots are drawn.
    pub followed: FollowedCalls,
}

/// How often trees were pruned. Bytes that were read between two equal states, with nobody at it,
/// fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruning {
    begun: u32,
    done: u32,
}

impl Pruning {
    /// Given the header.
    #[must_use]
    pub fn read(head: &[u8]) -> Self {
        let at = |at| u32_at(head, at).unwrap_or(0);
        Pruning { begun: at(header::PRUNING), done: at(header::PRUNED) }
    }

    /// Whether nothing was pruned so far.
    #[must_use]
    pub fn never(self) -> bool {
        self.begun == 0 && self.done == 0
    }

    /// Whether what was read between the two fits together.
    #[must_use]
    pub fn still(self, later: Self) -> bool {
        self.begun == self.done && self == later
    }
}

impl Snapshot {
    /// Bytes at the beginning of an arena that must be read to know how much there is.
    pub const HEADER: usize = PAGE;

    /// How many bytes of the arena are in use, given its header.
    pub fn used(head: &[u8]) -> Result<u64, ReadError> {
        if u64_at(head, header::MAGIC) != Some(layout::MAGIC) {
            return Err(ReadError::NotAnArena);
        }
        let used = u64_at(head, header::BUMP).ok_or(ReadError::NotAnArena)?;
        if used < PAGE as u64 || used > layout::SLOT_BYTES {
            return Err(ReadError::BadHeader("the bytes in use"));
        }
        Ok(used)
    }

    /// The agent's last note of the time, given the header.
    pub fn noted(head: &[u8]) -> Result<u64, ReadError> {
        Self::used(head)?;
        u64_at(head, header::TICKS_1).ok_or(ReadError::NotAnArena)
    }

    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        Self::read_from(bytes.len(), &mut window::of(bytes))
    }

    /// Reads an arena of so many bytes a stretch at a time, so that it is never in memory twice.
    pub fn read_from<'a>(length: usize, read: &'a mut ReadAt<'a>) -> Result<Self, ReadError> {
        let mut head = vec![0; PAGE.min(length)];
        let there = read(0, &mut head);
        head.truncate(there);
        let used = usize::try_from(Self::used(&head)?).unwrap_or(usize::MAX).min(length);
        let holds = Self::holds(&head)?;
        let mut window = Window::new(used, read);
        if holds != Holds::Followed {
            return Self::of_pages(&head, &mut window, &[]);
        }
        // What is known of followed calls lies here and there.
        let bytes = window.whole();
        Self::of_pages(&head, &mut Window::new(bytes.len(), &mut window::of(&bytes)), &bytes)
    }

    fn holds(head: &[u8]) -> Result<Holds, ReadError> {
        let field = |at| u32_at(head, at).ok_or(ReadError::NotAnArena);
        let size = field(header::NODE)? as usize;
        let holds = Holds::from_code(field(header::HOLDS)?)
            .ok_or(ReadError::BadHeader("what a node holds"))?;
        if size != holds.node_size() {
            return Err(ReadError::BadHeader("the size of a node"));
        }
        Ok(holds)
    }

    /// `bytes` are all of them where calls are followed, else none.
    fn of_pages(head: &[u8], window: &mut Window<'_>, bytes: &[u8]) -> Result<Self, ReadError> {
        let field = |at| u64_at(head, at).ok_or(ReadError::NotAnArena);
        let field32 = |at| u32_at(head, at).ok_or(ReadError::NotAnArena);
        let holds = Self::holds(head)?;
        let clock = Clock::read(head)?;
        let Trees { trees, regions, followed } = read_trees(head, window, holds, bytes);
        Ok(Snapshot {
            session: field32(header::SESSION)?,
            holds,
            cpu_time: field32(header::CPU)? != 0,
            depth: field32(header::DEPTH)?,
            clock,
            used: Self::used(head)?,
            limit: field(header::LIMIT)?,
            refused: field(header::REFUSED)?,
            lost: field(header::LOST)?,
            pruned: field(header::DROPPED)?,
            doubted_waits: field(header::DOUBTED)?,
            unseen_threads: field(header::UNSEEN)?,
            untold: field(header::NOTED)?.saturating_sub(field(header::TOLD)?),
            trees,
            regions,
            followed,
        })
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{node, page, tree};

    /// An arena of three pages: the header, a tree, and a page of nodes.
    fn sample() -> Vec<u8> {
        let mut bytes = vec![0_u8; 3 * PAGE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(header::MAGIC, &layout::MAGIC.to_le_bytes());
        put(header::BUMP, &(3 * PAGE as u64).to_le_bytes());
        put(header::FIRST, &(PAGE as u64).to_le_bytes());
        put(header::NODE, &(node::SIZE_COUNTED as u32).to_le_bytes());
        put(header::LOST, &5_u64.to_le_bytes());
        put(PAGE + page::KIND, &page::KIND_TREE.to_le_bytes());
        put(PAGE + page::TREE, &(PAGE as u32).to_le_bytes());
        put(PAGE + tree::THREAD, &7_u64.to_le_bytes());
        put(PAGE + tree::NAME, &4_u32.to_le_bytes());
        put(PAGE + tree::NAME + 4, b"main");
        put(2 * PAGE + page::KIND, &page::KIND_NODES.to_le_bytes());
        put(2 * PAGE + page::TREE, &(PAGE as u32).to_le_bytes());
        let mut place = |at: usize, method: i32, parent: usize, count: u64| {
            put(at + node::METHOD, &method.to_le_bytes());
            put(at + node::PARENT, &(parent as u32).to_le_bytes());
            put(at + node::COUNT, &count.to_le_bytes());
        };
        let root = PAGE + tree::ROOT;
        place(root, layout::ROOT, 0, 0);
        place(root + node::SIZE_COUNTED, 11, root, 3);
        place(2 * PAGE + page::HEAD, 12, root + node::SIZE_COUNTED, 9);
        bytes
    }

    #[test]
    fn a_tree_over_two_pages_is_rebuilt() {
        let snapshot = Snapshot::read(&sample()).unwrap();
        assert_eq!(snapshot.lost, 5);
        let [tree] = snapshot.trees.as_slice() else { panic!("{snapshot:?}") };
        assert_eq!((tree.at, tree.thread, tree.name.as_str()), (PAGE as u32, 7, "main"));
        let places: Vec<usize> = tree.nodes.iter().map(|node| node.at as usize).collect();
        let root = PAGE + tree::ROOT;
        assert_eq!(places, [root, root + node::SIZE_COUNTED, 2 * PAGE + page::HEAD]);
        let seen: Vec<_> = tree.nodes.iter().map(|n| (n.parent, n.method, n.count)).collect();
        assert_eq!(seen, [(0, layout::ROOT, 0), (0, 11, 3), (1, 12, 9)]);
    }

    #[test]
    fn nodes_that_were_used_again_come_after_their_parents() {
        let mut bytes = sample();
        let root = PAGE + tree::ROOT;
        let mut put = |at: usize, value: i32| {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        };
        // The first child hangs on what lies behind it now, which hangs on the root; and one is
        // free.
        put(root + node::SIZE_COUNTED + node::PARENT, (2 * PAGE + page::HEAD) as i32);
        put(2 * PAGE + page::HEAD + node::PARENT, root as i32);
        put(2 * PAGE + page::HEAD + node::SIZE_COUNTED + node::METHOD, layout::FREED);
        put(2 * PAGE + page::HEAD + 2 * node::SIZE_COUNTED + node::METHOD, 13);
        put(
            2 * PAGE + page::HEAD + 2 * node::SIZE_COUNTED + node::PARENT,
            (root + node::SIZE_COUNTED) as i32,
        );
        let snapshot = Snapshot::read(&bytes).unwrap();
        let seen: Vec<_> = snapshot.trees[0].nodes.iter().map(|n| (n.parent, n.method)).collect();
        assert_eq!(seen, [(0, layout::ROOT), (0, 12), (1, 11), (2, 13)]);
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let good = sample();
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..4 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                let at = (state >> 33) as usize % bytes.len();
                bytes[at] = (state >> 17) as u8;
            }
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            bytes.truncate((state >> 33) as usize % (good.len() + 1));
            let _ = Snapshot::read(&bytes);
        }
        assert_eq!(Snapshot::read(b"short"), Err(ReadError::NotAnArena));
    }
}
