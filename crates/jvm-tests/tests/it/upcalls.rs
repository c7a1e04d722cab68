//! Java called from native frames: exceptions pass through them and end in them, and threads come
//! that the JVM did not start. The counts stay exact.

use crate::recording::{Counts, begin, counted, end, launched, recorded};
use tare_jvm_tests::{Scratch, Tare, Target, classes, on_each_jdk, test_natives};

#[track_caller]
fn assert_equal(text: &str, recorded: &Counts) {
    let truth = counted(text);
    assert_eq!(truth.len(), 6, "{text}");
    for (method, n) in &truth {
        assert_eq!(recorded.get(method), Some(n), "{method} in {recorded:?}");
    }
}

on_each_jdk! {
    fn counts_are_exact_launched(jdk) {
        let natives = format!("-agentpath:{}", test_natives().display());
        for mode in [&["--count"][..], &[]] {
            let program = [&natives, "Upcalls", "once"];
            let (text, recorded) = launched(jdk, mode, classes(), &program);
            assert_equal(&text, &recorded);
        }
    }

    fn counts_are_exact_attached(jdk) {
        let natives = format!("-agentpath:{}", test_natives().display());
        let mut target = Target::java(jdk).vm(natives).class_path(classes()).main("Upcalls").start();
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let recording = begin(&target.name(), &[], &file);
        target.tell("go");
        target.wait_for("done");
        end(recording);
        assert_equal(&target.text(), &recorded(&file));
        target.finish();
    }

    /// Nothing tells what native code calls: the recording says where that may be missing.
    fn native_methods_below_a_root_are_named(jdk) {
        let natives = format!("-agentpath:{}", test_natives().display());
        let mut target = Target::java(jdk).vm(natives).class_path(classes()).main("Upcalls").start();
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let recording = begin(&target.name(), &["--root", "Upcalls$Work.everything"], &file);
        target.tell("go");
        target.wait_for("done");
        end(recording);
        let file = file.to_str().expect("a path");
        let text = Tare::this().run(&["report", file]).ok().to_owned();
        assert!(text.contains("it is native: a method that it calls by JNI"), "{text}");
        target.finish();
    }
}
