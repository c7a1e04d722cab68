//! A hash index over rows that live elsewhere: it stores row numbers only, four bytes each.
//!
//! The standard map would have to own a second copy of every key. With millions of contexts that is
//! the larger half of the memory. The seed differs in every process, so that a file cannot be made
//! whose keys all fall into one place.

use std::hash::{BuildHasher, RandomState};

const FREE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// A power of two in length, or empty while nothing was inserted.
    slots: Vec<u32>,
    used: usize,
    seed: u64,
}

impl Index {
    /// An index of rows `0..rows`; no two of them may have equal keys, or one of them is not found.
    pub(crate) fn of(rows: u32, hash: impl Fn(&Index, u32) -> u64) -> Self {
        let mut index = Index { seed: RandomState::new().hash_one(0_u8), ..Index::default() };
        index.resize(rows as usize);
        for row in 0..rows {
            index.place(hash(&index, row), row);
        }
        index.used = rows as usize;
        index
    }

    pub(crate) fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                FREE => return None,
                row if is(row) => return Some(row),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Adds a row that `find` did not find. `rehash` gives the hash of any row inserted before.
    pub(crate) fn insert(&mut self, hash: u64, row: u32, rehash: impl Fn(&Index, u32) -> u64) {
        // Seven eighths full at most: probes stay short, and ten million rows take 64 MiB.
        if (self.used + 1) * 8 > self.slots.len() * 7 {
            let old = std::mem::take(&mut self.slots);
            self.resize((self.used + 1) * 2);
            for row in old.into_iter().filter(|&row| row != FREE) {
                self.place(rehash(self, row), row);
            }
        }
        self.place(hash, row);
        self.used += 1;
    }

    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    pub(crate) fn hash_numbers(&self, a: u64, b: u64) -> u64 {
        fold(fold(self.seed ^ a, 0x9e37_79b9_7f4a_7c15) ^ b, 0xd6e8_feb8_6659_fd93)
    }

    pub(crate) fn hash_text(&self, text: &str) -> u64 {
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        let mut hash = self.seed ^ text.len() as u64;
        for word in words {
            hash = fold(hash ^ u64::from_le_bytes(*word), 0x9e37_79b9_7f4a_7c15);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.hash_numbers(hash, u64::from_le_bytes(last))
    }

    fn resize(&mut self, rows: usize) {
        let slots = (rows * 8 / 7 + 1).next_power_of_two().max(16);
        self.slots = vec![FREE; slots];
    }

    fn place(&mut self, hash: u64, row: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = row;
    }
}

/// Both halves of the product, so that every bit of the input reaches the low bits of the result.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_after_growth_and_others_are_not() {
        let keys: Vec<u64> = (0..10_000).map(|n| n * n).collect();
        let hash = |index: &Index, row: u32| index.hash_numbers(keys[row as usize], 7);
        let mut grown = Index::of(100, hash);
        for row in 100..10_000 {
            let code = hash(&grown, row);
            assert_eq!(grown.find(code, |r| keys[r as usize] == keys[row as usize]), None);
            grown.insert(code, row, hash);
        }
        for row in 0..10_000 {
            let code = hash(&grown, row);
            assert_eq!(grown.find(code, |r| keys[r as usize] == keys[row as usize]), Some(row));
        }
    }

    #[test]
    fn texts_that_differ_anywhere_hash_differently() {
        let index = Index::of(0, |_, _| 0);
        let texts = ["", "a", "b", "ab", "ba", "a\0", "abcdefgh", "abcdefgi", "abcdefgh\0"];
        let mut hashes: Vec<u64> = texts.iter().map(|text| index.hash_text(text)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), texts.len());
    }
}
