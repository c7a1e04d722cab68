//! What is recorded, in other tools' formats: one recording has one total in all of them, by what
//! Tare says and by the readers that people use; deep recursion stays small; a dump has the format
//! of its name.

use crate::recording::Recorded;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tare_jvm_tests::{
    Demo, Scratch, Tare, classes, classes_in, control_socket, env, jdk, skip, wait_until,
};
use tare_profile::{Safepoint, collections, safepoints};

/// Recurses nine thousand calls deep while another thread waits now and then.
const DEEP: &str = r#"
public class Deep {
    static volatile long sink;
    static long work(int n) { long x = n; for (int i = 0; i < 2000; i++) x = x * 31 + (x >>> 7); return x; }
    static long walk(int n) { long x = work(n); return n == 0 ? x : x + walk(n - 1); }
    static void wait(int n) { try { Thread.sleep(n); } catch (InterruptedException e) { } }
    public static void main(String[] a) throws Exception {
        int rounds = Integer.parseInt(a[0]);
        Thread deep = new Thread(null, () -> { for (int i = 0; i < rounds; i++) sink += walk(8990); }, "deep", 1L << 30);
        Thread other = new Thread(() -> { for (int i = 0; i < rounds; i++) { sink += work(i); wait(5); } }, "other");
        deep.start(); other.start(); deep.join(); other.join();
    }
}
"#;

const ENDINGS: [&str; 8] =
    ["collapsed", "html", "pb.gz", "jfr", "speedscope.json", "firefox.json", "otlp", "callgrind"];

/// A recording of the program, made with these options.
fn recorded(scratch: &Scratch, name: &str, options: &[&str], rounds: &str) -> PathBuf {
    let classes = scratch.join("classes");
    if !classes.exists() {
        fs::create_dir_all(&classes).unwrap();
        classes_in(&classes, "Deep", DEEP);
    }
    let path = scratch.join(&format!("{name}.tare"));
    let (java, classes) = (jdk().java().display().to_string(), classes.display().to_string());
    let file = path.display().to_string();
    let head = [&["record", "-o", &file], options, &["--"]].concat();
    let program = ["-cp", &classes, "Deep", rounds];
    Tare::this().run(&[&head[..], &[&java], &program[..]].concat()).ok();
    path
}

/// Exports, and says what total Tare tells of it, as text for people.
fn export(recording: &Path, ending: &str) -> (PathBuf, String) {
    let path = recording.with_extension(ending);
    let (from, to) = (recording.display().to_string(), path.display().to_string());
    let outcome = Tare::this().run(&["export", &from, "-o", &to]);
    outcome.ok();
    let told = outcome.err.rsplit_once(" bytes, ").unwrap_or_else(|| panic!("{}", outcome.err)).1;
    (path, told.split_once(" of ").unwrap().0.to_owned())
}

/// What a program says of a file; `None`, loudly, if it is not here.
fn said(program: &Path, words: &[&str], file: &Path) -> Option<String> {
    let Ok(output) = Command::new(program).args(words).arg(file).output() else {
        skip("the total of an export", &format!("there is no {}", program.display()));
        return None;
    };
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {words:?}: {out}{err}", program.display());
    Some(out)
}

/// The samples that `jfr view hot-methods` shows, of its first method and of all that it lists, and
/// how many there are in the file; `None` without a JDK that has that view.
fn hot_methods(file: &Path) -> Option<(i64, i64, i64)> {
    let homes = env().jdks.iter().filter(|jdk| jdk.major >= 21).map(|jdk| jdk.java());
    let jfr = homes.map(|java| java.with_file_name("jfr")).find(|jfr| jfr.is_file());
    let Some(jfr) = jfr else {
        skip("jfr view hot-methods", "there is no JDK 21 or later with its tools");
        return None;
    };
    let out = said(&jfr, &["view", "--width", "200", "hot-methods"], file)?;
    let samples: Vec<i64> = out
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().rev();
            words.next().filter(|word| word.ends_with('%'))?;
            words.next()?.parse().ok()
        })
        .collect();
    let summary = said(&jfr, &["summary"], file)?;
    let line = summary.lines().find(|line| line.contains("jdk.ExecutionSample "));
    let count = line.and_then(|line| line.split_whitespace().nth(1)).expect("a count");
    Some((samples[0], samples.iter().sum(), count.parse().expect("a number")))
}

