//! How much may be asked about threads: so much in a second that it is a few hundredths of a processor.
//!
//! One question takes the JVM one to three microseconds. A program of two thousand threads that loads a
//! thousand classes would be asked millions; it would stand still for that, and its figures are not worth it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Questions in a second, …
pub const PER_SECOND: usize = 20_000;

/// … and at once, after a while without: as many as a program asks for that starts with few threads.
pub const AT_ONCE: usize = 2 * PER_SECOND;

pub struct Budget {
    left: Mutex<(f64, Instant)>,
    /// How many threads there were when they were last asked.
    threads: AtomicUsize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { left: Mutex::new((AT_ONCE as f64, Instant::now())), threads: AtomicUsize::new(0) }
    }
}

impl Budget {
    /// Whether so many questions may be asked now. More than all that may ever be asked at once are,
    /// when none was asked before.
    pub fn take(&self, questions: usize) -> bool {
        self.take_at(questions, Instant::now())
    }

    fn take_at(&self, questions: usize, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(left.1).as_secs_f64();
        *left = ((left.0 + since * PER_SECOND as f64).min(AT_ONCE as f64), now);
        let takes = questions as f64;
        let may = takes <= left.0.max(0.0) || left.0 >= AT_ONCE as f64;
        if may {
            left.0 -= takes;
        }
        may
    }

    pub fn threads(&self) -> usize {
        self.threads.load(Relaxed)
    }

    pub fn note_threads(&self, threads: usize) {
        self.threads.store(threads, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn so_much_at_once_and_so_much_in_a_second() {
        let budget = Budget::default();
        let began = Instant::now();
        let asked =
            |at: Duration| (0..1000).filter(|_| budget.take_at(1000, began + at)).count() * 1000;
        assert_eq!(asked(Duration::ZERO), AT_ONCE);
        assert_eq!(asked(Duration::from_secs(1)), PER_SECOND);
        assert_eq!(asked(Duration::from_millis(1500)), PER_SECOND / 2);
        assert_eq!(asked(Duration::from_secs(60)), AT_ONCE);
        // One that is larger than all of it is not refused for ever, but paid for.
        assert!(!budget.take_at(10 * AT_ONCE, began + Duration::from_secs(61)));
        assert!(budget.take_at(10 * AT_ONCE, began + Duration::from_secs(70)));
        assert!(!budget.take_at(1, began + Duration::from_secs(80)));
        assert!(budget.take_at(1, began + Duration::from_secs(100)));
    }
}
