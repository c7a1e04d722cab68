//! Another agent loads java.lang.Thread again, before, during and after a recording. Thread is the
//! class to which we add a field when we are there from the start, and a woven one if asked for.

use crate::common::{agentpath, assert_no_trace};
use crate::recording::{Recorded, begin, end};
use tare_jvm_tests::{Jdk, Scratch, Target, classes, java_agent, on_each_jdk};

const OPTIONS: [&str; 5] = ["--count", "--include", "Meddled*", "--include", "java.lang.Thread"];

fn check(jdk: &Jdk, vm: &[&str]) {
    let scratch = Scratch::new();
    let file = scratch.join("x.tare");
    let mut builder =
        Target::java(jdk).vm(java_agent("Meddler", &scratch, "watch=java/lang/Thread"));
    for option in vm {
        builder = builder.vm(option);
    }
    let mut target = builder.class_path(classes()).main("Meddled").start();
    let mut seen = 0;
    let mut again = |target: &mut Target| {
        let answer = target.ask("thread");
        let words: Vec<_> = answer.split(' ').collect();
        let number: i32 = words[1].parse().expect("a number");
        // At least by its own doing, besides what we do.
        assert!(number > seen, "{answer}");
        assert_eq!(words[2], "as-it-was");
        seen = number;
    };
    again(&mut target);
    for round in 1..=2 {
        let recording = begin(&target.name(), &OPTIONS, &file);
        again(&mut target);
        again(&mut target);
        end(recording);
        let recorded = Recorded::open(&file);
        let (counts, mut losses) = (recorded.counts(), recorded.losses());
        // Some methods of Thread are intrinsics, of which a later recording may miss calls.
        losses.retain(|loss| round == 1 || !loss.contains("constant method handles"));
        assert_eq!(counts["Meddled$Subject.word"], 2000, "round {round}: {counts:?}");
        // From a change between two recordings an older JVM may not find back to its code, so the
        // class is left alone.
        if jdk.major < 20 && round == 2 {
            assert_eq!(losses.len(), 1, "{losses:?}");
            assert!(losses[0].starts_with("refused 1 java.lang.Thread: it was redefined since"));
        } else {
            assert!(losses.is_empty(), "{losses:?}");
            assert!(counts["java.lang.Thread.start"] >= 2, "{counts:?}");
        }
        again(&mut target);
    }
    if vm.is_empty() {
        assert_no_trace(target.pid());
    }
    target.finish();
}

on_each_jdk! {
    fn attached(jdk) {
        check(jdk, &[]);
    }

    fn with_our_field(jdk) {
        check(jdk, &[&agentpath("exact")]);
    }
}
