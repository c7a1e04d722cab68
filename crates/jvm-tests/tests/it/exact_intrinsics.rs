//! Methods of the JDK that the JVM's compilers replace by code of their own are counted all the
//! same, once their callers have been compiled, from callers that are woven and from others.

use crate::recording::{Counts, Recorded, counted, record, wait_until_on};
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes, on_each_jdk};

const JDK_CLASSES: [&str; 3] = ["java.lang.Math", "java.lang.Integer", "java.lang.StringBuilder"];

/// Records a while of a program that has been running for a while.
fn calls_of_a_recording(target: &mut Target, include: &[&str]) -> (Counts, Recorded) {
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare");
    let before = counted(&target.text());
    let name = target.name();
    let mut words = vec!["--count", name.as_str()];
    words.extend(include.iter().flat_map(|class| ["--include", class]));
    let recording = Tare::this().start(&record(&words, &file));
    wait_until_on(&target.name());
    for round in ["first", "second"] {
        target.tell(round);
        target.wait_for(&format!("done {round}"));
    }
    recording.signal(rustix::process::Signal::INT);
    recording.wait().ok();
    let mut calls = counted(&target.text());
    calls.iter_mut().for_each(|(name, n)| *n -= before.get(name).unwrap_or(&0));
    (calls, Recorded::open(&file))
}

fn start(jdk: &Jdk) -> Target {
    let mut target = Target::java(jdk).class_path(classes()).main("Intrinsics").start();
    // So that the compilers have done their worst.
    for round in ["a", "b", "c"] {
        target.tell(round);
        target.wait_for(&format!("done {round}"));
    }
    target
}

/// Threads of the JVM and of the JDK call these, too; a hundred times, not a hundred thousand.
fn assert_counted(truth: &Counts, recorded: &Recorded) {
    let counts = recorded.counts();
    for (method, n) in truth {
        let more = counts.get(method).unwrap_or(&0) - n;
        assert!((0..1000).contains(&more), "{method}: {n} and {more}; {:?}", recorded.losses());
    }
}

on_each_jdk! {
    fn from_callers_that_are_woven(jdk) {
        let mut target = start(jdk);
        let include = [&JDK_CLASSES[..], &["Intrinsics"]].concat();
        let (truth, recorded) = calls_of_a_recording(&mut target, &include);
        assert_counted(&truth, &recorded);
        target.finish();
    }

    fn from_callers_that_are_not_woven(jdk) {
        let mut target = start(jdk);
        let (truth, recorded) = calls_of_a_recording(&mut target, &JDK_CLASSES);
        assert_counted(&truth, &recorded);
        target.finish();
    }

    // The JVM throws everything away that it has compiled when classes are changed for the first
    // time; the second time callers must be made to be compiled again.
    fn in_a_later_recording(jdk) {
        let mut target = start(jdk);
        let all = [&JDK_CLASSES[..], &["Intrinsics"]].concat();
        calls_of_a_recording(&mut target, &all);
        for round in ["d", "e", "f"] {
            target.tell(round);
            target.wait_for(&format!("done {round}"));
        }
        let (truth, recorded) = calls_of_a_recording(&mut target, &JDK_CLASSES);
        assert_counted(&truth, &recorded);
        let said = recorded.losses();
        assert!(said.iter().any(|loss| loss.contains("constant method handles")), "{said:?}");
        // What was loaded again for that is not taken for a change by somebody else.
        let (truth, recorded) = calls_of_a_recording(&mut target, &all);
        assert_counted(&truth, &recorded);
        assert_eq!(recorded.counts().get("Intrinsics.largest"), Some(&600));
        target.finish();
    }
}
