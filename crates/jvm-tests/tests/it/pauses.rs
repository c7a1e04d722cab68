//! Pauses in a recording are those of the JVM's own log of the same run, and reports tell what led
//! to them.

use crate::recording::{Recorded, wait_until_on};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tare_jvm_tests::{Control, Jdk, Scratch, Tare, Target, classes, on_each_jdk, skip};
use tare_profile::{Collection, Event, EventKind, Safepoint, collections, safepoints};

const COLLECTORS: [&str; 5] =
    ["UseSerialGC", "UseParallelGC", "UseG1GC", "UseZGC", "UseShenandoahGC"];

/// A safepoint as the log has it.
#[derive(Debug, PartialEq)]
struct Logged {
    reason: String,
    reach: u64,
    total: u64,
}

fn has(jdk: &Jdk, collector: &str) -> bool {
    let flag = format!("-XX:+{collector}");
    let asked = Command::new(jdk.java()).args([&flag, "-version"]).output();
    asked.is_ok_and(|output| output.status.success())
}

/// Records a run of `Pauses` and returns the recording.
fn record(jdk: &Jdk, flags: &[&str], java: &[&str], words: &[&str], file: &Path) -> Recorded {
    let (java_path, path) = (jdk.java().display().to_string(), file.display().to_string());
    let classes = classes().display().to_string();
    let mut line = vec!["record", "-q", "-o", &path];
    line.extend(flags);
    line.extend(["--", &java_path, "-Xmx96m"]);
    line.extend(java);
    line.extend(["-cp", &classes, "Pauses"]);
    line.extend(words);
    Tare::this().run(&line).ok();
    Recorded::open(file)
}

fn logged(text: &str) -> Vec<Logged> {
    let number = |line: &str, what: &str| -> Option<u64> {
        line.split_once(what)?.1.split_whitespace().next()?.parse().ok()
    };
    let one = |line: &str| {
        Some(Logged {
            reason: line.split_once("Safepoint \"")?.1.split_once('"')?.0.to_owned(),
            reach: number(line, "Reaching safepoint: ")?,
            total: number(line, "Total: ")?,
        })
    };
    text.lines().filter_map(one).collect()
}

/// The part of the log from one of our safepoints to our last, and how many we have in it. Of what
/// one look of the agent brings, those that nobody saw come first, as one row; so a part that is as
/// long in the log begins with the last row of a look, just before such a row.
fn common<'a>(log: &'a [Logged], ours: &[Safepoint]) -> (&'a [Logged], u64) {
    let mut ours = ours.to_vec();
    ours.sort_by_key(|one| one.number);
    let unseen = |at: &usize| ours[*at].running.is_none();
    let first = match (1..ours.len()).find(unseen) {
        Some(next) => next - 1,
        None if unseen(&0) => ours.len() - 1,
        None => 0,
    };
    let place = |one: &Safepoint| {
        let same = |logged: &Logged| logged.reach == one.reach && logged.total == one.duration;
        log.iter().position(same).unwrap_or_else(|| panic!("{one:?} is not in the log"))
    };
    let (from, to) = (place(&ours[first]), place(&ours[ours.len() - 1]));
    (&log[from..=to], ours[first..].iter().map(|one| one.count).sum())
}

/// How many pauses of each kind the log of collections has: young and mixed, full, remark, cleanup.
fn kinds_in_log(text: &str) -> [usize; 4] {
    ["Pause Young", "Pause Full", "Pause Remark", "Pause Cleanup"].map(|kind| {
        let is = |line: &&str| line.contains(" GC(") && line.contains(kind) && line.ends_with("ms");
        text.lines().filter(is).count()
    })
}

fn kinds(collections: &[Collection]) -> [usize; 4] {
    let count = |is: &dyn Fn(&str) -> bool| collections.iter().filter(|one| is(&one.kind)).count();
    [
        count(&|kind| kind.starts_with("young") || kind == "mixed"),
        count(&|kind| kind.ends_with("full")),
        count(&|kind| kind == "remark"),
        count(&|kind| kind == "cleanup"),
    ]
}

