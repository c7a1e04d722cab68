//! The index of a dump: what was computed of it, so that it need not be computed again. Who keeps
//! it where is the caller's business; it lies beside the dump, as a file of its own.
//!
//! ```text
//! "TAREHIDX"
//! columns, each in blocks of 65,536 numbers
//! state: JSON, what the dump's reader must know to find objects again
//! answers: JSON, to the usual questions (`answers`)
//! directory: JSON, `Directory`
//! u64 offset, u64 length and u32 CRC-32 of the directory, u32 version, "TAREHIDX"
//! ```
//!
//! An index belongs to a file of a certain length and time of change, with certain first and last
//! bytes. Everything in it has a checksum, which is compared when a block is read. A block that is
//! damaged is not used: the dump is read anew, and the numbers are taken from there.
//!
//! It is read by position and not mapped, as dumps are. What is in it is not believed either:
//! whatever it says, a heap that comes from it can be asked without harm.

mod answers;
mod column;
#[cfg(test)]
mod mutated;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use answers::Answers;
pub(crate) use column::Column;
pub use read::Unusable;

use crate::error::Result;
use crate::heap::{Heap, Options};
use crate::levels::Sum;
use crate::progress::Silent;
use column::{Cell, Pick};
use flate2::Crc;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

const MAGIC: [u8; 8] = *b"TAREHIDX";

/// Counts up whenever the meaning of anything in an index changes, also by a change of how it is
/// computed.
const VERSION: u32 = 2;

/// Of the last bytes of an index.
const TAIL: usize = 32;

/// What tells a dump from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    length: u64,
    /// Of the last change: seconds since 1970, and nanoseconds.
    seconds: i64,
    nanos: i64,
    /// Checksums of its first and its last bytes.
    head: u32,
    tail: u32,
}

impl Key {
    pub fn of(dump: &File) -> io::Result<Key> {
        const PART: u64 = 64 << 10;
        let about = dump.metadata()?;
        let length = about.len();
        let mut bytes = vec![0; PART.min(length) as usize];
        dump.read_exact_at(&mut bytes, 0)?;
        let head = sum(&bytes);
        dump.read_exact_at(&mut bytes, length.saturating_sub(PART))?;
        let (seconds, nanos) = (about.mtime(), about.mtime_nsec());
        Ok(Key { length, seconds, nanos, head, tail: sum(&bytes) })
    }
}

fn sum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[derive(Serialize, Deserialize)]
struct Directory {
    key: Key,
    columns: Vec<Place>,
    state: Text,
    /// If they were not too long.
    answers: Option<Text>,
    is_snapshot: bool,
    ids: Numbers,
    levels: Vec<Sum>,
    losses: crate::graph::Losses,
}

/// Where a column is.
#[derive(Serialize, Deserialize)]
struct Place {
    name: String,
    begin: u64,
    count: u64,
    width: u32,
    /// Bytes of each block, and its checksum.
    lengths: Vec<u32>,
    sums: Vec<u32>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Text {
    begin: u64,
    length: u64,
    sum: u32,
}

/// How addresses become numbers.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Numbers {
    pub(crate) count: u32,
    /// Base and shift of a bitmap; without, addresses are sorted.
    pub(crate) bitmap: Option<(u64, u32)>,
}

/// A column by its name: how long it is, and how a number of it is had, or all of them.
struct Spec<T: Cell> {
    name: &'static str,
    count: fn(&Heap) -> usize,
    pick: Pick<T>,
    all: fn(&Heap) -> Option<&[T]>,
}

/// A column that a heap has as one.
macro_rules! column {
    ($name:literal, $count:expr, $($field:ident).+) => {
        Spec {
            name: $name,
            count: $count,
            pick: |heap, at| heap.$($field).+.get(at),
            all: |heap| heap.$($field).+.owned(),
        }
    };
}

const CLASS: Spec<u32> = column!("class", Heap::count, class);
const SIZE: Spec<u32> = column!("size", Heap::count, size);
const LEVEL: Spec<u8> = column!("level", Heap::count, levels.level);
const PLACE: Spec<u32> = column!("place", Heap::count, tree.place);
const ORDER: Spec<u32> = column!("order", places, tree.order);
const PARENT: Spec<u32> = column!("parent", places, tree.parent);
const DOMINATOR: Spec<u32> = column!("dominator", places, tree.dominator);
const RETAINED: Spec<u64> = column!("retained", places, tree.retained);
const LIST_BASE: Spec<u64> =
    column!("referrers.base", |heap| heap.tree.referrers.base.len(), tree.referrers.base);
const LIST_OFFSET: Spec<u32> =
    column!("referrers.offset", |heap| heap.tree.referrers.offset.len(), tree.referrers.offset);
const LIST_ALL: Spec<u32> =
    column!("referrers", |heap| heap.tree.referrers.all.len(), tree.referrers.all);
const CHUNKS: Spec<u32> = Spec {
    name: "chunks",
    count: |heap| heap.ids.chunks(),
    pick: |heap, at| heap.ids.chunk(at),
    all: |_| None,
};
const ADDRESSES: Spec<u64> = Spec {
    name: "addresses",
    count: |heap| heap.ids.words(),
    pick: |heap, at| heap.ids.word(at).0,
    all: |_| None,
};
const BEFORE: Spec<u32> = Spec {
    name: "before",
    count: |heap| heap.ids.words(),
    pick: |heap, at| heap.ids.word(at).1,
    all: |_| None,
};
const ROOT_NODE: Spec<u32> = Spec {
    name: "root.node",
    count: |heap| heap.roots.len(),
    pick: |heap, at| heap.roots[at].0,
    all: |_| None,
};
const ROOT_NUMBER: Spec<u32> = Spec {
    name: "root.number",
    count: |heap| heap.roots.len(),
    pick: |heap, at| heap.roots[at].1,
    all: |_| None,
};

fn places(heap: &Heap) -> usize {
    heap.tree.order.len()
}

/// An index that is open, with the dump that it belongs to.
pub(crate) struct Shelf {
    index: File,
    dump: File,
    options: Options,
    is_damaged: AtomicBool,
    anew: OnceLock<Option<Box<Heap>>>,
}

impl Shelf {
    /// Some bytes, if they are as they were written.
    fn bytes(&self, begin: u64, length: usize, expected: u32) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        let is_read = self.index.read_exact_at(&mut bytes, begin).is_ok();
        Some(bytes).filter(|bytes| is_read && sum(bytes) == expected)
    }

    /// The same heap, read from the dump once the index has turned out to be damaged.
    fn anew(&self) -> Option<&Heap> {
        self.set_damaged();
        let read = || -> Result<Heap> {
            let dump = self.dump.try_clone().map_err(crate::HeapError::io("it cannot be read"))?;
            // There is no other answer any more, so it takes what it needs.
            let options = Options { memory: u64::MAX, ..self.options.clone() };
            Heap::of_file(dump, &options, &Silent)
        };
        self.anew.get_or_init(|| read().ok().map(Box::new)).as_deref()
    }

    fn set_damaged(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }

    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }
}
