//! `tare record --trace`: every entry and exit is there, in order and nested as the calls were;
//! what is not there is counted; and a full ring never holds the program up.

use crate::common::assert_no_trace;
use crate::exact::truth_counts;
use crate::recording::{Counts, Recorded, counted, java, wait_until_on};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes, demo_classes, on_each_jdk, wait_until};
use tare_profile::facts::{SequenceCost, keys};
use tare_profile::{ContextId, EventKind, EventTable, FieldValue, Profile, ThreadId};

fn record(words: &[&str], file: &Path) -> Vec<String> {
    let mut all: Vec<String> = ["record", "--trace", "-o"].map(str::to_owned).into();
    all.push(file.display().to_string());
    all.extend(words.iter().map(|word| (*word).to_owned()));
    all
}

/// Launches a program under a trace; its output, and the recording.
#[track_caller]
fn launched(jdk: &Jdk, options: &[&str], at: &Path, program: &[&str]) -> (String, Recorded) {
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare");
    let mut words = record(options, &file);
    words.extend(java(jdk, at, program));
    let outcome = Tare::this().run(&words);
    (outcome.ok().to_owned(), Recorded::open(&file))
}

fn table<'p>(profile: &'p Profile, kind: &EventKind) -> &'p EventTable {
    let found = profile.all_events().find(|(_, table)| table.kind() == kind);
    found.expect("a table of that kind").1
}

fn calls(profile: &Profile) -> &EventTable {
    table(profile, &EventKind::call())
}

/// What one of the fields says, over all calls.
fn texts<'p>(profile: &'p Profile, field: &str) -> BTreeSet<&'p str> {
    let calls = calls(profile);
    let field = calls.field_named(field).expect("the field");
    let text = |row| match calls.field(row, field) {
        Some(FieldValue::Text(id)) => profile.strings.get(id),
        other => panic!("{other:?}"),
    };
    (0..calls.len()).map(text).collect()
}

/// The calls in the file are those of the figures, and each lies within a call of its caller.
#[track_caller]
fn assert_whole(recorded: &Recorded) {
    let (profile, calls) = (&recorded.profile, calls(&recorded.profile));
    let figures: i64 = recorded.counts().values().sum();
    assert_eq!(calls.len() as i64, figures);
    // By thread, in the order of their ends: whoever calls ends after what it called.
    let mut open: BTreeMap<ThreadId, BTreeMap<ContextId, u64>> = BTreeMap::new();
    for event in calls.events() {
        let inner = open.entry(event.thread).or_default();
        if let Some(first) = inner.remove(&event.context) {
            assert!(first >= event.time, "what was called before its caller: {event:?}");
        }
        let caller = profile.contexts.parent(event.context).unwrap_or(ContextId::ROOT);
        if caller != ContextId::ROOT {
            let first = inner.entry(caller).or_insert(event.time);
            *first = event.time.min(*first);
        }
    }
    let orphans: usize = open.values().map(BTreeMap::len).sum();
    assert_eq!(orphans, 0, "calls without a caller");
}

#[track_caller]
fn assert_equal(truth: &Counts, recorded: &Counts) {
    assert!(truth.len() > 20, "the program counted too little: {truth:?}");
    let wrong: Vec<_> =
        truth.iter().filter(|(m, n)| recorded.get(*m).unwrap_or(&0) != *n).collect();
    assert!(wrong.is_empty(), "{wrong:?} in {recorded:?}");
}

