//! A snapshot that is taken while allocations are recorded: what a holder holds is told with where
//! it was allocated, and so it is later with the recording's file.

use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use tare_jvm_tests::{Control, Jdk, Scratch, Tare, Target, on_each_jdk, wait_until};

/// Objects that are kept. Each is so large that the sampler meets it.
const KEPT: u64 = 300;

/// The sampler may miss the first of them.
const FOUND: u64 = KEPT - 3;

/// Samples that the recording under way has taken.
fn samples(control: &mut Control) -> u64 {
    control.status().alloc().map_or(0, |alloc| alloc.samples)
}

/// What is told of the list in which they are.
fn allocated(words: &[&str]) -> Value {
    let all = [&["heap"], words, &["suspects", "--least", "1", "--json"]].concat();
    let suspects = Tare::this().run(&all).json();
    let mut all = suspects.as_array().expect("a list").iter();
    let list = all.find(|one| one["holder"] == "static Allocates.kept");
    list.unwrap_or_else(|| panic!("no list in {suspects}"))["allocated"].clone()
}

fn is_enough(sampled: u64) -> bool {
    (FOUND..=KEPT).contains(&sampled)
}

fn check(allocated: &Value) {
    let site = &allocated["sites"][0];
    assert_eq!(site["class"], "byte[]", "{allocated}");
    let frame = site["frames"][0].as_str().expect("a text");
    assert!(frame.starts_with("Allocates.keep(Allocates.java:"), "{allocated}");
    assert!(site["sampled"].as_u64().is_some_and(is_enough), "{allocated}");
    // Each stands for itself: the chance to be missed is that of the sampler's interval.
    let (bytes, truth) = (site["bytes"].as_f64().expect("a number"), (KEPT * 16_400) as f64);
    assert!((bytes / truth - 1.0).abs() < 0.02, "{bytes} of {truth}");
    assert!(site["fewest_collections"].as_i64() >= Some(1), "{allocated}");
    assert!(site["youngest_ns"].as_u64() <= site["oldest_ns"].as_u64());
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

on_each_jdk! {
    fn holders_are_told_with_where_their_objects_come_from(jdk) {
        // The second one moves objects while the program runs.
        for collector in ["-XX:+UseG1GC", "-XX:+UseShenandoahGC"] {
            whole(jdk, collector);
        }
    }
}

fn whole(jdk: &Jdk, collector: &str) {
    let scratch = Scratch::new();
    let mut target = Target::java(jdk).vm("-Xmx256m").vm(collector).main("Allocates").start();
    let pid = target.pid().to_string();
    let (file, kept) = (text(&scratch.join("x.tare")), text(&scratch.join("x.tareheap")));
    let words = ["record", "--alloc", "--interval-bytes", "1K", &pid, "-o", &file];
    let recording = Tare::this().start(&words);
    let mut control = Control::connect(target.pid());
    control.greet();
    wait_until("the recording samples", || {
        target.ask("waste 50");
        samples(&mut control) > 50
    });
    drop(control);
    target.ask(&format!("keep {KEPT}"));
    wait_until("all of them are proven to live", || {
        target.ask("gc 1");
        let found = allocated(&[&pid]);
        found["sites"][0]["sampled"].as_u64().is_some_and(is_enough)
    });
    check(&allocated(&[&pid, "-o", &kept]));
    recording.signal(Signal::INT);
    recording.wait().ok();
    check(&allocated(&[&kept, "--recording", &file]));
    assert_eq!(allocated(&[&kept]), Value::Null, "without a recording nothing is claimed");
}