/// The total that a flame graph of collapsed stacks has by inferno.
fn by_inferno(text: &[u8]) -> i64 {
    let mut svg = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_reader(&mut options, text, &mut svg).expect("a flame graph");
    let svg = String::from_utf8(svg).expect("text");
    let all = svg.split_once("<title>all (").expect("all").1.split_once(" samples").unwrap().0;
    all.replace(',', "").parse().expect("a number")
}

/// Totals of an OTLP file by type of value, as code that prost makes of its messages reads them.
fn by_protobuf(bytes: &[u8]) -> BTreeMap<String, i64> {
    let data = <otlp::ProfilesData as prost::Message>::decode(bytes).expect("profiles");
    let strings = data.dictionary.expect("a dictionary").strings;
    let mut types = BTreeMap::new();
    for resource in data.resources {
        for profile in resource.scopes.into_iter().flat_map(|scope| scope.profiles) {
            let kind = profile.sample_type.expect("a type of values").name;
            let sum = profile.samples.iter().flat_map(|sample| &sample.values).sum();
            let twice = types.insert(strings[kind as usize].clone(), sum);
            assert_eq!(twice, None, "two profiles of one type would be added up");
        }
    }
    types
}

/// What of OpenTelemetry's profiles (v1development) leads to values, written down from its own
/// description of the messages.
mod otlp {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ProfilesData {
        #[prost(message, repeated, tag = "1")]
        pub resources: Vec<ResourceProfiles>,
        #[prost(message, optional, tag = "2")]
        pub dictionary: Option<ProfilesDictionary>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ProfilesDictionary {
        #[prost(string, repeated, tag = "5")]
        pub strings: Vec<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ResourceProfiles {
        #[prost(message, repeated, tag = "2")]
        pub scopes: Vec<ScopeProfiles>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ScopeProfiles {
        #[prost(message, repeated, tag = "2")]
        pub profiles: Vec<Profile>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, optional, tag = "1")]
        pub sample_type: Option<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub samples: Vec<Sample>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ValueType {
        #[prost(int32, tag = "1")]
        pub name: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(int64, repeated, tag = "4")]
        pub values: Vec<i64>,
    }
}

/// The script of speedscope's page, from npm; kept where fetched runtimes are.
fn speedscope() -> Option<PathBuf> {
    const VERSION: &str = "1.25.0";
    let cache = std::env::var_os("TARE_CACHE").filter(|cache| !cache.is_empty());
    let cache = cache.map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    let home = cache.join(format!("npm-speedscope-{VERSION}"));
    let release = home.join("node_modules/speedscope/dist/release");
    if !release.is_dir() {
        let package = format!("speedscope@{VERSION}");
        let words = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
        let _ = Command::new("npm").args(words).arg(&home).arg(package).output();
    }
    let is_bundle = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("speedscope-") && name.ends_with(".js")
    };
    let entries = fs::read_dir(&release).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).find(is_bundle)
}

