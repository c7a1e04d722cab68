//! How many threads wait for a lock at a time, over the run.

use super::read::Waited;
use std::collections::HashMap;
use std::ops::Range;

/// Points of time that a run is cut to.
pub const POINTS: usize = 32;

/// The queue before a lock. Of several instances each has its own; this is of the longest.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Queue {
    pub longest: u64,
    /// How many waited on average, while anybody did.
    pub mean: f64,
    /// The longest in each of [`POINTS`] equal parts of the run.
    pub over_time: Vec<u64>,
}

pub(super) fn queue<'a>(waits: impl Iterator<Item = &'a Waited>, range: &Range<u64>) -> Queue {
    let mut instances: HashMap<i64, Vec<(u64, i64)>> = HashMap::new();
    let mut queue = Queue { over_time: vec![0; POINTS], ..Queue::default() };
    let length = (range.end - range.start).max(1);
    let point = |time: u64| {
        let at = u128::from(time.saturating_sub(range.start)) * POINTS as u128 / u128::from(length);
        usize::try_from(at).unwrap_or(POINTS).min(POINTS - 1)
    };
    for wait in waits {
        let moments = instances.entry(wait.instance).or_default();
        moments.push((wait.time, 1));
        moments.push((wait.end(), -1));
        // Short waits have no events, but they were in the queue.
        let told = &mut queue.over_time[point(wait.time)];
        *told = (*told).max(wait.queue);
    }
    let (mut waited, mut contended) = (0_u128, 0_u128);
    for moments in instances.values_mut() {
        // Who leaves at a moment is not in the queue with who comes then.
        moments.sort_unstable();
        let (mut count, mut since) = (0_i64, 0_u64);
        for (time, step) in moments.iter() {
            if count > 0 && *time > since {
                let length = u64::try_from(count).unwrap_or(0);
                for told in &mut queue.over_time[point(since)..=point(time - 1)] {
                    *told = (*told).max(length);
                }
                waited += u128::from(length) * u128::from(time - since);
                contended += u128::from(time - since);
            }
            count += step;
            since = *time;
        }
    }
    queue.longest = queue.over_time.iter().copied().max().unwrap_or(0);
    queue.mean = if contended > 0 { waited as f64 / contended as f64 } else { 0.0 };
    queue
}
