//! The last seconds of a recording: rows that came, in the order in which they came, until they are
//! too old, or there are too many.

use std::collections::{BTreeMap, VecDeque};
use tare_profile::{
    ContextId, Event, EventTableId, FieldValue, Profile, Row, Series, SeriesId, ThreadId, ValueKind,
};

/// The longest that anybody can look back, in nanoseconds.
pub const LONGEST: u64 = 60_000_000_000;

/// In nanoseconds, as times are.
const SECOND: u64 = 1_000_000_000;

/// Rows that are kept at most, of all series and events. Past them the window is shorter, which is
/// said.
const MOST: usize = 1 << 20;

/// Of the rows of events that stay for a picture of the last seconds. Others were looked at when
/// they came.
const KINDS: [&str; 1] = ["lock"];

#[derive(Default)]
pub struct Window {
    rows: VecDeque<(SeriesId, Row)>,
    events: VecDeque<(EventTableId, Event, Box<[FieldValue]>)>,
    /// What is older is not there.
    pub from: u64,
    pub now: u64,
}

impl Window {
    /// Takes the rows of a profile, and has it let go of them.
    pub fn take(&mut self, profile: &mut Profile) {
        for (id, series) in profile.all_series() {
            match &series.info().kind {
                // Each is a sample.
                ValueKind::CpuTime | ValueKind::WallTime => {
                    self.rows.extend(series.rows().map(|row| (id, row)));
                }
                _ => self.rows.extend(summed_up(series).map(|row| (id, row))),
            }
        }
        for (id, table) in profile.all_events().filter(|(_, table)| is_kept(&table.kind().name)) {
            for (row, event) in table.events().enumerate() {
                let fields = table.fields().iter().filter_map(|field| field.get(row)).collect();
                self.events.push_back((id, event, fields));
            }
        }
        profile.forget_rows();
    }

    /// It is so late now: what is older than the longest is let go.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        let oldest = self.now.saturating_sub(LONGEST);
        self.from = self.from.max(oldest);
        while self.rows.len() > MOST {
            if let Some((_, row)) = self.rows.pop_front() {
                self.from = self.from.max(row.time);
            }
        }
        while self.events.len() > MOST {
            if let Some((_, event, _)) = self.events.pop_front() {
                self.from = self.from.max(event.time.saturating_add(event.duration));
            }
        }
        while self.rows.front().is_some_and(|(_, row)| row.time < self.from) {
            self.rows.pop_front();
        }
        let end = |event: &Event| event.time.saturating_add(event.duration);
        while self.events.front().is_some_and(|(_, event, _)| end(event) < self.from) {
            self.events.pop_front();
        }
    }

    /// The beginning of a stretch of so many nanoseconds that ends now, as far back as there is
    /// something.
    pub fn since(&self, span: u64) -> u64 {
        self.now.saturating_sub(span).max(self.from)
    }

    /// Puts the rows since then into the profile that they came from, which has none; events only
    /// if they are wanted.
    pub fn fill(&self, profile: &mut Profile, since: u64, events: bool) {
        for (series, row) in self.rows.iter().filter(|(_, row)| row.time >= since) {
            profile.series_mut(*series).push(*row);
        }
        let inside = |event: &Event| event.time.saturating_add(event.duration) >= since;
        let events = self.events.iter().filter(|(_, event, _)| events && inside(event));
        for (table, event, fields) in events {
            profile.events_mut(*table).push(*event, fields);
        }
    }
}

/// One row for each context, thread and second, at its middle: of a second that a stretch cuts, as
/// much is in it as not. Threads may wait for a lock thousands of times in one.
fn summed_up(series: &Series) -> impl Iterator<Item = Row> {
    let mut sums: BTreeMap<(u64, ContextId, ThreadId), i64> = BTreeMap::new();
    for row in series.rows() {
        let second = row.time / SECOND * SECOND + SECOND / 2;
        let sum = sums.entry((second, row.context, row.thread)).or_default();
        *sum = sum.saturating_add(row.value);
    }
    sums.into_iter().map(|((time, context, thread), sum)| Row::new(context, thread, sum).at(time))
}

pub fn is_kept(kind: &str) -> bool {
    KINDS.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{EventKind, LockFields, SeriesInfo};

    #[test]
    fn what_is_too_old_goes_and_the_rest_can_be_looked_at_again() {
        let mut profile = Profile::new();
        let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::CpuTime));
        let table = profile.events_of(&EventKind::lock());
        let mut window = Window::default();
        let second = 1_000_000_000;
        for number in 0..100 {
            let row = Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 1).at(number * second);
            profile.series_mut(series).push(row);
            let event = Event { time: number * second, duration: 1, ..Event::default() };
            profile.events_mut(table).push(event, &LockFields::default().values());
            window.take(&mut profile);
            assert!(profile.series(series).is_empty());
            window.advance(number * second);
        }
        let mut count = |span: u64| {
            window.fill(&mut profile, window.since(span), true);
            let counts = (profile.series(series).len(), profile.events(table).len());
            profile.forget_rows();
            counts
        };
        assert_eq!(count(9 * second), (10, 10));
        assert_eq!(count(1000 * second), (61, 61));
        assert_eq!(count(0), (1, 1));
        window.fill(&mut profile, window.since(9 * second), false);
        assert_eq!((profile.series(series).len(), profile.events(table).len()), (10, 0));
    }

    #[test]
    fn waits_of_a_second_are_summed_up_and_samples_are_not() {
        let mut profile = Profile::new();
        let [cpu, lock] = [ValueKind::CpuTime, ValueKind::BlockedTime]
            .map(|kind| profile.add_series(SeriesInfo::new("x", kind)));
        for number in 0..10 {
            for series in [cpu, lock] {
                let row = Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 3).at(number * SECOND / 5);
                profile.series_mut(series).push(row);
            }
        }
        let mut window = Window::default();
        window.take(&mut profile);
        window.advance(2 * SECOND);
        window.fill(&mut profile, 0, true);
        assert_eq!([cpu, lock].map(|id| profile.series(id).len()), [10, 2]);
        assert_eq!([cpu, lock].map(|id| profile.series(id).total()), [30, 30]);
    }
}
