//! Recordings of references that native code makes, against a library whose leaks are known: beside
//! another agent in the same table of functions, under `-Xcheck:jni`, killed, and many at once.

use crate::common::files_about;
use crate::recording::Recorded;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use tare_jvm_tests::{
    Control, Jdk, Running, Scratch, Tare, Target, classes, control_socket, on_each_jdk,
    test_natives, thread_names, wait_until,
};
use tare_profile::facts::keys;

fn references(jdk: &Jdk, options: &[&str]) -> Target {
    let natives = format!("-agentpath:{}", test_natives().display());
    let target = Target::java(jdk).vm(natives).class_path(classes()).main("References");
    options.iter().fold(target, |target, option| target.vm(option)).start()
}

struct Session {
    recording: Running,
}

impl Session {
    fn begin(target: &Target, file: &Path) -> Self {
        let (file, name) = (file.display().to_string(), target.name());
        let recording = Tare::this().start(&["record", "--jni-refs", "-o", &file, &name]);
        control_socket(target.pid());
        wait_until("references are recorded", || {
            let status = Tare::this().status(&name);
            status["engines"].as_array().is_some_and(|on| on.contains(&"jni-refs".into()))
        });
        Session { recording }
    }

    /// As Ctrl-C does it; the recording, and the report of it.
    fn stop(self, file: &Path) -> (Recorded, Value) {
        self.recording.signal(Signal::INT);
        self.recording.wait().ok();
        let words = ["report", &file.display().to_string(), "--format", "json"];
        let report = Tare::this().run(&words).json()["jni_refs"].clone();
        (Recorded::open(file), report)
    }
}

/// Made and alive at the site that a Java method calls.
fn site(report: &Value, method: &str, weak: bool) -> Option<(u64, u64, Value)> {
    let sites = report["sites"].as_array().expect("a list");
    let site = sites.iter().find(|site| site["java"] == method && site["weak"] == weak)?;
    Some((site["made"].as_u64()?, site["alive"].as_u64()?, site.clone()))
}

const LEAKS: &str = "Natives.leakReferences";
const TIDIES: &str = "Natives.tidyReferences";

on_each_jdk! {
    /// A library that leaks a thousand references is named, with its stack; what is deleted is not.
    fn leaks_are_named(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("refs.tare");
        let mut target = references(jdk, &[]);
        let before = target.ask("function");
        let session = Session::begin(&target, &file);
        assert_ne!(target.ask("function"), before);
        target.ask("leak 1000");
        target.ask("tidy 500");
        target.ask("weak 30");
        let (recorded, report) = session.stop(&file);
        assert_eq!(target.ask("function"), before, "the JVM's function is back");
        let (made, alive, leak) = site(&report, LEAKS, false).expect("the leak");
        assert_eq!((made, alive), (1000, 1000), "{report:#}");
        assert_eq!(leak["class"], "References$Held");
        let native = leak["native"].as_str().expect("a function");
        assert!(native.starts_with("Java_Natives_leakReferences (libtare_test_natives"), "{leak}");
        assert_eq!(report["sites"][0], leak, "what is not deleted comes first");
        let (made, alive, _) = site(&report, TIDIES, false).expect("the others");
        assert_eq!((made, alive), (500, 0));
        let (made, alive, _) = site(&report, LEAKS, true).expect("weak ones");
        assert_eq!((made, alive), (30, 30));
        assert!(recorded.fact(keys::JNI_MADE) >= Some(1530));
        let said = Tare::this().run(&["report", &file.display().to_string(), "--jni-refs"]);
        assert!(said.ok().contains(LEAKS), "{}", said.out);
        target.finish();
    }

    /// Somebody puts a function over ours: it is called, ours are called by it, and afterwards ours
    /// only pass through, until the next recording.
    fn others_over_ours(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("refs.tare");
        let mut target = references(jdk, &[]);
        let session = Session::begin(&target, &file);
        target.ask("over");
        target.ask("leak 10");
        let (_, report) = session.stop(&file);
        assert_eq!(site(&report, LEAKS, false).map(|(made, ..)| made), Some(10), "{report:#}");
        let called = |text: String| -> u64 {
            text.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number")
        };
        let before = called(target.ask("over"));
        target.ask("tidy 7");
        assert!(called(target.ask("over")) >= before + 7);
        let session = Session::begin(&target, &file);
        target.ask("leak 20");
        let (_, report) = session.stop(&file);
        assert_eq!(site(&report, LEAKS, false).map(|(made, ..)| made), Some(20), "{report:#}");
        // It goes, and leaves ours behind; the next recording takes them out.
        target.ask("under");
        let session = Session::begin(&target, &file);
        target.ask("leak 30");
        let (_, report) = session.stop(&file);
        assert_eq!(site(&report, LEAKS, false).map(|(made, ..)| made), Some(30), "{report:#}");
        target.ask("tidy 100");
        target.finish();
    }

    /// The JVM's own checks of JNI find nothing to complain about.
    fn checked(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("refs.tare");
        // Else the JVM says that there are handlers of signals, as walking stacks needs them.
        let mut target = references(jdk, &["-Xcheck:jni", "-XX:+AllowUserSignalHandlers"]);
        target.ask("tidy 10");
        let session = Session::begin(&target, &file);
        target.ask("leak 100");
        target.ask("tidy 100");
        let (_, report) = session.stop(&file);
        assert_eq!(site(&report, LEAKS, false).map(|(made, ..)| made), Some(100), "{report:#}");
        target.ask("tidy 10");
        let text = target.text();
        for complaint in ["in native method", "JNI", "FATAL"] {
            let said = text.lines().any(|line| line.contains(complaint));
            assert!(!said, "{complaint}: {text}");
        }
        target.finish();
    }

    /// Killed in the middle of many: the table is as it was, and nothing is left on.
    fn killed(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("refs.tare");
        let mut target = references(jdk, &[]);
        let mut session = Session::begin(&target, &file);
        target.tell("crowd 30000");
        session.recording.kill();
        target.wait_for("crowd 30000: done");
        let name = target.name();
        wait_until("all is switched off again", || {
            let status = Tare::this().status(&name);
            status["engines"].as_array().is_some_and(Vec::is_empty)
        });
        let mut control = Control::connect(target.pid());
        control.greet();
        assert_eq!(control.status().panics, 0);
        drop(control);
        target.ask("crowd 1000");
        Tare::this().run(&["detach", &name]).ok();
        // The tests' own library is called like ours.
        wait_until("the agent has gone", || {
            let left = thread_names(target.pid()).into_iter().any(|name| name.starts_with("tare"));
            !left && files_about(Path::new("/tmp"), target.pid()).is_empty()
        });
        target.ask("crowd 1000");
        target.finish();
    }
}
