//! A map for pairs of numbers, quicker than the standard one where there are millions of them.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// From two row numbers, packed by [`pair`].
pub type PairMap<V> = HashMap<u64, V, PairHash>;

pub const fn pair(a: u32, b: u32) -> u64 {
    (a as u64) << 32 | b as u64
}

/// Seeded per map, so that no file can be made whose pairs collide.
#[derive(Clone, Copy)]
pub struct PairHash(u64);

impl Default for PairHash {
    fn default() -> Self {
        PairHash(RandomState::new().hash_one(0_u8))
    }
}

impl BuildHasher for PairHash {
    type Hasher = PairHasher;

    fn build_hasher(&self) -> PairHasher {
        PairHasher(self.0)
    }
}

pub struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}
