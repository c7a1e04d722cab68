//! Recordings of locks against a program that scripts who holds and who waits, and measures its own
//! waits: on platform and virtual threads, stopped in the middle, among thousands of threads.
//!
//! No test asserts a time that the machine's load could change: what was recorded is compared with
//! what the program measured around the same wait.

use crate::common::{Timed, assert_no_trace, assert_times};
use crate::recording::Recorded;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::Path;
use tare_jvm_tests::{
    Control, Jdk, Running, Scratch, Tare, Target, classes, control_socket, on_each_jdk, wait_until,
};
use tare_profile::facts::keys;
use tare_profile::{
    ContextId, EventTable, FieldValue, MethodKind, Profile, ThreadId, ValueKind, Wait,
};

/// The class of what is waited for.
const GATE: &str = "LockTruth$Gate";

fn truth(jdk: &Jdk) -> Target {
    truth_through(jdk, &[])
}

/// Started by another program, if there are words for one.
pub fn truth_through(jdk: &Jdk, words: &[&str]) -> Target {
    let target = Target::java(jdk)
        // Before JDK 24 a virtual thread that waits for a monitor keeps its carrier.
        .vm("-Djdk.virtualThreadScheduler.parallelism=8")
        .vm("-Djdk.virtualThreadScheduler.maxPoolSize=8")
        .class_path(classes())
        .main("LockTruth");
    target.through(words).start()
}

/// A recording of locks under way.
pub struct Session {
    recording: Running,
}

impl Session {
    /// Of a JVM whose control socket cannot be seen from here.
    pub fn begin_apart(target: &Target, path: &Path) -> Self {
        let (file, name) = (path.display().to_string(), target.name());
        let recording = Tare::this().start(&["record", "--lock", "-o", &file, &name]);
        // It is there when all engines are on.
        wait_until("locks are recorded", || path.exists());
        Session { recording }
    }

    pub fn begin(target: &Target, words: &[&str], file: &Path) -> Self {
        let (file, name) = (file.display().to_string(), target.name());
        let words = [&["record", "--lock", "-o", &file], words, &[&name]].concat();
        let recording = Tare::this().start(&words);
        control_socket(target.pid());
        wait_until("locks are recorded", || {
            let status = Tare::this().status(&name);
            status["engines"].as_array().is_some_and(|on| on.contains(&"locks".into()))
        });
        Session { recording }
    }

    /// As Ctrl-C does it.
    pub fn stop(self, file: &Path) -> Recorded {
        self.recording.signal(Signal::INT);
        self.recording.wait().ok();
        Recorded::open(file)
    }

    /// The JVM has ended, and with it the recording.
    pub fn ended(self) {
        self.recording.wait().ok();
    }
}

/// A wait as it was recorded.
#[derive(Debug)]
pub struct Waited {
    wait: Wait,
    nanos: u64,
    thread: Option<u64>,
    pub owner: Option<u64>,
    /// Names of methods, innermost first.
    stack: Vec<String>,
    pub owner_stack: Vec<String>,
    held: bool,
    queue: i64,
}

fn events(profile: &Profile) -> &EventTable {
    let mut tables = profile.all_events();
    tables.find(|(_, table)| table.kind().name == "lock").expect("a table of waits").1
}

fn stack(profile: &Profile, context: ContextId) -> Vec<String> {
    let frames = profile.contexts.frames(context);
    frames.map(|frame| profile.method_name(profile.frames.get(frame).method)).collect()
}

