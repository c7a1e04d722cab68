//! Which stacks were sent already: a cache in the JVM's own memory, from a stack's hash to its id.
//!
//! A front end keeps every trace that it has read, so the agent needs only the ids. The cache has
//! a fixed size; a stack that fell out of it is sent again under a new id. Entries are claimed by
//! compare-and-swap on the hash; who does not get one sends the stack without keeping its id, and
//! nobody waits. 64 bits of hash stand for the stack: two stacks of a session that share them are a
//! matter of one in 10^7 even for a million stacks.

use super::ring::Ring;
use crate::stacks::frames::Frame;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use tare_arena::samples::Counter;

const SETS: usize = 1 << 14;
const WAYS: usize = 4;

/// Hash of an entry that is just being written.
const BUSY: u64 = 1;

#[derive(Default)]
struct Entry {
    hash: AtomicU64,
    id: AtomicU32,
}

pub struct Traces {
    entries: Box<[[Entry; WAYS]]>,
    next: AtomicU32,
}

impl Traces {
    pub fn new() -> Self {
        let entries = (0..SETS).map(|_| Default::default()).collect();
        Traces { entries, next: AtomicU32::new(1) }
    }

    /// The id of a stack, which is sent first if it is new. `None` when the ring is full.
    pub fn intern(&self, ring: &Ring, frames: &[Frame], cut: bool) -> Option<u32> {
        let hash = hash(frames, cut);
        let set = self.entries.get(hash as usize % SETS)?;
        for entry in set {
            if entry.hash.load(Acquire) == hash {
                let id = entry.id.load(Acquire);
                // The entry may have been given to another stack between the two loads.
                if entry.hash.load(Acquire) == hash {
                    return Some(id);
                }
            }
        }
        let id = self.next.fetch_add(1, Relaxed);
        if !ring.append_trace(id, frames, cut) {
            return None;
        }
        ring.add(Counter::Traces, 1);
        // An empty way if there is one, else one that depends on the hash.
        let way = set.iter().position(|entry| entry.hash.load(Relaxed) == 0);
        let entry = set.get(way.unwrap_or((hash >> 60) as usize % WAYS))?;
        let old = entry.hash.load(Relaxed);
        if old != BUSY && entry.hash.compare_exchange(old, BUSY, AcqRel, Relaxed).is_ok() {
            entry.id.store(id, Release);
            entry.hash.store(hash, Release);
        }
        Some(id)
    }
}

/// Never 0 or [`BUSY`], which have a meaning of their own.
fn hash(frames: &[Frame], cut: bool) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = u64::from(cut) + 2;
    for frame in frames {
        let place = u64::from(frame.bci.cast_unsigned()) << 16
            | u64::from(frame.kind) << 8
            | u64::from(frame.how);
        hash = (hash.rotate_left(23) ^ frame.value).wrapping_mul(K);
        hash = (hash.rotate_left(23) ^ place).wrapping_mul(K);
    }
    (hash ^ hash >> 29) | 2
}
