//! When a hook counts: always, where calls are few enough, and else for a short time again and
//! again, so that counting keeps to what it may take.
//!
//! A hook that does not count costs a load and a branch. Nobody knows how often a method is called
//! before it has a hook, so a new one counts for one look and is judged by that.

use super::blocks::ALL;

/// How far counting may be ahead of its share, in nanoseconds, and how far behind it can fall: a
/// look that came late is paid for by looks without.
const AHEAD: i64 = 20_000_000;
const BEHIND: i64 = -10_000_000_000;

/// Of a look that was shorter than this nothing is learned, in nanoseconds.
const SHORTEST: u64 = 2_000_000;

/// The windows of one hook.
#[derive(Debug)]
pub struct Window {
    pub is_open: bool,
    /// Calls that are to be told while it is open, of 2^32.
    pub part: u64,
    /// How long it has been open, and how many calls it missed while it was not, by its rate; since
    /// the last time that was asked for.
    open: u64,
    missed: f64,
    /// The part of the time that it is open, of 2^32. Nobody knows at first.
    duty: Option<u64>,
    /// Nanoseconds that it may still be open.
    credit: i64,
    /// Calls in a second.
    rate: f64,
    /// When it was looked at last, and how many calls there had been.
    at: u64,
    calls: u64,
}

impl Window {
    /// Open, for one look; so many calls were counted before.
    pub fn new(now: u64, calls: u64, part: u64) -> Self {
        Window {
            is_open: true,
            part,
            open: 0,
            missed: 0.0,
            duty: None,
            credit: AHEAD,
            rate: 0.0,
            at: now,
            calls,
        }
    }

    /// Takes what has come since the last look: `calls` are all that were counted.
    pub fn look(&mut self, now: u64, calls: u64) {
        let passed = now.saturating_sub(std::mem::replace(&mut self.at, now));
        let new = calls.saturating_sub(std::mem::replace(&mut self.calls, calls));
        let nanos = i64::try_from(passed).unwrap_or(i64::MAX);
        let share = u128::from(passed) * u128::from(self.duty.unwrap_or(ALL)) / u128::from(ALL);
        self.credit = self.credit.saturating_add(i64::try_from(share).unwrap_or(i64::MAX));
        if self.is_open {
            self.open += passed;
            self.credit = self.credit.saturating_sub(nanos);
            if passed >= SHORTEST {
                self.rate = new as f64 * 1e9 / passed as f64;
            }
        } else {
            self.missed += self.rate * passed as f64 / 1e9;
        }
        self.credit = self.credit.clamp(BEHIND, AHEAD);
    }

    /// From now on it is open for this part of the time, of 2^32.
    pub fn allow(&mut self, duty: u64) {
        let before = self.duty.replace(duty.min(ALL));
        // The first look is the first that it has used.
        if before.is_none() && duty < ALL {
            self.credit = -(self.open.min(1 << 40).cast_signed());
        }
        self.is_open = duty >= ALL || self.credit > 0;
    }

    /// How long it was open, and how many calls it has missed, since the last time.
    pub fn take(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.open), std::mem::take(&mut self.missed) as u64)
    }

    /// Calls that it would count in this time if it were open.
    pub fn expected(&self, nanos: u64) -> u64 {
        (self.rate * nanos as f64 / 1e9) as u64
    }

    /// Whether a longer time until the next look does no harm: it is open all the time, and that is
    /// what it may be.
    pub fn is_steady(&self) -> bool {
        self.duty.is_some_and(|duty| duty >= ALL)
    }

    /// Whether it is open all the time, as far as is known.
    pub fn is_always_open(&self) -> bool {
        self.duty.is_none_or(|duty| duty >= ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 20_000_000;

    /// Ten seconds of ticks with so many calls a nanosecond; how long it was open, and calls.
    fn run(rate: f64, duty: u64, tick: u64) -> (Window, u64, f64) {
        let mut window = Window::new(0, 0, 0);
        let (mut calls, mut open, mut missed) = (0.0, 0, 0);
        for now in (tick..=10_000_000_000).step_by(tick as usize) {
            if window.is_open {
                calls += rate * tick as f64;
            }
            window.look(now, calls as u64);
            window.allow(duty);
            let taken = window.take();
            open += taken.0;
            missed += taken.1;
        }
        (window, open, calls + missed as f64)
    }

    #[test]
    fn a_hook_is_open_for_its_part_of_the_time_and_knows_what_it_missed() {
        for tick in [TICK, 5 * TICK] {
            let (window, open, calls) = run(0.036, ALL / 10, tick);
            assert!((800_000_000..=1_300_000_000).contains(&open), "{open}");
            assert!((calls / 360e6 - 1.0).abs() < 0.02, "{calls}");
            assert!(!window.is_always_open());
            assert_eq!(window.expected(1_000_000_000), 36_000_000);
        }
    }

    #[test]
    fn where_calls_are_few_every_one_is_counted() {
        let (window, open, calls) = run(0.0001, ALL, TICK);
        assert_eq!((open, calls), (10_000_000_000, 1e6));
        assert!(window.is_always_open() && window.is_open && window.is_steady());
        assert!(!Window::new(0, 0, 0).is_steady(), "nobody knows yet");
    }

    #[test]
    fn a_late_look_is_paid_for() {
        let mut window = Window::new(0, 0, 0);
        window.look(1_000_000_000, 1_000_000);
        window.allow(ALL / 100);
        assert!(!window.is_open);
        // A second at a hundredth is a hundred seconds' worth.
        for second in 2..50 {
            window.look(second * 1_000_000_000, 1_000_000);
            window.allow(ALL / 100);
            assert!(!window.is_open, "{second}");
        }
    }
}
