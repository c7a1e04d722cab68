//! Sampling as a user does it: launched and attached, steered from a second terminal, the last
//! minutes only, one recording after the other, and a JVM that is killed.

use crate::common::assert_no_trace;
use crate::recording::Recorded;
use std::path::Path;
use std::time::Duration;
use tare_jvm_tests::{
    Demo, Jdk, Running, Scratch, Tare, control_socket, demo_classes, on_each_jdk, wait_until,
};
use tare_profile::MethodKind;
use tare_profile::facts::keys;

/// Nanoseconds of all samples.
fn total(recorded: &Recorded) -> i64 {
    recorded.profile.all_series().next().expect("a series").1.total()
}

fn assert_java(recorded: &Recorded, prefix: &str) {
    let profile = &recorded.profile;
    let mut java = profile.methods.iter().filter(|(_, m)| m.kind == MethodKind::Java);
    let found = java.any(|(id, _)| profile.method_name(id).starts_with(prefix));
    assert!(found, "nothing of {prefix} among {} methods", profile.methods.iter().count());
}

/// Whether a method of the demo was seen, and native functions with names.
fn assert_names(recorded: &Recorded) {
    let profile = &recorded.profile;
    let all: Vec<(MethodKind, String)> =
        profile.methods.iter().map(|(id, m)| (m.kind, profile.method_name(id))).collect();
    assert_java(recorded, "shop.orders.OrderDesk.");
    let named =
        |(kind, name): &&(MethodKind, String)| *kind == MethodKind::Native && name.contains("::");
    assert!(all.iter().any(|m| named(&m)), "{all:?}");
}

fn begin(target: &str, words: &[&str], file: &Path) -> Running {
    let file = file.display().to_string();
    let all = [&["record", "-o", &file], words, &[target]].concat();
    let recording = Tare::this().start(&all);
    // `status` would bring the agent in if it came first, and then the recording would not take it
    // out again at its end.
    control_socket(target.parse().expect("a pid"));
    wait_until("sampling is on", || {
        Tare::this().status(target)["engines"] == serde_json::json!(["sampling"])
    });
    recording
}

/// Gives an order; the recording may have begun in the JVM and not yet be ready for them.
fn order(words: &[&str]) -> String {
    let mut said = String::new();
    wait_until("the order is taken", || {
        let outcome = Tare::this().run(words);
        said = format!("{}{}", outcome.out, outcome.err);
        outcome.code == 0
    });
    said
}

fn wait_for_samples(target: &str, least: u64) {
    wait_until("there are samples", || {
        let status = Tare::this().run(&["status", target]).out;
        let line = status.lines().find(|l| l.trim_start().starts_with("sampling")).unwrap_or("");
        let number = line.split(" samples").next().and_then(|s| s.rsplit("; ").next());
        let number = number.map(|n| n.trim_end_matches(" k").parse::<f64>().unwrap_or(0.0));
        number.unwrap_or(0.0) * if line.contains(" k samples") { 1e3 } else { 1.0 } >= least as f64
    });
}

fn launched(jdk: &Jdk) -> (Recorded, String) {
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare");
    let path = file.display().to_string();
    let java = jdk.java().display().to_string();
    let classes = demo_classes().display().to_string();
    let program = ["shop.Main", "--orders", "4000", "--threads", "2", "--report-every", "0"];
    let head = ["record", "--interval", "1ms", "-o", &path, "--", &java, "-cp", &classes];
    let outcome = Tare::this().run(&[&head[..], &program[..]].concat());
    outcome.ok();
    (Recorded::open(&file), outcome.err)
}

on_each_jdk! {
    fn launched_from_before_main(jdk) {
        let (recorded, said) = launched(jdk);
        assert!(said.contains("DebugNonSafepoints"), "the user is told: {said}");
        assert_names(&recorded);
        assert_eq!(recorded.fact(keys::INTERVAL), Some(Duration::from_millis(1)));
        let main = recorded.profile.threads.iter().any(|(id, _)| recorded.profile.thread_name(id) == "main");
        assert!(main, "the thread that was there first is known");
    }

    fn orders_from_a_second_terminal(jdk) {
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let scratch = Scratch::new();
        let (file, dump) = (scratch.path().join("x.tare"), scratch.path().join("dump.tare"));
        let recording = begin(&name, &[], &file);
        let said = order(&["interval", &name, "2ms"]);
        assert!(said.contains("2 ms"), "{said}");
        wait_for_samples(&name, 200);
        order(&["dump", &name, "-o", &dump.display().to_string()]);
        let early = Recorded::open(&dump);
        assert_names(&early);
        // A report by the JVM's number is one of what there is so far, and leaves nothing behind.
        let live = Tare::this().run(&["report", &name]);
        assert!(live.ok().contains("shop.orders.OrderDesk."), "{}", live.out);
        order(&["pause", &name]);
        assert!(Tare::this().run(&["status", &name]).ok().contains("paused"));
        order(&["resume", &name]);
        order(&["stop", &name]);
        recording.wait().ok();
        let whole = Recorded::open(&file);
        assert!(total(&whole) >= total(&early), "{} of {}", total(&early), total(&whole));
        assert_eq!(whole.fact(keys::INTERVAL), Some(Duration::from_millis(2)));
        let late = Tare::this().run(&["dump", &name]);
        assert!(late.code != 0 && late.err.contains("is not being recorded"), "{}", late.err);
        // The next recording begins as if there had been none.
        let again = begin(&name, &["--interval", "1ms"], &file);
        // So many that a function of the JVM is among them.
        wait_for_samples(&name, 300);
        again.signal(rustix::process::Signal::INT);
        again.wait().ok();
        assert_names(&Recorded::open(&file));
        assert_no_trace(demo.target.pid());
    }

    fn only_the_last_moments_are_kept(jdk) {
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let scratch = Scratch::new();
        let (file, dump) = (scratch.path().join("x.tare"), scratch.path().join("dump.tare"));
        // A busy machine leaves the demo little of a second: few samples, and not always of the
        // same methods.
        let recording = begin(&name, &["--keep", "1s", "--interval", "1ms"], &file);
        wait_for_samples(&name, 50);
        std::thread::sleep(std::time::Duration::from_secs(3));
        order(&["dump", &name, "-o", &dump.display().to_string()]);
        wait_until("live, too", || {
            Tare::this().run(&["report", &name, "--top", "500"]).ok().contains("shop.")
        });
        assert!(!file.exists(), "nothing is written before the end");
        let kept = Recorded::open(&dump);
        let (_, series) = kept.profile.all_series().next().expect("a series");
        let times: Vec<u64> = series.rows().map(|row| row.time).collect();
        let span = times.iter().max().unwrap_or(&0) - times.iter().min().unwrap_or(&0);
        assert!(!times.is_empty() && span < 2_500_000_000, "kept {span} ns of {} rows", times.len());
        assert!(*times.iter().min().unwrap() > 500_000_000, "the beginning is gone");
        recording.signal(rustix::process::Signal::INT);
        recording.wait().ok();
        assert_java(&Recorded::open(&file), "shop.");
    }

    fn a_jvm_that_is_killed_leaves_its_samples(jdk) {
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let recording = begin(&name, &[], &file);
        wait_for_samples(&name, 100);
        demo.target.signal(rustix::process::Signal::KILL);
        recording.wait().ok();
        let recorded = Recorded::open(&file);
        assert!(total(&recorded) > 500_000_000, "{} ns", total(&recorded));
        assert_names(&recorded);
    }
}
