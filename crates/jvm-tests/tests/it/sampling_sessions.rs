//! Sampling begins and ends at any moment, many times, under any load, and leaves nothing behind.

use crate::common::{agentpath, nameless_files};
use std::fs;
use std::thread::sleep;
use std::time::Duration;
use tare_arena::samples::Counter;
use tare_jvm_tests::{
    Control, Jdk, Sampling, Scratch, Seeded, Target, TargetBuilder, no_crash_files, on_each_jdk,
    wait_until,
};
use tare_protocol::{
    EngineChange, EngineName, EnginePlan, ExactPlan, Request, Response, SamplePlan, SampleTrigger,
};

fn sampled(jdk: &Jdk) -> TargetBuilder {
    Target::java(jdk).vm("-Xmx256m").vm(agentpath("")).main("Sampled")
}

fn plan(micros: u64) -> SamplePlan {
    SamplePlan { interval_ns: micros * 1000, ..SamplePlan::default() }
}

/// Timers of a process, as the kernel lists them.
fn timers(pid: u32) -> usize {
    let text = fs::read_to_string(format!("/proc/{pid}/timers")).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("ID:")).count()
}

fn perf_events(pid: u32) -> usize {
    nameless_files(pid).iter().filter(|file| file.contains("perf_event")).count()
}

/// Nothing of a session is left: no timer, no event, no memory.
fn assert_over(pid: u32) {
    wait_until("all is switched off", || {
        let memory = nameless_files(pid).iter().any(|file| file.contains("memfd:tare"));
        timers(pid) == 0 && perf_events(pid) == 0 && !memory
    });
}

