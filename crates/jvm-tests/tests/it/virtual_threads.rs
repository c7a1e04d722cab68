//! A JVM full of virtual threads: they go on while we come, count and leave.

use crate::common::assert_no_trace;
use tare_jvm_tests::{
    Control, Demo, Jdk, Tare, Target, TargetBuilder, modern_classes, on_each_jdk, skip,
};
use tare_protocol::{EnginePlan, Request, Response};

const TEST: &str = "virtual threads of their own source";

fn target(jdk: &Jdk) -> Option<TargetBuilder> {
    if jdk.major < 21 {
        return None;
    }
    let Some(classes) = modern_classes() else {
        skip(TEST, "no compiler for Java 21; the demo's virtual threads are covered");
        return None;
    };
    Some(Target::java(jdk).vm("-Xmx96m").vm("-Xcheck:jni").class_path(classes).main("Virtual"))
}

on_each_jdk! {
    fn go_on(jdk) {
        let Some(target) = target(jdk) else { return };
        let mut target = target.arg("500").start();
        let (pid, name) = (target.pid(), target.name());
        for _ in 0..5 {
            let status = Tare::this().status(&name);
            // They are not threads of the operating system, and too many to be counted as such.
            assert!(status["threads"].as_u64().is_some_and(|n| n < 200), "{status}");
            let mut control = Control::connect(pid);
            control.greet();
            assert_eq!(control.ask(&Request::Start(EnginePlan::Counters)), Response::Ok);
            target.tell("");
            target.wait_for("work: ");
            Tare::this().run(&["detach", &name]).ok();
            assert_no_trace(pid);
        }
        target.tell("");
        target.wait_for("work: ");
        target.finish();
    }

    /// The demo reaches virtual threads by reflection, so this needs no newer compiler.
    fn in_the_demo(jdk) {
        if jdk.major < 21 {
            return;
        }
        let demo = Demo::from(Demo::command(jdk).arg("--virtual=50"));
        let name = demo.target.name();
        for _ in 0..5 {
            assert_eq!(Tare::this().status(&name)["panics"], 0);
            demo.check_answers();
            Tare::this().run(&["detach", &name]).ok();
            assert_no_trace(demo.target.pid());
        }
        demo.finish();
    }
}
