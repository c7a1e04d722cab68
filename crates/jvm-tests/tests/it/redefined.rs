//! Another agent redefines a woven class while we record: its code is woven and counted from then
//! on, and at the end it is its version that is put back, not the one that we found.

use crate::common::assert_no_trace;
use crate::recording::{Recorded, begin, end, end_with_nothing, recorded};
use tare_jvm_tests::{Jdk, Scratch, Target, classes, java_agent, on_each_jdk};

const OPTIONS: [&str; 3] = ["--count", "--include", "Meddled$Subject"];

/// A program whose class another agent can redefine.
fn start(jdk: &Jdk, scratch: &Scratch, vm: &[&str]) -> Target {
    let mut builder = Target::java(jdk).vm(java_agent("Meddler", scratch, ""));
    for option in vm {
        builder = builder.vm(option);
    }
    builder.class_path(classes()).main("Meddled").start()
}

/// A thousand objects, which speak after 0, 1, 2, 0, … steps.
fn assert_counts(counts: &crate::recording::Counts, rounds: i64) {
    let of = |method: &str| counts[&format!("Meddled$Subject.{method}")];
    assert_eq!(of("word"), 1000 * rounds, "{counts:?}");
    assert_eq!(of("<init>"), 1000 * rounds, "{counts:?}");
    assert_eq!(of("say"), 1999 * rounds, "{counts:?}");
}

fn check(jdk: &Jdk, vm: &[&str]) {
    let scratch = Scratch::new();
    let file = scratch.join("x.tare");
    let mut target = start(jdk, &scratch, vm);
    assert_eq!(target.ask("work"), "work: as-it-was");

    let recording = begin(&target.name(), &OPTIONS, &file);
    assert_eq!(target.ask("work"), "work: as-it-was");
    for (from, to) in [("as-it-was", "by-others"), ("as-it-was", "by-others")] {
        target.tell(&format!("redefine {from} {to}"));
        target.wait_for("redefine: done");
        assert_eq!(target.ask("work"), "work: by-others");
    }
    end(recording);
    assert_counts(&recorded(&file), 3);
    assert_eq!(target.ask("work"), "work: by-others", "the other agent's code is put back");

    // The next recording begins with the other agent's code.
    let recording = begin(&target.name(), &OPTIONS, &file);
    assert_eq!(target.ask("work"), "work: by-others");
    end(recording);
    assert_counts(&recorded(&file), 1);
    assert_eq!(target.ask("work"), "work: by-others");

    // A JVM that could bring back older code is not made to: the class is left alone.
    target.tell("redefine as-it-was in-midway");
    target.wait_for("redefine: done");
    let recording = begin(&target.name(), &OPTIONS, &file);
    assert_eq!(target.ask("work"), "work: in-midway");
    if jdk.major < 20 {
        end_with_nothing(recording, "was refused");
    } else {
        end(recording);
    }
    assert_eq!(target.ask("work"), "work: in-midway");
    let last = Recorded::open(&file);
    if jdk.major < 20 {
        assert!(last.counts().is_empty(), "{:?}", last.counts());
        let losses = last.losses();
        assert!(losses[0].starts_with("refused 1 Meddled$Subject: it was redefined"), "{losses:?}");
    } else {
        assert_counts(&last.all_counts(), 1);
    }
    if vm.is_empty() {
        assert_no_trace(target.pid());
    }
    target.finish();
}

on_each_jdk! {
    fn attached(jdk) {
        check(jdk, &[]);
    }

    /// With our agent in the JVM before the other one, and the right to change classes from the
    /// start.
    fn loaded_at_the_start(jdk) {
        check(jdk, &[&crate::common::agentpath("exact")]);
    }
}
