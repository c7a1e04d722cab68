//! A long list of numbers: in memory, or in an index, from which blocks are read when they are
//! asked for. Once read, a block stays.
//!
//! In the file each number is the distance from the one before, in as few groups of seven bits as it
//! takes. Neighbours are alike in most columns, so a block is a third of what it is in memory.

use super::Shelf;
use crate::heap::Heap;
use std::sync::{Arc, OnceLock};

/// Numbers that are read, and checked, together. Tests have few objects.
pub(crate) const BLOCK: usize = if cfg!(test) { 1 << 8 } else { 1 << 16 };

/// A number of a fixed width, little endian in the file.
pub(crate) trait Cell: Copy + Default + Send + Sync + 'static {
    const WIDTH: usize;
    fn get(bytes: &[u8]) -> Self;
    fn put(self, out: &mut Vec<u8>);
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
}

macro_rules! cell {
    ($type:ty) => {
        impl Cell for $type {
            const WIDTH: usize = size_of::<$type>();

            fn get(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(0, |bytes| <$type>::from_le_bytes(*bytes))
            }

            fn put(self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }

            fn bits(self) -> u64 {
                self.into()
            }

            fn of_bits(bits: u64) -> Self {
                bits as $type
            }
        }
    };
}

cell!(u8);
cell!(u32);
cell!(u64);

/// Writes the numbers of a block.
pub(crate) fn pack(all: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    let mut last = 0_u64;
    for bits in all {
        let distance = bits.wrapping_sub(last).cast_signed();
        // A sign in the lowest bit, so that small distances are small either way.
        let mut left = (distance << 1 ^ distance >> 63).cast_unsigned();
        while left >= 0x80 {
            out.push(left as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
        last = bits;
    }
}

/// Reads so many numbers of a block; `None` if there are more or fewer.
pub(crate) fn unpack<T: Cell>(bytes: &[u8], count: usize) -> Option<Box<[T]>> {
    let mut all = Vec::with_capacity(count);
    let (mut last, mut bits, mut shift) = (0_u64, 0_u64, 0);
    for byte in bytes {
        bits |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if *byte < 0x80 {
            last = last.wrapping_add((bits >> 1) ^ (bits & 1).wrapping_neg());
            all.push(T::of_bits(last));
            (bits, shift) = (0, 0);
        }
        if all.len() > count {
            return None;
        }
    }
    (all.len() == count && shift == 0).then(|| all.into_boxed_slice())
}

/// How one number of a column is had from a heap that was read anew.
pub(crate) type Pick<T> = fn(&Heap, usize) -> T;

pub(crate) enum Column<T: Cell> {
    Owned(Vec<T>),
    Stored(Stored<T>),
}

impl<T: Cell> Column<T> {
    pub fn len(&self) -> usize {
        match self {
            Column::Owned(all) => all.len(),
            Column::Stored(stored) => stored.count,
        }
    }

    /// What an index does not have is 0: it may claim anything.
    #[inline]
    pub fn get(&self, at: usize) -> T {
        match self {
            Column::Owned(all) => all[at],
            Column::Stored(stored) => stored.get(at),
        }
    }
}

impl<T: Cell> Column<T> {
    /// All of it, if it is in memory.
    pub fn owned(&self) -> Option<&[T]> {
        match self {
            Column::Owned(all) => Some(all),
            Column::Stored(_) => None,
        }
    }
}

impl<T: Cell> From<Vec<T>> for Column<T> {
    fn from(all: Vec<T>) -> Column<T> {
        Column::Owned(all)
    }
}

pub(crate) struct Stored<T> {
    pub shelf: Arc<Shelf>,
    pub count: usize,
    /// Where each block begins, its length and its checksum.
    pub places: Vec<(u64, u32, u32)>,
    pub blocks: Vec<OnceLock<Box<[T]>>>,
    /// How many there are in a heap that was read anew, and how one of them is had. An index that
    /// is damaged may claim more.
    pub there: fn(&Heap) -> usize,
    pub pick: Pick<T>,
}

impl<T: Cell> Stored<T> {
    #[inline]
    fn get(&self, at: usize) -> T {
        let Some(block) = self.blocks.get(at / BLOCK) else { return T::default() };
        let block = block.get_or_init(|| self.read(at / BLOCK));
        block.get(at % BLOCK).copied().unwrap_or_default()
    }

    fn read(&self, number: usize) -> Box<[T]> {
        let first = number * BLOCK;
        let count = BLOCK.min(self.count - first);
        let (begin, length, sum) = self.places.get(number).copied().unwrap_or_default();
        let bytes = self.shelf.bytes(begin, length as usize, sum);
        bytes.and_then(|bytes| unpack(&bytes, count)).unwrap_or_else(|| {
            let heap = self.shelf.anew();
            let pick = |at| {
                let heap = heap.filter(|heap| at < (self.there)(heap));
                heap.map_or_else(T::default, |heap| (self.pick)(heap, at))
            };
            (first..first + count).map(pick).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Cell + PartialEq + std::fmt::Debug>(all: &[T]) {
        let mut bytes = Vec::new();
        pack(all.iter().map(|one| one.bits()), &mut bytes);
        assert_eq!(unpack::<T>(&bytes, all.len()).as_deref(), Some(all));
        assert_eq!(unpack::<T>(&bytes, all.len() + 1), None);
        assert_eq!(unpack::<T>(&bytes, all.len() - 1), None);
        assert_eq!(unpack::<T>(&bytes[..bytes.len() - 1], all.len()), None);
        bytes.push(0x80);
        assert_eq!(unpack::<T>(&bytes, all.len()), None, "it does not end");
    }

    #[test]
    fn numbers_come_back_as_they_were() {
        check(&[0_u8, 255, 1, 1, 0]);
        check(&[7_u32, 8, u32::MAX, 0, 9]);
        check(&[u64::MAX, 0, 1 << 63, (1 << 63) - 1, 3]);
        let mut bytes = Vec::new();
        pack((1000..2000).map(|n| n * 20), &mut bytes);
        assert!(bytes.len() < 1010, "neighbours take a byte: {}", bytes.len());
        assert_eq!(unpack::<u64>(&[0xff; 11], 1), None);
    }
}
