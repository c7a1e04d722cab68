//! How much the graph may grow while a session is on. Classes that come and go with their loaders
//! stay in it, since what they called stays reachable, so there has to be an end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What classes that come while we look may take, beside a quarter of the recording's memory: the
/// mirrors of some 30,000 classes.
const AT_LEAST: u64 = 64 << 20;

/// What the mirror of a class takes, and of each of its methods, as far as can be told.
const CLASS_BYTES: u64 = 500;
const METHOD_BYTES: u64 = 150;

pub struct Room {
    taken: AtomicU64,
    most: u64,
}

impl Room {
    /// For a recording that may use so much memory.
    pub fn new(memory: u64) -> Self {
        Room { taken: AtomicU64::new(0), most: AT_LEAST + memory / 4 }
    }

    /// Whether there is room for a class with so many methods; then it is taken.
    pub fn take(&self, methods: usize) -> bool {
        let more = CLASS_BYTES + METHOD_BYTES * methods as u64;
        let fits = |taken: u64| (taken + more <= self.most).then_some(taken + more);
        self.taken.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end() {
        let room = Room::new(256 << 20);
        let mut classes = 0_u64;
        while room.take(10) {
            classes += 1;
            assert!(classes * 2000 <= 128 << 20, "more than the half of what is recorded");
        }
        assert!(classes > 60_000, "{classes}");
        assert!(!room.take(10));
    }
}
