//! All of java.base is woven under a load of virtual threads (platform threads before 21): the
//! program survives and computes what it always does, launched and attached.

use crate::common::assert_no_trace;
use crate::recording::{Recorded, begin, end, java, record};
use rustix::process::Signal;
use std::thread::sleep;
use std::time::Duration;
use tare_jvm_tests::{
    Demo, Jdk, Scratch, Seeded, Tare, Target, classes, control_socket, on_each_jdk, run,
};

const ALL: [&str; 6] = ["--include", "java.**", "--include", "jdk.**", "--include", "sun.**"];
const PROGRAM: [&str; 2] = ["Everything", "500"];

/// The line with the program's result.
fn sum(text: &str) -> &str {
    text.lines().find(|line| line.starts_with("sum ")).expect("a sum")
}

fn plain(jdk: &Jdk) -> String {
    let mut java = std::process::Command::new(jdk.java());
    run(java.arg("-cp").arg(classes()).args(PROGRAM))
}

on_each_jdk! {
    fn launched(jdk) {
        let plain = plain(jdk);
        for mode in [&["--count"][..], &[]] {
            let scratch = Scratch::new();
            let file = scratch.join("x.tare");
            let mut words = record(&[mode, &ALL].concat(), &file);
            words.extend(java(jdk, classes(), &PROGRAM));
            let text = Tare::this().run(&words).ok().to_owned();
            assert_eq!(sum(&text), sum(&plain));
            let counts = Recorded::open(&file).counts();
            // Each task asks once, whatever the JVM itself does besides.
            let digests = counts["java.security.MessageDigest.getInstance"];
            assert!(digests >= 500, "{digests} of 500");
            assert!(counts["java.util.HashMap.merge"] >= 500 * 20);
        }
    }

    /// The demo's requests go on while everything below them is woven and restored.
    fn attached(jdk) {
        let mut command = Demo::command(jdk);
        if jdk.major >= 21 {
            command = command.arg("--virtual=50");
        }
        let demo = Demo::from(command);
        let scratch = Scratch::new();
        for mode in ["--count", "--cpu-time"] {
            let options = [&[mode], &ALL[..]].concat();
            let file = scratch.join("x.tare");
            let recording = begin(&demo.target.name(), &options, &file);
            demo.check_answers();
            end(recording);
            let methods = Recorded::open(&file).counts().len();
            assert!(methods > 200, "only {methods} methods of the JDK were called");
            demo.check_answers();
        }
        assert_no_trace(demo.target.pid());
        demo.finish();
    }

    /// At the first change of a class of `java.base` HotSpot runs Java code that needs
    /// `Module$ReflectionData`, and here that change comes while this very class is loaded.
    fn a_class_that_the_jvm_needs_for_the_first_change(jdk) {
        let mut target = Target::idle(jdk).start();
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let options = ["--count", "--include", "java.lang.Module$ReflectionData", "--include", "Idle"];
        let recording = begin(&target.name(), &options, &file);
        assert_eq!(target.ask("proxy"), "proxy: 7");
        end(recording);
        assert_eq!(Recorded::open(&file).counts()["Idle.proxy"], 1);
        assert_eq!(target.ask("proxy"), "proxy: 7");
        assert_no_trace(target.pid());
        target.finish();
    }

    /// Ctrl-C at ten moments, most of them while classes are woven: everything is as it was, and
    /// requests are answered.
    fn ended_while_it_is_woven(jdk) {
        let demo = Demo::from(Demo::command(jdk));
        let (name, scratch) = (demo.target.name(), Scratch::new());
        let mut seeded = Seeded::new(u64::from(jdk.major));
        let mut woven = 0;
        for round in 0..10 {
            let file = scratch.join(&format!("{round}.tare"));
            let words = record(&[&["--count"], &ALL[..], &[&name]].concat(), &file);
            let recording = Tare::this().start(&words);
            control_socket(demo.target.pid());
            sleep(Duration::from_millis(seeded.below(1_500)));
            recording.signal(Signal::INT);
            let outcome = recording.wait();
            // 130: nothing was woven to the end, so there is nothing to keep.
            match outcome.code {
                130 => assert!(!file.exists(), "{}", outcome.describe()),
                0 => woven += 1,
                _ => drop(outcome.fails(1, &["nothing was recorded"]).len()),
            }
            assert_no_trace(demo.target.pid());
            demo.check_answers();
        }
        assert!(woven < 10, "no end came while classes were woven");
        demo.finish();
    }
}
