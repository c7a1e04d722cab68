//! A process that is no JVM, or no process at all, is refused in words and left alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tare_jvm_tests::{Scratch, Tare, Target, exists};

fn refused(name: &str, parts: &[&str]) {
    for verb in ["status", "detach", "doctor"] {
        Tare::this().run(&[verb, name]).fails(1, parts);
    }
}

#[test]
fn a_plain_process() {
    let mut command = Command::new("sleep");
    command.arg("1000");
    let target = Target::spawn(command);
    refused(&target.name(), &[&target.name(), "sleep", "not a JVM"]);
    assert!(target.is_alive());
    assert!(Tare::this().listed(target.pid()).is_none());
}

/// A name proves nothing.
#[test]
fn a_process_called_java() {
    let scratch = Scratch::new();
    let fake = scratch.join("java");
    fs::copy("/bin/sleep", &fake).unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&fake);
    command.arg("1000");
    let target = Target::spawn(command);
    refused(&target.name(), &["not a JVM"]);
    assert!(target.is_alive());
}

#[test]
fn no_process_at_all() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    assert!(!exists(pid));
    refused(&pid.to_string(), &["no process", &pid.to_string()]);
    refused("4194305", &["no process"]);
}

/// A process that has ended but was not waited for still has a pid.
#[test]
fn a_process_that_has_ended() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    tare_jvm_tests::wait_until("it is a zombie", || !exists(pid));
    refused(&pid.to_string(), &[&pid.to_string()]);
    child.wait().unwrap();
}

#[test]
fn odd_names() {
    for name in ["0", "99999999999999999999", "-1", "", " ", "no such main class"] {
        let outcome = Tare::this().run(&["status", "--", name]);
        assert!(matches!(outcome.code, 1 | 2), "{}", outcome.describe());
        assert!(!outcome.err.is_empty() && !outcome.err.contains("panicked"));
    }
    Tare::this().run::<&str>(&["status"]).fails(2, &["usage"]);
    Tare::this().run(&["dance"]).fails(2, &["dance"]);
}
