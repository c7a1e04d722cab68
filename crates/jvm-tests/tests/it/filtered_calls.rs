//! A JVM under a filter of system calls (seccomp) that ends it, or answers with an error, for calls
//! that few programs make: it is profiled without them, and whoever asks for them is told.

use crate::common::{agentpath, assert_no_trace};
use crate::recording::Recorded;
use tare_arena::samples::Sample;
use tare_jvm_tests::{
    Demo, Samples, Sampling, Scratch, Tare, Target, classes, demo_classes, on_each_jdk, skip,
    test_natives,
};
use tare_profile::MethodKind;
use tare_profile::facts::keys;
use tare_protocol::{SamplePlan, SampleTrigger};

const FILTERED: &str = env!("CARGO_BIN_EXE_filtered");

on_each_jdk! {
    /// The best engine is found without trying what may be fatal; native frames are had all the
    /// same.
    fn sampling_does_not_try_what_a_filter_may_punish(jdk) {
        for action in ["kill", "errno"] {
            let scratch = Scratch::new();
            let file = scratch.join("x.tare").display().to_string();
            let demo = Demo::from(Demo::command(jdk).through(&[FILTERED, action]));
            let name = demo.target.name();
            let recording = Tare::this().run(&["record", "-d", "3s", "-o", &file, &name]);
            recording.ok();
            assert!(recording.err.contains("seccomp"), "{}", recording.describe());
            assert!(recording.err.contains("--engine perf-clock"), "{}", recording.describe());
            let recorded = Recorded::open(file.as_ref());
            assert_eq!(recorded.fact(keys::ENGINE).as_deref(), Some("timer"));
            let native = |m: &tare_profile::Method| m.kind == MethodKind::Native;
            assert!(recorded.profile.methods.iter().any(|(_, m)| native(m)), "no native frames");

            // Walking by the clock on the wall asks threads by another call.
            Tare::this().run(&["record", "--wall", "-d", "1s", "-o", &file, &name]).ok();
            demo.check_answers();
            assert_no_trace(demo.target.pid());
            let doctor = Tare::this().run(&["doctor", &name]);
            assert!(doctor.ok().contains("filtered (seccomp)"), "{}", doctor.describe());
            demo.check_answers();
            demo.finish();
        }
    }

    /// Weaving, and the samples that tell what probes take.
    fn exact_recordings_sample_what_probes_take_by_timers(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare").display().to_string();
        let demo = Demo::from(Demo::command(jdk).through(&[FILTERED, "kill"]));
        let name = demo.target.name();
        let words = ["record", "--exact", "--time-all", "--overhead", "5%", "-d", "4s", "-o", &file, &name];
        Tare::this().run(&words).ok();
        assert!(Recorded::open(file.as_ref()).counts().values().sum::<i64>() > 0);
        demo.check_answers();
        assert_no_trace(demo.target.pid());
        demo.finish();
    }

    /// Tool and program under one filter, as in a container.
    fn launched_under_a_filter(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare").display().to_string();
        let tare = Tare::this().through(&[FILTERED, "kill"]);
        let machine = tare.run(&["doctor"]);
        assert!(machine.ok().contains("seccomp"), "{}", machine.describe());
        let java = jdk.java().display().to_string();
        let classes = demo_classes().display().to_string();
        for mode in [&[][..], &["--exact"]] {
            let before = [&["record", "-o", &file], mode, &["--", &java, "-cp", &classes]].concat();
            let demo = ["shop.Main", "--port=0", "--threads=1", "--rate=300", "--quiet", "--duration=3"];
            let outcome = tare.run(&[before.as_slice(), &demo].concat());
            outcome.ok();
            assert!(Recorded::open(file.as_ref()).profile.methods.iter().count() > 10);
        }
    }

    /// Asked for by name, perf events are tried; here the filter only says no.
    fn perf_events_by_name_are_tried_and_the_risk_is_told(jdk) {
        let mut target = Target::idle(jdk).through(&[FILTERED, "errno"]).start();
        let outcome = Tare::this().run(&["record", "--engine", "perf-clock", &target.name()]);
        outcome.fails(1, &["seccomp", "may end the JVM", "perf-clock", "does not work here"]);
        target.check_works();
        target.finish();
    }

    /// A thread arms itself when it starts: not by a call for which the filter that it is under
    /// would end the process, though most threads are under none.
    fn threads_under_a_filter_of_their_own_get_timers(jdk) {
        let natives = format!("-agentpath:{}", test_natives().display());
        let builder = Target::java(jdk).vm(natives).vm(agentpath("")).class_path(classes());
        let mut target = builder.main("Filtered").start();
        let mut sampling = Sampling::start(target.pid(), &SamplePlan::default());
        let engine = sampling.status().trigger;
        if engine != Some(SampleTrigger::PerfClock) {
            skip("filters of single threads", "perf events do not work here");
        }
        target.tell("go");
        target.wait_for("done");
        let below = |samples: &Samples| {
            let name = |s: &&Sample| samples.thread_name(s).starts_with("below the filter");
            samples.all.iter().filter(name).count()
        };
        assert!(below(sampling.drain()) > 0, "threads under the filter are sampled");
        sampling.stop();
        target.finish();
    }
}
