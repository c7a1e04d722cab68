//! The figures of code regions, one set for each region and thread that passed it.

use crate::layout::{page, region};
use crate::tree::{Tree, u32_at, u64_at};

/// How often and how long one thread was in a region, in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionFigures {
    /// Where they lie in the arena: the same in every snapshot of a session.
    pub at: u32,
    /// The number of the region in its session.
    pub region: u32,
    /// Position of the thread's tree in the snapshot.
    pub tree: usize,
    pub count: u64,
    pub total: u64,
    pub min: u64,
    pub max: u64,
    /// How many times were in each stretch that [`stretch`] knows; those without any are left out.
    pub times: Vec<(usize, u64)>,
}

/// The first and the last tick of a stretch of times.
#[must_use]
pub fn stretch(number: usize) -> (u64, u64) {
    let number = number as u64;
    let each = 1 << region::SHIFT;
    if number < 2 * each {
        return (number, number);
    }
    let power = number / each - 1;
    let first = (each + number % each) << power;
    (first, first + (1 << power) - 1)
}

/// The figures in the bytes at a place, with where the tree of their thread lies; their `tree` is
/// not known yet. Nothing where they are not whole.
pub(crate) fn read(bytes: &[u8], at: usize) -> Option<(u32, RegionFigures)> {
    if bytes.len() < region::BYTES {
        return None;
    }
    let most = (region::BYTES - region::TIMES) / 8;
    let times = (0..most).map(|n| (n, u64_at(bytes, region::TIMES + n * 8).unwrap_or(0)));
    let figures = RegionFigures {
        at: at as u32,
        region: u32_at(bytes, region::REGION)?,
        tree: 0,
        count: u64_at(bytes, region::COUNT)?,
        total: u64_at(bytes, region::TOTAL)?,
        min: u64_at(bytes, region::MIN)?,
        max: u64_at(bytes, region::MAX)?,
        times: times.filter(|(_, count)| *count > 0).collect(),
    };
    Some((u32_at(bytes, page::TREE)?, figures))
}

/// Those that were passed, by the trees of the threads that did.
pub(crate) fn of_trees(read: Vec<(u32, RegionFigures)>, trees: &[Tree]) -> Vec<RegionFigures> {
    let of_tree = |(owner, figures): (u32, RegionFigures)| {
        let tree = trees.binary_search_by_key(&owner, |tree| tree.at).ok()?;
        (figures.count > 0).then_some(RegionFigures { tree, ..figures })
    };
    read.into_iter().filter_map(of_tree).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the probes count a time.
    fn number(time: u64) -> usize {
        if time >> region::SHIFT == 0 {
            return time as usize;
        }
        let power = (time >> region::SHIFT).ilog2();
        ((u64::from(power) << region::SHIFT) + (time >> power)) as usize
    }

    #[test]
    fn stretches_follow_each_other() {
        let mut next = 0;
        for n in 0..720 {
            let (first, last) = stretch(n);
            assert_eq!(first, next, "{n}");
            assert_eq!((number(first), number(last)), (n, n));
            next = last + 1;
        }
        assert_eq!(next, 1 << 48);
        const { assert!(region::TIMES + 720 * 8 <= region::BYTES) };
    }
}
