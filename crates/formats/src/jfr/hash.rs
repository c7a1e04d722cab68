//! A fast hash of the numbers that constants go by. It is looked up several times per event, and
//! the standard one took most of the time. The secret keeps a made-up file from choosing its
//! collisions.

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
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    fn write_i64(&mut self, number: i64) {
        self.mix(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Values by key, for what every event asks for. Writers number constants from one on, so most keys
/// are places in a list.
pub struct ByKey<V> {
    low: Vec<Option<V>>,
    rest: NumberMap<V>,
}

impl<V> Default for ByKey<V> {
    fn default() -> Self {
        ByKey { low: Vec::new(), rest: NumberMap::default() }
    }
}

impl<V: Copy> ByKey<V> {
    pub fn get(&self, key: i64) -> Option<V> {
        let low = usize::try_from(key).ok().and_then(|place| self.low.get(place));
        low.copied().flatten().or_else(|| self.rest.get(&key).copied())
    }

    /// `constants` is how many there can be: the list grows to twice as many places at most.
    pub fn insert(&mut self, key: i64, value: V, constants: usize) {
        match usize::try_from(key).ok().filter(|place| *place < constants.saturating_mul(2)) {
            Some(place) => {
                if self.low.len() <= place {
                    self.low.resize(place + 1, None);
                }
                self.low[place] = Some(value);
            }
            None => {
                self.rest.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_size_are_found() {
        let mut by_key = ByKey::default();
        for key in [0, 5, 3, -1, i64::MAX, i64::MIN, 19, 20] {
            by_key.insert(key, key, 10);
            assert_eq!(by_key.get(key), Some(key));
        }
        assert_eq!(by_key.low.len(), 20);
        assert_eq!([1, 4, 21, -2].map(|key| by_key.get(key)), [None; 4]);
    }
}
