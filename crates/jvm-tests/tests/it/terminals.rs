//! What arrives on a real terminal, and what is typed there.

use crate::common::assert_no_trace;
use crate::hostile_names::{assert_harmless, hostile_jar};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tare_jvm_tests::{Scratch, Tare, Target, can, classes, java_agent, on_each_jdk, wait_until};

/// So wide and high that no line is cut and nothing goes through a pager.
const SIZE: Winsize = Winsize { ws_row: 2000, ws_col: 400, ws_xpixel: 0, ws_ypixel: 0 };

/// Gives a command the terminal that it has as its input, so that Ctrl-C typed there reaches it.
const CONTROLLING: [&str; 2] = ["setsid", "--ctty"];

/// A `tare` whose terminal is this one.
struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    fn start(words: &[&str], directory: &Path) -> Terminal {
        let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&pty).unwrap();
        unlockpt(&pty).unwrap();
        tcsetwinsize(&pty, SIZE).unwrap();
        let name = ptsname(&pty, Vec::new()).unwrap();
        let screen = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut command = Tare::this().through(&CONTROLLING).directory(directory).command(words);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        command.stdin(screen.try_clone().unwrap()).stdout(screen.try_clone().unwrap());
        let child = command.stderr(screen).spawn().unwrap();
        // The command has the terminal's other side open until it is dropped.
        drop(command);
        let mut pty = File::from(pty);
        let keys = pty.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let reader = thread::spawn({
            let shown = Arc::clone(&shown);
            move || {
                let mut piece = [0; 4096];
                // The last one who has the terminal open takes it along: an error, not an end.
                while let Ok(length @ 1..) = pty.read(&mut piece) {
                    shown.lock().unwrap().extend_from_slice(&piece[..length]);
                }
            }
        });
        Terminal { child, keys, shown, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn wait_for(&self, part: &str) {
        wait_until(&format!("the terminal shows {part:?}"), || self.text().contains(part));
    }

    /// Its exit code, and all that it has shown.
    fn finish(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        self.reader.join().unwrap();
        let text = String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned();
        (status.code(), text)
    }
}

on_each_jdk! {
    /// Ctrl-C while classes are woven: it is heard between two batches, what was woven is restored,
    /// and the terminal tells all of it, from the beginning.
    fn ctrl_c_while_classes_are_woven(jdk) {
        if !can("Ctrl-C on a terminal", &["setsid", "true"]) {
            return;
        }
        let scratch = Scratch::new();
        let agent = java_agent("Meddler", &scratch, "hold");
        let java = Target::java(jdk).vm(agent).class_path(classes());
        let mut target = java.main("Meddled").start();
        target.ask("work");
        target.ask("hold");
        let name = target.name();
        // So many classes that they do not go to the JVM at once.
        let words = ["record", "--exact", "--count", "-o", "x.tare", "--include", "java.util.**"];
        let words = [&words[..], &["--include", "Meddled*", &name]].concat();
        let mut terminal = Terminal::start(&words, scratch.path());
        target.wait_for("held");
        terminal.wait_for("weaving 0 of ");
        terminal.keys.write_all(b"\x03").unwrap();
        terminal.wait_for("stops after this batch");
        target.ask("release");
        let (code, text) = terminal.finish();
        assert_eq!(code, Some(130), "{text}");
        for part in ["attaching to JVM", "the agent gets ready", "stopped with ", "is as it was"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert!(!scratch.join("x.tare").exists());
        assert_no_trace(target.pid());
        target.ask("work");
        // All of it is restored: nothing of ours is met by a recording that weaves it again.
        let again = ["record", "--exact", "--count", "-d", "1s", "-o", "y.tare", "--include"];
        let again = [&again[..], &["Meddled*", &name]].concat();
        let again = Tare::this().directory(scratch.path()).start(&again);
        wait_until("it is recorded", || {
            target.ask("work");
            scratch.join("y.tare").exists()
        });
        again.wait();
        assert_no_trace(target.pid());
        target.finish();
    }

    /// Hostile names of threads, classes, methods and files.
    fn names_do_not_steer_it(jdk) {
        if !can("hostile names on a terminal", &["setsid", "true"]) {
            return;
        }
        let scratch = Scratch::new();
        let target = Target::jar(jdk, &hostile_jar(&scratch)).start();
        let name = target.name();
        for words in [
            &["ps"][..],
            &["status", &name],
            &["record", "-d", "1s", "-o", "s.tare", &name],
            &["record", "--exact", "-d", "1s", "-o", "e.tare", &name],
            &["report", "s.tare", "--threads"],
            &["report", "e.tare"],
            &["report", "no\x1b[2Jsuch"],
        ] {
            let (_, text) = Terminal::start(words, scratch.path()).finish();
            // A terminal gets its own ends of lines, and the line of progress that is replaced.
            let text = text.replace("\r\n", "\n").replace("\r\x1b[K", "");
            assert_harmless(&format!("{words:?}"), &text, !words.contains(&"no\x1b[2Jsuch"));
        }
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(target.pid());
    }
}
