//! Intervals beside a metric: where in a tree's metrics its bounds are.

use crate::compensate::bounds_of;
use crate::join::JoinedSums;
use tare_profile::{Profile, SeriesId};

/// Numbers of metrics.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub lower: usize,
    pub upper: usize,
    pub measured: usize,
    /// Of times that were joined with samples; their bounds are promised to hold the truth.
    pub joined: Option<JoinedSums>,
}

impl Bounds {
    /// The bounds of the first metric, which are added to the metrics; `None` if it has none, or no
    /// invocations beside it.
    pub fn add_to(metrics: &mut Vec<SeriesId>, profile: &Profile) -> Option<Bounds> {
        // Behind the invocations, which are the second wherever there are some.
        let bounds = bounds_of(profile, metrics[0]).filter(|_| metrics.len() == 2)?;
        let lower = metrics.len();
        metrics.extend(bounds);
        let joined = JoinedSums::of(profile, metrics[0]);
        Some(Bounds { lower, upper: lower + 1, measured: lower + 2, joined })
    }

    /// The interval of what has these metrics.
    pub fn interval(&self, of: impl Fn(usize) -> i64) -> (i64, i64) {
        let sums = (of(self.lower), of(self.upper));
        self.joined.map_or(sums, |joined| joined.interval(of(0), of(self.measured), sums))
    }
}
