//! Heap dumps of HotSpot and snapshots of ours, of a program whose objects are known: what `tare
//! heap` tells of them is the truth, and the same of both.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, demo_classes, env, on_each_jdk};

/// Lines of a terminal of ordinary size.
const SCREEN: usize = 40;

/// Has HotSpot dump its heap.
fn dump(pid: u32, file: &Path) {
    let jcmd = env().javac.home.join("bin/jcmd");
    let words = [pid.to_string(), "GC.heap_dump".to_owned(), file.display().to_string()];
    let said = Command::new(jcmd).args(words).output().expect("jcmd runs");
    assert!(file.exists(), "no dump: {}", String::from_utf8_lossy(&said.stdout));
}

/// What `tare heap` answers.
fn ask(file: &Path, words: &[&str]) -> Value {
    let file = file.display().to_string();
    let all: Vec<&str> = ["heap", &file].into_iter().chain(words.iter().copied()).collect();
    Tare::this().run(&[&all[..], &["--json"]].concat()).json()
}

/// What the largest object of a query retains.
fn retained(file: &Path, query: &str) -> u64 {
    let answer = ask(file, &["query", query]);
    answer["largest"][0]["retained"].as_u64().unwrap_or_else(|| panic!("{query}: {answer}"))
}

/// How the steps of the chain to the largest instance of a class refer to each other.
fn way(file: &Path, class: &str) -> Vec<String> {
    let answer = ask(file, &["path", class]);
    let steps = answer["paths"][0]["path"]["steps"].as_array().expect("steps");
    steps.iter().map(|step| step["by"].as_str().expect("a text").to_owned()).collect()
}

/// The bytes of an array of bytes.
fn bytes(length: u64) -> u64 {
    (16 + length).next_multiple_of(8)
}

fn check(file: &Path) {
    assert_eq!(retained(file, "class=Shapes$Link"), 1000 * 24);
    assert_eq!(way(file, "Shapes$Link"), ["", "static list"]);
    // The map, its table, and an entry, a key and an array for each.
    let map = 48 + (16 + 256 * 4) + 123 * (32 + 16 + bytes(1000));
    assert_eq!(retained(file, "class=java.util.HashMap field.size=123"), map);
    assert_eq!(retained(file, "class=Shapes$Outer"), 16 + bytes(50_000));
    assert_eq!(way(file, "Shapes$Outer"), ["", "static inner", "this$0"]);
    // What two hold is nobody's of them.
    assert_eq!(retained(file, "class=Shapes$Shared"), 16 + bytes(70_000));
    let holders = ask(file, &["path", "Shapes$Shared"]);
    assert!(holders["paths"][0]["path"]["steps"][1]["retained"].as_u64() < Some(1000), "{holders}");
    check_fields(file);
    check_holders(file);
    check_soft(file);
}

fn check_fields(file: &Path) {
    let open = ask(file, &["query", "class=Shapes$Order field.state=OPEN"]);
    assert_eq!(open["objects"], 10, "{open}");
    let named = ask(file, &["query", "class=Shapes$Order field.name=order-17 field.number>=17"]);
    assert_eq!(named["objects"], 1, "{named}");
}

fn check_holders(file: &Path) {
    let suspects = ask(file, &["suspects", "--least", "1"]);
    let find = |part: &str| {
        let all = suspects.as_array().expect("a list").iter();
        let found = all.clone().find(|one| one["holder"].as_str().expect("a text").contains(part));
        found.unwrap_or_else(|| panic!("no {part} in {suspects}")).clone()
    };
    let notes = find("ThreadLocal Shapes.NOTES in 2 threads");
    let two = 2 * (bytes(100_000) + 32);
    assert!(notes["retained"].as_u64() >= Some(two), "{notes}");
    let variable = find("variables of Shapes.hold");
    assert!(variable["retained"].as_u64() >= Some(bytes(300_000)), "{variable}");
    assert_eq!(find("static Shapes.MAP")["collection"]["class"], "java.util.HashMap");
    let threads = ask(file, &["threads"]);
    let holder = threads.as_array().expect("a list").iter().find(|row| row["name"] == "holder");
    let holder = holder.unwrap_or_else(|| panic!("no holder in {threads}"));
    assert!(holder["retained_by_locals"].as_u64() >= Some(bytes(300_000)), "{holder}");
    let loaders = ask(file, &["loaders"]);
    let twice = loaders.as_array().expect("a list").iter().filter(|row| row["copies"] == 2);
    assert_eq!(twice.count(), 2, "{loaders}");
}

fn check_soft(file: &Path) {
    let soft = |words: &[&str]| {
        let answer = ask(file, words);
        answer["reachable"]["soft"]["bytes"].as_u64().expect("a number")
    };
    let (apart, held) = (soft(&["overview"]), soft(&["overview", "--keep", "soft"]));
    assert!(apart >= bytes(200_000), "{apart}");
    assert_eq!(held, 0);
}

