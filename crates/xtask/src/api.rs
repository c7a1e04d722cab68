//! `cargo xtask api`: the jar that agents written in Java are compiled against, and the examples.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_toolbox::setup;
use tare_toolbox::shell::{self, Workspace};

/// The examples, and the jars that they get.
const EXAMPLES: [(&str, &str); 2] = [
    ("tare.examples.TopContexts", "top-contexts.jar"),
    ("tare.examples.BudgetGuard", "budget-guard.jar"),
];

pub fn run() -> Result<()> {
    let workspace = Workspace::open()?;
    let jdk = setup::compiler()?;
    let out = workspace.target.join("api");
    let classes = out.join("classes");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&classes).with_context(|| format!("creating {}", classes.display()))?;
    let sources = [
        sources(&workspace.root, "api/src/tare/api")?,
        sources(&workspace.root, "api/examples/tare/examples")?,
    ];
    let mut javac = Command::new(jdk.home.join("bin/javac"));
    javac.args(["--release", "17", "-Xlint:all", "-Werror", "-d"]).arg(&classes);
    shell::run(javac.args(sources.concat()))?;
    jar(
        &jdk.home,
        &out.join("tare-api.jar"),
        &classes,
        "Automatic-Module-Name: tare.api",
        &["tare/api"],
    )?;
    for (class, name) in EXAMPLES {
        let manifest = format!("Tare-Agent: {class}");
        jar(&jdk.home, &out.join(name), &classes, &manifest, &["."])?;
    }
    Ok(())
}

fn sources(root: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(root.join(folder)).with_context(|| format!("reading {folder}"))?;
    Ok(files.flatten().map(|file| file.path()).collect())
}

fn jar(home: &Path, file: &Path, classes: &Path, manifest: &str, what: &[&str]) -> Result<()> {
    let text = file.with_extension("mf");
    fs::write(&text, format!("{manifest}\n"))
        .with_context(|| format!("writing {}", text.display()))?;
    let mut jar = Command::new(home.join("bin/jar"));
    jar.arg("cfm").args([file, &text]);
    what.iter().for_each(|part| _ = jar.arg("-C").arg(classes).arg(part));
    shell::run(&mut jar)?;
    println!("wrote {}", file.display());
    Ok(())
}
