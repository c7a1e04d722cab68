//! Every way in which a JVM ends keeps what was counted until then, hooks included, and is not
//! changed by a recording: `System.exit`, `Runtime.halt`, SIGTERM, the end of the last thread.

use crate::recording::{begin, counted, java, record, recorded};
use rustix::process::Signal;
use tare_jvm_tests::{Scratch, Tare, Target, classes, jvm_below, on_each_jdk, wait_until};

/// How a program ends, and the exit code that it ends with.
const WAYS: [(&str, i32); 4] = [("exit", 3), ("halt", 4), ("term", 143), ("last", 0)];

/// The program counted as much as was recorded, and something at all.
#[track_caller]
fn assert_counted(how: &str, text: &str, file: &std::path::Path) {
    let (truth, recorded) = (counted(text), recorded(file));
    assert_eq!(truth["Exits.call"], if how == "halt" { 3000 } else { 3100 }, "{text}");
    for (method, n) in &truth {
        assert_eq!(recorded.get(method), Some(n), "{how}: {method} in {recorded:?}");
    }
}

on_each_jdk! {
    fn launched(jdk) {
        for (how, code) in WAYS {
            let scratch = Scratch::new();
            let file = scratch.join("x.tare");
            let mark = scratch.join("waiting");
            let mut words = record(&["--count"], &file);
            let option = format!("-Dmark={}", mark.display());
            words.extend(java(jdk, classes(), &[&option, "Exits", how]));
            let recording = Tare::this().start(&words);
            if how == "term" {
                wait_until("the program waits", || mark.exists());
                let pid = jvm_below(recording.pid()).expect("a JVM that waits");
                let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
                rustix::process::kill_process(pid.expect("a pid"), Signal::TERM).expect("a JVM");
            }
            let outcome = recording.wait();
            assert_eq!(outcome.code, code, "{how}: {}", outcome.describe());
            assert_counted(how, &outcome.out, &file);
        }
    }

    fn attached(jdk) {
        for (how, code) in WAYS {
            let target = Target::java(jdk).class_path(classes()).main("Exits").arg(how).arg("wait");
            let mut target = target.start();
            let scratch = Scratch::new();
            let file = scratch.join("x.tare");
            let recording = begin(&target.name(), &["--count"], &file);
            target.tell("go");
            if how == "term" {
                target.wait_for("waiting");
                target.signal(Signal::TERM);
            }
            let (ended, text) = target.wait();
            assert_eq!(ended, code, "{how}: {text}");
            recording.wait().ok();
            assert_counted(how, &text, &file);
        }
    }
}
