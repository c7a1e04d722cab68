//! Recordings without a stream tell pauses as well: exact ones of every kind, and traces; also while
//! somebody else samples the same JVM, and each pause once.

use crate::recording::{Recorded, begin};
use rustix::process::Signal;
use std::collections::HashSet;
use std::path::Path;
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes, on_each_jdk};
use tare_profile::{Collection, Safepoint, collections, safepoints};

/// A program that collects garbage until it is killed, once the agent looks at pauses.
fn collecting(jdk: &Jdk) -> Target {
    let target = Target::java(jdk).vm("-XX:+UseSerialGC").vm("-Xmx96m").class_path(classes());
    target.main("Pauses").arg("collect").arg("1000000").arg("2").start()
}

/// Each has a number of its own, and they are in order.
#[track_caller]
fn check_numbers(recorded: &Recorded) {
    let gc: Vec<u64> = collections(&recorded.profile).iter().map(|one| one.number).collect();
    assert!(gc.is_sorted_by(|one, next| one < next), "{gc:?}");
    let mut stops = safepoints(&recorded.profile);
    stops.sort_by_key(|one| one.number);
    assert!(stops.is_sorted_by(|one, next| one.number < next.number), "{stops:#?}");
}

/// What no two collections of a run have in common.
fn marks(collections: &[Collection]) -> HashSet<(u64, Option<u64>)> {
    collections.iter().map(|one| (one.duration, one.heap_before)).collect()
}

#[track_caller]
fn notes_no_loss(recorded: &Recorded) {
    let losses = recorded.losses();
    assert!(!losses.iter().any(|loss| loss.contains("pauses")), "{losses:?}");
}

on_each_jdk! {
    /// Every kind of recording that weaves has collections with their causes, safepoints, and what
    /// compilers did.
    fn every_recording_that_weaves_tells_pauses(jdk) {
        let modes: [&[&str]; 6] = [
            &["--exact"],
            &["--exact", "--count"],
            &["--bytecodes"],
            &["--alloc-exact", "--live", "byte[]"],
            &["--region", "Pauses$Hog.fill"],
            &["--trace"],
        ];
        for mode in modes {
            let scratch = Scratch::new();
            let file = scratch.join("x.tare");
            let (java, path) = (jdk.java().display().to_string(), file.display().to_string());
            let classes = classes().display().to_string();
            let mut line = vec!["record", "-q", "-o", &path];
            line.extend(mode);
            line.extend(["--", &java, "-Xmx96m", "-XX:+UseSerialGC", "-cp", &classes, "Pauses"]);
            line.extend(["collect", "400"]);
            Tare::this().run(&line).ok();
            let recorded = Recorded::open(&file);
            let all = collections(&recorded.profile);
            let told = format!("{mode:?} on {}: {all:#?}", jdk.major);
            assert!(all.len() >= 3, "{told}");
            let last = all.iter().rfind(|one| one.cause == "System.gc()").expect(&told);
            assert!(last.kind.contains("full") && last.reach.is_some(), "{told}");
            let stops = safepoints(&recorded.profile);
            let holds = |stop: &Safepoint| stop.time <= last.time && last.end() <= stop.end();
            assert!(stops.iter().any(holds), "{told} of {stops:#?}");
            let mut tables = recorded.profile.all_events().map(|(_, table)| table);
            let compilers = tables.find(|table| table.kind().name == "compilers").expect(&told);
            assert!(!compilers.is_empty(), "{told}");
            check_numbers(&recorded);
            notes_no_loss(&recorded);
            let page = Tare::this().run(&["report", &path, "--gc"]).out;
            for part in ["Collections and pauses", "System.gc()", "longest safepoints"] {
                assert!(page.contains(part), "no {part:?} of {mode:?} in\n{page}");
            }
        }
    }

    /// Samples before the weaving tell pauses by their stream, which are not told a second time.
    fn pauses_before_and_after_the_weaving_are_told_once(jdk) {
        let (scratch, target) = (Scratch::new(), collecting(jdk));
        let file = scratch.join("x.tare");
        let (path, name) = (file.display().to_string(), target.name());
        let line = ["record", "--exact", "--cpu", "--window", "1s", "-d", "3s", "-q", "-o", &path];
        Tare::this().run(&[&line[..], &[&name]].concat()).ok();
        let recorded = Recorded::open(&file);
        assert!(!collections(&recorded.profile).is_empty());
        let stops = safepoints(&recorded.profile);
        assert!(stops.iter().any(|one| one.reason == "RedefineClasses"), "{stops:#?}");
        check_numbers(&recorded);
        notes_no_loss(&recorded);
    }

    /// Who samples the same JVM for a while sees pauses that the exact recording sees, too.
    fn a_second_front_end_sees_the_same_pauses(jdk) {
        let (scratch, target) = (Scratch::new(), collecting(jdk));
        let file = |name: &str| scratch.join(name);
        let exact = begin(&target.name(), &["--count"], &file("exact.tare"));
        let sampled = |path: &Path| {
            let (path, name) = (path.display().to_string(), target.name());
            Tare::this().run(&["record", "--cpu", "-d", "4s", "-q", "-o", &path, &name]).ok();
            Recorded::open(Path::new(&path))
        };
        let both = [sampled(&file("one.tare")), sampled(&file("two.tare"))];
        exact.signal(Signal::INT);
        exact.wait().ok();
        let exact = Recorded::open(&file("exact.tare"));
        let all = collections(&exact.profile);
        check_numbers(&exact);
        notes_no_loss(&exact);
        for sampled in both {
            let theirs = collections(&sampled.profile);
            assert!(!theirs.is_empty() && theirs[0].number == 1, "{theirs:#?}");
            assert!(marks(&theirs).is_subset(&marks(&all)), "{theirs:#?} of {all:#?}");
            check_numbers(&sampled);
            let alone = |recorded: &Recorded| -> HashSet<(u64, u64)> {
                let all = safepoints(&recorded.profile).into_iter();
                all.filter(|one| one.running.is_some()).map(|one| (one.duration, one.reach)).collect()
            };
            assert!(alone(&sampled).is_subset(&alone(&exact)));
        }
    }
}
