//! A file that is made there comes to lie here: what it is called, and that a far end can neither
//! choose where it goes nor write two of them.

use crate::commands::record::unused;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Letters of a name that somebody else proposes.
const LONGEST: usize = 120;

/// A file on its way here.
pub struct Landing {
    /// Where it is to go; without it a free name is made of the one that is proposed.
    wanted: Option<PathBuf>,
    state: State,
    pub size: u64,
}

enum State {
    /// It has not begun. What is at its place stays until there is something else.
    Nothing,
    /// It has a place, and nothing has come.
    Begun(PathBuf),
    Growing(PathBuf, File),
    Whole(PathBuf),
}

impl Landing {
    pub fn new(wanted: Option<PathBuf>) -> Self {
        Landing { wanted, state: State::Nothing, size: 0 }
    }

    /// It begins; where it will be.
    pub fn begin(&mut self, proposed: &str) -> Result<&Path> {
        if !matches!(self.state, State::Nothing) {
            bail!("the other end sends a second file");
        }
        let path = self.wanted.clone().unwrap_or_else(|| free(proposed));
        self.state = State::Begun(path);
        Ok(self.path().unwrap_or(Path::new("")))
    }

    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let state = std::mem::replace(&mut self.state, State::Nothing);
        let (path, mut file) = match state {
            State::Begun(path) => {
                let file = File::create(&path);
                let file = file.with_context(|| format!("cannot write {}", path.display()))?;
                (path, file)
            }
            State::Growing(path, file) => (path, file),
            other => {
                self.state = other;
                bail!("the other end sends a part of no file");
            }
        };
        let written = file.write_all(bytes);
        let outcome = written.with_context(|| format!("cannot write {}", path.display()));
        self.state = State::Growing(path, file);
        self.size += bytes.len() as u64;
        outcome
    }

    pub fn end(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Nothing) {
            State::Growing(path, _) => self.state = State::Whole(path),
            // A command that failed has begun what it did not make.
            State::Begun(_) => {}
            other => {
                self.state = other;
                bail!("the other end ends a file that it did not begin");
            }
        }
        Ok(())
    }

    /// Where there is something by now.
    pub fn landed(&self) -> Option<&Path> {
        match &self.state {
            State::Growing(path, _) | State::Whole(path) => Some(path),
            State::Nothing | State::Begun(_) => None,
        }
    }

    pub fn is_whole(&self) -> bool {
        matches!(self.state, State::Whole(_))
    }

    fn path(&self) -> Option<&Path> {
        match &self.state {
            State::Begun(path) | State::Growing(path, _) | State::Whole(path) => Some(path),
            State::Nothing => None,
        }
    }

    /// A part of a file that is no use without the rest.
    pub fn discard(self) {
        if let State::Growing(path, file) = self.state
            && file.metadata().is_ok_and(|there| there.is_file())
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// A name in this directory that no file has, like the one that is proposed.
fn free(proposed: &str) -> PathBuf {
    let last = proposed.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_alphanumeric() || "_$-+.".contains(c) { c } else { '_' };
    let name: String = last.chars().take(LONGEST).map(plain).collect();
    let name = name.trim_start_matches(['.', '-']);
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let stem = if stem.is_empty() { "jvm" } else { stem };
    let ending = if ending.is_empty() { "tare" } else { ending };
    unused(stem, ending, Path::exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_far_end_does_not_choose_where_its_file_goes() {
        for (proposed, name) in [
            ("Main-7-cpu.tare", "Main-7-cpu.tare"),
            ("../../etc/passwd", "passwd.tare"),
            ("/home/ann/.ssh/authorized_keys", "authorized_keys.tare"),
            (".bashrc", "bashrc.tare"),
            ("..", "jvm.tare"),
            ("-rf.tare", "rf.tare"),
            ("a\u{1b}[2J b.tare", "a__2J_b.tare"),
            ("", "jvm.tare"),
        ] {
            assert_eq!(free(proposed), Path::new(name), "{proposed:?}");
        }
        assert!(free(&"x".repeat(5000)).as_os_str().len() < 200);
    }

    #[test]
    fn files_come_one_by_one_and_in_order() {
        let path = std::env::temp_dir().join(format!("tare-landing-{}", std::process::id()));
        fs::write(&path, "old").unwrap();
        let mut landing = Landing::new(Some(path.clone()));
        assert!(landing.add(b"x").is_err(), "a part without a beginning");
        assert!(landing.end().is_err());
        assert_eq!(landing.begin("../elsewhere").unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"old", "nothing has come");
        assert!(landing.begin("again").is_err());
        landing.add(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new", "it can be read while it grows");
        assert!(!landing.is_whole());
        landing.add(b"er").unwrap();
        landing.end().unwrap();
        assert!(landing.is_whole() && landing.add(b"x").is_err());
        assert_eq!((landing.landed(), landing.size), (Some(path.as_path()), 5));
        landing.discard();
        assert_eq!(fs::read(&path).unwrap(), b"newer", "what is whole stays");
        fs::remove_file(&path).unwrap();
    }
}
