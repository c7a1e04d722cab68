//! `cargo xtask bench view`: how long the page of a recording of five million contexts takes to open,
//! what its server and its answers weigh, and how it pans. A test of `tare-cli` does it in a real
//! browser and prints it; this has it built as users get it.

use anyhow::{Result, bail};
use tare_toolbox::shell::{self, Workspace};

const HELP: &str = "\
Opens a recording of five million contexts in a real Chromium, and prints times and sizes.

Usage: cargo xtask bench view
";

pub fn run(words: &[&str]) -> Result<()> {
    match words {
        [] => {}
        ["--help" | "-h"] => {
            print!("{HELP}");
            return Ok(());
        }
        _ => bail!("{} is no option\n\n{HELP}", words.join(" ")),
    }
    let workspace = Workspace::open()?;
    let test = ["test", "--release", "-p", "tare-cli", "--test", "view"];
    let only = ["five_million_contexts", "--", "--ignored", "--nocapture"];
    shell::run(workspace.cargo(&test).args(only))
}
