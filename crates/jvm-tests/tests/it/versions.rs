//! Two builds of Tare and one JVM: the later one can follow the earlier one, and while one is in,
//! the other says so and does nothing but, on request, send it away.

use crate::common::assert_no_trace;
use tare_jvm_tests::{Tare, Target, env, jdk, on_each_jdk, own_mappings};

on_each_jdk! {
    fn the_next_version_follows(jdk) {
        let (this, next) = (Tare::this(), Tare::next());
        let mut target = Target::idle(jdk).vm("-Xcheck:jni").start();
        let (pid, name) = (target.pid(), target.name());
        let first = this.status(&name)["build"].clone();
        this.run(&["detach", &name]).ok();
        assert_no_trace(pid);

        let second = next.status(&name)["build"].clone();
        assert_ne!(first, second);
        assert_eq!(second, "0123456789abcdef");
        target.check_works();
        let files: std::collections::BTreeSet<String> = own_mappings(pid)
            .iter()
            .filter_map(|line| Some(line.split("/libtare_agent").nth(1)?.to_owned()))
            .collect();
        assert_eq!(files.len(), 2, "both libraries stay mapped, under names of their own");
        next.run(&["detach", &name]).ok();
        assert_no_trace(pid);

        // And back: a person may well go on with the older one.
        assert_eq!(this.status(&name)["build"], first);
        this.run(&["detach", &name]).ok();
        assert_no_trace(pid);
        target.check_works();
        target.finish();
    }

    fn another_build_meets_a_live_agent(jdk) {
        let (this, next) = (Tare::this(), Tare::next());
        let mut target = Target::idle(jdk).start();
        let (pid, name) = (target.pid(), target.name());
        let build = this.status(&name)["build"].as_str().unwrap().to_owned();
        let before = own_mappings(pid);
        for words in [vec!["status", &name], vec!["status", &name, "--watch"]] {
            let outcome = next.run(&words);
            outcome.fails(1, &[&build, "0123456789abcdef", &format!("tare detach {name}")]);
        }
        // Nothing half-done: no second library, and the first agent is as it was.
        assert_eq!(own_mappings(pid), before);
        let status = this.status(&name);
        assert_eq!((&status["front_ends"], &status["panics"]), (&1.into(), &0.into()));
        assert!(status["engines"].as_array().is_some_and(Vec::is_empty), "{status}");

        next.run(&["detach", &name]).ok();
        assert_no_trace(pid);
        target.check_works();
        target.finish();
    }
}

/// A tool and a library that do not belong together are told apart before a JVM sees either.
#[test]
fn a_library_of_another_build_is_refused() {
    let mut target = Target::idle(jdk()).start();
    let tare = Tare::this().var("TARE_AGENT_LIBRARY", &env().next_agent);
    tare.run(&["status", &target.name()]).fails(1, &["another build"]);
    let tare = Tare::this().var("TARE_AGENT_LIBRARY", "/nowhere/libtare_agent.so");
    tare.run(&["status", &target.name()]).fails(1, &["missing", "/nowhere/libtare_agent.so"]);
    assert!(own_mappings(target.pid()).is_empty());
    target.check_works();
    target.finish();
}
