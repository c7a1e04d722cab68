//! `tare run`: programs and scripts started with the agent inside stay what they are, with their
//! own input, output and exit code; every JVM among them is told apart.

use crate::common::{assert_no_trace, nameless_files};
use rustix::process::Signal;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tare_jvm_tests::{
    Jdk, Scratch, Tare, Target, classes, descendants, jdk, jvm_below, on_each_jdk, wait_until,
};

/// The command line of the plain target on a JDK.
fn java(jdk: &Jdk) -> Vec<OsString> {
    Target::idle(jdk).vm("-Xcheck:jni").words()
}

/// `tare run -- COMMAND`, as a target whose input and output are the program's.
fn run(scratch: &Scratch, command: &[OsString]) -> Target {
    let mut words: Vec<OsString> = vec!["run".into(), "--".into()];
    words.extend(command.iter().cloned());
    Target::spawn(Tare::this().var("TARE_CACHE", scratch.path()).command(&words))
}

fn script(scratch: &Scratch, text: &str) -> PathBuf {
    let file = scratch.join("start.sh");
    fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

on_each_jdk! {
    fn java_itself(jdk) {
        let scratch = Scratch::new();
        let mut target = run(&scratch, &java(jdk));
        target.wait_for("ready");
        let pid = jvm_below(target.pid()).expect("a JVM");
        let tare = Tare::this();
        let status = tare.status(&pid.to_string());
        assert_eq!(status["loaded_by"], "launch");
        let said = target.text();
        let told = said.lines().find(|line| line.starts_with("tare:")).expect("it is told");
        assert!(told.contains(&pid.to_string()) && told.contains("Idle"), "{told}");
        assert!(told.contains(&format!("java {}", jdk.major)), "{told}");

        tare.run(&["detach", &pid.to_string()]).ok();
        assert_no_trace(pid);
        assert_eq!(nameless_files(pid), [""; 0], "of the launched JVM");
        target.tell("exit 42");
        let (code, text) = target.wait();
        assert_eq!(code, 42, "{text}");
        assert!(!text.contains("WARNING"), "an agent from the start needs no warning: {text}");
        let left: Vec<_> = fs::read_dir("/tmp").unwrap().filter_map(Result::ok)
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(&format!(".tare-{pid}-")))
            .collect();
        assert_eq!(left, [""; 0]);
    }

    /// A script that starts two JVMs and has options of its own for them.
    fn a_script_with_two_jvms(jdk) {
        let scratch = Scratch::new();
        let (java, classes) = (jdk.java(), classes());
        let line = |word: &str| {
            format!("\"{}\" -Xmx64m -cp \"{}\" Idle {word}", java.display(), classes.display())
        };
        let text = format!("echo one | {}\necho two | {}\nexit 9", line("first"), line("second"));
        let file = script(&scratch, &text);
        let words: Vec<OsString> = vec!["run".into(), "--".into(), file.into()];
        let tare = Tare::this()
            .var("TARE_CACHE", scratch.path())
            .var("JAVA_TOOL_OPTIONS", "-Dkept=yes \"-Dspaced=a b\"");
        let (code, text) = Target::spawn(tare.command(&words)).wait();
        assert_eq!(code, 9, "{text}");
        let picked_up = text.lines().filter(|line| line.contains("Picked up JAVA_TOOL_OPTIONS"));
        for line in picked_up {
            assert!(line.contains("-Dkept=yes \"-Dspaced=a b\" "), "{line}");
            assert!(line.contains("-agentpath:"), "{line}");
        }
        let up: Vec<_> = text.lines().filter(|l| l.starts_with("tare:") && l.contains("is up")).collect();
        let ended = text.lines().filter(|l| l.starts_with("tare:") && l.contains("ended")).count();
        assert_eq!((up.len(), ended), (2, 2), "{text}");
        assert_ne!(up[0], up[1], "they must be told apart");
        assert!(text.contains("unknown: one") && text.contains("unknown: two"), "{text}");
    }
}

/// Options that were there reach the program as they would without us.
#[test]
fn existing_options_are_kept() {
    let scratch = Scratch::new();
    let words = java(jdk());
    let quoted: Vec<String> = words.iter().map(|w| format!("'{}'", w.to_string_lossy())).collect();
    let file = script(&scratch, &format!("exec {}", quoted.join(" ")));
    let words: Vec<OsString> = vec!["run".into(), "--".into(), file.into()];
    let tare = Tare::this()
        .var("TARE_CACHE", scratch.join("a cache with spaces"))
        .var("JAVA_TOOL_OPTIONS", "-Dkept=yes");
    let mut target = Target::spawn(tare.command(&words));
    target.wait_for("ready");
    assert!(target.ask("property kept").ends_with("yes"));
    let pid = jvm_below(target.pid()).expect("a JVM");
    assert_eq!(Tare::this().status(&pid.to_string())["loaded_by"], "launch");
    target.finish();
}

/// A service manager ends the front end; the program ends with it, in its own way.
#[test]
fn signals_reach_the_program() {
    let scratch = Scratch::new();
    let mut target = run(&scratch, &java(jdk()));
    target.wait_for("ready");
    let pid = jvm_below(target.pid()).expect("a JVM");
    target.signal(Signal::TERM);
    let (code, text) = target.wait();
    assert_eq!(code, 143, "{text}");
    wait_until("the program has ended", || !tare_jvm_tests::exists(pid));
}

/// The front end of a launch dies; the program does not.
#[test]
fn the_launcher_is_killed() {
    let scratch = Scratch::new();
    let mut target = run(&scratch, &java(jdk()));
    target.wait_for("ready");
    let pid = *descendants(target.pid()).first().expect("the program");
    target.signal(Signal::KILL);
    wait_until("the launcher is gone", || !target.is_alive());
    target.check_works();
    assert_eq!(Tare::this().status(&pid.to_string())["loaded_by"], "launch");
    Tare::this().run(&["detach", &pid.to_string()]).ok();
    assert_no_trace(pid);
    target.check_works();
    target.tell("exit 0");
    wait_until("the program has ended", || !tare_jvm_tests::exists(pid));
    // Who is killed cannot tidy up; that we do for it.
    let ours = format!(".tare-run-{}-", target.pid());
    for entry in fs::read_dir("/tmp").unwrap().filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(&ours) {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
}

#[test]
fn what_cannot_be_run() {
    let scratch = Scratch::new();
    let tare = Tare::this().var("TARE_CACHE", scratch.path());
    tare.run(&["run"]).fails(2, &["command"]);
    tare.run(&["run", "--", "/nowhere/java"]).fails(1, &["/nowhere/java"]);
    let outcome = tare.run(&["run", "--", "true"]);
    assert_eq!(outcome.code, 0, "{}", outcome.describe());
    assert!(outcome.err.contains("no JVM was started with the agent"), "{}", outcome.describe());
    let outcome = tare.run(&["run", "--quiet", "--", "sh", "-c", "echo mine; exit 3"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (3, "mine\n"));
}
