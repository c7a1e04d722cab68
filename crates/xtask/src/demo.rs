//! `cargo xtask demo`: a short tour on a live program, as a user would take it.
//!
//! Everything that Tare does here is done by the `tare` binary, and each command is shown before
//! its output. The tour grows with Tare: add a step to [`tour`].

use anyhow::{Context, Result, bail};
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use tare_browser::Browser;
use tare_toolbox::setup::{RELEASE, compiler};
use tare_toolbox::shell::{self, Workspace};

/// One thread that is always busy, so that there is something to see and a core left for others;
/// a leak of about a kilobyte for each order; and it ends by itself after some time, whatever
/// happens to us.
const SWITCHES: [&str; 7] = ["--threads", "1", "--leak", "fast", "--duration", "300", "--quiet"];

/// How many of the program's counts are shown; it has a hundred.
const COUNTS_SHOWN: usize = 8;

fn tour(tare: &Tare, pid: &str) -> Result<()> {
    tare.show("Which Java programs run on this machine?", &["ps"])?;
    tare.show(
        "Attach to it and ask how it is. (Java 21 and newer warn about that; see docs/guide/attach.md.)",
        &["status", pid],
    )?;
    let (samples, page) = (tare.file("demo-samples.tare"), tare.file("demo.html"));
    tare.show(
        "Sample it for four seconds: where does its processor time go? Nothing in it is changed for that.",
        &["record", pid, "--interval", "1ms", "-d", "4s", "-o", &samples],
    )?;
    tare.show(
        "The same as a flame graph, to be opened in a browser.",
        &["export", &samples, "-o", &page],
    )?;
    let memory = tare.file("demo-memory.tare");
    tare.show(
        "Sample what it allocates for six seconds, and see what stays: something in it never forgets a customer.",
        &["record", "--alloc", pid, "-d", "6s", "-o", &memory],
    )?;
    let recording = tare.file("demo.tare");
    tare.show(
        "Record every call of it for four seconds, after samples for four more: calls are exact, times per call come from \
         the samples, since probes would lengthen short methods. Then its own code is back.",
        &["record", "--exact", "--cpu", "--window", "4s", pid, "-d", "4s", "-o", &recording],
    )?;
    tare.show(
        "Ask the recording who calls a method, and what it calls.",
        &["report", &recording, "--method", "Pricer.price"],
    )?;
    tare.show(
        "The same by the probes' own clock, an estimate, with what is most doubtful in grey: waiting is in it, too.",
        &["report", &recording, "--metric", "wall-time", "--top", "10"],
    )?;
    tare.show("Leave it again, without a trace.", &["detach", pid])?;
    tare.show("It runs on as before; the list knows that we were there.", &["ps"])
}

pub fn run() -> Result<()> {
    let workspace = Workspace::open()?;
    let jdk = compiler()?;
    let built = workspace.release()?;
    let classes = compile(&workspace, &jdk.home.join("bin/javac"))?;

    say("Start the demo program, a small order service with a load generator.");
    let mut program = Program::start(&jdk.home.join("bin/java"), &classes)?;
    program.wait_until_ready()?;

    let tare = Tare { binary: built.join("tare") };
    let toured = tour(&tare, &program.child.id().to_string());
    say("Stop the demo program; it did its work all the time, and counts it.");
    program.stop()?;
    toured?;
    page(&tare)
}

/// What was sampled, as a page: in the browser until Ctrl-C, or where there is no display as a
/// picture.
fn page(tare: &Tare) -> Result<()> {
    let samples = tare.file("demo-samples.tare");
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some());
    if has_display && io::stdin().is_terminal() {
        return tare.show("Look at the samples in the browser, until Ctrl-C.", &["view", &samples]);
    }
    let mut view = tare.announce(
        "Look at the samples as a page. There is no display here, so a browser takes a picture of it.",
        &["view", &samples, "--no-open"],
    );
    let mut view = view.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut link = String::new();
    let output = view.stdout.take().context("tare view has no output")?;
    let outcome = BufReader::new(output).read_line(&mut link).context("waiting for the link");
    let picture = tare.file("demo-view.png");
    let outcome = outcome.and_then(|_| {
        let link = link.trim();
        println!("{link}");
        if tare_browser::program().is_none() {
            println!("{}", tare_browser::REMEDY);
            return Ok(());
        }
        let mut browser = Browser::start(1280, 900)?;
        browser.open(link)?;
        browser.wait("window.tare && document.body.dataset.page === 'overview'")?;
        browser.eval("tare.idle()")?;
        browser.shot(Path::new(&picture))?;
        println!("{picture}");
        Ok(())
    });
    let _ = view.kill();
    let _ = view.wait();
    outcome
}

