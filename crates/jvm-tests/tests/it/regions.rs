//! Code regions: passages are counted exactly, whichever way they end, and their times are
//! plausible.

use crate::common::assert_no_trace;
use crate::recording::{java, wait_until_on};
use serde_json::Value;
use std::path::Path;
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes, on_each_jdk};

const SOURCE: &str = include_str!("../../java/targets/Regions.java");

/// `Regions:FIRST-LAST`, from marks in the source.
fn lines(begin: &str, end: &str) -> String {
    let line = |mark: &str| 1 + SOURCE.lines().position(|line| line.ends_with(mark)).unwrap();
    format!("Regions:{}-{}", line(begin), line(end))
}

/// Each region, and how often each of the two threads passes it in one round.
fn regions() -> Vec<(String, i64, i64)> {
    vec![
        (lines("// begin", "// end"), 60, 40),
        (lines("// leaving", "// left"), 60, 40),
        ("Regions.recursive(int)".to_owned(), 180, 120),
        ("Regions.recursive(java.lang.String)".to_owned(), 60, 40),
        ("Regions.nap".to_owned(), 1, 1),
    ]
}

fn words(file: &Path) -> Vec<String> {
    let mut words = vec!["record".to_owned(), "-o".to_owned(), file.display().to_string()];
    for (region, ..) in regions() {
        words.extend(["--region".to_owned(), region]);
    }
    words
}

fn assert_regions(file: &Path, rounds: i64) {
    let page =
        Tare::this().run(&["report", &file.display().to_string(), "--format", "json"]).json();
    let found = page["regions"].as_array().expect("regions");
    assert_eq!(found.len(), regions().len(), "{page}");
    for (name, main, other) in regions() {
        let region = found.iter().find(|r| r["name"] == name.as_str()).expect("the region");
        assert_eq!(region["count"], rounds * (main + other), "{name}");
        let of = |thread: &str| -> i64 {
            let threads = region["threads"].as_array().expect("threads").iter();
            threads.filter(|t| t["name"] == thread).map(|t| t["count"].as_i64().unwrap()).sum()
        };
        assert_eq!((of("main"), of("other")), (rounds * main, rounds * other), "{name}");
        let keys =
            ["min_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns"].map(|k| &region[k]);
        let times = keys.map(|time| time.as_i64().expect("a time"));
        assert!(times.is_sorted() && times[0] >= 0, "{name}: {times:?}");
        let sum: i64 = histogram(region).map(|row| row["count"].as_i64().unwrap()).sum();
        assert_eq!(sum, rounds * (main + other), "{name}");
        if name == "Regions.nap" {
            // Nothing but the truth can be that long, and sleep is never shorter.
            assert!(times[0] >= 19_000_000 && region["mean_ns"].as_i64() >= Some(times[0]));
        }
    }
    assert_eq!(page["methods"], serde_json::json!([]), "nothing but regions was woven");
}

fn histogram(region: &Value) -> impl Iterator<Item = &Value> {
    region["histogram"].as_array().expect("a histogram").iter()
}

fn launched(jdk: &Jdk, file: &Path) {
    let mut words = words(file);
    words.extend(java(jdk, classes(), &["Regions", "2"]));
    let outcome = Tare::this().run(&words);
    let text = outcome.ok();
    assert!(text.contains("p99.9") && text.contains("Regions.nap"), "{text}");
    assert!(!text.contains("no loaded class has such code"), "{text}");
}

on_each_jdk! {
    fn passages_are_counted(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        launched(jdk, &file);
        assert_regions(&file, 2);
        let mut target = Target::java(jdk).class_path(classes()).main("Regions").start();
        target.tell("go");
        target.wait_for("done");
        for _ in 0..2 {
            let mut words = words(&file);
            words.push(target.name());
            let recording = Tare::this().start(&words);
            wait_until_on(&target.name());
            for _ in 0..3 {
                target.tell("go");
                target.wait_for("done");
            }
            crate::recording::end(recording);
            assert_regions(&file, 3);
            assert_no_trace(target.pid());
        }
    }

    /// What nobody has is said.
    fn without_code(jdk) {
        let target = Target::java(jdk).class_path(classes()).main("Regions").start();
        let words = ["record", "--region", "Regions:9999", "--region", "Regions:9998", "-d", "1s"];
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare").display().to_string();
        let outcome = Tare::this().run(&[&words[..], &["-o", &file, &target.name()]].concat());
        outcome.fails(1, &["nothing was recorded", "--region Regions:9999: no loaded class"]);
        let text = &outcome.out;
        assert!(text.contains("region Regions:9999, region Regions:9998"), "{text}");
    }
}
