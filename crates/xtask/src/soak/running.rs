//! A Java program that says when it is ready, checks itself, and ends with its input.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing here takes longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts it, with its output in a file, and waits until it is ready.
    pub fn start(java: &mut Command, log: &Path) -> Result<Self> {
        let out = File::create(log)?;
        java.stdin(Stdio::piped()).stdout(out.try_clone()?).stderr(out);
        let running = Running { child: java.spawn().context("java")?, log: log.to_owned() };
        until("the program is ready", || running.said().contains("ready"))?;
        Ok(running)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Closes its input, which ends it; an error if it was hurt.
    pub fn end(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let child = &mut self.child;
        let waited =
            until("the program ends", || child.try_wait().is_ok_and(|status| status.is_some()));
        if waited.is_err() {
            self.child.kill()?;
        }
        let status = self.child.wait()?;
        if !status.success() || self.said().contains("WRONG") {
            bail!("the program ended with {status}; see {}", self.log.display());
        }
        Ok(())
    }
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > PATIENCE {
            bail!("not within {} s: {what}", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
