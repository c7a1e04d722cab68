//! Numbers that look random and are the same for the same seed, in every version of this program.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The seed of one part of what a seed stands for, so that the part can be repeated alone.
    pub fn part(seed: u64, number: u64) -> u64 {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number).next()
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_parts_differ() {
        let take = |seed| {
            let mut random = Random::new(seed);
            (0..50).map(|_| random.between(3, 12)).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        assert!(take(7).iter().all(|number| (3..=12).contains(number)));
        assert!((3..=12).all(|wanted| (1..20).any(|seed| take(seed).contains(&wanted))));
        assert_ne!(Random::part(1, 1), Random::part(1, 2));
        assert_ne!(Random::part(1, 2), Random::part(2, 1));
    }
}
