//! A JVM of another user: root enters it as that user; anybody else is told whom to ask.

use crate::common::assert_no_trace;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use tare_jvm_tests::{
    Scratch, Tare, Target, control_socket, env, is_root, jdk, own_mappings, shared_classes,
    shared_jdk, skip,
};

const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
fn root_enters_it() {
    const TEST: &str = "a JVM of another user, entered by root";
    if !is_root() {
        return skip(TEST, "we are not root");
    }
    let Some(jdk) = shared_jdk(TEST, &NOBODY) else { return };
    let scratch = Scratch::new();
    let classes = shared_classes(&scratch);
    let java = Target::idle(jdk).vm("-Xcheck:jni").class_path(&classes);
    let mut target = java.directory(scratch.path()).through(&NOBODY).start();
    let (pid, name) = (target.pid(), target.name());
    // What a killed JVM of root under the same number left would be in this one's way.
    let _ = fs::remove_file(format!("/tmp/.java_pid{pid}"));
    let entry = Tare::this().listed(pid).expect("listed");
    assert_eq!(entry["uid"], 65534, "{entry}");
    for _ in 0..3 {
        let status = Tare::this().status(&name);
        assert_eq!((&status["loaded_by"], &status["refused"]), (&"attach".into(), &0.into()));
        let socket = fs::metadata(control_socket(pid)).unwrap();
        assert_eq!((socket.uid(), socket.mode() & 0o777), (65534, 0o600));
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(pid);
    }
    target.check_works();
    target.finish();
}

/// The front end runs as nobody, and the JVM belongs to root.
#[test]
fn a_stranger_is_told_whom_to_ask() {
    const TEST: &str = "a front end without the right to enter";
    if !is_root() {
        return skip(TEST, "we are not root");
    }
    // Our own build directory may be out of reach for others.
    let scratch = Scratch::new();
    let binary = scratch.join("tare");
    for (from, to) in [(&env().bin, &binary), (&env().agent, &scratch.join("libtare_agent.so"))] {
        fs::copy(from, to).unwrap();
        fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tare = Tare::at(&binary).directory(scratch.path()).through(&NOBODY);
    let mut target = Target::idle(jdk()).start();
    assert!(tare.run(&["ps"]).ok().contains(&target.name()));
    for verb in ["status", "detach"] {
        tare.run(&[verb, &target.name()]).fails(1, &[&target.name(), "root"]);
    }
    // What cannot be known is said to be so, and who knows.
    let outcome = tare.run(&["doctor", &target.name()]);
    let (_, of_jvm) = outcome.ok().split_once("JVM ").expect("a part about the JVM");
    for line in ["JVM ", "place ", "attach "] {
        let unknown = |text: &&str| text.contains(line) && text.trim_start().starts_with("unknown");
        let found =
            of_jvm.lines().find(unknown).unwrap_or_else(|| panic!("{}", outcome.describe()));
        assert!(found.contains("cannot be known as uid 65534"), "{}", outcome.describe());
        assert!(found.contains("belongs to root"), "{}", outcome.describe());
    }
    let remedy = format!("sudo tare doctor {}", target.name());
    assert!(of_jvm.contains(&remedy), "{}", outcome.describe());
    assert!(!of_jvm.contains("our own namespaces"), "{}", outcome.describe());
    assert!(own_mappings(target.pid()).is_empty());

    // The same once the agent is in.
    Tare::this().run(&["status", &target.name()]).ok();
    tare.run(&["status", &target.name()]).fails(1, &["root"]);
    assert_eq!(Tare::this().status(&target.name())["front_ends"], 1);
    target.check_works();
    target.finish();
}
