//! Stacks of virtual threads that were mounted again: most of their frames are in the heap, and the
//! depth of each stack is known.

use crate::common::agentpath;
use tare_arena::samples::{Sample, Special};
use tare_jvm_tests::{
    Jdk, Samples, Sampling, Target, modern_classes, on_each_jdk, skip, wait_until,
};
use tare_protocol::SamplePlan;

/// What works, and how many calls of `level` led to it.
const WORK: [(&str, usize); 2] =
    [("VirtualDepth.burnAtBottom", 201), ("VirtualDepth.burnHalfWay", 101)];
const ENOUGH: usize = 300;

/// Stacks that ended in the heap, and all.
struct Found {
    ended: usize,
    all: usize,
}

/// Looks at samples of what works; a stack that says nothing of an end must be whole, and right.
fn check(samples: &Samples) -> Found {
    let mut found = Found { ended: 0, all: 0 };
    for sample in &samples.all {
        let Some((stack, expected)) = of_work(samples, sample) else { continue };
        found.all += 1;
        if let Some(end) = stack.last().filter(|frame| frame.starts_with('[')) {
            found.ended += usize::from(*end == Special::Continuation.name());
            continue;
        }
        let levels = stack.iter().filter(|frame| *frame == "VirtualDepth.level").count();
        assert_eq!(levels, expected, "{stack:#?}");
        for frame in ["VirtualDepth.run", "java/lang/VirtualThread.run"] {
            assert_eq!(stack.iter().filter(|one| *one == frame).count(), 1, "{stack:#?}");
        }
        // It goes on on the carrier's stack, as it does for who was never away.
        let entered = "jdk/internal/vm/Continuation.enterSpecial";
        assert_eq!(stack.iter().filter(|one| *one == entered).count(), 1, "{stack:#?}");
        let root = "java/util/concurrent/ForkJoinWorkerThread.run";
        assert_eq!(stack.last().map(String::as_str), Some(root), "{stack:#?}");
    }
    found
}

fn of_work(samples: &Samples, sample: &Sample) -> Option<(Vec<String>, usize)> {
    let stack = samples.stack(sample);
    let expected =
        WORK.iter().find(|(work, _)| stack.iter().any(|frame| frame == work)).map(|work| work.1)?;
    Some((stack, expected))
}

/// Samples a program whose virtual threads leave their carriers in one way or another.
fn sampled(jdk: &Jdk, options: &[&str], how: &str) -> Option<Found> {
    if jdk.major < 21 {
        return None;
    }
    let Some(classes) = modern_classes() else {
        skip("stacks of virtual threads", "no compiler for Java 21");
        return None;
    };
    let target = Target::java(jdk).class_path(classes).vm(agentpath("")).vm("-Xmx128m");
    let target = options.iter().fold(target, |target, option| target.vm(*option));
    let target = target.main("VirtualDepth").arg(how).start();
    let plan = SamplePlan { interval_ns: 1_000_000, ..SamplePlan::default() };
    let mut sampling = Sampling::start(target.pid(), &plan);
    wait_until("virtual threads were seen", || {
        let samples = sampling.drain();
        samples.all.iter().filter(|sample| of_work(samples, sample).is_some()).count() > ENOUGH
    });
    let (samples, _, _control) = sampling.stop();
    target.finish();
    Some(check(&samples))
}

fn nearly_all_are_whole(jdk: &Jdk, options: &[&str], how: &str) {
    if let Some(Found { ended, all }) = sampled(jdk, options, how) {
        assert!(ended * 50 <= all, "{ended} of {all} stacks end in the heap, {options:?} {how}");
    }
}

on_each_jdk! {
    fn compiled(jdk) {
        for how in ["yield", "sleep", "park"] {
            nearly_all_are_whole(jdk, &[], how);
        }
    }

    fn interpreted(jdk) {
        nearly_all_are_whole(jdk, &["-Xint"], "yield");
    }

    /// Compiled frames call interpreted ones, and the other way round.
    fn mixed(jdk) {
        let exclude = "-XX:CompileCommand=quiet,exclude,VirtualDepth::next";
        nearly_all_are_whole(jdk, &[exclude, "-XX:+UseSerialGC"], "yield");
    }

    fn without_compressed_references(jdk) {
        nearly_all_are_whole(jdk, &["-XX:-UseCompressedOops", "-XX:+UseParallelGC"], "yield");
    }

    fn with_compact_headers(jdk) {
        if jdk.major >= 25 {
            nearly_all_are_whole(jdk, &["-XX:+UseCompactObjectHeaders"], "yield");
        }
    }

    /// Where a reference is no address, a stack ends as it says, and none is wrong.
    fn with_a_collector_that_moves_objects_at_any_time(jdk) {
        if let Some(Found { ended, all }) = sampled(jdk, &["-XX:+UseZGC"], "yield") {
            assert!(ended > 0, "all of {all} stacks are whole: the guide says otherwise");
        }
    }
}
