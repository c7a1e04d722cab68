//! Recordings of classes against a program whose loads are scripted: why each class was loaded, what
//! it cost by the JVM's own account, which are unloaded by every collector; stopped in the middle,
//! killed, and flooded.
//!
//! No test asserts a time that the machine's load could change: what was recorded is compared with
//! what the JVM itself has measured meanwhile.

use crate::common::assert_no_trace;
use crate::recording::Recorded;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tare_jvm_tests::{
    Control, Jdk, Running, Scratch, Tare, Target, classes, control_socket, on_each_jdk, wait_until,
};
use tare_profile::facts::{Key, keys};
use tare_profile::{EventTable, FieldValue, Profile, ValueKind};
use tare_protocol::{ClassPlan, EngineName, EnginePlan, Request, Response};

fn truth(jdk: &Jdk, options: &[&str]) -> Target {
    let target = Target::java(jdk).class_path(classes()).main("ClassTruth");
    options.iter().fold(target, |target, option| target.vm(option)).start()
}

/// A recording of classes under way.
struct Session {
    recording: Running,
}

impl Session {
    fn begin(target: &Target, words: &[&str], file: &Path) -> Self {
        let (file, name) = (file.display().to_string(), target.name());
        let words = [&["record", "--classes", "-o", &file], words, &[&name]].concat();
        let recording = Tare::this().start(&words);
        control_socket(target.pid());
        wait_until("classes are recorded", || {
            let status = Tare::this().status(&name);
            status["engines"].as_array().is_some_and(|on| on.contains(&"classes".into()))
        });
        Session { recording }
    }

    /// As Ctrl-C does it.
    fn stop(self, file: &Path) -> Recorded {
        self.recording.signal(Signal::INT);
        self.recording.wait().ok();
        Recorded::open(file)
    }
}

fn table<'p>(profile: &'p Profile, name: &str) -> &'p EventTable {
    let mut tables = profile.all_events();
    tables.find(|(_, table)| table.kind().name == name).expect("a table").1
}

fn text(profile: &Profile, table: &EventTable, row: usize, name: &str) -> String {
    match table.field(row, table.field_named(name).expect("a field")) {
        Some(FieldValue::Text(id)) => profile.strings.get(id).to_owned(),
        other => panic!("{name} is {other:?}"),
    }
}

fn number(table: &EventTable, row: usize, name: &str) -> i64 {
    match table.field(row, table.field_named(name).expect("a field")) {
        Some(FieldValue::Integer(value)) => value,
        other => panic!("{name} is {other:?}"),
    }
}

/// A class that was loaded.
#[derive(Debug)]
struct Load {
    class: String,
    loader: String,
    source: String,
    number: i64,
    /// Names of methods, innermost first, without the class itself.
    stack: Vec<String>,
    thread: String,
}

fn loads(profile: &Profile) -> Vec<Load> {
    let table = table(profile, "class-load");
    let load = |(row, event): (usize, tare_profile::Event)| {
        let frames = profile.contexts.frames(event.context);
        let names = frames.map(|frame| profile.method_name(profile.frames.get(frame).method));
        let class = text(profile, table, row, "class");
        let stack: Vec<String> = names.collect();
        assert_eq!(stack[0], class, "the class stands innermost");
        Load {
            class,
            loader: text(profile, table, row, "loader"),
            source: text(profile, table, row, "source"),
            number: number(table, row, "number"),
            stack: stack[1..].to_vec(),
            thread: profile.thread_name(event.thread),
        }
    };
    table.events().enumerate().map(load).collect()
}

/// How many classes of a name are in a table.
fn rows_of(profile: &Profile, name: &str, class: &str) -> usize {
    let table = table(profile, name);
    let rows = (0..table.len()).filter(|row| text(profile, table, *row, "class") == class);
    rows.count()
}

/// What each class has cost, by its number, in nanoseconds.
fn costs(profile: &Profile) -> BTreeMap<i64, i64> {
    let table = table(profile, "class-cost");
    let mut costs = BTreeMap::new();
    for row in 0..table.len() {
        let cost = ["search", "define", "link", "verify"].map(|name| number(table, row, name));
        *costs.entry(number(table, row, "number")).or_default() += cost.iter().sum::<i64>();
    }
    costs
}

