//! Chance that is the same in every run: splitmix64.

/// Its state is the seed.
pub struct Dice(pub u64);

impl Dice {
    /// Any number.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// An index of something with so many elements; zero if it has none.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length.max(1) as u64) as usize
    }
}
