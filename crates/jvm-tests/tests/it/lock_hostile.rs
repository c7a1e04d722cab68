//! Locks recorded, and threads dumped, where that is made difficult: in namespaces as containers
//! have them, under filters of system calls, on a disk that becomes full, and in JVMs that have
//! just started or are killed.

use crate::locks::{Session, truth_through, waits};
use crate::recording::Recorded;
use rustix::process::Signal;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use tare_jvm_tests::{
    Jdk, PATIENCE, Scratch, Tare, Target, can, classes, env, jdk, jvm_below, on_each_jdk,
    shared_classes, skip, wait_until,
};

const FILTERED: &str = env!("CARGO_BIN_EXE_filtered");

/// What the program does while it is recorded: rounds, waiters in each, milliseconds.
const SCRIPT: &str = "enter platform 4 3 3";
const WAITS: usize = 12;

/// Records a scripted program, and compares what was recorded with what it did. `asked` says
/// whether owners can be asked for their stacks.
fn record(target: &mut Target, scratch: &Scratch, asked: bool) {
    let file = scratch.join("locks.tare");
    let session = Session::begin_apart(target, &file);
    target.ask(SCRIPT);
    let recorded = session.stop(&file);
    let waits = waits(&recorded.profile);
    assert_eq!(waits.len(), WAITS, "{waits:#?}");
    let owned = waits.iter().filter(|wait| wait.owner.is_some()).count();
    assert!(owned * 100 >= WAITS * 90, "{owned} owners: {waits:#?}");
    let holds = |name: &String| name == "LockTruth.hold";
    let stacks = waits.iter().filter(|wait| wait.owner_stack.iter().any(holds)).count();
    if asked {
        assert!(stacks * 100 >= WAITS * 80, "{stacks} stacks: {waits:#?}");
    } else {
        assert_eq!(stacks, 0, "{waits:#?}");
    }
}

/// Dumps the threads of a program while some wait for one of them.
fn dump(target: &mut Target) {
    target.ask("block platform 3");
    let answer = Tare::this().run(&["threads", &target.name(), "--json"]).json();
    let threads = answer["threads"].as_array().expect("a list");
    let blocked = threads.iter().filter(|thread| {
        let name = thread["name"].as_str().unwrap_or_default();
        name.starts_with("waiter-") && thread["state"] == "BLOCKED"
    });
    assert_eq!(blocked.count(), 3, "{answer:#}");
    target.ask("release");
}

/// A JVM that was started by `unshare` with these words.
fn visit(test: &str, words: &[&str]) {
    let Some(jdk) = env().jdks.iter().find(|jdk| !jdk.home.starts_with("/tmp")) else {
        skip(test, "all Java runtimes here are below /tmp");
        return;
    };
    if !can(test, &[words, &["true"]].concat()) {
        return;
    }
    let scratch = Scratch::below(Path::new("/var/tmp"));
    let classes = shared_classes(&scratch);
    let builder = Target::java(jdk).class_path(&classes).main("LockTruth");
    let mut target = builder.directory(scratch.path()).through(words).start();
    record(&mut target, &scratch, true);
    dump(&mut target);
    Tare::this().run(&["detach", &target.name()]).ok();
    target.ask(SCRIPT);
    target.finish();
}

const OWN_TMP: &str = "mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$@\"";

/// Threads have other numbers inside than outside.
#[test]
fn another_pid_namespace() {
    let words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    visit("locks in another pid namespace", &words);
}

/// As a rootless container: all of it at once.
#[test]
fn all_namespaces() {
    let words = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork"];
    let more =
        ["--mount-proc", "--kill-child", "--uts", "--ipc", "--net", "sh", "-c", OWN_TMP, "sh"];
    visit("locks in all namespaces", &[&words[..], &more[..]].concat());
}

