//! The tool is killed in the middle of a recording, alone or with the JVM: the file has what was
//! counted up to the last look, and says that it has no end.

use crate::exact::truth_counts;
use crate::recording::{Recorded, begin};
use tare_jvm_tests::{Scratch, Tare, Target, classes, on_each_jdk, wait_until};

on_each_jdk! {
    fn a_recorder_killed(jdk) {
        for with_the_jvm in [false, true] {
            let mut target = Target::java(jdk).class_path(classes()).main("Truth").start();
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            let mut recording = begin(&target.name(), &["--count"], &file);
            for _ in 0..2 {
                target.tell("go");
                target.wait_for("done");
            }
            let truth = truth_counts(&target.text());
            assert!(truth.len() > 20, "the program counted too little: {truth:?}");
            // Nobody ends the recording: the file grows by itself.
            let all_there = || {
                let counts = Recorded::so_far(&file).all_counts();
                truth.iter().all(|(method, n)| counts.get(method) == Some(n))
            };
            wait_until("the file has what was counted", all_there);
            recording.kill();
            if with_the_jvm {
                target.signal(rustix::process::Signal::KILL);
            }
            assert!(all_there(), "the file lost something");
            let report = Tare::this().run(&["report".as_ref(), file.as_os_str()]);
            assert!(report.ok().contains("Work."), "{}", report.describe());
            assert!(report.err.contains("no end"), "{}", report.describe());
        }
    }
}
