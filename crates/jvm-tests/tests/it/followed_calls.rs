//! One call of a root in so many is followed: its own calls are exact, what it calls is estimated,
//! and the slowest calls are kept whole.

use crate::recording::{Recorded, counted, java, record, wait_until_on};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tare_jvm_tests::{Demo, Jdk, Scratch, Tare, Target, classes, on_each_jdk, wait_until};
use tare_profile::facts::keys;
use tare_profile::{EventKind, FieldValue};

/// What the program does on its two threads.
const CALLS: i64 = 22_000;

fn report(file: &str) -> Value {
    let text = Tare::this().run(&["report", file, "--format", "json"]).ok().to_owned();
    serde_json::from_str(&text).expect("JSON")
}

fn method<'a>(report: &'a Value, name: &str) -> &'a Value {
    let methods = report["methods"].as_array().expect("methods");
    methods.iter().find(|method| method["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Calls and their variances, by context.
fn estimates(file: &Path) -> BTreeMap<Vec<String>, (f64, f64)> {
    let profile = Recorded::open(file).profile;
    let mut sums: BTreeMap<Vec<String>, (f64, f64)> = BTreeMap::new();
    for (_, series) in profile.all_series() {
        let kind = series.info().kind.name();
        for row in series.rows() {
            let frames = profile.contexts.frames(row.context);
            let stack = frames.map(|frame| profile.method_name(profile.frames.get(frame).method));
            let sum = sums.entry(stack.collect()).or_default();
            match kind {
                "invocations" => sum.0 += row.value as f64,
                "invocations-variance" => sum.1 += row.value as f64,
                _ => {}
            }
        }
    }
    sums
}

fn unequal(jdk: &Jdk, file: &Path, how: &[&str]) -> BTreeMap<Vec<String>, (f64, f64)> {
    let always = ["--root", "UnequalCalls.root", "--no-skip-trivial", "--scheme", "eager"];
    let mut words = record(&[&always[..], how].concat(), file);
    words.extend(java(jdk, classes(), &["UnequalCalls"]));
    Tare::this().run(&words).ok();
    estimates(file)
}

/// In how many it was followed, as the recording so far tells it.
fn decisions(file: &Path) -> Vec<i64> {
    let profile = Recorded::so_far(file).profile;
    let name = EventKind::follow().name;
    let table = profile.all_events().map(|(_, table)| table).find(|t| t.kind().name == name);
    let Some(table) = table else { return Vec::new() };
    let field = table.field_named("one-in").expect("its field");
    let number = |row| match table.field(row, field) {
        Some(FieldValue::Integer(number)) => number,
        other => panic!("{other:?}"),
    };
    (0..table.len()).map(number).collect()
}

on_each_jdk! {
    /// What is called in how many of the calls is drawn; the true figures are within the intervals
    /// as often as these say, over ten seeds.
    fn intervals_hold_the_truth(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let truth = unequal(jdk, &file, &["--count"]);
        let all: f64 = truth.values().map(|(calls, _)| calls).sum();
        let large: Vec<_> = truth.iter().filter(|(_, (calls, _))| *calls >= all / 100.0).collect();
        assert!(large.len() >= 12, "{truth:?}");
        let (mut held, mut seen) = (0, 0);
        for seed in 1..=10 {
            let found = unequal(jdk, &file, &["--follow", "1/50", "--seed", &seed.to_string()]);
            for (context, (calls, _)) in &large {
                let (estimate, variance) = found.get(*context).copied().unwrap_or_default();
                seen += 1;
                // Calls are whole numbers: half of one is no mistake.
                held += usize::from((estimate - calls).abs() <= 1.96 * variance.sqrt() + 0.5);
            }
        }
        assert!(held * 100 >= seen * 93, "{held} of {seen}");
    }

    /// A budget chooses how many are followed: fewer as soon as probes weigh more. What was drawn
    /// at different rates counts by its own.
    fn a_budget_chooses_how_many_are_followed(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let command = Target::java(jdk).class_path(classes()).main("ChangingLoad");
        let mut target = command.start();
        let name = target.name();
        // Processor time: what else the machine does is no load.
        let what = ["--root", "ChangingLoad.root", "--no-skip-trivial", "--cpu-time"];
        let how = [&what[..], &["--overhead", "5%", &name]].concat();
        let recording = Tare::this().start(&record(&how, &file));
        wait_until_on(&name);
        let least = || decisions(&file).iter().min().copied();
        wait_until("more are followed where probes weigh little", || least() < Some(30) && least().is_some());
        target.tell("o");
        let last = || decisions(&file).last().copied();
        wait_until("fewer are where they weigh more", || last() > Some(60));
        recording.signal(rustix::process::Signal::INT);
        let said = recording.wait().ok().to_owned();
        assert!(said.contains("5 % were allowed") && said.contains("followed at last (from "), "{said}");
        target.tell("q");
        target.wait_for("done");
        let truth = counted(&target.text());
        let recorded = Recorded::open(&file);
        let (least, most) = (recorded.fact(keys::FOLLOWED_LEAST), recorded.fact(keys::FOLLOWED_MOST));
        assert!(least < Some(30) && most > Some(60), "{least:?} to {most:?}");
        assert!(recorded.fact(keys::OVERHEAD).is_some());
        let counts = recorded.counts();
        let roots = counts["ChangingLoad.root"];
        assert!(roots > 0 && roots <= truth["ChangingLoad.root"], "{roots} of {truth:?}");
        // Each call of the root does one or the other, and the two were drawn at different rates.
        let both = counts["ChangingLoad.few"] + counts["ChangingLoad.brief"] / 4_000;
        assert!((both - roots).abs() <= roots / 20, "{both} of {roots}: {counts:?}");
        let page = Tare::this().run(&["report", &file.display().to_string()]).ok().to_owned();
        assert!(page.contains("chosen for an overhead of 5.0 %"), "{page}");
        target.finish();
    }

    /// Roots are found in a program whose pool runs tasks; where it calls itself all the time, all
    /// calls are recorded, which is said.
    fn roots_are_found_or_it_is_said_that_there_are_none(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut target = Target::java(jdk).class_path(classes()).main("Errands").start();
        let name = target.name();
        let how = ["--overhead", "5%", "-d", "4s", &name];
        let found = Tare::this().run(&record(&how, &file));
        found.ok();
        let said = found.describe();
        assert!(said.contains("root Errands.errand: an executor's task, "), "{said}");
        let recorded = Recorded::open(&file);
        let roots = recorded.fact(keys::ROOT_CALLS);
        assert!(roots > Some(0) && recorded.counts()["Errands.errand"] as u64 == roots.unwrap_or(0));
        let options = &recorded.profile.run.options;
        assert!(options.iter().any(|(key, _)| key == "roots-found"), "{options:?}");
        target.tell("");
        target.wait_for("alone");
        let none = Tare::this().run(&record(&how, &file));
        none.ok();
        let said = none.describe();
        assert!(said.contains("no roots: ") && said.contains("All calls are counted"), "{said}");
        let recorded = Recorded::open(&file);
        assert_eq!(recorded.fact(keys::TIMED_ONE_IN), Some(32));
        assert!(recorded.counts()["Errands.recursive"] > 100_000, "{:?}", recorded.counts());
        target.tell("");
        target.finish();
    }

    fn the_planted_slow_path_is_named_first(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        // Processor time, in which what else the machine does makes no call slow.
        let how = ["--follow", "1/8", "--no-skip-trivial", "--cpu-time"];
        let mut words = record(&[&["--root", "SlowPath.root"][..], &how].concat(), &file);
        words.extend(java(jdk, classes(), &["SlowPath"]));
        Tare::this().run(&words).ok();
        let recorded = Recorded::open(&file);
        let counts = recorded.counts();
        // Every call of the root is counted, and each of them calls this once.
        assert_eq!((counts["SlowPath.root"], counts["SlowPath.usual"]), (CALLS, CALLS));
        assert_eq!(recorded.fact(keys::ROOT_CALLS), Some(CALLS as u64));
        let followed = recorded.fact(keys::FOLLOWED_CALLS).expect("followed calls") as i64;
        // Six standard deviations to either side.
        assert!((CALLS / 8 - 300..CALLS / 8 + 300).contains(&followed), "{followed}");
        // One in three: so many standard deviations are as good as never exceeded.
        let deviation = (CALLS as f64).powi(2) * (2.0 / 9.0) * (7.0 / 8.0) / followed as f64;
        let off = (counts["SlowPath.sometimes"] - CALLS / 3).abs() as f64;
        assert!(off < 6.0 * deviation.sqrt(), "{} of {CALLS}", counts["SlowPath.sometimes"]);

        let text = file.display().to_string();
        let json = report(&text);
        let root = method(&json, "SlowPath.root");
        assert_eq!(root["total_plus_minus"], 0, "{root}");
        assert!(method(&json, "SlowPath.rare")["total_plus_minus"].as_i64() > Some(0));
        // Times below a root add up to what the root took.
        let sum: i64 = json["methods"].as_array().expect("methods").iter()
            .filter_map(|method| method["self"].as_i64()).sum();
        let total = root["total"].as_i64().expect("a time");
        assert!((sum - total).abs() <= total / 1000, "{sum} of {total}");

        let slowest = &json["slowest"][0];
        assert_eq!(slowest["root"], "SlowPath.root", "{slowest}");
        assert_eq!(slowest["slowest"].as_array().map(Vec::len), Some(20));
        assert_eq!(slowest["typical"].as_array().map(Vec::len), Some(20));
        let first = slowest["contexts"][0]["stack"].as_array().expect("a stack").clone();
        assert!(first.contains(&Value::from("SlowPath.rare")), "{first:?}");
        let page = Tare::this().run(&["report", &text, "--slowest"]).ok().to_owned();
        let line = page.lines().skip_while(|line| !line.contains("difference")).nth(1);
        assert!(line.is_some_and(|line| line.contains("search")), "{page}");
        // One call in 500 takes a hundred times as long; the roots' lengths are those of all calls.
        let lengths = json["call_lengths"]["methods"].as_array().expect("lengths");
        let of = |name: &str| {
            let found = lengths.iter().find(|one| one["name"] == name).expect("the method");
            ["calls", "p50_ns", "p90_ns", "p99_ns"].map(|key| found[key].as_i64().expect(key))
        };
        let [calls, p50, p90, p99] = of("SlowPath.root");
        assert_eq!(calls, CALLS);
        assert!(0 < p50 && p50 <= p90 && p90 <= p99, "{p50} {p90} {p99}");
        let [_, rare, ..] = of("SlowPath.rare");
        assert!(rare > 10 * p50, "{rare} beside {p50}");
        let [_, usual, ..] = of("SlowPath.usual");
        assert!((p50 / 4..=p50 * 2).contains(&usual), "{usual} beside {p50}");
        let contexts = json["call_lengths"]["contexts"].as_array().expect("contexts");
        assert!(contexts.iter().any(|one| one["stack"][0] == "SlowPath.root"
            && one["stack"][1] == "SlowPath.rare"), "{contexts:?}");
        let page = Tare::this().run(&["report", &text]).ok().to_owned();
        assert!(page.contains("Methods, by how long a call took"), "{page}");
        assert!(page.contains("1 in 8 calls of the roots was followed"), "{page}");
        assert!(page.contains('±') && page.contains("--slowest"), "{page}");
    }

    /// A running program with several threads, into which we come from outside.
    fn roots_of_a_running_program(jdk) {
        let demo = Demo::start(jdk);
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let name = demo.target.name();
        let root = "shop.orders.OrderDesk.handle";
        let options = ["--root", root, "--follow", "1/4", "-d", "3s", &name];
        Tare::this().run(&record(&options, &file)).ok();
        let recorded = Recorded::open(&file);
        let roots = recorded.fact(keys::ROOT_CALLS).expect("calls") as i64;
        let counts = recorded.counts();
        assert!(roots > 0 && counts[root] == roots, "{roots}");
        // The first calls may have come before what they call was woven.
        let below = counts["shop.orders.OrderDesk.fulfil"];
        assert!((1..=2 * roots).contains(&below), "{below} in {roots} calls");
        assert!(recorded.fact(keys::FOLLOWED_CALLS) < Some(roots as u64), "{roots}");
        demo.finish();
    }
}
