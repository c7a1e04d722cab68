//! One heap: pauses of its JVM, and what reading its dump takes.

use super::peers::{self, Peers};
use crate::ready::Ready;
use crate::stats::median;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

/// How often a process is asked for its memory.
const LOOK: Duration = Duration::from_millis(10);

/// What was measured of one size. Times in milliseconds unless said, sizes in bytes.
pub struct Point {
    pub objects: f64,
    /// What the JVM's process held just before.
    pub resident: f64,
    pub pause: f64,
    pub first_pause: f64,
    pub count_pause: f64,
    pub dump_pause: f64,
    /// Seconds.
    pub copy: f64,
    pub dump: f64,
    pub ours: Reading,
    pub again: Reading,
    /// By [`peers::ALL`].
    pub peers: [Option<Reading>; peers::ALL.len()],
}

/// A command that read a dump.
#[derive(Clone, Copy)]
pub struct Reading {
    pub seconds: f64,
    /// The most that it had, in bytes.
    pub memory: f64,
}

pub fn point(
    ready: &Ready,
    jdk: &Jdk,
    entries: u32,
    snapshots: usize,
    peers: &Peers,
) -> Result<Point> {
    let dump = ready.work.join("heap.hprof");
    let snapshot = ready.work.join("heap.tareheap");
    let files = Files([&dump, &snapshot]);
    files.remove();
    let jvm = Jvm::start(ready, jdk, entries)?;
    let resident = jvm.resident()?;
    let mut pauses = Vec::new();
    let (mut objects, mut copy) = (0.0, 0.0);
    for _ in 0..=snapshots {
        let _ = fs::remove_file(&snapshot);
        let words = ["heap", &jvm.pid(), "--no-index", "--json", "-o"];
        let mut command = Command::new(&ready.tare);
        let output = command.args(words).arg(&snapshot).stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("no snapshot: {}", said.trim());
        }
        pauses.push(told(&said, "stood for ")?);
        copy = told(&said, "lived for ")?;
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let levels = json["reachable"].as_object().context("no number of objects")?;
        objects = levels.values().filter_map(|level| level["objects"].as_f64()).sum();
    }
    let count = Command::new(&ready.tare)
        .args(["heap", &jvm.pid(), "histo"])
        .stdin(Stdio::null())
        .output()?;
    let count_pause = told(&String::from_utf8_lossy(&count.stderr), "stood for ")?;
    let before = jvm.safepoint_time(&ready.javac)?;
    jvm.jcmd(&ready.javac, &["GC.heap_dump", "-all", &dump.display().to_string()])?;
    let dump_pause = jvm.safepoint_time(&ready.javac)? - before;
    jvm.end()?;
    let _ = fs::remove_file(&snapshot);
    let size = fs::metadata(&dump).context("HotSpot wrote no dump")?.len() as f64;
    let ours = |ready: &Ready| read(Command::new(&ready.tare).arg("heap").arg(&dump));
    // All find the file in the system's memory.
    let _ = std::io::copy(&mut File::open(&dump)?, &mut std::io::sink());
    let others = peers::ALL.map(|peer| {
        let command = peers.command(peer, &dump, &ready.work);
        let read = command.and_then(|mut command| read(&mut command));
        peers::tidy(&dump);
        read.inspect_err(|error| println!("NOT COVERED: {}: {error:#}", peer.name())).ok()
    });
    let (first, again) = (ours(ready)?, ours(ready)?);
    println!(
        "{objects:.0} objects, {:.2} GB resident: pauses {pauses:?} ms, count {count_pause:.0}, \
         dump {dump_pause:.0}; read in {:.1} s and {:.2} GB, again in {:.2} s",
        resident / 1e9,
        first.seconds,
        first.memory / 1e9,
        again.seconds
    );
    let pause = median(&pauses[1..]).context("no snapshot")?;
    Ok(Point {
        objects,
        resident,
        pause,
        first_pause: pauses[0],
        count_pause,
        dump_pause,
        copy: copy / 1e3,
        dump: size,
        ours: first,
        again,
        peers: others,
    })
}

/// Large files, which are gone at the end, and with them what was written beside them.
struct Files<'a>([&'a Path; 2]);

impl Files<'_> {
    fn remove(&self) {
        for file in self.0 {
            let _ = fs::remove_file(file);
            let _ = fs::remove_file(format!("{}.tare-index", file.display()));
            peers::tidy(file);
        }
    }
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The number after these words, in milliseconds.
fn told(text: &str, words: &str) -> Result<f64> {
    let after = text.split(words).nth(1).and_then(|rest| rest.split(' ').next());
    let number = after.and_then(|number| number.parse().ok());
    number.with_context(|| format!("`{words}` is not told: {text}"))
}

/// Runs a command and looks at its memory.
fn read(command: &mut Command) -> Result<Reading> {
    let line = shell::describe(command);
    let begun = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut memory = 0.0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        memory = fs::read_to_string(&status_file)
            .ok()
            .and_then(|text| kilobytes(&text, "VmHWM:"))
            .unwrap_or(memory);
        thread::sleep(LOOK);
    };
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(Reading { seconds: begun.elapsed().as_secs_f64(), memory })
}

/// A figure of the kernel's, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches(" kB").parse::<f64>().ok().map(|number| number * 1024.0)
}

/// A JVM that holds a heap.
struct Jvm(Child);

impl Jvm {
    fn start(ready: &Ready, jdk: &Jdk, entries: u32) -> Result<Jvm> {
        let mut java = Command::new(jdk.home.join("bin/java"));
        java.args(["-Xmx8g", "-XX:+UseG1GC"]).arg(ready.temporary()).arg("-cp").arg(&ready.classes);
        java.args(["bench.HeapFill", &entries.to_string()]);
        let log = File::create(ready.work.join("stderr.log"))?;
        let mut child = java
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("java")?;
        let output = child.stdout.take().context("the program has no output")?;
        let jvm = Jvm(child);
        let mut lines = BufReader::new(output).lines();
        match lines.next() {
            Some(Ok(line)) if line.starts_with("ready") => Ok(jvm),
            other => bail!("the program does not begin: {other:?}"),
        }
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn resident(&self) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        kilobytes(&text, "VmRSS:").context("the kernel does not tell what is resident")
    }

    fn jcmd(&self, jdk: &Jdk, words: &[&str]) -> Result<String> {
        shell::output(Command::new(jdk.home.join("bin/jcmd")).arg(self.pid()).args(words))
    }

    /// In milliseconds, since the JVM's start.
    fn safepoint_time(&self, jdk: &Jdk) -> Result<f64> {
        let told = self.jcmd(jdk, &["PerfCounter.print"])?;
        let line = told.lines().find_map(|line| line.strip_prefix("sun.rt.safepointTime="));
        let ticks: f64 = line.context("the JVM counts no pauses")?.trim().parse()?;
        Ok(ticks / 1e6)
    }

    fn end(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait()?;
        if !status.success() {
            bail!("the program ended badly ({status})");
        }
        Ok(())
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_after_their_words() {
        let text = "tare: JVM 7 stood for 31.4 ms; its copy lived for 2100.0 ms\n";
        assert_eq!(told(text, "stood for ").unwrap(), 31.4);
        assert_eq!(told(text, "lived for ").unwrap(), 2100.0);
        assert!(told(text, "ran for ").is_err());
    }

    #[test]
    fn the_most_memory_of_a_command_is_seen() {
        let reading = read(Command::new("sleep").arg("0.2")).unwrap();
        assert!(reading.memory > 0.0 && reading.seconds >= 0.2);
        assert!(read(&mut Command::new("false")).is_err());
    }
}
