//! Executed bytecodes: what a recording counts is what a JVMTI agent steps through that shares no
//! code with Tare, method by method, launched and attached, whatever is thrown.

use crate::recording::{Recorded, begin, end};
use std::collections::BTreeMap;
use tare_jvm_tests::{
    Counts, Jdk, Scratch, Tare, Target, on_each_jdk, path, program_classes, single_step,
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

#[test]
fn bytecodes_go_with_neither_times_nor_counts_alone() {
    let run = |words: &[&str]| Tare::this().run(&[&["record", "1"], words].concat());
    run(&["--bytecodes", "--cpu-time"]).fails(2, &["--bytecodes"]);
    run(&["--bytecodes", "--count"]).fails(2, &["--bytecodes"]);
    run(&["--blocks", "precise"]).fails(2, &["--bytecodes"]);
    run(&["--bytecodes", "--wall"]).fails(2, &["--wall"]);
}
