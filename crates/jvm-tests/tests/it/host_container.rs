//! `tare --host docker:…` into a container: namespaces of its own, a root that cannot be written,
//! a /tmp that lets nothing run, another user. The program named docker is a stand-in that checks
//! its words and enters. And a far side that has a `tare` of another build.

use crate::common::files_about;
use crate::host::Far;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tare_jvm_tests::{
    Demo, Scratch, Tare, Target, can, env, is_root, on_each_jdk, shared_classes, shared_jdk, skip,
    wait_until,
};
use tare_recording::Recording;

const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
/// Programs run in /var/tmp alone, as in an `emptyDir` of a pod.
const ROOT: &str = "mount --make-rprivate / && \
                    for d in /tmp /dev/shm /run /root /home; do \
                      [ -d $d ] && mount -t tmpfs -o mode=1777,noexec tmpfs $d; \
                    done; mount -t tmpfs -o mode=1777 tmpfs /var/tmp && \
                    mount -o remount,bind,ro / && exec \"$@\"";

#[test]
fn another_root_and_another_user() {
    const TEST: &str = "a container with a read-only root and another user, by --host";
    if !is_root() {
        return skip(TEST, "we are not root");
    }
    let container = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let words = [&container[..], &["sh", "-c", ROOT, "sh"], &NOBODY].concat();
    let tries = "! touch /x 2>/dev/null && touch /var/tmp/x";
    if !can(TEST, &[&words[..], &["sh", "-c", tries]].concat()) {
        return;
    }
    let below =
        |jdk: &&tare_jvm_tests::Jdk| ["/root", "/home", "/tmp"].map(|d| jdk.home.starts_with(d));
    let Some(jdk) = shared_jdk(TEST, &NOBODY).filter(|jdk| !below(jdk).contains(&true)) else {
        return skip(TEST, "no Java runtime is where a container can see it");
    };
    let scratch = Scratch::below(Path::new("/opt"));
    let classes = shared_classes(&scratch);
    let java = Target::idle(jdk).class_path(&classes).directory(Path::new("/"));
    let mut target = java.through(&words).start();
    let pid = target.pid();
    let enter = format!("nsenter --target {pid} --mount --pid --setuid 65534 --setgid 65534");
    let far = Far::through(&enter);
    let (tare, here) = (far.tare(), ["--host", "docker:shop"]);
    let ask = |words: &[&str]| tare.run(&[&here[..], words].concat());
    // There it has another number.
    let list = ask(&["ps", "--json"]).json();
    let inner = list[0]["pid"].as_u64().expect("one JVM").to_string();
    assert_ne!(inner, pid.to_string(), "{list}");
    let threads = ask(&["threads", &inner]);
    assert!(threads.ok().contains("no deadlock"), "{}", threads.describe());
    let outcome = ask(&["record", &inner, "--wall", "-d", "2s", "-o", "x.tare"]);
    assert!(outcome.ok().contains("x.tare"), "{}", outcome.describe());
    assert_eq!(Recording::open(&far.near().join("x.tare")).unwrap().warnings(), []);
    ask(&["detach", &inner]).ok();
    let tmp = format!("/proc/{pid}/root/var/tmp");
    let left = || {
        let names = fs::read_dir(&tmp).unwrap().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with("tare")).collect::<Vec<_>>()
    };
    wait_until("nothing is left there", || left().is_empty());
    assert_eq!(files_about(Path::new(&tmp), inner.parse().unwrap()), [""; 0]);
    target.check_works();
    target.finish();
}

on_each_jdk! {
    /// It is asked who it is, and nothing else: this one sends itself.
    fn a_far_side_of_another_build(jdk) {
        let demo = Demo::start(jdk);
        let (pid, name) = (demo.target.pid(), demo.target.name());
        let scratch = Scratch::new();
        let asked = scratch.join("asked");
        let theirs = format!(
            "#!/bin/sh\necho \"$*\" >> {}\nexec {} \"$@\"\n",
            asked.display(),
            env().next_bin.display()
        );
        fs::write(scratch.join("tare"), theirs).unwrap();
        fs::set_permissions(scratch.join("tare"), fs::Permissions::from_mode(0o755)).unwrap();
        let far = Far::through(&format!("env PATH={}:/usr/bin:/bin", scratch.path().display()));
        let tare = far.tare();
        let list = tare.run(&["--host", "ann@box", "ps", "--json"]).json();
        assert!(list.as_array().unwrap().iter().any(|jvm| jvm["pid"] == pid), "{list}");
        assert_eq!(fs::read_to_string(&asked).unwrap(), "relay --id\n");
        // Its agent may be in a JVM; how to be rid of it can be pasted here.
        Tare::next().status(&name);
        let outcome = tare.run(&["--host", "ann@box", "record", &name, "-d", "1s"]);
        let remedy = format!("tare --host ann@box detach {pid}");
        outcome.fails(1, &[&remedy]);
        let words: Vec<&str> = remedy.split(' ').skip(1).collect();
        tare.run(&words).ok();
        crate::common::assert_no_trace(pid);
        demo.check_answers();
        demo.finish();
    }
}
