//! The bytecodes that a woven program counts are those that it executes: held against a JVMTI agent
//! that steps through each of them and shares no code with the weaver.
//!
//! With the precise analysis the two agree to the last bytecode, whatever is thrown. With the
//! default analysis they agree wherever no exception ends a block early; where one does, the rest
//! of that block is counted although it did not run, as documented.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, sync::OnceLock};
use tare_jvm_tests::{
    Counts, Jdk, Probed, Scratch, env, on_each_jdk, path, run, run_counted, single_step, weave,
    weave_classes,
};

const PREFIX: &str = "weave/counted/";

/// The classes whose methods are counted, javac's and the ones made by hand, in a directory that
/// holds nothing else.
fn subjects() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = env().dir.join(format!("counted-{}", std::process::id()));
        let package = place.join(PREFIX);
        fs::create_dir_all(&package).expect("a directory for the subjects");
        let from = weave_classes().join(PREFIX);
        for entry in fs::read_dir(from).expect("the compiled subjects").map(|e| e.expect("entry")) {
            fs::copy(entry.path(), package.join(entry.file_name())).expect("a copy");
        }
        run(Command::new(env().javac.home.join("bin/java"))
            .arg("-cp")
            .arg(weave_classes())
            .arg("weave.Hand")
            .arg(&place));
        place
    })
}

/// What the program says and executes when nothing is woven.
fn witness(jdk: &Jdk) -> (String, Counts) {
    let class_path = path(&[subjects(), weave_classes()]);
    single_step(jdk, &class_path, &["weave.Count"], PREFIX)
}

/// Weaves, runs, and checks what holds for every mode.
fn counted(
    jdk: &Jdk,
    mode: &str,
    options: &[&str],
    said: &str,
) -> (BTreeMap<String, Probed>, BTreeMap<String, i64>) {
    let scratch = Scratch::new();
    let (woven, map) = (scratch.join("woven"), scratch.join("map"));
    let map_text = map.to_str().expect("a plain path");
    let report = weave(mode, &[options, &["--map", map_text]].concat(), subjects(), &woven);
    assert_eq!(report["refused"], serde_json::json!({}), "{mode}");
    assert_eq!(report["failed"], serde_json::json!({}), "{mode}");
    let (woven_said, counts, totals) = run_counted(jdk, &[], &woven, &map);
    assert_eq!(woven_said, said, "the program behaves differently woven with {mode}");
    assert_eq!(totals["faults"], 0, "{mode}: a probe got a token that is not its own");
    assert_eq!(totals["nulls"], 0, "{mode}: a probe got a null");
    assert!(counts.len() > 60, "only {} methods", counts.len());
    (counts, totals)
}

/// Methods in which an exception ends a block early, by their names.
fn throws_early(method: &str) -> bool {
    const BY_HAND: [&str; 6] = [
        "divides(",
        "throwsOut(",
        "handlerCoversItself(",
        "handlerReachedByFalling(",
        "monitors(",
        "subroutineThatThrows(",
    ];
    method.contains(".thrown")
        || method.contains(".deep(")
        || BY_HAND.iter().any(|name| method.contains(name))
}

fn assert_equal(counts: &BTreeMap<String, Probed>, witness: &Counts, mode: &str) {
    let wrong: Vec<String> = counts
        .iter()
        .filter(|(name, probed)| witness.get(*name).copied().unwrap_or(0) != probed.bytecodes)
        .map(|(name, probed)| format!("{name}: {probed:?}, stepped {:?}", witness.get(name)))
        .collect();
    assert!(wrong.is_empty(), "{mode}:\n{}", wrong.join("\n"));
    let unknown: Vec<_> = witness.keys().filter(|name| !counts.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "{mode}: stepped through but not woven: {unknown:?}");
}

fn assert_balanced(counts: &BTreeMap<String, Probed>, mode: &str) {
    for (name, probed) in counts {
        assert_eq!(probed.entered, probed.returned + probed.thrown, "{mode}: {name}");
    }
}

on_each_jdk! {
    /// Together with the other probes and alone; flushed at loop heads often, and as good as never.
    fn precise_counts_are_exact(jdk) {
        let (said, witness) = witness(jdk);
        assert!(witness.len() > 60, "the witness saw only {} methods", witness.len());
        for (mode, options) in [
            ("entry,count-precise", &[][..]),
            ("entry,count-precise", &["--flush-every", "7"]),
            ("count-precise", &["--flush-every", "1000000"]),
            ("all", &["--flush-every", "100"]),
        ] {
            let (counts, _) = counted(jdk, mode, options, &said);
            assert_equal(&counts, &witness, mode);
            if mode != "count-precise" {
                assert_balanced(&counts, mode);
            }
        }
    }

    fn default_counts_are_exact_unless_an_exception_ends_a_block(jdk) {
        let (said, witness) = witness(jdk);
        for mode in ["entry,count", "count", "count,stack,allocation,calls,regions,activation"] {
            let (counts, _) = counted(jdk, mode, &["--flush-every", "50"], &said);
            for (name, probed) in &counts {
                let stepped = witness.get(name).copied().unwrap_or(0);
                if throws_early(name) {
                    // Whole blocks are counted, so never less than what ran.
                    assert!(probed.bytecodes >= stepped, "{mode}: {name}: {probed:?}, {stepped}");
                } else {
                    assert_eq!(probed.bytecodes, stepped, "{mode}: {name}");
                }
            }
            // The documented over-count is the rest of the block: of seven bytecodes three ran,
            // and of six three.
            for (method, rest) in [("divides", 4), ("throwsOut", 3)] {
                let name = format!("weave/counted/Hand.{method}(I)I");
                assert_eq!(counts[&name].bytecodes, witness[&name] + rest, "{mode}: {name}");
            }
        }
    }

    /// Every block is announced with its length before it runs, so the weights add up to the
    /// default count; the longest way to the next check is an upper bound of what runs.
    fn activation_weights_add_up(jdk) {
        let (said, witness) = witness(jdk);
        let (counts, _) = counted(jdk, "count", &[], &said);
        let blocks: u64 = counts.values().map(|probed| probed.bytecodes).sum();
        let (_, totals) = counted(jdk, "activation-blocks", &[], &said);
        assert_eq!(totals["activation-weight"], blocks as i64);
        let stepped: u64 = witness.values().sum();
        let (_, totals) = counted(jdk, "activation", &[], &said);
        assert!(totals["activation-weight"] >= stepped as i64);
        assert!(totals["activations"] > 0);
    }

    /// What begins ends: regions, calls and the reified stack, also when exceptions fly.
    fn what_begins_ends(jdk) {
        let (said, _) = witness(jdk);
        let (_, totals) = counted(jdk, "all", &[], &said);
        assert!(totals["regions-begun"] > 0 && totals["calls-begun"] > 0, "{totals:?}");
        assert_eq!(totals["regions-begun"], totals["regions-ended"]);
        assert_eq!(totals["calls-begun"], totals["calls-ended"]);
        assert_eq!(totals["objects-out"], totals["objects-back"]);
        assert_eq!(totals["stack-depth"], 0);
        assert!(totals["caught"] > 0);
    }
}
