//! A fast hash of the numbers that constants go by. It is looked up several times per event, and the
//! standard one took most of the time. The secret keeps a made-up file from choosing its collisions.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

pub type NumberMap<V> = HashMap<i64, V, Secret>;

#[derive(Clone)]
pub struct Secret(u64);

impl Default for Secret {
    fn default() -> Self {
        Secret(RandomState::new().hash_one(0_u64) | 1)
    }
}

impl BuildHasher for Secret {
    type Hasher = NumberHasher;

    fn build_hasher(&self) -> NumberHasher {
        NumberHasher(self.0)
    }
}

pub struct NumberHasher(u64);

impl NumberHasher {
    /// Both halves of a product: every bit of the number reaches every bit of the hash.
    fn mix(&mut self, number: u64) {
        let product = u128::from(number ^ self.0) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    fn write_i64(&mut self, number: i64) {
        self.mix(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
