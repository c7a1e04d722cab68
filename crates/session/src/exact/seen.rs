//! What is known of each node since the last look, by where the node lies. There may be many
//! millions, so nodes take no more than their session counts.

use tare_arena::layout::{self, Holds};
use tare_profile::{ContextId, ThreadId};

/// What nodes may have beside their calls, at most.
pub(super) const FIGURES: usize = 5;

/// A node as it was at the last look.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    /// The root for nodes that are not shown.
    pub context: ContextId,
    pub thread: ThreadId,
    /// With the context's parent it says whether the same node is still there.
    pub method: i32,
    /// The look, and whether the calls have no time.
    pub stamp: Stamp,
    pub count: u64,
}

impl Seen {
    /// Those of the calls that have no time.
    pub fn untimed(&self) -> u64 {
        if self.stamp.is_untimed() { self.count } else { 0 }
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Stamp(u32);

impl Stamp {
    pub fn new(look: u32, is_untimed: bool) -> Self {
        Stamp(look << 1 | u32::from(is_untimed))
    }

    pub fn is_of(self, look: u32) -> bool {
        self.0 >> 1 == look << 1 >> 1
    }

    fn is_untimed(self) -> bool {
        self.0 & 1 != 0
    }
}

/// What a node has beside its calls, in the order of the session's series.
pub(super) type Figures = [u64; FIGURES];

/// A page of the arena, and the place of a node in it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    page: usize,
    place: usize,
}

/// Nodes by their places.
#[derive(Default)]
pub(super) struct SeenNodes {
    /// Bytes of a node: no two nodes of a page begin within so many.
    size: usize,
    /// How many figures each has.
    figures: usize,
    pages: Vec<Page>,
}

#[derive(Default)]
struct Page {
    seen: Vec<Seen>,
    /// Those of one node after those of the other.
    figures: Vec<u64>,
}

impl SeenNodes {
    pub fn new(holds: Holds, figures: usize) -> Self {
        SeenNodes { size: holds.node_size(), figures: figures.min(FIGURES), pages: Vec::new() }
    }

    fn each(&self) -> usize {
        layout::PAGE.div_ceil(self.size)
    }

    /// The place of a node, with room for it.
    pub fn place(&mut self, node: u32) -> Place {
        let (page, at) = (node as usize / layout::PAGE, node as usize % layout::PAGE);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, Page::default);
        }
        let each = self.each();
        let known = &mut self.pages[page];
        if known.seen.is_empty() {
            known.seen = vec![Seen::default(); each];
            known.figures = vec![0; each * self.figures];
        }
        Place { page, place: at / self.size }
    }

    pub fn get(&self, Place { page, place }: Place) -> (Seen, Figures) {
        let page = &self.pages[page];
        let mut figures = Figures::default();
        let from = place * self.figures;
        figures[..self.figures].copy_from_slice(&page.figures[from..from + self.figures]);
        (page.seen[place], figures)
    }

    pub fn set(&mut self, Place { page, place }: Place, seen: Seen, figures: &Figures) {
        let page = &mut self.pages[page];
        let from = place * self.figures;
        page.seen[place] = seen;
        page.figures[from..from + self.figures].copy_from_slice(&figures[..self.figures]);
    }

    /// The node that lies there, as of the last look.
    pub fn of(&self, node: u32) -> Option<Seen> {
        let page = self.pages.get(node as usize / layout::PAGE)?;
        page.seen.get(node as usize % layout::PAGE / self.size).copied()
    }

    /// Takes out all nodes that the last look has not met.
    pub fn gone(&mut self, look: u32, mut each: impl FnMut(Seen, &Figures)) {
        for page in 0..self.pages.len() {
            for place in 0..self.pages[page].seen.len() {
                let (seen, figures) = self.get(Place { page, place });
                if seen.context != ContextId::ROOT && !seen.stamp.is_of(look) {
                    self.pages[page].seen[place] = Seen::default();
                    each(seen, &figures);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_side_by_side_have_places_of_their_own() {
        for (holds, figures) in [(Holds::Nothing, 0), (Holds::SomeTimes, 4), (Holds::Followed, 5)] {
            let mut nodes = SeenNodes::new(holds, figures);
            let node = |number: u32| {
                let page = 1 + number / 10;
                page * layout::PAGE as u32 + 128 + number % 10 * holds.node_size() as u32
            };
            for number in 0..30 {
                let place = nodes.place(node(number));
                let context = ContextId::new(number + 1);
                let look = Stamp::new(number % 2, false);
                let seen = Seen { context, stamp: look, count: 1, ..Seen::default() };
                nodes.set(place, seen, &[u64::from(number); FIGURES]);
            }
            for number in 0..30 {
                let place = nodes.place(node(number));
                let (seen, has) = nodes.get(place);
                assert_eq!(seen.context, ContextId::new(number + 1));
                assert!(has[..figures].iter().all(|figure| *figure == u64::from(number)));
                assert!(nodes.of(node(number)).is_some_and(|other| other.context == seen.context));
            }
            let mut gone = 0;
            nodes.gone(1, |seen, _| gone += seen.count);
            assert_eq!(gone, 15, "those of the other look");
            nodes.gone(1, |_, _| panic!("they were taken out"));
        }
    }

    #[test]
    fn calls_without_a_time_are_told_beside_the_look() {
        let seen = |untimed| Seen { count: 7, stamp: Stamp::new(3, untimed), ..Seen::default() };
        assert_eq!((seen(true).untimed(), seen(false).untimed()), (7, 0));
        assert!(seen(true).stamp.is_of(3) && !seen(true).stamp.is_of(4));
    }
}
