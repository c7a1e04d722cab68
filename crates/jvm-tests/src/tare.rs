//! The `tare` command, run as a user runs it: words in, text and an exit code out.

use crate::env::env;
use crate::machine::PATIENCE;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The command's own patience with a JVM, shorter than ours with it. A busy machine may keep a JVM
/// from answering for longer than a user would wait.
const TIMEOUT: &str = "240s";

/// Which build to run, and how.
pub struct Tare {
    binary: PathBuf,
    before: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

impl Tare {
    /// The build under test.
    pub fn this() -> Self {
        Tare::at(&env().bin)
    }

    /// The "next version": the same sources under another build id.
    pub fn next() -> Self {
        Tare::at(&env().next_bin)
    }

    pub fn at(binary: &Path) -> Self {
        let env = vec![("TARE_TIMEOUT".into(), TIMEOUT.into())];
        Tare { binary: binary.to_owned(), before: Vec::new(), env, directory: None }
    }

    /// Runs it through another program, as `setpriv … tare …`.
    pub fn through(mut self, words: &[&str]) -> Self {
        self.before = words.iter().map(OsString::from).collect();
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

    pub fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut line = self.before.clone();
        line.push(self.binary.clone().into());
        line.extend(words.iter().map(|word| word.as_ref().to_owned()));
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).stdin(Stdio::null());
        for (name, value) in &self.env {
            command.env(name, value);
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// Starts a command and leaves it running.
    pub fn start<S: AsRef<OsStr>>(&self, words: &[S]) -> Running {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let line = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
        Running { child, line }
    }

    /// Runs a command to its end.
    pub fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Outcome {
        self.start(words).wait()
    }

    /// What `tare status JVM --json` says.
    pub fn status(&self, jvm: &str) -> Value {
        self.run(&["status", jvm, "--json"]).json()
    }

    /// The entry of `tare ps --json` for one pid.
    pub fn listed(&self, pid: u32) -> Option<Value> {
        let list = self.run(&["ps", "--json"]).json();
        let list = list.as_array().unwrap_or_else(|| panic!("not a list: {list}")).clone();
        list.into_iter().find(|entry| entry["pid"] == pid)
    }
}

/// A command that has not ended yet. It is killed if the test forgets it.
pub struct Running {
    child: Child,
    line: String,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_some()
    }

    /// `kill -9`: the command gets no chance to tidy up.
    pub fn kill(&mut self) {
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
    }

    /// As Ctrl-C or a service manager would.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("a pid"), signal).expect("our own child");
    }

    pub fn wait(mut self) -> Outcome {
        let out = read(self.child.stdout.take().expect("piped"));
        let err = read(self.child.stderr.take().expect("piped"));
        let limit = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                break status;
            }
            if Instant::now() > limit {
                self.kill();
                panic!("{} hangs", self.line);
            }
            thread::sleep(Duration::from_millis(2));
        };
        Outcome {
            line: self.line.clone(),
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            out: out.join().expect("reader"),
            err: err.join().expect("reader"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill();
        }
    }
}

fn read(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// How a command ended.
pub struct Outcome {
    line: String,
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Outcome {
    /// Asserts that all went well; returns standard output.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert_eq!(self.code, 0, "{}", self.describe());
        &self.out
    }

    /// Asserts that it failed as promised (1: could not be done, 2: wrong usage), that standard
    /// error says each of `parts`, and that it is a message, not a crash.
    #[track_caller]
    pub fn fails(&self, code: i32, parts: &[&str]) -> &str {
        assert_eq!(self.code, code, "{}", self.describe());
        let said = self.err.to_lowercase();
        for part in parts {
            assert!(said.contains(&part.to_lowercase()), "no {part:?} in\n{}", self.describe());
        }
        assert!(!self.err.contains("panicked"), "{}", self.describe());
        &self.err
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        let text = self.ok();
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in\n{}", self.describe()))
    }

    pub fn describe(&self) -> String {
        format!("{}\nexit code {}\n{}{}", self.line, self.code, self.out, self.err)
    }
}
