//! How the memory of a session is divided between trees and the names of methods.
//!
//! Names have a part that trees never take, so that what is woven has a name; beyond it they may have
//! what the trees do not use yet, up to half of the whole. Together they never take more than was
//! asked for.

/// The part that is kept for names.
const SHARE: u64 = 8;

#[derive(Clone, Copy, Debug)]
pub struct Budget {
    whole: u64,
    /// What each has taken so far.
    trees: u64,
    names: u64,
}

impl Budget {
    pub fn new(whole: u64) -> Self {
        Budget { whole, trees: 0, names: 0 }
    }

    /// The most that trees may have, now.
    pub fn for_trees(&self) -> u64 {
        self.whole - self.names.max(self.whole / SHARE)
    }

    fn for_names(&self) -> u64 {
        (self.whole / SHARE).max((self.whole / 2).min(self.whole - self.trees))
    }

    /// Trees want so much in all; how much of it they have now.
    pub fn take_for_trees(&mut self, wanted: u64) -> u64 {
        self.trees = self.trees.max(wanted.min(self.for_trees()));
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

    #[test]
    fn both_together_never_have_more_than_the_whole() {
        let mut budget = Budget::new(800);
        assert_eq!(budget.take_for_trees(10_000), 700, "names have a part of their own");
        assert!(budget.take_for_names(100));
        assert!(!budget.take_for_names(101));

        let mut budget = Budget::new(800);
        assert_eq!(budget.take_for_trees(300), 300);
        assert!(budget.take_for_names(400), "half, as long as trees do not use it");
        assert!(!budget.take_for_names(401));
        assert_eq!(budget.take_for_trees(10_000), 400);
        assert!(budget.take_for_names(50));
        assert_eq!(budget.take_for_trees(10_000), 700, "what names gave back");
        budget.leave_to_trees(600);
        assert!(budget.take_for_names(200) && !budget.take_for_names(201));
    }
}
