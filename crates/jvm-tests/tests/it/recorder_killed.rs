//! The tool is killed in the middle of a recording. A rescuer, which it leaves behind, completes
//! the file with what is in memory, also if the JVM is killed; and if that one dies, too, the file
//! has what was counted up to the last look, and says that it has no end.

use crate::exact::truth_counts;
use crate::recording::{Recorded, begin};
use std::path::Path;
use tare_jvm_tests::{Running, Scratch, Tare, Target, classes, on_each_jdk, wait_until};
use tare_recording::Recording;

/// A program that has counted something, and its recording, which may lack the last second.
fn recorded_so_far(target: &mut Target, file: &Path) -> Running {
    let recording = begin(&target.name(), &["--count"], file);
    for _ in 0..2 {
        target.tell("go");
        target.wait_for("done");
    }
    recording
}

/// The rescuers of a tool, as the system tells.
fn rescuers(tool: u32) -> Vec<rustix::process::Pid> {
    let children = std::fs::read_to_string(format!("/proc/{tool}/task/{tool}/children"));
    let children = children.expect("a tool that runs");
    let is_rescuer = |pid: &&str| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|b| *b == 0).nth(1) == Some(b"rescue-recording"))
    };
    let numbers = children.split_whitespace().filter(is_rescuer).filter_map(|pid| pid.parse().ok());
    numbers.filter_map(rustix::process::Pid::from_raw).collect()
}

on_each_jdk! {
    fn a_recorder_killed(jdk) {
        for with_the_jvm in [false, true] {
            let mut target = Target::java(jdk).class_path(classes()).main("Truth").start();
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            let mut recording = recorded_so_far(&mut target, &file);
            let truth = truth_counts(&target.text());
            assert!(truth.len() > 20, "the program counted too little: {truth:?}");
            recording.kill();
            if with_the_jvm {
                target.signal(rustix::process::Signal::KILL);
            }
            wait_until("the rescuer has completed the file", || {
                Recording::open(&file).is_ok_and(|recording| recording.warnings().is_empty())
            });
            let recorded = Recorded::open(&file);
            let counts = recorded.counts();
            for (method, n) in &truth {
                assert_eq!(counts.get(method), Some(n), "{method}; {:?}", recorded.losses());
            }
            let report = Tare::this().run(&["report".as_ref(), file.as_os_str()]);
            assert!(report.ok().contains("the tool was killed"), "{}", report.describe());
        }
    }

    fn a_recorder_killed_with_its_rescuer(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Truth").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut recording = recorded_so_far(&mut target, &file);
        let truth = truth_counts(&target.text());
        // Nobody ends the recording: the file grows by itself.
        let all_there = || {
            let counts = Recorded::so_far(&file).all_counts();
            truth.iter().all(|(method, n)| counts.get(method) == Some(n))
        };
        wait_until("the file has what was counted", all_there);
        let rescuers = rescuers(recording.pid());
        assert_eq!(rescuers.len(), 1);
        rustix::process::kill_process(rescuers[0], rustix::process::Signal::KILL).expect("its end");
        recording.kill();
        assert!(all_there(), "the file lost something");
        let report = Tare::this().run(&["report".as_ref(), file.as_os_str()]);
        assert!(report.ok().contains("Work."), "{}", report.describe());
        assert!(report.err.contains("no end"), "{}", report.describe());
    }

    fn a_recorder_killed_and_the_same_file_begun_again(jdk) {
        let start = || Target::java(jdk).class_path(classes()).main("Truth").start();
        let (mut first, mut second) = (start(), start());
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut killed = recorded_so_far(&mut first, &file);
        let rescuers = rescuers(killed.pid());
        killed.kill();
        let recording = begin(&second.name(), &["--count"], &file);
        wait_until("the first one's rescuer has gone", || {
            rescuers.iter().all(|rescuer| rustix::process::test_kill_process(*rescuer).is_err())
        });
        second.tell("go");
        second.wait_for("done");
        recording.signal(rustix::process::Signal::INT);
        recording.wait().ok();
        let run = &Recorded::open(&file).profile.run;
        assert_eq!(run.pid, Some(second.pid()), "the file is the second's");
    }
}
