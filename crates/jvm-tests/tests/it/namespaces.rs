//! JVMs in namespaces of their own, as containers have them: another root, another numbering of
//! processes, other users, other mounts over /tmp.

use crate::common::files_about;
use std::fs;
use std::path::{Path, PathBuf};
use tare_jvm_tests::{
    Jdk, Scratch, Tare, Target, can, env, own_mappings, shared_classes, skip, thread_names,
    wait_until,
};

/// A JVM that is not below /tmp, because that is covered by another mount in these tests.
fn jdk(test: &str) -> Option<&'static Jdk> {
    let found = env().jdks.iter().find(|jdk| !jdk.home.starts_with("/tmp"));
    if found.is_none() {
        skip(test, "all Java runtimes here are below /tmp");
    }
    found
}

/// The pid that a process has in its own eyes.
fn inner_pid(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).expect("NSpid");
    pids.split_whitespace().next_back().and_then(|pid| pid.parse().ok()).expect("a pid")
}

/// The files in the /tmp that a process sees.
fn tmp_of(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/root/tmp")).into_iter().flatten();
    entries.filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned())).collect()
}

/// Enters and leaves a JVM that was started by `unshare` with `words`, and looks for traces in its
/// own world.
fn visit(test: &str, words: &[&str]) {
    let Some(jdk) = jdk(test) else { return };
    let mut try_out = words.to_vec();
    try_out.push("true");
    if !can(test, &try_out) {
        return;
    }
    let scratch = Scratch::below(Path::new("/var/tmp"));
    let classes = shared_classes(&scratch);
    let java = Target::idle(jdk).vm("-Xcheck:jni").class_path(&classes);
    let mut target = java.directory(scratch.path()).through(words).start();
    let (pid, name) = (target.pid(), target.name());
    let tare = Tare::this();
    assert_eq!(tare.listed(pid).expect("listed")["agent"], "none");
    for _ in 0..3 {
        let outcome = tare.run(&["status", &name, "--json"]);
        let status = outcome.json();
        assert_eq!((&status["loaded_by"], &status["panics"]), (&"attach".into(), &0.into()));
        assert_eq!(tare.listed(pid).expect("listed")["agent"], "active");
        target.check_works();
        tare.run(&["detach", &name]).ok();
        wait_until("our thread is gone", || {
            !thread_names(pid).iter().any(|name| name.starts_with("tare"))
        });
        // Inside it may have another pid, which its own /tmp shows.
        let tmp = PathBuf::from(format!("/proc/{pid}/root/tmp"));
        let inner = inner_pid(pid);
        assert_eq!(files_about(&tmp, inner), [""; 0], "left in the JVM's /tmp");
        assert_eq!(files_about(&tmp, pid), [""; 0], "left in the JVM's /tmp");
        assert_eq!(files_about(Path::new("/tmp"), pid), [""; 0], "left in our /tmp");
    }
    assert!(!own_mappings(pid).is_empty());
    target.check_works();
    target.finish();
}

const OWN_TMP: &str = "mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$@\"";

#[test]
fn another_mount_namespace() {
    visit("another mount namespace", &["unshare", "--mount", "sh", "-c", OWN_TMP, "sh"]);
}

#[test]
fn another_pid_namespace() {
    let words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    visit("another pid namespace", &words);
}

#[test]
fn another_pid_and_mount_namespace() {
    let words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    visit("another pid and mount namespace", &[&words[..], &["sh", "-c", OWN_TMP, "sh"]].concat());
}

#[test]
fn another_user_namespace() {
    visit("another user namespace", &["unshare", "--user", "--map-root-user"]);
}

/// As a rootless container: all of it at once.
#[test]
fn all_namespaces() {
    let words = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork"];
    let more =
        ["--mount-proc", "--kill-child", "--uts", "--ipc", "--net", "sh", "-c", OWN_TMP, "sh"];
    visit("all namespaces", &[&words[..], &more[..]].concat());
}

/// /tmp cannot hold programs, as hardened machines have it.
#[test]
fn no_programs_in_tmp() {
    let mount = "mount -t tmpfs -o mode=1777,noexec tmpfs /tmp && exec \"$@\"";
    visit("a noexec /tmp", &["unshare", "--mount", "sh", "-c", mount, "sh"]);
}

/// Nothing that can be written to can hold programs: then the message says so.
#[test]
fn no_programs_anywhere() {
    const TEST: &str = "no place for programs";
    let Some(jdk) = jdk(TEST) else { return };
    let mount = "mount --make-rprivate / && mount -o remount,bind,ro / ; \
                 for d in /tmp /var/tmp /dev/shm /run /root /home; do \
                   [ -d $d ] && mount -t tmpfs -o mode=1777,noexec tmpfs $d; \
                 done; mount -o remount,bind,ro /; exec \"$@\"";
    let words = ["unshare", "--mount", "sh", "-c", mount, "sh"];
    if !can(TEST, &[&words[..], &["sh", "-c", "! touch /x"]].concat()) {
        return;
    }
    let scratch = Scratch::below(Path::new("/opt"));
    let classes = shared_classes(&scratch);
    let java = Target::idle(jdk).class_path(&classes).directory(Path::new("/"));
    let mut target = java.through(&words).start();
    let outcome = Tare::this().run(&["status", &target.name()]);
    outcome.fails(1, &["noexec"]);
    let left: Vec<_> = tmp_of(target.pid()).into_iter().filter(|f| f.contains("tare")).collect();
    assert_eq!(left, [""; 0]);
    target.check_works();
    target.finish();
}
