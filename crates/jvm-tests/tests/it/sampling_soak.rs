//! Everything at once for some time: a program that checks its own results while threads, classes,
//! processes, exceptions and collections come and go, sampled in every way, with and without a
//! second profiler, by front ends that arrive, stop, vanish and detach at any moment.
//!
//! `TARE_SOAK=SECONDS` makes it longer, that many seconds for each JDK, divided among collectors,
//! and adds async-profiler to the others. Without it only JFR is: async-profiler 4.0 by itself ends
//! a JVM now and then, when its signal meets a thread that is just ending (`PerfEvents::walk` in
//! the crash report).

use crate::common::nameless_files;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tare_jvm_tests::{
    Control, Jdk, Sampling, Scratch, Seeded, Tare, Target, env, no_crash_files, on_each_jdk, skip,
    wait_until,
};
use tare_protocol::{SamplePlan, SampleTrigger};

/// For each JDK, unless told otherwise.
const SECONDS: u64 = 20;

const COLLECTORS: [&str; 5] = ["Serial", "Parallel", "G1", "Z", "Shenandoah"];

/// Who else profiles the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    Nobody,
    /// JFR, from the start; since Java 25 by the processor clock too, with the signal that we use.
    Jfr,
    /// async-profiler, from the start, every millisecond.
    Async,
    /// async-profiler, started and stopped while we are at it.
    AsyncInBetween,
}

const OTHERS: [Other; 4] = [Other::Nobody, Other::Jfr, Other::AsyncInBetween, Other::Async];

/// What was asked for.
fn asked() -> Option<u64> {
    std::env::var("TARE_SOAK").ok().and_then(|text| text.parse().ok())
}

fn has_collector(jdk: &Jdk, name: &str) -> bool {
    let mut command = Command::new(jdk.java());
    command.arg(format!("-XX:+Use{name}GC")).arg("-version");
    command.output().is_ok_and(|output| output.status.success())
}

fn start(jdk: &Jdk, collector: &str, other: Other, scratch: &Scratch) -> Target {
    let mut target = Target::java(jdk)
        .directory(scratch.path())
        .vm("-Xmx256m")
        .vm(format!("-XX:+Use{collector}GC"));
    if other == Other::Jfr {
        let file = scratch.join("x.jfr").display().to_string();
        let more = if jdk.major >= 25 {
            ",jdk.CPUTimeSample#enabled=true,jdk.CPUTimeSample#throttle=1ms"
        } else {
            ""
        };
        target = target
            .vm(format!("-XX:StartFlightRecording:settings=profile,filename={file}{more}"))
            .vm("-Xlog:disable")
            .vm("-Xlog:jfr*=off");
    }
    if let (Other::Async, Some(library)) = (other, &env().async_profiler) {
        let file = scratch.join("x.collapsed").display().to_string();
        let library = library.display();
        target = target
            .vm(format!("-agentpath:{library}=start,event=cpu,interval=1ms,collapsed,file={file}"));
    }
    target.main("Soak").start()
}

/// Rounds of each work, by name.
fn progress(target: &mut Target) -> Vec<(String, u64)> {
    let line = target.ask("progress");
    let list = line.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    let (list, _) = list.unwrap_or_else(|| panic!("no progress in {line}"));
    list.split(", ")
        .map(|entry| {
            let (name, count) = entry.split_once('=').expect("a name and a count");
            (name.to_owned(), count.parse().expect("a count"))
        })
        .collect()
}

/// Has async-profiler do something in a JVM, through the JDK's own tool.
fn async_profiler(target: &Target, scratch: &Scratch, what: &str) {
    let Some(library) = &env().async_profiler else { return };
    let tool = env().javac.home.join("bin/jcmd");
    let file = scratch.join("y.collapsed").display().to_string();
    let mut command = Command::new(tool);
    command
        .args([&target.name(), "JVMTI.agent_load"])
        .arg(library)
        // In quotes, since the tool would take what is behind an equals sign for its own.
        .arg(format!("\"{what},collapsed,file={file}\""))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // What it answers is its own affair.
    let _ = command.status();
}

fn plan(seeded: &mut Seeded) -> SamplePlan {
    let wall = seeded.below(4) == 0;
    let engine = match seeded.below(4) {
        0 => Some(SampleTrigger::Timer),
        1 => Some(SampleTrigger::Safepoint),
        _ => None,
    };
    let interval_ns = [100_000, 500_000, 1_000_000, 10_000_000][seeded.below(4) as usize];
    let native = seeded.below(4) != 0;
    SamplePlan { trigger: engine, wall, interval_ns, native, ..SamplePlan::default() }
}