/// The waits for gates.
pub fn waits(profile: &Profile) -> Vec<Waited> {
    let table = events(profile);
    let field = |row, name| table.field(row, table.field_named(name).expect("a field"));
    let text = |row, name| match field(row, name) {
        Some(FieldValue::Text(id)) => profile.strings.get(id).to_owned(),
        other => panic!("{name} is {other:?}"),
    };
    let number = |row, name| match field(row, name) {
        Some(FieldValue::Integer(value)) => value,
        other => panic!("{name} is {other:?}"),
    };
    let id = |thread: ThreadId| profile.threads.get(thread).java_id;
    let all = table.events().enumerate().filter(|(row, _)| text(*row, "class") == GATE);
    all.map(|(row, event)| Waited {
        wait: Wait::from_name(&text(row, "operation")).expect("a kind of wait"),
        nanos: event.duration,
        thread: id(event.thread),
        owner: match field(row, "owner") {
            Some(FieldValue::Thread(owner)) => id(owner),
            other => panic!("the owner is {other:?}"),
        },
        stack: stack(profile, event.context),
        owner_stack: match field(row, "owner-context") {
            Some(FieldValue::Context(context)) => stack(profile, context),
            other => panic!("the owner's stack is {other:?}"),
        },
        held: number(row, "owner-held") == 1,
        queue: number(row, "queue"),
    })
    .collect()
}

/// A series by the innermost frame of its contexts, and whether that is a class.
fn by_lock(profile: &Profile, kind: &ValueKind) -> BTreeMap<(String, bool), i64> {
    let series = profile.all_series().find(|(_, series)| series.info().kind == *kind);
    let mut sums = BTreeMap::new();
    for row in series.expect("a series").1.rows() {
        let frame = profile.contexts.frame(row.context).expect("a frame");
        let method = profile.method_of(frame);
        let is_class = method.kind == MethodKind::Class;
        let name = if is_class { method.class } else { method.name };
        *sums.entry((profile.strings.get(name).to_owned(), is_class)).or_default() += row.value;
    }
    sums
}

/// What the program says: the numbers of each line that begins with a word.
fn said(target: &Target, word: &str) -> Vec<Vec<u64>> {
    let text = target.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines.map(|line| line.split(' ').map(|n| n.parse().expect("a number")).collect()).collect()
}

fn kinds(jdk: &Jdk) -> &'static [&'static str] {
    if jdk.major >= 21 { &["platform", "virtual"] } else { &["platform"] }
}

