//! `cargo xtask bench`: builds and starts the benchmarks, which are a crate of their own
//! (crates/bench), so that xtask itself is built in seconds.

use std::process::{Command, ExitCode};
use tare_toolbox::shell::Workspace;

/// The benchmarks with these words, to be run.
pub fn command(workspace: &Workspace, words: &[&str]) -> Command {
    let mut command = workspace.cargo(&["run", "--quiet", "--package", "tare-bench", "--"]);
    command.args(words);
    command
}

/// Ends as they end; what went wrong, they have said.
pub fn run(words: &[&str]) -> ExitCode {
    let status = Workspace::open().and_then(|workspace| Ok(command(&workspace, words).status()?));
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
