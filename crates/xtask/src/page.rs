//! The page of `tare view`: its types, by the TypeScript compiler where there is node, and its size.
//! Nothing of a build needs node; without it this check is left out, and the summary says so.

use anyhow::{Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tare_toolbox::shell::{self, Workspace};

/// What all files of the page may have together, as they are written.
const BUDGET: u64 = 220_000;
/// The compiler's version, so that all machines find the same mistakes.
const COMPILER: &str = "typescript@5.9.3";

/// Checks the page; an answer is what could not be checked, and why.
pub fn check(workspace: &Workspace) -> Result<Option<String>> {
    let view = workspace.root.join("crates/view");
    let mut size = 0;
    for file in fs::read_dir(view.join("assets"))? {
        size += file?.metadata()?.len();
    }
    ensure!(size <= BUDGET, "the page has {size} bytes: at most {BUDGET} are allowed");
    let Some(compiler) = compiler(&workspace.target.join("tsc")) else {
        return Ok(Some(format!("types of the page of `tare view`: no node, npm or {COMPILER}")));
    };
    shell::run(Command::new(compiler).arg("--project").arg(view.join("tsconfig.json")))?;
    Ok(None)
}

/// The compiler that an earlier run installed, or one installed now.
fn compiler(folder: &Path) -> Option<PathBuf> {
    let compiler = folder.join("node_modules/.bin/tsc");
    if !compiler.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"]).arg(folder);
        npm.arg(COMPILER).stdout(Stdio::null()).stderr(Stdio::null());
        fs::create_dir_all(folder).ok()?;
        npm.status().ok().filter(std::process::ExitStatus::success)?;
    }
    Some(compiler)
}
