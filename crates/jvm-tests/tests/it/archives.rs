//! JVMs that have plans with archives of classes (CDS, AOT caches): they start, whatever is asked
//! of us, and are not made to crash when they write one.

use crate::recording::Recorded;
use std::fs;
use std::path::Path;
use std::process::Command;
use tare_jvm_tests::{Demo, Jdk, Outcome, Scratch, Tare, classes, demo_classes, on_each_jdk};

/// Runs `java OPTIONS -cp … Idle` by `tare record MODE --`; it ends at once, since it has no input.
fn launch(jdk: &Jdk, tare: &Tare, mode: &[&str], options: &[&str], file: &Path) -> Outcome {
    let (java, file) = (jdk.java().display().to_string(), file.display().to_string());
    let path = classes().display().to_string();
    let before = [&["record", "-o", &file], mode, &["--", &java]].concat();
    tare.run(&[before.as_slice(), options, &["-cp", &path, "Idle"]].concat())
}

fn java(jdk: &Jdk, words: &[&str]) {
    let output = Command::new(jdk.java()).args(words).output().expect("java starts");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{words:?}:\n{}", String::from_utf8_lossy(&said));
}

/// An archive of the JDK's classes, since not every runtime brings one.
fn archive(jdk: &Jdk, scratch: &Scratch) -> String {
    let option = format!("-XX:SharedArchiveFile={}", scratch.join("base.jsa").display());
    java(jdk, &["-Xshare:dump", &option]);
    option
}

#[track_caller]
fn assert_ran(outcome: &Outcome) {
    outcome.ok();
    assert!(outcome.out.contains("ready"), "{}", outcome.describe());
}

on_each_jdk! {
    /// `-Xshare:on` and its like, from every place where a JVM finds options.
    fn a_jvm_that_insists_on_its_archive_starts(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let base = archive(jdk, &scratch);
        let options = scratch.join("options");
        fs::write(&options, format!("{base} -Xshare:on\n")).expect("our own directory");
        let options = options.display();
        let plain = Tare::this();
        let by_variable = Tare::this().var("JDK_JAVA_OPTIONS", format!("@{options}"));
        let mut cases: Vec<(&Tare, Vec<String>)> = vec![
            (&plain, vec![base.clone(), "-Xshare:on".into()]),
            (&plain, vec![format!("@{options}")]),
            (&plain, vec![format!("-XX:VMOptionsFile={options}")]),
            (&by_variable, Vec::new()),
        ];
        let flags = scratch.join("flags");
        let cache = scratch.join("app.aot");
        if jdk.major == 17 {
            fs::write(&flags, "+RequireSharedSpaces\n").expect("our own directory");
            cases.push((&plain, vec![format!("-XX:Flags={}", flags.display()), base]));
        }
        if jdk.major >= 25 {
            let made = format!("-XX:AOTCacheOutput={}", cache.display());
            // Of directories on the class path there is no cache, so it is one of the JDK alone.
            java(jdk, &[&made, "-cp", &scratch.join("none.jar").display().to_string(), "-version"]);
            assert!(cache.exists(), "no cache was made");
            let text = format!("AOTMode=on\nAOTCache={}\n", cache.display());
            fs::write(&flags, text).expect("our own directory");
            cases.push((&plain, vec![format!("-XX:Flags={}", flags.display())]));
        }
        for (tare, options) in &cases {
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            for mode in [&[][..], &["--exact"]] {
                let outcome = launch(jdk, tare, mode, &options, &file);
                assert_ran(&outcome);
                if !mode.is_empty() {
                    assert!(outcome.err.contains("requires its class data archive"), "{}", outcome.describe());
                    assert!(!Recorded::open(&file).counts().is_empty(), "{}", outcome.describe());
                }
            }
        }
    }

    /// HotSpot starts no JVM with an agent when it is to archive its classes.
    fn a_jvm_that_makes_an_archive_starts_without_us(jdk) {
        let scratch = Scratch::new();
        let base = archive(jdk, &scratch);
        let made = scratch.join("made.jsa");
        let option = format!("-XX:ArchiveClassesAtExit={}", made.display());
        let arguments = scratch.join("arguments");
        fs::write(&arguments, format!("{base} {option}\n")).expect("our own directory");
        let arguments = format!("@{}", arguments.display());
        // Of classes in directories nothing is archived.
        let jar = scratch.join("demo.jar");
        let (jar, demo) = (jar.display().to_string(), demo_classes().display().to_string());
        tare_jvm_tests::jdk_tool("jar", &["cf", &jar, "-C", &demo, "."]);
        let java = jdk.java().display().to_string();
        let program = [&java, &arguments, "-cp", &jar, "shop.Main"].map(String::from);
        let words = ["--port=0", "--threads=1", "--rate=50", "--quiet", "--duration=1"];
        for (command, code) in [(&["run", "--"][..], 0), (&["record", "--exact", "--"], 1)] {
            let _ = fs::remove_file(&made);
            let line = [command, &program.each_ref().map(String::as_str), &words].concat();
            let outcome = Tare::this().directory(scratch.path()).run(&line);
            // Nothing was recorded.
            assert_eq!(outcome.code, code, "{}", outcome.describe());
            assert!(outcome.out.contains("ready"), "{}", outcome.describe());
            assert!(outcome.err.contains("started without the agent"), "{}", outcome.describe());
            assert!(outcome.err.contains("ArchiveClassesAtExit"), "{}", outcome.describe());
            assert!(made.exists(), "{}", outcome.describe());
        }
    }

    /// What HotSpot would crash over at its end is refused; where it would not, the archive is
    /// made.
    fn an_archive_in_the_making_is_not_spoilt(jdk) {
        let scratch = Scratch::new();
        let base = archive(jdk, &scratch);
        let made = scratch.join("made.jsa");
        let jar = scratch.join("demo.jar");
        let demo = demo_classes().display().to_string();
        tare_jvm_tests::jdk_tool("jar", &["cf", &jar.display().to_string(), "-C", &demo, "."]);
        let options = scratch.join("options");
        let mut cases = vec![(
            format!("{base} -XX:ArchiveClassesAtExit={}\n", made.display()),
            (jdk.major < 21).then_some("ArchiveClassesAtExit"),
        )];
        if jdk.major >= 25 {
            let training = format!("-XX:AOTMode=record -XX:AOTConfiguration={}\n", made.display());
            cases.push((training, Some("AOTMode=record")));
        }
        for (text, refused) in cases {
            let _ = fs::remove_file(&made);
            fs::write(&options, text).expect("our own directory");
            let builder = Demo::command(jdk).class_path(&jar);
            let demo = Demo::from(builder.vm(format!("-XX:VMOptionsFile={}", options.display())));
            let name = demo.target.name();
            let file = scratch.join("x.tare").display().to_string();
            let exact = Tare::this().run(&["record", "--exact", "-d", "2s", "-o", &file, &name]);
            match refused {
                Some(option) => {
                    exact.fails(1, &[option, "crash", "leave out --exact"]);
                }
                None => assert!(!exact.ok().is_empty()),
            }
            Tare::this().run(&["record", "-d", "1s", "-o", &file, &name]).ok();
            demo.check_answers();
            demo.finish();
            assert!(made.exists(), "the archive was not made");
        }
    }
}
