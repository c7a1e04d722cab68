//! How much may be asked about threads: a twentieth of what the program uses of processors, and so
//! many questions in a second.
//!
//! One question takes the JVM one to three microseconds. A program of two thousand threads that
//! loads a thousand classes would be asked millions; it would stand still for that, and its figures
//! are not worth it. On a machine that has no time to spare a second says little of what the
//! program got of it, so that the share of its processor time is what counts there. A look at few
//! threads takes no longer than weaving the class that it is for, and is not counted in that share.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Questions in a second, …
const PER_SECOND: f64 = 20_000.0;

/// … and at once, after a while without: as many as a program asks for that starts with few
/// threads.
const AT_ONCE: f64 = 2.0 * PER_SECOND;

/// Of the program's processor time, and nanoseconds of it at once.
const SHARE: f64 = 0.05;
const NANOS_AT_ONCE: f64 = 50e6;

/// Questions of a look that is not worth bounding by that.
const FEW: usize = 200;

pub struct Budget {
    left: Mutex<Left>,
    /// How many threads there were when they were last asked.
    threads: AtomicUsize,
}

/// What may be used up from now on; the time may be less than none.
struct Left {
    questions: f64,
    nanos: f64,
    at: Instant,
    /// Nanoseconds of processors that the program had used by then.
    used: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Budget::at(Instant::now(), used_by_all())
    }
}

impl Budget {
    fn at(at: Instant, used: u64) -> Self {
        let left = Left { questions: AT_ONCE, nanos: NANOS_AT_ONCE, at, used };
        Budget { left: Mutex::new(left), threads: AtomicUsize::new(0) }
    }

    /// Whether so many questions may be asked now. More than may ever be asked at once are, when
    /// none was asked before.
    pub fn take(&self, questions: usize) -> bool {
        self.take_at(questions, Instant::now(), used_by_all)
    }

    fn take_at(&self, questions: usize, at: Instant, used: impl FnOnce() -> u64) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = at.saturating_duration_since(left.at).as_secs_f64();
        left.questions = (left.questions + seconds * PER_SECOND).min(AT_ONCE);
        left.at = at;
        let asked = questions as f64;
        if asked > left.questions && left.questions < AT_ONCE {
            return false;
        }
        if questions > FEW {
            // The system adds up all threads for this: it is asked last.
            let used = used();
            let more = used.saturating_sub(left.used) as f64 * SHARE;
            left.nanos = (left.nanos + more).min(NANOS_AT_ONCE);
            left.used = used;
            if left.nanos <= 0.0 {
                return false;
            }
        }
        left.questions -= asked;
        true
    }

    /// Runs what asks so many of them, and pays for it.
    pub fn pay<R>(&self, questions: usize, body: impl FnOnce() -> R) -> R {
        if questions <= FEW {
            return body();
        }
        let before = used_by_this();
        let result = body();
        self.paid(used_by_this().saturating_sub(before));
        result
    }

    fn paid(&self, nanos: u64) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).nanos -= nanos as f64;
    }

    pub fn threads(&self) -> usize {
        self.threads.load(Relaxed)
    }

    pub fn note_threads(&self, threads: usize) {
        self.threads.store(threads, Relaxed);
    }
}

/// Nanoseconds of processors that the program has used.
fn used_by_all() -> u64 {
    nanos(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn used_by_this() -> u64 {
    nanos(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn nanos(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local; these clocks always exist on Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn so_much_at_once_and_so_much_in_a_second() {
        let began = Instant::now();
        let budget = Budget::at(began, 0);
        let take =
            |questions, at| budget.take_at(questions, began + Duration::from_millis(at), || 0);
        let asked = |at| (0..1000).filter(|_| take(1000, at)).count() as f64 * 1000.0;
        assert_eq!(asked(0), AT_ONCE);
        assert_eq!(asked(1000), PER_SECOND);
        assert_eq!(asked(1500), PER_SECOND / 2.0);
        assert_eq!(asked(60_000), AT_ONCE);
        // One that is larger than all of it is not refused for ever, but paid for.
        assert!(!take(400_000, 61_000));
        assert!(take(400_000, 70_000));
        assert!(!take(1, 80_000));
        assert!(take(1, 100_000));
    }

    #[test]
    fn a_share_of_what_the_program_gets_of_processors() {
        let began = Instant::now();
        let budget = Budget::at(began, 0);
        let mut at = began;
        // Each class takes the program a millisecond, and a look as long; time passes without end.
        let mut used = 0;
        let looks = (0..10_000).filter(|_| {
            (at, used) = (at + Duration::from_secs(1), used + 1_000_000);
            let may = budget.take_at(FEW + 1, at, || used);
            if may {
                budget.paid(1_000_000);
                used += 1_000_000;
            }
            may
        });
        let looks = looks.count();
        // 50 at once, and a twentieth of what all of it took.
        assert!((550..600).contains(&looks), "{looks} looks");
        // It is used up, but not for looks at few threads.
        assert!(!budget.take_at(FEW + 1, at, || used));
        assert!(budget.take_at(FEW, at, || used));
    }
}
