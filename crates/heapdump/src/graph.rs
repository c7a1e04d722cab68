//! Who refers to whom, as numbers: built by one walk over all objects, on all processors.
//!
//! All lists of references are in one large array, in the order of the dump. Each begins with its
//! length. Every part of the dump has a range of the array that is large enough for it, so that
//! parts are filled at the same time and nothing is copied; what a range does not use is never
//! touched and takes no memory.
//!
//! References to roots are left out: they change neither what is reachable nor what dominates.

use crate::classes::{ClassId, Classes, Strength, Type};
use crate::error::{HeapError, Result};
use crate::ids::{Bits, Ids, NONE, Node};
use crate::layout::Layout;
use crate::par;
use crate::progress::Progress;
use crate::source::{Decoder, Source, Visitor};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Sizes are kept in units of this many bytes, to which HotSpot aligns all objects.
pub const UNIT: u64 = 8;

pub struct Graph {
    /// By node.
    pub class: Vec<ClassId>,
    pub size: Vec<u32>,
    start: Vec<u32>,
    lists: Vec<Node>,
    /// Positions of lists are multiples of a power of two, so that 32 bits are enough for them.
    shift: u32,
    pub roots: Vec<Node>,
    /// References that do not keep alive.
    pub special: Vec<Special>,
    pub losses: Losses,
}

/// Where a list is.
#[derive(Clone, Copy, Debug)]
pub struct List(u32);

#[derive(Clone, Copy, Debug)]
pub struct Special {
    pub from: Node,
    pub to: Node,
    pub strength: Strength,
}

/// What does not fit together in a dump.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub struct Losses {
    /// References to objects that it does not have.
    pub dangling: u64,
    /// Objects whose address another one has, too.
    pub twice: u64,
    /// Objects without a class.
    pub unknown: u64,
}

impl Graph {
    #[inline]
    pub fn list(&self, node: Node) -> &[Node] {
        let at = (self.start[node as usize] as usize) << self.shift;
        if at == 0 {
            return &[];
        }
        &self.lists[at + 1..at + 1 + self.lists[at] as usize]
    }

    /// The list of a node, if that refers to anything.
    #[inline]
    pub fn list_of(&self, node: Node) -> Option<List> {
        let start = self.start[node as usize];
        (start != 0).then_some(List(start))
    }

    /// What is in a list, where something else may be put in place of each node.
    #[inline]
    pub fn references(&mut self, list: List) -> &mut [Node] {
        let at = (list.0 as usize) << self.shift;
        let length = self.lists[at] as usize;
        &mut self.lists[at + 1..at + 1 + length]
    }

    /// Only the first so many of a list stay.
    pub fn shorten(&mut self, list: List, length: u32) {
        self.lists[(list.0 as usize) << self.shift] = length;
    }

    pub fn len(&self) -> usize {
        self.class.len()
    }

    /// Reads all references of a dump. Referents of kinds of reference up to `keep` count as
    /// references that keep alive.
    pub fn build(
        source: &dyn Source,
        ids: &Ids,
        keep: Strength,
        progress: &dyn Progress,
    ) -> Result<Graph> {
        let parts = source.parts();
        let (roots, locals) = roots(source, ids);
        let mut is_root = Bits::new(ids.len());
        roots.iter().for_each(|root| _ = is_root.set(*root));
        let classes = source.classes();
        let class_nodes: Vec<Node> = classes
            .iter()
            .map(|(_, class)| ids.find(class.address).unwrap_or(NONE))
            .map(|node| if node == NONE || is_root.has(node) { NONE } else { node })
            .collect();
        let objects: u64 = parts.iter().map(|part| part.objects).sum();
        let mut room: u64 = parts.iter().map(|part| part.most_edges).sum();
        // The tail is for threads with their locals, whose own lists are copied there.
        let tail = locals.len() as u64 * 2;
        let mut shift = 0;
        while (room + tail + objects * ((1 << shift) - 1)) >> shift >= u64::from(u32::MAX) {
            shift += 1;
        }
        room += objects * ((1 << shift) - 1);
        let room = usize::try_from(room).map_err(|_| too_large())?;
        let mut ends = Vec::with_capacity(parts.len());
        // The first place stands for "no list".
        let first = 1 << shift;
        let mut end = 0;
        for part in &parts {
            end += (part.most_edges + part.objects * ((1 << shift) - 1)) as usize;
            end = end.next_multiple_of(first);
            ends.push(end);
        }
        let mut lists: Vec<Node> = vec![0; first + room.max(end)];
        let columns = Columns::new(ids.len());
        let all: u64 = parts.iter().map(|part| part.bytes).sum();
        let done = AtomicU64::new(0);
        let slices = par::parts(&mut lists[first..], &ends);
        let outcomes = par::each(parts.len(), |at| {
            let mut slice = slices[at].lock().unwrap_or_else(|e| e.into_inner());
            let begin = if at == 0 { 0 } else { ends[at - 1] };
            let mut filler = Filler {
                ids,
                classes,
                class_nodes: &class_nodes,
                decoder: source.decoder(),
                layout: source.layout(),
                columns: &columns,
                is_root: &is_root,
                keep,
                lists: &mut slice,
                base: first + begin,
                shift,
                head: 0,
                at: 0,
                me: NONE,
                special: Vec::new(),
                losses: Losses::default(),
            };
            source.walk(at, &mut filler)?;
            let sum = done.fetch_add(parts[at].bytes, Ordering::Relaxed) + parts[at].bytes;
            progress.tell("reading references", sum, all);
            Ok((filler.special, filler.losses))
        });
        drop(slices);
        let mut graph = Graph {
            class: columns.class.into_iter().map(AtomicU32::into_inner).collect(),
            size: columns.size.into_iter().map(AtomicU32::into_inner).collect(),
            start: columns.start.into_iter().map(AtomicU32::into_inner).collect(),
            lists,
            shift,
            roots,
            special: Vec::new(),
            losses: Losses::default(),
        };
        for outcome in outcomes {
            let (special, losses): (Vec<Special>, Losses) = outcome?;
            graph.special.extend(special);
            graph.losses.dangling += losses.dangling;
            graph.losses.twice += losses.twice;
            graph.losses.unknown += losses.unknown;
        }
        graph.add_locals(locals, &is_root);
        Ok(graph)
    }

