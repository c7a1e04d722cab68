//! How long an end has not been heard.

use super::SILENCE;
use std::time::{Duration, Instant};

/// What passes between two looks counts for so much at most. Whoever looks does it many times a
/// second; more has passed only if this process was stopped, or its machine slept or was too busy
/// to run it, and then the other end may have been heard long ago.
const STEP: Duration = Duration::from_secs(1);

pub struct Silence {
    looked: Instant,
    lasted: Duration,
}

impl Default for Silence {
    fn default() -> Self {
        Silence { looked: Instant::now(), lasted: Duration::ZERO }
    }
}

impl Silence {
    /// Something was heard.
    pub fn ends(&mut self) {
        *self = Silence::default();
    }

    /// Whether it is too long by now.
    pub fn is_over(&mut self) -> bool {
        self.is_over_at(Instant::now())
    }

    fn is_over_at(&mut self, now: Instant) -> bool {
        self.lasted += now.saturating_duration_since(self.looked).min(STEP);
        self.looked = now;
        self.lasted > SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_nobody_looked_is_no_silence() {
        let mut silence = Silence::default();
        let mut now = silence.looked;
        now += Duration::from_secs(3600);
        assert!(!silence.is_over_at(now), "this process did not run");
        let looks = (0..).take_while(|_| {
            now += Duration::from_millis(50);
            !silence.is_over_at(now)
        });
        let seconds = looks.count() as f64 / 20.0;
        assert!((SILENCE.as_secs_f64() - 1.5..=25.0).contains(&seconds), "{seconds}");
        silence.ends();
        assert!(!silence.is_over_at(Instant::now()));
    }
}
