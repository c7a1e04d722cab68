//! Files that stand where HotSpot's attach protocol expects its own: left over, cleaned away, or
//! planted by somebody. SIGQUIT then makes a JVM print all its threads, so it must not be sent.

use crate::common::assert_no_trace;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use tare_jvm_tests::{Scratch, Tare, Target, is_root, jdk, on_each_jdk, skip};

fn socket_of(target: &Target) -> PathBuf {
    PathBuf::from(format!("/tmp/.java_pid{}", target.pid()))
}

/// Tries to enter while a file stands in the way. It may succeed or say why not; once the file is
/// gone it succeeds. The target itself fails the test if it printed its threads.
fn try_with(mut target: Target, file: &Path) {
    let name = target.name();
    let outcome = Tare::this().run(&["status", &name, "--timeout", "5s"]);
    if outcome.code != 0 {
        outcome.fails(1, &[&name]);
    }
    target.check_works();
    let _ = fs::remove_file(file);
    let entered = Tare::this().run(&["status", &name, "--json"]).json();
    assert_eq!(entered["loaded_by"], "attach");
    Tare::this().run(&["detach", &name]).ok();
    assert_no_trace(target.pid());
    target.check_works();
    let _ = fs::remove_file(socket_of(&target));
    target.finish();
}

on_each_jdk! {
    /// Something cleans /tmp between two visits.
    fn the_socket_is_cleaned_away(jdk) {
        let mut target = Target::idle(jdk).start();
        for _ in 0..3 {
            assert_eq!(Tare::this().status(&target.name())["loaded_by"], "attach");
            Tare::this().run(&["detach", &target.name()]).ok();
            assert_no_trace(target.pid());
            fs::remove_file(socket_of(&target)).expect("the JVM has opened it");
        }
        target.check_works();
        target.finish();
    }

    /// A socket left over by an earlier process of the same pid.
    fn a_dead_socket(jdk) {
        let target = Target::idle(jdk).start();
        let socket = socket_of(&target);
        drop(UnixListener::bind(&socket).unwrap());
        assert!(socket.exists(), "a socket outlives who made it");
        try_with(target, &socket);
    }

    /// Somebody else listens there and would get what we send.
    fn a_socket_of_another_process(jdk) {
        let target = Target::idle(jdk).start();
        let socket = socket_of(&target);
        let listener = UnixListener::bind(&socket).unwrap();
        let name = target.name();
        Tare::this().run(&["status", &name, "--timeout", "5s"]).fails(1, &[&name, ".java_pid"]);
        drop(listener);
        try_with(target, &socket);
    }
}

#[test]
fn a_plain_file_for_a_socket() {
    let target = Target::idle(jdk()).start();
    let socket = socket_of(&target);
    fs::write(&socket, "").unwrap();
    try_with(target, &socket);
}

/// HotSpot looks in its working directory first and believes only a file of its own user.
#[test]
fn the_attach_file_of_another_user() {
    if !is_root() {
        return skip("attach files of another user", "we are not root");
    }
    for in_tmp in [false, true] {
        let scratch = Scratch::new();
        let target = Target::idle(jdk()).directory(scratch.path()).start();
        let place = if in_tmp { Path::new("/tmp") } else { scratch.path() };
        let file = place.join(format!(".attach_pid{}", target.pid()));
        fs::write(&file, "").unwrap();
        chown(&file, Some(65534), Some(65534)).unwrap();
        try_with(target, &file);
    }
}
