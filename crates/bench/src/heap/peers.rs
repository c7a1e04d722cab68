//! Other readers of heap dumps: Eclipse MAT, hprof-analyzer and hprof-slurp. What cannot be had here
//! is noted and left out.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_toolbox::jars::{fetch, jars_in};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::runtimes::cache_dir;
use tare_toolbox::shell::{self, Workspace};
use tare_toolbox::stages::Stages;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    Mat,
    Analyzer,
    Slurp,
}

pub const ALL: [Peer; 3] = [Peer::Mat, Peer::Analyzer, Peer::Slurp];

/// A copy of MAT's parser that needs no Eclipse around it, as `cargo xtask heap-oracle` has it.
const MAT: [&str; 1] = ["com.squareup.haha:haha:1.3"];

/// The heap that MAT may take: what the largest dump needs, and some.
const MAT_HEAP: &str = "-Xmx10g";

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Peer::Mat => "MAT",
            Peer::Analyzer => "hprof-analyzer",
            Peer::Slurp => "hprof-slurp",
        }
    }

    /// What it does with a dump, as a sentence.
    pub fn about(self) -> &'static str {
        match self {
            Peer::Mat => {
                "MAT is its parser without Eclipse (`com.squareup.haha`), until the dump is open, which has \
                 dominators and retained sizes in its index. "
            }
            Peer::Analyzer => "hprof-analyzer writes its report of suspects and dominators. ",
            Peer::Slurp => {
                "hprof-slurp counts classes and strings and knows nothing of who holds what. "
            }
        }
    }
}

pub struct Peers {
    /// Java, and a class path with MAT and our class that calls it.
    mat: Option<(PathBuf, std::ffi::OsString)>,
    analyzer: Option<PathBuf>,
    slurp: Option<PathBuf>,
}

impl Peers {
    /// The one that takes seconds.
    pub fn quick(workspace: &Workspace, slurp: Option<PathBuf>, stages: &mut Stages) -> Peers {
        let slurp = slurp.or_else(|| install(workspace, "hprof-slurp", stages));
        Peers { mat: None, analyzer: None, slurp }
    }

    pub fn all(
        workspace: &Workspace,
        work: &Path,
        javac: &Jdk,
        slurp: Option<PathBuf>,
        stages: &mut Stages,
    ) -> Peers {
        Peers {
            mat: mat(workspace, work, javac, stages),
            analyzer: install(workspace, "hprof-analyzer", stages),
            slurp: slurp.or_else(|| install(workspace, "hprof-slurp", stages)),
        }
    }

    /// What reads this dump; what it writes goes to that directory or beside the dump.
    pub fn command(&self, peer: Peer, dump: &Path, work: &Path) -> Result<Command> {
        let absent = || format!("{} is not here", peer.name());
        Ok(match peer {
            Peer::Mat => {
                let (java, classes) = self.mat.as_ref().with_context(absent)?;
                let mut command = Command::new(java);
                command.arg(MAT_HEAP).arg("-cp").arg(classes).arg("MatOpen").arg(dump);
                command
            }
            Peer::Analyzer => {
                let report = work.join("hprof-analyzer.html");
                let _ = fs::remove_file(&report);
                let mut command = Command::new(self.analyzer.as_ref().with_context(absent)?);
                command.arg(dump).arg(report);
                command
            }
            Peer::Slurp => {
                let mut command = Command::new(self.slurp.as_ref().with_context(absent)?);
                command.arg(dump);
                command
            }
        })
    }
}

/// Removes what MAT leaves beside a dump: its index is not to be found by the next one.
pub fn tidy(dump: &Path) {
    let Some((directory, stem)) = dump.parent().zip(dump.file_stem()) else { return };
    let prefix = format!("{}.", stem.to_string_lossy());
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let of_mat = name.ends_with(".index") || name.ends_with(".threads");
        if of_mat && name.starts_with(&prefix) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn mat(
    workspace: &Workspace,
    work: &Path,
    javac: &Jdk,
    stages: &mut Stages,
) -> Option<(PathBuf, std::ffi::OsString)> {
    let jars = fetch(stages, "heap-mat", &MAT)?;
    let classes = work.join("mat");
    let compiled = || {
        let mut path = jars_in(&jars)?;
        let mut command = Command::new(javac.home.join("bin/javac"));
        command.args(["--release", "17", "-d"]).arg(&classes).arg("-cp");
        command.arg(std::env::join_paths(&path)?);
        shell::run(command.arg(workspace.root.join("bench/peers/MatOpen.java")))?;
        path.push(classes.clone());
        Ok((javac.home.join("bin/java"), std::env::join_paths(path)?))
    };
    let noted = |error: &anyhow::Error| stages.note(format!("NOT COVERED: MAT: {error:#}"));
    compiled().inspect_err(noted).ok()
}

/// A tool from crates.io, kept with what else was fetched.
fn install(workspace: &Workspace, name: &str, stages: &mut Stages) -> Option<PathBuf> {
    let place = cache_dir().ok()?.join(name);
    let file = place.join("bin").join(name);
    if !file.exists() {
        let mut install = workspace.cargo(&["install", "--locked", name, "--root"]);
        if let Err(error) = shell::run(install.arg(&place)) {
            stages.note(format!("NOT COVERED: {name} cannot be installed: {error:#}"));
            return None;
        }
    }
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mat_leaves_is_removed_and_nothing_else() {
        let work = std::env::temp_dir().join(format!("tare-bench-peers-{}", std::process::id()));
        fs::create_dir_all(&work).unwrap();
        let file = |name: &str| work.join(name);
        let names = ["a.hprof", "a.idx.index", "a.threads", "b.idx.index", "a.hprof.tare-index"];
        for name in names {
            fs::write(file(name), "").unwrap();
        }
        tidy(&file("a.hprof"));
        let left = names.map(|name| file(name).exists());
        fs::remove_dir_all(&work).unwrap();
        assert_eq!(left, [true, false, false, true, true]);
    }
}
