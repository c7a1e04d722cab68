//! The memory that woven code counts in: a block for each hook, at addresses that are never given
//! back, since a thread may be about to write there at any time. What is where, `TareHooks` knows
//! as well.

use crate::kernel;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Hooks that there can be at once, and one that no method has.
pub const HOOKS: usize = 63;
pub const REHEARSED: usize = HOOKS;

const BLOCK: usize = 1 << 13;
/// Calls of threads that share, and a bit for each stripe that was ever taken. Bits stay: who takes a
/// stripe while a block is cleared must not be passed by.
const SHARED: usize = 8;
const TAKEN: usize = 16;
const FIRST_STRIPE: usize = 64;
const STRIPE: usize = 64;
const STRIPES: usize = 64;

/// All calls, as a part of 2^32.
pub const ALL: u64 = 1 << 32;

/// Below zero, as woven code sees it: nothing is counted.
const CLOSED: u64 = u64::MAX;

/// The blocks of this process.
pub struct Blocks(*mut u8);

// SAFETY: all that is there is reached by atomic loads and stores.
unsafe impl Send for Blocks {}
// SAFETY: as above.
unsafe impl Sync for Blocks {}

/// Made with the first session. `None` if there is no memory.
pub fn blocks() -> Option<&'static Blocks> {
    static BLOCKS: OnceLock<Option<Blocks>> = OnceLock::new();
    let made = || kernel::reserve(BLOCK * (HOOKS + 1)).ok().map(|at| Blocks(at.cast()));
    BLOCKS.get_or_init(made).as_ref()
}

impl Blocks {
    pub fn address(&self) -> u64 {
        self.0 as u64
    }

    fn word(&self, hook: usize, offset: usize) -> &AtomicU64 {
        let at = hook.min(REHEARSED) * BLOCK + offset.min(BLOCK - 8);
        // SAFETY: within the mapping, aligned, never unmapped, and zeros are a number.
        unsafe { &*self.0.add(at).cast::<AtomicU64>() }
    }

    fn stripes(&self, hook: usize) -> impl Iterator<Item = [&AtomicU64; 2]> {
        let at = |stripe| FIRST_STRIPE + stripe * STRIPE;
        (0..STRIPES).map(move |stripe| [0, 8].map(|word| self.word(hook, at(stripe) + word)))
    }

    /// A hook begins again with nothing, and counts nothing. No method has it.
    pub fn clear(&self, hook: usize) {
        self.close(hook);
        self.word(hook, SHARED).store(0, Relaxed);
        self.stripes(hook).flatten().for_each(|word| word.store(0, Relaxed));
    }

    /// Nothing is counted from now on.
    pub fn close(&self, hook: usize) {
        self.word(hook, 0).store(CLOSED, Relaxed);
    }

    /// Counts calls, and has so many told, of 2^32.
    pub fn time(&self, hook: usize, part: u64) {
        self.word(hook, 0).store(part.min(ALL), Relaxed);
    }

    /// How many calls there were. Stripes that nobody has are not looked at: each is a line of memory
    /// that the program has not left in the cache.
    pub fn calls(&self, hook: usize) -> u64 {
        let taken = self.word(hook, TAKEN).load(Relaxed);
        let taken = self.stripes(hook).enumerate().filter(|(at, _)| taken >> at & 1 != 0);
        let own = taken.map(|(_, [_, calls])| calls.load(Relaxed)).sum::<u64>();
        own + self.word(hook, SHARED).load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_all_stripes_are_summed_and_cleared() {
        let blocks = blocks().unwrap();
        for (stripe, [thread, calls]) in (1..).zip(blocks.stripes(3)) {
            thread.store(stripe, Relaxed);
            calls.store(stripe, Relaxed);
        }
        blocks.word(3, SHARED).store(1_000_000, Relaxed);
        assert_eq!(blocks.calls(3), 1_000_000, "nobody has taken a stripe");
        blocks.word(3, TAKEN).store(u64::MAX, Relaxed);
        assert_eq!(blocks.calls(3), 64 * 65 / 2 + 1_000_000);
        assert_eq!(blocks.calls(2) + blocks.calls(4), 0, "a block reaches into its neighbour");
        blocks.clear(3);
        assert_eq!(blocks.calls(3), 0);
        assert!(blocks.stripes(3).all(|[thread, _]| thread.load(Relaxed) == 0));
    }
}
