//! Every allocation: objects and bytes by class and line are those that the program made, launched
//! and attached, on platform and virtual threads, through exceptions and recursion.

use crate::common::assert_no_trace;
use crate::recording::{Recorded, java, wait_until_on};
use std::collections::BTreeMap;
use std::path::Path;
use tare_jvm_tests::{Scratch, Tare, Target, classes, on_each_jdk};
use tare_profile::facts::keys;
use tare_profile::{MethodKind, Row, ValueKind};

/// Objects and bytes by line and class.
type Made = BTreeMap<(u32, String), (i64, i64)>;

const SOURCE: &str = include_str!("../../java/targets/Made.java");

/// The line of a place that the source names.
fn line(place: &str) -> u32 {
    let mark = format!("// place: {place}");
    let at = SOURCE.lines().position(|line| line.ends_with(&mark));
    at.unwrap_or_else(|| panic!("no place {place}")) as u32 + 1
}

/// What the program says that it made, at last.
fn truth(text: &str) -> Made {
    let mut made = Made::new();
    for words in text.lines().filter_map(|line| line.strip_prefix("made\t")) {
        let words: Vec<&str> = words.split('\t').collect();
        let [place, class, objects, bytes] = words[..] else { panic!("{words:?}") };
        let figures = (objects.parse().unwrap(), bytes.parse().unwrap());
        made.insert((line(place), class.to_owned()), figures);
    }
    assert!(made.len() > 30, "the program made too little: {text}");
    made
}

/// What a recording has of it, which must lack nothing.
#[track_caller]
fn recorded(file: &Path) -> Made {
    let recorded = Recorded::open(file);
    assert_eq!(recorded.losses(), [""; 0]);
    assert_eq!(recorded.fact(keys::ALLOCATION_EXACT), Some(true));
    let profile = &recorded.profile;
    let mut made = Made::new();
    for (_, series) in profile.all_series() {
        assert_eq!(series.info().name, "exact");
        for row in series.rows() {
            let frame = *profile.frames.get(profile.contexts.frame(row.context).expect("a frame"));
            let method = profile.methods.get(frame.method);
            let of_class = method.kind == MethodKind::Class;
            let invocations = series.info().kind == ValueKind::Invocations;
            assert_eq!(of_class, !invocations, "{method:?}");
            if invocations {
                continue;
            }
            let class = profile.strings.get(method.class).to_owned();
            let figures = made.entry((frame.line.expect("a line"), class)).or_default();
            match series.info().kind {
                ValueKind::AllocatedObjects => figures.0 += row.value,
                ValueKind::AllocatedBytes => figures.1 += row.value,
                ref other => panic!("{other:?}"),
            }
        }
    }
    made
}

#[track_caller]
fn assert_equal(truth: &Made, recorded: &Made) {
    let all: std::collections::BTreeSet<_> = truth.keys().chain(recorded.keys()).collect();
    let differences: Vec<String> = all
        .into_iter()
        .filter(|site| truth.get(*site) != recorded.get(*site))
        .map(|site| format!("{site:?}: {:?}, not {:?}", recorded.get(site), truth.get(site)))
        .collect();
    assert!(differences.is_empty(), "of {}:\n{}", truth.len(), differences.join("\n"));
}

fn record(options: &[&str], file: &Path) -> Vec<String> {
    let mut words: Vec<String> =
        ["record", "--alloc-exact", "--exclude", "Makes*", "-o"].map(str::to_owned).into();
    words.push(file.display().to_string());
    words.extend(options.iter().map(|word| (*word).to_owned()));
    words
}

