//! `tare` as a process beside the program, and what its end means.

use super::evidence::Failure;
use super::ground::Ground;
use super::watch::{self, until};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Its own patience with the JVM.
const TIMEOUT: &str = "110s";

pub struct Tool {
    child: Child,
    line: String,
    log: PathBuf,
    /// The recording that it writes.
    pub file: Option<PathBuf>,
    killed: bool,
    interrupted: bool,
}

/// What came of it, when all is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Well,
    Killed,
    /// It said why it could not be done; without what differs from one time to the next.
    Refused(String),
}

impl Tool {
    /// Starts `tare` through other programs, with words, in the directory of a round.
    pub fn start(
        ground: &Ground,
        directory: &Path,
        number: usize,
        through: &[String],
        words: &[String],
        file: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        // Whoever starts us in the background has us ignore Ctrl-C, and so would it until it has a
        // handler of its own.
        let mut line = ["env", "--default-signal=INT"].map(str::to_owned).to_vec();
        line.extend_from_slice(through);
        line.push(ground.tare.display().to_string());
        line.extend_from_slice(words);
        let log = directory.join(format!("{number:02}-{}.log", words[0]));
        let out = File::create(&log)?;
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).current_dir(directory).env(watch::MARK, directory);
        command.env("TARE_TIMEOUT", TIMEOUT).env("RUST_BACKTRACE", "1").process_group(0);
        let child = command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).spawn()?;
        Ok(Tool { child, line: words.join(" "), log, file, killed: false, interrupted: false })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    pub fn signal(&mut self, name: &str) {
        if !self.has_ended() {
            self.killed |= name == "KILL";
            self.interrupted |= name == "INT";
            watch::signal(self.pid(), name);
        }
    }

    /// Waits for its end; an error if that was not as it may be.
    pub fn wait(&mut self) -> Result<End, Failure> {
        let mut status = None;
        until(&format!("`tare {}` ends", self.line), || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        })?;
        let status = status.ok_or_else(|| Failure::new("no status".to_owned()))?;
        let said = fs::read(&self.log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        judge(status, self.killed, self.interrupted, &said).map_err(|what| {
            Failure::new(format!("`tare {}` {what}; see {}", self.line, self.log.display()))
        })
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What an end is; a text if it must not be.
fn judge(status: ExitStatus, killed: bool, interrupted: bool, said: &str) -> Result<End, String> {
    if said.contains("panicked at") {
        return Err("panicked".to_owned());
    }
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(End::Well),
        (None, Some(9)) if killed => Ok(End::Killed),
        (None, Some(2)) if interrupted => {
            Ok(End::Refused("interrupted before it had begun".to_owned()))
        }
        // Stopped before anything was recorded.
        (Some(130), _) => Ok(End::Refused("interrupted before anything was recorded".to_owned())),
        (Some(1), _) => match reason(said) {
            Some(reason) => Ok(End::Refused(reason)),
            None => Err("failed without a reason".to_owned()),
        },
        // The program has no deadlock, and the words are right.
        (Some(3), _) => Err("told of a deadlock".to_owned()),
        _ => Err(format!("ended with {status}")),
    }
}

/// The last error, without numbers and paths.
fn reason(said: &str) -> Option<String> {
    let line = said.lines().rfind(|line| line.contains("tare:"))?;
    let text = line.split_once("tare:")?.1;
    let word = |word: &str| match word {
        path if path.contains('/') => "…".to_owned(),
        other => {
            let mut text = String::new();
            for letter in other.chars().filter(|letter| !letter.is_control()) {
                match letter.is_ascii_digit() {
                    true if text.ends_with('N') => {}
                    true => text.push('N'),
                    false => text.push(letter),
                }
            }
            text
        }
    };
    let words: Vec<String> = text.split_whitespace().map(word).collect();
    Some(words.join(" ").chars().take(150).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_apart() {
        let ended = |code: i32| ExitStatus::from_raw(code << 8);
        let refused = Ok(End::Refused("process N has … open for N.N s".to_owned()));
        let said = "noise\ntare: process 4711 has /tmp/x open for 17.25 s\n";
        assert_eq!(judge(ended(0), false, false, "fine"), Ok(End::Well));
        assert_eq!(judge(ended(1), false, false, said), refused);
        assert!(judge(ended(1), false, false, "nothing to the point").is_err());
        assert!(judge(ended(2), false, false, said).is_err());
        assert!(judge(ended(3), false, false, "").is_err());
        assert!(judge(ended(0), false, false, "thread panicked at x.rs:1").is_err());
        assert_eq!(judge(ExitStatus::from_raw(9), true, false, ""), Ok(End::Killed));
        for signal in [6, 9, 11] {
            assert!(judge(ExitStatus::from_raw(signal), false, false, "").is_err());
        }
        assert!(judge(ExitStatus::from_raw(11), true, false, "").is_err());
        assert!(judge(ExitStatus::from_raw(2), false, true, "").is_ok());
        assert!(judge(ExitStatus::from_raw(2), false, false, "").is_err());
    }
}
