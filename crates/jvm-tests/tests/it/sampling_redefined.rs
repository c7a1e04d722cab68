//! Sampling a thread in code that its class no longer has: weaving replaced it after it was
//! entered. Its frames have names, and those outside it are there.

use crate::common::agentpath;
use crate::recording::{begin, end};
use tare_arena::samples::{Frame, How, Special};
use tare_jvm_tests::{Samples, Sampling, Scratch, Target, on_each_jdk, wait_until};
use tare_protocol::SamplePlan;

/// What the thread never returns from, the outermost last. All methods of `Lasting` are woven,
/// `Loop` and `Thread` are not.
const LASTING: [&str; 5] =
    ["Lasting.loop", "Lasting$Loop.go", "Lasting.compiled", "Lasting.run", "java/lang/Thread.run"];

/// Stacks of the thread: the names of the frames that are expected, or of the reason why there are
/// no more.
fn stacks(samples: &Samples) -> Vec<Vec<String>> {
    let own = samples.all.iter().filter(|sample| samples.thread_name(sample) == "lasting");
    let expected = |frame: &String| LASTING.contains(&frame.as_str()) || frame.starts_with('[');
    own.map(|sample| samples.stack(sample).into_iter().filter(expected).collect()).collect()
}

/// Whether a frame of a method was seen at all, and always in this way, without a line that would
/// be wrong.
fn assert_old(samples: &Samples, name: &str, expected: How) {
    let frames = || samples.traces.values().flat_map(|trace| &trace.frames);
    assert!(frames().any(|frame| samples.frame(frame) == name), "{name} was not seen");
    for frame in frames().filter(|frame| samples.frame(frame) == name) {
        let Frame::Java { bci, how, .. } = frame else { continue };
        assert_eq!((*how, *bci), (expected, None), "{name}");
    }
}

fn check(target: &Target) {
    let plan = SamplePlan { interval_ns: 1_000_000, ..SamplePlan::default() };
    let mut sampling = Sampling::start(target.pid(), &plan);
    wait_until("samples have come", || stacks(sampling.drain()).len() >= 400);
    let (samples, ..) = sampling.stop();
    let stacks = stacks(&samples);
    let has = |stack: &[String], name: &str| stack.iter().any(|frame| frame == name);
    let unknown = stacks.iter().filter(|stack| has(stack, Special::UnknownJava.name())).count();
    assert!(unknown * 100 < stacks.len(), "{unknown} of {}, as {:?}", stacks.len(), stacks.last());
    let whole = stacks.iter().filter(|stack| **stack == LASTING).count();
    assert!(whole * 100 > stacks.len() * 95, "{whole} of {}", stacks.len());
    assert_old(&samples, "Lasting.run", How::Interpreted);
    assert_old(&samples, "Lasting.loop", How::Interpreted);
    assert_old(&samples, "Lasting.compiled", How::Compiled);
}

on_each_jdk! {
    fn old_code_has_its_name_and_its_callers(jdk) {
        let target = Target::java(jdk)
            // Compiled at once, by the compiler that needs fewer calls.
            .vm("-Xbatch")
            .vm("-XX:TieredStopAtLevel=1")
            .vm(agentpath(""))
            .main("Lasting")
            .start();
        let scratch = Scratch::new();
        let options = ["--count", "--include", "Lasting"];
        let recording = begin(&target.name(), &options, &scratch.join("x.tare"));
        check(&target);
        end(recording);
        // The original is back, as one more version.
        check(&target);
        target.finish();
    }
}