/// The counters that HotSpot keeps in a file, read here without a word of Tare's code: those whose
/// names begin with `java.cls.` and `sun.cls.`.
fn counters(pid: u32) -> BTreeMap<String, u64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("a process");
    let line = maps.lines().find(|line| line.contains("/hsperfdata_")).expect("counters");
    let file = line.split_whitespace().last().expect("a path");
    let memory = std::fs::read(file).expect("the file of counters");
    let word = |at: usize| {
        let bytes = memory[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes) as usize
    };
    let mut counters = BTreeMap::new();
    let mut at = word(24);
    for _ in 0..word(28) {
        let name = memory[at + word(at + 4)..].split(|byte| *byte == 0).next().expect("a name");
        let name = String::from_utf8_lossy(name).into_owned();
        if name.contains(".cls.") {
            let value = at + word(at + 16);
            let bytes = memory[value..value + 8].try_into().expect("eight bytes");
            counters.insert(name, u64::from_le_bytes(bytes));
        }
        at += word(at);
    }
    counters
}

/// What of the JVM's time is told by class.
const TIMES: [&str; 6] = [
    "sun.cls.appClassLoadTime.self",
    "sun.cls.defineAppClassTime.self",
    "sun.cls.sysClassLoadTime",
    "sun.cls.sharedClassLoadTime",
    "sun.cls.classLinkedTime.self",
    "sun.cls.classVerifyTime.self",
];

fn jvm_time(pid: u32) -> u64 {
    let counters = counters(pid);
    TIMES.iter().map(|name| counters[*name]).sum()
}

fn jvm_loads(pid: u32) -> u64 {
    let counters = counters(pid);
    counters["java.cls.loadedClasses"] + counters["java.cls.sharedLoadedClasses"]
}

const COLLECTORS: [&str; 5] = [
    "-XX:+UseSerialGC",
    "-XX:+UseParallelGC",
    "-XX:+UseG1GC",
    "-XX:+UseZGC",
    "-XX:+UseShenandoahGC",
];

/// Those that this JDK has.
fn collectors(jdk: &Jdk) -> Vec<&'static str> {
    let has = |option: &&str| {
        let mut java = Command::new(jdk.java());
        java.args([option, "-version"]).stdout(Stdio::null()).stderr(Stdio::null());
        java.status().is_ok_and(|status| status.success())
    };
    let found: Vec<&str> = COLLECTORS.into_iter().filter(has).collect();
    assert!(found.len() >= 3, "{found:?}");
    found
}

/// The sum of the series of a kind.
fn total(profile: &Profile, kind: &ValueKind) -> i64 {
    let mut series = profile.all_series();
    series.find(|(_, series)| series.info().kind == *kind).expect("a series").1.total()
}

const PLUGIN: &str = "ClassTruth$Plugin";

