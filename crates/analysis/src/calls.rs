//! Figures out of the calls of a trace: calls, base and elapsed time of each context, within a
//! stretch of time that may begin and end anywhere.
//!
//! A call of a context adds its time to that context and takes it from the caller's, whatever the
//! order of the calls: what is left is each context's own. Cumulative figures are those of the
//! tree.

use std::collections::BTreeMap;
use std::ops::Range;
use tare_profile::{
    ContextId, EventKind, EventTable, FieldValue, Profile, Row, Series, SeriesId, ThreadId,
    ValueKind,
};

/// All time that passed between entry and exit, also what was none of the program's doing.
pub const ELAPSED: &str = "elapsed-time";

#[derive(Default)]
struct Figures {
    calls: i64,
    /// Without what held the thread up for our sake.
    base: i64,
    elapsed: i64,
}

/// Makes the figures of a trace's contexts anew from those of its calls that fell into a stretch of
/// time, if there are any calls. What began before counts with the part of its time that is inside.
pub fn figures_of_calls(profile: &mut Profile, time: &Range<u64>) {
    let figures = match profile.all_events().find(|(_, table)| table.kind().name == call_name()) {
        Some((_, table)) if !table.is_empty() => add_up(profile, table, time),
        _ => return,
    };
    let series: Vec<(SeriesId, Figure)> = profile
        .all_series()
        .filter_map(|(id, series)| Some((id, figure_of(&series.info().kind)?)))
        .collect();
    for (id, value) in series {
        let mut made = Series::new(profile.series(id).info().clone());
        for ((thread, context), figures) in &figures {
            match value(figures) {
                0 => {}
                value => made.push(Row::new(*context, *thread, value).at(time.start)),
            }
        }
        *profile.series_mut(id) = made;
    }
}

/// One of the figures.
type Figure = fn(&Figures) -> i64;

fn figure_of(kind: &ValueKind) -> Option<Figure> {
    match kind {
        ValueKind::Invocations => Some(|figures| figures.calls),
        ValueKind::WallTime => Some(|figures| figures.base),
        ValueKind::Other { name, .. } if name == ELAPSED => Some(|figures| figures.elapsed),
        _ => None,
    }
}

fn call_name() -> String {
    EventKind::call().name
}

fn add_up(
    profile: &Profile,
    table: &EventTable,
    time: &Range<u64>,
) -> BTreeMap<(ThreadId, ContextId), Figures> {
    let held = table.field_named("held");
    let mut figures: BTreeMap<(ThreadId, ContextId), Figures> = BTreeMap::new();
    for (row, event) in table.events().enumerate() {
        let end = event.time.saturating_add(event.duration).min(time.end);
        let inside = end.saturating_sub(event.time.max(time.start)).cast_signed();
        let held = match held.and_then(|field| table.field(row, field)) {
            Some(FieldValue::Integer(held)) => held.clamp(0, inside),
            _ => 0,
        };
        let own = figures.entry((event.thread, event.context)).or_default();
        own.calls += i64::from(time.contains(&event.time));
        own.base += inside - held;
        own.elapsed += inside;
        let caller = profile.contexts.parent(event.context).unwrap_or(ContextId::ROOT);
        if caller != ContextId::ROOT {
            let caller = figures.entry((event.thread, caller)).or_default();
            caller.base -= inside - held;
            caller.elapsed -= inside;
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Event, SeriesInfo, StringId, Unit};

    /// `a` from 100 to 200 calls `b` from 120 to 160, of which 10 were for our sake, and from 190
    /// to 195.
    fn profile() -> Profile {
        let mut profile = Profile::new();
        let (a, b) = (profile.special("a"), profile.special("b"));
        let a = profile.contexts.stack([a]);
        let b = profile.contexts.child(a, b);
        let calls = profile.events_of(&EventKind::call());
        for (context, time, duration, held) in [(b, 120, 40, 10), (b, 190, 5, 0), (a, 100, 100, 10)]
        {
            let event = Event { time, duration, thread: ThreadId::UNKNOWN, context };
            let text = FieldValue::Text(StringId::EMPTY);
            profile.events_mut(calls).push(event, &[text, text, FieldValue::Integer(held)]);
        }
        for kind in [
            ValueKind::Invocations,
            ValueKind::WallTime,
            ValueKind::Other { name: ELAPSED.to_owned(), unit: Unit::Nanoseconds },
        ] {
            profile.add_series(SeriesInfo::new("exact", kind));
        }
        profile
    }

    fn check(time: Range<u64>, expected: [&[i64]; 3]) {
        let mut profile = profile();
        figures_of_calls(&mut profile, &time);
        for ((_, series), expected) in profile.all_series().zip(expected) {
            let values: Vec<i64> = series.rows().map(|row| row.value).collect();
            assert_eq!(values, expected, "{:?} in {time:?}", series.info().kind);
        }
    }

    #[test]
    fn figures_are_of_the_time_asked_for() {
        check(0..1000, [&[1, 2], &[55, 35], &[55, 45]]);
        // The second call of b only, and what a did around it.
        check(180..1000, [&[1], &[5, 5], &[15, 5]]);
        check(500..1000, [&[], &[], &[]]);
    }
}