on_each_jdk! {
    /// What the JVM allows both of two engines stays allowed until the second has ended, too.
    fn an_end_takes_nothing_from_who_goes_on(jdk) {
        let target = sampled(jdk).arg("strings").start();
        let mut control = Control::connect(target.pid());
        control.greet();
        let include = ["Sampled".parse().expect("a pattern")].into();
        let exact = Box::new(ExactPlan { include, ..ExactPlan::default() });
        assert_eq!(control.ask(&Request::Start(EnginePlan::Exact(exact))), Response::Ok);
        let right = "can_get_thread_cpu_time".to_owned();
        let (.., mut other) = Sampling::start(target.pid(), &plan(1_000)).stop();
        assert!(other.status().capabilities_held.contains(&right));
        assert_eq!(control.ask(&Request::Stop(EngineName::Exact)), Response::Ok);
        assert!(!control.status().capabilities_held.contains(&right));
        target.finish();
    }

    /// In and out under load: threads, classes, exceptions, processes and collections meanwhile.
    fn twenty_times_under_load(jdk) {
        let scratch = Scratch::new();
        let works = ["churn", "loads", "exceptions", "processes", "collects", "strings"];
        let target = works
            .iter()
            .fold(sampled(jdk).directory(scratch.path()), |target, work| target.arg(work))
            .start();
        let mut control = Control::connect(target.pid());
        control.greet();
        let mut seeded = Seeded::new(u64::from(jdk.major));
        let mut taken = 0;
        for round in 0..20 {
            let engine = match round % 4 {
                0 => None,
                1 => Some(SampleTrigger::Timer),
                2 => Some(SampleTrigger::Safepoint),
                _ => None,
            };
            let wall = round % 4 == 3;
            let plan = SamplePlan { trigger: engine, wall, ..plan(1_000) };
            let mut sampling = Sampling::start_on(control, &plan).expect("a session");
            let again = sampling.control.ask(&Request::Start(EnginePlan::Sampling(Box::default())));
            assert!(matches!(again, Response::Error { .. }), "{again:?}");
            sleep(Duration::from_millis(seeded.below(150)));
            sampling.drain();
            let (samples, totals, same) = sampling.stop();
            control = same;
            taken += samples.all.len();
            assert_eq!(totals.get(Counter::LostRing), 0);
            assert_over(target.pid());
        }
        assert!(taken > 100, "only {taken} samples");
        assert_eq!(control.status().panics, 0);
        let text = target.finish();
        assert!(!text.contains("a child ended"), "{text}");
        no_crash_files(scratch.path());
    }

    /// A front end that vanishes leaves no timers, events or threads.
    fn a_vanished_front_end(jdk) {
        let target = sampled(jdk).arg("seventy-thirty").start();
        for (engine, wall) in
            [(None, false), (Some(SampleTrigger::Timer), false), (None, true)]
        {
            let plan = SamplePlan { trigger: engine, wall, ..plan(1_000) };
            let mut sampling = Sampling::start(target.pid(), &plan);
            wait_until("samples have come", || sampling.drain().all.len() > 20);
            if engine.is_some() {
                assert!(timers(target.pid()) > 0);
            }
            drop(sampling);
            assert_over(target.pid());
        }
        target.finish();
    }

    /// What Tare samples for its own sake makes room for whoever wants to sample, and does not take
    /// it.
    fn a_session_that_yields(jdk) {
        let target = sampled(jdk).arg("seventy-thirty").start();
        let own = SamplePlan { yields: true, ..plan(1_000) };
        let mut first = Sampling::start(target.pid(), &own);
        wait_until("samples have come", || first.drain().all.len() > 20);
        let mut second = Sampling::start(target.pid(), &plan(1_000));
        assert!(first.totals().ended);
        let answer = first.control.ask(&Request::Stop(EngineName::Sampling));
        assert!(matches!(answer, Response::Error { .. }), "{answer:?}");
        let answer = first.control.ask(&Request::Start(EnginePlan::Sampling(Box::new(own))));
        assert!(matches!(answer, Response::Error { .. }), "{answer:?}");
        wait_until("samples have come", || second.drain().all.len() > 20);
        assert!(!second.totals().ended);
        drop((first, second));
        assert_over(target.pid());
        target.finish();
    }

    /// What was sampled survives `kill -9` of the JVM.
    fn a_killed_jvm(jdk) {
        let target = sampled(jdk).arg("seventy-thirty").start();
        let mut sampling = Sampling::start(target.pid(), &plan(1_000));
        wait_until("names have come", || {
            sampling.drain().methods.values().any(|method| method.name == "seven")
        });
        let drained = sampling.drain().all.len() as u64;
        let taken = || sampling.totals().get(Counter::Samples);
        wait_until("more samples have come", || taken() > drained + 200);
        target.signal(rustix::process::Signal::KILL);
        assert_eq!(target.wait().0, 137);
        let (samples, totals) = sampling.rest();
        assert!(samples.all.len() as u64 >= totals.get(Counter::Samples) - 1);
        assert!(samples.by_leaf().contains_key("Sampled.seven"), "{:?}", samples.by_leaf());
    }

    /// Another interval, a pause and going on.
    fn changes_while_it_runs(jdk) {
        let target = sampled(jdk).arg("seventy-thirty").start();
        let mut sampling = Sampling::start(target.pid(), &plan(20_000));
        let change = |sampling: &mut Sampling, interval_ns, paused| {
            let answer = sampling.control.ask(&Request::Change(EngineChange::Sampling { interval_ns, paused }));
            assert_eq!(answer, Response::Ok);
        };
        wait_until("samples have come", || sampling.drain().all.len() > 5);
        change(&mut sampling, Some(1_000_000), None);
        let before = sampling.drain().all.len();
        wait_until("samples of the new interval have come", || {
            let samples = &sampling.drain().all[before..];
            samples.iter().filter(|sample| sample.weight < 10_000_000).count() > 20
        });
        change(&mut sampling, None, Some(true));
        assert!(sampling.status().paused);
        // What was on its way arrives, on a busy machine late; then nothing does.
        let mut before = sampling.drain().all.len();
        wait_until("nothing comes any more", || {
            sleep(Duration::from_millis(200));
            let last = before;
            before = sampling.drain().all.len();
            before == last
        });
        change(&mut sampling, None, Some(false));
        wait_until("samples come again", || sampling.drain().all.len() > before + 20);
        sampling.stop();
        target.finish();
    }
}
