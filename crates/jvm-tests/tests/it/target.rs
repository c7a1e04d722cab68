//! Estimates for another JVM: what bytecodes cost there is measured, and counted here.

use crate::recording::Recorded;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use tare_jvm_tests::{Jdk, Scratch, Tare, jdk, on_each_jdk, program_classes};
use tare_profile::facts::keys;

const KINDS: [&str; 16] = [
    "move",
    "arithmetic",
    "product",
    "float",
    "field",
    "element",
    "branch",
    "switch",
    "call",
    "virtual-call",
    "interface-call",
    "object",
    "array",
    "cast",
    "monitor",
    "throw",
];

/// A target on which each kind costs what is said of it, in nanoseconds.
fn target(scratch: &Scratch, cost: impl Fn(&str) -> f64) -> String {
    let file = scratch.join("target.txt");
    let mut text =
        "# tare target 1: nanoseconds by kind of bytecode\njvm Made up\nfit 0\n".to_owned();
    for kind in KINDS {
        text += &format!("{kind} {}\n", cost(kind));
    }
    fs::write(&file, text).expect("our own file");
    file.display().to_string()
}

/// Sums of all series, by the name of their kind.
fn totals(
    jdk: &Jdk,
    scratch: &Scratch,
    options: &[&str],
) -> (Recorded, impl Fn(&str) -> i64 + use<>) {
    let file = scratch.join("x.tare");
    let (out, java) = (file.display().to_string(), jdk.java().display().to_string());
    let classes = program_classes().display().to_string();
    let mut words = vec!["record", "--bytecodes", "-q", "-o", &out];
    words.extend(options);
    words.extend(["--", &java, "-cp", &classes, "programs.All", "Queens", "Sorting", "Matrices"]);
    Tare::this().run(&words).ok();
    let recorded = Recorded::open(&file);
    let sums: Vec<(String, i64)> = recorded
        .profile
        .all_series()
        .map(|(_, series)| {
            let sum = series.rows().map(|row| row.value).sum();
            (series.info().kind.name().to_owned(), sum)
        })
        .collect();
    let of = move |kind: &str| sums.iter().find(|(name, _)| name == kind).expect("a series").1;
    (recorded, of)
}

on_each_jdk! {
    /// Where everything takes a nanosecond but returns, which are part of calls: as many as
    /// bytecodes.
    fn costs_are_counted_in_place_of_bytecodes(jdk) {
        let scratch = Scratch::new();
        let (_, plain) = totals(jdk, &scratch, &[]);
        let even = target(&scratch, |_| 1.0);
        let (recorded, costs) = totals(jdk, &scratch, &["--target", &even]);
        assert_eq!(recorded.fact(keys::TARGET).as_deref(), Some("Made up"));
        assert_eq!(costs("invocations"), plain("invocations"));
        // None of these programs leaves a method by an exception.
        assert_eq!(costs("target-time") + costs("invocations"), plain("bytecodes"));
        // One kind alone, twice as dear, counts twice.
        let fields = |cost: f64| {
            let only = target(&scratch, |kind| if kind == "element" { cost } else { 0.0 });
            totals(jdk, &scratch, &["--target", &only]).1("target-time")
        };
        let once = fields(3.0);
        assert!(once > 1000 && once < costs("target-time") * 3, "{once}");
        assert_eq!(fields(6.0), 2 * once);
    }
}

/// A real JVM is measured, by the command and by hand.
#[test]
fn a_jvm_is_calibrated() {
    let scratch = Scratch::new();
    let java = jdk().java().display().to_string();
    // Other tests run beside it.
    let outcome =
        Tare::this().run(&["calibrate-target", "--force", "-o", "-", "--", &java, "-Xint"]);
    let costs = outcome.ok();
    for kind in KINDS {
        assert!(costs.lines().any(|line| line.starts_with(&format!("{kind} "))), "{costs}");
    }
    assert!(costs.contains("interpreted mode"), "{costs}");
    let file = scratch.join("target.txt");
    fs::write(&file, costs).expect("our own file");
    let file = file.display().to_string();
    assert!(totals(jdk(), &scratch, &["--target", &file]).1("target-time") > 100_000);

    let jar = scratch.join("measures.jar").display().to_string();
    let said = Tare::this().run(&["calibrate-target", "--jar", &jar]);
    said.ok();
    assert!(said.err.contains("tare.runtime.Target"), "{}", said.err);
    assert!(fs::metadata(&jar).expect("a jar").len() > 10_000);
}

#[test]
fn wrong_files_are_told_before_anything_runs() {
    let scratch = Scratch::new();
    let file = scratch.join("x.txt");
    fs::write(&file, "kernel plain 1.5\n").expect("our own file");
    let file = file.display().to_string();
    let tare = Tare::this();
    tare.run(&["calibrate-target", &file]).fails(1, &["kernels were measured", "the whole output"]);
    let made = scratch.join("made").display().to_string();
    tare.run(&["record", "--bytecodes", "--target", &file, "--", "touch", &made])
        .fails(1, &["is no target", "calibrate-target"]);
    assert!(!scratch.join("made").exists());
    tare.run(&["record", "--exact", "--target", &file, "1"]).fails(2, &["--bytecodes"]);
    tare.run(&["calibrate-target", "--force", "--", "/no/such/java"])
        .fails(1, &["cannot be started"]);
}

/// As many busy threads as there are processors, for as long as it takes.
#[test]
fn a_busy_machine_is_refused() {
    let done = AtomicBool::new(false);
    let java = jdk().java().display().to_string();
    let outcome = std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let outcome = Tare::this().run(&["calibrate-target", "--", &java, "-Xint"]);
        done.store(true, Ordering::Relaxed);
        outcome
    });
    outcome.fails(1, &["other programs use", "--force"]);
}

/// What is known of the error stands where the figure is.
#[test]
fn an_estimate_says_how_far_it_is_off() {
    let scratch = Scratch::new();
    let even = target(&scratch, |_| 1.0);
    let _ = totals(jdk(), &scratch, &["--target", &even]);
    let file = scratch.join("x.tare").display().to_string();
    let page = Tare::this().run(&["report", &file]);
    let told = |line: &&str| line.contains(" of ") && line.contains("target-time");
    let head = page.ok().lines().find(told).expect("a head").to_owned();
    let factors = "target-time, too low, by a factor of 2.1 to 11, 4.5 on average";
    assert!(head.contains(factors), "{head}");
    let json: serde_json::Value =
        serde_json::from_str(Tare::this().run(&["report", &file, "--format", "json"]).ok())
            .expect("JSON");
    assert_eq!(json["metric"]["too_low_by_factor"]["most"], 11.0, "{}", json["metric"]);
}
