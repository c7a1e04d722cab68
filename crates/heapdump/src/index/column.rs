//! A long list of numbers: in memory, or in an index, from which blocks are read when they are
//! asked for. Once read, a block stays.

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
        }
    };
}

cell!(u8);
cell!(u32);
cell!(u64);

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

impl<T: Cell> From<Vec<T>> for Column<T> {
    fn from(all: Vec<T>) -> Column<T> {
        Column::Owned(all)
    }
}

pub(crate) struct Stored<T> {
    pub shelf: Arc<Shelf>,
    pub begin: u64,
    pub count: usize,
    /// Checksums of the blocks.
    pub sums: Vec<u32>,
    pub blocks: Vec<OnceLock<Box<[T]>>>,
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
        let begin = self.begin + (first * T::WIDTH) as u64;
        let sum = self.sums.get(number).copied().unwrap_or_default();
        match self.shelf.bytes(begin, count * T::WIDTH, sum) {
            Some(bytes) => bytes.chunks_exact(T::WIDTH).map(T::get).collect(),
            None => {
                let heap = self.shelf.anew();
                let pick = |at| heap.map_or_else(T::default, |heap| (self.pick)(heap, at));
                (first..first + count).map(pick).collect()
            }
        }
    }
}
