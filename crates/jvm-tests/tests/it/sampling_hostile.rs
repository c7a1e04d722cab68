//! Sampling where a stack walker has it hard: every collector, JNI checks, virtual threads, classes
//! that vanish, thousands of threads, a second profiler's signals.

use crate::common::agentpath;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::{fs, io};
use tare_arena::samples::{Counter, Frame, Special, State};
use tare_jvm_tests::{
    Control, Jdk, Samples, Sampling, Scratch, Target, TargetBuilder, modern_classes,
    no_crash_files, on_each_jdk, skip, wait_until,
};
use tare_protocol::{EnginePlan, Request, SamplePlan, SampleTrigger};

fn sampled(jdk: &Jdk) -> TargetBuilder {
    Target::java(jdk).vm(agentpath("")).main("Sampled")
}

fn plan(micros: u64, wall: bool) -> SamplePlan {
    SamplePlan { interval_ns: micros * 1000, wall, ..SamplePlan::default() }
}

/// The collectors that a Java runtime may have.
const COLLECTORS: [&str; 5] = ["Serial", "Parallel", "G1", "Z", "Shenandoah"];

fn has_collector(jdk: &Jdk, name: &str) -> bool {
    let mut command = std::process::Command::new(jdk.java());
    command.arg(format!("-XX:+Use{name}GC")).arg("-version");
    command.output().is_ok_and(|output| output.status.success())
}

