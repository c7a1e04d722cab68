//! The rows of a series, thread by thread: the shape of formats that show threads side by side.

use std::collections::HashMap;
use tare_profile::{ContextId, Series, ThreadId, TimeAxis};

/// A value of a context, and when.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Zero in a series without times.
    pub time: u64,
    pub context: ContextId,
    pub value: i64,
}

/// The samples of one thread, by time.
pub struct ThreadSamples {
    pub thread: ThreadId,
    pub total: i64,
    pub samples: Vec<Sample>,
}

/// All threads of a series, those with the largest totals first. Without times, the rows of a
/// context become one sample. Values below zero do not count; writers get none (`settled`).
pub fn split(series: &Series) -> Vec<ThreadSamples> {
    let timed = series.info().time == TimeAxis::Exact;
    let mut threads: HashMap<ThreadId, Vec<Sample>> = HashMap::new();
    for row in series.rows() {
        let time = if timed { row.time } else { 0 };
        let sample = Sample { time, context: row.context, value: row.value };
        threads.entry(row.thread).or_default().push(sample);
    }
    let mut out: Vec<ThreadSamples> = threads
        .into_iter()
        .map(|(thread, mut samples)| {
            match timed {
                true => samples.sort_by_key(|sample| sample.time),
                false => samples.sort_by_key(|sample| sample.context),
            }
            // A busy stack of a sampler, or a context that was measured in several steps.
            samples.dedup_by(|next, kept| {
                let same = next.context == kept.context && next.time == kept.time;
                if same {
                    kept.value = kept.value.saturating_add(next.value);
                }
                same
            });
            samples.retain(|sample| sample.value > 0);
            let total = samples.iter().fold(0_i64, |sum, sample| sum.saturating_add(sample.value));
            ThreadSamples { thread, total, samples }
        })
        .filter(|thread| !thread.samples.is_empty())
        .collect();
    out.sort_by_key(|thread| (std::cmp::Reverse(thread.total), thread.thread));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Row, SeriesInfo, ValueKind};

    #[test]
    fn threads_by_weight_samples_by_time() {
        let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
        let mut series = Series::new(info);
        let context = ContextId::ROOT;
        for (thread, time, value) in [(1, 9, 1), (2, 5, 3), (2, 4, 1), (2, 5, 1), (3, 1, -1)] {
            series.push(Row::new(context, ThreadId::new(thread), value).at(time));
        }
        let threads = split(&series);
        let shape = |n: usize| {
            let samples: Vec<_> = threads[n].samples.iter().map(|s| (s.time, s.value)).collect();
            (threads[n].thread.raw(), threads[n].total, samples)
        };
        assert_eq!(shape(0), (2, 5, vec![(4, 1), (5, 4)]));
        assert_eq!(shape(1), (1, 1, vec![(9, 1)]));
        assert_eq!(threads.len(), 2);
    }
}
