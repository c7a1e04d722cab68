//! `cargo xtask bench reach`: what it takes to look at a JVM elsewhere (first answers through sshd by
//! a link of our own making), how soon nothing is on there once nobody is here, what `tare top`
//! takes of a processor, and what the static build takes to start and to read a large recording.

mod forwarder;
mod sshd;
mod top;

use super::options::Options;
use super::ready::Ready;
use super::stats::{beside, median, shown};
use super::{jdks, machine, write};
use anyhow::{Context, Result, bail};
use forwarder::Line;
use sshd::Sshd;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use tare_toolbox::shell;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Measures `tare --host` through sshd on loopback by a link that delays and limits, `tare top` at 1,000 threads, and
the static build beside the other.

Usage: cargo xtask bench reach [--quick] [--jdk N] [--tare FILE] [--static FILE] [--write-docs]

  --quick          a smoke test: one round, smaller sizes
  --static FILE    the released, static tare (target/dist/…/tare); without it its part is left out
  --write-docs     write docs/measured/reach.md

It needs sshd, ssh, script (util-linux) and strip.
";

const PAGE: &str = "docs/measured/reach.md";
/// 50 ms there and back.
const DELAY: Duration = Duration::from_millis(25);
/// 10 Mbit/s.
const RATE: f64 = 1.25e6;
const CONTEXTS: u64 = 5_000_000;

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let quick = options.quick;
    let of_static = match options.rest[..] {
        [] => None,
        ["--static", file] => Some(PathBuf::from(file)),
        _ => bail!("unknown: {}\n\n{HELP}", options.rest.join(" ")),
    };
    let ready = Ready::alone(options.tare.clone())?;
    let jdk = jdks(&[options.jdk], &mut Stages::new())?.remove(0);
    let java = jdk.home.join("bin/java");
    let mut text = String::new();
    text += &answers(&ready, &java, if quick { 1 } else { 7 })?;
    text += &silence(&ready, &java)?;
    text += &top::measure(&ready, &java, quick)?;
    match of_static {
        Some(file) => text += &builds(&ready, &java, &file, quick)?,
        None => println!("left out: the static build (--static FILE)"),
    }
    println!("\n{text}");
    if options.write_docs {
        let revision = ready.workspace.revision().unwrap_or_default();
        let command = super::command(&[&["reach"], words].concat());
        let page = format!(
            "# A JVM elsewhere, the live view, and one file\n\n\
             This page is generated; `{command}` writes it anew. Do not edit it.\n\n\
             Commit {revision}; {}; JDK {}.\n{text}",
            machine::describe(),
            jdk.version
        );
        write(&ready.workspace.root.join(PAGE), &page)?;
    }
    Ok(())
}

/// A JVM with many threads, ended with this.
pub struct Jvm {
    pub child: Child,
    /// Closed, it is told to end.
    pub input: ChildStdin,
}