    /// Gives the memory of the lists back.
    pub fn drop_lists(&mut self) {
        self.lists = Vec::new();
        self.start = Vec::new();
    }

    /// A graph from lists, each with the size of its node in units; for tests.
    #[cfg(test)]
    pub fn of_lists(nodes: &[(u32, Vec<Node>)], roots: &[Node]) -> Graph {
        let (mut lists, mut start) = (vec![0], Vec::new());
        for (_, list) in nodes {
            start.push(lists.len() as u32);
            let kept: Vec<Node> = list.iter().copied().filter(|to| !roots.contains(to)).collect();
            lists.push(kept.len() as u32);
            lists.extend(kept);
        }
        Graph {
            class: vec![0; nodes.len()],
            size: nodes.iter().map(|(size, _)| *size).collect(),
            start,
            lists,
            shift: 0,
            roots: roots.to_vec(),
            special: Vec::new(),
            losses: Losses::default(),
        }
    }

    /// Makes what is on a thread's stack something that the thread refers to.
    fn add_locals(&mut self, mut locals: Vec<(Node, Node)>, is_root: &Bits) {
        locals.retain(|(thread, local)| thread != local && !is_root.has(*local));
        locals.sort_unstable();
        locals.dedup();
        for group in locals.chunk_by(|a, b| a.0 == b.0) {
            let thread = group[0].0;
            let mut list = self.list(thread).to_vec();
            list.extend(group.iter().map(|(_, local)| *local));
            let at = self.lists.len().next_multiple_of(1 << self.shift);
            self.lists.resize(at, 0);
            self.lists.push(list.len() as u32);
            self.lists.extend(list);
            self.start[thread as usize] = (at >> self.shift) as u32;
        }
    }
}

fn too_large() -> HeapError {
    HeapError::TooLarge { what: "it has more references than fit into memory".to_owned() }
}

/// The nodes that are roots by themselves, and locals as pairs with their threads.
fn roots(source: &dyn Source, ids: &Ids) -> (Vec<Node>, Vec<(Node, Node)>) {
    let (mut roots, mut locals) = (Vec::new(), Vec::new());
    let threads = source.threads();
    for root in source.roots() {
        let Some(node) = ids.find(root.object) else { continue };
        let thread = root.thread.filter(|_| root.kind.is_of_stack());
        let thread = thread.and_then(|thread| threads.get(thread as usize));
        match thread.and_then(|thread| ids.find(thread.object)) {
            Some(thread) => locals.push((thread, node)),
            None => roots.push(node),
        }
    }
    roots.sort_unstable();
    roots.dedup();
    // A thread that holds locals must be held itself.
    let threads = locals.iter().map(|(thread, _)| *thread);
    let missing: Vec<Node> = threads.filter(|node| roots.binary_search(node).is_err()).collect();
    roots.extend(missing);
    roots.sort_unstable();
    roots.dedup();
    (roots, locals)
}

/// What is known of each node, written from several threads.
struct Columns {
    class: Vec<AtomicU32>,
    size: Vec<AtomicU32>,
    start: Vec<AtomicU32>,
}

