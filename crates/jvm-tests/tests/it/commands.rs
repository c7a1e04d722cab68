//! Commands from a second terminal for recordings that weave: each kind can be looked at, dumped
//! and stopped while it goes on, and says why it takes no other command.

use crate::common::assert_no_trace;
use crate::recording::{Recorded, counted, wait_until_on};
use std::path::Path;
use tare_jvm_tests::{Jdk, Running, Scratch, Tare, Target, classes, on_each_jdk, wait_until};

fn begin(target: &Target, words: &[&str], file: &Path) -> Running {
    let (file, name) = (file.display().to_string(), target.name());
    let recording = Tare::this().start(&[&["record", "-o", &file], words, &[&name]].concat());
    wait_until_on(&name);
    recording
}

/// A command that the recording takes; it may have begun in the JVM and not yet be ready for them.
fn command(words: &[&str]) -> String {
    let mut said = String::new();
    wait_until("the command is taken", || {
        let outcome = Tare::this().run(words);
        said = format!("{}{}", outcome.out, outcome.err);
        outcome.code == 0
    });
    said
}

fn refused(target: &Target) {
    for (words, why) in [
        (&["pause", &target.name()][..], "an exact recording cannot be paused"),
        (&["resume", &target.name()], "an exact recording cannot be paused"),
        (&["interval", &target.name(), "2ms"], "an exact recording has no sampling interval"),
    ] {
        Tare::this().run(words).fails(1, &[why]);
    }
}

/// Stops it; the file is complete as soon as that is answered.
fn stop(recording: Running, target: &Target, file: &Path) -> Recorded {
    let said = command(&["stop", &target.name()]);
    assert!(said.contains("stopped") && said.contains("x.tare"), "{said}");
    let recorded = Recorded::open(file);
    recording.wait().ok();
    Tare::this().run(&["stop", &target.name()]).fails(1, &["is not being recorded"]);
    recorded
}

/// What is counted is whole in the dump, in the report and in the file.
fn counts(jdk: &Jdk, words: &[&str]) {
    let mut target = Target::java(jdk).class_path(classes()).main("Truth").start();
    let scratch = Scratch::new();
    let (file, dump) = (scratch.path().join("x.tare"), scratch.path().join("dump.tare"));
    let recording = begin(&target, words, &file);
    target.tell("go");
    target.wait_for("done");
    command(&["dump", &target.name(), "-o", &dump.display().to_string()]);
    let (early, truth) = (Recorded::open(&dump).all_counts(), counted(&target.text()));
    assert_eq!(early["Work.recursion"], truth["Work.recursion"], "{words:?}");
    let live = Tare::this().run(&["report", &target.name(), "--format", "json"]).json();
    let methods = live["methods"].as_array().expect("methods").iter();
    let mut found = methods.filter(|method| method["name"] == "Work.recursion");
    let found = found.next().expect("the method");
    // Calls stand beside another figure, or are the figure itself.
    let calls = found.get("invocations").unwrap_or(&found["self"]);
    assert_eq!(*calls, truth["Work.recursion"], "{words:?}");
    refused(&target);
    target.tell("go");
    target.wait_for("done");
    let whole = stop(recording, &target, &file).all_counts();
    assert_eq!(whole["Work.recursion"], counted(&target.text())["Work.recursion"], "{words:?}");
    assert_no_trace(target.pid());
}

on_each_jdk! {
    fn exact_recordings_take_commands(jdk) {
        counts(jdk, &["--exact", "--count"]);
    }

    fn bytecodes_take_commands(jdk) {
        counts(jdk, &["--bytecodes"]);
    }

    fn regions_take_commands(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Regions").start();
        let scratch = Scratch::new();
        let (file, dump) = (scratch.path().join("x.tare"), scratch.path().join("dump.tare"));
        let recording = begin(&target, &["--region", "Regions.nap"], &file);
        target.tell("go");
        target.wait_for("done");
        command(&["dump", &target.name(), "-o", &dump.display().to_string()]);
        let region = |what: &str| {
            let page = Tare::this().run(&["report", what, "--format", "json"]).json();
            page["regions"][0]["count"].as_i64().unwrap_or(0)
        };
        let passed = region(&dump.display().to_string());
        assert!(passed > 0, "no passage in the dump");
        assert_eq!(region(&target.name()), passed, "the report of what goes on");
        refused(&target);
        target.tell("go");
        target.wait_for("done");
        stop(recording, &target, &file);
        assert_eq!(region(&file.display().to_string()), 2 * passed);
        assert_no_trace(target.pid());
    }
}
