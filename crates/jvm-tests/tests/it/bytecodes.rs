//! Executed bytecodes: what a recording counts is what a JVMTI agent steps through that shares no
//! code with Tare, method by method, launched and attached, whatever is thrown.

use crate::recording::{Recorded, begin, end};
use std::collections::BTreeMap;
use tare_jvm_tests::{
    Counts, Jdk, Scratch, Tare, Target, demo_classes, on_each_jdk, on_jdk, path, program_classes,
    single_step,
};
use tare_profile::ValueKind;

const PREFIX: &str = "programs/";

/// Calls and bytecodes by `class.method descriptor`, contexts and threads added up.
fn counts(recorded: &Recorded) -> BTreeMap<String, (u64, u64)> {
    let profile = &recorded.profile;
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (_, series) in profile.all_series() {
        for row in series.rows() {
            let frame = profile.contexts.frame(row.context).expect("a frame");
            let method = profile.method_of(frame);
            let text = |id| profile.strings.get(id);
            let class = text(method.class).replace('.', "/");
            let name = format!("{class}.{}{}", text(method.name), text(method.descriptor));
            let (calls, bytecodes) = counts.entry(name).or_default();
            let value = u64::try_from(row.value).expect("counts grow");
            match series.info().kind {
                ValueKind::Invocations => *calls += value,
                ValueKind::Bytecodes => *bytecodes += value,
                ref other => panic!("{other:?} is not asked for"),
            }
        }
    }
    counts
}

/// Runs the programs under `tare record --bytecodes`; what they said, and what was recorded.
fn record(jdk: &Jdk, options: &[&str]) -> (String, Recorded) {
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare");
    let mut words = vec!["record", "--bytecodes", "-o", file.to_str().expect("a plain path")];
    words.extend(options);
    let java = jdk.java().display().to_string();
    let classes = program_classes().display().to_string();
    words.extend(["--", &java, "-cp", &classes, "programs.All"]);
    let outcome = Tare::this().run(&words);
    let recorded = Recorded::open(&file);
    assert!(recorded.losses().is_empty(), "{:?}", recorded.losses());
    (outcome.ok().to_owned(), recorded)
}

#[track_caller]
fn assert_equal(stepped: &Counts, counted: &BTreeMap<String, (u64, u64)>) {
    let wrong: Vec<String> = stepped
        .iter()
        .filter(|(name, steps)| counted.get(*name).map_or(0, |counted| counted.1) != **steps)
        .map(|(name, steps)| format!("{name}: stepped {steps}, counted {:?}", counted.get(name)))
        .collect();
    assert!(wrong.is_empty(), "of {}:\n{}", stepped.len(), wrong.join("\n"));
    let unseen: Vec<_> = counted.keys().filter(|name| !stepped.contains_key(*name)).collect();
    assert!(unseen.is_empty(), "counted but never stepped through: {unseen:?}");
}

on_each_jdk! {
    /// Twelve programs; with the default analysis all methods but those in which an exception ends
    /// a block, and those with no fewer than ran.
    fn as_many_as_were_stepped_through(jdk) {
        let (said, stepped) =
            single_step(jdk, &path(&[program_classes()]), &["programs.All"], PREFIX);
        assert!(stepped.len() > 70, "the witness saw only {} methods", stepped.len());
        let (text, precise) = record(jdk, &["--blocks", "precise"]);
        assert!(text.starts_with(&said), "the programs behave as ever: {text}");
        let precise = counts(&precise);
        assert_equal(&stepped, &precise);
        let (_, usual) = record(jdk, &[]);
        let usual = counts(&usual);
        let mut more = 0;
        for (name, (calls, bytecodes)) in &usual {
            assert_eq!(*calls, precise[name].0, "{name}");
            if *bytecodes != stepped[name] {
                more += 1;
                let throws = ["programs/Exceptions", "programs/Monitors"];
                assert!(throws.iter().any(|prefix| name.starts_with(prefix)), "{name}");
                // A constructor whose super() throws takes what came before with it.
                let escapes = name.contains("Derived.<init>");
                assert!(*bytecodes > stepped[name] || escapes, "{name}: {bytecodes}");
            }
        }
        assert!(more > 2, "exceptions end blocks, so the analyses must differ");
    }

    /// Trees that are cut at a depth, or folded, lose no bytecode.
    fn sums_stay_true(jdk) {
        let total = |options: &[&str]| {
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            let mut words = vec!["record", "--bytecodes", "-o", file.to_str().expect("a path")];
            words.extend(options);
            let java = jdk.java().display().to_string();
            let classes = program_classes().display().to_string();
            words.extend(["--", &java, "-cp", &classes, "programs.All", "Queens", "Matching", "Json"]);
            Tare::this().run(&words).ok();
            counts(&Recorded::open(&file)).values().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
        };
        let whole = total(&[]);
        assert!(whole.1 > 100_000, "{whole:?}");
        assert_eq!(total(&["--depth", "4"]), whole);
        assert_eq!(total(&["--fold-recursion"]), whole);
    }

    /// Attached: what runs after the recording began is counted, and nothing stays behind.
    fn attached(jdk) {
        let mut target = Target::java(jdk).class_path(program_classes()).main("programs.Waiting").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let recording = begin(&target.name(), &["--bytecodes", "--blocks", "precise"], &file);
        for _ in 0..3 {
            target.tell("go");
            target.wait_for("done");
        }
        end(recording);
        let counted = counts(&Recorded::open(&file));
        let (_, stepped) = single_step(
            jdk,
            &path(&[program_classes()]),
            &["programs.All", "Exceptions", "Sorting", "Exceptions", "Sorting", "Exceptions", "Sorting"],
            PREFIX,
        );
        let own = |name: &String| name.contains("Exceptions") || name.contains("Sorting");
        let mut stepped = stepped;
        stepped.retain(|name, _| own(name));
        let mut counted = counted;
        counted.retain(|name, _| own(name));
        assert!(stepped.len() > 15);
        assert_equal(&stepped, &counted);
    }
}

