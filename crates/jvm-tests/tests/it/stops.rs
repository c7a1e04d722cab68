//! Exceptions that appear in a thread wherever it is, also inside probes: `Thread.stop` where there
//! still is one, and JVMTI's StopThread. Counts are off by at most the stops, and what the thread
//! does afterwards is in its right place.

use crate::recording::{Recorded, begin, counted, end, java, record};
use std::path::Path;
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes, on_each_jdk, test_natives};

const STOPS: i64 = 100;

/// `Thread.stop` throws from 20 on.
fn ways(jdk: &Jdk) -> &'static [&'static str] {
    if jdk.major < 20 { &["java", "natives"] } else { &["natives"] }
}

#[track_caller]
fn check(text: &str, file: &Path) {
    let recorded = Recorded::open(file);
    let (truth, counts) = (counted(text), recorded.all_counts());
    assert_eq!(truth.len(), 2, "{text}");
    for (method, n) in &truth {
        let difference = (counts[method] - n).abs();
        assert!(difference <= STOPS, "{method}: {n}, recorded {}", counts[method]);
    }
    // Once there are no more stops, every call is in its place to the last.
    let thread = "worker";
    let place = ["Stops.worker", "Stops.afterwards", "Stops.quiet"];
    assert_eq!(recorded.at(thread, &place), 1000, "{:?}", counts);
    assert_eq!(recorded.at(thread, &[&place[..], &["Stops.quiet"]].concat()), 800);
    assert_eq!(counts["Stops.quiet"], 3000);
}

on_each_jdk! {
    fn launched(jdk) {
        let natives = format!("-agentpath:{}", test_natives().display());
        for (how, mode) in ways(jdk).iter().zip([&["--count"][..], &[]]) {
            let scratch = Scratch::new();
            let file = scratch.join("x.tare");
            let mut words = record(mode, &file);
            let program = [&natives, "Stops", &STOPS.to_string(), how, "once"];
            words.extend(java(jdk, classes(), &program));
            check(Tare::this().run(&words).ok(), &file);
        }
    }

    fn attached(jdk) {
        let natives = format!("-agentpath:{}", test_natives().display());
        for (how, mode) in ways(jdk).iter().zip(["--exclude=nothing.**", "--count"]) {
            let target = Target::java(jdk).vm(&natives).class_path(classes()).main("Stops");
            let mut target = target.arg(STOPS.to_string()).arg(how).start();
            let scratch = Scratch::new();
            let file = scratch.join("x.tare");
            let recording = begin(&target.name(), &[mode], &file);
            target.tell("go");
            target.wait_for("done");
            end(recording);
            check(&target.text(), &file);
            target.finish();
        }
    }
}
