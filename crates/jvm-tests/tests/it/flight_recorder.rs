//! The JVM's flight recorder changes its event classes itself, by Java code that runs on the thread
//! which has classes loaded again: ours. What that runs is not counted, and the events are left
//! alone.

use crate::common::assert_no_trace;
use crate::recording::Recorded;
use tare_jvm_tests::{Scratch, Tare, Target, classes, on_each_jdk};

on_each_jdk! {
    fn everything_is_woven_by_the_interpreter(jdk) {
        let scratch = Scratch::new();
        let kept = scratch.join("x.jfr");
        let mut target = Target::java(jdk)
            .vm("-Xint")
            .vm(format!("-XX:StartFlightRecording:settings=profile,filename={}", kept.display()))
            .class_path(classes())
            .main("Idle")
            .start();
        let file = scratch.join("x.tare");
        let (name, path) = (target.name(), file.display().to_string());
        let words = ["record", "--bytecodes", "--include", "**", "-d", "1s", "-o", &path, &name];
        let recording = Tare::this().start(&words);
        target.check_works();
        recording.wait().ok();
        let recorded = Recorded::open(&file);
        let profile = &recorded.profile;
        let names: Vec<&str> =
            profile.threads.iter().map(|(_, thread)| profile.strings.get(thread.name)).collect();
        assert!(!names.contains(&"tare-control"), "{names:?}");
        let losses = recorded.losses();
        let left_alone = losses.iter().filter(|loss| loss.contains("flight recorder")).count();
        assert!(left_alone > 0, "{losses:?}");
        let said = target.text();
        assert!(!said.contains("Unexpected error"), "{said}");
        assert_no_trace(target.pid());
        target.check_works();
        target.finish();
    }
}
