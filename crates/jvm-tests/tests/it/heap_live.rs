//! What `tare heap` does of a running JVM beside snapshots: HotSpot's own count and dump, and that
//! front ends leave each other alone.

use crate::common::assert_no_trace;
use crate::heap::shapes;
use crate::heap_hostile::{assert_no_copy, copies};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tare_jvm_tests::{
    Control, Outcome, Scratch, Tare, Target, can, class_histogram, env, on_each_jdk,
    shared_classes, skip, wait_until,
};
use tare_protocol::{EnginePlan, HeapPlan, Request, Response};

const LEAF: &str = "HeapShapes$Leaf";

/// The row of a name.
#[track_caller]
fn row<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let found = rows.as_array().expect("rows").iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {rows:#}"))
}

#[track_caller]
fn histo(target: &Target, options: &[&str]) -> (Value, Outcome) {
    let name = target.name();
    let words = [&["heap", &name, "--json", "histo"], options].concat();
    let outcome = Tare::this().run(&words);
    (outcome.json(), outcome)
}

/// Its dump lies in the file system of the container, from where it is fetched; nothing is left.
#[test]
fn hotspots_dump_of_a_jvm_in_a_container() {
    const TEST: &str = "a dump of a JVM in a container";
    const OWN_TMP: &str = "mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$@\"";
    let Some(jdk) = env().jdks.iter().find(|jdk| !jdk.home.starts_with("/tmp")) else {
        skip(TEST, "all Java runtimes here are below /tmp");
        return;
    };
    let words = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork"];
    let more = ["--mount-proc", "--kill-child", "--net", "sh", "-c", OWN_TMP, "sh"];
    let words = [&words[..], &more].concat();
    if !can(TEST, &[&words[..], &["true"]].concat()) {
        return;
    }
    let scratch = Scratch::below(Path::new("/var/tmp"));
    let classes = shared_classes(&scratch);
    let builder = shapes(jdk, "Z").class_path(&classes).directory(scratch.path());
    let mut target = builder.through(&words).start();
    let path = scratch.join("x.hprof").display().to_string();
    let outcome = Tare::this().run(&["heap", &target.name(), "--fallback", "-o", &path]);
    outcome.ok();
    let rows = Tare::this().run(&["heap", &path, "--json", "histo"]).json();
    assert_eq!(row(&rows, LEAF)["objects"], 3000);
    let tmp = fs::read_dir(format!("/proc/{}/root/tmp", target.pid())).expect("its /tmp");
    let left: Vec<_> = tmp.flatten().map(|entry| entry.file_name()).collect();
    let is_dump = |name: &std::ffi::OsString| name.to_string_lossy().contains("hprof");
    assert!(!left.iter().any(is_dump), "{left:?}");
    target.check_works();
    target.finish();
}

on_each_jdk! {
    /// The JVM counts, with every collector; nothing of ours comes into it, and the pause is told.
    fn a_histogram_needs_no_snapshot(jdk) {
        for collector in ["G1", "Shenandoah", "Z"] {
            let mut target = shapes(jdk, collector).start();
            let (rows, outcome) = histo(&target, &["--live"]);
            let theirs = class_histogram(target.pid());
            let leaf = row(&rows, LEAF);
            assert_eq!((&leaf["objects"], &leaf["bytes"]), (&3000.into(), &theirs[LEAF].1.into()));
            assert_eq!((&leaf["retained"], &leaf["all_bytes"]), (&Value::Null, &Value::Null));
            assert!(row(&rows, "byte[]")["objects"].as_u64() > Some(3000), "a name of an array");
            for part in ["stands while it collects", "in use", "--snapshot", "stood for"] {
                assert!(outcome.err.contains(part), "{collector}: {part}: {}", outcome.describe());
            }
            assert_no_trace(target.pid());
            target.check_works();
            target.finish();
        }
        let mut target = shapes(jdk, "Serial").start();
        let (rows, outcome) = histo(&target, &[]);
        assert!(row(&rows, LEAF)["all_objects"].as_u64() >= Some(3000));
        assert!(outcome.err.contains("garbage as well"), "{}", outcome.describe());
        let (rows, _) = histo(&target, &["--by", "package"]);
        assert!(row(&rows, "(no package)")["all_objects"].as_u64() > Some(6000), "{rows:#}");
        let text = Tare::this().run(&["heap", &target.name(), "histo", "-n", "3"]);
        assert_eq!(text.ok().lines().count(), 5, "a head, three rows and the rest: {}", text.out);
        assert_no_trace(target.pid());
        // A snapshot has what they retain, and loaders.
        for options in [&["--snapshot"][..], &["--by", "loader"]] {
            let (rows, outcome) = histo(&target, options);
            assert!(rows[0]["retained"].as_u64() > Some(0), "{}", outcome.describe());
        }
        target.check_works();
        target.finish();
    }

    /// Where no copy can be made, HotSpot dumps its heap if that is wanted; its pause is told
    /// before.
    fn hotspots_dump_instead_of_a_snapshot(jdk) {
        let mut target = shapes(jdk, "Z").start();
        let scratch = Scratch::new();
        let path = scratch.join("x.hprof").display().to_string();
        let outcome = Tare::this().run(&["heap", &target.name(), "--fallback", "-o", &path]);
        outcome.ok();
        for part in ["ZGC", "stands while it dumps", "in use", "stood for"] {
            assert!(outcome.err.contains(part), "{part}: {}", outcome.describe());
        }
        let rows = Tare::this().run(&["heap", &path, "--json", "histo"]).json();
        assert_eq!(row(&rows, LEAF)["objects"], 3000);
        target.check_works();
        target.finish();
    }

    /// Whoever brought the agent and is done leaves it to others who talk to it.
    fn the_end_of_a_recording_is_not_the_end_of_a_snapshot(jdk) {
        let mut target = shapes(jdk, "G1").start();
        target.ask("mutate");
        let pid = target.pid();
        let scratch = Scratch::new();
        let file = scratch.join("x.tare").display().to_string();
        let tare = Tare::this().var("TARE_GRACE", "1s");
        let recording = tare.start(&["record", "-o", &file, &target.name()]);
        wait_until("the recording has begun", || scratch.join("x.tare").exists());
        let mut control = Control::connect(pid);
        control.greet();
        let plan = EnginePlan::Heap(HeapPlan { redact: false, limit_s: 300 });
        assert_eq!(control.ask(&Request::Start(plan)), Response::Ok);
        wait_until("there is a copy", || copies(pid).len() == 1);
        wait_until("there are samples", || {
            control.status().sampling().is_some_and(|sampling| sampling.samples > 0)
        });
        recording.signal(Signal::INT);
        let outcome = recording.wait();
        outcome.ok();
        assert!(outcome.err.contains("the agent stays"), "{}", outcome.describe());
        let status = control.status();
        assert_eq!(status.heap().map(|copy| copy.ended.clone()), Some(None), "{status:?}");
        assert_eq!(copies(pid).len(), 1);
        // Then nobody needs it any more.
        drop(control);
        assert_no_copy(pid);
        assert_no_trace(pid);
        target.check_works();
        target.finish();
    }
}
