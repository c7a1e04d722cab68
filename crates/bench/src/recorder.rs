//! A `tare record` beside the program that it records, and what a live report of it says.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tare_toolbox::shell;

/// Invocations by method.
pub type Counts = BTreeMap<String, i64>;

const PATIENCE: Duration = Duration::from_secs(120);

/// A `tare record` of a JVM that runs.
pub struct Recorder {
    child: Child,
    began: Instant,
}

impl Recorder {
    pub fn start(command: &mut Command, said: &Path) -> Result<Recorder> {
        let log = File::create(said).context("creating a log")?;
        let began = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stderr(log.try_clone()?)
            .stdout(log)
            .spawn()
            .context("starting tare")?;
        Ok(Recorder { child, began })
    }

    /// A live report is refused as long as there is no recording, and waits while code is woven.
    pub fn wait_until_woven(&mut self, tare: &Path, pid: u32) -> Result<f64> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("tare record ended at once ({status})");
            }
            if shell::succeeds(Command::new(tare).args(["report", &pid.to_string()])) {
                return Ok(self.began.elapsed().as_secs_f64() * 1e3);
            }
            if self.began.elapsed() > PATIENCE {
                bail!("nothing was woven in two minutes");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it has begun the file that it writes.
    pub fn has_begun(&mut self, file: &Path) -> Result<bool> {
        if let Some(status) = self.child.try_wait()? {
            bail!("tare record ended at once ({status})");
        }
        if self.began.elapsed() > PATIENCE {
            bail!("nothing was recorded in two minutes");
        }
        let begun = fs::metadata(file).and_then(|known| known.modified());
        Ok(begun.is_ok_and(|begun| begun.elapsed().is_ok_and(|age| age < self.began.elapsed())))
    }

    /// Until it has.
    pub fn wait_for(&mut self, file: &Path) -> Result<()> {
        while !self.has_begun(file)? {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Until it ends with its program.
    pub fn wait(&mut self) -> Result<()> {
        let status = self.child.wait()?;
        if !status.success() {
            bail!("tare record ended badly ({status})");
        }
        Ok(())
    }

    /// As Ctrl-C does it; how long that took, in milliseconds.
    pub fn stop(&mut self) -> Result<f64> {
        let began = Instant::now();
        let kill = format!("kill -INT {}", self.child.id());
        shell::run(Command::new("sh").args(["-c", &kill]))?;
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > PATIENCE {
                bail!("tare record has not ended two minutes after it was to");
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.wait()?;
        Ok(began.elapsed().as_secs_f64() * 1e3)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a recording under way has counted so far; an error when that is not all.
pub fn live(tare: &Path, pid: u32) -> Result<Counts> {
    let mut report = Command::new(tare);
    report.args(["report", &pid.to_string(), "--format", "json", "--metric", "invocations"]);
    // Only the list of methods is of interest, not the tree.
    report.args(["--min-share", "1.0"]).stderr(Stdio::null());
    let page: Value = serde_json::from_str(&shell::output(&mut report)?)?;
    let mut counts = Counts::new();
    for method in page["methods"].as_array().context("a list of methods")? {
        let name = method["name"].as_str().context("a method's name")?;
        if name.starts_with('[') {
            bail!("the trees are not whole: {name}");
        }
        *counts.entry(name.to_owned()).or_default() += method["self"].as_i64().unwrap_or(0);
    }
    Ok(counts)
}