/// A command that must go well, whatever is going on.
fn tare(target: &Target, words: &[&str]) {
    let outcome = Tare::this().run(words);
    assert_eq!(outcome.code, 0, "{}\nthe program says\n{}", outcome.describe(), target.text());
}

/// One session of some kind; how many samples it brought.
fn session(target: &Target, scratch: &Scratch, seeded: &mut Seeded) -> u64 {
    let pause = Duration::from_millis(50 + seeded.below(300));
    let kind = seeded.below(6);
    if kind < 2 {
        // In, and out again.
        let file = scratch.join("x.tare").display().to_string();
        let span = format!("{}ms", pause.as_millis());
        let mut words = vec!["record", "-o", &file, "-d", &span];
        words.extend(if kind == 0 { &["--wall"][..] } else { &["--interval", "1ms"][..] });
        let name = target.name();
        words.push(&name);
        tare(target, &words);
        return u64::from(fs::metadata(&file).is_ok());
    }
    tare(target, &["status", &target.name()]);
    let mut control = Control::connect(target.pid());
    control.greet();
    let mut sampling = Sampling::start_on(control, &plan(seeded)).expect("a session");
    sleep(pause);
    sampling.drain();
    match kind {
        2 => {
            // The agent is sent away by somebody else while it samples.
            tare(target, &["detach", &target.name()]);
            sampling.rest().0.all.len() as u64
        }
        3 => {
            let seen = sampling.drain().all.len() as u64;
            drop(sampling);
            seen
        }
        _ => {
            let (samples, _, mut control) = sampling.stop();
            assert_eq!(control.status().panics, 0);
            samples.all.len() as u64
        }
    }
}

/// Nothing of ours is armed.
fn assert_over(pid: u32) {
    wait_until("all is switched off", || {
        !nameless_files(pid).iter().any(|file| file.contains("memfd:tare"))
    });
}

fn soak(jdk: &Jdk, collector: &str, other: Other, span: Duration, seeded: &mut Seeded) {
    let what = format!("{collector}, {other:?} on Java {}", jdk.major);
    let scratch = Scratch::new();
    let mut target = start(jdk, collector, other, &scratch);
    let until = Instant::now() + span;
    let (mut samples, mut rounds) = (0, 0);
    while Instant::now() < until {
        if other == Other::AsyncInBetween && rounds % 2 == 0 {
            async_profiler(&target, &scratch, "start,event=cpu,interval=500us");
        }
        // Whatever fails first, what matters is how the program is.
        let outcome = catch_unwind(AssertUnwindSafe(|| session(&target, &scratch, seeded)));
        samples += outcome.unwrap_or_else(|failed| {
            if !target.is_alive() {
                target.wait_for("words that it never says");
            }
            resume_unwind(failed)
        });
        if other == Other::AsyncInBetween && rounds % 2 == 1 {
            async_profiler(&target, &scratch, "stop");
        }
        rounds += 1;
    }
    assert!(samples > 0, "{what}: no samples in {rounds} rounds");
    assert_over(target.pid());
    // Nobody hangs: all go on, also now that we are gone.
    let now = progress(&mut target);
    wait_until("all works go on", || {
        let later = progress(&mut target);
        later.iter().zip(&now).all(|(later, now)| later.1 > now.1)
    });
    let text = target.finish();
    assert!(!text.contains("WRONG"), "{what}: {text}");
    no_crash_files(scratch.path());
    eprintln!("{what}: {samples} samples in {rounds} rounds");
}

on_each_jdk! {
    fn all_at_once(jdk) {
        let (there, missing): (Vec<&str>, Vec<&str>) =
            COLLECTORS.iter().partition(|name| has_collector(jdk, name));
        for collector in missing {
            skip(&format!("the soak with the {collector} collector on Java {}", jdk.major), "not built in");
        }
        let others = if asked().is_some() { &OTHERS[..] } else { &OTHERS[..2] };
        if asked().is_some() && env().async_profiler.is_none() {
            skip("the soak beside async-profiler", "`cargo xtask bench sampling` fetches it");
        }
        let mut seeded = Seeded::new(u64::from(jdk.major));
        let span = Duration::from_secs(asked().unwrap_or(SECONDS)) / there.len() as u32;
        for (index, collector) in there.iter().enumerate() {
            // Over the versions each collector meets each of the others.
            let other = others[(index + jdk.major as usize / 4) % others.len()];
            soak(jdk, collector, other, span, &mut seeded);
        }
    }
}
