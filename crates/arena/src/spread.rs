//! How long the calls of a context took: how many calls in each of some stretches of time.

use crate::layout::{node, spread};
use crate::tree::{u32_at, u64_at};

/// The lengths of a context's calls, each with as many calls as it stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Where the context's node lies.
    pub at: u32,
    /// The numbers of stretches that have any, in their order.
    pub calls: Vec<(u8, u64)>,
}

impl Spread {
    /// Of the node at a place, if it has one.
    pub(crate) fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let first = u32_at(bytes, at + node::SPREAD).filter(|first| *first != 0)? as usize;
        let number = |number: u8| {
            let calls = u64_at(bytes, first + usize::from(number) * 8)?;
            (calls > 0).then_some((number, calls))
        };
        let calls = (0..spread::STRETCHES as u8).filter_map(number).collect();
        Some(Spread { at: at as u32, calls })
    }
}

/// The first tick of a stretch, and the first behind it.
#[must_use]
pub fn spread_ticks(number: u8) -> (u64, u64) {
    let (number, each) = (u64::from(number), 1 << spread::SHIFT);
    if number < 2 * each {
        return (number << spread::DROPPED, (number + 1) << spread::DROPPED);
    }
    let power = number / each - 1;
    let first = (each + number % each) << power;
    (first << spread::DROPPED, (first + (1 << power)) << spread::DROPPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the probes count a time.
    fn number(ticks: u64) -> u8 {
        let steps = ticks >> spread::DROPPED;
        if steps >> spread::SHIFT == 0 {
            return steps as u8;
        }
        let power = 63 - spread::SHIFT - steps.leading_zeros();
        ((power << spread::SHIFT) + (steps >> power) as u32) as u8
    }

    #[test]
    fn stretches_follow_each_other() {
        let mut next = 0;
        for n in 0..spread::STRETCHES as u8 {
            let (first, behind) = spread_ticks(n);
            assert_eq!(first, next, "{n}");
            assert_eq!((number(first), number(behind - 1)), (n, n));
            next = behind;
        }
        // Half a minute and more by a clock of 3 GHz.
        assert!(next > 90_000_000_000, "{next}");
        const { assert!(spread::FIRST + 4 * spread::BYTES <= crate::layout::PAGE) };
    }
}
