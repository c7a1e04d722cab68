//! `cargo xtask dist`: what a release consists of, built twice to see that it comes out the same.
//!
//! The tool is linked with musl, statically, so it runs in any image; the agent that it carries is
//! linked with no libc at all. How the files are packed is told by `pack`.

mod pack;

use crate::agent_symbols;
use anyhow::{Context, Result, bail};
use pack::Release;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_toolbox::shell::{self, Workspace, output};

pub const HELP: &str = "\
Builds what a release consists of, into `dist` of the target directory: a tarball with the one
file, manual pages and completions; a Debian package; an image of nothing but the tool (OCI layout);
and SHA256SUMS. Everything is built twice, in two directories, and must be equal bit by bit.

Usage: cargo xtask dist [--once]

  --once    build once, and do not compare

It needs the standard library for musl: rustup target add x86_64-unknown-linux-musl
";

const TARGET: &str = "x86_64-unknown-linux-musl";

pub fn run(options: &[&str]) -> Result<()> {
    let twice = match options {
        [] => true,
        ["--once"] => false,
        _ => bail!("unknown: {}\n\n{HELP}", options.join(" ")),
    };
    let workspace = Workspace::open()?;
    let mut rustc = Command::new("rustc");
    rustc.current_dir(&workspace.root).args(["--print", "target-libdir", "--target", TARGET]);
    if !Path::new(output(&mut rustc)?.trim()).is_dir() {
        bail!(
            "the standard library for {TARGET} is missing, and with it a tool that runs on every \
             Linux. Fetch it: rustup target add {TARGET}"
        );
    }
    let dist = workspace.target.join("dist");
    let first = built(&workspace, &dist, "first")?;
    if twice {
        let second = built(&workspace, &dist, "second")?;
        compare(&first, &second)?;
        println!("dist: built twice, and equal");
    }
    for entry in fs::read_dir(&first)?.flatten() {
        fs::copy(entry.path(), dist.join(entry.file_name()))?;
    }
    print!("{}", fs::read_to_string(dist.join(pack::SUMS))?);
    println!("dist: {}", dist.display());
    Ok(())
}

/// The folder with the packed files of a build in a directory of its own.
fn built(workspace: &Workspace, dist: &Path, name: &str) -> Result<PathBuf> {
    let folder = dist.join(name);
    let packed = folder.join("packed");
    if packed.exists() {
        fs::remove_dir_all(&packed).with_context(|| format!("removing {}", packed.display()))?;
    }
    fs::create_dir_all(&packed).with_context(|| format!("creating {}", packed.display()))?;
    shell::run(&mut build(workspace, &folder)?)?;
    let binary = folder.join(TARGET).join("release/tare");
    agent_symbols::check(&carried(&folder)?)?;
    let pages = folder.join("pages");
    let mut example = workspace.cargo(&["run", "--quiet", "--locked", "-p", "tare-cli"]);
    shell::run(example.args(["--example", "pages", "--"]).arg(&pages))?;
    let version = version(workspace)?;
    let release = Release { version: &version, binary: &binary, pages: &pages };
    release.pack(&workspace.root, &packed)?;
    Ok(packed)
}

/// Paths of this machine would differ on another, so none gets into the program.
fn build(workspace: &Workspace, folder: &Path) -> Result<Command> {
    let home = std::env::home_dir().context("HOME is not set")?;
    let cargo_home = std::env::var_os("CARGO_HOME").map_or(home.join(".cargo"), PathBuf::from);
    let places = [(&*workspace.root, "/tare"), (&cargo_home, "/cargo"), (folder, "/build")];
    let flags = places.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let mut cargo = workspace.cargo(&["build", "--release", "--locked", "-p", "tare-cli"]);
    cargo
        .args(["--target", TARGET, "--target-dir"])
        .arg(folder)
        .env_remove("RUSTFLAGS")
        .env_remove("TARE_EMBED_AGENT")
        .env_remove("TARE_BUILD_ID")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    Ok(cargo)
}

/// The agent that the tool was built with: the newest, where a folder holds several.
fn carried(folder: &Path) -> Result<PathBuf> {
    let scripts = folder.join(TARGET).join("release/build");
    let agent = "out/agent/x86_64-unknown-linux-gnu/release/libtare_agent.so";
    let agents = fs::read_dir(&scripts)?.flatten().filter_map(|entry| {
        let path = entry.path().join(agent);
        Some((fs::metadata(&path).ok()?.modified().ok()?, path))
    });
    agents.max().map(|(_, path)| path).context("the build left no agent")
}

fn version(workspace: &Workspace) -> Result<String> {
    let packages = workspace.metadata["packages"].as_array().context("cargo metadata")?;
    let ours = packages.iter().find(|package| package["name"] == "tare-cli");
    let version = ours.and_then(|package| package["version"].as_str());
    version.map(str::to_owned).context("tare-cli has no version")
}

fn compare(first: &Path, second: &Path) -> Result<()> {
    let read = |folder: &Path| {
        let path = folder.join(pack::SUMS);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let (one, other) = (read(first)?, read(second)?);
    let differ: Vec<&str> = one.lines().filter(|line| !other.contains(*line)).collect();
    if !differ.is_empty() {
        bail!("two builds differ:\n  {}", differ.join("\n  "));
    }
    Ok(())
}
