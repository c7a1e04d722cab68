//! `cargo xtask heap-oracle`: do other tools say the same of a heap as we do? Real programs dump
//! their heaps; Eclipse MAT and VisualVM's library read the dumps, and also what we export of a
//! snapshot of the same JVMs. Each object is compared (`crates/heapdump/examples/oracle.rs`).

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tare_toolbox::jars::{fetch, jars_in};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::setup;
use tare_toolbox::shell::{self, Workspace};
use tare_toolbox::stages::Stages;

pub const HELP: &str = "\
Whether Eclipse MAT and VisualVM say the same of a heap as we do, object by object.

Usage: cargo xtask heap-oracle [SUBJECT…]    shop (the demo with its leak), javac, loaders; all

Each subject is dumped by its JVM, and a snapshot of the same JVM is exported by `tare`. MAT must
have the same objects, the same dominator of each, and the same retained size of each; VisualVM
the same objects. Dumps and what the tools say of them stay in target/heap-oracle.
";

/// A copy of MAT's parser that needs no Eclipse around it.
const MAT: [&str; 1] = ["com.squareup.haha:haha:1.3"];

/// The library with which VisualVM and NetBeans read dumps.
const VISUAL_VM: [&str; 1] = ["org.netbeans.modules:org-netbeans-lib-profiler:RELEASE250"];

/// Subjects, each with the Java version on which it runs.
const SUBJECTS: [(&str, u32); 3] = [("shop", 21), ("javac", 17), ("loaders", 25)];

struct Oracle {
    work: PathBuf,
    root: PathBuf,
    target: PathBuf,
    classes: PathBuf,
    demo: PathBuf,
    javac: Jdk,
    runtimes: Vec<Jdk>,
    /// By tool: its name, its class, its jars.
    tools: Vec<(&'static str, &'static str, PathBuf)>,
}

pub fn run(words: &[&str]) -> Result<()> {
    for word in words {
        if !SUBJECTS.iter().any(|(name, _)| name == word) {
            bail!("there is no subject {word}\n\n{HELP}");
        }
    }
    let workspace = Workspace::open()?;
    let ready = setup::prepare()?;
    workspace.release()?;
    let build = ["build", "--release", "-p", "tare-heapdump", "--example", "oracle"];
    shell::run(workspace.cargo(&build).env_remove("RUSTFLAGS"))?;
    let mut stages = Stages::new();
    let work = workspace.target.join("heap-oracle");
    fs::create_dir_all(&work)?;
    let tools = [("mat", "MatWitness", &MAT), ("visualvm", "VisualVmWitness", &VISUAL_VM)];
    let tools = tools.into_iter().filter_map(|(name, class, jars)| {
        Some((name, class, fetch(&mut stages, &format!("heap-{name}"), jars)?))
    });
    let oracle = Oracle {
        tools: tools.collect(),
        classes: work.join("classes"),
        demo: work.join("demo"),
        work,
        root: workspace.root,
        target: workspace.target,
        javac: ready.javac,
        runtimes: ready.runtimes.into_iter().filter_map(|(_, jdk)| jdk.ok()).collect(),
    };
    oracle.compile()?;
    for (subject, major) in SUBJECTS {
        if words.is_empty() || words.contains(&subject) {
            stages.run(subject, || oracle.judge(subject, major));
        }
    }
    stages.finish()
}

impl Oracle {
    fn compile(&self) -> Result<()> {
        let mut jars = Vec::new();
        for (_, _, directory) in &self.tools {
            jars.extend(jars_in(directory)?);
        }
        self.javac(&self.root.join("crates/heapdump/oracle"), &self.classes, &jars)?;
        self.javac(&self.root.join("demo/src"), &self.demo, &[])
    }

    fn javac(&self, sources: &Path, classes: &Path, jars: &[PathBuf]) -> Result<()> {
        let mut all = Vec::new();
        find_sources(sources, &mut all)?;
        let witness = |path: &PathBuf| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // Without its jars a tool's class cannot be compiled.
            !name.ends_with("Witness") || self.tools.iter().any(|(_, class, _)| name == *class)
        };
        all.retain(witness);
        let mut javac = Command::new(self.javac.home.join("bin/javac"));
        javac.args(["--release", "17", "-nowarn", "-Xlint:none", "-d"]).arg(classes);
        if !jars.is_empty() {
            javac.arg("-cp").arg(std::env::join_paths(jars)?);
        }
        shell::run(javac.args(all))
    }

    fn judge(&self, subject: &str, major: u32) -> Result<()> {
        let jdk = self.runtimes.iter().find(|jdk| jdk.major == major);
        // The compiler has to be there.
        let jdk = if subject == "javac" { Some(&self.javac) } else { jdk };
        let jdk = jdk.with_context(|| format!("there is no Java {major}"))?;
        println!("{subject} on {}", jdk.describe());
        let directory = self.work.join(subject);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)?;
        let dump = directory.join("dump.hprof");
        let mut program = Command::new(jdk.home.join("bin/java"));
        program.arg("-Xmx1g").arg("-cp").arg(&self.classes).args(["Subject", subject]);
        program.arg(&dump).arg(self.root.join("demo/src")).arg(&self.demo);
        let program = Program::start(program)?;
        let (snapshot, export) = (directory.join("ours.tareheap"), directory.join("export.hprof"));
        let tare = || Command::new(self.target.join("release/tare"));
        let pid = program.0.id().to_string();
        shell::run(tare().args(["heap", &pid, "-o"]).arg(&snapshot).stdout(Stdio::null()))?;
        drop(program);
        shell::run(tare().arg("heap").arg(&snapshot).arg("export").arg(&export))?;
        let mut wrong = Vec::new();
        for (file, what) in [(&dump, "the JVM's dump"), (&export, "our export")] {
            for (tool, class, jars) in &self.tools {
                println!("{subject}: {tool} on {what}");
                if let Err(error) = self.compare(file, tool, class, jars) {
                    println!("  {error:#}");
                    wrong.push(format!("{tool} on {what}"));
                }
            }
        }
        if self.tools.is_empty() {
            bail!("neither MAT nor VisualVM's library could be had");
        }
        if !wrong.is_empty() {
            bail!("not the same: {}", wrong.join(", "));
        }
        Ok(())
    }

    fn compare(&self, dump: &Path, tool: &str, class: &str, jars: &Path) -> Result<()> {
        let witness = dump.with_extension(tool);
        let mut path = vec![self.classes.clone()];
        path.extend(jars_in(jars)?);
        let mut java = Command::new(self.javac.home.join("bin/java"));
        java.arg("-Xmx3g").arg("-cp").arg(std::env::join_paths(path)?).arg(class);
        shell::output(java.arg(dump).arg(&witness))?;
        let oracle = self.target.join("release/examples/oracle");
        shell::run(Command::new(oracle).arg(tool).arg(dump).arg(&witness))
    }
}

/// A subject that waits for us; it ends with its input.
struct Program(Child);

impl Program {
    fn start(mut command: Command) -> Result<Program> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut program = Program(child.context("starting the program")?);
        let output = program.0.stdout.take().context("the program has no output")?;
        for line in BufReader::new(output).lines() {
            if line? == "ready" {
                return Ok(program);
            }
        }
        bail!("the program ended before it was ready")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn find_sources(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            find_sources(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "java") {
            found.push(path);
        }
    }
    Ok(())
}
