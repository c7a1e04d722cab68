//! A target: a program that a test starts, talks to, and ends.
//!
//! A target lives in a process group of its own, which is ended when the value is dropped. Its
//! output is collected line by line. Lines that no healthy run may contain (a crash report, a
//! complaint of `-Xcheck:jni`, a thread dump) fail the test, whatever it was about.

use crate::control::control_dirs;
use crate::env::Jdk;
use crate::java::classes;
use crate::machine::PATIENCE;
use crate::proc::{exists, jvm_below};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What no target may ever say.
const FORBIDDEN: &[&str] = &[
    "WARNING in native method",
    "FATAL ERROR in native method",
    "A fatal error has been detected by the Java Runtime Environment",
    "Full thread dump",
    "panicked at",
    "SIGSEGV",
];

pub struct TargetBuilder {
    before: Vec<OsString>,
    java: PathBuf,
    vm: Vec<OsString>,
    class_path: Option<PathBuf>,
    main: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

/// All options are given in the order in which they stand on the command line.
impl TargetBuilder {
    /// An option for the JVM.
    pub fn vm(mut self, option: impl AsRef<OsStr>) -> Self {
        self.vm.push(option.as_ref().to_owned());
        self
    }

    pub fn class_path(mut self, path: &Path) -> Self {
        self.class_path = Some(path.to_owned());
        self
    }

    /// For programs whose class path is told elsewhere, and so is their main class.
    pub fn no_class_path(mut self) -> Self {
        self.class_path = None;
        self
    }

    pub fn main(mut self, class: &str) -> Self {
        self.main = vec![class.into()];
        self
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.main.push(argument.as_ref().to_owned());
        self
    }

    pub fn var(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Starts the JVM through another program, as `setpriv … java …`.
    pub fn through(mut self, words: &[&str]) -> Self {
        self.before = words.iter().map(OsString::from).collect();
        self
    }

    /// The whole command line.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = self.before.clone();
        words.push(self.java.clone().into());
        words.extend(self.vm.iter().cloned());
        if let Some(path) = &self.class_path {
            words.extend(["-cp".into(), path.clone().into()]);
        }
        words.extend(self.main.iter().cloned());
        words
    }

    /// Starts without waiting for anything.
    pub fn spawn(self) -> Target {
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for (name, value) in &self.env {
            command.env(name, value);
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        Target::spawn(command)
    }

    /// Starts and waits until the program says that it is ready.
    pub fn start(self) -> Target {
        let mut target = self.spawn();
        target.wait_for("ready");
        target.pid = jvm_below(target.child.id()).expect("a JVM that is ready is a JVM");
        target
    }
}

#[derive(Default)]
struct Collected {
    lines: Vec<String>,
    /// Streams that have ended; all has been said once both have.
    ended: usize,
}

type Output = Arc<(Mutex<Collected>, Condvar)>;

pub struct Target {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Output,
    /// The JVM's pid, as seen from here. A wrapper such as `unshare --fork` has another one.
    pid: u32,
    /// The place in the output up to which `wait_for` has read.
    read: usize,
    /// Words that this target may say although others may not.
    forgiven: Vec<&'static str>,
}

impl Target {
    /// A JVM with the plain target program, `Idle`, which does what it is told on its input and
    /// ends with it.
    pub fn idle(jdk: &Jdk) -> TargetBuilder {
        TargetBuilder {
            before: Vec::new(),
            java: jdk.java(),
            // Small and quick to start: many run side by side.
            vm: ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"].map(Into::into).into(),
            class_path: Some(classes().to_owned()),
            main: vec!["Idle".into()],
            env: Vec::new(),
            directory: None,
        }
    }

    /// A JVM with nothing decided but its version.
    pub fn java(jdk: &Jdk) -> TargetBuilder {
        TargetBuilder { vm: Vec::new(), main: Vec::new(), ..Target::idle(jdk) }
    }

    /// A JVM that runs a jar.
    pub fn jar(jdk: &Jdk, jar: &Path) -> TargetBuilder {
        let main = vec!["-jar".into(), jar.into()];
        TargetBuilder { class_path: None, main, ..Target::idle(jdk) }
    }

    /// Any program.
    pub fn spawn(mut command: Command) -> Target {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own can be ended as a whole, and Ctrl-C leaves the ending to us.
        command.process_group(0);
        let line = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
        let output = Output::default();
        collect(child.stdout.take().expect("piped"), &output);
        collect(child.stderr.take().expect("piped"), &output);
        let pid = child.id();
        Target { stdin: child.stdin.take(), child, output, pid, read: 0, forgiven: Vec::new() }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The pid as a word for a command line.
    pub fn name(&self) -> String {
        self.pid.to_string()
    }

    /// Lets this target say a word that is forbidden otherwise.
    pub fn forgive(&mut self, word: &'static str) {
        self.forgiven.push(word);
    }

    pub fn is_alive(&self) -> bool {
        exists(self.pid)
    }

    /// Sends a line to the program.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the input is still open");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).unwrap_or_else(|e| {
            panic!("the target does not listen: {e}\n{}", self.text());
        });
    }

    /// Tells the program something and waits for its answer to it.
    pub fn ask(&mut self, question: &str) -> String {
        self.tell(question);
        self.wait_for(&format!("{question}: "))
    }