/// The profile of a program as text: every context with its value. Which thread began first is no
/// part of it.
fn profile(jdk: &Jdk, vm: &[&str], options: &[&str], program: &[&str]) -> String {
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare").display().to_string();
    let mut words = vec!["record", "--bytecodes", "-o", &file];
    words.extend(options);
    let java = jdk.java().display().to_string();
    let classes = path(&[program_classes(), demo_classes()]).into_string().expect("plain paths");
    words.extend(["--", &java]);
    words.extend(vm);
    words.extend(["-cp", &classes]);
    words.extend(program);
    Tare::this().run(&words).ok();
    contexts_of(&file)
}

/// Every context of a recording with its bytecodes and invocations, threads added up, as text.
pub fn contexts_of(file: &str) -> String {
    let text = format!("{file}.collapsed");
    let mut all = String::new();
    for metric in ["bytecodes", "invocations"] {
        Tare::this().run(&["export", file, "--metric", metric, "-o", &text]).ok();
        let text = std::fs::read_to_string(&text).expect("an export");
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        all.push_str(&lines.join("\n"));
    }
    all
}

/// Bit for bit the same, whatever the JVM is told, and from version to version.
#[test]
fn the_same_in_every_run() {
    let mut seen: Option<String> = None;
    for (version, vm) in [
        (17, &["-XX:+UseSerialGC", "-Xmn4m"][..]),
        (17, &["-XX:+UseParallelGC", "-Xint"]),
        (21, &["-XX:+UseG1GC", "-XX:TieredStopAtLevel=1"]),
        (25, &["-XX:+UseZGC", "-Xcomp"]),
    ] {
        on_jdk(version, |jdk| {
            let this = profile(jdk, vm, &[], &["programs.All"]);
            assert!(this.lines().count() > 1000, "{this}");
            let first = seen.get_or_insert_with(|| this.clone());
            assert!(*first == this, "Java {version} {vm:?} gives another profile");
        });
    }
}

on_each_jdk! {
    /// What a program leaves to chance is the same in every run that is launched for it, and a
    /// service with orders, rules and a ledger does the same work.
    fn chance_is_taken_away(jdk) {
        let chance = ["programs.All", "Chance"];
        let shop = ["shop.Main", "--orders", "200", "--threads", "1", "--report-every", "0"];
        for program in [&chance[..], &shop] {
            let [first, second] = [(); 2].map(|()| profile(jdk, &[], &[], program));
            assert!(first == second, "{program:?} gives two profiles");
        }
        let left = || profile(jdk, &[], &["--as-it-comes"], &chance);
        let first = left();
        assert!((0..5).any(|_| left() != first), "without it the program differs");
    }
}

#[test]
fn bytecodes_go_with_neither_times_nor_counts_alone() {
    let run = |words: &[&str]| Tare::this().run(&[&["record", "1"], words].concat());
    run(&["--bytecodes", "--cpu-time"]).fails(2, &["--bytecodes"]);
    run(&["--bytecodes", "--count"]).fails(2, &["--bytecodes"]);
    run(&["--blocks", "precise"]).fails(2, &["--bytecodes"]);
    run(&["--bytecodes", "--wall"]).fails(2, &["--wall"]);
}
