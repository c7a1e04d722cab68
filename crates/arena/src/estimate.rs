//! The time of all calls of a context of which only some were timed, and how far it may be off.

use crate::layout::{REST, node};
use crate::tree::{u32_at, u64_at};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// In ticks, and so is the standard error of it.
    pub total: u64,
    pub error: u64,
    /// Calls that were timed.
    pub timed: u64,
}

/// What a node holds.
#[derive(Clone, Copy)]
struct Held {
    count: u64,
    /// The time of the first calls.
    first: u64,
    /// Of the others: how many were drawn, the sum of their times and that of the squares.
    drawn: u64,
    total: u64,
    squares: f64,
}

impl Estimate {
    /// Of the node at a place.
    pub fn read(bytes: &[u8], at: usize, method: i32, count: u64) -> Self {
        let word = |field| u64_at(bytes, at + field).unwrap_or(0);
        let held = Held {
            count,
            first: word(node::FIRST_TOTAL),
            drawn: u32_at(bytes, at + node::TIMED_CALLS).unwrap_or(0).into(),
            total: word(node::TOTAL),
            squares: f64::from_bits(word(node::SQUARES)),
        };
        // Of what stands for the rest, all calls are timed that enter it; it counts others, too.
        match method {
            REST => Estimate { total: held.first, error: 0, timed: 0 },
            _ => Self::of(held),
        }
    }

    /// All of the first calls are timed. Of the others some were, drawn at random: each stands for
    /// as many as the next.
    fn of(held: Held) -> Self {
        let Held { count, first, drawn, total, squares } = held;
        let others = count.saturating_sub(node::FIRST_CALLS);
        if others == 0 {
            return Estimate { total: first, error: 0, timed: count };
        }
        let timed = node::FIRST_CALLS.saturating_add(drawn);
        let (others, number) = (others as f64, drawn as f64);
        // As long as none of the others was drawn, they are taken to be as the first ones were.
        let mean = match drawn {
            0 => first as f64 / node::FIRST_CALLS as f64,
            _ => total as f64 / number,
        };
        // Of one nobody knows how much calls differ: as much as they take.
        let spread = match drawn {
            0 | 1 => mean * mean,
            _ => ((squares - total as f64 * mean) / (number - 1.0)).max(0.0),
        };
        let left = (1.0 - number / others).max(0.0);
        let error = others * (left * spread / number.max(1.0)).sqrt();
        // A float that is none, in damaged bytes, is zero as a number.
        let total = first.saturating_add((mean * others) as u64);
        Estimate { total, error: error as u64, timed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = node::FIRST_CALLS;

    fn held(count: u64, first: u64, times: &[u64]) -> Held {
        Held {
            count,
            first,
            drawn: times.len() as u64,
            total: times.iter().sum(),
            squares: times.iter().map(|time| (*time as f64).powi(2)).sum(),
        }
    }

    #[test]
    fn the_first_calls_are_exact_and_the_others_stand_for_as_many_each() {
        let few = Estimate::of(held(FIRST, 6_400, &[]));
        assert_eq!(few, Estimate { total: 6_400, error: 0, timed: FIRST });
        // Warm calls are quicker than the first ones were: 300 of 10 each.
        let many = Estimate::of(held(FIRST + 300, 6_400, &[10, 10, 10]));
        assert_eq!(many, Estimate { total: 9_400, error: 0, timed: FIRST + 3 });
        let none_drawn = Estimate::of(held(FIRST + 2, 6_400, &[]));
        assert_eq!(none_drawn.total, 6_600);
        assert!(none_drawn.error > 0);
    }

    #[test]
    fn the_error_follows_from_how_calls_differ_and_how_many_were_drawn() {
        // 100 calls of 0 or 20, of which four were drawn: 1,000 with a standard error of
        // 100 · sqrt(0.96 · 133.3 / 4).
        let estimate = Estimate::of(held(FIRST + 100, 0, &[0, 20, 0, 20]));
        assert_eq!((estimate.total, estimate.error), (1_000, 565));
        // Who has timed all of them is sure.
        let sure = Estimate::of(held(FIRST + 4, 0, &[0, 20, 0, 20]));
        assert_eq!((sure.total, sure.error), (40, 0));
    }

    #[test]
    fn damaged_numbers_are_no_fault() {
        let held = Held { count: u64::MAX, first: 1, drawn: 1, total: u64::MAX, squares: f64::NAN };
        assert_eq!(Estimate::of(held).total, u64::MAX);
        Estimate::of(Held { drawn: u64::MAX, ..held });
    }
}
