//! From addresses of objects to numbers from 0 in the order of addresses, and back.
//!
//! A bitmap with a count before each word takes three bytes per hundred of heap and two accesses to
//! memory, the first of which is to a small table: only chunks in which objects are have a part of
//! the bitmap, since a heap may have its ends far apart. Where objects themselves are so far apart
//! that it would be large, addresses are sorted instead.

use crate::addresses::Addresses;
use crate::error::{HeapError, Result};
use crate::index::{Column, Numbers};

pub type Node = u32;

/// No object, or no part of the bitmap.
pub const NONE: Node = u32::MAX;

/// Words of a chunk, and places in it.
const WORDS: u64 = 64;
const CHUNK: u64 = WORDS * 64;

pub struct Ids {
    count: u32,
    how: How,
}

enum How {
    Bitmap {
        base: u64,
        shift: u32,
        /// Where the words of each chunk are, in chunks.
        table: Vec<u32>,
        /// The chunks that have words.
        chunks: Vec<u32>,
        words: Vec<Word>,
    },
    Sorted(Vec<u64>),
    /// The same from an index.
    StoredBitmap {
        base: u64,
        shift: u32,
        chunks: Column<u32>,
        bits: Column<u64>,
        before: Column<u32>,
    },
    StoredSorted(Column<u64>),
}

/// 64 places, and how many objects are before them.
#[derive(Clone, Copy, Default)]
struct Word {
    bits: u64,
    before: u32,
}

impl Ids {
    /// Of lists of addresses in any order; one that occurs twice counts once.
    pub fn new(lists: &[Addresses]) -> Result<Ids> {
        let (mut lowest, mut highest, mut any, mut total) = (u64::MAX, 0, 0, 0_u64);
        for list in lists {
            lowest = lowest.min(list.lowest);
            highest = highest.max(list.highest);
            any |= list.any;
            total += list.count;
        }
        if total >= u64::from(NONE) {
            let what = format!("{total} objects are more than the {NONE} that are supported");
            return Err(HeapError::TooLarge { what });
        }
        if total == 0 {
            return Ok(Ids { count: 0, how: How::Sorted(Vec::new()) });
        }
        // Addresses are multiples of 8; ids of other JVMs may be any numbers.
        let shift = any.trailing_zeros().min(3);
        let all = || lists.iter().flat_map(Addresses::iter).map(|address| address - lowest);
        let affordable = total.saturating_mul(8) + (16 << 20);
        let length = ((highest - lowest) >> shift) / CHUNK + 1;
        let bitmap = (length * 4 <= affordable && length < u64::from(NONE)).then(|| {
            Bitmap::new(length as usize, all().map(|distance| distance >> shift), affordable)
        });
        let Some(Bitmap { table, chunks, mut words }) = bitmap.flatten() else {
            let mut all: Vec<u64> = Vec::with_capacity(total as usize);
            lists.iter().for_each(|list| all.extend(list.iter()));
            all.sort_unstable();
            all.dedup();
            return Ok(Ids { count: all.len() as u32, how: How::Sorted(all) });
        };
        let mut count = 0;
        for word in &mut words {
            word.before = count;
            count += word.bits.count_ones();
        }
        Ok(Ids { count, how: How::Bitmap { base: lowest, shift, table, chunks, words } })
    }

