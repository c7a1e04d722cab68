//! The plain case: a running JVM is found, entered, asked, and left, and nothing remains.

use crate::common::{assert_no_java_thread, assert_no_trace, nameless_files};
use tare_jvm_tests::{Demo, Tare, Target, Usage, on_each_jdk, own_mappings};

on_each_jdk! {
    /// With the JVM checking every JNI call of ours.
    fn a_whole_visit(jdk) {
        let tare = Tare::this();
        let mut target = Target::idle(jdk).vm("-Xcheck:jni").arg("hello").start();
        let pid = target.pid();
        let agent = || tare.listed(pid).expect("listed")["agent"].clone();
        assert_eq!(agent(), "none");

        let text = tare.run(&["status", &target.name()]).ok().to_owned();
        for part in [&target.name(), "Idle", "nothing; the agent is idle", "only this one"] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert_eq!(agent(), "active");
        let status = tare.status(&target.name());
        assert_eq!(status["loaded_by"], "attach");
        assert_eq!(status["panics"], 0);
        assert_eq!(status["front_ends"], 1);
        assert_eq!(status["command"], "Idle hello");
        assert!(status["engines"].as_array().is_some_and(Vec::is_empty), "{status}");
        assert!(status["java_version"].as_str().unwrap().starts_with(&jdk.major.to_string()));
        target.check_works();

        let text = tare.run(&["detach", &target.name()]).ok().to_owned();
        assert!(text.contains("Detached"), "{text}");
        assert_no_trace(pid);
        assert_no_java_thread(&mut target);
        assert!(!own_mappings(pid).is_empty(), "the library stays, as documented");
        // What is left is the JVM's own attach listener.
        assert!(nameless_files(pid).len() <= 1, "{:?}", nameless_files(pid));
        assert_eq!(agent(), "detached");
        let text = tare.run(&["detach", &target.name()]).ok().to_owned();
        assert!(text.contains("nothing to do"), "{text}");
        target.check_works();
        target.finish();
    }

    /// Under load, with every JNI call checked, entered a few times.
    fn the_demo_checked(jdk) {
        let demo = Demo::from(Demo::command(jdk).vm("-Xcheck:jni"));
        let name = demo.target.name();
        let tare = Tare::this();
        for _ in 0..5 {
            assert_eq!(tare.status(&name)["panics"], 0);
            demo.check_answers();
            tare.run(&["detach", &name]).ok();
            assert_no_trace(demo.target.pid());
        }
        demo.check_answers();
        demo.finish();
    }

    /// The program ends while a front end looks on: it ends as it would have, and the front end
    /// says what happened.
    fn the_program_ends_while_watched(jdk) {
        let mut target = Target::idle(jdk).vm("-Xcheck:jni").start();
        let watching = Tare::this().start(&["status", &target.name(), "--watch", "--interval", "50ms"]);
        tare_jvm_tests::wait_until("the counters are on", || {
            Usage::of(target.pid()).threads > 0
                && !tare_jvm_tests::control_dirs("/tmp".as_ref(), target.pid()).is_empty()
                && {
                    let mut control = tare_jvm_tests::Control::connect(target.pid());
                    control.greet();
                    control.status().engine_names() == ["counters"]
                }
        });
        target.tell("exit 5");
        assert_eq!(target.wait().0, 5);
        let seen = watching.wait();
        assert!(seen.ok().contains("has ended"), "{}", seen.describe());
    }
}

/// Several front ends at once: all are served by one agent, and one detach ends it.
#[test]
fn many_front_ends_at_once() {
    let mut target = Target::idle(tare_jvm_tests::jdk()).vm("-Xcheck:jni").start();
    let name = target.name();
    let tare = Tare::this();
    let running: Vec<_> = (0..6).map(|_| tare.start(&["status", &name, "--json"])).collect();
    for one in running {
        assert_eq!(one.wait().json()["jvm"]["pid"], target.pid());
    }
    assert_eq!(tare_jvm_tests::control_dirs("/tmp".as_ref(), target.pid()).len(), 1);
    tare.run(&["detach", &name]).ok();
    assert_no_trace(target.pid());
    target.check_works();
    target.finish();
}
