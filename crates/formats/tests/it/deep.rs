//! Stacks of thousands of frames, as deep recursion leaves them, and crafted files whose stacks
//! would be gigabytes if they were put down whole: what is written is bounded, says so, and has the
//! same total.

use serde_json::json;
use std::io::{self, Write};
use tare_formats::{Format, Options, open_bytes};
use tare_profile::{
    ContextId, Event, EventKind, FieldType, FieldValue, Profile, Row, SeriesId, SeriesInfo,
    ThreadId, TimeAxis, ValueKind,
};

/// Counts bytes, and refuses to take more than an exporter may write.
struct Bounded {
    bytes: usize,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        match self.bytes <= self.most {
            true => Ok(bytes.len()),
            false => Err(io::Error::other("too much")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A chain of calls with a sample at each depth.
fn chain(names: impl Iterator<Item = String>) -> Profile {
    let mut profile = Profile::new();
    profile.run.started = Some(1);
    let info = SeriesInfo::new("cpu", ValueKind::CpuTime).with_time(TimeAxis::Exact);
    let series = profile.add_series(info.with_period(1_000, ValueKind::CpuTime));
    let mut at = ContextId::ROOT;
    for (time, name) in (0..).zip(names) {
        let frame = profile.special(&name);
        at = profile.contexts.child(at, frame);
        let row = Row::new(at, ThreadId::UNKNOWN, 1_000).at(time * 1_000);
        profile.series_mut(series).push(row);
    }
    profile
}

fn export(profile: &Profile, format: Format, most: usize) -> Vec<String> {
    let mut out = Bounded { bytes: 0, most };
    let notes = tare_formats::write(profile, format, Options::default(), &mut out);
    notes.unwrap_or_else(|error| panic!("{format:?} after {} bytes: {error}", out.bytes))
}

#[test]
fn a_recursion_of_nine_thousand_calls_is_small_in_every_format() {
    let profile = chain((0..9_000).map(|_| "a.B.walk".to_owned()));
    for format in Format::ALL {
        let notes = export(&profile, format, 8 << 20);
        assert!(notes[0].contains(" deep stacks"), "{format:?}: {notes:?}");
    }
    let mut one = chain((0..9_000).map(|_| "a.B.walk".to_owned()));
    let series = SeriesId::new(0);
    let last = one.series(series).rows().last().unwrap();
    one.series_mut(series).forget_rows();
    one.series_mut(series).push(last);
    for format in Format::ALL {
        let notes = export(&one, format, 8 << 20);
        assert!(notes[0].starts_with("1 deep stack: "), "{format:?}: {notes:?}");
    }
    let shallow = chain((0..500).map(|_| "a.B.walk".to_owned()));
    for format in Format::ALL {
        assert_eq!(export(&shallow, format, 64 << 20), [""; 0], "{format:?}");
    }
}

#[test]
fn crafted_chains_are_bounded_in_every_format() {
    let profile = chain((0..12_000).map(|n| format!("m{n}")));
    for format in Format::ALL {
        let notes = export(&profile, format, 200 << 20);
        assert!(notes.iter().any(|note| note.contains("frames of each")), "{format:?}: {notes:?}");
    }
}

/// What is read again of formats that we read has all values, at the methods that have them.
#[test]
fn what_is_folded_keeps_its_values() {
    let deep = (0..6_000).map(|n| if n % 2 == 0 { "a.B.even" } else { "a.B.odd" });
    let profile = chain(deep.map(str::to_owned));
    for format in [Format::Collapsed, Format::Pprof, Format::Jfr] {
        let mut bytes = Vec::new();
        tare_formats::write(&profile, format, Options::default(), &mut bytes).unwrap();
        let after = open_bytes(&bytes).unwrap();
        let (_, series) = after.all_series().next().unwrap();
        assert_eq!(series.total(), profile.series(SeriesId::new(0)).total(), "{format:?}");
        let own = |name: &str| -> i64 {
            let rows = series.rows().filter(|row| {
                let frame = after.contexts.frame(row.context).unwrap();
                after.method_name(after.frames.get(frame).method) == name
            });
            rows.map(|row| row.value).sum()
        };
        assert_eq!((own("a.B.even"), own("a.B.odd")), (3_000_000, 3_000_000), "{format:?}");
    }
}

/// A stack in a field of an event is shown by its innermost method, however deep it is.
#[test]
fn stacks_in_fields_are_named_by_their_innermost_method() {
    for depth in [3, 5_000] {
        let mut profile = chain((0..depth).map(|n| format!("m{n}")));
        let kind = EventKind::new("lock", &[("holder", FieldType::Context)]);
        let locks = profile.events_of(&kind);
        let innermost = ContextId::new(profile.contexts.len() as u32 - 1);
        for holder in [innermost, ContextId::ROOT] {
            profile.events_mut(locks).push(Event::default(), &[FieldValue::Context(holder)]);
        }
        let json = |format| -> serde_json::Value {
            let mut out = Vec::new();
            tare_formats::write(&profile, format, Options::default(), &mut out).unwrap();
            serde_json::from_slice(&out).unwrap()
        };
        let expected = [json!(format!("m{}", depth - 1)), json!(null)];
        let chrome = json(Format::Chrome);
        let events = chrome["traceEvents"].as_array().unwrap();
        let locks = events.iter().filter(|event| event["name"] == "lock");
        let holders: Vec<_> = locks.map(|event| event["args"]["holder"].clone()).collect();
        assert_eq!(holders, expected, "{depth}");
        let firefox = json(Format::Firefox);
        let threads = firefox["threads"].as_array().unwrap();
        let markers = threads.iter().flat_map(|t| t["markers"]["data"].as_array().unwrap());
        let holders: Vec<_> = markers.map(|data| data["holder"].clone()).collect();
        assert_eq!(holders, expected, "{depth}");
    }
}
