//! How the memory of a session is divided between trees and the names of methods.
//!
//! Names have a part that trees never take, so that what is woven has a name. Beyond it both may
//! have what the other does not use: names up to half of the whole; trees, which are allocated
//! ahead of need, leave some to names until they really need it. Together they never take more than
//! was asked for, but for small budgets (below 64 MB), where names come on top.

/// The part that is kept for names whatever trees need. Trees get the rest of a small budget at
/// once: threads use it up sooner than anybody could allocate more. There names may have half as
/// much on top: without names nothing is woven, and what was asked for is little.
const SHARE: u64 = 8;
const SMALL: u64 = 64 << 20;

/// What names may come to when all of the JDK is woven. Trees do not take it before they need it.
const AT_FIRST: u64 = 4 << 20;

#[derive(Clone, Copy, Debug)]
pub struct Budget {
    whole: u64,
    /// What each has taken so far.
    trees: u64,
    names: u64,
}

/// Why trees want more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// It may be needed later.
    Ahead,
    Needed,
}

impl Budget {
    pub fn new(whole: u64) -> Self {
        Budget { whole, trees: 0, names: 0 }
    }

    fn kept_for_names(&self) -> u64 {
        self.whole / SHARE
    }

    /// The most that trees may have, now.
    pub fn for_trees(&self, want: Want) -> u64 {
        let kept = self.kept_for_names();
        if self.whole < SMALL {
            return self.whole - kept;
        }
        let kept = match want {
            Want::Ahead => AT_FIRST.max(kept),
            Want::Needed => kept,
        };
        self.whole - self.names.max(kept)
    }

    fn for_names(&self) -> u64 {
        if self.whole < SMALL {
            return self.whole / 2;
        }
        self.kept_for_names().max((self.whole / 2).min(self.whole - self.trees))
    }

    /// Trees want so much in all; how much of it they have now.
    pub fn take_for_trees(&mut self, wanted: u64, want: Want) -> u64 {
        self.trees = self.trees.max(wanted.min(self.for_trees(want)));
        self.trees
    }

    /// Trees could not get what they took.
    pub fn leave_to_trees(&mut self, have: u64) {
        self.trees = have;
    }

    /// Names want so much in all; whether they have it now. They may want less than before.
    pub fn take_for_names(&mut self, wanted: u64) -> bool {
        let fits = wanted <= self.for_names();
        if fits {
            self.names = wanted;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;
    const ALL: u64 = 10_000 * MB;

    #[test]
    fn both_together_never_have_more_than_the_whole() {
        let mut budget = Budget::new(800 * MB);
        assert_eq!(budget.take_for_trees(ALL, Want::Needed), 700 * MB, "names have their part");
        assert!(budget.take_for_names(100 * MB));
        assert!(!budget.take_for_names(100 * MB + 1));

        let mut budget = Budget::new(800 * MB);
        assert_eq!(budget.take_for_trees(300 * MB, Want::Needed), 300 * MB);
        assert!(budget.take_for_names(400 * MB), "half, as long as trees do not use it");
        assert!(!budget.take_for_names(400 * MB + 1));
        assert_eq!(budget.take_for_trees(ALL, Want::Needed), 400 * MB);
        assert!(budget.take_for_names(50 * MB));
        assert_eq!(budget.take_for_trees(ALL, Want::Needed), 700 * MB, "what names gave back");
        budget.leave_to_trees(600 * MB);
        assert!(budget.take_for_names(200 * MB) && !budget.take_for_names(200 * MB + 1));
    }

    #[test]
    fn a_small_budget_is_divided_at_once() {
        let mut budget = Budget::new(8 * MB);
        assert_eq!(budget.take_for_trees(ALL, Want::Ahead), 7 * MB);
        assert_eq!(budget.take_for_trees(ALL, Want::Needed), 7 * MB);
        assert!(budget.take_for_names(4 * MB) && !budget.take_for_names(4 * MB + 1));
        assert_eq!(budget.for_trees(Want::Needed), 7 * MB, "names are on top");
        let mut large = Budget::new(800 * MB);
        assert_eq!(large.take_for_trees(ALL, Want::Ahead), 700 * MB);
    }
}
