//! Recordings of threads that park, against a program that scripts who waits for what and measures
//! its own waits: locks, conditions, queues, futures and sleep, on platform and virtual threads;
//! tasks in the queues of executors; and what happens when a recording ends while threads wait.
//!
//! No test asserts a time that the machine's load could change: what was recorded is compared with
//! what the program measured around the same wait.

use crate::common::{Timed, assert_no_trace, assert_times};
use crate::recording::Recorded;
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Command;
use tare_jvm_tests::{
    Control, Jdk, Running, Scratch, Tare, Target, classes, control_socket, env, on_each_jdk, skip,
    wait_until,
};
use tare_profile::{ContextId, EventTable, FieldValue, Profile, ThreadId, Wait};

/// What is waited for: its name in the script, how it is told, and its class.
const SCRIPT: [(&str, Wait, &str); 13] = [
    ("lock", Wait::Lock, "java.util.concurrent.locks.ReentrantLock"),
    ("read", Wait::SharedLock, "java.util.concurrent.locks.ReentrantReadWriteLock"),
    ("write", Wait::Lock, "java.util.concurrent.locks.ReentrantReadWriteLock"),
    ("write-after-read", Wait::Lock, "java.util.concurrent.locks.ReentrantReadWriteLock"),
    ("semaphore", Wait::SharedLock, "java.util.concurrent.Semaphore"),
    ("stamped-read", Wait::SharedLock, "java.util.concurrent.locks.StampedLock"),
    ("stamped-write", Wait::Lock, "java.util.concurrent.locks.StampedLock"),
    ("latch", Wait::Condition, "java.util.concurrent.CountDownLatch"),
    ("condition", Wait::Condition, "java.util.concurrent.locks.ReentrantLock"),
    ("queue", Wait::Queue, "java.util.concurrent.locks.ReentrantLock"),
    ("synchronous", Wait::Queue, "java.util.concurrent.SynchronousQueue"),
    ("future", Wait::Future, "java.util.concurrent.CompletableFuture"),
    ("task", Wait::Future, "java.util.concurrent.FutureTask"),
];

/// With an option of the JVM.
fn truth_with(jdk: &Jdk, option: &str) -> Target {
    let target = Target::java(jdk).vm("-Djdk.virtualThreadScheduler.parallelism=4").vm(option);
    target.class_path(classes()).main("ParkTruth").start()
}

fn truth(jdk: &Jdk) -> Target {
    truth_with(jdk, "-Xmx256m")
}

/// A recording of locks under way.
struct Session {
    recording: Running,
}

