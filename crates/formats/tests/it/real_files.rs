//! Recordings that real JVMs make for the test: what we read of them is what the JDK's own `jfr`
//! says is in them. Without a JDK nothing is covered, and that is said.

use crate::support::{jdk_tools, scratch, tool};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use tare_formats::{open, series_name};
use tare_profile::{MethodKind, Profile};

/// A recording, and the tool of the JDK that made it.
pub struct Recording {
    pub path: PathBuf,
    jfr: String,
}

/// One recording per JDK on this machine, made once.
pub fn recordings() -> &'static [Recording] {
    static ALL: OnceLock<Vec<Recording>> = OnceLock::new();
    ALL.get_or_init(|| {
        let tools = jdk_tools("jfr");
        if tool("recordings of real JVMs", &tools).is_none() {
            return Vec::new();
        }
        let directory = scratch("recordings");
        let source = directory.join("Load.java");
        std::fs::write(&source, LOAD).unwrap();
        (0..).zip(tools).map(|(number, jfr)| record(number, jfr, &directory, &source)).collect()
    })
}

fn record(number: u32, jfr: String, directory: &PathBuf, source: &PathBuf) -> Recording {
    let java = jfr.trim_end_matches("jfr").to_owned() + "java";
    let path = directory.join(format!("{number}.jfr"));
    let base = format!("-XX:StartFlightRecording=filename={},settings=profile", path.display());
    // JDK 25 knows CPU-time samples, and older ones refuse to be asked for them.
    for options in [format!("{base},jdk.CPUTimeSample#enabled=true"), base] {
        let mut command = Command::new(&java);
        let output = command.current_dir(directory).arg(options).arg(source).output().unwrap();
        if output.status.success() && path.exists() {
            return Recording { path, jfr };
        }
    }
    panic!("{java} made no recording");
}

const LOAD: &str = r#"
public class Load {
    static Object kept; static final Object lock = new Object();
    static long spin(long n) { long x = n; for (int i = 0; i < 3_000_000; i++) x = x * 31 + (x >>> 7); return x; }
    static void hold() { synchronized (lock) { spin(1); } }
    public static void main(String[] a) throws Exception {
        long end = System.nanoTime() + 2_500_000_000L;
        Runnable body = () -> { while (System.nanoTime() < end) { hold(); kept = new byte[50_000 + (int) (spin(2) & 1)]; } };
        Thread one = new Thread(body, "first worker"), two = new Thread(body, "second worker");
        one.start(); two.start(); one.join(); two.join();
    }
}
"#;

fn jfr(recording: &Recording, arguments: &[&str]) -> String {
    let mut command = Command::new(&recording.jfr);
    let output = command.args(arguments).arg(&recording.path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// How many events of a type there are, by the JDK's word.
fn count(summary: &str, event: &str) -> usize {
    let mut words = summary.lines().map(str::split_whitespace);
    let line = words.find_map(|mut words| (words.next() == Some(event)).then_some(words));
    line.and_then(|mut words| words.next()?.parse().ok()).unwrap_or(0)
}

fn rows(profile: &Profile, event: &str) -> usize {
    let named = |name: &str| name.split_once(':').is_some_and(|(engine, _)| engine == event);
    let found = profile.all_series().find(|(_, series)| named(&series_name(series.info())));
    found.map_or(0, |(_, series)| series.len())
}

#[test]
fn every_event_is_read() {
    for recording in recordings() {
        let profile = open(&recording.path).unwrap();
        profile.check().unwrap();
        let summary = jfr(recording, &["summary"]);
        let events = [
            "jdk.CPUTimeSample",
            "jdk.ExecutionSample",
            "jdk.NativeMethodSample",
            "jdk.ObjectAllocationSample",
        ];
        for event in events {
            assert_eq!(rows(&profile, event), count(&summary, event), "{event}, {}", recording.jfr);
        }
        assert!(rows(&profile, "jdk.ExecutionSample") > 5, "{summary}");
        assert!(rows(&profile, "jdk.ObjectAllocationSample") > 5, "{summary}");
        let waits = ["jdk.JavaMonitorEnter", "jdk.ThreadPark", "jdk.JavaMonitorWait"];
        let waits = waits.map(|event| count(&summary, event)).iter().sum::<usize>();
        let lock = profile.all_events().find(|(_, table)| table.kind().name == "lock");
        let sleeps = count(&summary, "jdk.ThreadSleep");
        assert_eq!(lock.map_or(0, |(_, table)| table.len()), waits + sleeps, "{summary}");
        let tables = profile.all_events();
        let gc = tables.into_iter().find(|(_, table)| table.kind().name == "gc");
        let collections = gc.map_or(0, |(_, table)| table.len());
        assert_eq!(collections, count(&summary, "jdk.GarbageCollection"), "{}", recording.jfr);
        assert!(!profile.run.jdk.is_empty() && profile.run.cpus.is_some());
    }
}

#[test]
fn values_times_and_stacks_are_the_jdks() {
    for recording in recordings() {
        let profile = open(&recording.path).unwrap();
        let printed = jfr(
            recording,
            &["print", "--json", "--stack-depth", "64", "--events", "jdk.ObjectAllocationSample"],
        );
        let printed: Value = serde_json::from_str(&printed).unwrap();
        let mut expected: Vec<String> = Vec::new();
        for event in printed["recording"]["events"].as_array().unwrap() {
            let values = &event["values"];
            let thread = values["eventThread"]["javaName"].as_str().unwrap_or_default();
            let leaf = &values["stackTrace"]["frames"][0];
            let class = leaf["method"]["type"]["name"].as_str().unwrap_or_default();
            let name = leaf["method"]["name"].as_str().unwrap_or_default();
            let depth = values["stackTrace"]["frames"].as_array().map_or(0, Vec::len);
            // The JDK's -1 is our "not known".
            let line =
                leaf["lineNumber"].as_i64().map_or("null".to_owned(), |n| n.max(0).to_string());
            let place = format!("{class}.{name}:{line}").replace('/', ".");
            expected.push(format!("{} {thread} {depth} {place}", values["weight"]));
        }
        let series = profile.all_series().map(|(_, series)| series);
        let mut series = series.filter(|series| series.info().name == "jdk.ObjectAllocationSample");
        let mut found: Vec<String> = Vec::new();
        for row in series.next().unwrap().rows() {
            let class = profile.contexts.frame(row.context).unwrap();
            assert_eq!(profile.method_of(class).kind, MethodKind::Class);
            let stack = profile.contexts.parent(row.context).unwrap();
            let thread = profile.threads.get(row.thread);
            // A stack that was cut has a frame that says so.
            let special = |id: &_| profile.method_of(*id).kind != MethodKind::Special;
            let depth = profile.contexts.frames(stack).filter(special).count();
            let place = match profile.contexts.frame(stack) {
                Some(leaf) => {
                    let leaf = profile.frames.get(leaf);
                    let line = leaf.line.unwrap_or(0);
                    format!("{}:{line}", profile.method_name(leaf.method)).replace('/', ".")
                }
                None => ".:null".to_owned(),
            };
            let java = thread.java_id.map_or("", |_| profile.strings.get(thread.name));
            found.push(format!("{} {java} {depth} {place}", row.value));
        }
        expected.sort();
        found.sort();
        let (ours, theirs) = (found.iter(), expected.iter());
        let different: Vec<_> = ours.zip(theirs).filter(|(ours, theirs)| ours != theirs).collect();
        assert!(different.is_empty(), "ours and the JDK's: {different:?}, {}", recording.jfr);
        assert_eq!(found.len(), expected.len());
    }
}
