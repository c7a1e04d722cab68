//! A class transformer of somebody else that does not come back while our thread has classes loaded
//! again: the tool says what it waits for, can be stopped, and never says that nothing is there.

use crate::common::assert_no_trace;
use crate::recording::begin;
use rustix::process::Signal;
use std::thread;
use std::time::Duration;
use tare_jvm_tests::{
    Control, Jdk, Running, Scratch, Tare, Target, classes, java_agent, on_each_jdk, wait_until,
};
use tare_protocol::{EngineName, EnginePlan, ExactPlan, Request, Response};

/// So many classes that they do not go to the JVM at once.
const MANY: [&str; 4] = ["--include", "java.util.**", "--include", "Meddled*"];

fn start(jdk: &Jdk, scratch: &Scratch) -> Target {
    let agent = java_agent("Meddler", scratch, "hold");
    let mut target = Target::java(jdk).vm(agent).class_path(classes()).main("Meddled").start();
    // Loads the class that is to be woven.
    target.ask("work");
    target
}

/// A recording whose first batch of classes is held up.
fn held_up(target: &mut Target, file: &str) -> Running {
    target.ask("hold");
    let name = target.name();
    let words =
        [&["record", "--exact", "--count", "-o", file], &MANY[..], &[name.as_str()]].concat();
    let recording = Tare::this().start(&words);
    target.wait_for("held");
    recording
}

/// A plan that has one class woven.
fn one_class() -> Box<ExactPlan> {
    let include = vec!["Meddled$Subject".parse().expect("a pattern")];
    Box::new(ExactPlan { include, memory: 64 << 20, ..ExactPlan::default() })
}

on_each_jdk! {
    fn while_classes_are_woven(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let mut target = start(jdk, &scratch);
        let recording = held_up(&mut target, &file.display().to_string());
        for verb in ["detach", "status"] {
            let words = [verb, &target.name(), "--timeout", "1s"];
            Tare::this().run(&words).fails(1, &["answers nobody", "a call into the JVM", "weaving 64 of"]);
        }
        recording.signal(Signal::INT);
        // Until it has heard of it, and said so to the agent.
        thread::sleep(Duration::from_millis(500));
        target.ask("release");
        let outcome = recording.wait();
        assert_eq!(outcome.code, 130, "{}", outcome.describe());
        let (_, said) = outcome.err.split_once("stopped with ").expect("a word of it");
        let said = said.replace(',', "");
        let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        assert!(numbers[0] < numbers[1], "{}", outcome.describe());
        assert!(!file.exists());
        assert_no_trace(target.pid());
        target.ask("work");
        target.finish();
    }

    /// What a recording with roots finds while it is under way.
    fn while_what_roots_reach_is_woven(jdk) {
        let scratch = Scratch::new();
        let agent = java_agent("Meddler", &scratch, "hold");
        let java = Target::java(jdk).vm(agent).class_path(classes());
        let mut target = java.main("Meddled").start();
        // Loads the class, which has not run yet.
        target.tell("redefine as-it-was as-it-was");
        target.wait_for("redefine: done");
        let name = target.name();
        let file = scratch.join("x.tare");
        let recording = begin(&name, &["--root", "Meddled.work", "--scheme", "lazy"], &file);
        target.ask("hold");
        target.tell("work");
        target.wait_for("held");
        let words = ["status", &name, "--timeout", "1s"];
        Tare::this().run(&words).fails(1, &["answers nobody", "a call into the JVM", "weaving"]);
        // Whoever found it waits no longer than a second.
        target.wait_for("work: ");
        recording.signal(Signal::INT);
        target.ask("release");
        recording.wait().ok();
        assert_no_trace(target.pid());
        target.ask("work");
        target.finish();
    }

    fn for_a_tool_that_dies(jdk) {
        let scratch = Scratch::new();
        let mut target = start(jdk, &scratch);
        let mut recording = held_up(&mut target, &scratch.join("x.tare").display().to_string());
        recording.kill();
        target.ask("release");
        let mut control = Control::connect(target.pid());
        control.greet();
        wait_until("the recording is off", || control.status().exact().is_none());
        // What was woven is restored: another recording finds all as it was.
        assert_eq!(control.ask(&Request::Start(EnginePlan::Exact(one_class()))), Response::Ok);
        let status = control.status().exact().cloned().expect("a recording");
        assert_eq!((status.classes, status.refused), (1, vec![]));
        assert_eq!(control.ask(&Request::Stop(EngineName::Exact)), Response::Ok);
        drop(control);
        Tare::this().run(&["detach", &target.name()]).ok();
        assert_no_trace(target.pid());
        target.ask("work");
        target.finish();
    }

    fn while_the_agent_leaves(jdk) {
        let scratch = Scratch::new();
        let mut target = start(jdk, &scratch);
        let name = target.name();
        Tare::this().run(&["status", &name]).ok();
        let mut control = Control::connect(target.pid());
        control.greet();
        assert_eq!(control.ask(&Request::Start(EnginePlan::Exact(one_class()))), Response::Ok);
        target.ask("hold");
        // The first has the agent leave, which takes its socket away at once.
        for _ in 0..2 {
            let detach = Tare::this().run(&["detach", &name, "--timeout", "1s"]);
            detach.fails(1, &["has not left", "restoring 1 of 1 class"]);
        }
        let listed = Tare::this().listed(target.pid()).expect("it is a JVM");
        assert_eq!(listed["agent"], "leaving");
        target.ask("release");
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(target.pid());
        let listed = Tare::this().listed(target.pid()).expect("it is a JVM");
        assert_eq!(listed["agent"], "detached");
        target.ask("work");
        target.finish();
    }
}
