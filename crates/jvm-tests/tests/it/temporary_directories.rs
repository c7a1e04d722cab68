//! TMPDIR and `java.io.tmpdir` may be anything. HotSpot ignores them for attaching, and so must we.

use crate::common::{agentpath, assert_no_trace};
use std::fs;
use std::path::Path;
use tare_jvm_tests::{Scratch, Tare, Target, can, jdk, on_each_jdk, shared_classes, wait_until};

on_each_jdk! {
    fn odd_ones(jdk) {
        let scratch = Scratch::new();
        let long = scratch.join(&"very-long-name-".repeat(12));
        let spaced = scratch.join("with space, comma=and \"more\"");
        for dir in [&long, &spaced] {
            fs::create_dir_all(dir).unwrap();
        }
        for dir in [Path::new("/nowhere/at/all"), Path::new("relative"), Path::new(""), &long, &spaced] {
            let property = format!("-Djava.io.tmpdir={}", dir.display());
            let mut target = Target::idle(jdk).vm(property).var("TMPDIR", dir).start();
            let tare = Tare::this().var("TMPDIR", dir);
            assert_eq!(tare.status(&target.name())["loaded_by"], "attach", "{}", dir.display());
            // A front end with another idea of the place meets the same agent.
            assert_eq!(Tare::this().status(&target.name())["front_ends"], 1);
            tare.run(&["detach", &target.name()]).ok();
            assert_no_trace(target.pid());
            target.check_works();
            target.finish();
        }
        for dir in [&long, &spaced] {
            assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "something is left");
        }
    }
}

/// /tmp is read-only, so nothing can attach; an agent that came with the JVM finds another place,
/// and is found there.
#[test]
fn a_read_only_tmp() {
    const TEST: &str = "a read-only /tmp";
    let mount = "mount -t tmpfs -o ro tmpfs /tmp && exec \"$@\"";
    let words = ["unshare", "--mount", "sh", "-c", mount, "sh"];
    if !can(TEST, &[&words[..], &["true"]].concat()) {
        return;
    }
    let below_tmp = |path: &Path| path.starts_with("/tmp");
    if below_tmp(&jdk().home) || below_tmp(&tare_jvm_tests::env().agent) {
        return tare_jvm_tests::skip(TEST, "the JDK or our build is below /tmp");
    }
    let scratch = Scratch::below(Path::new("/var/tmp"));
    let classes = shared_classes(&scratch);
    let start = |option: &str| {
        let java = Target::idle(jdk()).vm(option).class_path(&classes);
        java.directory(scratch.path()).through(&words).start()
    };
    let mut target = start("-Dplain=yes");
    Tare::this().run(&["status", &target.name(), "--timeout", "5s"]).fails(1, &["/tmp"]);
    target.check_works();
    target.finish();

    let mut target = start(&agentpath(""));
    assert_eq!(Tare::this().status(&target.name())["loaded_by"], "launch");
    Tare::this().run(&["detach", &target.name()]).ok();
    wait_until("the agent is gone", || {
        Tare::this().listed(target.pid()).is_some_and(|entry| entry["agent"] != "active")
    });
    target.check_works();
    target.finish();
}
