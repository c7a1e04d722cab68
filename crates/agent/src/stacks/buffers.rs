//! Memory for frames, and for what is remembered of them, for those who walk and must not allocate.

use super::fault_guard::LANDINGS;
use super::frames::{Frame, Frames};
use super::memo::Memo;
use crate::kernel;
use std::sync::atomic::{AtomicU32, Ordering::*};

/// Memory for walking, one piece per landing of the guard.
pub struct Buffers {
    start: *mut Frame,
    /// Frames of a stack; each piece has room for one more and for native ones on top.
    depth: usize,
    taken: [AtomicU32; LANDINGS],
}

// SAFETY: a piece belongs to the one who took it by compare-and-swap.
unsafe impl Send for Buffers {}
// SAFETY: as above.
unsafe impl Sync for Buffers {}

impl Buffers {
    pub fn new(depth: usize) -> std::io::Result<Self> {
        let at = kernel::reserve(Self::bytes(depth))?;
        Ok(Buffers { start: at.cast(), depth, taken: [const { AtomicU32::new(0) }; LANDINGS] })
    }

    fn bytes(depth: usize) -> usize {
        Self::memos(depth) + LANDINGS * Memo::BYTES
    }

    /// Where what is remembered begins.
    fn memos(depth: usize) -> usize {
        LANDINGS * (depth + 1) * size_of::<Frame>()
    }

    /// What the owner of a piece remembers.
    pub fn memo(&self, index: usize) -> Memo {
        let offset = Self::memos(self.depth) + index % LANDINGS * Memo::BYTES;
        // SAFETY: within the mapping, which was zeros; who asks has taken the piece of this index.
        unsafe { Memo::new(self.start.cast::<u8>().add(offset)) }
    }

    /// A piece that nobody else has, until it is given back.
    pub fn take(&self, tid: u32) -> Option<(usize, Frames)> {
        let first = tid as usize % LANDINGS;
        for step in 0..LANDINGS {
            let index = (first + step) % LANDINGS;
            let free = self.taken.get(index)?;
            if free.load(Relaxed) == 0 && free.compare_exchange(0, tid, AcqRel, Relaxed).is_ok() {
                // SAFETY: this piece of the mapping is ours now, and has room for one frame
                // more than `depth`.
                let frames =
                    unsafe { Frames::new(self.start.add(index * (self.depth + 1)), self.depth) };
                return Some((index, frames));
            }
        }
        None
    }

    pub fn give_back(&self, index: usize) {
        if let Some(taken) = self.taken.get(index) {
            taken.store(0, Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; no handler is inside any more.
        unsafe { libc::munmap(self.start.cast(), Self::bytes(self.depth)) };
    }
}
