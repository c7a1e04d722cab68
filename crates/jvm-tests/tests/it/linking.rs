//! Classes that are loaded and not linked when they are to be woven: the program may link them at
//! that very moment, or it may not be possible at all.

use crate::recording::{Recorded, begin, end, end_with_nothing, recorded};
use tare_jvm_tests::{Scratch, Target, classes, on_each_jdk};

on_each_jdk! {
    /// What HotSpot tells of a class that another thread is linking makes no sense (JDK-8277444).
    /// Every class is woven all the same, and none is refused.
    fn while_the_program_links(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Unlinked").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let options = ["--count", "--root", "Unlinked.root"];
        let recording = begin(&target.name(), &options, &file);
        target.tell("50");
        assert_eq!(target.wait_for("done"), "done 50");
        end(recording);
        let counts = recorded(&file);
        assert_eq!(counts["Unlinked.root"], 50);
        assert!(counts.keys().any(|name| name.starts_with("Large")), "{counts:?}");
        target.finish();
    }

    /// A class that the JVM cannot link is left alone, and it is said why; the program meets the
    /// same error as without us, when it uses the class.
    fn what_cannot_be_linked(jdk) {
        for options in [&["--count"][..], &["--count", "--root", "Unlinked.root"]] {
            let mut target = Target::java(jdk).class_path(classes()).main("Unlinked").start();
            target.tell("load");
            target.wait_for("done");
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            let recording = begin(&target.name(), options, &file);
            target.tell("link");
            assert_eq!(target.wait_for("done"), "done VerifyError");
            end_with_nothing(recording, "woven, but no");
            let losses = Recorded::open(&file).losses();
            let expected = "refused 1 Broken: the JVM cannot link it: java.lang.VerifyError";
            assert!(losses.iter().any(|loss| loss == expected), "{options:?}: {losses:?}");
            target.finish();
        }
    }
}