on_each_jdk! {
    /// Each class has the stack that needed it: also superclasses, what an initialiser loads, what
    /// is asked for by name, and hidden classes.
    fn causes(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("classes.tare");
        let mut target = truth(jdk, &[]);
        let session = Session::begin(&target, &[], &file);
        for what in ["nested", "initialiser", "named", "lambda", "verified"] {
            target.ask(what);
        }
        let recorded = session.stop(&file);
        let loads = loads(&recorded.profile);
        let costs = costs(&recorded.profile);
        for (class, method) in [
            ("Leaf", "nested"),
            ("Middle", "nested"),
            ("Base", "nested"),
            ("Face", "nested"),
            ("Init", "initialiser"),
            ("FromInit", "initialiser"),
            ("Named", "named"),
            ("Work", "lambda"),
            ("Judged", "verified"),
            ("Narrow", "verified"),
            ("Wide", "verified"),
        ] {
            let name = format!("ClassTruth${class}");
            let found: Vec<&Load> = loads.iter().filter(|load| load.class == name).collect();
            let [load] = found[..] else { panic!("{name}: {found:#?}") };
            let method = format!("ClassTruth.{method}");
            let own = load.stack.iter().find(|frame| frame.starts_with("ClassTruth"));
            let expected = match class {
                "FromInit" => "ClassTruth$Init.<clinit>",
                _ => method.as_str(),
            };
            assert_eq!(own.map(String::as_str), Some(expected), "{load:#?}");
            assert!(load.stack.contains(&method), "{load:#?}");
            assert_eq!((load.loader.as_str(), load.thread.as_str()), ("app", "main"));
            let directory = classes().file_name().expect("a name").to_string_lossy();
            assert!(load.source.contains(&*directory), "{load:#?}");
            assert!(costs.get(&load.number).is_some_and(|cost| *cost > 0), "{load:#?}");
        }
        // A superclass is told of before the class that needed it, and neither is part of the other.
        let place = |class: &str| loads.iter().position(|load| load.class.ends_with(class));
        assert!(place("$Base") < place("$Middle") && place("$Middle") < place("$Leaf"));
        let hidden = loads.iter().find(|load| load.class.starts_with("ClassTruth$$Lambda"));
        let hidden = hidden.expect("a hidden class");
        assert!(hidden.stack.contains(&"ClassTruth.lambda".to_owned()), "{hidden:#?}");
        assert!(recorded.losses().is_empty(), "{:?}", recorded.losses());
        let said = Tare::this().run(&["report", &file.display().to_string(), "--classes"]);
        assert!(said.ok().contains("ClassTruth.nested"), "{}", said.out);
        target.finish();
    }

    /// Every collector that there is: as many loaders as were dropped are seen to go, and no more.
    fn unloads(jdk) {
        for collector in collectors(jdk) {
            let scratch = Scratch::new();
            let file = scratch.join("classes.tare");
            let mut target = truth(jdk, &[collector]);
            target.ask("keep 3");
            let session = Session::begin(&target, &[], &file);
            assert!(target.ask("drop 50").ends_with("dropped 50"));
            let mut control = Control::connect(target.pid());
            control.greet();
            wait_until("50 classes are seen to go", || {
                control.status().classes().is_some_and(|classes| classes.unloads >= 50)
            });
            drop(control);
            let recorded = session.stop(&file);
            let profile = &recorded.profile;
            let count = |table: &str| rows_of(profile, table, PLUGIN);
            let counts = ["class-load", "class-unload", "class-present"].map(count);
            assert_eq!(counts, [50, 50, 3], "{collector}");
            let said = Tare::this().run(&["report", &file.display().to_string(), "--format", "json"]);
            let loaders = said.json()["classes"]["loaders"].clone();
            let loaders = loaders.as_array().expect("a list").iter();
            let own: Vec<_> =
                loaders.filter(|one| one["name"].as_str().is_some_and(|n| n.contains("Own"))).collect();
            let sum = |key: &str| own.iter().map(|one| one[key].as_u64().unwrap_or(0)).sum::<u64>();
            assert_eq!(["loaders", "alive", "unloads"].map(sum), [53, 3, 50], "{collector} {own:?}");
            target.finish();
        }
    }

    /// What is told of all classes together is what the JVM has measured, to 5 %, and as many loads
    /// as it has counted.
    fn costs_are_those_of_the_jvm(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("classes.tare");
        let mut target = truth(jdk, &[]);
        // Whatever is loaded for the first time is loaded here.
        target.ask("flood 1 10");
        let session = Session::begin(&target, &[], &file);
        let (time, loads) = (jvm_time(target.pid()), jvm_loads(target.pid()));
        target.ask("flood 1 2000");
        target.ask("nested");
        let (time, loads) = (jvm_time(target.pid()) - time, jvm_loads(target.pid()) - loads);
        let recorded = session.stop(&file);
        let fact = |key: Key<Duration>| recorded.fact(key).expect("a time");
        let nanos = |key| fact(key).as_nanos() as f64;
        let measured = nanos(keys::CLASS_TIME_BY_JVM);
        let time = time as f64;
        assert!((measured / time - 1.0).abs() < 0.05, "{measured} of {time}");
        let whole = nanos(keys::CLASS_TIME) + nanos(keys::CLASS_TIME_OWN)
            + nanos(keys::CLASS_TIME_TWICE);
        assert!((whole / measured - 1.0).abs() < 0.05, "{whole} of {measured}");
        assert!(nanos(keys::CLASS_TIME) > 0.0);
        let told = recorded.fact(keys::CLASSES_LOADED).expect("a count");
        assert_eq!(Some(told), recorded.fact(keys::CLASSES_LOADED_BY_JVM));
        // The recording may have begun before we looked, or ended after it.
        assert!(told >= loads && told <= loads + 50, "{told} of {loads}");
        assert!(loads >= 2004, "{loads}");
        let sum = |kind| total(&recorded.profile, &kind).cast_unsigned();
        assert_eq!(sum(ValueKind::ClassLoads), told);
        assert_eq!(u128::from(sum(ValueKind::ClassLoadTime)), fact(keys::CLASS_TIME).as_nanos());
        target.finish();
    }

    /// A program that is started is told from its first class on, beside samples; its first moments
    /// are in the report.
    fn launched(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("all.tare");
        let (out, java) = (file.display().to_string(), jdk.java().display().to_string());
        let classes = classes().display().to_string();
        let words = ["record", "--classes", "--cpu", "-o", &out];
        // The recording's file is there when all engines are on.
        let on = format!("file {out}");
        let program = ["--", &java, "-cp", &classes, "ClassTruth", &on, "nested", "keep 2"];
        Tare::this().run(&[&words[..], &program].concat()).ok();
        let recorded = Recorded::open(&file);
        let loads = loads(&recorded.profile);
        // On a machine that is too busy the program does not wait until it is recorded.
        for main in loads.iter().filter(|load| load.class == "ClassTruth") {
            let launcher = main.stack.iter().any(|frame| frame.contains("LauncherHelper"));
            assert!(launcher, "{main:#?}");
        }
        let leaf = loads.iter().find(|load| load.class == "ClassTruth$Leaf");
        assert!(leaf.is_some_and(|leaf| leaf.stack.contains(&"ClassTruth.nested".to_owned())));
        assert_eq!(rows_of(&recorded.profile, "class-load", PLUGIN), 2);
        let told = recorded.fact(keys::CLASSES_LOADED);
        assert_eq!(told, recorded.fact(keys::CLASSES_LOADED_BY_JVM));
        let said = Tare::this().run(&["report", &out, "--classes"]);
        let said = said.ok();
        assert!(said.contains("Start-up") && said.contains("More than once"), "{said}");
        let said = Tare::this().run(&["report", &out, "--format", "json"]).json();
        assert!(said["classes"]["start_up"].as_array().is_some_and(|steps| !steps.is_empty()));
        assert_eq!(said["classes"]["duplicates"][0]["class"], PLUGIN);
        for metric in ["class-loads", "class-load-time"] {
            let graph = scratch.join("graph.html").display().to_string();
            let words = ["export", &out, "--metric", metric, "-o", &graph];
            Tare::this().run(&words).ok();
        }
    }

    /// A front end that is killed in the middle of many loads leaves nothing switched on.
    fn killed(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("classes.tare");
        let mut target = truth(jdk, &[]);
        let mut session = Session::begin(&target, &[], &file);
        target.tell("flood 2 1000");
        let name = target.name();
        let mut control = Control::connect(target.pid());
        control.greet();
        wait_until("many are loaded", || {
            control.status().classes().is_some_and(|classes| classes.loads >= 300)
        });
        drop(control);
        session.recording.kill();
        target.wait_for("flood 2 1000: loaded 2000");
        wait_until("all is switched off again", || {
            let status = Tare::this().status(&name);
            status["engines"].as_array().is_some_and(Vec::is_empty)
        });
        let mut control = Control::connect(target.pid());
        control.greet();
        let before = control.status();
        target.ask("flood 2 100");
        assert_eq!(control.status().events, before.events, "the JVM still tells of classes");
        assert_eq!(control.status().panics, 0);
        drop(control);
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(target.pid());
        target.finish();
    }

    /// Recordings begin and end while four threads load as fast as they can.
    fn in_the_middle(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("classes.tare");
        let mut target = truth(jdk, &[]);
        let name = target.name();
        target.tell("flood 4 1500");
        for _ in 0..3 {
            let out = file.display().to_string();
            Tare::this().run(&["record", "--classes", "-d", "300ms", "-o", &out, &name]).ok();
            let recorded = Recorded::open(&file);
            let told = recorded.fact(keys::CLASSES_LOADED).expect("a count");
            let unloaded = recorded.fact(keys::CLASSES_UNLOADED).expect("a count");
            assert!(recorded.losses().is_empty(), "{:?}", recorded.losses());
            assert_eq!(loads(&recorded.profile).len() as u64, told);
            assert!(unloaded <= told + recorded.fact(keys::CLASSES_PRESENT).expect("a count"));
        }
        target.wait_for("flood 4 1500: loaded 6000");
        assert_no_trace(target.pid());
        target.finish();
    }

    /// Nobody reads: what finds no room is counted, and the program goes on.
    fn nobody_reads(jdk) {
        let mut target = truth(jdk, &[]);
        let name = target.name();
        // Brings the agent in, and leaves it there.
        Tare::this().status(&name);
        let mut control = Control::connect(target.pid());
        control.greet();
        let plan = ClassPlan { depth: 64, memory: 1 };
        let started = control.ask(&Request::Start(EnginePlan::Classes(Box::new(plan))));
        assert!(matches!(started, Response::Ok), "{started:?}");
        target.ask("flood 2 6000");
        let status = control.status();
        let status = status.classes().expect("classes are recorded");
        assert!(status.lost.iter().any(|lost| lost.contains("too slowly")), "{:?}", status.lost);
        assert!(status.loads < 12_000, "{}", status.loads);
        control.ask(&Request::Stop(EngineName::Classes));
        assert_eq!(control.status().panics, 0);
        drop(control);
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(target.pid());
        target.finish();
    }
}