on_each_jdk! {
    fn every_collector(jdk) {
        for collector in COLLECTORS {
            if !has_collector(jdk, collector) {
                skip(&format!("sampling with the {collector} collector on Java {}", jdk.major), "not built in");
                continue;
            }
            let scratch = Scratch::new();
            let target = sampled(jdk)
                .directory(scratch.path())
                .vm(format!("-XX:+Use{collector}GC"))
                .vm("-Xmx256m")
                .arg("collects")
                .arg("strings")
                .arg("loads")
                .start();
            let mut sampling = Sampling::start(target.pid(), &plan(500, false));
            wait_until("samples have come", || sampling.drain().all.len() >= 400);
            let (samples, totals, _control) = sampling.stop();
            let failed = totals.get(Counter::Failed) as f64 / totals.get(Counter::Samples) as f64;
            assert!(failed < 0.03, "{collector}: {failed} of the stacks failed");
            let leaves = samples.by_leaf();
            assert!(leaves.keys().any(|name| name.starts_with("java/")), "{collector}: {leaves:?}");
            target.finish();
            no_crash_files(scratch.path());
        }
    }

    /// Nothing to complain about but the handlers that catch our own faults.
    fn checked_jni(jdk) {
        let mut target = sampled(jdk)
            .vm("-Xcheck:jni")
            .vm("-Xmx256m")
            .arg("strings")
            .arg("churn")
            .arg("exceptions")
            .start();
        target.forgive("SIGSEGV");
        target.forgive("SIGBUS");
        for wall in [false, true] {
            let mut sampling = Sampling::start(target.pid(), &plan(1_000, wall));
            wait_until("samples have come", || sampling.drain().all.len() >= 200);
            sampling.stop();
        }
        let text = target.finish();
        let warnings: Vec<_> = text
            .lines()
            .filter(|line| line.to_lowercase().contains("warning"))
            .filter(|line| !["SIGSEGV", "SIGBUS"].iter().any(|known| line.contains(known)))
            .collect();
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    /// Names of classes that were unloaded again and again.
    fn classes_that_vanish(jdk) {
        let target = sampled(jdk).vm("-Xmx64m").arg("loads").arg("loads").start();
        let mut sampling = Sampling::start(target.pid(), &plan(500, false));
        wait_until("the vanishing class was seen", || {
            let samples = sampling.drain();
            samples.all.len() > 300
                && samples.methods.values().any(|method| method.class == "Sampled$Loaded")
        });
        let (samples, _, _control) = sampling.stop();
        // All methods are told of, those included of which nothing was left to tell.
        for trace in samples.traces.values() {
            for frame in &trace.frames {
                if let Frame::Java { method, .. } = frame {
                    assert!(samples.methods.contains_key(method));
                }
            }
        }
        target.finish();
    }

    /// Threads that wait at known places, and a thread that runs.
    fn wall_clock_states(jdk) {
        let works = ["sleeps", "parks", "waits", "blocks", "seventy-thirty"];
        let target = works.iter().fold(sampled(jdk), |target, work| target.arg(work)).start();
        let mut sampling = Sampling::start(target.pid(), &plan(5_000, true));
        wait_until("every thread was seen for a second", || {
            let samples = sampling.drain();
            works.iter().all(|work| {
                let of = |s: &&tare_arena::samples::Sample| samples.thread_name(s) == format!("does {work}");
                samples.all.iter().filter(of).map(|sample| sample.weight).sum::<u64>() > 1_000_000_000
            })
        });
        let (samples, totals, _control) = sampling.stop();
        let expected: [(&str, &[State], &str); 5] = [
            ("sleeps", &[State::Sleeping], "Sampled.sleeps"),
            ("parks", &[State::Parked], "Sampled.parks"),
            ("waits", &[State::Waiting], "Sampled.waits"),
            ("blocks", &[State::Blocked], "Sampled.blocks"),
            ("seventy-thirty", &[State::Running, State::Runnable], "Sampled.seventyThirty"),
        ];
        for (work, states, place) in expected {
            // On a busy machine a thread is also met on its way in, or waiting inside the JVM.
            let (mut right, mut all) = (0, 0);
            for sample in &samples.all {
                if samples.thread_name(sample) == format!("does {work}") {
                    let stack = samples.stack(sample);
                    let is_right = states.contains(&sample.state)
                        && stack.iter().any(|frame| frame == place);
                    right += if is_right { sample.weight } else { 0 };
                    all += sample.weight;
                }
            }
            assert!(right * 10 >= all * 8, "{work}: {right} of {all} ns as expected");
        }
        // Idle threads were left alone.
        assert!(totals.get(Counter::Unchanged) > 0);
        target.finish();
    }

    fn virtual_threads(jdk) {
        if jdk.major < 21 {
            return;
        }
        let Some(classes) = modern_classes() else {
            skip("sampling of virtual threads", "no compiler for Java 21");
            return;
        };
        let target = Target::java(jdk)
            .class_path(classes)
            .vm(agentpath(""))
            .vm("-Xmx256m")
            .main("VirtualWork")
            .start();
        let mut sampling = Sampling::start(target.pid(), &plan(1_000, false));
        let of_work = |sampling: &mut Sampling| {
            let samples = sampling.drain();
            let stacks = samples.all.iter().map(|sample| (sample, samples.stack(sample)));
            stacks.filter(|(_, stack)| stack.iter().any(|frame| frame == "VirtualWork.burn")).count()
        };
        wait_until("virtual threads were seen", || of_work(&mut sampling) > 200);
        let (samples, totals, _control) = sampling.stop();
        for sample in &samples.all {
            let stack = samples.stack(sample);
            if !stack.iter().any(|frame| frame == "VirtualWork.burn") {
                continue;
            }
            assert!(samples.thread_name(sample).contains("ForkJoinPool"), "the carrier is known");
            // Either the whole stack or a word about where the rest of it is.
            let whole = stack.iter().any(|frame| frame == "java/lang/VirtualThread.run");
            let heap = stack.iter().any(|frame| frame == Special::Continuation.name());
            assert!(whole || heap || stack.iter().any(|frame| frame.starts_with('[')), "{stack:?}");
            // A wrong one would be an address, or what else is in an object.
            assert!((1..1_000_000).contains(&sample.java_id), "{} {stack:?}", sample.java_id);
        }
        let failed = totals.get(Counter::Failed) - totals.failures(Special::Continuation);
        assert!((failed as f64) < 0.03 * totals.get(Counter::Samples) as f64, "{failed}");
        target.finish();
    }

    /// Descriptors and timers stay below a quarter of the limits however many threads there are,
    /// everything counted.
    fn more_threads_than_we_may_watch(jdk) {
        let target = sampled(jdk)
            .through(&["prlimit", "--sigpending=400", "--nofile=600"])
            .vm("-Xss256k")
            .arg("crowd")
            .arg("seventy-thirty")
            .start();
        let pid = target.pid();
        let before = crate::common::nameless_files(pid).len();
        let mut sampling = Sampling::start(pid, &plan(1_000, false));
        wait_until("the crowd is there", || sampling.status().threads > 500);
        // The one that works is among those that are watched, sooner or later.
        wait_until("samples have come", || {
            let samples = sampling.drain();
            let busy = |s: &&tare_arena::samples::Sample| samples.thread_name(s) == "does seventy-thirty";
            samples.all.iter().filter(busy).count() >= 50
        });
        let status = sampling.status();
        let timers = fs::read_to_string(format!("/proc/{pid}/timers")).unwrap_or_default();
        let timers = timers.lines().filter(|line| line.starts_with("ID:")).count();
        assert!(timers < 100, "{timers} timers");
        let files = crate::common::nameless_files(pid).len() - before;
        assert!((1..150).contains(&files), "{files} descriptors");
        assert!(status.lost.iter().any(|line| line.contains("threads not watched")), "{status:?}");
        sampling.stop();
        target.finish();
    }

    /// A JVM that does not say where it keeps what, with threads older than the session: it takes
    /// the stacks itself, of those that have run, unless another engine is asked for.
    fn tables_missing(jdk) {
        let scratch = Scratch::new();
        let jdk = &without_tables(jdk, scratch.path()).expect("a copy of the JDK");
        let target = sampled(jdk).arg("seventy-thirty").arg("sleeps").start();
        let mut control = Control::connect(target.pid());
        control.greet();
        let timers = SamplePlan { trigger: Some(SampleTrigger::Timer), ..plan(1_000, false) };
        let refused = control.ask(&Request::Start(EnginePlan::Sampling(Box::new(timers))));
        assert!(format!("{refused:?}").contains("gHotSpotVMStructs"), "{refused:?}");
        drop(control);
        let mut sampling = Sampling::start(target.pid(), &plan(5_000, false));
        let of = |samples: &Samples, who: &str| {
            let all = samples.all.iter().filter(|s| samples.thread_name(s) == who);
            all.filter(|s| samples.stack(s).iter().any(|f| f.starts_with("Sampled."))).count()
        };
        wait_until("samples have come", || of(sampling.drain(), "does seventy-thirty") >= 50);
        let status = sampling.status();
        assert_eq!(status.trigger, Some(SampleTrigger::Safepoint));
        assert!(status.notes.iter().any(|note| note.contains("safepoints")), "{status:?}");
        let (samples, ..) = sampling.stop();
        assert_eq!(of(&samples, "does sleeps"), 0, "a thread that did not run is not charged");
        target.finish();
    }
}

/// The same JDK with a libjvm whose tables have another name. All else is linked to, but for what
/// finds the rest by its own place.
fn without_tables(jdk: &Jdk, place: &Path) -> io::Result<Jdk> {
    let own = ["bin/java", "lib/libjli.so", "lib/server/libjvm.so"];
    for folder in ["", "bin", "lib", "lib/server"] {
        fs::create_dir_all(place.join(folder))?;
        for entry in fs::read_dir(jdk.home.join(folder))? {
            let name = Path::new(folder).join(entry?.file_name());
            let (from, to) = (jdk.home.join(&name), place.join(&name));
            if own.iter().any(|path| name == Path::new(path)) {
                fs::copy(from, to)?;
            } else if !["bin", "lib", "lib/server"].iter().any(|path| name == Path::new(path)) {
                symlink(from, to)?;
            }
        }
    }
    let library = place.join("lib/server/libjvm.so");
    let mut bytes = fs::read(&library)?;
    let name = b"gHotSpotVMStructs\0";
    let places = bytes.windows(name.len()).enumerate().filter(|(_, bytes)| bytes == name);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "no table to hide");
    places.into_iter().for_each(|at| bytes[at + 1] = b'N');
    fs::write(library, bytes)?;
    Ok(Jdk { major: jdk.major, home: place.to_owned() })
}
