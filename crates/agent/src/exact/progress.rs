//! Classes go to the JVM in batches: how many at a time.
//!
//! A batch is a call into the JVM that nothing can interrupt, and the control thread serves nobody
//! meanwhile. In each the program stands still while the JVM looks through all its compiled code
//! and changes the classes. So batches are as large as two limits allow: what is not that pause
//! (weaving, verifying, other agents' part) takes no longer than somebody may wait who wants to
//! stop it, and the pause no longer than the plan says, as far as its length depends on the number
//! of classes at all.

use super::locked;
use std::sync::Mutex;
use std::time::Duration;

const FIRST: usize = 64;
const LARGEST: usize = 256;
const SMALLEST: usize = 8;

/// What a batch takes beside the pause: after a shorter one the next is larger, …
const SHORT: Duration = Duration::from_millis(300);
/// … and after a longer one smaller.
const LONG: Duration = Duration::from_secs(1);

/// No smaller for the sake of pauses: each batch has one, and on a busy machine they are long
/// whatever the number of classes.
const FEW: usize = 64;

/// Of a pause that would be this part shorter with half of the classes it is said that the number
/// of classes matters.
const MATTERS: f64 = 0.125;

/// How many classes go to the JVM at a time.
pub struct Batches(Mutex<Sizes>);

struct Sizes {
    size: usize,
    /// In seconds; infinite without a limit.
    max_pause: f64,
    /// Batches that were measured, the last two of different sizes: classes and pause.
    pauses: [Option<(f64, f64)>; 2],
}

impl Batches {
    /// Pauses are to be no longer than this; zero is no limit.
    pub fn new(max_pause: Duration) -> Self {
        let max_pause = match max_pause.as_secs_f64() {
            0.0 => f64::INFINITY,
            seconds => seconds,
        };
        Batches(Mutex::new(Sizes { size: FIRST, max_pause, pauses: [None; 2] }))
    }

    pub fn size(&self) -> usize {
        locked(&self.0).size
    }

    /// What a batch of so many classes took beside the pause of the program, and that pause.
    pub fn took(&self, classes: usize, beside: Duration, pause: Option<Duration>) {
        locked(&self.0).took(classes.max(1), beside, pause.map(|pause| pause.as_secs_f64()));
    }
}

impl Sizes {
    fn took(&mut self, classes: usize, beside: Duration, pause: Option<f64>) {
        let heard = match beside {
            beside if beside > LONG => classes.min(self.size) / 2,
            // The rest of a list says nothing of larger batches.
            beside if beside < SHORT && classes >= self.size => self.size * 2,
            _ => self.size,
        };
        let by_pause = pause.map_or(LARGEST, |pause| self.by_pause(classes, pause));
        self.size = heard.min(by_pause.max(FEW)).clamp(SMALLEST, LARGEST);
    }

    /// How many classes keep to the limit, as far as is known.
    fn by_pause(&mut self, classes: usize, pause: f64) -> usize {
        let now = (classes as f64, pause);
        if self.pauses[1].is_none_or(|last| last.0 != now.0) {
            self.pauses[0] = self.pauses[1];
        }
        self.pauses[1] = Some(now);
        // Of one size nobody knows whether another would make a difference.
        let Some(before) = self.pauses[0] else { return LARGEST };
        let each = (now.1 - before.1) / (now.0 - before.0);
        // More classes, and no longer pause: something else decides, and few batches are best.
        if each * now.0 / 2.0 < MATTERS * pause {
            return LARGEST;
        }
        let without = (pause - each * now.0).max(0.0);
        // Where even one class takes too long, classes may make it half as long again.
        let room = (self.max_pause - without).max(without / 2.0);
        (room / each).min(LARGEST as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(10);

    fn millis(millis: f64) -> Duration {
        Duration::from_secs_f64(millis / 1e3)
    }

    /// The sizes of batches in a JVM in which a batch takes so long, and whose pause grows so with
    /// the classes.
    fn sizes(batches: &Batches, beside: Duration, pause: impl Fn(usize) -> f64) -> Vec<usize> {
        let round = |_| {
            let size = batches.size();
            batches.took(size, beside, Some(millis(pause(size))));
            batches.size()
        };
        (0..8).map(round).collect()
    }

    #[test]
    fn batches_grow_while_they_are_quick_and_shrink_when_they_are_not() {
        let batches = Batches::new(Duration::ZERO);
        assert_eq!(sizes(&batches, QUICK, |_| 900.0)[..3], [128, 256, 256]);
        assert_eq!(sizes(&batches, millis(700.0), |_| 9.0)[0], 256);
        let slow = sizes(&batches, Duration::from_secs(9), |_| 9.0);
        assert_eq!(slow[..6], [128, 64, 32, 16, 8, 8]);
        // The rest of a list says nothing of larger batches, but a slow one does of smaller ones.
        batches.took(3, Duration::ZERO, None);
        assert_eq!(batches.size(), SMALLEST);
        batches.took(SMALLEST, QUICK, None);
        assert_eq!(batches.size(), 2 * SMALLEST);
        batches.took(3, Duration::from_secs(9), None);
        assert_eq!(batches.size(), SMALLEST);
    }

    #[test]
    fn pauses_keep_to_their_limit_where_classes_make_them_long() {
        let batches = Batches::new(Duration::from_millis(50));
        // 10 ms, and a quarter of a millisecond a class.
        let sizes = sizes(&batches, QUICK, |classes| 10.0 + classes as f64 / 4.0);
        assert!(sizes[2..].iter().all(|size| (100..=160).contains(size)), "{sizes:?}");
    }

    #[test]
    fn where_classes_hardly_matter_batches_are_few() {
        let batches = Batches::new(Duration::from_millis(50));
        let sizes = sizes(&batches, QUICK, |classes| 80.0 + classes as f64 / 100.0);
        assert_eq!(sizes[7], LARGEST, "{sizes:?}");
    }

    #[test]
    fn where_no_batch_keeps_to_the_limit_they_are_not_much_longer() {
        let batches = Batches::new(Duration::from_millis(50));
        // 100 ms for nothing: with half a millisecond a class 100 more are half as long again.
        let sizes = sizes(&batches, QUICK, |classes| 100.0 + classes as f64 / 2.0);
        assert!(sizes[7] <= 128 && sizes[7] >= FEW, "{sizes:?}");
    }
}