on_each_jdk! {
    fn every_way_to_allocate_launched(jdk) {
        let flags: &[&[&str]] = &[
            &[],
            &["-XX:-UseCompressedClassPointers"],
            &["-XX:ObjectAlignmentInBytes=16"],
            &["-Xint"],
        ];
        for flags in flags.iter().filter(|flags| jdk.major < 25 || !flags.join("").contains("Class")) {
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            let mut words = record(&[], &file);
            words.extend(java(jdk, classes(), &[flags, &["Makes", "3"][..]].concat()));
            let outcome = Tare::this().run(&words);
            assert_equal(&truth(outcome.ok()), &recorded(&file));
        }
    }

    fn every_way_to_allocate_attached(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Makes").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let recording = Tare::this().start(&record(&[&target.name()], &file));
        wait_until_on(&target.name());
        for _ in 0..3 {
            target.tell("go");
            target.wait_for("done");
        }
        recording.signal(rustix::process::Signal::INT);
        recording.wait().ok();
        assert_equal(&truth(&target.text()), &recorded(&file));
        assert_no_trace(target.pid());
        // The code is as it was, and everything still works.
        target.tell("go");
        target.wait_for("done");
    }

    /// Each level of a recursion is a context of its own, unless it is folded; where contexts are
    /// limited in depth, what is deeper is in the rest of the last.
    fn contexts_of_a_recursion(jdk) {
        let objects = |options: &[&str]| {
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            let mut words = record(options, &file);
            words.extend(java(jdk, classes(), &["Makes", "1"]));
            Tare::this().run(&words).ok();
            let recorded = Recorded::open(&file);
            let profile = &recorded.profile;
            let mut series = profile.all_series().map(|(_, series)| series);
            let series = series.find(|s| s.info().kind == ValueKind::AllocatedObjects).unwrap();
            let name = |frame| {
                let method = profile.method_of(frame);
                profile.strings.get(method.name).to_owned()
            };
            let depth = |row: &Row| {
                let names = profile.contexts.frames(row.context).map(name);
                names.filter(|name| name == "recursive").count()
            };
            let mut by_depth: BTreeMap<usize, i64> = BTreeMap::new();
            for row in series.rows() {
                *by_depth.entry(depth(&row)).or_default() += row.value;
            }
            by_depth.remove(&0);
            by_depth
        };
        assert_eq!(objects(&[]), (1..=30).map(|depth| (depth, 4)).collect());
        assert_eq!(objects(&["--fold-recursion"]), [(1, 120)].into());
        let limited = objects(&["--depth", "10"]);
        assert_eq!(limited, (1..10).map(|depth| (depth, 4)).chain([(10, 84)]).collect());
    }

    /// More contexts than memory: what each made is in the rest of another, and the sums stay true.
    fn sums_stay_true_when_contexts_are_pruned(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut words = record(&["--memory", "8M"], &file);
        words.extend(java(jdk, classes(), &["Makes", "paths", "16"]));
        let outcome = Tare::this().run(&words);
        let text = outcome.ok().lines().next().expect("a line").to_owned();
        let numbers: Vec<i64> = text.split('\t').map(|n| n.parse().unwrap()).collect();
        let [objects, size] = numbers[..] else { panic!("{text}") };
        let recorded = Recorded::open(&file);
        assert!(recorded.losses().iter().any(|l| l.starts_with("pruned ")), "{text}");
        for (_, series) in recorded.profile.all_series() {
            let of_each = if series.info().kind == ValueKind::AllocatedBytes { size } else { 1 };
            let sum: i64 = series.rows().map(|row| row.value).sum();
            assert_eq!(sum, objects * of_each, "{:?}", series.info().kind);
            let rest = series.rows().filter(|row| {
                let frame = recorded.profile.contexts.frame(row.context).expect("a frame");
                recorded.profile.method_of(frame).kind == MethodKind::Special
            });
            assert!(rest.map(|row| row.value).sum::<i64>() > 0, "{:?}", series.info().kind);
        }
    }

    /// Below a root, and nothing else.
    fn only_below_a_root(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut words = record(&["--root", "Made.clones"], &file);
        words.extend(java(jdk, classes(), &["Makes", "2"]));
        let outcome = Tare::this().run(&words);
        let mut all = truth(outcome.ok());
        let below = ["ints cloned", "objects cloned", "clone"].map(line);
        all.retain(|(line, _), _| below.contains(line));
        assert_equal(&all, &recorded(&file));
    }

    /// What the JDK makes is counted once when it is woven: boxes there, strings where they are
    /// joined, and their bytes, which nobody could tell before.
    fn the_jdk_woven(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let included = ["Made*", "java.lang.Integer", "java.lang.StringConcatHelper*"];
        let included = included.iter().flat_map(|pattern| ["--include", pattern]);
        let mut words = record(&included.collect::<Vec<_>>(), &file);
        words.extend(java(jdk, classes(), &["Makes", "2"]));
        let outcome = Tare::this().run(&words);
        let truth = truth(outcome.ok());
        let recorded = Recorded::open(&file);
        let boxed = truth[&(line("int"), "java.lang.Integer".to_owned())];
        assert_eq!(below(&recorded, "Made.boxes", "java.lang.Integer", true), (0, 0));
        assert_eq!(below(&recorded, "Made.boxes", "java.lang.Integer", false), boxed);
        let joined = truth[&(line("joined"), "java.lang.String".to_owned())];
        assert_eq!(below(&recorded, "Made.joined", "java.lang.String", true), joined);
        assert_eq!(below(&recorded, "Made.joined", "java.lang.String", false), (0, 0));
        let bytes = below(&recorded, "Made.joined", "byte[]", false);
        assert_eq!(bytes.0, joined.0, "each has an array of its own");
    }
}

/// Objects and bytes of a class that a method made itself, or what it called.
fn below(recorded: &Recorded, method: &str, class: &str, itself: bool) -> (i64, i64) {
    let profile = &recorded.profile;
    let name = |frame| {
        let method = profile.method_of(frame);
        let text = |id| profile.strings.get(id);
        match method.kind {
            MethodKind::Class => text(method.class).to_owned(),
            _ => format!("{}.{}", text(method.class), text(method.name)),
        }
    };
    let mut figures = (0, 0);
    for (_, series) in profile.all_series() {
        for row in series.rows() {
            let frames: Vec<String> = profile.contexts.frames(row.context).map(name).collect();
            let at = frames.iter().position(|frame| frame == method);
            if frames[0] != class || at.is_none_or(|at| (at == 1) != itself) {
                continue;
            }
            match series.info().kind {
                ValueKind::AllocatedObjects => figures.0 += row.value,
                ValueKind::AllocatedBytes => figures.1 += row.value,
                _ => {}
            }
        }
    }
    figures
}
