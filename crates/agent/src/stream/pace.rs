//! Work that takes long in a process of thousands of threads, kept to a small part of the time.

use crate::kernel;
use std::time::{Duration, Instant};

/// Says when such work is due again, from what it took the last time.
pub struct Pace {
    /// Not more often than this, and not more rarely.
    least: Duration,
    most: Duration,
    last: Instant,
    /// On a processor: a thread that waits for one while it works costs nobody anything.
    cost: Duration,
}

impl Pace {
    pub fn new(least: Duration, most: Duration) -> Self {
        Pace { least, most, last: Instant::now(), cost: Duration::ZERO }
    }

    /// Whether the work may be done now, if it is to take one part in `share` of the time.
    pub fn is_due(&self, share: u32) -> bool {
        self.last.elapsed() >= self.rest(share)
    }

    fn rest(&self, share: u32) -> Duration {
        self.cost.saturating_mul(share).clamp(self.least, self.most)
    }

    pub fn work(&mut self, work: impl FnOnce()) {
        let used = || kernel::clock(libc::CLOCK_THREAD_CPUTIME_ID);
        let before = used();
        work();
        self.cost = Duration::from_nanos(used().saturating_sub(before));
        self.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_done_rarely() {
        let (least, most) = (Duration::from_millis(20), Duration::from_secs(1));
        let mut pace = Pace::new(least, most);
        assert_eq!(pace.rest(100), least);
        let limit = Instant::now() + Duration::from_secs(60);
        pace.work(|| {
            let used = || kernel::clock(libc::CLOCK_THREAD_CPUTIME_ID);
            let before = used();
            while used() - before < 2_000_000 && Instant::now() < limit {}
        });
        assert!(pace.rest(100) >= Duration::from_millis(200), "{:?}", pace.rest(100));
        assert!(!pace.is_due(u32::MAX));
        assert_eq!(pace.rest(u32::MAX), most);
    }
}
