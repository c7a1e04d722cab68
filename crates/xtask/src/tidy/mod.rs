//! `cargo xtask tidy`: house rules that a program can check, so that reviewers need not.
//!
//! `layers` knows who may depend on whom, `files` what a file may hold, `pages` where links lead,
//! `figures` where they come from, `promises` which tests hold them. Formatting and lints are left to
//! rustfmt and clippy. Every rule answers with lines of text: what is wrong and where.

mod figures;
mod files;
mod layers;
mod pages;
mod promises;

use anyhow::{Context, Result, bail};
use std::process::Command;
use std::{env, fs};
use tare_toolbox::shell::{Workspace, output};

/// A file as git would store it.
pub struct SourceFile {
    /// Relative to the workspace, with `/`.
    pub path: String,
    pub bytes: Vec<u8>,
}

pub fn run() -> Result<()> {
    check(&Workspace::open()?)
}

pub fn check(workspace: &Workspace) -> Result<()> {
    let sources = sources(workspace)?;
    let packages = layers::packages(&workspace.metadata)?;
    let agent_sources = fs::read_to_string(workspace.root.join(layers::AGENT_SOURCES_FILE))
        .with_context(|| format!("reading {}", layers::AGENT_SOURCES_FILE))?;

    let mut problems = layers::check(&packages);
    problems.extend(layers::check_agent_sources(&packages, &agent_sources));
    problems.extend(files::check(&sources, &machine_paths(workspace)));
    problems.extend(files::check_long_files(&sources));
    problems.extend(files::check_crate_roots(&sources));
    problems.extend(files::check_printing(&sources));
    problems.extend(figures::check(&sources));
    problems.extend(pages::check(&sources));
    problems.extend(promises::check(&sources));
    if problems.is_empty() {
        println!("tidy: {} files and {} crates are in order", sources.len(), packages.len());
        return Ok(());
    }
    for problem in &problems {
        println!("tidy: {problem}");
    }
    bail!("{} house rules are broken", problems.len())
}

/// What is in git, and what would be with the next `git add`.
fn sources(workspace: &Workspace) -> Result<Vec<SourceFile>> {
    let mut git = Command::new("git");
    // A clone may belong to another user than the one who tests it.
    git.args(["-c", "safe.directory=*"])
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&workspace.root);
    let listing = output(&mut git).context("tidy needs git and a clone")?;
    let mut sources = Vec::new();
    for path in listing.split('\0').filter(|path| !path.is_empty()) {
        // A file that was removed but not yet committed is still listed.
        if let Ok(bytes) = fs::read(workspace.root.join(path)) {
            sources.push(SourceFile { path: path.to_owned(), bytes });
        }
    }
    Ok(sources)
}

/// Directories of the machine at hand, which mean nothing on another one.
fn machine_paths(workspace: &Workspace) -> Vec<String> {
    let home = env::var("HOME").unwrap_or_default();
    [workspace.root.to_string_lossy().into_owned(), home, "/root".to_owned()]
        .into_iter()
        .filter(|path| path.len() > 1)
        .map(|path| format!("{}/", path.trim_end_matches('/')))
        .collect()
}
