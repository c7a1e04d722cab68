//! What the pages of an arena hold: trees, and the figures of regions.

use crate::estimate::Estimate;
use crate::follow::{self, FollowedCalls};
use crate::layout::{self, Holds, PAGE, header, node, page, region, tree};
use crate::nodes::{Node, Nodes};
use crate::regions::{self, RegionFigures};
use crate::tree::{Tree, u32_at, u64_at};
use crate::window::Window;
use std::collections::HashSet;

/// `u32::MAX` marks where no node begins.
const NOWHERE: u32 = u32::MAX;

/// What pages hold.
pub(crate) struct Trees {
    pub trees: Vec<Tree>,
    pub regions: Vec<RegionFigures>,
    pub followed: FollowedCalls,
}

/// The positions of nodes in their trees, by where they lie.
struct Positions {
    size: usize,
    by_place: Vec<u32>,
}

impl Positions {
    fn new(pages: usize, size: usize) -> Self {
        Positions { size, by_place: vec![NOWHERE; pages * Self::each(size)] }
    }

    /// No two nodes of a page begin within the size of one.
    fn each(size: usize) -> usize {
        PAGE.div_ceil(size)
    }

    fn place(&self, at: usize) -> usize {
        at / PAGE * Self::each(self.size) + at % PAGE / self.size
    }

    fn put(&mut self, at: usize, position: u32) {
        let place = self.place(at);
        if let Some(known) = self.by_place.get_mut(place) {
            *known = position;
        }
    }

    /// [`NOWHERE`] if none of this tree begins there.
    fn of(&self, at: u32, nodes: &Nodes) -> u32 {
        let position = self.by_place.get(self.place(at as usize)).copied().unwrap_or(NOWHERE);
        if nodes.place(position as usize) == Some(at) { position } else { NOWHERE }
    }
}

/// `bytes` are all of them where calls are followed, else none.
pub(crate) fn read_trees(
    head: &[u8],
    window: &mut Window<'_>,
    holds: Holds,
    bytes: &[u8],
) -> Trees {
    let pages = window.length() / PAGE;
    // For the page of a tree its position in `trees`.
    let mut tree_of_page = vec![NOWHERE; pages];
    let mut positions = Positions::new(pages, holds.node_size());
    let mut trees: Vec<Tree> = Vec::new();
    let mut of_followed_calls: HashSet<u32> = HashSet::new();
    let mut regions = Vec::new();
    let paused = u64_at(head, header::PAUSED).unwrap_or(0);
    let first = u64_at(head, header::FIRST).unwrap_or(0);
    let mut number = usize::try_from(first).unwrap_or(usize::MAX).div_ceil(PAGE).max(1);
    while number < pages {
        let at = number * PAGE;
        let page = window.at(at, PAGE);
        let kind = u32_at(page, page::KIND).unwrap_or(0);
        let owner = u32_at(page, page::TREE).unwrap_or(0) as usize / PAGE;
        let mut step = 1;
        match kind {
            page::KIND_TREE => {
                tree_of_page[number] = trees.len() as u32;
                let mut tree = read_tree_head(page, at);
                tree.adjust = tree.adjust.saturating_add(paused);
                if u32_at(page, tree::FLAGS).unwrap_or(0) & tree::FLAG_FOLLOWED != 0 {
                    of_followed_calls.insert(tree.at);
                }
                read_nodes(page, at, tree::ROOT, holds, &mut tree, &mut positions);
                trees.push(tree);
            }
            page::KIND_NODES => {
                let owner = tree_of_page.get(owner).copied().unwrap_or(NOWHERE);
                if let Some(tree) = trees.get_mut(owner as usize) {
                    read_nodes(page, at, page::HEAD, holds, tree, &mut positions);
                }
            }
            page::KIND_TABLE | page::KIND_REGION | page::KIND_STACK => {
                step = (u32_at(page, page::PAGES).unwrap_or(1) as usize).max(1);
                if kind == page::KIND_REGION {
                    regions.extend(regions::read(window.at(at, region::BYTES), at));
                }
            }
            // Handed out, but its owner has not written to it yet.
            _ => {}
        }
        number += step;
    }
    for tree in &mut trees {
        settle(tree, &positions);
    }
    drop(positions);
    let followed: Vec<Tree> =
        trees.extract_if(.., |tree| of_followed_calls.contains(&tree.at)).collect();
    let mut known = FollowedCalls::default();
    if holds == Holds::Followed {
        known = follow::known(bytes, &mut trees);
    }
    // The agent's own thread has a tree for its calibration.
    let with_regions: HashSet<u32> = regions.iter().map(|(owner, _)| *owner).collect();
    trees.retain(|tree| {
        with_regions.contains(&tree.at) || tree.nodes.iter().any(|node| node.is_of_the_program())
    });
    let regions = regions::of_trees(regions, &trees);
    known.kept = follow::kept_calls(bytes, &trees, followed);
    Trees { trees, regions, followed: known }
}

