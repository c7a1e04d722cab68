//! The last seconds of a recording: rows that came, in the order in which they came, until they are
//! too old, or there are too many.

use std::collections::VecDeque;
use tare_profile::{Event, EventTableId, FieldValue, Profile, Row, SeriesId};

/// The longest that anybody can look back, in nanoseconds.
pub const LONGEST: u64 = 60_000_000_000;

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
            self.rows.extend(series.rows().map(|row| (id, row)));
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

    /// Puts the rows since then into the profile that they came from, which has none.
    pub fn fill(&self, profile: &mut Profile, since: u64) {
        for (series, row) in self.rows.iter().filter(|(_, row)| row.time >= since) {
            profile.series_mut(*series).push(*row);
        }
        let inside = |event: &Event| event.time.saturating_add(event.duration) >= since;
        for (table, event, fields) in self.events.iter().filter(|(_, event, _)| inside(event)) {
            profile.events_mut(*table).push(*event, fields);
        }
    }
}

pub fn is_kept(kind: &str) -> bool {
    KINDS.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{ContextId, EventKind, LockFields, SeriesInfo, ThreadId, ValueKind};

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
            window.fill(&mut profile, window.since(span));
            let counts = (profile.series(series).len(), profile.events(table).len());
            profile.forget_rows();
            counts
        };
        assert_eq!(count(9 * second), (10, 10));
        assert_eq!(count(1000 * second), (61, 61));
        assert_eq!(count(0), (1, 1));
    }
}
