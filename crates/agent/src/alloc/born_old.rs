//! Objects that are born old: G1 gives an object of half a region or more regions of its own among
//! the old ones. That it is there after a collection of young objects proves nothing.
//!
//! A collection of the whole heap decides about it, and so does G1's concurrent marking, in the
//! pause that ends it (remark). HotSpot counts pauses of either kind. The second kind has remarks
//! and cleanups in turns, and cleanups may be left out: of three in a row there is always a remark
//! whose marking began after the first of the three was due. So an object is proven by three.

use crate::perf_memory;
use crate::vm_tables::Tables;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// By their numbers among the JVM's collectors: G1's pauses for the whole heap, and those of its
/// concurrent marking.
const WHOLE: usize = 1;
const MARKING: usize = 2;

/// Pauses of the marking that contain a whole one.
const PROOF: u64 = 3;

/// How many there were of each by the end of the last pause.
static WHOLE_ENDED: AtomicU64 = AtomicU64::new(0);
static MARKING_ENDED: AtomicU64 = AtomicU64::new(0);

/// A pause of a collector ends; the world stands still.
pub fn pause_ends() {
    if let [_, whole, marking, ..] = perf_memory::known_collectors() {
        WHOLE_ENDED.store(whole.runs(), Release);
        MARKING_ENDED.store(marking.runs(), Release);
    }
}

/// Objects below `next` were born before the count was higher.
#[derive(Clone, Copy, Debug)]
struct Mark {
    count: u64,
    next: u64,
}

/// Followed by the control thread.
#[derive(Debug)]
pub struct BornOld {
    /// Objects of this size and larger ones are born old.
    pub from: u64,
    whole: Mark,
    marking: Mark,
    /// Those with lower numbers are proven, if they live.
    pub below: u64,
}

impl BornOld {
    /// No object is born old here, or it is not known.
    pub fn none() -> Self {
        let mark = Mark { count: 0, next: 0 };
        BornOld { from: u64::MAX, whole: mark, marking: mark, below: 0 }
    }

    /// With this JVM's collector.
    pub fn new(tables: &Tables) -> Self {
        let is_g1 = tables.flag("UseG1GC") == Some(true);
        let region = tables.size_flag("G1HeapRegionSize").filter(|size| is_g1 && *size > 0);
        let counts = [WHOLE, MARKING].map(|number| perf_memory::collectors().get(number));
        let (Some(region), [Some(whole), Some(marking)]) = (region, counts) else {
            return Self::none();
        };
        WHOLE_ENDED.store(whole.runs(), Release);
        MARKING_ENDED.store(marking.runs(), Release);
        let mark = |count| Mark { count, next: 0 };
        let (whole, marking) = (mark(whole.runs()), mark(marking.runs()));
        BornOld { from: region / 2, whole, marking, below: 0 }
    }

    /// Looks at the counts; `next` is the number that the next object gets, read before.
    pub fn look(&mut self, next: u64) {
        self.count(next, WHOLE_ENDED.load(Acquire), MARKING_ENDED.load(Acquire));
    }

    fn count(&mut self, next: u64, whole: u64, marking: u64) {
        if whole != self.whole.count {
            self.below = self.below.max(self.whole.next);
        }
        self.whole = Mark { count: whole, next };
        if marking >= self.marking.count + PROOF {
            self.below = self.below.max(self.marking.next);
            self.marking = Mark { count: marking, next };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn born_old() -> BornOld {
        let mark = Mark { count: 5, next: 0 };
        BornOld { from: 1 << 20, whole: mark, marking: mark, below: 0 }
    }

    #[test]
    fn a_whole_collection_proves_what_was_there_before_it() {
        let mut old = born_old();
        old.count(10, 5, 5);
        old.count(20, 5, 5);
        assert_eq!(old.below, 0);
        old.count(25, 6, 5);
        assert_eq!(old.below, 20, "what came since the last look may be younger");
        old.count(30, 7, 5);
        assert_eq!(old.below, 25);
    }

    #[test]
    fn three_pauses_of_the_marking_prove() {
        let mut old = born_old();
        old.count(10, 5, 8);
        assert_eq!(old.below, 0, "nothing was there before the first look");
        old.count(20, 5, 9);
        old.count(30, 5, 10);
        assert_eq!(old.below, 0);
        old.count(40, 5, 11);
        assert_eq!(old.below, 10);
        old.count(50, 5, 20);
        assert_eq!(old.below, 40);
    }
}
