//! Virtual threads in an exact recording: many short ones, long ones that move from carrier to
//! carrier in the middle of woven calls, and ones that are pinned to theirs. Counts are exact, and
//! memory is bounded by those that are inside at a time.
//!
//! `TARE_TEST_VIRTUAL_THREADS` says how many short ones there are, 100,000 if it says nothing.

use crate::common::assert_no_trace;
use crate::recording::{begin, counted, end, launched, recorded};
use tare_jvm_tests::{Jdk, Scratch, Target, classes, on_each_jdk};

/// More carriers than processors, so that threads move.
const CARRIERS: &str = "-Djdk.virtualThreadScheduler.parallelism=4";

/// A budget in which a tree for every thread that ever lived would find no room.
const MEMORY: &str = "--memory=16M";

#[track_caller]
fn assert_equal(text: &str, recorded: &crate::recording::Counts) {
    let truth = counted(text);
    assert_eq!(truth.len(), 4, "{text}");
    for (method, n) in &truth {
        assert_eq!(recorded.get(method).copied().unwrap_or(0), *n, "{method} in {recorded:?}");
    }
}

/// Runs the program launched and attached, counted and timed, and compares.
fn check(jdk: &Jdk, arguments: &[&str]) {
    if jdk.major < 21 {
        return;
    }
    let words = [&[CARRIERS, "Crowd"], arguments].concat();
    let (text, recorded_launched) = launched(jdk, &["--count", MEMORY], classes(), &words);
    assert_equal(&text, &recorded_launched);
    if arguments[0] == "long" {
        let moves = text.lines().find_map(|line| line.strip_prefix("moves ")).expect("moves");
        assert_ne!(moves, "0", "no thread moved, so nothing was tested");
    }

    let mut builder = Target::java(jdk).vm(CARRIERS).vm("-Dwait=true").class_path(classes());
    builder = builder.main("Crowd");
    for argument in arguments {
        builder = builder.arg(argument);
    }
    let mut target = builder.start();
    let scratch = Scratch::new();
    let file = scratch.join("x.tare");
    let recording = begin(&target.name(), &[MEMORY], &file);
    target.tell("go");
    target.wait_for("done");
    end(recording);
    assert_equal(&target.text(), &recorded(&file));
    assert_no_trace(target.pid());
    target.finish();
}

on_each_jdk! {
    fn many_short_ones(jdk) {
        let threads = std::env::var("TARE_TEST_VIRTUAL_THREADS");
        check(jdk, &["short", threads.as_deref().unwrap_or("100000")]);
    }

    fn long_ones_that_move(jdk) {
        check(jdk, &["long", "200", "40"]);
    }

    fn pinned_ones(jdk) {
        check(jdk, &["pinned", "500"]);
    }
}
