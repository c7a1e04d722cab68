//! Times that say how far they can be trusted: calibrated in the JVM, compensated in reports,
//! joined with samples, and methods that are better counted than timed.

use crate::recording::{Recorded, counted, record, wait_until_on};
use serde_json::Value;
use std::path::Path;
use tare_jvm_tests::{Scratch, Tare, Target, classes, on_each_jdk, wait_until};
use tare_profile::facts::keys;

fn report(file: &Path, more: &[&str]) -> Value {
    let file = file.display().to_string();
    let words = [&["report", &file, "--format", "json"], more].concat();
    serde_json::from_str(Tare::this().run(&words).ok()).expect("JSON")
}

/// What a report says of a method.
#[track_caller]
fn method<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = report["methods"].as_array().expect("methods");
    all.iter().find(|method| method["name"] == name).expect("the method")
}

on_each_jdk! {
    fn probes_are_taken_out_and_no_bounds_are_promised(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Costs").start();
        let scratch = Scratch::new();
        let (samples, file) = (scratch.join("s.tare"), scratch.join("x.tare"));
        let name = target.name();
        let text = samples.display().to_string();
        let sampling = Tare::this().start(&["record", "--interval", "1ms", "-o", &text, &name]);
        wait_until("samples are taken", || samples.exists());
        target.tell("for 1000");
        target.wait_for("done for 1000");
        sampling.signal(rustix::process::Signal::INT);
        sampling.wait().ok();
        let options = ["--time-some=1", "--include", "Costs", &name];
        let recording = Tare::this().start(&record(&options, &file));
        wait_until_on(&name);
        let before = counted(&target.text());
        target.tell("for 1001");
        target.wait_for("done for 1001");
        recording.signal(rustix::process::Signal::INT);
        recording.wait().ok();

        let net = report(&file, &[]);
        assert_eq!(net["metric"]["estimate"], "compensated");
        let table = net["run"]["facts"]["calibration"].as_array().expect("a calibration");
        for work in ["narrow", "wide", "clock", "counted", "cold"] {
            assert!(table.iter().any(|cost| cost["work"] == work), "{work}: {table:?}");
        }
        let value = |of: &Value, key: &str| of[key].as_i64().unwrap_or_else(|| panic!("{key}"));
        for name in ["Costs.brief", "Costs.lengthy", "Costs.round"] {
            let said = method(&net, name);
            let range = &said["self_calibration_range"];
            let own = value(said, "self");
            assert!(range[0].as_i64() <= Some(own) && Some(own) <= range[1].as_i64(), "{said}");
            assert!(said["self_lower"].is_null(), "no bounds are promised: {said}");
        }
        let raw = report(&file, &["--compensate", "none"]);
        assert_eq!(raw["metric"]["estimate"], "measured");
        assert_eq!(value(method(&raw, "Costs.brief"), "self"), value(method(&net, "Costs.brief"), "self_measured"));
        assert!(value(&net, "total") < value(&raw, "total"), "probes weigh something");
        let sequences = report(&file, &["--compensate", "sequences"]);
        assert!(value(&sequences, "total") < value(&raw, "total"));
        for work in ["paired", "call-static", "call", "cold-call-static", "cold-call"] {
            let told = table.iter().any(|cost| cost["work"] == work);
            assert!(told, "what a call costs without probes: no {work} in {table:?}");
        }
        // Which calls made timed ones is counted, so that pairs of transitions can be told apart.
        let calling = report(&file, &["--metric", "calling-calls"]);
        let calls = |name: &str| value(method(&net, name), "invocations");
        assert_eq!(value(method(&calling, "Costs.round"), "self"), calls("Costs.round"));
        assert_eq!(value(&calling, "total"), calls("Costs.round"), "{calling}");

        // A call of the long method is as long in both; of the short one samples know more.
        let joined = report(&file, &["--samples", &text]);
        assert_eq!(joined["metric"]["name"], "joined");
        let brief = method(&joined, "Costs.brief");
        let after = counted(&target.text());
        assert_eq!(value(brief, "invocations"), after["Costs.brief"] - before["Costs.brief"]);
        let lengthy = method(&joined, "Costs.lengthy");
        assert!(value(lengthy, "self") > 0 && value(lengthy, "self_lower") <= value(lengthy, "self"));
        let page = |more: &[&str]| {
            let words = [&["report", file.to_str().expect("a path")], more].concat();
            Tare::this().run(&words).ok().to_owned()
        };
        let (plain, joined) = (page(&[]), page(&["--samples", &text]));
        assert!(plain.contains("~ value") && plain.contains("times are estimates"), "{plain}");
        let head = |page: &str| page.lines().find(|line| line.starts_with("   itself")).map(str::to_owned);
        assert!(!head(&plain).is_some_and(|head| head.contains('±')), "{plain}");
        assert!(head(&joined).is_some_and(|head| head.contains('±')), "{joined}");
        target.finish();
    }

    /// Samples first, while some methods are counted, then all calls, in one recording; reports
    /// join them by default.
    fn calls_and_samples_in_one_recording(jdk) {
        for mode in [&[][..], &["--count"]] {
            let mut target = Target::java(jdk).class_path(classes()).main("Costs").start();
            let scratch = Scratch::new();
            let file = scratch.join("x.tare");
            let name = target.name();
            let options = ["--cpu", "--window", "1s", "-d", "2s", "--include", "Costs", &name];
            // Longer than all that comes: it is ended in the midst of it.
            target.tell("for 600000");
            Tare::this().start(&record(&[mode, &options].concat(), &file)).wait().ok();
            let report = report(&file, &[]);
            assert_eq!(report["metric"]["name"], "joined", "{}", report["run"]);
            let facts = &report["run"]["facts"];
            assert!(facts["joined-marks"].as_u64() > Some(0), "how they were joined: {facts}");
            let brief = method(&report, "Costs.brief");
            assert!(brief["invocations"].as_i64() > Some(0), "{brief}");
            let all = report["methods"].as_array().expect("methods");
            let samples = all.iter().filter_map(|method| method["self_measured"].as_i64());
            assert!(samples.sum::<i64>() > 0, "{all:?}");
        }
    }

    /// A class whose name the JVM makes up anew in every run has one name in counts and in samples.
    fn calls_and_samples_of_a_proxy_are_joined(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Proxied").start();
        assert!(target.text().contains("proxy $Proxy"), "{}", target.text());
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let name = target.name();
        target.tell("for 600000");
        let options = ["--cpu", "--window", "1s", "-d", "2s", "--exclude", "Proxied$Burner", &name];
        Tare::this().start(&record(&options, &file)).wait().ok();
        let report = report(&file, &[]);
        assert_eq!(report["metric"]["name"], "joined", "{}", report["run"]);
        let burn = method(&report, "$Proxy.burn");
        assert!(burn["invocations"].as_i64() > Some(0), "{burn}");
        let all = report["methods"].as_array().expect("methods");
        let samples: i64 = all.iter().filter_map(|method| method["self_measured"].as_i64()).sum();
        let own = burn["self_measured"].as_i64().unwrap_or(0);
        assert!(own > 0 && own * 10 >= samples * 8, "{own} of {samples}: {burn}");
    }

    /// Every call is counted, timed or not, and the report lists what was not timed.
    fn short_methods_are_demoted_and_counted_all_the_same(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Costs").start();
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let name = target.name();
        let words = record(&["--include", "Costs", "--time-all", "--overhead", "5%", &name], &file);
        let recording = Tare::this().start(&words);
        wait_until_on(&name);
        let mut times = 0;
        let demoted = loop {
            target.tell("for 1500");
            target.wait_for("done for 1500");
            times += 1;
            let recorded = Recorded::so_far(&file);
            let losses = recorded.losses();
            let is_demoted =
                losses.iter().any(|loss| loss.contains("Costs.brief") && !loss.contains(" 0 "));
            // What probes take is told by samples, as soon as the program has run for long enough.
            let told_by = recorded.fact(keys::OVERHEAD_SOURCE).unwrap_or_default();
            if is_demoted && told_by.ends_with(" samples") {
                break true;
            }
            if times == 40 {
                break false;
            }
        };
        recording.signal(rustix::process::Signal::INT);
        let said = recording.wait().ok().to_owned();
        assert!(demoted, "{said}");
        assert!(said.contains("5 % were allowed") && said.contains("% timing, by "), "{said}");
        let recorded = Recorded::open(&file);
        let (truth, counts) = (counted(&target.text()), recorded.counts());
        for method in ["Costs.brief", "Costs.lengthy"] {
            assert_eq!(counts[method], truth[method], "{method}");
        }
        let losses = recorded.losses();
        assert!(!losses.iter().any(|loss| loss.contains("Costs.lengthy")), "{losses:?}");
        // The time of what is only counted is its caller's, and nobody's is negative.
        let report = report(&file, &["--compensate", "none"]);
        let all = report["methods"].as_array().expect("methods");
        assert!(all.iter().all(|method| method["self"].as_i64() >= Some(0)), "{all:?}");
        target.finish();
    }

    /// Counters of threads stand beside times; what the machine does not have is said to be absent.
    fn counters_are_there_or_said_to_be_absent(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Costs").start();
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let name = target.name();
        let words = record(&["--include", "Costs", "--counters", &name], &file);
        let recording = Tare::this().start(&words);
        wait_until_on(&name);
        target.tell("for 300");
        target.wait_for("done for 300");
        recording.signal(rustix::process::Signal::INT);
        recording.wait().ok();
        let losses = Recorded::open(&file).losses();
        for counter in ["instructions", "cache-misses", "page-faults", "context-switches"] {
            let absent = losses.iter().any(|loss| loss.contains(counter) && loss.contains("absent"));
            let file = file.display().to_string();
            let words = ["report", &file, "--metric", counter, "--format", "json"];
            let counted = Tare::this().run(&words);
            assert_eq!(counted.err.contains("has no values called"), absent, "{counter}: {losses:?}");
        }
        assert_eq!(report(&file, &[])["metric"]["kind"], "wall-time", "times come first");
        target.finish();
    }
}
