//! Heap dumps of HotSpot and snapshots of ours, of a program whose objects are known: what `tare
//! heap` tells of them is the truth, and the same of both.

use crate::heap::shapes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tare_heapdump::{FieldValue, Heap, Inside, Node, Options, Silent};
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, demo_classes, env, on_each_jdk};

/// Lines of a terminal of ordinary size.
const SCREEN: usize = 40;

/// Has HotSpot dump its heap.
fn dump(pid: u32, file: &Path) {
    dump_with(pid, &[], file);
}

fn dump_with(pid: u32, options: &[&str], file: &Path) {
    let mut jcmd = Command::new(env().javac.home.join("bin/jcmd"));
    jcmd.args([&pid.to_string(), "GC.heap_dump"]).args(options).arg(file);
    let said = jcmd.output().expect("jcmd runs");
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

/// What is inside an object, in words that mean the same in every file of one JVM.
fn content(heap: &Heap, node: Node) -> Vec<String> {
    let value = |value: &tare_heapdump::Value| match value {
        tare_heapdump::Value::Object(node) => format!("@{:x}", heap.address(*node)),
        value => value.to_string(),
    };
    match heap.inside(node, 0, 1000).expect("it can be read") {
        Inside::Fields(fields) => {
            let text = |field: &FieldValue| format!("{} = {}", field.name, value(&field.value));
            let mut all: Vec<String> = fields.iter().map(text).collect();
            all.sort();
            all
        }
        Inside::Elements(length, values) => {
            let mut all: Vec<String> = values.iter().map(value).collect();
            all.push(format!("length {length}"));
            all
        }
    }
}

/// One in so many of the JDK's own objects is compared.
const SOME: usize = 20;

/// The copy's graph and HotSpot's own, which is walked in place: objects of one quiet JVM, at the
/// same addresses as long as no collection comes between, are compared by each of their fields.
fn compare_graphs(jdk: &Jdk, collector: &str) {
    let scratch = Scratch::new();
    let target = shapes(jdk, collector).vm("-Xms256m").vm("-XX:-UseAdaptiveSizePolicy").start();
    let (hprof, file) = (scratch.join("x.hprof"), scratch.join("x.tareheap"));
    let (name, path) = (target.name(), file.display().to_string());
    Tare::this().run(&["heap", &name, "-o", &path]).ok();
    dump_with(target.pid(), &["-all"], &hprof);
    target.finish();
    let open = |path: &Path| Heap::open(path, &Options::default(), &Silent).expect("a heap");
    let (ours, theirs) = (open(&file), open(&hprof));
    let (mut compared, mut own, mut different) = (0, 0, Vec::new());
    for (at, node) in ours.nodes().enumerate() {
        let class = &ours.class(node).name;
        // Hidden classes have other names in a dump.
        let is_own = class.starts_with("HeapShapes") && !class.contains("$$");
        // Of a class the two files tell different things beside its static fields. Of the JDK's own
        // objects some will do.
        if class == "java.lang.Class" || !is_own && at % SOME != 0 {
            continue;
        }
        let same = theirs.find(ours.address(node)).filter(|n| theirs.class(*n).name == *class);
        // HotSpot leaves out fields of its own that no Java class declares.
        let has_all =
            |here: Vec<String>, there: Vec<String>| there.iter().all(|f| here.contains(f));
        let is_same =
            same.is_some_and(|same| has_all(content(&ours, node), content(&theirs, same)));
        assert!(is_same || !is_own, "{collector}: {class} @{:x}", ours.address(node));
        compared += 1;
        own += usize::from(is_own);
        if !is_same {
            let there = same.map(|same| content(&theirs, same));
            different.push(format!("{class}: {:?} {there:?}", content(&ours, node)));
        }
    }
    assert!(compared > own + 500 && own > 3000, "{collector}: only {compared}, {own} of its own");
    // Threads of the JDK and of ours went on between the two, and hold other things by then.
    assert!(different.len() * 200 < compared, "{collector}: of {compared}: {different:#?}");
}

/// How many a progress line of the demo tells.
fn orders(line: &str) -> u64 {
    let number = line.split_whitespace().find_map(|word| word.strip_prefix("orders="));
    number.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no orders in {line}"))
}

on_each_jdk! {
    fn the_copy_has_the_graph_that_hotspot_dumps(jdk) {
        for collector in ["Serial", "G1"] {
            compare_graphs(jdk, collector);
        }
    }

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