fn say(text: &str) {
    println!("\n# {text}");
}

struct Tare {
    binary: PathBuf,
}

impl Tare {
    fn show(&self, why: &str, arguments: &[&str]) -> Result<()> {
        shell::run(&mut self.announce(why, arguments))
    }

    /// Where a file of the demo goes: not into the reader's own directory.
    fn file(&self, name: &str) -> String {
        self.binary.with_file_name(name).display().to_string()
    }

    fn announce(&self, why: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments);
        say(why);
        println!("$ {}", shell::describe(&command));
        command
    }
}

/// Sends a signal by the shell's own `kill`, because a small system has no other.
fn signal(name: &str, to: &Child) -> Result<()> {
    shell::run(Command::new("sh").args(["-c", &format!("kill -{name} {}", to.id())]))
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
        command.arg("-cp").arg(classes).arg("shop.Main").args(SWITCHES);
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
                Ok(line) => {
                    println!("{line}");
                    if line.starts_with("ready") {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => bail!("the demo program was not ready in 60 s"),
                Err(RecvTimeoutError::Disconnected) => bail!("the demo program ended at once"),
            }
        }
    }

    /// Asks the program to end, as a service manager would, waits until it has said its last, and
    /// shows that.
    fn stop(&mut self) -> Result<()> {
        signal("TERM", &self.child)?;
        let limit = Instant::now() + Duration::from_secs(30);
        let mut last = Vec::new();
        while let Ok(line) =
            self.lines.recv_timeout(limit.saturating_duration_since(Instant::now()))
        {
            last.push(line);
        }
        for line in closing(&last) {
            println!("{line}");
        }
        if Instant::now() >= limit {
            bail!("the demo program did not end within 30 s");
        }
        self.child.wait().context("waiting for the demo program")?;
        Ok(())
    }
}

/// The program's last lines, with only the largest of its counts.
fn closing(lines: &[String]) -> Vec<String> {
    let count = |line: &str| -> Option<u64> {
        line.strip_prefix("count ")?.rsplit(' ').next()?.parse().ok()
    };
    let mut largest: Vec<_> = lines.iter().filter(|line| count(line).is_some()).collect();
    largest.sort_by_key(|line| std::cmp::Reverse(count(line)));
    let hidden = largest.len().saturating_sub(COUNTS_SHOWN);
    largest.truncate(COUNTS_SHOWN);

    let mut shown: Vec<String> =
        lines.iter().filter(|line| line.starts_with("counts-begin")).cloned().collect();
    shown.extend(largest.into_iter().cloned());
    if hidden > 0 {
        shown.push(format!("… and the counts of {hidden} more methods"));
    }
    shown
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_counts_are_shown_first() {
        let mut lines = vec!["progress orders=1".to_owned(), "counts-begin exact=yes".to_owned()];
        lines.extend((1..=10).map(|n| format!("count shop.A.m{n} {n}")));
        lines.push("counts-end".to_owned());
        let shown = closing(&lines);
        assert_eq!(shown[0], "counts-begin exact=yes");
        assert_eq!(shown[1], "count shop.A.m10 10");
        assert_eq!(shown[COUNTS_SHOWN], "count shop.A.m3 3");
        assert_eq!(shown[COUNTS_SHOWN + 1], "… and the counts of 2 more methods");
        assert_eq!(shown.len(), COUNTS_SHOWN + 2);
    }
}