    pub fn len(&self) -> usize {
        self.count as usize
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub fn find(&self, address: u64) -> Option<Node> {
        match &self.how {
            How::Bitmap { base, shift, table, words, .. } => {
                let distance = address.wrapping_sub(*base);
                let place = distance >> shift;
                let chunk = u64::from(*table.get((place / CHUNK) as usize)?);
                let word = words.get((chunk * WORDS + place / 64 % WORDS) as usize)?;
                let bit = 1 << (place % 64);
                let is_there = word.bits & bit != 0 && place << shift == distance;
                is_there.then(|| word.before + (word.bits & (bit - 1)).count_ones())
            }
            How::Sorted(all) => all.binary_search(&address).ok().map(|at| at as Node),
            How::StoredBitmap { base, shift, chunks, bits, before } => {
                let distance = address.wrapping_sub(*base);
                let place = distance >> shift;
                let wanted = u32::try_from(place / CHUNK).ok()?;
                let chunk = partition_point(chunks.len(), |at| chunks.get(at) < wanted);
                if chunk == chunks.len() || chunks.get(chunk) != wanted {
                    return None;
                }
                let at = chunk * WORDS as usize + (place / 64 % WORDS) as usize;
                let (word, bit) = (bits.get(at), 1 << (place % 64));
                let is_there = word & bit != 0 && place << shift == distance;
                let node = before.get(at).saturating_add((word & (bit - 1)).count_ones());
                Some(node).filter(|node| is_there && *node < self.count)
            }
            How::StoredSorted(all) => {
                let at = partition_point(all.len(), |at| all.get(at) < address);
                Some(at as Node).filter(|at| *at < self.count && all.get(*at as usize) == address)
            }
        }
    }

    /// The address of an object; 0 for a number that none has.
    pub fn address(&self, node: Node) -> u64 {
        if node >= self.count {
            return 0;
        }
        let address = |base: u64, shift: u32, chunk: u32, at: usize, bit: u32| {
            let word = u64::from(chunk) * WORDS + at as u64 % WORDS;
            base.wrapping_add((word * 64 + u64::from(bit)) << shift)
        };
        match &self.how {
            How::Bitmap { base, shift, chunks, words, .. } => {
                let at = words.partition_point(|word| word.before <= node) - 1;
                let mut bits = words[at].bits;
                for _ in words[at].before..node {
                    bits &= bits - 1;
                }
                address(*base, *shift, chunks[at / WORDS as usize], at, bits.trailing_zeros())
            }
            How::Sorted(all) => all[node as usize],
            How::StoredBitmap { base, shift, chunks, bits, before } => {
                let at = partition_point(before.len(), |at| before.get(at) <= node);
                let at = at.saturating_sub(1);
                let mut word = bits.get(at);
                for _ in 0..node.saturating_sub(before.get(at)).min(63) {
                    word &= word.wrapping_sub(1);
                }
                address(*base, *shift, chunks.get(at / WORDS as usize), at, word.trailing_zeros())
            }
            How::StoredSorted(all) => all.get(node as usize),
        }
    }

    /// Those of an index: a bitmap's base and shift with its chunks, or sorted addresses.
    pub fn stored(
        count: u32,
        bitmap: Option<(u64, u32)>,
        chunks: Column<u32>,
        addresses: Column<u64>,
        before: Column<u32>,
    ) -> Ids {
        let how = match bitmap {
            Some((base, shift)) => {
                How::StoredBitmap { base, shift: shift.min(3), chunks, bits: addresses, before }
            }
            None => How::StoredSorted(addresses),
        };
        Ids { count, how }
    }

    /// What an index has of them beside the words.
    pub fn numbers(&self) -> Numbers {
        let bitmap = match &self.how {
            How::Bitmap { base, shift, .. } | How::StoredBitmap { base, shift, .. } => {
                Some((*base, *shift))
            }
            How::Sorted(_) | How::StoredSorted(_) => None,
        };
        Numbers { count: self.count, bitmap }
    }

    /// The chunks that have words; none if addresses are sorted.
    pub fn chunks(&self) -> usize {
        match &self.how {
            How::Bitmap { chunks, .. } => chunks.len(),
            How::StoredBitmap { chunks, .. } => chunks.len(),
            How::Sorted(_) | How::StoredSorted(_) => 0,
        }
    }

    pub fn chunk(&self, at: usize) -> u32 {
        match &self.how {
            How::Bitmap { chunks, .. } => chunks[at],
            How::StoredBitmap { chunks, .. } => chunks.get(at),
            How::Sorted(_) | How::StoredSorted(_) => 0,
        }
    }

    pub fn words(&self) -> usize {
        match &self.how {
            How::Bitmap { words, .. } => words.len(),
            How::Sorted(all) => all.len(),
            How::StoredBitmap { bits, .. } => bits.len(),
            How::StoredSorted(all) => all.len(),
        }
    }

    /// The memory that they take.
    pub fn bytes(&self) -> u64 {
        match &self.how {
            How::Bitmap { table, words, .. } => {
                (size_of_val(table.as_slice()) + size_of_val(words.as_slice())) as u64
            }
            How::Sorted(all) => size_of_val(all.as_slice()) as u64,
            How::StoredBitmap { .. } | How::StoredSorted(_) => 0,
        }
    }

    /// The bits of a word and how many objects are before it, or an address.
    pub fn word(&self, at: usize) -> (u64, u32) {
        match &self.how {
            How::Bitmap { words, .. } => (words[at].bits, words[at].before),
            How::Sorted(all) => (all[at], 0),
            How::StoredBitmap { bits, before, .. } => (bits.get(at), before.get(at)),
            How::StoredSorted(all) => (all.get(at), 0),
        }
    }
}

struct Bitmap {
    table: Vec<u32>,
    chunks: Vec<u32>,
    words: Vec<Word>,
}

impl Bitmap {
    /// A bitmap of so many chunks with these places; `None` if it would take more memory.
    fn new(
        length: usize,
        places: impl Iterator<Item = u64> + Clone,
        affordable: u64,
    ) -> Option<Bitmap> {
        let mut table = vec![NONE; length];
        places.clone().for_each(|place| table[(place / CHUNK) as usize] = 0);
        let mut chunks = Vec::new();
        for (number, chunk) in (0..).zip(&mut table).filter(|(_, chunk)| **chunk == 0) {
            *chunk = chunks.len() as u32;
            chunks.push(number);
        }
        let count = chunks.len() as u64 * WORDS;
        if count * size_of::<Word>() as u64 > affordable {
            return None;
        }
        let mut words = vec![Word::default(); count as usize];
        for place in places {
            let chunk = u64::from(table[(place / CHUNK) as usize]);
            let at = chunk * WORDS + place / 64 % WORDS;
            words[at as usize].bits |= 1 << (place % 64);
        }
        Some(Bitmap { table, chunks, words })
    }
}

/// The first number below a count for which it is not so.
fn partition_point(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut begin, mut end) = (0, count);
    while begin < end {
        let middle = begin + (end - begin) / 2;
        if is_before(middle) { begin = middle + 1 } else { end = middle }
    }
    begin
}

