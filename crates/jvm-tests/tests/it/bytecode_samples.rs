//! Samples by executed bytecodes: with one at every bytecode they are the exact profile, and with
//! fewer of them they are the same in every run.

use crate::recording::{Recorded, begin, end};
use std::collections::BTreeMap;
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes_in, on_each_jdk, program_classes};

/// Calls itself more often than there is room for on a stack of ours; with another argument more
/// often than on its own, again and again, so that it overflows in probes as well.
const DEEP: &str = "public class Deep {
    static int down(int n) { return n == 0 ? 0 : 1 + down(n - 1); }
    static int over(int n) { try { return down(n); } catch (StackOverflowError e) { return 1; } }
    public static void main(String[] args) {
        if (args.length == 0) System.out.println(down(6000));
        for (int i = 0; i < 50 * args.length; i++) over(100000000 + i);
    }
}";

/// Bytecodes by context, from an export.
type Profile = BTreeMap<String, u64>;

fn exported(file: &str) -> Profile {
    let scratch = Scratch::new();
    let text = scratch.path().join("x.collapsed");
    let text = text.to_str().expect("a plain path");
    Tare::this().run(&["export", file, "--metric", "bytecodes", "-o", text]).ok();
    let text = std::fs::read_to_string(text).expect("an export");
    let row = |line: &str| {
        let (stack, value) = line.rsplit_once(' ').expect("a stack and a value");
        (stack.to_owned(), value.parse().expect("a number"))
    };
    text.lines().map(row).collect()
}

fn record(jdk: &Jdk, options: &[&str], classes: &std::path::Path, program: &[&str]) -> Profile {
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare").display().to_string();
    let (java, classes) = (jdk.java().display().to_string(), classes.display().to_string());
    let mut words = vec!["record", "--bytecodes", "-o", &file];
    words.extend(options);
    words.extend(["--", &java, "-Xss16m", "-cp", &classes]);
    words.extend(program);
    Tare::this().run(&words).ok();
    exported(&file)
}

fn sum(profile: &Profile) -> u64 {
    profile.values().sum()
}

/// How much of two profiles is the same, in percent.
fn overlap(a: &Profile, b: &Profile) -> f64 {
    let share = |of: &Profile, key: &str| *of.get(key).unwrap_or(&0) as f64 / sum(of) as f64;
    a.keys().map(|key| share(a, key).min(share(b, key))).sum::<f64>() * 100.0
}

on_each_jdk! {
    /// Exceptions, threads, lambdas and all: every context of the exact profile with the same
    /// figure.
    fn at_every_bytecode_they_are_the_exact_profile(jdk) {
        let all = ["programs.All"];
        let exact = record(jdk, &[], program_classes(), &all);
        assert!(exact.len() > 500);
        assert_eq!(record(jdk, &["--every", "1"], program_classes(), &all), exact);
    }

    fn the_same_in_every_run_by_seed(jdk) {
        let all = ["programs.All", "Queens", "Json", "Sorting"];
        let run = |options: &[&str]| record(jdk, options, program_classes(), &all);
        let exact = run(&[]);
        let every = run(&["--every", "200"]);
        assert!(every.len() < exact.len() && overlap(&exact, &every) > 70.0, "{every:?}");
        // What is missing is what came after the last sample.
        assert!((sum(&exact) - 199..=sum(&exact)).contains(&sum(&every)), "{}", sum(&every));
        assert_eq!(run(&["--every", "200"]), every);
        let random = run(&["--every", "200", "--random", "7"]);
        assert_ne!(random, every);
        assert_eq!(run(&["--every", "200", "--random", "7"]), random);
        assert_ne!(run(&["--every", "200", "--random", "8"]), random);
        assert!(overlap(&exact, &random) > 70.0, "{random:?}");
    }

    /// What is deeper than a stack counts where the stack ends.
    fn deeper_than_the_stack(jdk) {
        let scratch = Scratch::new();
        classes_in(scratch.path(), "Deep", DEEP);
        let total = |options: &[&str]| sum(&record(jdk, options, scratch.path(), &["Deep"]));
        assert_eq!(total(&["--every", "1"]), total(&[]));
    }

    /// The program's stack may overflow anywhere in a probe: the trees stay whole.
    fn overflows_in_probes(jdk) {
        let scratch = Scratch::new();
        classes_in(scratch.path(), "Deep", DEEP);
        for options in [&["--every", "100"][..], &[]] {
            let total = sum(&record(jdk, options, scratch.path(), &["-Xss256k", "Deep", "over"]));
            assert!((10_000..1_000_000_000).contains(&total), "{options:?}: {total}");
        }
    }

    /// Attached, twice: what a thread still holds of the first session leads nowhere in the second.
    fn attached_again(jdk) {
        let mut target =
            Target::java(jdk).class_path(program_classes()).main("programs.Waiting").start();
        let scratch = Scratch::new();
        let mut profiles = Vec::new();
        for (name, options) in [("a", &["--every", "1"][..]), ("b", &["--every", "1"]), ("c", &[])] {
            let file = scratch.path().join(format!("{name}.tare"));
            let recording = begin(&target.name(), &[&["--bytecodes"], options].concat(), &file);
            target.tell("go");
            target.wait_for("done");
            end(recording);
            assert!(Recorded::open(&file).losses().is_empty());
            let mut profile = exported(file.to_str().expect("a plain path"));
            profile.retain(|stack, _| stack.contains("Sorting") || stack.contains("Exceptions"));
            assert!(sum(&profile) > 10_000, "{profile:?}");
            profiles.push(profile);
        }
        // In the first, classes were initialised.
        assert_eq!(profiles[1], profiles[2]);
    }
}

#[test]
fn samples_need_bytecodes_and_know_no_roots() {
    let run = |words: &[&str]| Tare::this().run(&[&["record", "1"], words].concat());
    run(&["--every", "1000"]).fails(2, &["--bytecodes"]);
    run(&["--bytecodes", "--random", "1"]).fails(2, &["--every"]);
    run(&["--bytecodes", "--every", "1000", "--root", "a.B.c"]).fails(2, &["--root"]);
}
