//! `tare class print` and `tare class weave` as a user meets them: what they say, and how they end
//! when something is wrong.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use tare_jvm_tests::{Scratch, Tare, on_each_jdk, run, weave_classes};

fn text(path: &Path) -> String {
    path.to_str().expect("a plain path").to_owned()
}

#[test]
fn a_class_is_printed_from_a_file() {
    let file = text(&weave_classes().join("weave/counted/Subjects$Shape.class"));
    let outcome = Tare::this().run(&["class", "print", &file]);
    let printed = outcome.ok();
    for part in ["Subjects$Shape", "Constant pool", "area", "imul", "LineNumberTable"] {
        assert!(printed.contains(part), "no {part} in\n{printed}");
    }
}

on_each_jdk! {
    /// The classes of a JDK in jars, of which one class, all, or none of that name is printed.
    fn a_class_is_printed_from_a_jar(jdk) {
        let scratch = Scratch::new();
        let mut java = tare_jvm_tests::java(jdk);
        run(java.arg("-cp").arg(weave_classes()).args(["weave.Dump", &text(scratch.path())])
            .arg("java.logging"));
        let jar = text(&scratch.join("java.logging.jar"));
        for class in ["java/util/logging/Level", "java.util.logging.Level"] {
            let outcome = Tare::this().run(&["class", "print", &format!("{jar}!{class}")]);
            let printed = outcome.ok();
            assert!(printed.contains("intValue") && !printed.contains("LogRecord\n"), "{printed}");
        }
        let one = Tare::this().run(&["class", "print", &format!("{jar}!java/util/logging/Level")]);
        let all = Tare::this().run(&["class", "print", &jar]);
        assert!(all.ok().len() > 10 * one.ok().len());
        Tare::this()
            .run(&["class", "print", &format!("{jar}!java/util/logging/Nothing")])
            .fails(1, &["holds no class java/util/logging/Nothing"]);
    }
}

#[test]
fn what_was_woven_and_what_was_not_is_said() {
    let scratch = Scratch::new();
    let (woven, map) = (scratch.join("woven"), scratch.join("map"));
    let from = text(weave_classes());
    let outcome = Tare::this().run(&[
        "class",
        "weave",
        "--mode",
        "entry,count",
        "--map",
        &text(&map),
        &from,
        "-o",
        &text(&woven),
    ]);
    assert_eq!(outcome.ok(), "", "standard output belongs to --json");
    assert!(outcome.err.contains("Wove entry,count into "), "{}", outcome.err);
    let map = fs::read_to_string(map).expect("the table of methods");
    let ids: Vec<usize> = map
        .lines()
        .map(|line| line.split('\t').next().and_then(|id| id.parse().ok()).expect("an id"))
        .collect();
    assert!(ids.len() > 100 && ids.iter().enumerate().all(|(at, &id)| at == id), "{map}");
    assert!(woven.join("weave/counted/Subjects.class").is_file());
}

#[test]
fn wrong_usage_and_wrong_files_are_told_apart() {
    let scratch = Scratch::new();
    let out = text(&scratch.join("out"));
    let class = text(&weave_classes().join("weave/Count.class"));
    let note = scratch.join("note.txt");
    fs::write(&note, "no class").expect("a file");
    let note = text(&note);
    let weave = |words: &[&str]| Tare::this().run(&[&["class", "weave"], words].concat());

    weave(&[&class, "-o", &out]).fails(2, &["--mode"]);
    weave(&["--mode", "everything", &class, "-o", &out]).fails(2, &["choose from entry"]);
    weave(&["--mode", "count,count-precise", &class, "-o", &out]).fails(2, &["exclude each other"]);
    weave(&["--mode", "regions", "--lines", "20-10", &class, "-o", &out]).fails(2, &["10-20"]);
    weave(&["--mode", "all", &note, "-o", &out]).fails(1, &["neither a class file nor a jar"]);
    weave(&["--mode", "all", "nothing.jar", "-o", &out]).fails(1, &["nothing.jar"]);
    weave(&["--mode", "all", &class, "-o", &class]).fails(1, &["name another output"]);
    let nowhere = text(&scratch.join("no/such/place"));
    weave(&["--mode", "all", &class, "-o", &nowhere]).fails(1, &["create it first"]);
    Tare::this().run(&["class", "print", &note]).fails(1, &["neither a class file nor a jar"]);
    assert!(!Path::new(&out).exists());
}