/// A bit for each object.
pub struct Bits(Vec<u64>);

impl Bits {
    pub fn new(count: usize) -> Bits {
        Bits(vec![0; count.div_ceil(64)])
    }

    /// Whether it was not set before.
    pub fn set(&mut self, node: Node) -> bool {
        let (word, bit) = (node as usize / 64, 1 << (node % 64));
        let fresh = self.0[word] & bit == 0;
        self.0[word] |= bit;
        fresh
    }

    #[inline]
    pub fn has(&self, node: Node) -> bool {
        self.0[node as usize / 64] & 1 << (node % 64) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: &[u64]) {
        let list = |all: &[u64]| all.iter().copied().collect::<Addresses>();
        let ids = Ids::new(&[list(addresses), list(&addresses[..1])]).unwrap();
        let mut sorted = addresses.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(ids.len(), sorted.len());
        for (node, address) in (0..).zip(&sorted) {
            assert_eq!(ids.find(*address), Some(node));
            assert_eq!(ids.address(node), *address);
            for near in [address.wrapping_sub(1), address.wrapping_add(1)] {
                assert_eq!(ids.find(near).is_some(), sorted.contains(&near));
            }
        }
        assert_eq!(ids.address(sorted.len() as Node), 0);
    }

    /// Tools whose ids are signed fail here.
    #[test]
    fn more_than_two_billion_objects_have_numbers() {
        let count = 3_000_000_000;
        let base = 0x4_0000_0000;
        // The last chunk of a bitmap, as it is in an index.
        let (mut bits, mut before) = (vec![0; WORDS as usize], vec![count; WORDS as usize]);
        (bits[0], bits[1], before[0], before[1]) = (!0, 0xff, count - 72, count - 8);
        let ids = Ids::stored(count, Some((base, 3)), vec![5].into(), bits.into(), before.into());
        let first = base + 8 * 5 * CHUNK;
        for place in 0..72 {
            let (address, node) = (first + 8 * u64::from(place), count - 72 + place);
            assert_eq!(ids.find(address), Some(node));
            assert_eq!(ids.address(node), address);
        }
        assert_eq!(ids.find(first + 8 * 72), None);
        assert_eq!((ids.find(base), ids.find(first - 8)), (None, None));
        assert_eq!(ids.len(), 3_000_000_000);
        let mut some = Bits::new(4_000_000_000);
        assert!(some.set(3_999_999_999) && !some.set(3_999_999_999));
        assert!(some.has(3_999_999_999) && !some.has(3_999_999_998));
    }

    #[test]
    fn dense_and_sparse_addresses_are_found() {
        check(&(0..10_000).map(|n| 0x7_0000_0000 + n * n % 9973 * 16).collect::<Vec<_>>());
        check(&[0, 1, 2, 3, 700, u64::MAX]);
        check(&[u64::MAX]);
        check(&(0..1000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect::<Vec<_>>());
        assert_eq!(Ids::new(&[]).unwrap().find(8), None);
    }
}