/// `page` is the one at `at`.
fn read_tree_head(page: &[u8], at: usize) -> Tree {
    let flags = u32_at(page, tree::FLAGS).unwrap_or(0);
    let of_virtual_threads = flags & tree::FLAG_VIRTUAL != 0;
    let coded = u32_at(page, tree::NAME).unwrap_or(0);
    let length = (coded as usize & 0xffff).min(tree::NAME_MAX);
    let raw = page.get(tree::NAME + 4..).and_then(|b| b.get(..length)).unwrap_or(&[]);
    // Java keeps a string as Latin-1 or as UTF-16, in the machine's order.
    let name = if coded >> 16 == 0 {
        raw.iter().map(|&b| char::from(b)).collect()
    } else {
        let units: Vec<u16> =
            raw.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    Tree {
        // References inside an arena have 32 bits, and so has its length.
        at: at as u32,
        thread: u64_at(page, tree::THREAD).unwrap_or(0),
        name,
        of_virtual_threads,
        shared: flags & tree::FLAG_SHARED != 0,
        adjust: u64_at(page, tree::ADJUST).unwrap_or(0),
        nodes: Nodes::default(),
        variances: Vec::new(),
    }
}

/// The nodes of the page at `begin`, from `from` in it on.
fn read_nodes(
    page: &[u8],
    begin: usize,
    from: usize,
    holds: Holds,
    tree: &mut Tree,
    positions: &mut Positions,
) {
    let size = holds.node_size();
    let some = holds == Holds::SomeTimes;
    let timed = matches!(holds, Holds::Times | Holds::Followed) || some;
    let counted = matches!(holds, Holds::Bytecodes | Holds::Allocations | Holds::Samples);
    let (objects, made) = match holds {
        Holds::Sites => (node::MADE, node::MADE_BYTES),
        _ => (node::OBJECTS, node::BYTES),
    };
    let allocates = matches!(holds, Holds::Allocations | Holds::Sites);
    for at in (from..).step_by(size).take_while(|at| at + size <= page.len().min(PAGE)) {
        let method = u32_at(page, at + node::METHOD).unwrap_or(0).cast_signed();
        // Nothing yet; or, where a thread was stopped while it made a node, nothing ever.
        if method == 0 || method == layout::FREED {
            continue;
        }
        if (method == layout::ROOT) != tree.nodes.is_empty() {
            continue;
        }
        positions.put(begin + at, tree.nodes.len() as u32);
        let field = |is: bool, field| if is { u64_at(page, at + field).unwrap_or(0) } else { 0 };
        let count = u64_at(page, at + node::COUNT).unwrap_or(0);
        let estimate = some.then(|| Estimate::read(page, at, method, count));
        // A call that was to be timed and never ended has left the time of its beginning.
        let next = u32_at(page, at + node::AT).unwrap_or(0);
        let waits = some && (count as u32).wrapping_sub(next).cast_signed() < 0;
        tree.nodes.push(Node {
            at: (begin + at) as u32,
            // An offset; `settle` makes it a position.
            parent: u32_at(page, at + node::PARENT).unwrap_or(0),
            method,
            count,
            total: estimate.map_or_else(|| field(timed, node::TOTAL), |estimate| estimate.total),
            some_timed: estimate.map_or(0, |estimate| estimate.timed),
            error: estimate.map_or(0, |estimate| estimate.error),
            start: field(timed && !waits, node::START),
            calling: field(timed && !some, node::CALLING) / 2,
            bytecodes: field(counted, node::BYTECODES),
            objects: field(allocates, objects),
            bytes: field(allocates, made),
        });
    }
}

/// Turns the parents of a tree's nodes from offsets into positions, and the nodes into an order in
/// which parents come first. What has no way to the root, in damaged bytes, is left out.
fn settle(tree: &mut Tree, positions: &Positions) {
    let nodes = &mut tree.nodes;
    let mut in_order = true;
    for mine in 0..nodes.len() {
        let parent = match mine {
            0 => 0,
            _ => positions.of(nodes.parent(mine) as u32, nodes),
        };
        nodes.set_parent(mine, parent);
        in_order &= mine == 0 || (parent as usize) < mine;
    }
    if in_order {
        return;
    }
    // The children of each node, one after the other, and where they begin.
    let count = nodes.len();
    let with_parent =
        || (1..count).map(|mine| (mine, nodes.parent(mine))).filter(|it| it.1 < count);
    let mut begin = vec![0_usize; count + 2];
    for (_, parent) in with_parent() {
        begin[parent + 2] += 1;
    }
    for at in 2..begin.len() {
        begin[at] += begin[at - 1];
    }
    let mut children = vec![0_u32; count];
    for (mine, parent) in with_parent() {
        let place = &mut begin[parent + 1];
        children[*place] = mine as u32;
        *place += 1;
    }
    // Level by level from the root; `old` is the queue.
    let mut sorted = Nodes::default();
    let mut old = Vec::with_capacity(count);
    if count > 0 {
        sorted.push(nodes.get(0));
        old.push(0_usize);
    }
    let mut at = 0;
    while at < old.len() {
        for &child in &children[begin[old[at]]..begin[old[at] + 1]] {
            sorted.push(Node { parent: at as u32, ..nodes.get(child as usize) });
            old.push(child as usize);
        }
        at += 1;
    }
    tree.nodes = sorted;
}