impl Jvm {
    fn start(ready: &Ready, java: &Path, words: &[&str]) -> Result<Jvm> {
        let mut command = Command::new(java);
        command
            .args(["-Xmx512m"])
            .arg(ready.temporary())
            .arg("-cp")
            .arg(&ready.classes)
            .args(words);
        let errors = fs::File::create(ready.work.join("stderr.log"))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().context("java")?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.context("no output")?);
        let jvm = Jvm { child, input: input.context("no input")? };
        let mut lines = output.lines();
        while let Some(Ok(line)) = lines.next() {
            if line.starts_with("ready") || line.starts_with("bench ready") {
                // It goes on printing, and nobody wants it.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(jvm);
            }
        }
        bail!("the program does not begin")
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The tool without its symbols, as it is released.
fn stripped(ready: &Ready) -> Result<PathBuf> {
    let file = ready.work.join("reach-tare");
    shell::run(Command::new("strip").arg("-o").arg(&file).arg(&ready.tare))?;
    Ok(file)
}

/// Seconds until a command has ended well.
fn seconds(command: &mut Command) -> Result<f64> {
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(began.elapsed().as_secs_f64())
}

/// First answers, with `tare` there and without.
fn answers(ready: &Ready, java: &Path, rounds: usize) -> Result<String> {
    let tare = stripped(ready)?;
    let jvm = Jvm::start(ready, java, &["bench.ManyThreads", "50", "20"])?;
    let pid = jvm.child.id().to_string();
    let (with, without) = (ready.work.join("reach-with"), ready.work.join("reach-without"));
    for folder in [&with, &without] {
        fs::create_dir_all(folder)?;
    }
    fs::copy(&tare, with.join("tare"))?;
    let screens: [(&str, &[&str]); 3] = [
        ("the list of JVMs", &[]),
        ("`threads JVM`", &["threads", &pid]),
        ("`top JVM --once --every 1s`", &["top", &pid, "--once", "--every", "1s"]),
    ];
    let mut text = "\n## First answers\n\nThrough Debian's sshd on this machine, by a forwarder \
                    that holds each byte for 25 ms each way; medians, and ratios beside `ssh box \
                    true` by the same link, of pairs. *Sent*: there is no tare, and the link \
                    carries 10 Mbit/s; this one sends itself, packed, without symbols.\n\n\
                    | | ssh alone | tare there | goal | beside ssh | sent | goal |\n|---|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    let delayed = Line { delay: DELAY, rate: None };
    let limited = Line { delay: DELAY, rate: Some(RATE) };
    let (is_there, is_not) = (
        Sshd::start(&ready.work.join("sshd-with"), &with)?,
        Sshd::start(&ready.work.join("sshd-without"), &without)?,
    );
    let (fast, slow) = (is_there.by("delayed", delayed)?, is_not.by("limited", limited)?);
    for (name, words) in screens {
        let (mut alone, mut there, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        // The first knows the host's key afterwards.
        for round in 0..=rounds {
            let path = |folder: &Path| {
                format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
            };
            let ask = |folder: &Path| {
                let mut command = Command::new(&tare);
                command.args(["--host", "box"]).args(words).env("PATH", path(folder));
                seconds(&mut command)
            };
            let mut ssh = Command::new(fast.join("ssh"));
            let ssh = seconds(ssh.args(["-o", "BatchMode=yes", "box", "true"]))?;
            let took = ask(&fast)?;
            if round > 0 {
                alone.push(ssh);
                there.push(took);
            }
            if round < 4 {
                let took = ask(&slow)?;
                sent.extend((round > 0 || rounds == 1).then_some(took));
            }
        }
        let s = |values: &[f64]| median(values).map_or("–".to_owned(), |s| format!("{s:.2} s"));
        let _ = writeln!(
            text,
            "| {name} | {} | {} | ≤ 3 s | {} | {} | ≤ 10 s |",
            s(&alone),
            s(&there),
            shown(beside(&there, &alone)),
            s(&sent)
        );
    }
    let size = fs::metadata(&tare)?.len() as f64 / 1e6;
    let _ = writeln!(text, "\nThe tool that was sent has {size:.1} MB before it is packed.");
    Ok(text)
}

/// How long something stays on there.
fn silence(ready: &Ready, java: &Path) -> Result<String> {
    let tare = stripped(ready)?;
    let there = ready.work.join("reach-with");
    let sshd = Sshd::start(&ready.work.join("sshd-silence"), &there)?;
    let ssh = sshd.by("plain", Line { delay: Duration::ZERO, rate: None })?;
    let path = format!("{}:{}", ssh.display(), std::env::var("PATH").unwrap_or_default());
    let mut text = "\n## Until nothing is on there\n\nA recording through sshd; from that moment \
                    until the JVM has no agent any more, by looks every half second. The goal is 31 s.\n\n\
                    | what happens | seconds |\n|---|--:|\n"
        .to_owned();
    for (what, script) in [
        ("the near `tare` is killed", "kill -9 $near"),
        ("ssh is killed", "pkill -9 -P $near"),
        (
            "the near `tare` and ssh stop, and the connection stays (a cable that is pulled)",
            "pkill -STOP -P $near; kill -STOP $near",
        ),
        ("the relay and the recording are killed at once", "kill -9 $(pgrep -P $relay) $relay"),
    ] {
        let jvm = Jvm::start(ready, java, &["bench.ManyThreads", "50", "20"])?;
        let pid = jvm.child.id();
        let file = ready.work.join("reach.tare");
        let _ = fs::remove_file(&file);
        let mut near = Command::new(&tare);
        near.args(["--host", "box", "record", "--wall", &pid.to_string(), "-o"]).arg(&file);
        near.env("PATH", &path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut near = near.spawn()?;
        let limit = Instant::now() + Duration::from_secs(60);
        while fs::metadata(&file).map_or(0, |there| there.len()) < 1000 {
            if Instant::now() > limit {
                bail!("nothing is recorded");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let relay = shell::output(Command::new("pgrep").args(["-n", "-f", "tare relay$"]))?;
        let script =
            script.replace("$near", &near.id().to_string()).replace("$relay", relay.trim());
        let began = Instant::now();
        shell::run(Command::new("sh").args(["-c", &script]))?;
        loop {
            let list = shell::output(Command::new(&tare).args(["ps", "--json"]))?;
            let list: serde_json::Value = serde_json::from_str(&list)?;
            let entry = list.as_array().and_then(|all| all.iter().find(|jvm| jvm["pid"] == pid));
            let agent = entry.and_then(|jvm| jvm["agent"].as_str()).unwrap_or_default();
            if matches!(agent, "none" | "detached") {
                break;
            }
            if began.elapsed() > Duration::from_secs(120) {
                bail!("{what}: the agent is {agent} after two minutes");
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        let _ = writeln!(text, "| {what} | {:.1} |", began.elapsed().as_secs_f64());
        let _ = shell::run(
            Command::new("sh").args(["-c", &format!("pkill -9 -P {} || true", near.id())]),
        );
        let _ = near.kill();
        near.wait()?;
    }
    Ok(text)
}

/// The static build beside the other one, in turns.
fn builds(ready: &Ready, java: &Path, of_static: &Path, quick: bool) -> Result<String> {
    let contexts = if quick { CONTEXTS / 100 } else { CONTEXTS };
    let file = ready.work.join("reach-contexts.tare");
    let mut record = Command::new(&ready.tare);
    record.args([
        "record",
        "-q",
        "--exact",
        "--count",
        "--memory",
        "1G",
        "--include",
        "bench.Contexts$Paths",
        "-o",
    ]);
    record.arg(&file).arg("--").arg(java).arg("-cp").arg(&ready.classes);
    record.args(["bench.Main", "contexts", &contexts.to_string()]);
    record.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut child = record.spawn()?;
    let mut input = child.stdin.take().context("no input")?;
    std::io::Write::write_all(&mut input, b"run 1 0\nquit\n")?;
    if !child.wait()?.success() {
        bail!("the recording of many contexts has failed");
    }
    let glibc = stripped(ready)?;
    let rounds = if quick { 1 } else { 5 };
    let mut text = format!(
        "\n## The static build\n\nThe released tool, linked with musl, beside the same linked with \
         glibc, in turns. A recording of {contexts} contexts has {:.0} MB.\n\n\
         | | glibc | static | beside glibc | goal |\n|---|--:|--:|--:|--:|\n",
        fs::metadata(&file)?.len() as f64 / 1e6
    );
    let path = file.display().to_string();
    let tasks: [(&str, &[&str], usize); 2] = [
        ("start (`tare --version`), a hundred times", &["--version"], 100),
        ("`tare report` of the recording", &["report", "--no-pager", &path], 1),
    ];
    for (name, words, times) in tasks {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            for (binary, all) in [(glibc.as_path(), &mut one), (of_static, &mut other)] {
                let mut sum = 0.0;
                for _ in 0..times {
                    sum += seconds(Command::new(binary).args(words))?;
                }
                if round > 0 || quick {
                    all.push(sum);
                }
            }
        }
        let s = |values: &[f64]| median(values).map_or("–".to_owned(), |s| format!("{s:.2} s"));
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | ≤ 1.1 |",
            s(&one),
            s(&other),
            shown(beside(&other, &one))
        );
    }
    Ok(text)
}
