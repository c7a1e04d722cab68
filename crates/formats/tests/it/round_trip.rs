//! What is exported and imported again is the same, as far as the format can hold it.

use crate::support::{Kept, export, profile, sums};
use std::collections::BTreeMap;
use tare_formats::{Format, Options, open_bytes};
use tare_profile::{ContextId, FieldValue, Profile, SeriesId, SeriesInfo, ValueKind};

const SEEDS: u64 = 40;

#[test]
fn collapsed_keeps_names_threads_and_one_series() {
    let kept =
        Kept { frame: |p, id| p.method_name(p.frames.get(id).method), threads: true, times: false };
    for seed in 0..SEEDS {
        let before = profile(seed);
        for series in [0, 1].map(SeriesId::new) {
            let options = Options { series: Some(series), threads: true, ..Options::default() };
            let after = open_bytes(&export(&before, Format::Collapsed, options)).unwrap();
            after.check().unwrap();
            // The format does not tell what is counted, so kinds are left out.
            let plain = |p: &Profile, kind: &ValueKind| {
                let all = sums(p, &kept).into_iter();
                let all = all.filter(|((k, ..), _)| k.starts_with(&format!("{kind:?} ")));
                all.map(|((_, thread, _, stack), value)| ((thread, stack), value))
                    .collect::<BTreeMap<_, _>>()
            };
            let kind = before.series(series).info().kind.clone();
            assert_eq!(plain(&after, &ValueKind::Samples), plain(&before, &kind), "seed {seed}");
        }
    }
}

#[test]
fn pprof_keeps_methods_lines_threads_and_all_series() {
    let kept = Kept {
        frame: |p, id| {
            let (frame, method) = (p.frames.get(id), p.method_of(id));
            let text = |id| p.strings.get(id);
            let name = p.method_name(frame.method);
            let place = (text(method.descriptor), text(method.file), text(method.module));
            format!("{:?} {name} {place:?} {:?}", method.kind, frame.line)
        },
        threads: true,
        times: false,
    };
    for seed in 0..SEEDS {
        let before = profile(seed);
        for gzip in [false, true] {
            let options = Options { gzip, ..Options::default() };
            let after = open_bytes(&export(&before, Format::Pprof, options)).unwrap();
            after.check().unwrap();
            assert_eq!(sums(&after, &kept), sums(&before, &kept), "seed {seed}");
            assert_eq!(after.run.started, before.run.started);
            assert_eq!(after.run.duration, before.run.duration);
        }
    }
}

#[test]
fn jfr_keeps_methods_places_threads_times_and_all_series() {
    let kept = Kept {
        frame: |p, id| {
            let (frame, method) = (p.frames.get(id), p.method_of(id));
            let text = |id| p.strings.get(id);
            let name = p.method_name(frame.method);
            let origin = (text(method.descriptor), text(method.loader), text(method.module));
            let place = (frame.line, frame.bci, frame.execution);
            format!("{:?} {name} {origin:?} {place:?}", method.kind)
        },
        threads: true,
        times: true,
    };
    for seed in 0..SEEDS {
        let before = profile(seed);
        let after = open_bytes(&export(&before, Format::Jfr, Options::default())).unwrap();
        after.check().unwrap();
        // Lock events come back as series besides.
        let mut found = sums(&after, &kept);
        let made = ["BlockedTime", "Contentions", "WaitingTime"];
        found.retain(|(kind, ..), _| !made.iter().any(|made| kind.starts_with(made)));
        assert_eq!(found, sums(&before, &kept), "seed {seed}");
        for kind in ["lock", "task"] {
            assert_eq!(events(&after, kind), events(&before, kind), "seed {seed}");
        }
        assert_eq!(after.run.started, before.run.started);
    }
}

fn events(profile: &Profile, kind: &str) -> Vec<String> {
    let tables = profile.all_events().filter(|(_, table)| table.kind().name == kind);
    let mut all: Vec<String> = tables
        .flat_map(|(_, table)| {
            (0..table.len()).map(|row| {
                let event = table.event(row).unwrap();
                let fields: Vec<String> = (0..7)
                    .map(|field| match table.field(row, field) {
                        Some(FieldValue::Text(id)) => profile.strings.get(id).to_owned(),
                        Some(FieldValue::Thread(id)) => profile.thread_name(id),
                        Some(FieldValue::Context(id)) => format!("{:?}", names(profile, id)),
                        other => format!("{other:?}"),
                    })
                    .collect();
                let stack = names(profile, event.context);
                let thread = profile.thread_name(event.thread);
                format!("{} {} {thread} {fields:?} {stack:?}", event.time, event.duration)
            })
        })
        .collect();
    all.sort();
    all
}

fn names(profile: &Profile, context: ContextId) -> Vec<String> {
    let frames = profile.contexts.frames(context);
    frames.map(|id| profile.method_name(profile.frames.get(id).method)).collect()
}

/// A series may be asked for by its name and have nothing; the file says so, and can be read.
#[test]
fn pprof_of_an_empty_series() {
    let mut before = Profile::new();
    let empty = before.add_series(SeriesInfo::new("cpu", ValueKind::Samples));
    let options = Options { series: Some(empty), ..Options::default() };
    let after = open_bytes(&export(&before, Format::Pprof, options)).unwrap();
    let kinds: Vec<_> = after.all_series().map(|(_, s)| (s.info().kind.clone(), s.len())).collect();
    assert_eq!(kinds, [(ValueKind::Samples, 0)]);
}
