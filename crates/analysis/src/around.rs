//! The time around a numbered event: `gc:17`, `safepoint:3`, `lock:5`.
//!
//! The window ends with the event. It begins where the one before it of the same kind ended, since
//! what a collection cleans up was allocated after the last one, but within bounds: too short a
//! window has no samples, too long a one hides what came last.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use tare_profile::{EventTable, Profile, collections, safepoints};

/// The shortest and the longest window before an event, in nanoseconds, unless one is asked for.
const SHORTEST: u64 = 100_000_000;
const LONGEST: u64 = 10_000_000_000;

/// An event, by its kind and number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventRef {
    pub kind: String,
    pub number: u64,
}

impl fmt::Display for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.number)
    }
}

impl FromStr for EventRef {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "write a kind of event and its number: gc:17, safepoint:3, lock:5";
        let (kind, number) = text.split_once(':').ok_or(wrong)?;
        let number = number.parse().ok().filter(|number| *number > 0).ok_or(wrong)?;
        match kind.is_empty() {
            true => Err(wrong),
            false => Ok(EventRef { kind: kind.to_owned(), number }),
        }
    }
}

/// Where an event is in time, and what is looked at before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Around {
    pub event: EventRef,
    pub time: Range<u64>,
    /// From the beginning of the window to the end of the event.
    pub window: Range<u64>,
    /// The event in words.
    pub told: String,
}

/// Why there is no such event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoEvent {
    /// The kinds that the recording has.
    Kind(Vec<String>),
    /// How many it has of that kind.
    Number(u64),
}

impl Around {
    /// `before` is how long before the event to look; without it, as the module says.
    pub fn of(profile: &Profile, event: &EventRef, before: Option<u64>) -> Result<Self, NoEvent> {
        let all = match event.kind.as_str() {
            "gc" => gc(profile),
            "safepoint" => stops(profile),
            kind => others(profile, kind),
        };
        if all.is_empty() {
            return Err(NoEvent::Kind(kinds(profile)));
        }
        let last = all.iter().map(|one| one.number).max().unwrap_or(0);
        let at = all.iter().position(|one| one.number == event.number);
        let (at, one) = at.and_then(|at| Some((at, all.get(at)?))).ok_or(NoEvent::Number(last))?;
        let previous = at.checked_sub(1).and_then(|at| all.get(at)).map_or(0, |one| one.time.end);
        let since = one.time.start.saturating_sub(previous);
        let before = before.unwrap_or_else(|| since.clamp(SHORTEST, LONGEST));
        Ok(Around {
            event: event.clone(),
            time: one.time.clone(),
            window: one.time.start.saturating_sub(before)..one.time.end.saturating_add(1),
            told: one.told.clone(),
        })
    }
}

struct One {
    number: u64,
    time: Range<u64>,
    told: String,
}

fn gc(profile: &Profile) -> Vec<One> {
    let one =
        |one: tare_profile::Collection| {
            let mut parts = vec![one.kind.clone(), one.cause.clone()];
            parts.retain(|part| !part.is_empty());
            let heap = one.heap_before.zip(one.heap_after);
            parts.extend(heap.map(|(before, after)| {
                format!("heap {} to {}", megabytes(before), megabytes(after))
            }));
            One { number: one.number, time: one.time..one.end(), told: parts.join(", ") }
        };
    collections(profile).into_iter().map(one).collect()
}

fn stops(profile: &Profile) -> Vec<One> {
    let one = |one: tare_profile::Safepoint| {
        let (reach, all) = (milliseconds(one.reach), milliseconds(one.duration));
        let told = format!("{}, reached after {reach} of {all}", one.reason);
        One { number: one.number, time: one.time..one.end(), told }
    };
    safepoints(profile).into_iter().map(one).collect()
}

/// Events that nobody has numbered are counted in the order of their time.
fn others(profile: &Profile, kind: &str) -> Vec<One> {
    let tables = profile.all_events().filter(|(_, table)| table.kind().name == kind);
    let mut times: Vec<Range<u64>> = tables
        .flat_map(|(_, table): (_, &EventTable)| table.events())
        .map(|event| event.time..event.time.saturating_add(event.duration))
        .collect();
    times.sort_by_key(|time| (time.start, time.end));
    let numbered = (1..).zip(times);
    numbered.map(|(number, time)| One { number, time, told: String::new() }).collect()
}

fn kinds(profile: &Profile) -> Vec<String> {
    let tables = profile.all_events().filter(|(_, table)| !table.is_empty());
    let mut kinds: Vec<String> = tables.map(|(_, table)| table.kind().name.clone()).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn milliseconds(nanos: u64) -> String {
    format!("{:.2} ms", nanos as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Event, EventKind, FieldValue, StringId};

    const S: u64 = 1_000_000_000;

    fn profile() -> Profile {
        let mut profile = Profile::new();
        let gc = profile.events_of(&EventKind::gc());
        let (text, bytes) = (FieldValue::Text(StringId::EMPTY), FieldValue::Integer(5_000_000));
        for time in [2 * S, 3 * S, 3 * S + 1000, 60 * S] {
            let event = Event { time, duration: 500, ..Event::default() };
            profile.events_mut(gc).push(event, &[text, text, bytes, bytes]);
        }
        profile
    }

    #[test]
    fn a_window_begins_after_the_last_of_its_kind_within_bounds() {
        let profile = profile();
        let window = |text: &str, before| {
            Around::of(&profile, &text.parse().expect("an event"), before).map(|one| one.window)
        };
        assert_eq!(window("gc:2", None), Ok(2 * S + 500..3 * S + 501));
        assert_eq!(window("gc:3", None), Ok(3 * S + 1000 - SHORTEST..3 * S + 1501), "too short");
        assert_eq!(window("gc:4", None), Ok(60 * S - LONGEST..60 * S + 501), "too long");
        assert_eq!(window("gc:2", Some(7)), Ok(3 * S - 7..3 * S + 501));
        assert_eq!(window("gc:5", None), Err(NoEvent::Number(4)));
        assert_eq!(window("lock:1", None), Err(NoEvent::Kind(vec!["gc".to_owned()])));
    }

    #[test]
    fn events_are_named_by_kind_and_number() {
        let event: EventRef = "class-load:3".parse().expect("an event");
        assert_eq!((event.kind.as_str(), event.number), ("class-load", 3));
        assert_eq!(event.to_string(), "class-load:3");
        for wrong in ["", "gc", "gc:", "gc:0", ":1", "gc:x"] {
            assert!(wrong.parse::<EventRef>().is_err(), "{wrong}");
        }
    }
}