on_each_jdk! {
    fn every_call_launched(jdk) {
        let (text, recorded) = launched(jdk, &[], classes(), &["Truth", "2"]);
        assert_equal(&truth_counts(&text), &recorded.all_counts());
        assert_whole(&recorded);
        let exits = texts(&recorded.profile, "exit");
        assert!(exits.contains("return") && exits.contains("exception"), "{exits:?}");
    }

    fn every_call_attached(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Truth").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        // Twice: what the first trace left behind does not disturb the second.
        for round in 0..2 {
            let before = truth_counts(&target.text());
            let recording = Tare::this().start(&record(&[&target.name()], &file));
            wait_until_on(&target.name());
            target.tell("go");
            target.wait_for("done");
            recording.signal(rustix::process::Signal::INT);
            recording.wait().ok();
            let mut truth = truth_counts(&target.text());
            truth.iter_mut().for_each(|(m, n)| *n -= before.get(m).unwrap_or(&0));
            let recorded = Recorded::open(&file);
            // A class whose initialiser has failed meanwhile cannot be woven.
            let counts = if round == 0 { recorded.all_counts() } else { recorded.counts() };
            assert_equal(&truth, &counts);
            assert_no_trace(target.pid());
        }
        target.tell("go");
        target.wait_for("done");
    }

    /// A ring that nobody empties in time costs events, which are counted, and nothing else.
    fn a_full_ring_holds_nobody_up(jdk) {
        let options = ["--ring", "64K", "--rate", "1k"];
        let (text, recorded) = launched(jdk, &options, classes(), &["Calls", "20"]);
        assert!(text.contains("result 6765"), "{text}");
        let truth = counted(&text)["Calls.fib"];
        let run = &recorded.profile.run;
        let taken = recorded.fact(keys::TRACE_EVENTS).expect("how many were taken");
        let dropped: u64 = run
            .losses
            .iter()
            .filter(|loss| loss.name == "events of main")
            .map(|loss| loss.count)
            .sum();
        // Beside fib there are main and a constructor.
        assert_eq!(taken + dropped, 2 * (truth as u64 + 2), "{:?}", recorded.losses());
        assert!(dropped > 10_000, "{:?}", recorded.losses());
        let gaps = table(&recorded.profile, &EventKind::gap());
        assert!(!gaps.is_empty(), "when they were dropped is not told");
    }

    /// Threads that may wait for room lose nothing, and what they waited is in nobody's time.
    fn a_full_ring_is_waited_for_if_asked(jdk) {
        let options = ["--ring", "64K", "--wait", "1s"];
        let (text, recorded) = launched(jdk, &options, classes(), &["Calls", "20"]);
        let truth = counted(&text)["Calls.fib"];
        assert_eq!(recorded.counts()["Calls.fib"], truth, "{:?}", recorded.losses());
        assert!(!recorded.losses().iter().any(|loss| loss.contains("events of")), "{text}");
        assert!(recorded.fact(keys::TRACE_WAITED).is_some(), "{text}");
        // All that was waited lies within main, and there only with the time that passed.
        let sum = |name: &str| {
            let mut series = recorded.profile.all_series();
            series.find(|(_, s)| s.info().kind.name() == name).map_or(0, |(_, s)| s.total())
        };
        assert!(sum("wall-time") < sum("elapsed-time"), "{text}");
    }

    /// Compiled methods are told from interpreted ones, static ones from others.
    fn methods_have_types(jdk) {
        let words = ["-Xbatch", "Calls", "23"];
        let (_, recorded) = launched(jdk, &[], classes(), &words);
        let types = texts(&recorded.profile, "type");
        assert!(types.contains("static interpreted"), "main: {types:?}");
        assert!(types.contains("interpreted"), "the first calls: {types:?}");
        assert!(types.iter().any(|kind| kind.starts_with("tier")), "the last ones: {types:?}");
    }

    /// Natives have no code to weave; calls of them are told all the same, with their type.
    fn natives_are_traced(jdk) {
        let options = ["--include", "NativeCalls", "--include", "java.lang.System"];
        let (text, recorded) = launched(jdk, &options, classes(), &["NativeCalls"]);
        assert!(text.contains("copied 75"), "{text}");
        assert_whole(&recorded);
        let profile = &recorded.profile;
        let table = table(profile, &EventKind::call());
        let (exit, kind) = (table.field_named("exit").unwrap(), table.field_named("type").unwrap());
        let text = |row, field| match table.field(row, field) {
            Some(FieldValue::Text(text)) => profile.strings.get(text).to_owned(),
            other => panic!("{other:?}"),
        };
        let mut natives: BTreeMap<(String, String, String), usize> = BTreeMap::new();
        for (row, event) in table.events().enumerate() {
            let frame = profile.contexts.frame(event.context).expect("a frame");
            let method = profile.methods.get(profile.frames.get(frame).method);
            let caller = profile.contexts.parent(event.context).expect("a caller");
            let by_us = profile.contexts.frame(caller).is_some_and(|frame| {
                let method = profile.methods.get(profile.frames.get(frame).method);
                profile.strings.get(method.class) == "NativeCalls"
            });
            if by_us && text(row, kind).contains("native") {
                let name = profile.strings.get(method.name).to_owned();
                *natives.entry((name, text(row, kind), text(row, exit))).or_default() += 1;
            }
        }
        let expected = [("arraycopy", "exception", 25), ("arraycopy", "return", 75), ("nanoTime", "return", 100)];
        let expected: BTreeMap<_, _> = expected
            .map(|(name, exit, n)| ((name.to_owned(), "static native".to_owned(), exit.to_owned()), n))
            .into();
        assert_eq!(natives, expected);
    }

    /// Somebody else may look at a trace under way, and end it.
    fn a_trace_takes_commands(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Truth").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let recording = Tare::this().start(&record(&[&target.name()], &file));
        wait_until_on(&target.name());
        target.tell("go");
        target.wait_for("done");
        wait_until("calls are in the report", || {
            let so_far = Tare::this().run(&["report", &target.name(), "--format", "json"]).json();
            so_far["methods"].as_array().is_some_and(|methods| {
                methods.iter().any(|m| m["name"] == "Work.recursion" && m["invocations"].as_i64() > Some(0))
            })
        });
        Tare::this().run(&["pause", &target.name()]).fails(1, &["a trace cannot be paused"]);
        Tare::this().run(&["stop", &target.name()]).ok();
        recording.wait().ok();
        assert_whole(&Recorded::open(&file));
        target.tell("go");
        target.wait_for("done");
    }

    fn only_below_a_root(jdk) {
        let options = ["--root", "Work.unwinding", "--include", "Work*"];
        let (text, recorded) = launched(jdk, &options, classes(), &["Truth", "2"]);
        let (truth, counts) = (truth_counts(&text), recorded.counts());
        assert_eq!(counts["Work.unwinding"], truth["Work.unwinding"]);
        for outside in ["Work.recursion", "Work.thrower", "Work.wide", "Work.task"] {
            assert!(!counts.contains_key(outside), "{outside} is outside");
        }
        assert_whole(&recorded);
    }

    fn virtual_threads(jdk) {
        if jdk.major < 21 {
            return;
        }
        let program = ["shop.Main", "--orders", "300", "--virtual", "200", "--report-every", "0"];
        // Many are inside at the same time, each with a ring of its own.
        let (text, recorded) = launched(jdk, &["--ring", "64K"], demo_classes(), &program);
        let dropped = recorded.losses().iter().any(|loss| loss.starts_with("dropped"));
        if !dropped {
            assert_equal(&counted(&text), &recorded.counts());
        }
        assert!(recorded.counts().values().sum::<i64>() > 1_000);
    }
}