/// Objects and bytes by class.
fn sizes(file: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in ask(file, &["histo"]).as_array().expect("a list") {
        let number = |key: &str| row[key].as_u64().expect("a number");
        let sum = sums.entry(row["name"].as_str().expect("a text").to_owned()).or_default();
        sum.0 += number("all_objects");
        sum.1 += number("all_bytes");
    }
    sums
}

/// What a dump does not have is computed, and what a snapshot has is the truth.
fn compare_sizes(jdk: &Jdk, options: &[&str]) {
    let scratch = Scratch::new();
    let mut builder = Target::java(jdk).vm("-Xmx64m").vm("-XX:+UseSerialGC");
    for option in options {
        builder = builder.vm(option);
    }
    let target = builder.main("Shapes").start();
    let (hprof, file) = (scratch.join("x.hprof"), scratch.join("x.tareheap"));
    dump(target.pid(), &hprof);
    let (pid, path) = (target.pid().to_string(), file.display().to_string());
    Tare::this().run(&["heap", &pid, "-o", &path]).ok();
    let (computed, true_ones) = (sizes(&hprof), sizes(&file));
    // Threads have fields that are apart from each other on purpose, or that the JVM adds; and what
    // is between the static fields of a class is not known.
    let is_apart = |name: &str| {
        ["Thread", "ReferenceHandler"].iter().any(|part| name.contains(part))
            || name == "java.lang.Class"
    };
    let mut compared = 0;
    for (name, (objects, bytes)) in &computed {
        let Some((same, truth)) = true_ones.get(name).filter(|_| !is_apart(name)) else {
            continue;
        };
        if objects == same {
            assert_eq!(bytes, truth, "{name} of {options:?}");
            compared += 1;
        }
    }
    assert!(compared > 200, "only {compared} classes could be compared");
}

/// How many a progress line of the demo tells.
fn orders(line: &str) -> u64 {
    let number = line.split_whitespace().find_map(|word| word.strip_prefix("orders="));
    number.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no orders in {line}"))
}

on_each_jdk! {
    fn sizes_in_a_dump_are_those_of_the_jvm(jdk) {
        compare_sizes(jdk, &[]);
        compare_sizes(jdk, &["-XX:-UseCompressedOops"]);
        if jdk.major >= 25 {
            let compact = ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"];
            compare_sizes(jdk, &compact);
        }
    }

    fn what_grows_is_named_while_it_runs(jdk) {
        let mut command =
            Target::java(jdk).vm("-Xmx256m").class_path(demo_classes()).main("shop.Main");
        for word in ["--threads=1", "--leak=fast", "--quiet", "--rate=2000", "--duration=1500"] {
            command = command.arg(word);
        }
        let target = command.start();
        let pid = target.pid().to_string();
        let words = ["heap", &pid, "watch", "--every", "2s", "--times", "3"];
        let outcome = Tare::this().run(&words);
        let part = "static shop.leak.Sessions.OPEN: java.util.concurrent.ConcurrentHashMap";
        assert!(outcome.ok().contains(part), "{}", outcome.describe());
    }

    fn what_is_told_of_a_dump_is_the_truth(jdk) {
        let scratch = Scratch::new();
        let target = Target::java(jdk).vm("-Xmx64m").main("Shapes").start();
        let hprof = scratch.join("x.hprof");
        dump(target.pid(), &hprof);
        check(&hprof);
    }

    fn a_snapshot_tells_the_same(jdk) {
        let scratch = Scratch::new();
        let target = Target::java(jdk).vm("-Xmx64m").main("Shapes").start();
        let (file, again) = (scratch.join("x.tareheap"), scratch.join("again.hprof"));
        let pid = target.pid().to_string();
        Tare::this().run(&["heap", &pid, "-o", &file.display().to_string()]).ok();
        check(&file);
        // And so does a file that is made of it.
        let words = ["heap", &file.display().to_string(), "export", &again.display().to_string()];
        Tare::this().run(&words).ok();
        check(&again);
    }

    fn the_leak_of_the_demo_is_named_in_the_first_screen_of_a_dump(jdk) {
        let scratch = Scratch::new();
        // As much as it leaks in a minute is far from all of the heap: however long the dump is in
        // coming, there is something to be named, and memory is left.
        let mut command =
            Target::java(jdk).vm("-Xmx512m").class_path(demo_classes()).main("shop.Main");
        let words =
            ["--threads=2", "--leak=fast", "--rate=2000", "--report-every=1", "--duration=1500"];
        for word in words {
            command = command.arg(word);
        }
        let mut target = command.start();
        while orders(&target.wait_for("progress")) < 10_000 {}
        let hprof = scratch.join("x.hprof");
        dump(target.pid(), &hprof);
        let outcome = Tare::this().run(&["heap", &hprof.display().to_string()]);
        let screen: Vec<&str> = outcome.ok().lines().take(SCREEN).collect();
        let screen = screen.join("\n");
        for part in ["static shop.leak.Sessions.OPEN", "ThreadLocal shop.leak.AuditTrail.NOTES"] {
            assert!(screen.contains(part), "no {part} in\n{screen}");
        }
    }
}
