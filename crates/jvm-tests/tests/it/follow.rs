//! Threads and tasks that are begun below a root are below it, whoever runs them; and nothing else
//! that the same threads do.

use crate::common::assert_no_trace;
use crate::recording::{Counts, Recorded, begin, counted, end, java, record};
use crate::subgraph::{between, differences, live};
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes, on_each_jdk};

const OPTIONS: [&str; 3] = ["--follow-threads", "--root", "Follows.root"];

/// Where tasks come from, as the tree shows it.
fn assert_origins(recorded: &Recorded) {
    let task = ".[task of main]";
    for (threads, path) in [
        (&["child"][..], &[".[started by main]", "Follows$Task.run"][..]),
        (&["pool-1-thread-1", "pool-1-thread-2"], &[task, "Follows$Task.run", "Follows$Task.work"]),
        (&["pool-2-thread-1"], &[task, "Follows.lambda$periodically$0", "Follows$Task.run"]),
    ] {
        let calls: i64 = threads.iter().map(|thread| recorded.at(thread, path)).sum();
        assert!(calls > 0, "{threads:?}: {path:?}");
    }
}

/// Whatever fails and is caught by nobody is handled below the task that failed, which counts once.
fn assert_failures(recorded: &Recorded, truth: &Counts) {
    let calls = |name: &str| truth.get(name).copied().unwrap_or(0);
    assert!(calls("Follows$Failure.handled") > 0, "{truth:?}");
    assert_eq!(calls("Follows$Failure.handled"), calls("Follows$Failure.thrown"));
    let failed = recorded.at("virtual threads", &[".[task of main]", "Follows$Failure.thrown"]);
    let tasks = recorded.at("virtual threads", &[".[task of main]"]);
    let ran = recorded.at("virtual threads", &[".[task of main]", "Follows$Task.run"]);
    assert_eq!(tasks, failed + ran, "each virtual thread ran one task");
}

fn assert_counts(truth: &Counts, found: &Counts, what: &str) {
    assert!(truth.len() > 3, "{truth:?}");
    let found = found.iter().filter(|(name, _)| truth.contains_key(*name));
    let found = found.map(|(name, n)| (name.clone(), *n)).collect();
    assert_eq!(differences(truth, &found), [""; 0], "{what}");
}

/// What the program says at its end, and the recording of all of it.
fn launched(jdk: &Jdk, options: &[&str]) -> (Counts, Recorded) {
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare");
    let mut words = record(&[&OPTIONS[..], options].concat(), &file);
    words.extend(java(jdk, classes(), &["Follows", "2"]));
    let outcome = Tare::this().run(&words);
    let text = outcome.ok();
    (counted(text), Recorded::open(&file))
}

on_each_jdk! {
    fn begun_below_a_root_launched(jdk) {
        // Everything is woven from the beginning, so that not even first calls are missed.
        for options in [&["--scheme", "all"][..], &["--scheme", "all", "--count"]] {
            let (truth, recorded) = launched(jdk, options);
            assert_counts(&truth, &recorded.counts(), options[options.len() - 1]);
            assert_origins(&recorded);
            assert_failures(&recorded, &truth);
        }
    }

    fn begun_below_a_root_attached(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Follows").start();
        let name = target.name();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        for _ in 0..2 {
            let recording = begin(&name, &OPTIONS, &file);
            let mut tell = || {
                target.tell("go");
                target.wait_for("done");
                counted(&target.text())
            };
            tell();
            let (before, found) = (tell(), live(&name));
            let truth = between(&before, &tell());
            end(recording);
            let recorded = Recorded::open(&file);
            assert_counts(&truth, &between(&found, &recorded.counts()), "attached");
            assert_origins(&recorded);
            assert_no_trace(target.pid());
        }
        target.tell("go");
        target.wait_for("done");
    }
}
