//! Allocation and live objects in the formats of others: what lives is told by rows that come and
//! go, and whoever reads a file finds what is left of them.

use crate::support::{export, jdk_tools, scratch, tool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use tare_formats::{Format, Options, open_bytes, series_name};
use tare_profile::{
    ContextId, Event, EventKind, FieldValue, Frame, Method, MethodKind, Profile, Row, SeriesId,
    SeriesInfo, Thread, TimeAxis, ValueKind,
};

const SECOND: u64 = 1_000_000_000;
const INTERVAL: u64 = 512 << 10;
const NAMES: [&str; 4] = ["allocated-bytes", "allocated-objects", "live-bytes", "live-objects"];

fn frame(
    profile: &mut Profile,
    kind: MethodKind,
    class: &str,
    name: &str,
) -> tare_profile::FrameId {
    let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
    let method = profile.methods.intern(Method { kind, class, name, ..Method::default() });
    profile.frames.intern(Frame::of(method))
}

/// As `tare record --alloc` makes it: two sites, of which one keeps a third of what it allocates.
pub fn memory() -> Profile {
    let mut profile = Profile::new();
    profile.run.started = Some(1_700_000_000_000_000_000);
    profile.run.duration = 60 * SECOND;
    let main = frame(&mut profile, MethodKind::Java, "app.Main", "main");
    let kept = frame(&mut profile, MethodKind::Java, "app.Cache", "put");
    let order = frame(&mut profile, MethodKind::Class, "app.Order", "");
    let array = frame(&mut profile, MethodKind::Class, "byte[]", "");
    let stacks = [&[main, kept, order][..], &[main, array]];
    let [kept, lost] = stacks.map(|frames| profile.contexts.stack(frames.iter().copied()));
    let name = profile.strings.intern("main");
    let os_id = Some(4001);
    let thread = profile.threads.push(Thread { name, os_id, ..Thread::default() });
    let kinds = [
        ("alloc", ValueKind::AllocatedBytes),
        ("alloc", ValueKind::AllocatedObjects),
        ("live", ValueKind::LiveBytes),
        ("live", ValueKind::LiveObjects),
    ];
    let series = kinds.map(|(name, kind)| {
        let mut info = SeriesInfo::new(name, kind).with_time(TimeAxis::Exact);
        if name == "alloc" {
            info = info.with_period(INTERVAL, ValueKind::AllocatedBytes);
        }
        profile.add_series(info)
    });
    let mut push = |which: usize, context: ContextId, time: u64, value: i64| {
        let row = Row::new(context, thread, value).at(time);
        profile.series_mut(series[which]).push(row);
    };
    for n in 0..30 {
        let time = n * SECOND;
        for context in [kept, lost] {
            push(0, context, time, 524_300);
            push(1, context, time, 8_192);
        }
        push(2, kept, time + SECOND, 524_300);
        push(3, kept, time + SECOND, 8_192);
        if n % 3 != 0 {
            push(2, kept, time + 2 * SECOND, -524_300);
            push(3, kept, time + 2 * SECOND, -8_192);
        }
    }
    let survivors = profile.events_of(&EventKind::survivor());
    for n in 0..10 {
        let event = Event { time: 3 * n * SECOND, thread, context: kept, duration: 0 };
        let integer = FieldValue::Integer;
        let life = [integer(524_300), FieldValue::Real(8_192.0), integer(30 - n as i64)];
        let fields = [&[integer(64)][..], &life, &[integer(0)]].concat();
        profile.events_mut(survivors).push(event, &fields);
    }
    profile
}

fn totals(profile: &Profile) -> BTreeMap<String, (i64, u64)> {
    let all = profile.all_series();
    all.map(|(_, s)| (series_name(s.info()), (s.total(), s.info().period))).collect()
}

#[test]
fn what_is_read_again_has_the_same_series_and_totals() {
    let profile = memory();
    let jfr = open_bytes(&export(&profile, Format::Jfr, Options::default())).unwrap();
    assert_eq!(totals(&jfr), totals(&profile));
    let pprof = open_bytes(&export(&profile, Format::Pprof, Options::default())).unwrap();
    let values = |profile: &Profile| {
        totals(profile).into_iter().map(|(name, (sum, _))| (name, sum)).collect::<Vec<_>>()
    };
    assert_eq!(values(&pprof), values(&profile));
    for read in [&jfr, &pprof] {
        let series = read.series(SeriesId::new(0));
        let leaf = |row: Row| read.method_of(read.contexts.frame(row.context).unwrap()).kind;
        assert!(series.rows().all(|row| leaf(row) == MethodKind::Class));
    }
}

#[test]
fn one_series_is_what_is_left_of_it() {
    let profile = memory();
    for (which, name) in (0..).zip(NAMES) {
        let (id, total) = (SeriesId::new(which), profile.series(SeriesId::new(which)).total());
        let options = Options { series: Some(id), ..Options::default() };
        let file = |format| String::from_utf8(export(&profile, format, options)).unwrap();
        let lines = file(Format::Collapsed);
        let values = lines.lines().map(|line| line.rsplit_once(' ').unwrap().1);
        assert_eq!(values.map(|n| n.parse::<i64>().unwrap()).sum::<i64>(), total, "{name}");
        let speedscope: Value = serde_json::from_str(&file(Format::Speedscope)).unwrap();
        let of_it = |one: &&Value| one["name"].as_str().unwrap().contains(name);
        let profiles = speedscope["profiles"].as_array().unwrap().iter().filter(of_it);
        let sum: i64 = profiles.map(|one| one["endValue"].as_i64().unwrap()).sum();
        assert_eq!(sum, total, "{name} in speedscope");
        let firefox: Value = serde_json::from_str(&file(Format::Firefox)).unwrap();
        let threads = firefox["threads"].as_array().unwrap().iter();
        let weights = threads.flat_map(|thread| thread["samples"]["weight"].as_array().unwrap());
        let sum: f64 = weights.map(|weight| weight.as_f64().unwrap()).sum();
        assert!((sum - total as f64).abs() < 1e-3, "{name} in the Firefox Profiler: {sum}");
    }
    let bytes = export(&profile, Format::Otlp, Options::default());
    let found: BTreeMap<&str, i64> = crate::totals::otlp_profiles(&bytes)
        .into_iter()
        .map(|(kind, total, _)| (kind, total))
        .collect();
    for (which, name) in (0..).zip(NAMES) {
        assert_eq!(found[name], profile.series(SeriesId::new(which)).total(), "{name} in OTLP");
    }
}

#[test]
fn go_tool_pprof_finds_its_own_sample_types() {
    let Some(go) = tool("go tool pprof", &["go".to_owned()]) else { return };
    let profile = memory();
    let path = scratch("memory-pprof").join("memory.pb");
    std::fs::write(&path, export(&profile, Format::Pprof, Options::default())).unwrap();
    let types = ["alloc_space", "alloc_objects", "inuse_space", "inuse_objects"];
    for (which, kind) in (0..).zip(types) {
        let index = format!("-sample_index={kind}");
        let words = ["tool", "pprof", "-top", "-unit=B", &index, path.to_str().unwrap()];
        let output = Command::new(&go).args(words).output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        let total = profile.series(SeriesId::new(which)).total().to_string();
        assert!(out.contains(&format!("of {total}")), "{kind} {total}\n{out}");
    }
}

#[test]
fn the_jdks_jfr_prints_allocations_and_old_objects() {
    let tools = jdk_tools("jfr");
    if tool("the JDK's jfr", &tools).is_none() {
        return;
    }
    let path = scratch("memory-jfr").join("memory.jfr");
    std::fs::write(&path, export(&memory(), Format::Jfr, Options::default())).unwrap();
    for jfr in &tools {
        let print = |event: &str| {
            let words = ["print", "--json", "--events", event, path.to_str().unwrap()];
            let output = Command::new(jfr).args(words).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let json: Value = serde_json::from_slice(&output.stdout).unwrap();
            json["recording"]["events"].as_array().unwrap().clone()
        };
        let samples = print("jdk.ObjectAllocationSample");
        let weights = samples.iter().map(|event| event["values"]["weight"].as_i64().unwrap());
        assert_eq!(weights.sum::<i64>(), 60 * 524_300);
        let old = print("jdk.OldObjectSample");
        assert_eq!(old.len(), 10);
        let values = &old[0]["values"];
        assert_eq!(values["objectSize"], 64);
        assert_eq!(values["object"]["type"]["name"], "app/Order");
        let frame = &values["stackTrace"]["frames"][0]["method"];
        assert_eq!((&frame["type"]["name"], &frame["name"]), (&"app/Cache".into(), &"put".into()));
        assert_eq!(values["objectAge"], "PT1M");
    }
}
