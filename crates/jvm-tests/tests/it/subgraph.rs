//! What roots reach is found while the program runs, and counted as if everything had been woven.

use crate::common::assert_no_trace;
use crate::recording::{Counts, Recorded, begin, counted, end, launched, recorded};
use tare_jvm_tests::{Demo, Scratch, Tare, Target, classes, demo_classes, on_each_jdk, wait_until};

/// What a recording under way has counted so far.
pub fn live(jvm: &str) -> Counts {
    let words = ["report", jvm, "--format", "json", "--metric", "invocations", "--top", "100000"];
    let page = Tare::this().run(&words).json();
    let mut counts = Counts::new();
    for method in page["methods"].as_array().expect("methods") {
        let name = method["name"].as_str().expect("a name").to_owned();
        *counts.entry(name).or_default() += method["self"].as_i64().expect("a number");
    }
    counts
}

/// Calls between two moments.
pub fn between(before: &Counts, after: &Counts) -> Counts {
    let less = |(name, n): (&String, &i64)| {
        let n = n - before.get(name).unwrap_or(&0);
        (n != 0).then(|| (name.clone(), n))
    };
    after.iter().filter_map(less).collect()
}

pub fn differences(expected: &Counts, found: &Counts) -> Vec<String> {
    let mut names: Vec<&String> = expected.keys().chain(found.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differ = |name: &&String| expected.get(*name) != found.get(*name);
    let line =
        |name: &String| format!("{name}: {:?}, found {:?}", expected.get(name), found.get(name));
    names.into_iter().filter(differ).map(line).collect()
}

/// Why each of some methods is woven or not.
fn assert_explained(jvm: &str) {
    let explain = |method: &str| Tare::this().run(&["explain", jvm, method]).ok().to_owned();
    for (method, parts) in [
        ("Reach$Root.root", &["woven", "a root"][..]),
        ("Reach$Orders.deeper", &["woven", "called by Reach$Orders.reflected: seen to be called"]),
        ("Reach$Key.hashCode", &["woven", "overrides a method of java.lang.Object"]),
        ("Reach.outside", &["not woven: nothing that ran below a root calls it"]),
    ] {
        let text = explain(method);
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
}

on_each_jdk! {
    /// Comparators, keys, lambdas, proxies, handlers, reflected methods, all made before we came;
    /// classes from a loader that locks; the same methods outside the root. From the second call of
    /// the root on every figure is right.
    fn through_the_jdk_attached(jdk) {
        for scheme in ["lazy", "eager"] {
            let mut target = Target::java(jdk).class_path(classes()).main("Reach").start();
            let name = target.name();
            let mut tell = |line: &str| {
                target.tell(line);
                target.wait_for("done");
                counted(&target.text())
            };
            tell("before");
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            let options = ["--count", "--scheme", scheme, "--root", "Reach$Root.root"];
            let recording = begin(&name, &options, &file);
            let (truth, found) = (tell("go"), live(&name));
            assert!(found.contains_key("Reach$Root.root"), "{found:?}");
            tell("go");
            assert_explained(&name);
            let truth = between(&truth, &tell("go"));
            end(recording);
            assert!(truth.len() > 20, "{truth:?}");
            let mut found = between(&found, &recorded(&file));
            // Those that do not count themselves.
            found.retain(|name, _| truth.contains_key(name));
            assert_eq!(differences(&truth, &found), [""; 0], "{scheme}");
            assert_no_trace(target.pid());
            target.tell("go");
            target.wait_for("done");
        }
    }

    /// Beside a recording for which everything was woven: the same methods and counts.
    fn the_demo_launched(jdk) {
        let program = ["shop.Main", "--orders", "800", "--threads", "2", "--report-every", "0"];
        for trivial in ["--skip-trivial", "--no-skip-trivial"] {
            let options = ["--count", trivial, "--root", "shop.orders.OrderDesk.*"];
            let run = |scheme: &str| {
                launched(jdk, &[&options[..], &["--scheme", scheme]].concat(), demo_classes(), &program)
            };
            let (_, expected) = run("all");
            let (text, found) = run("lazy");
            assert!(expected.len() > 100, "{expected:?}");
            let names = |counts: &Counts| counts.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&expected), names(&found));
            // A machine that was too busy for the first calls is allowed to say so.
            if !text.contains("first calls may be missing") {
                assert_eq!(differences(&expected, &found), [""; 0]);
            }
        }
    }

    /// What is not reachable is left alone, and the report says what was done.
    fn nothing_else_is_woven(jdk) {
        let scratch = Scratch::new();
        let woven = |scheme: &str| {
            let file = scratch.path().join(format!("{scheme}.tare"));
            let mut target = Target::java(jdk).class_path(classes()).main("Truth").start();
            let options = ["--count", "--scheme", scheme, "--root", "Work.unwinding"];
            let recording = begin(&target.name(), &options, &file);
            target.tell("go");
            target.wait_for("done");
            recording.signal(rustix::process::Signal::INT);
            let text = recording.wait().ok().to_owned();
            let page = Tare::this().run(&["report", file.to_str().expect("a path")]).ok().to_owned();
            assert!(page.contains("were not woven and not counted"), "{page}");
            assert_eq!(page.contains("of them never ran below a root"), scheme == "lazy", "{page}");
            let counts = Recorded::open(&file).all_counts();
            assert!(counts.contains_key("Work.afterTheFall"), "{counts:?}");
            assert!(!counts.contains_key("Work.recursion"), "{counts:?}");
            let words: Vec<&str> = text.split_whitespace().collect();
            let at = words.windows(2).position(|w| w == ["methods", "woven;"]).expect("a count");
            words[at - 1].parse::<u64>().expect("a number")
        };
        let (lazy, all) = (woven("lazy"), woven("all"));
        assert!(lazy < all / 2, "{lazy} of {all}");
    }

    /// A server goes on answering while one of its methods is looked at, again and again.
    fn a_server_under_load(jdk) {
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let scratch = Scratch::new();
        for _ in 0..3 {
            let file = scratch.path().join("x.tare");
            let recording = begin(&name, &["--root", "shop.orders.OrderDesk.handle"], &file);
            wait_until("orders were counted", || {
                live(&name).get("shop.orders.OrderDesk.handle").is_some_and(|n| *n > 20)
            });
            demo.check_answers();
            end(recording);
            let counts = recorded(&file);
            assert!(counts.len() > 50, "{counts:?}");
            demo.check_answers();
            assert_no_trace(demo.target.pid());
        }
        demo.finish();
    }

    /// Each session begins anew, and leaves nothing to the next.
    fn sessions_one_after_the_other(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Reach").start();
        let name = target.name();
        let scratch = Scratch::new();
        for round in 0..3 {
            let file = scratch.path().join("x.tare");
            let recording = begin(&name, &["--root", "Reach$Root.root"], &file);
            for _ in 0..2 {
                target.tell("go");
                target.wait_for("done");
            }
            wait_until("the root was seen", || live(&name).contains_key("Reach$Root.root"));
            end(recording);
            let counts = recorded(&file);
            assert_eq!(counts["Reach$Root.root"], 2, "round {round}");
            assert_no_trace(target.pid());
        }
    }
}