/// A disk of its own for the tool, which others fill while waits are recorded: an error that says
/// so, and a JVM that runs on.
#[test]
fn a_disk_that_becomes_full() {
    let scratch = Scratch::new();
    let at = scratch.path().display().to_string();
    let mount = format!("mount -t tmpfs -o size=16m tmpfs {at} && exec \"$@\"");
    let words = ["unshare", "--mount", "sh", "-c", &mount, "sh"];
    if !can("locks on a disk that becomes full", &[&words[..], &["true"]].concat()) {
        return;
    }
    let mut target = truth_through(jdk(), &[]);
    let file = scratch.join("x.tare").display().to_string();
    let tool = Tare::this().through(&words);
    let recording = tool.start(&["record", "--lock", "-o", &file, &target.name()]);
    let inside = |name: &str| {
        let root = format!("/proc/{}/root", recording.pid());
        Path::new(&root).join(scratch.join(name).strip_prefix("/").expect("absolute"))
    };
    wait_until("the recording has begun", || inside("x.tare").exists());
    assert!(std::fs::write(inside("fill"), vec![0; 64 << 20]).is_err(), "16 MiB have room for 64");
    for _ in 0..10 {
        target.ask(SCRIPT);
    }
    let outcome = recording.wait();
    assert_eq!(outcome.code, 1, "{}", outcome.describe());
    let said = format!("{}{}", outcome.out, outcome.err);
    assert!(said.contains("No space left") || said.contains("full"), "{}", outcome.describe());
    target.ask(SCRIPT);
    target.finish();
}

on_each_jdk! {
    /// Calls that a filter answers with the end of the process are not made; where the signal by
    /// which owners are asked is denied, waits and owners are told without their stacks, and why.
    fn under_a_filter(jdk) {
        for action in ["kill", "signals"] {
            let scratch = Scratch::new();
            let mut target = truth_through(jdk, &[FILTERED, action]);
            record(&mut target, &scratch, action == "kill");
            if action == "signals" {
                let file = scratch.join("said.tare").display().to_string();
                let words = ["record", "--lock", "-d", "300ms", "-o", &file, &target.name()];
                let outcome = Tare::this().run(&words);
                let said = format!("{}{}", outcome.ok(), outcome.err);
                assert!(said.contains("Owners cannot be asked"), "{said}");
            }
            dump(&mut target);
            target.ask(SCRIPT);
            target.finish();
        }
    }

    /// A JVM that is killed while it is recorded: the waits until then are in the file.
    fn a_jvm_that_is_killed(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let mut target = truth_through(jdk, &[]);
        let session = Session::begin(&target, &[], &file);
        target.ask(SCRIPT);
        target.ask("block platform 3");
        target.signal(Signal::KILL);
        target.wait();
        session.ended();
        let waits = waits(&Recorded::open(&file).profile);
        assert!(waits.len() >= WAITS, "{waits:#?}");
    }

    /// JVMs of any age up to a few milliseconds: they are recorded, or it is said that it is too
    /// early, and none of them is hurt.
    fn a_jvm_that_has_just_started(jdk) {
        let mut entered = 0;
        for (age, lock) in [0, 5, 15, 30, 60].into_iter().zip(["--lock", "--lock=full"].iter().cycle()) {
            entered += usize::from(meet(jdk, age, lock));
        }
        assert!(entered > 0, "none of these JVMs could be recorded");
    }
}

/// Records a JVM that old; whether that was possible.
fn meet(jdk: &Jdk, age: u64, lock: &str) -> bool {
    let scratch = Scratch::new();
    let mut target = Target::java(jdk).class_path(classes()).main("LockTruth").spawn();
    let limit = std::time::Instant::now() + PATIENCE;
    while jvm_below(target.pid()).is_none() {
        assert!(std::time::Instant::now() < limit, "no JVM came up:\n{}", target.text());
    }
    sleep(Duration::from_millis(age));
    let (file, name) = (scratch.join("x.tare").display().to_string(), target.name());
    let outcome = Tare::this().run(&["record", lock, "-d", "300ms", "-o", &file, &name]);
    if outcome.code != 0 {
        eprintln!("{}", outcome.fails(1, &[&name]));
    }
    target.wait_for("ready");
    target.ask(SCRIPT);
    target.finish();
    outcome.code == 0
}
