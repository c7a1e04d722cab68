//! Files that the owner of a JVM chose, read by somebody else, perhaps root: pipes where jars
//! should be, argument files that name themselves, options files that are devices. Nothing hangs,
//! grows or is opened that should not be.

use crate::common::assert_no_trace;
use crate::recording::Recorded;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tare_jvm_tests::{Scratch, Tare, Target, classes, control_socket, on_each_jdk, wait_until};

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo can be started");
    assert!(made.success(), "no pipe at {}", path.display());
}

/// Calls `body`, and says whether somebody opened a pipe for reading meanwhile.
fn is_opened_by(pipe: &Path, body: impl FnOnce()) -> bool {
    let opened = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // To open a pipe for writing takes until somebody opens it for reading.
        scope.spawn(|| {
            OpenOptions::new().write(true).open(pipe).expect("our own pipe");
            opened.store(true, SeqCst);
        });
        body();
        let was_opened = opened.load(SeqCst);
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let release = OpenOptions::new().read(true).custom_flags(nonblocking).open(pipe);
        wait_until("the pipe is released", || opened.load(SeqCst));
        drop(release.expect("our own pipe"));
        was_opened
    })
}

on_each_jdk! {
    /// A recording of a program with a pipe on its class path ends, and says what it left out.
    fn a_pipe_on_the_class_path(jdk) {
        let scratch = Scratch::new();
        let pipe = scratch.join("pipe.jar");
        make_pipe(&pipe);
        let path = format!("{}:{}", classes().display(), pipe.display());
        let file = scratch.join("x.tare").display().to_string();
        let mut target = Target::java(jdk).class_path(path.as_ref()).main("Idle").start();
        let name = target.name();
        for mode in [&["--exact"][..], &["--trace"], &["--wall"]] {
            let words = [&["record"], mode, &["-o", &file, &name]].concat();
            let recording = Tare::this().start(&words);
            control_socket(target.pid());
            wait_until("the recording is on", || {
                let engines = Tare::this().status(&name)["engines"].clone();
                engines.as_array().is_some_and(|engines| !engines.is_empty())
            });
            target.check_works();
            if mode == ["--wall"] {
                // The class path is looked at for what was sampled.
                let report = ["report", &name, "--idle", "--native", "--format", "json"];
                wait_until("there are samples", || {
                    let outcome = Tare::this().run(&report);
                    outcome.code == 0 && outcome.json()["total"].as_i64().unwrap_or(0) > 0
                });
            }
            recording.signal(rustix::process::Signal::INT);
            recording.wait().ok();
            let losses = Recorded::open(file.as_ref()).losses().join("\n");
            assert!(losses.contains("pipe.jar: not a regular file"), "{mode:?}: {losses}");
            assert_no_trace(target.pid());
        }
        target.finish();

        let java = jdk.java().display().to_string();
        let launched = ["record", "--exact", "-o", &file, "--", &java, "-cp", &path, "Idle"];
        Tare::this().run(&launched).ok();
        let losses = Recorded::open(file.as_ref()).losses().join("\n");
        assert!(losses.contains("pipe.jar: not a regular file"), "{losses}");
    }

    /// A file of arguments that names itself is opened once, as the launcher does it.
    fn argument_files_that_name_themselves(jdk) {
        let scratch = Scratch::new();
        let bomb = scratch.join("bomb");
        let line = format!("-cp {} Idle\n", classes().display());
        fs::write(&bomb, line).expect("our own directory");
        let option = format!("@{}", bomb.display());
        let mut target = Target::java(jdk).vm(&option).no_class_path().start();
        fs::write(&bomb, format!("{option} ").repeat(20_000)).expect("our own directory");
        let limited = Tare::this().through(&["prlimit", "--as=1500000000"]);
        assert!(limited.listed(target.pid()).is_some(), "not listed");
        limited.run(&["status", &target.name()]).ok();
        target.check_works();
        target.finish();
    }

    /// Files of options are looked at before they are opened: a device may do anything when it is.
    fn options_files_that_are_none(jdk) {
        let scratch = Scratch::new();
        let options = scratch.join("options");
        fs::write(&options, "").expect("our own directory");
        let target = Target::idle(jdk).vm(format!("-XX:Flags={}", options.display())).start();
        fs::remove_file(&options).expect("our own directory");
        make_pipe(&options);
        let opened = is_opened_by(&options, || {
            for _ in 0..5 {
                assert!(Tare::this().listed(target.pid()).is_some());
            }
        });
        assert!(!opened, "the pipe was opened");
        target.finish();
    }
}
