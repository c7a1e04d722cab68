//! Classes go to the JVM in batches: how many at a time.
//!
//! A batch is a call into the JVM that nothing can interrupt, and the control thread serves nobody
//! meanwhile. In each the program stands still while the JVM looks through all its compiled code,
//! whatever the number of classes, which adds little: so few large ones, as long as what is not
//! that pause (weaving, verifying, other agents' part) takes no longer than somebody may wait who
//! wants to stop it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

const FIRST: usize = 64;
const LARGEST: usize = 256;
const SMALLEST: usize = 8;

/// What a batch takes beside the pause: after a shorter one the next is larger, …
const SHORT: Duration = Duration::from_millis(300);
/// … and after a longer one smaller.
const LONG: Duration = Duration::from_secs(1);

/// How many classes go to the JVM at a time.
pub struct Batches(AtomicUsize);

impl Default for Batches {
    fn default() -> Self {
        Batches(AtomicUsize::new(FIRST))
    }
}

impl Batches {
    pub fn size(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// What a batch of so many classes took beside the pause of the program.
    pub fn took(&self, classes: usize, time: Duration) {
        let size = self.size();
        if time > LONG {
            self.0.store((classes.min(size) / 2).max(SMALLEST), Relaxed);
        } else if time < SHORT && classes >= size {
            self.0.store((size * 2).min(LARGEST), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_while_they_are_quick_and_shrink_when_they_are_not() {
        let batches = Batches::default();
        let sizes = |time, rounds: usize| -> Vec<usize> {
            let mut sizes = Vec::new();
            for _ in 0..rounds {
                batches.took(batches.size(), time);
                sizes.push(batches.size());
            }
            sizes
        };
        assert_eq!(sizes(Duration::from_millis(10), 3), [128, 256, 256]);
        assert_eq!(sizes(Duration::from_millis(700), 1), [256]);
        assert_eq!(sizes(Duration::from_secs(9), 6), [128, 64, 32, 16, 8, 8]);
        // The rest of a list says nothing of larger batches, but a slow one does of smaller ones.
        batches.took(3, Duration::ZERO);
        assert_eq!(batches.size(), 8);
        assert_eq!(sizes(Duration::ZERO, 1), [16]);
        batches.took(3, Duration::from_secs(9));
        assert_eq!(batches.size(), SMALLEST);
    }
}
