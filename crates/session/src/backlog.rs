//! What waits while a link is slower than a recording: values are summed up, so that sums stay true
//! and only their times get coarser; events past a bound are thrown away. Both are named as losses.
//! Names, contexts and what is known of the run are never among them.

use tare_profile::{LossKind, Profile, RunInfo, SeriesId};

/// Rows of values that wait as they are; more are summed up.
const VALUES: usize = 1 << 16;
/// Events that wait; more are thrown away.
const EVENTS: usize = 1 << 17;

const REASON: &str = "the link was slower than the recording";

#[derive(Default)]
pub struct Backlog {
    /// Rows that were summed up, and what they came to when it was done last.
    summed: u64,
    came_to: usize,
    dropped: u64,
}

impl Backlog {
    /// Bounds what waits in a profile whose rows cannot be written now.
    pub fn hold(&mut self, profile: &mut Profile, now: u64) {
        let ids: Vec<SeriesId> = profile.all_series().map(|(id, _)| id).collect();
        let rows = |profile: &Profile| -> usize {
            profile.all_series().map(|(_, series)| series.len()).sum()
        };
        // Summing up again is worth it only if there is much that is new.
        let before = rows(profile);
        if before > VALUES.max(self.came_to.saturating_mul(2)) {
            ids.into_iter().for_each(|id| profile.series_mut(id).sum_up(now));
            self.came_to = rows(profile);
            self.summed += before.saturating_sub(self.came_to) as u64;
        }
        let events: usize = profile.all_events().map(|(_, table)| table.len()).sum();
        if events > EVENTS {
            let ids: Vec<_> = profile.all_events().map(|(id, _)| id).collect();
            ids.into_iter().for_each(|id| profile.events_mut(id).drop_rows());
            self.dropped += events as u64;
        }
    }

    /// The rows are written; others may come.
    pub fn is_gone(&mut self) {
        self.came_to = 0;
    }

    /// Names what was lost so far.
    pub fn account(&self, run: &mut RunInfo) {
        if self.summed > 0 {
            let reason = format!("{REASON}; they are in the sums, with a later time");
            run.lose(LossKind::Dropped, "times of values", self.summed, &reason);
        }
        if self.dropped > 0 {
            run.lose(LossKind::Dropped, "events", self.dropped, REASON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{
        ContextId, Event, EventKind, Row, SeriesInfo, ThreadId, TimeAxis, ValueKind,
    };

    #[test]
    fn sums_stay_true_and_what_is_lost_is_named() {
        let mut profile = Profile::new();
        let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
        let series = profile.add_series(info);
        let table = profile.events_of(&EventKind::marker());
        let mut backlog = Backlog::default();
        let all = 3 * VALUES as u64;
        for now in 0..all {
            let context = ContextId::new((now % 2) as u32);
            let row = Row::new(context, ThreadId::UNKNOWN, 1).at(now);
            profile.series_mut(series).push(row);
            let fields = profile.events(table).kind().fields.len();
            assert_eq!(fields, 1, "a marker has a text");
            let text = tare_profile::FieldValue::Text(tare_profile::StringId::new(0));
            profile.events_mut(table).push(Event::default(), &[text]);
            if now % 1000 == 0 {
                backlog.hold(&mut profile, now);
            }
        }
        assert_eq!(profile.series(series).total(), all as i64);
        assert!(profile.series(series).len() <= VALUES + 1000);
        assert!(profile.events(table).len() <= EVENTS + 1000);
        let mut run = RunInfo::default();
        backlog.account(&mut run);
        let lost = |name: &str| run.losses.iter().find(|loss| loss.name == name).unwrap().count;
        assert!(lost("times of values") > VALUES as u64);
        assert_eq!(lost("events") + profile.events(table).len() as u64, all);
    }

    #[test]
    fn what_is_little_waits_as_it_is() {
        let mut profile = Profile::new();
        let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
        let series = profile.add_series(info);
        for now in 0..100 {
            let row = Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 1).at(now);
            profile.series_mut(series).push(row);
        }
        let mut backlog = Backlog::default();
        backlog.hold(&mut profile, 100);
        assert_eq!(profile.series(series).len(), 100);
        let mut run = RunInfo::default();
        backlog.account(&mut run);
        assert!(run.losses.is_empty());
    }
}