/// Figures can be made of the calls in the file, for any stretch of time, and a timeline.
#[test]
fn figures_and_a_timeline_from_the_file() {
    let jdk = tare_jvm_tests::jdk();
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare");
    let mut words = record(&[], &file);
    words.extend(java(jdk, classes(), &["Calls", "15"]));
    let text = Tare::this().run(&words).ok().to_owned();
    let name = file.display().to_string();
    let report = |more: &[&str]| {
        let words = [&["report", &name, "--format", "json"][..], more].concat();
        let json = Tare::this().run(&words).json();
        let methods = json["methods"].as_array().expect("methods").clone();
        let fib = methods.iter().find(|method| method["name"] == "Calls.fib").cloned();
        let calls = fib.as_ref().map_or(0, |fib| fib["invocations"].as_i64().unwrap_or(0));
        (calls, fib.map_or(0.0, |fib| fib["self"].as_f64().unwrap_or(0.0)))
    };
    let raw = ["--compensate", "none"];
    let (on_the_fly, from_file) =
        (report(&raw), report(&["--time", "0s..1h", "--compensate", "none"]));
    assert_eq!(on_the_fly.0, counted(&text)["Calls.fib"]);
    assert_eq!(from_file.0, on_the_fly.0);
    // Nanoseconds are rounded down once for each context, or for each call.
    let off = (from_file.1 - on_the_fly.1).abs();
    assert!(off <= 2.0 * on_the_fly.0 as f64, "{from_file:?} and {on_the_fly:?}");
    // Probes are taken out while the trace is made, and from the file, by the same sequences.
    let net = report(&[]);
    let again = report(&["--compensate", "sequences"]);
    for found in [net, again] {
        assert_eq!(found.0, on_the_fly.0);
        assert!(found.1 < on_the_fly.1, "{found:?} of {on_the_fly:?}");
    }
    let table = Recorded::open(&file).fact(keys::SEQUENCES).expect("the table");
    for (calibrated, sequence) in [
        (true, "tier 4, entry, tier 4, exit, tier 4"),
        (true, "static tier 4, exit, static tier 4, entry, static tier 4"),
        (true, "interpreted, entry, interpreted, entry, interpreted"),
        (true, "static interpreted, exit, static interpreted, exit, static interpreted"),
        (false, ""),
    ] {
        let is_it = |cost: &SequenceCost| {
            cost.calibrated == calibrated && cost.sequence.join(", ").contains(sequence)
        };
        assert!(table.iter().any(is_it), "no {sequence:?} in {table:?}");
    }
    for ending in ["trace.json", "firefox.json"] {
        let out = scratch.path().join(format!("x.{ending}"));
        Tare::this().run(&["export", &name, "-o", &out.display().to_string()]).ok();
        let text = std::fs::read_to_string(&out).expect("the timeline");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        if let Some(events) = json["traceEvents"].as_array() {
            let slices = events.iter().filter(|e| e["name"] == "Calls.fib" && e["ph"] == "X");
            assert_eq!(slices.count() as i64, on_the_fly.0);
        } else {
            assert!(text.contains("Calls.fib"), "{ending} has no names");
        }
    }
}
