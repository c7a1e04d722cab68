//! A Java compiler for build scripts: the agent's, and that of the runtime for programs woven
//! offline.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Compiles sources into a folder, or ends the build with the compiler's own words.
pub fn compile(options: &[&str], into: &Path, sources: &[PathBuf]) {
    println!("cargo:rerun-if-env-changed=JAVA_HOME");
    println!("cargo:rerun-if-env-changed=PATH");
    let javac = javac().unwrap_or_else(|| {
        panic!(
            "no javac found: Tare holds a few small Java classes. Install a JDK of version 17 or \
             later (`cargo xtask setup` does it), or set JAVA_HOME"
        )
    });
    let output = Command::new(&javac)
        .args(options)
        .args(["-Xlint:all,-options", "-Werror", "-proc:none", "-d"])
        .arg(into)
        .args(sources)
        .output()
        .unwrap_or_else(|e| panic!("cannot run {}: {e}", javac.display()));
    assert!(
        output.status.success(),
        "a Java runtime does not compile:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The Java sources of a folder, in the order of their names.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("a folder of sources");
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "java"));
    files.sort();
    files
}

/// The compiler of `JAVA_HOME`, of the search path, or of a JDK in the usual place.
fn javac() -> Option<PathBuf> {
    let homes = env::var_os("JAVA_HOME").map(PathBuf::from).into_iter();
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|dir| dir.join("javac"));
    let mut installed: Vec<PathBuf> = fs::read_dir("/usr/lib/jvm")
        .map(|dir| dir.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    installed.sort();
    homes
        .map(|home| home.join("bin/javac"))
        .chain(on_path)
        .chain(installed.into_iter().map(|home| home.join("bin/javac")))
        .find(|path| is_new_enough(path))
}

fn is_new_enough(javac: &Path) -> bool {
    let Ok(output) = Command::new(javac).arg("-version").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.trim().strip_prefix("javac ").unwrap_or("");
    version.split('.').next().and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n >= 17)
}
