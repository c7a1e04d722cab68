//! The dominator tree as far as it is large: for a map of who holds what.

use super::suspects::Big;
use crate::dominators::Place;
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::Node;
use crate::path::By;

#[derive(Clone, Debug)]
pub struct Outline {
    /// `None` is the JVM, which holds all.
    pub node: Option<Node>,
    /// How it is referred to, if by something with a name.
    pub by: Option<By>,
    pub retained: u64,
    /// The largest first. What they retain less than this does is in many small parts.
    pub children: Vec<Outline>,
}

/// Deeper parts are too small to be seen, or one chain.
const DEEPEST: usize = 14;

impl Heap {
    /// All that retains at least this share of the whole; at most so many children of each.
    pub fn outline(&self, least: f64, most: usize) -> Result<Outline> {
        let total = self.tree.retained(0);
        let big = Big::new(self, ((total as f64 * least) as u64).max(1));
        let children = self.outlines(&big, 0, most, 0)?;
        Ok(Outline { node: None, by: None, retained: total, children })
    }

    fn outlines(&self, big: &Big, above: Place, most: usize, depth: usize) -> Result<Vec<Outline>> {
        if depth == DEEPEST {
            return Ok(Vec::new());
        }
        let mut places: Vec<Place> = big.children(above).collect();
        places.sort_by_key(|place| (std::cmp::Reverse(self.tree.retained(*place)), *place));
        places.truncate(most);
        let one = |place: Place| -> Result<Outline> {
            let node = self.tree.node(place);
            let by = match above {
                0 => None,
                above => Some(self.how(self.tree.node(above), node)?),
            };
            let children = self.outlines(big, place, most, depth + 1)?;
            Ok(Outline { node: Some(node), by, retained: self.tree.retained(place), children })
        };
        places.into_iter().map(one).collect()
    }
}
