//! `cargo xtask demo`: a short tour on a live program, as a user would take it.
//!
//! Everything that Tare does here is done by the `tare` binary, and each command is shown before
//! its output. The tour grows with Tare: add a step to [`tour`].

use crate::setup::{RELEASE, compiler};
use crate::shell::{self, Workspace};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The demo program ends by itself after this long, whatever happens to us.
const AT_MOST: &str = "300";

fn tour(tare: &Tare, pid: &str) -> Result<()> {
    tare.show("Which Java programs run on this machine?", &["ps"])?;
    tare.show("Attach to the demo program and ask how it is.", &["status", pid])?;
    tare.show("It is still attached, which the list shows.", &["ps"])?;
    tare.show("Leave it again, without a trace.", &["detach", pid])
}

pub fn run() -> Result<()> {
    let workspace = Workspace::open()?;
    let jdk = compiler()?;
    shell::run(&mut workspace.cargo(&[
        "build",
        "--release",
        "-p",
        "tare-cli",
        "-p",
        "tare-agent",
    ]))?;
    let classes = compile(&workspace, &jdk.home.join("bin/javac"))?;

    say("Start the demo program, a small order service with a load generator.");
    let mut program = Program::start(&jdk.home.join("bin/java"), &classes)?;
    program.wait_until_ready()?;

    let tare = Tare { binary: workspace.target.join("release/tare") };
    let toured = tour(&tare, &program.child.id().to_string());
    say("Stop the demo program; it did its work all the time, and counts it.");
    program.stop()?;
    toured
}

fn say(text: &str) {
    println!("\n# {text}");
}

struct Tare {
    binary: PathBuf,
}

impl Tare {
    fn show(&self, why: &str, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.binary);
        command.args(arguments);
        say(why);
        println!("$ {}", shell::describe(&command));
        shell::run(&mut command)
    }
}

/// Compiles the demo for the oldest Java that it supports.
fn compile(workspace: &Workspace, javac: &Path) -> Result<PathBuf> {
    let source = workspace.root.join("demo/src");
    let classes = workspace.target.join("demo/classes");
    let mut files = Vec::new();
    java_files(&source, &mut files)?;
    if files.is_empty() {
        bail!("no Java sources in demo/src");
    }
    fs::create_dir_all(&classes).context("creating the demo's class directory")?;
    let mut command = Command::new(javac);
    command.args(["--release", &RELEASE.to_string(), "-g", "-d"]).arg(&classes).args(files);
    shell::run(&mut command).context("compiling the demo program")?;
    Ok(classes)
}

fn java_files(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            java_files(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "java") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

/// The running demo program. It shares our terminal and process group, so that Ctrl-C reaches it
/// as well as us.
struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    fn start(java: &Path, classes: &Path) -> Result<Self> {
        let mut command = Command::new(java);
        command.arg("-cp").arg(classes).args(["shop.Main", "--duration", AT_MOST]);
        println!("$ {}", shell::describe(&command));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the demo program")?;
        let output = child.stdout.take().context("the demo program has no output")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                println!("  shop | {line}");
                let _ = std::io::stdout().flush();
                let _ = sender.send(line);
            }
        });
        Ok(Program { child, lines })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains("ready") => return Ok(()),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => bail!("the demo program was not ready in 60 s"),
                Err(RecvTimeoutError::Disconnected) => bail!("the demo program ended at once"),
            }
        }
    }

    /// Asks the program to end, as a service manager would, and waits until it has said its last.
    fn stop(&mut self) -> Result<()> {
        let ask = format!("kill -TERM {}", self.child.id());
        shell::run(Command::new("sh").args(["-c", &ask]))?;
        let limit = Instant::now() + Duration::from_secs(30);
        while self.lines.recv_timeout(limit.saturating_duration_since(Instant::now())).is_ok() {}
        if self.child.try_wait()?.is_none() && Instant::now() >= limit {
            bail!("the demo program did not end within 30 s");
        }
        let status = self.child.wait()?;
        println!("  shop | ended ({status})");
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
