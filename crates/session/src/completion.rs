//! How far this process is with completing its recordings, for whoever waits for them on another
//! thread. With several recordings at once these are the figures of all together.

use crate::words;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Contexts that were looked at in the looks so far, and those that these looks have in all.
static CONTEXTS: AtomicU64 = AtomicU64::new(0);
static OF: AtomicU64 = AtomicU64::new(0);
/// Bytes that were written to files.
pub static BYTES: AtomicU64 = AtomicU64::new(0);

/// A look begins at so many contexts.
pub fn begins(contexts: usize) {
    OF.fetch_add(contexts as u64, Relaxed);
}

/// So many more of them are done.
pub fn more(contexts: usize) {
    CONTEXTS.fetch_add(contexts as u64, Relaxed);
}

/// The figures at one moment.
#[derive(Clone, Copy, Default)]
pub struct Completion {
    pub contexts: u64,
    pub of: u64,
    pub bytes: u64,
}

impl Completion {
    pub fn now() -> Self {
        let [contexts, of, bytes] = [&CONTEXTS, &OF, &BYTES].map(|number| number.load(Relaxed));
        Completion { contexts, of, bytes }
    }

    /// What was done since then: contexts while they are looked at, and what is in the file.
    pub fn since(self, then: Completion) -> String {
        let contexts = match self.of - then.contexts.min(self.of) {
            0 => String::new(),
            of => {
                let done = self.contexts.saturating_sub(then.contexts);
                format!("{} of {} contexts, ", words::count(done), words::count(of))
            }
        };
        format!("{contexts}{:.1} MiB written", (self.bytes - then.bytes) as f64 / 1048576.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_does_not_count() {
        let then = Completion { contexts: 1000, of: 1000, bytes: 1 << 20 };
        let now = Completion { contexts: 1200, of: 1400, bytes: 3 << 20 };
        assert_eq!(now.since(then), "200 of 400 contexts, 2.0 MiB written");
        assert_eq!(then.since(then), "0.0 MiB written");
        // It waits for the end of a look that had begun.
        let then = Completion { contexts: 1000, of: 1400, bytes: 0 };
        assert_eq!(now.since(then), "200 of 400 contexts, 3.0 MiB written");
    }
}