impl Session {
    fn begin(target: &Target, lock: &str, file: &Path) -> Self {
        let (file, name) = (file.display().to_string(), target.name());
        let recording = Tare::this().start(&["record", lock, "-o", &file, &name]);
        control_socket(target.pid());
        wait_until("locks are recorded", || {
            let status = Tare::this().status(&name);
            status["engines"].as_array().is_some_and(|on| on.contains(&"locks".into()))
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

/// A wait as it was recorded, or a task in a queue.
#[derive(Debug)]
struct Waited {
    wait: Option<Wait>,
    class: String,
    nanos: u64,
    thread: Option<u64>,
    owner: Option<u64>,
    /// Names of methods, innermost first.
    stack: Vec<String>,
    owner_stack: Vec<String>,
}

fn stack(profile: &Profile, context: ContextId) -> Vec<String> {
    let frames = profile.contexts.frames(context);
    frames.map(|frame| profile.method_name(profile.frames.get(frame).method)).collect()
}

fn table<'p>(profile: &'p Profile, kind: &str) -> Option<&'p EventTable> {
    let mut tables = profile.all_events();
    tables.find(|(_, table)| table.kind().name == kind).map(|(_, table)| table)
}

fn events(profile: &Profile, kind: &str) -> Vec<Waited> {
    let Some(table) = table(profile, kind) else { return Vec::new() };
    let field = |row, name| table.field(row, table.field_named(name)?);
    let text = |row, name| match field(row, name) {
        Some(FieldValue::Text(id)) => profile.strings.get(id).to_owned(),
        _ => String::new(),
    };
    let id = |thread: ThreadId| profile.threads.get(thread).java_id;
    let waited = |(row, event): (usize, tare_profile::Event)| Waited {
        wait: Wait::from_name(&text(row, "operation")),
        class: text(row, "class"),
        nanos: event.duration,
        thread: id(event.thread),
        owner: match field(row, "owner") {
            Some(FieldValue::Thread(owner)) => id(owner),
            _ => None,
        },
        stack: stack(profile, event.context),
        owner_stack: match field(row, "owner-context") {
            Some(FieldValue::Context(context)) => stack(profile, context),
            _ => Vec::new(),
        },
    };
    table.events().enumerate().map(waited).collect()
}

/// The waits in the program's `await`.
fn waits(profile: &Profile) -> Vec<Waited> {
    let mut all = events(profile, "lock");
    let is_in = |wait: &Waited, method: &str| wait.stack.iter().any(|name| name == method);
    // What the program needs for its own report may be a monitor that somebody has.
    all.retain(|wait| is_in(wait, "ParkTruth.await") && wait.wait != Some(Wait::MonitorEnter));
    all
}

/// What the program says: the numbers of each line that begins with a word.
fn said(target: &Target, word: &str) -> Vec<Vec<u64>> {
    let text = target.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    let numbers = lines.filter(|line| line.bytes().all(|b| b == b' ' || b.is_ascii_digit()));
    numbers.map(|line| line.split(' ').map(|n| n.parse().expect("a number")).collect()).collect()
}

fn check(target: &mut Target, kind: &str, lock: &str) {
    let scratch = Scratch::new();
    let file = scratch.join("parks.tare");
    let session = Session::begin(target, lock, &file);
    let before: Vec<usize> = SCRIPT.iter().map(|(what, ..)| said(target, what).len()).collect();
    for (what, ..) in SCRIPT {
        // Short ones for what is wrong by a time, long ones for what is by a share.
        for millis in [3, 40] {
            target.ask(&format!("wait {kind} {what} 2 2 {millis}"));
        }
    }
    let recorded = session.stop(&file);
    let waits = waits(&recorded.profile);
    let (mut owned, mut stacks, mut owners) = (0, 0, 0);
    for ((what, wait, class), before) in SCRIPT.iter().zip(before) {
        let truth = &said(target, what)[before..];
        assert_eq!(truth.len(), 8, "{kind} {what}");
        let mut times = Vec::new();
        for line in truth {
            let of_thread = waits.iter().filter(|w| w.thread == Some(line[0]));
            // Whoever was signalled may have to wait for the lock of the condition, too.
            let again = ["condition", "queue", "synchronous"].contains(what);
            let of_thread: Vec<_> =
                of_thread.filter(|w| !again || w.wait != Some(Wait::Lock)).collect();
            let [one] = of_thread[..] else { panic!("{kind} {what} {line:?}: {waits:#?}") };
            assert_eq!(one.wait, Some(*wait), "{kind} {what}: {one:?}");
            assert_eq!(one.class, *class, "{kind} {what}: {one:?}");
            let is_ours =
                |name: &&String| name.contains("TareParks") || name.contains("notifyJvmti");
            assert_eq!(one.stack.iter().find(is_ours), None, "{one:?}");
            if !again {
                times.push(Timed { recorded: one.nanos, most: line[2], least: line[3] });
            }
            if line[1] != 0 {
                assert!(one.owner.is_none_or(|owner| owner == line[1]), "{kind} {what} {one:?}");
                owners += 1;
                owned += usize::from(one.owner.is_some());
                let holds = one.owner_stack.iter().any(|name| name == "ParkTruth.hold");
                stacks += usize::from(holds);
            }
        }
        assert_times(&format!("{kind} {what}"), &times);
    }
    assert!(owned * 100 >= owners * 95, "{kind}: {owned} of {owners}: {waits:#?}");
    assert!(stacks * 100 >= owners * 90, "{kind}: {stacks} of {owners}: {waits:#?}");
}

/// Has async-profiler do something in a JVM, through the JDK's own tool.
fn other_profiler(target: &Target, library: &Path, what: &str) {
    let mut command = Command::new(env().javac.home.join("bin/jcmd"));
    command.args([&target.name(), "JVMTI.agent_load"]).arg(library);
    // In quotes, since the tool would take what is behind an equals sign for its own.
    let said = command.arg(format!("\"{what}\"")).output().expect("jcmd runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && text.contains("return code: 0"), "{text}");
}

on_each_jdk! {
    /// Each kind of wait, on both kinds of threads of a running JVM: nothing is woven.
    fn attached(jdk) {
        let mut target = truth(jdk);
        check(&mut target, "platform", "--lock");
        target.ask("sleep platform 3 5");
        if jdk.major >= 21 {
            check(&mut target, "virtual", "--lock");
        }
        // The JVM remarks that when somebody else replaces its native methods.
        assert!(!target.text().contains("e-registering"), "{}", target.text());
        target.finish();
    }

    /// The same on both kinds of threads where classes of the JDK are woven, and again.
    fn woven(jdk) {
        let mut target = truth(jdk);
        let kinds: &[&str] = if jdk.major >= 21 { &["virtual", "platform"] } else { &["platform"] };
        for kind in kinds {
            check(&mut target, kind, "--lock=full");
        }
        target.finish();
    }

    /// A thread that is woken and does not get the lock waits once; sleep is what it is.
    fn barged(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("parks.tare");
        let mut target = truth(jdk);
        let session = Session::begin(&target, "--lock=full", &file);
        target.ask("barge 5");
        target.ask("sleep platform 5 3");
        if jdk.major >= 21 {
            target.ask("sleep virtual 5 3");
        }
        let recorded = session.stop(&file);
        let waits = waits(&recorded.profile);
        let truth = said(&target, "lock");
        assert_eq!((waits.len(), truth.len()), (5, 5), "{waits:#?}");
        let time = |line: &Vec<u64>| {
            let of_thread = waits.iter().find(|wait| wait.thread == Some(line[0]));
            let wait = of_thread.expect("a wait of each thread");
            Timed { recorded: wait.nanos, most: line[2], least: line[3] }
        };
        assert_times("barged", &truth.iter().map(time).collect::<Vec<_>>());
        let slept = events(&recorded.profile, "lock");
        let slept: Vec<_> = slept.iter().filter(|wait| wait.wait == Some(Wait::Sleep)).collect();
        let truth = said(&target, "sleep");
        assert_eq!(truth.len(), if jdk.major >= 21 { 10 } else { 5 });
        let mut times = Vec::new();
        for line in &truth {
            let of_thread: Vec<_> = slept.iter().filter(|w| w.thread == Some(line[0])).collect();
            let [one] = of_thread[..] else { panic!("{line:?}: {slept:#?}") };
            // A thread sleeps for as long as it was told to.
            times.push(Timed { recorded: one.nanos, most: line[2], least: 3_000_000 });
        }
        assert_times("sleep", &times);
        target.finish();
    }

    /// Virtual threads of a running JVM that sleep, and that cannot leave their carriers.
    fn virtual_threads(jdk) {
        if jdk.major < 21 {
            return;
        }
        let scratch = Scratch::new();
        let file = scratch.join("parks.tare");
        let mut target = truth_with(jdk, "--add-exports=java.base/jdk.internal.vm=ALL-UNNAMED");
        let session = Session::begin(&target, "--lock", &file);
        target.ask("sleep virtual 5 40");
        target.ask("pinned 5 40");
        let recorded = session.stop(&file);
        let all = events(&recorded.profile, "lock");
        // A park may end before its time, for no reason. Before JDK 24 the timer is set before the
        // thread leaves its carrier: on a busy machine much of a sleep may be over by then.
        let asleep = if jdk.major < 24 { 0 } else { 40_000_000 };
        for (word, wait, least) in [("sleep", Wait::Sleep, asleep), ("pinned", Wait::Park, 0)] {
            let truth = said(&target, word);
            assert_eq!(truth.len(), 5, "{word}");
            let mut times = Vec::new();
            for line in &truth {
                let of_thread = all.iter().filter(|w| w.thread == Some(line[0]));
                let of_thread: Vec<_> =
                    of_thread.filter(|w| w.wait != Some(Wait::MonitorEnter)).collect();
                let [one] = of_thread[..] else { panic!("{word} {line:?}: {of_thread:#?}") };
                assert_eq!(one.wait, Some(wait), "{word}: {one:?}");
                times.push(Timed { recorded: one.nanos, most: line[2], least });
            }
            assert_times(word, &times);
        }
        target.finish();
    }

    /// Tasks that wait for a thread of a pool.
    fn queued(jdk) {
        let scratch = Scratch::new();
        let mut target = truth(jdk);
        for (pool, class) in [("pool", "ThreadPoolExecutor"), ("fork", "ForkJoinPool")] {
            let file = scratch.join(&format!("{pool}.tare"));
            let before = said(&target, "task").len();
            let session = Session::begin(&target, "--lock=full", &file);
            target.ask(&format!("tasks {pool} 10 2"));
            let recorded = session.stop(&file);
            let tasks = events(&recorded.profile, "task");
            let ours = |task: &&Waited| task.stack.iter().any(|name| name == "ParkTruth.tasks");
            let mut times: Vec<u64> = tasks.iter().filter(ours).map(|task| task.nanos).collect();
            let mut truth: Vec<u64> = said(&target, "task")[before..].iter().map(|l| l[2]).collect();
            assert_eq!((times.len(), truth.len()), (10, 10), "{pool}: {tasks:#?}");
            times.sort_unstable();
            truth.sort_unstable();
            // When a task was in the queue, only the program's own clock tells, and that one is
            // read before: the first submission may take long. So none is longer than the program
            // says, the longest beside the longest; and each is beside the least that is as long.
            let is_within = |recorded: u64, most: u64| recorded <= most + (most / 20).max(100_000);
            let mut pairs = times.iter().zip(&truth);
            assert!(pairs.all(|(one, most)| is_within(*one, *most)), "{pool}: {times:?} {truth:?}");
            let timed = |recorded| {
                let most = truth.iter().copied().find(|most| is_within(recorded, *most));
                Timed { recorded, most: most.expect("one that is as long"), least: 0 }
            };
            assert_times(pool, &times.iter().copied().map(timed).collect::<Vec<_>>());
            let executors = table(&recorded.profile, "task").expect("a table");
            let at = executors.field_named("executor").expect("a field");
            let Some(FieldValue::Text(name)) = executors.field(0, at) else { panic!("no text") };
            let name = recorded.profile.strings.get(name);
            assert_eq!(name, format!("java.util.concurrent.{class}"));
        }
        target.finish();
    }

    /// A recording that ends while threads wait has those waits as far as they have come. They wake
    /// up later and run on, under the JVM's own check of native calls.
    fn under_way(jdk) {
        let scratch = Scratch::new();
        let mut target = truth_with(jdk, "-Xcheck:jni");
        // The JVM remarks that we have handlers.
        target.forgive("SIGSEGV");
        target.forgive("SIGBUS");
        let all = [("platform", "--lock=full"), ("virtual", "--lock=full"), ("virtual", "--lock")];
        for (kind, lock) in if jdk.major >= 21 { &all[..] } else { &all[..1] } {
            let file = scratch.join(&format!("{kind}{lock}.tare"));
            let before = said(&target, "lock").len();
            let session = Session::begin(&target, lock, &file);
            target.ask(&format!("block {kind} 3"));
            let recorded = session.stop(&file);
            let waits = waits(&recorded.profile);
            assert_eq!(waits.len(), 3, "{kind}: {waits:#?}");
            Tare::this().run(&["detach", &target.name()]).ok();
            assert_no_trace(target.pid());
            target.ask("release");
            assert_eq!(said(&target, "lock").len() - before, 3);
            // Others park in what is left behind.
            target.ask(&format!("wait {kind} lock 2 2 1"));
        }
        let text = target.text();
        assert!(!text.contains("WARNING in native") && !text.contains("FATAL"), "{text}");
        target.finish();
    }

    /// async-profiler replaces `Unsafe.park`, too, and puts the JDK's own back when it ends. Whoever
    /// comes and goes first, the program runs on, and the next recording sees everything again.
    fn beside_async_profiler(jdk) {
        let Some(library) = &env().async_profiler else {
            skip("a second agent that replaces Unsafe.park", "async-profiler was never fetched");
            return;
        };
        for ours_first in [true, false] {
            let scratch = Scratch::new();
            let mut target = truth(jdk);
            let (ours, theirs) = (scratch.join("x.tare"), scratch.join("x.collapsed"));
            if !ours_first {
                other_profiler(&target, library, "start,event=lock,lock=10us");
            }
            let session = Session::begin(&target, "--lock", &ours);
            if ours_first {
                other_profiler(&target, library, "start,event=lock,lock=10us");
            }
            target.ask("wait platform lock 4 2 3");
            target.ask("sleep platform 3 3");
            let stop = format!("stop,collapsed,file={}", theirs.display());
            let recorded = match ours_first {
                true => {
                    other_profiler(&target, library, &stop);
                    target.ask("wait platform lock 4 2 3");
                    session.stop(&ours)
                }
                false => {
                    let recorded = session.stop(&ours);
                    target.ask("wait platform lock 4 2 3");
                    other_profiler(&target, library, &stop);
                    recorded
                }
            };
            let told = fs::read_to_string(&theirs).expect("what async-profiler tells");
            assert!(told.contains("ParkTruth.await"), "it was not on: {told}");
            // Theirs goes straight to the JDK's own, past ours; ours calls what it has found.
            if !ours_first {
                assert_eq!(waits(&recorded.profile).len(), 8);
            }
            target.ask("wait platform lock 4 2 3");
            let again = scratch.join("again.tare");
            let session = Session::begin(&target, "--lock", &again);
            target.ask("wait platform lock 4 2 3");
            let waits = waits(&session.stop(&again).profile);
            assert_eq!(waits.len(), 8, "{waits:#?}");
            Tare::this().run(&["detach", &target.name()]).ok();
            target.ask("wait platform lock 4 2 3");
            target.finish();
        }
    }

    /// Thousands of threads wait for one lock, and a front end that is killed leaves nothing on.
    fn crowd(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("parks.tare");
        let mut target = truth(jdk);
        let kind = if jdk.major >= 21 { "virtual" } else { "platform" };
        for lock in ["--lock=full", "--lock"] {
            let session = Session::begin(&target, lock, &file);
            target.ask(&format!("block {kind} 1000"));
            target.ask("release");
            let recorded = session.stop(&file);
            assert_eq!(waits(&recorded.profile).len(), 1000, "{lock}");
        }
        let mut session = Session::begin(&target, "--lock=full", &file);
        target.ask(&format!("block {kind} 100"));
        session.recording.kill();
        let name = target.name();
        wait_until("all is switched off again", || {
            let status = Tare::this().status(&name);
            status["engines"].as_array().is_some_and(Vec::is_empty)
        });
        target.ask("release");
        let mut control = Control::connect(target.pid());
        control.greet();
        assert_eq!(control.status().panics, 0);
        drop(control);
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(target.pid());
        target.ask(&format!("wait {kind} lock 2 2 1"));
        target.finish();
    }
}
