//! What one hook told of a method: every call counted, some timed, and their callers.
//!
//! Only some calls are told with their caller, and how many changes with the load. So calls of a
//! caller are estimated by interval: all that were counted, by its share of those that were told.

use super::{ClimbMetric, MethodKey};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Caller {
    Method(MethodKey),
    /// The thread began with the method.
    Nobody,
    /// The stack could not be walked, or there was no room to tell.
    Unknown,
}

/// What was told of calls by one caller, in an interval or in all.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Sums {
    pub entered: u64,
    pub ended: u64,
    /// In nanoseconds.
    pub wall: u64,
    /// Of so many of those that ended.
    pub cpu: u64,
    pub with_cpu: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.entered += other.entered;
        self.ended += other.ended;
        self.wall += other.wall;
        self.cpu += other.cpu;
        self.with_cpu += other.with_cpu;
    }

    fn mean(self, metric: ClimbMetric) -> Option<f64> {
        let (sum, count) = match metric {
            ClimbMetric::Cpu => (self.cpu, self.with_cpu),
            ClimbMetric::Wall | ClimbMetric::Calls => (self.wall, self.ended),
        };
        (count > 0).then(|| sum as f64 / count as f64)
    }
}

/// A stretch of time, about a tenth of a second.
#[derive(Clone, Default, Debug)]
pub(super) struct Interval {
    pub duration: u64,
    pub calls: u64,
    pub told: u64,
    pub callers: BTreeMap<Caller, Sums>,
}

impl Interval {
    pub(super) fn all(&self) -> Sums {
        let mut all = Sums::default();
        self.callers.values().for_each(|sums| all.add(*sums));
        all
    }
}

#[derive(Clone, Default, Debug)]
pub struct Hook {
    pub method: Option<MethodKey>,
    /// When it was set and taken out, in nanoseconds since the start of the run.
    pub on: u64,
    pub off: Option<u64>,
    pub calls: u64,
    /// Those that were told with their caller, which are those that were timed.
    pub told: u64,
    /// The time that calls were counted for.
    pub counted: u64,
    /// How many timed calls took from so long to so long, in nanoseconds.
    pub times: BTreeMap<(u64, u64), u64>,
    /// By the time of their end.
    pub(super) intervals: BTreeMap<u64, Interval>,
}

impl Hook {
    pub(super) fn count(&mut self, time: u64, duration: u64, calls: u64, told: u64) {
        let interval = self.intervals.entry(time).or_default();
        interval.duration += duration;
        interval.calls += calls;
        interval.told += told;
        self.calls += calls;
        self.told += told;
        self.counted += duration;
    }

    pub(super) fn caller(&mut self, time: u64, caller: Caller, sums: Sums) {
        let interval = self.intervals.entry(time).or_default();
        interval.callers.entry(caller).or_default().add(sums);
    }

    /// When calls were counted for the first and for the last time.
    pub fn span(&self) -> Option<(u64, u64)> {
        let counted = || self.intervals.iter().filter(|(_, of)| of.duration > 0);
        let (first, of_first) = counted().next()?;
        let (last, _) = counted().next_back()?;
        Some((first.saturating_sub(of_first.duration).max(self.on), *last))
    }

    /// All that was told, whoever called.
    pub fn all(&self) -> Sums {
        let mut all = Sums::default();
        self.intervals.values().for_each(|interval| all.add(interval.all()));
        all
    }

    /// The mean of a call, in nanoseconds.
    pub fn mean(&self, metric: ClimbMetric) -> Option<f64> {
        self.all().mean(metric)
    }

    pub fn calls_per_second(&self) -> f64 {
        if self.counted == 0 { 0.0 } else { self.calls as f64 * 1e9 / self.counted as f64 }
    }

    /// The time that this share of the calls did not exceed, in nanoseconds.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let all: u64 = self.times.values().sum();
        let rank = ((all as f64 * share).ceil() as u64).max(1);
        let mut passed = 0;
        self.times.iter().find_map(|(&(from, to), count)| {
            passed += count;
            (passed >= rank).then(|| from + (to - from) / 2)
        })
    }

    /// Each caller with its estimated calls, and what they cost in the metric.
    pub fn costs(&self, metric: ClimbMetric) -> Vec<(Caller, f64, f64)> {
        self.costs_of(metric, self.intervals.values())
    }

    pub(super) fn costs_of<'a>(
        &self,
        metric: ClimbMetric,
        intervals: impl Iterator<Item = &'a Interval>,
    ) -> Vec<(Caller, f64, f64)> {
        let mut callers: BTreeMap<Caller, (f64, Sums)> = BTreeMap::new();
        let (mut all, mut known) = (0, 0);
        for interval in intervals {
            all += interval.calls;
            // Told in one interval, counted in the one before: a call may be in between.
            let told: u64 = interval.callers.values().map(|sums| sums.entered).sum();
            if told > 0 {
                known += interval.calls;
            }
            for (caller, sums) in &interval.callers {
                let of = callers.entry(*caller).or_default();
                of.0 += interval.calls as f64 * sums.entered as f64 / told.max(1) as f64;
                of.1.add(*sums);
            }
        }
        // What was counted while none was told is shared out like the rest.
        let scale = if known > 0 { all as f64 / known as f64 } else { 0.0 };
        let mean = self.mean(metric);
        let costs = callers.into_iter().map(|(caller, (calls, sums))| {
            let calls = calls * scale;
            let each = match metric {
                ClimbMetric::Calls => 1.0,
                // Whoever has not come back yet is taken for one like the others.
                _ => sums.mean(metric).or(mean).unwrap_or(1.0),
            };
            (caller, calls, calls * each)
        });
        let mut costs: Vec<_> = costs.collect();
        costs.sort_by(|a, b| b.2.total_cmp(&a.2));
        costs
    }
}