/// Without the first ones, which come before the agent has found where HotSpot notes the rest.
fn whole(all: &[Collection]) -> impl Iterator<Item = &Collection> {
    all.iter().skip_while(|one| one.reach.is_none())
}

/// Mebibytes before and after, of the log's pauses of generational collectors.
fn heap_in_log(text: &str) -> Vec<(u64, u64)> {
    let sizes = |line: &str| {
        let (before, rest) = line.rsplit(' ').nth(1)?.split_once("M->")?;
        Some((before.parse().ok()?, rest.split_once("M(")?.0.parse().ok()?))
    };
    text.lines().filter(|line| line.contains("Pause")).filter_map(sizes).collect()
}

on_each_jdk! {
    /// Every safepoint that was seen alone is in the log with the same reason and the same
    /// nanoseconds; all together are as many as the log has.
    fn pauses_are_those_of_the_log(jdk) {
        for collector in COLLECTORS {
            if !has(jdk, collector) {
                skip("pauses_are_those_of_the_log", &format!("no {collector} here"));
                continue;
            }
            let scratch = Scratch::new();
            let log = scratch.join("log");
            let flags = [
                format!("-XX:+{collector}"),
                format!("-Xlog:gc,safepoint:file={}:none:filecount=0", log.display()),
            ];
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let recorded = record(jdk, &[], &flags, &["collect", "2000"], &scratch.join("x.tare"));
            let text = std::fs::read_to_string(&log).expect("the log");
            let log = logged(&text);
            let ours = safepoints(&recorded.profile);
            let (log, count) = common(&log, &ours);
            let told = format!("{collector} on {}:\n{text}\n{ours:#?}", jdk.major);
            assert_eq!(log.len() as u64, count, "{told}");
            for one in ours.iter().filter(|one| one.running.is_some()) {
                let same = |logged: &&Logged| (logged.reach, logged.total) == (one.reach, one.duration);
                let found = log.iter().find(same).map(|logged| logged.reason.as_str());
                let outside = found.is_none();
                assert!(outside || found == Some(&one.reason), "{one:?} of {told}");
            }
            let pauses = collections(&recorded.profile);
            let whole: Vec<&Collection> = whole(&pauses).collect();
            assert!(whole.len() >= 3, "{pauses:#?} of {told}");
            let mut held = 0;
            for one in &whole {
                assert_ne!(one.kind, "", "{one:?}");
                assert!(one.heap_before.is_some_and(|heap| heap > 0), "{one:?}");
                let reach = one.reach.expect("a time to safepoint");
                // The pause lies inside its safepoint, whose figures are the log's.
                let holds = |safepoint: &&Safepoint| {
                    safepoint.running.is_some()
                        && safepoint.time <= one.time
                        && one.time < safepoint.end()
                };
                if let Some(safepoint) = ours.iter().find(holds) {
                    let inside = safepoint.time + reach <= one.time && one.end() <= safepoint.end();
                    assert!(inside && safepoint.reach == reach, "{one:?} of {safepoint:?}");
                    held += 1;
                }
            }
            // Nearly all: the last one may be over when nobody looks any more.
            assert!(held * 10 >= whole.len() * 8, "{held} of {pauses:#?} in {told}");
            if collector.contains('Z') || collector.contains("Shen") {
                continue;
            }
            // Those before the recording began and after it ended are not ours.
            let (of_log, of_ours) = (kinds_in_log(&text), kinds(&pauses));
            let missing = of_log.iter().zip(of_ours).map(|(log, ours)| log.saturating_sub(ours));
            let late = missing.sum::<usize>();
            assert!(late <= 1, "{of_log:?} in the log, {of_ours:?} by us; {told}");
            let heap = heap_in_log(&text);
            let last = pauses.iter().rfind(|one| one.cause == "System.gc()").expect("the last");
            let (before, after) = (last.heap_before, last.heap_after);
            let near = |ours: Option<u64>, log: u64| ours.is_some_and(|b| (b >> 20).abs_diff(log) <= 2);
            // A young collection and a full one may be one pause of ours.
            let from = heap.iter().rev().take(2).any(|(from, _)| near(before, *from));
            let to = heap.iter().rev().take(2).any(|(_, to)| near(after, *to));
            assert!(from && to, "{last:?} of {heap:?}");
        }
    }

    /// A thread in a loop without a safepoint is named with its method.
    fn who_holds_up_a_safepoint_is_named(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let java = ["-XX:+UseSerialGC", "-XX:-UseCountedLoopSafepoints", "-XX:LoopStripMiningIter=0"];
        record(jdk, &["--interval", "1ms"], &java, &["spin", "40"], &file);
        let path = file.display().to_string();
        let report = Tare::this().run(&["report", &path, "--format", "json"]).json();
        let findings = report["findings"].as_array().expect("findings").clone();
        let text = |finding: &Value| finding["text"].as_str().unwrap_or_default().to_owned();
        let told: Vec<String> = findings.iter().map(text).collect();
        let named = told.iter().any(|text| {
            text.contains("to reach") && text.contains("\"spinner\"") && text.contains("Spin.loop")
        });
        assert!(named, "{told:#?}\n{}", report["pauses"]["by_reason"]);
        let page = Tare::this().run(&["report", &path, "--gc"]).out;
        for part in ["Collections and pauses", "longest safepoints", "System.gc()", "full"] {
            assert!(page.contains(part), "no {part:?} in\n{page}");
        }
    }

    /// What was allocated before a collection is told with who did it; so is what ran.
    fn who_allocated_before_a_collection_is_named(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let flags = ["--alloc", "--cpu", "--interval-bytes", "64K"];
        let recorded = record(jdk, &flags, &["-XX:+UseSerialGC"], &["collect", "1000", "8"], &file);
        let pauses = collections(&recorded.profile);
        let young = pauses.iter().rfind(|one| one.kind == "young").expect("a young collection");
        let (path, event) = (file.display().to_string(), format!("gc:{}", young.number));
        let around = ["report", &path, "--around", &event];
        let told = Tare::this().run(&[&around[..], &["--format", "json"]].concat()).json();
        assert_eq!(told["event"], event.as_str());
        let sites = &told["allocated"]["sites"];
        assert!(sites[0].to_string().contains("Pauses$Hog.fill"), "{sites}");
        let page = Tare::this().run(&around).out;
        for part in ["What ran", "Hog.fill", "What was waited for", "record with --lock", "young"] {
            assert!(page.contains(part), "no {part:?} in\n{page}");
        }
        let none = Tare::this().run(&["report", &path, "--around", "gc:99999"]);
        none.fails(1, &["the last one of its kind is gc:"]);
        let none = Tare::this().run(&["report", &path, "--around", "lock:1"]);
        none.fails(1, &["it has", "gc"]);
    }

    /// Calls of a trace and pauses have one clock: who asks for a collection is inside while it
    /// lasts, and a finding says that these calls are the slow ones.
    fn the_slowest_calls_of_a_trace_are_its_collections(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let flags = ["--trace", "--include", "Pauses$Asked"];
        let recorded = record(jdk, &flags, &["-XX:+UseSerialGC"], &["asked", "50"], &file);
        let profile = &recorded.profile;
        let tables = profile.all_events().filter(|(_, table)| table.kind() == &EventKind::call());
        let calls: Vec<Event> = tables.flat_map(|(_, table)| table.events()).collect();
        assert_eq!(calls.len(), 50, "{calls:?}");
        let all = collections(profile);
        let asked: Vec<&Collection> = all.iter().filter(|one| one.cause == "System.gc()").collect();
        assert_eq!(asked.len(), 5, "{all:?}");
        let mut slowest: Vec<u64> = calls.iter().map(|call| call.duration).collect();
        slowest.sort_unstable_by_key(|duration| std::cmp::Reverse(*duration));
        let mut mostly = 0;
        for one in asked {
            // A tick of the trace's clock is known to some digits only.
            let inside = |call: &&Event| {
                let end = call.time + call.duration;
                let common = end.min(one.end()).saturating_sub(call.time.max(one.time));
                common * 10 >= one.duration * 9
            };
            let inside: Vec<&Event> = calls.iter().filter(inside).collect();
            let [call] = inside[..] else { panic!("{one:?} of {calls:?}") };
            let is_slow = call.duration >= slowest[4] && one.duration >= 10_000_000 / 5;
            mostly += u32::from(is_slow && call.duration <= one.duration * 2);
        }
        if mostly < 5 {
            // Another program had the processors, and made other calls slow.
            return println!("no finding is due: {mostly} of {slowest:?}");
        }
        let path = file.display().to_string();
        let report = Tare::this().run(&["report", &path, "--format", "json"]).json();
        let told = report["findings"].to_string();
        assert!(told.contains("the 5 slowest of 50 calls of Pauses$Asked.answer are"), "{told}");
    }

    /// A JVM that keeps no counters is said to tell no causes, and tells the rest.
    fn without_counters_the_rest_is_told(jdk) {
        let scratch = Scratch::new();
        let java = ["-XX:+UseSerialGC", "-XX:-UsePerfData"];
        let recorded = record(jdk, &[], &java, &["collect", "2000"], &scratch.join("x.tare"));
        let pauses = collections(&recorded.profile);
        assert!(pauses.iter().all(|one| one.cause.is_empty()), "{pauses:?}");
        assert!(whole(&pauses).count() >= 3, "{pauses:?}");
        assert!(whole(&pauses).all(|one| one.reach.is_some()), "{pauses:?}");
        let notes = recorded.fact(tare_profile::facts::keys::NOTES).unwrap_or_default();
        assert!(notes.iter().any(|note| note.contains("UsePerfData")), "{notes:?}");
    }

    /// What is told of weaving are the pauses in which all threads stood still, and not the calls.
    fn weaving_tells_the_pauses_that_the_program_felt(jdk) {
        let scratch = Scratch::new();
        let (log, file) = (scratch.join("log"), scratch.join("x.tare"));
        let mut target = Target::java(jdk)
            .vm(format!("-Xlog:safepoint:file={}:none:filecount=0", log.display()))
            .class_path(classes())
            .main("Truth")
            .start();
        let (file, name) = (file.display().to_string(), target.name());
        let words = ["record", "--exact", "--count", "--include", "**", "-o", &file, &name];
        let recording = Tare::this().start(&words);
        wait_until_on(&name);
        let mut control = Control::connect(target.pid());
        control.greet();
        let status = control.status().exact().cloned().expect("an exact recording");
        let log = logged(&std::fs::read_to_string(&log).expect("the JVM's log"));
        drop(control);
        target.tell("go");
        target.wait_for("done");
        recording.signal(rustix::process::Signal::INT);
        recording.wait().ok();
        // Something else of the agent may be retransformed before or afterwards, and a collection
        // may fall into a call.
        let (weaving, others): (Vec<_>, Vec<_>) =
            log.iter().partition(|one| one.reason == "RedefineClasses");
        let others: u64 = others.iter().map(|one| one.total).sum();
        let calls = usize::try_from(status.pauses).expect("few calls");
        assert!((1..=weaving.len()).contains(&calls), "{status:?} {log:#?}");
        let is_felt = weaving.windows(calls).any(|calls| {
            let felt: u64 = calls.iter().map(|one| one.total - one.reach).sum();
            (felt..=felt + others).contains(&status.pause_ns)
        });
        assert!(is_felt, "{status:?} {log:#?}");
        assert!(!status.whole_calls);
        assert!(status.longest_pause_ns <= status.pause_ns, "{status:?}");
    }
}
