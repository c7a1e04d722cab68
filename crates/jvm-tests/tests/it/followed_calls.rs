//! One call of a root in so many is followed: its own calls are exact, what it calls is estimated,
//! and the slowest calls are kept whole.

use crate::recording::{Recorded, java, record};
use serde_json::Value;
use tare_jvm_tests::{Demo, Scratch, Tare, classes, on_each_jdk};
use tare_profile::facts::keys;

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

on_each_jdk! {
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
        let page = Tare::this().run(&["report", &text]).ok().to_owned();
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
