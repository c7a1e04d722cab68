//! What every benchmark needs before it can begin: the tool that is measured, the Java side, a
//! place for files, and the machine for itself.

use super::machine;
use super::workloads::{self, Kitchen};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::runtimes::cache_dir;
use tare_toolbox::setup::compiler;
use tare_toolbox::shell::Workspace;

pub struct Ready {
    pub workspace: Workspace,
    pub javac: Jdk,
    pub tare: PathBuf,
    pub work: PathBuf,
    pub classes: PathBuf,
    /// Held to the end of the run; the system lets go of it however we end.
    _turn: Option<File>,
}

impl Ready {
    /// For what measures times. Without a `tare` to measure, one is built.
    pub fn alone(tare: Option<PathBuf>) -> Result<Ready> {
        Ready::new(tare, true)
    }

    /// For what only counts: who measures something beside it disturbs neither.
    pub fn beside_others(tare: Option<PathBuf>) -> Result<Ready> {
        Ready::new(tare, false)
    }

    fn new(tare: Option<PathBuf>, alone: bool) -> Result<Ready> {
        let workspace = Workspace::open()?;
        let javac = compiler()?;
        let tare = tare.map_or_else(|| build(&workspace), Ok)?;
        let work = workspace.target.join("bench");
        fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
        let turn = alone.then(wait_for_turn).transpose()?;
        // What programs leave behind there, those too that were killed, goes with the next run at
        // the latest.
        let temporary = temporary(&work);
        let _ = fs::remove_dir_all(&temporary);
        fs::create_dir_all(&temporary)
            .with_context(|| format!("creating {}", temporary.display()))?;
        let classes = workloads::compile(&workspace, &javac, &work)?;
        if alone {
            machine::settle();
        }
        Ok(Ready { workspace, javac, tare, work, classes, _turn: turn })
    }

    /// For a JVM that this benchmark starts.
    pub fn temporary(&self) -> String {
        temporary_option(&self.work)
    }

    pub fn kitchen(&self, quick: bool) -> Kitchen<'_> {
        let Ready { workspace, javac, work, classes, .. } = self;
        Kitchen { workspace, javac, classes, work, quick }
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(temporary(&self.work));
    }
}

/// Where programs have their temporary files.
fn temporary(work: &Path) -> PathBuf {
    work.join("tmp")
}

pub fn temporary_option(work: &Path) -> String {
    format!("-Djava.io.tmpdir={}", temporary(work).display())
}

fn build(workspace: &Workspace) -> Result<PathBuf> {
    Ok(workspace.release()?.join("tare"))
}

/// Two measurements at the same time would measure each other.
fn wait_for_turn() -> Result<File> {
    let cache = cache_dir()?;
    fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    let path = cache.join("bench.lock");
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    if file.try_lock().is_err() {
        println!("another benchmark runs on this machine; waiting for its end …");
        file.lock().context("locking bench.lock")?;
    }
    Ok(file)
}