    /// Asserts that the program still does its work.
    pub fn check_works(&mut self) {
        self.ask("work");
    }

    /// Waits for the next line that contains `text`, and returns it.
    pub fn wait_for(&mut self, text: &str) -> String {
        let limit = Instant::now() + PATIENCE;
        let (collected, changed) = &*self.output;
        let mut state = collected.lock().unwrap();
        loop {
            while let Some(line) = state.lines.get(self.read) {
                self.read += 1;
                if line.contains(text) {
                    return line.clone();
                }
            }
            let left = limit.saturating_duration_since(Instant::now());
            let all = || state.lines.join("\n");
            if state.ended == 2 {
                let how = self.child.wait().expect("our own child");
                panic!("the target ended without saying {text:?} ({how}):\n{}", all());
            }
            assert!(!left.is_zero(), "the target did not say {text:?}:\n{}", all());
            state = changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// All that the program has said so far.
    pub fn text(&self) -> String {
        self.output.0.lock().unwrap().lines.join("\n")
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(raw(self.pid), signal).expect("the target can be signalled");
    }

    /// Waits until the program and all that hold its output have ended; returns its exit code
    /// (128 + signal if a signal ended it, as a shell would) and all that it said.
    pub fn wait(mut self) -> (i32, String) {
        let limit = Instant::now() + PATIENCE;
        let status = loop {
            if self.ended().expect("our own child") {
                self.sweep();
                break self.child.wait().expect("our own child");
            }
            assert!(Instant::now() < limit, "the target does not end:\n{}", self.text());
            thread::sleep(Duration::from_millis(5));
        };
        let (collected, changed) = &*self.output;
        let mut state = collected.lock().unwrap();
        while state.ended < 2 {
            let left = limit.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "somebody still holds the output of an ended target");
            state = changed.wait_timeout(state, left).unwrap().0;
        }
        let text = state.lines.join("\n");
        drop(state);
        (status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()), text)
    }

    /// Whether the program has ended; an error once that was waited for. Until then no other gets
    /// its number.
    fn ended(&self) -> rustix::io::Result<bool> {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(raw(self.child.id())), how)?.is_some())
    }

    /// Removes the attach socket that a killed JVM leaves. Soon another process will have its
    /// number, and must not find that; it may belong to another user, who could not remove it.
    fn sweep(&self) {
        let _ = fs::remove_file(format!("/tmp/.java_pid{}", self.pid));
    }

    /// Closes the program's input, which ends it, and asserts that it ended well.
    pub fn finish(mut self) -> String {
        drop(self.stdin.take());
        let (code, text) = self.wait();
        assert_eq!(code, 0, "the target ended with {code}:\n{text}");
        text
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Not yet waited for: neither its pid nor its group can be another's.
        if let Ok(ended) = self.ended() {
            if !ended {
                let _ = kill_process_group(raw(self.child.id()), Signal::KILL);
            }
            while matches!(self.ended(), Ok(false)) {
                thread::sleep(Duration::from_millis(5));
            }
            for dir in control_dirs(Path::new("/tmp"), self.pid) {
                let _ = fs::remove_dir_all(dir);
            }
            self.sweep();
            let _ = self.child.wait();
        }
        if !thread::panicking() {
            let text = self.text();
            for forbidden in FORBIDDEN.iter().filter(|word| !self.forgiven.contains(*word)) {
                assert!(!text.contains(forbidden), "the target said {forbidden:?}:\n{text}");
            }
        }
    }
}

fn raw(pid: u32) -> Pid {
    i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid")
}

fn collect(stream: impl Read + Send + 'static, output: &Output) {
    let output = Arc::clone(output);
    thread::spawn(move || {
        let (collected, changed) = &*output;
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            collected.lock().unwrap().lines.push(text);
            changed.notify_all();
            line.clear();
        }
        collected.lock().unwrap().ended += 1;
        changed.notify_all();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Target {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Target::spawn(command)
    }

    #[test]
    fn lines_are_found_in_order_and_answers_reach_the_program() {
        let mut target = shell("echo one; echo two >&2; read x; echo got $x; exit 3");
        target.wait_for("one");
        target.tell("word");
        assert_eq!(target.wait_for("got"), "got word");
        let (code, text) = target.wait();
        assert_eq!(code, 3);
        assert!(text.contains("two"));
    }

    #[test]
    #[should_panic(expected = "ended without saying")]
    fn a_program_that_ends_early_is_noticed() {
        shell("echo no").wait_for("yes");
    }

    #[test]
    #[should_panic(expected = "the target said")]
    fn a_forbidden_line_fails_the_test() {
        let _ = shell("echo Full thread dump OpenJDK").wait();
    }

    #[test]
    fn a_signal_is_told_as_a_shell_would() {
        assert_eq!(shell("kill -9 $$").wait().0, 137);
    }

    #[test]
    fn what_a_target_started_is_ended_with_it() {
        let mut target = shell("sleep 1000 & echo child $!; wait");
        let line = target.wait_for("child");
        let child = line.trim_start_matches("child ").parse().unwrap();
        assert!(exists(child));
        drop(target);
        let limit = Instant::now() + PATIENCE;
        while exists(child) {
            assert!(Instant::now() < limit, "the child of an ended target lives on");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