/// Totals and names of the profiles that speedscope's own importer finds in each of some files;
/// `None`, loudly, where there is no node, or npm cannot fetch it.
fn by_speedscope(files: &[PathBuf; 3]) -> Option<[Vec<(f64, String)>; 3]> {
    const WHAT: &str = "speedscope's importer";
    // Tests that run side by side fetch it once.
    static BUNDLE: LazyLock<Option<PathBuf>> = LazyLock::new(speedscope);
    let Some(bundle) = &*BUNDLE else {
        skip(WHAT, "npm is not here, or could not fetch it");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/speedscope.js");
    let mut command = Command::new("node");
    let Ok(output) = command.arg(script).arg(bundle).args(files).output() else {
        skip(WHAT, "there is no node");
        return None;
    };
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    let of_file = |at: usize| -> Vec<(f64, String)> {
        let profiles = found[at].as_array().expect("profiles").iter();
        let one = |one: &Value| (one[0].as_f64().unwrap(), one[1].as_str().unwrap().to_owned());
        profiles.map(one).collect()
    };
    Some([of_file(0), of_file(1), of_file(2)])
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Asserts that every format has one total, and that its readers find it; gives the total.
fn check_totals(recording: &Path) -> i64 {
    let exports: Vec<(PathBuf, String)> =
        ENDINGS.iter().map(|ending| export(recording, ending)).collect();
    for (path, told) in &exports {
        assert_eq!(*told, exports[0].1, "{}", path.display());
    }
    let file = |ending: &str| recording.with_extension(ending);

    let text = fs::read_to_string(file("collapsed")).unwrap();
    // As flame graph tools take it: digits, and no sign before them.
    let values = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    let total = values.sum::<u64>() as i64;
    assert!(total > 0);

    if let Some(out) = said(Path::new("callgrind_annotate"), &["--auto=no"], &file("callgrind")) {
        let line = out.lines().find(|line| line.contains("PROGRAM TOTALS")).expect("totals");
        assert_eq!(line.split_whitespace().next().unwrap().replace(',', ""), total.to_string());
    }
    if let Some(out) = said(Path::new("go"), &["tool", "pprof", "-top", "-unit=ns"], &file("pb.gz"))
    {
        let told = out.split_once("% of ").unwrap().1.split_once("ns total").unwrap().0;
        assert_eq!(told, total.to_string(), "{out}");
    }
    let text = fs::read(file("collapsed")).unwrap();
    assert_eq!(by_inferno(&text), total);
    let types = by_protobuf(&fs::read(file("otlp")).unwrap());
    assert!(types.values().any(|sum| *sum == total), "{total} is in none of {types:?}");
    if let Some(found) = by_speedscope(&["collapsed", "pb.gz", "speedscope.json"].map(file)) {
        // Of its own format, the profiles of one series, thread by thread.
        let series = found[2][0].1.trim_end_matches(" (no times)").rsplit_once(" · ").unwrap().1;
        let of_it = found[2].iter().filter(|(_, name)| {
            name.trim_end_matches(" (no times)").ends_with(&format!(" · {series}"))
        });
        assert_eq!(of_it.map(|(sum, _)| *sum as i64).sum::<i64>(), total);
        // Collapsed stacks are one profile, and of pprof it shows the first type of values.
        assert_eq!((found[0].len(), found[0][0].0 as i64), (1, total));
        let sums: Vec<i64> = found[1].iter().map(|(sum, _)| *sum as i64).collect();
        assert!(sums.contains(&total), "{total} is none of {sums:?}");
    }
    let speedscope = json(&file("speedscope.json"));
    let profiles = speedscope["profiles"].as_array().unwrap().iter();
    let first = profiles.clone().next().unwrap()["name"].as_str().unwrap();
    let series = first.rsplit_once(" · ").unwrap().1.to_owned();
    let of_it = profiles.filter(|one| {
        one["name"].as_str().unwrap().rsplit_once(" · ").is_some_and(|(_, name)| name == series)
    });
    assert_eq!(of_it.map(|one| one["endValue"].as_i64().unwrap()).sum::<i64>(), total);

    let firefox = json(&file("firefox.json"));
    let threads = firefox["threads"].as_array().unwrap().iter();
    let weights = threads.flat_map(|thread| thread["samples"]["weight"].as_array().unwrap());
    let nanos = weights.map(|ms| (ms.as_f64().unwrap() * 1e6).round() as i64);
    assert_eq!(nanos.sum::<i64>(), total);

    // What was exported and is read again by ourselves.
    for ending in ["collapsed", "pb.gz", "jfr"] {
        let again =
            Tare::this().run(&["report", "--format", "json", &file(ending).display().to_string()]);
        assert_eq!(again.json()["total"], total, "{ending}");
    }
    total
}

#[test]
fn samples_of_processor_time_have_one_total() {
    let scratch = Scratch::new();
    let recording = recorded(&scratch, "cpu", &["--interval", "2ms"], "30");
    let total = check_totals(&recording);
    // The view lists 25 methods; a JVM that starts runs through more.
    if let Some((first, listed, all)) = hot_methods(&recording.with_extension("jfr")) {
        assert_eq!(all * 2_000_000, total);
        assert!(first * 2 > all && listed <= all, "{first}, {listed} of {all}");
    }
    // They have times, so there is a timeline of them.
    let (timeline, _) = export(&recording, "trace.json");
    let events = json(&timeline);
    let slices = events["traceEvents"].as_array().unwrap().iter();
    assert!(slices.filter(|event| event["cat"] == "cpu:cpu-time").count() > 0);
}

#[test]
fn samples_of_waiting_threads_have_one_total() {
    let scratch = Scratch::new();
    let recording = recorded(&scratch, "wall", &["--wall", "--interval", "5ms"], "10");
    let total = check_totals(&recording);
    if let Some((_, listed, all)) = hot_methods(&recording.with_extension("jfr")) {
        let off = (all * 5_000_000 - total).abs();
        assert!(listed > 0 && off <= 2_500_000, "{listed}, {all} of {total}");
    }
}

#[test]
fn exact_times_have_one_total_and_deep_recursion_is_small() {
    let scratch = Scratch::new();
    let recording = recorded(&scratch, "exact", &["--exact"], "10");
    check_totals(&recording);
    for ending in ENDINGS {
        let size = fs::metadata(recording.with_extension(ending)).unwrap().len();
        assert!(size < 32 << 20, "{ending}: {size} bytes");
    }
    let file = recording.display().to_string();
    let report = Tare::this().run(&["report", &file]);
    assert!(report.ok().contains("Deep.walk × 8,991"), "{}", report.out);
    assert!(report.out.len() < 100_000, "{} bytes", report.out.len());
    let html = recording.with_extension("html").display().to_string();
    let export = Tare::this().run(&["export", &file, "-o", &html]);
    export.ok();
    assert!(export.err.contains(": frames that repeat"), "{}", export.err);
}

#[test]
fn traces_have_one_total_with_and_without_their_calls() {
    let scratch = Scratch::new();
    check_totals(&recorded(&scratch, "trace", &["--trace"], "3"));
}

/// A length as `jfr print --json` writes it, in nanoseconds: `PT0.0123S`.
fn length(text: &Value) -> u64 {
    let seconds = text.as_str().and_then(|text| text.strip_prefix("PT")?.strip_suffix('S'));
    let seconds: f64 = seconds.and_then(|text| text.parse().ok()).expect("seconds");
    (seconds * 1e9).round() as u64
}

/// Collections, safepoints and threads that came and went are the JDK's own events, by its own tool.
#[test]
fn what_the_jvm_did_is_read_by_the_jdk() {
    let scratch = Scratch::new();
    let path = scratch.join("stops.tare");
    let (java, file) = (jdk().java().display().to_string(), path.display().to_string());
    let classes = classes().display().to_string();
    let program = ["--", &java, "-XX:+UseSerialGC", "-cp", &classes, "Pauses", "asked", "50"];
    Tare::this()
        .run(&[&["record", "-q", "--cpu", "--lock", "-o", &file][..], &program].concat())
        .ok();
    let (file, _) = export(&path, "jfr");
    let profile = Recorded::open(&path).profile;
    let tools = env().jdks.iter().map(|jdk| jdk.java().with_file_name("jfr"));
    let tools: Vec<PathBuf> = tools.filter(|tool| tool.is_file()).collect();
    if tools.is_empty() {
        skip("what_the_jvm_did_is_read_by_the_jdk", "there is no JDK with its tools");
    }
    for tool in tools {
        let events = |name: &str| -> Vec<Value> {
            let out = said(&tool, &["print", "--json", "--events", name], &file).expect("the tool");
            let out: Value = serde_json::from_str(&out).expect("JSON");
            let all = out["recording"]["events"].as_array().expect("events").iter();
            all.map(|event| event["values"].clone()).collect()
        };
        let collections = collections(&profile);
        assert!(collections.len() >= 5, "{collections:?}");
        let told: Vec<_> = events("jdk.GarbageCollection")
            .iter()
            .map(|one| (one["gcId"].as_u64(), length(&one["duration"]), one["cause"].clone()))
            .collect();
        let ours = collections
            .iter()
            .map(|one| (Some(one.number), one.duration, one.cause.clone().into()));
        assert_eq!(told, ours.collect::<Vec<_>>());
        let told: Vec<_> = events("jdk.GCPhasePause")
            .iter()
            .map(|one| (length(&one["duration"]), one["name"].clone()))
            .collect();
        let ours = collections.iter().map(|one| (one.duration, one.kind.clone().into()));
        assert_eq!(told, ours.collect::<Vec<(u64, Value)>>());
        let heap = collections.iter().flat_map(|one| [one.heap_before, one.heap_after]).flatten();
        let told = events("jdk.GCHeapSummary");
        let told: Vec<_> = told.iter().filter_map(|one| one["heapUsed"].as_u64()).collect();
        assert_eq!(told, heap.collect::<Vec<_>>());
        let alone: Vec<Safepoint> =
            safepoints(&profile).into_iter().filter(|one| one.count == 1).collect();
        assert!(!alone.is_empty());
        let told: Vec<_> = events("jdk.SafepointBegin")
            .iter()
            .map(|one| (one["safepointId"].as_u64(), length(&one["duration"])))
            .collect();
        let ours = alone.iter().map(|one| (Some(one.number), one.reach));
        assert_eq!(told, ours.collect::<Vec<_>>());
        let told: Vec<_> = events("jdk.ExecuteVMOperation")
            .iter()
            .map(|one| (one["operation"].clone(), length(&one["duration"])))
            .collect();
        let ours = alone.iter().map(|one| (one.reason.clone().into(), one.duration - one.reach));
        assert_eq!(told, ours.collect::<Vec<(Value, u64)>>());
        let named = |event: &str| {
            let told = events(event).into_iter();
            told.filter(|one| one["thread"]["javaName"] == "asked").collect::<Vec<_>>()
        };
        let (started, ended) = (named("jdk.ThreadStart"), named("jdk.ThreadEnd"));
        assert_eq!((started.len(), ended.len()), (1, 1), "{started:?} {ended:?}");
        let starter = &started[0]["stackTrace"]["frames"].to_string();
        assert!(starter.contains("\"main\""), "{starter}");
        assert_eq!(started[0]["parentThread"]["javaName"], "main");
    }
}

#[test]
fn a_dump_has_the_format_of_its_name() {
    let demo = Demo::start(jdk());
    let name = demo.target.name();
    let scratch = Scratch::new();
    let file = scratch.join("x.tare").display().to_string();
    let recording = Tare::this().start(&["record", "--interval", "2ms", "-o", &file, &name]);
    control_socket(name.parse().expect("a pid"));
    let dump = |ending: &str| {
        let path = scratch.join(&format!("dump.{ending}"));
        let to = path.display().to_string();
        wait_until("there is something to dump", || {
            Tare::this().run(&["dump", &name, "-o", &to]).code == 0
        });
        fs::read(path).unwrap()
    };
    assert!(dump("html").starts_with(b"<!doctype html>"));
    assert!(dump("jfr").starts_with(b"FLR\0"));
    assert!(dump("tare").starts_with(b"\x89TARE"));
    let odd = scratch.join("dump.json").display().to_string();
    Tare::this().run(&["dump", &name, "-o", &odd]).fails(1, &["names no format"]);
    Tare::this().run(&["stop", &name]).ok();
    recording.wait().ok();
    demo.finish();
}

#[test]
fn what_has_no_end_is_not_read() {
    for verb in ["report", "export"] {
        let out = Scratch::new();
        let to = out.join("x.html").display().to_string();
        let words: &[&str] = if verb == "export" { &["-o", &to] } else { &[] };
        let all = [&[verb, "/dev/zero"], words].concat();
        Tare::this().run(&all).fails(1, &["/dev/zero", "no file but a device"]);
    }
}
