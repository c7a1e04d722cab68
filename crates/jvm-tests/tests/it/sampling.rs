//! Sampling tells where the time goes: shares, names, lines, with every engine that works here.

use crate::common::agentpath;
use tare_arena::samples::{Counter, Frame, Special};
use tare_jvm_tests::{Jdk, Sampling, Target, on_each_jdk, skip, wait_until};
use tare_protocol::{SamplePlan, SampleTrigger};

fn sampled(jdk: &Jdk, works: &[&str]) -> Target {
    let target = Target::java(jdk).vm("-Xmx256m").vm(agentpath("")).main("Sampled");
    works.iter().fold(target, |target, work| target.arg(work)).start()
}

fn plan(engine: Option<SampleTrigger>, micros: u64) -> SamplePlan {
    SamplePlan { trigger: engine, interval_ns: micros * 1000, ..SamplePlan::default() }
}

/// Waits until so many samples have come.
fn collect(sampling: &mut Sampling, count: usize) {
    wait_until("samples have come", || sampling.drain().all.len() >= count);
}

on_each_jdk! {
    fn two_methods_with_known_shares(jdk) {
        for engine in [SampleTrigger::PerfClock, SampleTrigger::Timer, SampleTrigger::Safepoint] {
            let target = sampled(jdk, &["seventy-thirty"]);
            let mut control = tare_jvm_tests::Control::connect(target.pid());
            control.greet();
            let mut sampling = match Sampling::start_on(control, &plan(Some(engine), 2_000)) {
                Ok(sampling) => sampling,
                Err(why) if engine == SampleTrigger::PerfClock => {
                    skip("sampling by perf events", &why);
                    continue;
                }
                Err(why) => panic!("{engine}: {why}"),
            };
            collect(&mut sampling, 400);
            let status = sampling.status();
            assert_eq!(status.trigger, Some(engine));
            let (samples, totals, _control) = sampling.stop();
            let leaves = samples.by_leaf();
            let share = |name: &str| {
                let weight = *leaves.get(&format!("Sampled.{name}")).unwrap_or(&0);
                weight as f64 / samples.weight() as f64
            };
            // 400 samples of a 70 % share: three standard deviations are 7 points. At a safepoint
            // a thread is seen where it polls, which the JVM may have moved.
            if engine != SampleTrigger::Safepoint {
                let seven = share("seven") / (share("seven") + share("three"));
                assert!((0.62..0.78).contains(&seven), "{engine}: {seven} of {leaves:?}");
            }
            let known = share("seven") + share("three") + share("seventyThirty");
            assert!(known > 0.5, "{engine}: {leaves:?}");
            let failed = totals.get(Counter::Failed) as f64 / totals.get(Counter::Samples) as f64;
            assert!(engine == SampleTrigger::Safepoint || failed < 0.02, "{engine}: {failed}");
            target.finish();
        }
    }

    /// Deep stacks are whole: from the innermost method to `run`.
    fn three_thousand_frames(jdk) {
        let target = sampled(jdk, &["deep"]);
        let mut sampling = Sampling::start(target.pid(), &plan(None, 2_000));
        collect(&mut sampling, 200);
        let (samples, _, _control) = sampling.stop();
        let deep = samples.all.iter().map(|sample| samples.stack(sample)).find(|stack| {
            stack.iter().filter(|frame| *frame == "Sampled.descend").count() == 3001
        });
        let deep = deep.expect("a stack with all the frames");
        assert_eq!(deep.last().map(String::as_str), Some("java/lang/Thread.run"));
        target.finish();
    }

    /// Every frame has a name, and lines are those of the source.
    fn names_and_lines(jdk) {
        let target = sampled(jdk, &["strings", "exceptions", "copies"]);
        let mut sampling = Sampling::start(target.pid(), &plan(None, 1_000));
        collect(&mut sampling, 500);
        let (samples, _, _control) = sampling.stop();
        let source = include_str!("../../java/targets/Sampled.java");
        let mut lines = 0;
        for trace in samples.traces.values() {
            for frame in &trace.frames {
                let Frame::Java { method, bci, .. } = frame else { continue };
                let method = &samples.methods[method];
                assert!(!method.class.is_empty() && !method.name.is_empty(), "{method:?}");
                if method.class == "Sampled" && method.name == "thrower"
                    && let Some(line) = bci.and_then(|bci| method.line(bci))
                {
                    let text = source.lines().nth(line as usize - 1).unwrap_or_default();
                    assert!(text.contains("thro") || text.contains("depth") || text.contains('}'), "{line}: {text}");
                    lines += 1;
                }
            }
        }
        assert!(lines > 0, "no line of the source was seen");
        let threads: Vec<&str> = samples.all.iter().map(|s| samples.thread_name(s)).collect();
        for name in ["does strings", "does exceptions", "does copies"] {
            assert!(threads.contains(&name), "{threads:?}");
        }
        target.finish();
    }

    /// Collectors and compilers are threads, too.
    fn threads_of_the_jvm(jdk) {
        let target = sampled(jdk, &["collects"]);
        let mut sampling = Sampling::start(target.pid(), &plan(None, 1_000));
        let of_the_jvm = |sampling: &mut Sampling| {
            let samples = sampling.drain();
            let names = samples.all.iter().map(|sample| samples.thread_name(sample));
            names.filter(|name| name.starts_with("GC Thread") || name.starts_with("VM Thread")).count()
        };
        wait_until("the collector was seen", || of_the_jvm(&mut sampling) > 0);
        let (_, totals, _control) = sampling.stop();
        assert_eq!(totals.failures(Special::Unknown), 0);
        target.finish();
    }
}
