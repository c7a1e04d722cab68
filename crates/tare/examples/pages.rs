//! Writes manual pages and completions of shells into a directory: `cargo xtask dist` runs it.
//!
//! They are made of the flags themselves. What makes them is not in the tool, which nobody asks for
//! them twice.

#[allow(dead_code, unused_imports, reason = "only the flags are looked at")]
#[path = "../src"]
mod tool {
    pub mod cli;
}

use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: pages DIRECTORY");
        std::process::exit(2);
    };
    let (man, completions) =
        (Path::new(&folder).join("man"), Path::new(&folder).join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    let command = tool::cli::Cli::command();
    clap_mangen::generate_to(command.clone(), &man)?;
    for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
        generate_to(shell, &mut command.clone(), "tare", &completions)?;
    }
    Ok(())
}
