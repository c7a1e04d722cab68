//! What the tool says and how it ends: names that fit nothing, recordings with nothing in them,
//! hints that are pasted, readers that go away, JVMs that end too soon.

use crate::common::assert_no_trace;
use crate::recording::Recorded;
use rustix::process::Signal;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tare_jvm_tests::{
    Jdk, Outcome, Scratch, Tare, Target, agent_jar, compiled, env, jdk, jdk_tool, on_each_jdk,
};
use tare_profile::facts::keys;

const FILTERED: &str = env!("CARGO_BIN_EXE_filtered");

const SHOP: &str = "package com.acme.shop;
    public class Orders {
        static long sink;
        public static long place(int n) { long s = 0; for (int i = 0; i < n; i++) { s += price(i); } return s; }
        static long price(int i) { return i * 31L % 7; }
        /** As many rounds as are asked for, or until its input ends. */
        public static void main(String[] words) throws Exception {
            System.out.println(\"ready\");
            if (words.length == 0) {
                Thread reader = new Thread(() -> {
                    try {
                        while (System.in.read() >= 0) { }
                    } catch (java.io.IOException end) { }
                    System.exit(0);
                });
                reader.start();
            }
            int rounds = words.length > 0 ? Integer.parseInt(words[0]) : Integer.MAX_VALUE;
            for (int i = 0; i < rounds; i++) {
                sink += place(50);
                if (i % 100 == 0) { Thread.sleep(1); }
            }
            System.out.println(\"done\");
        }
    }";

/// A program that goes on until it is told to end, in a directory of its own.
fn shop(jdk: &Jdk, scratch: &Scratch) -> Target {
    Target::java(jdk).class_path(&classes(scratch)).main("com.acme.shop.Orders").start()
}

fn classes(scratch: &Scratch) -> std::path::PathBuf {
    let classes = scratch.join("classes");
    if !classes.exists() {
        fs::create_dir(&classes).expect("our own directory");
        compiled(&classes, &[("com/acme/shop/Orders.java", SHOP)]);
    }
    classes
}

/// A run of the program that is over soon.
fn short(jdk: &Jdk, scratch: &Scratch) -> Vec<OsString> {
    let builder = Target::java(jdk).class_path(&classes(scratch));
    builder.main("com.acme.shop.Orders").arg("2000").words()
}

fn record(scratch: &Scratch, options: &[&str], program: &[OsString]) -> Outcome {
    let mut words: Vec<OsString> = vec!["record".into()];
    words.extend(options.iter().map(OsString::from));
    words.extend(["-o".into(), scratch.join("x.tare").into(), "--".into()]);
    words.extend(program.iter().cloned());
    Tare::this().run(&words)
}

on_each_jdk! {
    /// What fits nothing is told with the name that may be meant, and a recording of nothing is no
    /// success.
    fn names_that_fit_nothing(jdk) {
        let scratch = Scratch::new();
        let target = shop(jdk, &scratch);
        let (name, file) = (target.name(), scratch.join("x.tare"));
        let path = file.display().to_string();
        for (words, meant) in [
            (&["--exact", "--include", "com.acem.**"][..], "did you mean com.acme.**?"),
            (&["--exact", "--include", "com.acme"], "did you mean com.acme.**?"),
            (&["--trace", "--include", "com.acme.*"], "did you mean com.acme.**?"),
            (&["--exact", "--root", "com.acme.shop.Order.place"], "com.acme.shop.Orders.place?"),
            (&["--exact", "--root", "com.acme.**.plcae"], "com.acme.shop.Orders.place?"),
            (&["--region", "com.acme.shp.Orders.place"], "com.acme.shop.Orders.place?"),
            (&["--region", "com.acme.shop.Orders:900"], "no loaded class has such code"),
        ] {
            let words = [&["record", "-d", "500ms", "-o", &path], words, &[&name]].concat();
            let outcome = Tare::this().run(&words);
            outcome.fails(1, &["nothing was recorded", meant]);
            // The first word is at the start, before anything was waited for.
            // On a busy machine there may be a word of what it is doing before.
            let doing = ["tare: weaving", "tare: loading again", "tare: the agent does not answer"];
            let is_first = |line: &&str| {
                line.starts_with("tare: ") && !doing.iter().any(|doing| line.starts_with(doing))
            };
            let first = outcome.err.lines().find(is_first).unwrap_or("");
            assert!(first.contains(meant), "{}", outcome.describe());
            assert!(file.exists(), "{}", outcome.describe());
            fs::remove_file(&file).expect("our own file");
            assert_no_trace(target.pid());
        }
        // What can never be there is an error at once.
        for (words, why) in [
            (&["--exact", "--root", "com.acme.shop.Orders.plcae"][..], "com.acme.shop.Orders.place?"),
            (&["--exact", "--root", "com.acme.shop.Orders.place(String)"], "place(I)J?"),
            (&["--region", "com.acme.shop.Orders.plce"], "com.acme.shop.Orders.place?"),
            (&["--exact", "--root", "com.acme.shop.Orders.place", "--exclude", "com.**"], "--exclude"),
        ] {
            let words = [&["record", "-o", &path], words, &[&name]].concat();
            Tare::this().run(&words).fails(1, &[why]);
            assert!(!file.exists(), "{words:?}");
            assert_no_trace(target.pid());
        }
        // A pattern that leaves out nothing is told, too, and does no harm.
        let words = ["record", "--exact", "--exclude", "com.acem.**", "-d", "500ms", "-o", &path, &name];
        let outcome = Tare::this().run(&words);
        outcome.ok();
        assert!(outcome.err.contains("--exclude com.acem.**"), "{}", outcome.describe());
        assert!(outcome.err.contains("did you mean com.acme.**?"), "{}", outcome.describe());
        target.finish();
    }

    /// The same for programs that are started: their classes are looked for on the class path.
    fn names_that_fit_nothing_in_a_program_that_is_started(jdk) {
        let scratch = Scratch::new();
        let program = short(jdk, &scratch);
        let jar = scratch.join("shop.jar").display().to_string();
        jdk_tool("jar", &["cf", &jar, "-C", &classes(&scratch).display().to_string(), "."]);
        let builder = Target::java(jdk).class_path(jar.as_ref()).main("com.acme.shop.Orders");
        let from_jar = builder.arg("2000").words();
        for program in [&program, &from_jar] {
            for (words, meant) in [
                (&["--exact", "--include", "com.acem.**"][..], "did you mean com.acme.**?"),
                (&["--exact", "--root", "com.acme.shop.Orders.plcae"], "com.acme.shop.Orders.place?"),
                (&["-q", "--trace", "--root", "com.acme.Orders.place"], "com.acme.shop.Orders.place?"),
            ] {
                let outcome = record(&scratch, words, program);
                outcome.fails(1, &["nothing was recorded", meant]);
                assert!(outcome.out.contains("done"), "the program ran: {}", outcome.describe());
            }
            // Nothing is said of what is there, although it is not loaded yet.
            let words = ["--exact", "--include", "com.acme.**", "--root", "com.acme.shop.Orders.place"];
            let outcome = record(&scratch, &words, program);
            outcome.ok();
            assert!(!outcome.err.contains("fits"), "{}", outcome.describe());
        }
        // The program's own failure is the answer, if it has one.
        let mut failing = program.clone();
        *failing.last_mut().expect("a word") = "no number".into();
        assert_eq!(record(&scratch, &["--exact", "--include", "a.B"], &failing).code, 1);
    }

    /// A call that is denied is not taken for threads that do nothing.
    fn waiting_threads_that_cannot_be_asked(jdk) {
        let scratch = Scratch::new();
        let program = Target::java(jdk).class_path(&classes(&scratch)).main("com.acme.shop.Orders");
        let target = program.through(&[FILTERED, "signals"]).start();
        let (name, file) = (target.name(), scratch.join("x.tare"));
        let path = file.display().to_string();
        let outcome = Tare::this().run(&["record", "--wall", "-d", "2s", "-o", &path, &name]);
        outcome.ok();
        assert!(outcome.err.contains("rt_tgsigqueueinfo"), "{}", outcome.describe());
        let recorded = Recorded::open(&file);
        assert_eq!(recorded.fact(keys::ENGINE).as_deref(), Some("safepoint"));
        let words = ["record", "--wall", "--engine", "timer", "-d", "1s", "-o", &path, &name];
        Tare::this().run(&words).fails(1, &["rt_tgsigqueueinfo", "safepoint"]);
        assert_no_trace(target.pid());
        target.finish();
    }

    /// Figures of a program that ended before it could be asked for them.
    fn what_is_said_of_a_short_program(jdk) {
        let scratch = Scratch::new();
        let outcome = record(&scratch, &["--exact", "-d", "1h"], &short(jdk, &scratch));
        let text = outcome.ok();
        assert!(text.contains(" in 3 contexts of 1 thread, "), "{}", outcome.describe());
        assert!(text.contains(" methods woven; "), "{text}");
        for wrong in ["0 methods woven", " 1 threads", " 1 pauses", " 0 pauses"] {
            assert!(!text.contains(wrong), "{}", outcome.describe());
        }
        assert!(outcome.err.contains("the JVM ended after"), "{}", outcome.describe());
        assert!(outcome.err.contains("-d asked for"), "{}", outcome.describe());
    }

    /// What is complete is a success, whatever becomes of the JVM then.
    fn a_jvm_that_ends_while_the_agent_leaves(jdk) {
        let scratch = Scratch::new();
        let mut target = shop(jdk, &scratch);
        target.forgive("Killed");
        let file = scratch.join("x.tare");
        let path = file.display().to_string();
        let mut command = Tare::this().command(&["record", "--exact", "-d", "1s", "-o", &path, &target.name()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tare");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut first = String::new();
        lines.read_line(&mut first).expect("a pipe");
        // The file is complete and the agent about to go, or gone: from now on it cannot any more.
        target.signal(Signal::STOP);
        let rest = thread::spawn(move || { let _ = lines.read_to_string(&mut String::new()); });
        thread::sleep(Duration::from_millis(500));
        target.signal(Signal::KILL);
        rest.join().expect("a reader");
        let output = child.wait_with_output().expect("our own child");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{first}{said}");
        assert!(Recorded::open(&file).counts().values().sum::<i64>() > 0);
    }
}

/// Before anything is started: the program says nothing.
#[test]
fn jars_of_agents_that_are_none() {
    let scratch = Scratch::new();
    let program = short(jdk(), &scratch);
    let text = scratch.join("text.jar");
    fs::write(&text, "no jar").expect("our own directory");
    let (bare, other) = (scratch.join("bare.jar"), scratch.join("other.jar"));
    let classes = classes(&scratch).display().to_string();
    jdk_tool("jar", &["cf", &bare.display().to_string(), "-C", &classes, "."]);
    let manifest = scratch.join("other.mf").display().to_string();
    fs::write(&manifest, "Tare-Agent: com.acme.Missing\n").expect("our own directory");
    jdk_tool("jar", &["cfm", &other.display().to_string(), &manifest, "-C", &classes, "."]);
    for (jar, why) in [
        (scratch.join("nowhere.jar"), "No such file"),
        (scratch.path().to_owned(), "not a file"),
        (text, "not a jar"),
        (bare, "Tare-Agent"),
        (other, "no class com.acme.Missing"),
    ] {
        let jar = jar.display().to_string();
        let outcome = record(&scratch, &["--bytecodes", "--agent-jar", &jar], &program);
        outcome.fails(1, &["--agent-jar", why]);
        assert_eq!(outcome.out, "", "it was started: {}", outcome.describe());
    }
    let good = agent_jar(&scratch, "tare.examples.TopContexts", None).display().to_string();
    record(&scratch, &["--bytecodes", "--agent-jar", &good], &program).ok();
}

#[test]
fn recordings_of_nothing() {
    let scratch = Scratch::new();
    let file = scratch.join("x.tare");
    let path = file.display().to_string();
    let mut target = Target::idle(jdk()).start();
    let name = target.name();
    // Nobody uses that much of a processor within a second.
    let long = ["record", "--interval", "10s", "-d", "1s", "-o", &path, &name];
    Tare::this().run(&long).fails(1, &["nothing was recorded", "--wall", "--interval"]);
    assert!(file.exists(), "the file says so, too");
    let said = Tare::this().run(&["report", &path]);
    assert!(said.ok().contains("nothing was measured"), "{}", said.describe());
    let counted = ["record", "--exact", "--include", "Idle", "-d", "500ms", "-o", &path, &name];
    Tare::this().run(&counted).fails(1, &["methods were woven, but none was called"]);
    target.check_works();
    target.finish();
    // No JVM at all, and none that is recorded.
    let tare = Tare::this().directory(scratch.path());
    tare.run(&["record", "--", "true"]).fails(1, &["no JVM was started with the agent"]);
    assert_eq!(tare.run(&["record", "--", "sh", "-c", "exit 3"]).code, 3);
}

/// Every command that the tool prints for somebody to run does run.
#[test]
fn hints_that_are_pasted() {
    let scratch = Scratch::new();
    let target = shop(jdk(), &scratch);
    let name = target.name();
    let directory = scratch.join("a place with 'quotes'");
    fs::create_dir(&directory).expect("our own directory");
    let tare = Tare::this().directory(&directory);
    let mut pasted = 0;
    for words in [
        &["record", "-d", "1s", "-o", "my run.tare"][..],
        &["record", "--exact", "-d", "500ms", "--output=./-x.tare"],
        &["record", "--exact", "-d", "500ms", "-o", "it's.tare"],
        &["record", "--trace", "-d", "200ms", "-o", "t.tare"],
        &["record", "--trace", "-d", "200ms", "-o", "a trace.x.tare"],
        &["record", "--trace", "-d", "200ms", "-o", "t.trace.json"],
        &["record", "-d", "1s", "-o", "cpu.html"],
        &["status"],
    ] {
        let words: Vec<&str> = words.iter().copied().chain([name.as_str()]).collect();
        let outcome = tare.run(&words);
        outcome.ok();
        for hint in hints(&[outcome.out.as_str(), &outcome.err].concat()) {
            paste(&directory, &hint);
            pasted += 1;
        }
    }
    // What goes wrong has hints, too; no recording is under way.
    for words in [&["explain", &name, "a.B.c"][..], &["dump", &name], &["report", &name], &[]] {
        let outcome = tare.run(words);
        assert_eq!(outcome.code, i32::from(!words.is_empty()), "{}", outcome.describe());
        let text = [outcome.out.as_str(), &outcome.err].concat();
        let listed = text.lines().filter(|line| line.starts_with("  tare ")).map(str::to_owned);
        for hint in hints(&text).into_iter().chain(listed) {
            // The list may have another JVM first.
            let (hint, what) = hint.split_once('#').unwrap_or((&hint, ""));
            let mut words: Vec<&str> = hint.split_whitespace().collect();
            if !what.is_empty() {
                *words.last_mut().expect("a pid") = &name;
            }
            if words[1] == "record" {
                words.extend(["-d", "3s", "-o", "hint.tare"]);
            }
            paste(&directory, &words.join(" "));
            pasted += 1;
        }
    }
    assert!(pasted >= 16, "{pasted}");
    // Of the five recordings two each, of two traces one more.
    assert!(pasted >= 10, "{pasted}");
    assert!(
        directory.join("t.trace.json").exists() && directory.join("a trace.x.trace.json").exists()
    );
    target.finish();
}

/// The commands in a text: to the end of a line or to the comma, or between backticks.
fn hints(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let between: Vec<&str> = line.split('`').collect();
        if between.len() > 2 {
            let inside = between.iter().skip(1).step_by(2).filter(|hint| hint.starts_with("tare "));
            // Only whole commands: others stand for what has to be filled in.
            found
                .extend(inside.filter(|hint| hint.split(' ').count() > 2).map(|h| (*h).to_owned()));
        } else if let Some((_, hint)) =
            line.split_once(": ").filter(|(_, h)| h.trim().starts_with("tare "))
        {
            let hint = hint.trim().split(", for ").next().unwrap_or_default();
            found.push(hint.to_owned());
        }
    }
    // What is in capitals has to be filled in, and says so.
    let is_open = |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    found.retain(|hint| !hint.contains('…') && !hint.split(' ').any(is_open));
    found
}

fn paste(directory: &Path, hint: &str) {
    let path = env().bin.parent().expect("a directory").display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", hint]).current_dir(directory).env("PATH", path).stdin(Stdio::null());
    let output = shell.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{hint}\n{said}");
}

/// A reader that goes away has all that it wanted.
#[test]
fn readers_that_go_away() {
    let scratch = Scratch::new();
    let target = shop(jdk(), &scratch);
    let name = target.name();
    let tare = Tare::this().directory(scratch.path());
    for mode in [&["-o", "a.tare"][..], &["--exact", "-o", "e.tare"], &["--exact", "-o", "f.tare"]]
    {
        tare.run(&[&["record", "-q", "-d", "1s"], mode, &[&name]].concat()).ok();
    }
    let java = short(jdk(), &scratch);
    let java: Vec<&str> = java.iter().map(|word| word.to_str().expect("plain")).collect();
    for words in [
        &["report", "a.tare"][..],
        &["report", "a.tare", "--format", "json"],
        &["report", "a.tare", "--format", "hprof-text"],
        &["report", "e.tare", "--method", "place"],
        &["diff", "e.tare", "f.tare"],
        &["diff", "e.tare", "f.tare", "--format", "json"],
        &["ps"],
        &["ps", "--json"],
        &["doctor"],
        &["doctor", &name, "--json"],
        &["status", &name, "--json"],
        &["class", "print", "classes/com/acme/shop/Orders.class"],
        &["record", "--wall", "-d", "500ms", "-o", "b.tare", &name],
        &["record", "--exact", "-d", "500ms", "-o", "b.tare", &name],
        &["record", "--trace", "-d", "200ms", "-o", "b.tare", &name],
        &[&["record", "--exact", "-o", "b.tare", "--"][..], &java].concat(),
        &[&["check", "--baseline", "p.tare", "--update", "--"][..], &java].concat(),
    ] {
        let (code, said) = unread(&tare, words);
        assert_eq!(code, 0, "{words:?}: {said}");
        assert!(!said.to_lowercase().contains("pipe"), "{words:?}: {said}");
    }
    // The status is not the reader's.
    let words = ["diff", "f.tare", "a.tare", "--metric", "none"];
    assert_eq!(unread(&tare, &words).0, 1);
    fs::write(scratch.join("old.collapsed"), "a.B.c;a.B.d 100\n").expect("our own directory");
    fs::write(scratch.join("new.collapsed"), "a.B.c;a.B.d 900\n").expect("our own directory");
    let words = ["diff", "old.collapsed", "new.collapsed", "--threshold", "5%"];
    assert_eq!(unread(&tare, &words).0, 3);
    target.finish();
}

/// Runs a command whose output nobody reads.
fn unread(tare: &Tare, words: &[&str]) -> (i32, String) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = tare.command(words);
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("tare");
    drop(command);
    let output = child.wait_with_output().expect("our own child");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}
