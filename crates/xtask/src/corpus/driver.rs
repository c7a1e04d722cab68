//! The Java side of the corpus, compiled once: what dumps a JDK, links classes, makes broken ones,
//! and the probe runtime that woven classes call.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell::{self, Workspace};

pub struct Driver {
    /// Class path of the programs in package `weave`.
    pub classes: PathBuf,
    /// A patch for java.base: the probe runtime, and broken classes that must be rejected.
    pub patch: PathBuf,
    /// The broken classes again, for the loader of jars.
    pub broken_jar: PathBuf,
}

/// The broken classes and how each must be found out: by the verifier's refusal, or (50) by its
/// falling back from frames to inference.
pub const BROKEN: [&str; 3] = ["TareBroken49", "TareBroken50", "TareBroken52"];

impl Driver {
    pub fn compile(workspace: &Workspace, javac: &Jdk, work: &Path) -> Result<Driver> {
        let tests = workspace.root.join("crates/jvm-tests");
        let classes = work.join("driver");
        let patch = work.join("patch");
        for directory in [&classes, &patch] {
            let _ = fs::remove_dir_all(directory);
            fs::create_dir_all(directory)?;
        }
        let sources: Vec<PathBuf> = fs::read_dir(tests.join("java/weave"))
            .context("the Java side of the corpus")?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "java"))
            .collect();
        let compiler = javac.home.join("bin/javac");
        let mut command = Command::new(&compiler);
        command.args(["--release", "17", "-g", "-nowarn", "-d"]).arg(&classes).args(sources);
        shell::run(&mut command).context("compiling the Java side of the corpus")?;

        // A class of java.lang can only be compiled as a part of its module.
        let runtime = tests.join("runtime");
        let mut command = Command::new(&compiler);
        command
            .args(["-source", "17", "-target", "17", "-nowarn", "-XDignore.symbol.file"])
            .arg("-Xlint:none")
            .arg(format!("--patch-module=java.base={}", runtime.display()))
            .arg("-d")
            .arg(&patch)
            .arg(runtime.join("java/lang/TareProbe.java"));
        shell::run(&mut command).context("compiling the probe runtime")?;

        let broken_jar = work.join("broken.jar");
        let java = javac.home.join("bin/java");
        shell::run(
            Command::new(&java)
                .arg("-cp")
                .arg(&classes)
                .arg("weave.Broken")
                .arg(&patch)
                .arg("java/lang"),
        )?;
        shell::run(
            Command::new(&java)
                .arg("-cp")
                .arg(&classes)
                .arg("weave.Broken")
                .arg(work.join("broken"))
                .arg("tare/broken")
                .arg(&broken_jar),
        )?;
        Ok(Driver { classes, patch, broken_jar })
    }

    /// A JVM with the driver on its class path, small enough to run beside other work.
    pub fn java(&self, jdk: &Jdk) -> Command {
        let mut command = Command::new(jdk.home.join("bin/java"));
        command.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx2g"]);
        for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"] {
            command.env_remove(name);
        }
        command
    }
}