on_each_jdk! {
    /// Who waits for whom, where and how long; owners and what they do.
    fn scripted(jdk) {
        let mut target = truth(jdk);
        for kind in kinds(jdk) {
            let scratch = Scratch::new();
            let file = scratch.join("locks.tare");
            let before = said(&target, "entered").len();
            let session = Session::begin(&target, &[], &file);
            // Short ones for what is wrong by a time, long ones for what is by a share.
            for millis in [3, 40] {
                target.ask(&format!("enter {kind} 5 3 {millis}"));
            }
            let recorded = session.stop(&file);
            let waits = waits(&recorded.profile);
            let truth = &said(&target, "entered")[before..];
            assert_eq!(truth.len(), 30);
            assert_eq!(waits.len(), truth.len(), "{kind}: {waits:#?}");
            let mut times = Vec::new();
            let (mut owned, mut stacks) = (0, 0);
            for line in truth {
                let of_thread: Vec<_> = waits.iter().filter(|w| w.thread == Some(line[0])).collect();
                let [wait] = of_thread[..] else { panic!("{kind} {line:?}: {waits:#?}") };
                times.push(Timed { recorded: wait.nanos, most: line[2], least: line[3] });
                assert_eq!(wait.wait, Wait::MonitorEnter);
                assert_eq!(wait.stack[..2], [GATE, "LockTruth.enter"], "{kind}");
                assert!(wait.owner.is_none_or(|owner| owner == line[1]), "{kind} {line:?} {wait:?}");
                assert!((1..=3).contains(&wait.queue), "{kind} {wait:?}");
                owned += usize::from(wait.owner.is_some());
                let holds = wait.owner_stack.iter().any(|name| name == "LockTruth.hold");
                stacks += usize::from(holds && wait.held);
            }
            assert_times(kind, &times);
            assert!(owned * 100 >= truth.len() * 95, "{kind}: {owned} owners: {waits:#?}");
            assert!(stacks * 100 >= truth.len() * 90, "{kind}: {stacks} stacks: {waits:#?}");
            let gate = (GATE.to_owned(), true);
            let counts = by_lock(&recorded.profile, &ValueKind::Contentions);
            assert_eq!(counts.get(&gate), Some(&30), "{kind}: {counts:?}");
            let blocked = by_lock(&recorded.profile, &ValueKind::BlockedTime);
            let sum: u64 = times.iter().map(|time| time.recorded).sum();
            assert_eq!(blocked.get(&gate).copied(), i64::try_from(sum).ok(), "{kind}");
        }
        target.finish();
    }

    /// `Object.wait` is no contention.
    fn waiting(jdk) {
        let mut target = truth(jdk);
        for kind in kinds(jdk) {
            let scratch = Scratch::new();
            let file = scratch.join("locks.tare");
            let before = said(&target, "waited").len();
            let session = Session::begin(&target, &[], &file);
            for millis in [3, 40] {
                target.ask(&format!("wait {kind} 5 {millis}"));
            }
            let recorded = session.stop(&file);
            let waits = waits(&recorded.profile);
            let truth = &said(&target, "waited")[before..];
            let only: Vec<_> = waits.iter().filter(|w| w.wait == Wait::MonitorWait).collect();
            assert_eq!((only.len(), truth.len()), (10, 10), "{kind}: {waits:#?}");
            let mut times = Vec::new();
            for line in truth {
                let wait = only.iter().find(|wait| wait.thread == Some(line[0]));
                let wait = wait.unwrap_or_else(|| panic!("{kind} {line:?}: {waits:#?}"));
                times.push(Timed { recorded: wait.nanos, most: line[2], least: line[3] });
                assert_eq!(wait.stack[0], GATE);
                assert!(wait.stack.iter().any(|name| name == "LockTruth.await"), "{kind} {wait:?}");
            }
            assert_times(kind, &times);
            let gate = (GATE.to_owned(), true);
            let waiting = by_lock(&recorded.profile, &ValueKind::WaitingTime);
            let sum: u64 = times.iter().map(|time| time.recorded).sum();
            assert_eq!(waiting.get(&gate).copied(), i64::try_from(sum).ok(), "{kind}");
            let blocked = by_lock(&recorded.profile, &ValueKind::BlockedTime);
            assert_eq!(blocked.get(&gate), None, "{kind}: {waits:#?}");
        }
        target.finish();
    }

    /// Every contention is counted, by the JVM's own count: told one by one, or in the sum of those
    /// that are too short.
    fn counted(jdk) {
        let scratch = Scratch::new();
        let mut target = truth(jdk);
        let gate = (GATE.to_owned(), true);
        let shorter = ("[shorter waits]".to_owned(), false);
        for threshold in ["0", "10s"] {
            let file = scratch.join(&format!("{threshold}.tare"));
            let session = Session::begin(&target, &["--lock-threshold", threshold], &file);
            target.ask("hammer 4 20000");
            let recorded = session.stop(&file);
            let blocked = said(&target, "blocked");
            let blocked = blocked.last().expect("a count")[0] as i64;
            assert!(blocked > 0, "no thread met another");
            let counts = by_lock(&recorded.profile, &ValueKind::Contentions);
            let time = by_lock(&recorded.profile, &ValueKind::BlockedTime);
            if threshold == "0" {
                assert_eq!(counts.get(&gate), Some(&blocked), "{:?}", recorded.losses());
                assert_eq!(counts.get(&shorter), None);
            } else {
                assert_eq!(counts.get(&gate), None);
                // Of other threads there are few, if any.
                let all = counts.get(&shorter).copied().unwrap_or(0);
                assert!((blocked..blocked + 50).contains(&all), "{all} of {blocked}");
                assert!(time.get(&shorter).is_some_and(|time| *time > 0), "{time:?}");
            }
        }
        target.finish();
    }

    /// A recording that ends while threads wait has those waits as far as they have come, and
    /// leaves nothing behind.
    fn under_way(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("locks.tare");
        let mut target = truth(jdk);
        let session = Session::begin(&target, &[], &file);
        target.ask("block platform 3");
        let recorded = session.stop(&file);
        let waits = waits(&recorded.profile);
        assert_eq!(waits.len(), 3, "{waits:#?}");
        for wait in &waits {
            assert_eq!(wait.stack[..2], [GATE, "LockTruth.enter"]);
            assert!(wait.owner.is_some(), "{wait:?}");
        }
        // The owner may not have got a processor since it was asked last.
        let holds = |wait: &Waited| wait.owner_stack.iter().any(|name| name == "LockTruth.hold");
        assert!(waits.iter().any(holds), "{waits:#?}");
        Tare::this().run(&["detach", &target.name()]).ok();
        assert_no_trace(target.pid());
        target.ask("release");
        assert_eq!(said(&target, "entered").len(), 3);
        target.finish();
    }

    /// Thousands of threads wait for one lock.
    fn crowd(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("locks.tare");
        let mut target = truth(jdk);
        let session = Session::begin(&target, &[], &file);
        target.ask("block platform 2000");
        target.ask("release");
        let recorded = session.stop(&file);
        let waits = waits(&recorded.profile);
        assert_eq!(waits.len(), 2000);
        assert!(waits.iter().any(|wait| wait.queue == 2000));
        let owned = waits.iter().filter(|wait| wait.owner.is_some()).count();
        assert!(owned >= 1900, "{owned}");
        target.finish();
    }

    /// That nobody waited is an answer: the recording ends well, and the report says so.
    fn nobody_waits(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("locks.tare").display().to_string();
        // It reads its input, which is no wait of this kind.
        let target = Target::java(jdk).class_path(classes()).main("Idle").start();
        let name = target.name();
        // The JDK's own threads may wake up meanwhile, and go to sleep again.
        let mut tries = (0..20).map(|_| {
            let words = ["record", "--lock", "-d", "300ms", "-o", &file, &name];
            let said = Tare::this().run(&words).ok().to_owned();
            (said, Recorded::open(Path::new(&file)).fact(keys::LOCK_TOLD))
        });
        let (said, _) = tries.find(|(_, told)| *told == Some(0)).expect("a run without waits");
        let answer = "no wait for a lock, park or sleep of 10 µs or longer was seen to begin";
        assert!(said.contains(answer) && !said.contains("nothing was measured"), "{said}");
        assert!(said.contains("nothing is woven into a running JVM"), "{said}");
        let said = Tare::this().run(&["report", &file, "--locks"]);
        assert!(said.ok().contains(answer), "{}", said.out);
        target.finish();
    }

    /// A front end that is killed leaves nothing switched on.
    fn killed(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("locks.tare");
        let mut target = truth(jdk);
        let mut session = Session::begin(&target, &[], &file);
        target.ask("hammer 4 2000");
        session.recording.kill();
        let name = target.name();
        wait_until("all is switched off again", || {
            let status = Tare::this().status(&name);
            status["engines"].as_array().is_some_and(Vec::is_empty)
        });
        let mut control = Control::connect(target.pid());
        control.greet();
        let before = control.status();
        assert!(!before.capabilities_held.iter().any(|held| held.contains("monitor")));
        target.ask("hammer 4 2000");
        assert_eq!(control.status().events, before.events, "the JVM still tells of waits");
        assert_eq!(control.status().panics, 0);
        drop(control);
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(target.pid());
        target.finish();
    }

    /// With the program, and beside the other engines on one clock.
    fn launched(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("all.tare");
        let (out, java) = (file.display().to_string(), jdk.java().display().to_string());
        let classes = classes().display().to_string();
        // The recording's file is there when all engines are on.
        let on = format!("file {out}");
        let program = ["--", &java, "-cp", &classes, "LockTruth", &on, "enter platform 5 2 3"];
        let words = ["record", "--lock", "--cpu", "--alloc", "-o", &out];
        Tare::this().run(&[&words[..], &program].concat()).ok();
        let recorded = Recorded::open(&file);
        let waits = waits(&recorded.profile);
        assert_eq!(waits.len(), 10, "{waits:#?}");
        let kinds = recorded.profile.all_series().map(|(_, series)| series.info().kind.clone());
        let kinds: Vec<ValueKind> = kinds.collect();
        for kind in [ValueKind::CpuTime, ValueKind::AllocatedBytes, ValueKind::BlockedTime] {
            assert!(kinds.contains(&kind), "{kind:?} of {kinds:?}");
        }
    }
}
