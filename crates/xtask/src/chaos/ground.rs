//! What all rounds share: builds, compiled classes, jars, and what JDKs and this machine can do.

use super::plan::{Abilities, Means};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_toolbox::jars::fetched_async_profiler;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::setup::{RELEASE, Ready};
use tare_toolbox::shell::{self, Workspace};

const COLLECTORS: [&str; 6] = ["Serial", "Parallel", "G1", "Z", "Shenandoah", "Epsilon"];

/// The antagonist, and what of the tests' programs it uses.
const SOURCES: &str = "crates/jvm-tests/java/chaos";
const MORE_SOURCES: [&str; 2] =
    ["crates/jvm-tests/java/targets/Natives.java", "crates/jvm-tests/java/targets/Meddler.java"];

pub struct Subject {
    pub jdk: Jdk,
    pub abilities: Abilities,
}

pub struct Ground {
    pub tare: PathBuf,
    pub agent: PathBuf,
    pub natives: PathBuf,
    /// Puts a program under a filter of system calls.
    pub filtered: PathBuf,
    pub classes: PathBuf,
    pub meddler: PathBuf,
    pub async_profiler: Option<PathBuf>,
    pub jcmd: PathBuf,
    pub means: Means,
    pub subjects: Vec<Subject>,
    /// Where rounds have their directories.
    pub work: PathBuf,
}

impl Ground {
    pub fn prepare(workspace: &Workspace, ready: &Ready, wanted: Option<&[u32]>) -> Result<Self> {
        let bin = workspace.release()?;
        let more = ["-p", "tare-test-natives", "-p", "tare-jvm-tests", "--lib", "--bins"];
        shell::run(workspace.cargo(&["build", "--release"]).args(more))?;
        let work = workspace.target.join("chaos");
        fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
        let classes = compile(workspace, &ready.javac, &work)?;
        let meddler = meddler(&ready.javac, &work)?;
        let async_profiler = fetched_async_profiler(&ready.javac, &work);
        let found = ready.runtimes.iter().filter_map(|(_, jdk)| jdk.as_ref().ok());
        let subjects: Vec<Subject> = found
            .filter(|jdk| wanted.is_none_or(|list| list.contains(&jdk.major)))
            .map(|jdk| Subject { jdk: jdk.clone(), abilities: abilities(jdk) })
            .collect();
        if subjects.is_empty() {
            bail!("there is none of these JDKs");
        }
        let namespaces = shell::succeeds(Command::new("unshare").args(["--mount", "true"]));
        let means = Means { namespaces, async_profiler: async_profiler.is_some() };
        Ok(Ground {
            tare: bin.join("tare"),
            agent: bin.join("libtare_agent.so"),
            natives: bin.join("libtare_test_natives.so"),
            filtered: bin.join("filtered"),
            classes,
            meddler,
            async_profiler,
            jcmd: ready.javac.home.join("bin/jcmd"),
            means,
            subjects,
            work,
        })
    }

    /// What cannot be done here, for whoever reads the summary.
    pub fn not_covered(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.means.namespaces {
            lines.push("chaos with disks of its own: this user has no namespaces".to_owned());
        }
        if !self.means.async_profiler {
            lines.push("chaos beside async-profiler: it was never fetched".to_owned());
        }
        lines
    }
}

fn compile(workspace: &Workspace, javac: &Jdk, work: &Path) -> Result<PathBuf> {
    let mut files: Vec<PathBuf> = MORE_SOURCES.map(|file| workspace.root.join(file)).into();
    for entry in fs::read_dir(workspace.root.join(SOURCES))? {
        files.push(entry?.path());
    }
    let classes = work.join("classes");
    let _ = fs::remove_dir_all(&classes);
    let mut command = Command::new(javac.home.join("bin/javac"));
    command.args(["--release", &RELEASE.to_string(), "-nowarn", "-g", "-d"]).arg(&classes);
    shell::run(command.args(files))?;
    Ok(classes)
}

/// The jar that makes an agent of a class on the class path.
fn meddler(javac: &Jdk, work: &Path) -> Result<PathBuf> {
    let (manifest, jar) = (work.join("meddler.mf"), work.join("meddler.jar"));
    let rights = "Can-Redefine-Classes: true\nCan-Retransform-Classes: true\n";
    fs::write(&manifest, format!("Premain-Class: Meddler\n{rights}"))?;
    let mut tool = Command::new(javac.home.join("bin/jar"));
    shell::run(tool.arg("cfm").args([&jar, &manifest]))?;
    Ok(jar)
}

fn abilities(jdk: &Jdk) -> Abilities {
    let starts = |flags: &[&str]| {
        let mut command = Command::new(jdk.home.join("bin/java"));
        shell::succeeds(command.args(flags.iter().map(OsStr::new)).arg("-version"))
    };
    let has = |collector: &&str| {
        starts(&["-XX:+UnlockExperimentalVMOptions", &format!("-XX:+Use{collector}GC")])
    };
    let collectors: Vec<&'static str> = COLLECTORS.into_iter().filter(has).collect();
    let flight_recorder =
        jdk.home.join("lib/libjfr.so").is_file() || starts(&["--add-modules", "jdk.jfr"]);
    Abilities { major: jdk.major, collectors, flight_recorder }
}