impl Columns {
    fn new(count: usize) -> Columns {
        let zeros = || (0..count).map(|_| AtomicU32::new(0)).collect();
        Columns { class: zeros(), size: zeros(), start: zeros() }
    }
}

/// Fills the part of the lists that belongs to a part of the dump.
struct Filler<'a> {
    ids: &'a Ids,
    classes: &'a Classes,
    /// The node of each class that is not a root.
    class_nodes: &'a [Node],
    decoder: Decoder,
    layout: Layout,
    columns: &'a Columns,
    is_root: &'a Bits,
    keep: Strength,
    lists: &'a mut [Node],
    base: usize,
    shift: u32,
    /// Where the list of the current object begins, and where it ends so far.
    head: usize,
    at: usize,
    me: Node,
    special: Vec<Special>,
    losses: Losses,
}

impl Filler<'_> {
    /// Begins with an object; `false` if there was one with its address.
    #[inline]
    fn begin(&mut self, address: u64, class: ClassId, size: u64) -> bool {
        self.me = NONE;
        let Some(node) = self.ids.find(address) else { return false };
        let units = u32::try_from(size.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1);
        let before = self.columns.size[node as usize].swap(units, Ordering::Relaxed);
        if before != 0 {
            self.losses.twice += 1;
            self.columns.size[node as usize].store(before, Ordering::Relaxed);
            return false;
        }
        self.columns.class[node as usize].store(class, Ordering::Relaxed);
        self.losses.unknown += u64::from(class == crate::classes::UNKNOWN);
        self.me = node;
        self.head = self.at.next_multiple_of(1 << self.shift);
        self.at = self.head + 1;
        true
    }

    #[inline]
    fn refer(&mut self, address: u64) {
        if address == 0 {
            return;
        }
        match self.ids.find(address) {
            Some(node) => self.refer_to(node),
            None => self.losses.dangling += 1,
        }
    }

    #[inline]
    fn refer_to(&mut self, node: Node) {
        if node == self.me || self.is_root.has(node) {
            return;
        }
        if let Some(place) = self.lists.get_mut(self.at) {
            *place = node;
            self.at += 1;
        }
    }

    #[inline]
    fn refer_to_class(&mut self, class: ClassId) {
        let node = self.class_nodes[class as usize];
        if node != NONE {
            self.refer_to(node);
        }
    }

    #[inline]
    fn end(&mut self) {
        let count = self.at - self.head - 1;
        if count == 0 || self.me == NONE {
            self.at = self.head;
            return;
        }
        self.lists[self.head] = count as u32;
        let position = (self.base + self.head) >> self.shift;
        self.columns.start[self.me as usize].store(position as u32, Ordering::Relaxed);
    }
}

impl Visitor for Filler<'_> {
    fn class(&mut self, address: u64, class: ClassId, references: &[u64]) {
        let size = u64::from(self.classes.get(class).own_size);
        let of_classes = self.classes.named("java.lang.Class").unwrap_or(0);
        if self.begin(address, of_classes, size) {
            references.iter().for_each(|to| self.refer(*to));
            self.end();
        }
    }

    #[inline]
    fn instance(&mut self, address: u64, id: ClassId, bytes: &[u8]) {
        let classes = self.classes;
        let class = classes.get(id);
        // A file of ours has the object as it is, of which some are larger than their class says.
        let size = match self.decoder {
            Decoder::Big(_) => u64::from(class.size),
            _ => bytes.len() as u64,
        };
        if !self.begin(address, id, size) {
            return;
        }
        self.refer_to_class(id);
        for offset in &class.references {
            let to = self.decoder.reference(bytes, *offset);
            self.refer(to);
        }
        if let Some(offset) = class.referent {
            let to = self.decoder.reference(bytes, offset);
            if class.strength <= self.keep {
                self.refer(to);
            } else if let Some(to) = self.ids.find(to).filter(|_| to != 0) {
                let strength = class.strength;
                self.special.push(Special { from: self.me, to, strength });
            }
        }
        self.end();
    }

    fn array(&mut self, address: u64, class: ClassId, length: u32) {
        let size = self.layout.array_size(Type::Reference, length);
        if self.begin(address, class, size) {
            self.refer_to_class(class);
        }
    }

    fn elements(&mut self, elements: &[u64]) {
        if self.me != NONE {
            elements.iter().for_each(|to| self.refer(*to));
        }
    }

    fn array_end(&mut self) {
        if self.me != NONE {
            self.end();
        }
    }

    fn values(&mut self, address: u64, kind: Type, length: u32, _: &[u8]) {
        let size = self.layout.array_size(kind, length);
        let class = self.classes.array_of(kind);
        if self.begin(address, class, size) {
            self.refer_to_class(class);
            self.end();
        }
    }
}
