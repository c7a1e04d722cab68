//! A sample of `cargo xtask weave-corpus`: java.base and one module more, woven with everything at
//! once, and linked class by class with full verification by a JVM that runs on the woven
//! java.base.
//!
//! Each run also meets classes that are broken on purpose, and the same JVM judges the untouched
//! classes first: what it says about the woven ones must be the same.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use tare_jvm_tests::{
    BROKEN, Jdk, Scratch, java, on_each_jdk, probe_runtime, run, weave, weave_classes,
};

const MODULES: [&str; 2] = ["java.base", "java.logging"];

/// What `weave.Link` found.
struct Linked {
    /// Class and kind of fault, without the reason: it may name another missing class each time.
    faults: BTreeMap<String, String>,
    totals: BTreeMap<String, i64>,
    verified: usize,
}

/// Links all classes of the modules; `woven` holds one jar for each, or nothing is woven.
fn link(jdk: &Jdk, woven: Option<&Path>, scratch: &Scratch) -> Linked {
    let (out, log) = (scratch.join("linked.txt"), scratch.join("verified.log"));
    let mut command = java(jdk);
    command.args(["-Xverify:all", "-XX:-PrintWarnings"]);
    command.arg(format!("-Xlog:class+init=info:file={}:none:filecount=0", log.display()));
    for module in MODULES {
        let mut option = OsString::from(format!("--patch-module={module}="));
        let jar = woven.map(|woven| woven.join(format!("{module}.jar")));
        match (jar, module) {
            (Some(jar), "java.base") => {
                option.push(jar);
                option.push(":");
                option.push(probe_runtime());
            }
            (Some(jar), _) => option.push(jar),
            (None, "java.base") => option.push(probe_runtime()),
            (None, _) => continue,
        }
        command.arg(option);
    }
    command.arg("-cp").arg(weave_classes()).arg("weave.Link").arg(&out).arg("modules");
    command.arg(format!("--only={}", MODULES.join(",")));
    command.args(BROKEN.map(|name| format!("java.base/java/lang/{name}")));
    run(&mut command);

    let mut linked = Linked { faults: BTreeMap::new(), totals: BTreeMap::new(), verified: 0 };
    for line in fs::read_to_string(&out).expect("a verdict").lines() {
        let parts: Vec<&str> = line.splitn(3, '\t').collect();
        match parts[..] {
            [kind, class, _] => {
                linked.faults.insert(class.to_owned(), kind.to_owned());
            }
            [name, value] => {
                linked.totals.insert(name.to_owned(), value.parse().expect("a number"));
            }
            _ => panic!("odd line {line:?}"),
        }
    }
    let text = fs::read_to_string(&log).expect("a log of verifications");
    linked.verified = text.lines().filter(|line| line.contains("End class verification")).count();
    // A class of version 50 whose frames are wrong is verified again by inference, silently.
    for line in text.lines() {
        if let Some((_, class)) =
            line.split_once("Fail over class verification to old verifier for: ")
        {
            linked.faults.entry(class.trim().to_owned()).or_insert("frames".to_owned());
        }
    }
    for (name, kind) in BROKEN.into_iter().zip(["verify", "frames", "verify"]) {
        let class = linked.faults.keys().find(|class| class.ends_with(name)).cloned();
        let class = class.unwrap_or_else(|| panic!("the JVM accepts {name}, which is broken"));
        assert_eq!(linked.faults.remove(&class).as_deref(), Some(kind), "{name}");
    }
    // Four classes of the very first are never verified.
    let total = linked.totals["linked"];
    assert!(linked.verified as i64 + 4 >= total, "{} of {total} verified", linked.verified);
    linked
}

on_each_jdk! {
    fn a_jvm_runs_on_its_own_woven_classes_and_verifies_them_all(jdk) {
        let scratch = Scratch::new();
        let plain = scratch.join("plain");
        run(java(jdk).arg("-cp").arg(weave_classes()).arg("weave.Dump").arg(&plain).args(MODULES));
        let untouched = link(jdk, None, &scratch);
        assert_eq!(untouched.totals["activity"], 0);
        for (mode, options) in [("all", &["--allow-huge"][..]), ("entry,count", &[])] {
            let woven = scratch.join("woven");
            let report = weave(mode, options, &plain, &woven);
            let number = |key: &str| report[key].as_u64().expect("a number");
            let refused: u64 = report["refused"]
                .as_object()
                .expect("reasons")
                .iter()
                .filter(|(reason, _)| *reason != "huge")
                .map(|(_, count)| count.as_u64().expect("a number"))
                .sum();
            let methods = number("methods");
            assert!(methods > 50_000 && number("woven") > 50_000, "{report}");
            assert!(refused * 2_000 <= methods, "more than 0.05 % refused: {report}");
            assert_eq!(report["failed"], serde_json::json!({}));

            let linked = link(jdk, Some(&woven), &scratch);
            assert_eq!(linked.faults, untouched.faults, "{mode}");
            assert_eq!(linked.totals["seen"], untouched.totals["seen"]);
            assert_eq!(linked.totals["linked"], untouched.totals["linked"]);
            assert!(linked.totals["activity"] > 1_000_000, "the JVM does not run woven code");
        }
    }

    /// The same original and the same modes give the same bytes, so a second weave adds nothing to
    /// any constant pool; and weaving our own output again works too.
    fn weaving_is_repeatable(jdk) {
        let scratch = Scratch::new();
        let plain = scratch.join("plain");
        let dump = ["java.logging"];
        run(java(jdk).arg("-cp").arg(weave_classes()).arg("weave.Dump").arg(&plain).args(dump));
        let woven = |from: &Path, name: &str| {
            let to = scratch.join(name);
            let report = weave("all", &[], from, &to);
            assert_eq!(report["failed"], serde_json::json!({}));
            (fs::read(to.join("java.logging.jar")).expect("a jar"), to)
        };
        let (first, once) = woven(&plain, "first");
        let (second, _) = woven(&plain, "second");
        assert!(first == second, "the same input gives other bytes");
        let (twice, _) = woven(&once, "twice");
        assert!(twice.len() > first.len());
    }
}
