//! Running other programs, and the few facts about this machine that decide how.
//!
//! Output goes to the terminal as it comes unless a caller asks for it. Nothing here knows Java.

use anyhow::{Context, Result, bail};
use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace and the directory into which cargo builds.
pub struct Workspace {
    pub root: PathBuf,
    pub target: PathBuf,
    /// The answer of `cargo metadata`, without dependencies from outside.
    pub metadata: serde_json::Value,
}

impl Workspace {
    pub fn open() -> Result<Self> {
        let mut command = cargo();
        command
            .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
            .arg("--manifest-path")
            .arg(root().join("Cargo.toml"));
        let metadata: serde_json::Value =
            serde_json::from_str(&output(&mut command)?).context("reading cargo's metadata")?;
        let path = |key: &str| {
            let text = metadata[key].as_str();
            text.map(PathBuf::from).with_context(|| format!("cargo metadata has no {key}"))
        };
        Ok(Workspace { root: path("workspace_root")?, target: path("target_directory")?, metadata })
    }

    /// A cargo command that runs in the workspace.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root).args(arguments);
        command
    }

    /// The commit that is measured, and whether the sources are as in it.
    pub fn revision(&self) -> Option<String> {
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            output(git.current_dir(&self.root).args(arguments)).ok()
        };
        let commit = git(&["rev-parse", "--short", "HEAD"])?;
        // What an earlier part of the same run has written is no change of what is measured.
        let sources = [".", ":!docs", ":!README.md", ":!bench/*.svg"];
        let status = ["status", "--porcelain", "--untracked-files=no", "--"];
        let changes = git(&[&status[..], &sources].concat())?;
        let more = if changes.trim().is_empty() { "" } else { ", with changes" };
        Some(format!("{}{more}", commit.trim()))
    }

    /// Builds the tool, with the agent inside, as it is released but for its symbols. The agent is
    /// built first: what cargo has of it serves both.
    pub fn release(&self) -> Result<PathBuf> {
        let built = self.target.join("release");
        for package in ["tare-agent", "tare-cli"] {
            let mut cargo = self.cargo(&["build", "--release", "-p", package]);
            run(cargo.env("TARE_EMBED_AGENT", built.join("libtare_agent.so")))?;
        }
        Ok(built)
    }
}

/// Where the sources are. Cargo tells a program that it runs; where it was built is the second
/// choice, since a target directory may have been copied into another work tree.
pub fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = package.map(|package| package.join("../.."));
    here.filter(|root| root.join("crates/toolbox").is_dir())
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command with its output on the terminal; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let line = describe(command);
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs a command and returns what it wrote to standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let line = describe(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not write text"))
}

/// Whether a command can be started and says that all is well; what it writes is thrown away.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as a person would type it.
pub fn describe(command: &Command) -> String {
    let word = |word: &OsStr| word.to_string_lossy().into_owned();
    let program = Path::new(command.get_program());
    let mut line = vec![word(program.file_name().unwrap_or(program.as_os_str()))];
    line.extend(command.get_args().map(word));
    line.join(" ")
}

/// The first file of that name on `PATH`.
pub fn which(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Whether we may install packages.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}
