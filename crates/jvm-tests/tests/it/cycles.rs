//! 200 times in and out of the demo under load: nothing of ours accumulates, nothing breaks.

use crate::common::assert_no_trace;
use tare_jvm_tests::{Demo, Scratch, Tare, Usage, no_crash_files, on_each_jdk, own_mappings};

const WARM_UP: usize = 20;
const CYCLES: usize = 200;

/// What the JVM itself may add meanwhile. Something of ours that stayed in every cycle would show
/// as 180, in every tenth as 18.
const SLACK: usize = 8;

on_each_jdk! {
    fn two_hundred_under_load(jdk) {
        let tare = Tare::this();
        let scratch = Scratch::new();
        let demo = Demo::from(Demo::command(jdk).directory(scratch.path()));
        let (pid, name) = (demo.target.pid(), demo.target.name());
        let mut usage = Vec::with_capacity(CYCLES);
        for cycle in 0..CYCLES {
            let status = tare.status(&name);
            assert_eq!((&status["panics"], &status["refused"]), (&0.into(), &0.into()), "{status}");
            tare.run(&["detach", &name]).ok();
            assert_no_trace(pid);
            usage.push(Usage::of(pid));
            if cycle % 10 == 0 {
                demo.check_answers();
            }
        }
        // Passing things (a compiler thread, a mapping about to be freed) come and go; what counts
        // is the least that remains in a stretch of cycles.
        let early = Usage::least(&usage[WARM_UP..WARM_UP + 20]);
        let late = Usage::least(&usage[CYCLES - 20..]);
        let grown = format!("from {early:?} to {late:?}");
        eprintln!("Java {}: {grown}, {} requests answered", jdk.major, demo.answered());
        assert!(late.threads <= early.threads + 1, "threads grew {grown}");
        assert!(late.descriptors <= early.descriptors + 1, "descriptors grew {grown}");
        assert!(late.mappings <= early.mappings + SLACK, "mappings grew {grown}");
        // One library, however often it was loaded: text, data and so on are a few mappings.
        assert!(own_mappings(pid).len() < 8, "{:?}", own_mappings(pid));
        demo.check_answers();
        demo.finish();
        no_crash_files(scratch.path());
    }
}
