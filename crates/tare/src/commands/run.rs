//! `tare run -- COMMAND`: starts a program with the agent inside, and tells its JVMs apart.
//!
//! Each JVM that comes up with our agent reports at a socket of ours before its `main` runs and
//! holds that connection until it ends. The program's input, output and exit status stay its own.

use crate::library;
use crate::term::{self, DIM, WARN};
use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tare_protocol::{AgentOptions, Decoder, Response, Started};

const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

pub fn run(command: &[OsString], quiet: bool) -> ExitCode {
    match launch(command, quiet) {
        Ok(status) => exit_code(status),
        Err(e) => crate::fail(&e),
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    // As a shell does it: a program ended by a signal gives 128 plus its number.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn launch(command: &[OsString], quiet: bool) -> Result<ExitStatus> {
    let [program, arguments @ ..] = command else { bail!("name a command after --") };
    let library = library::install()?;
    let meeting = Meeting::new()?;
    let options = AgentOptions { rendezvous: Some(meeting.path()?), exact: false };
    let flag = agent_flag(&library, &options)?;

    let mut child = Command::new(program);
    if is_java(program) {
        child.arg(&flag).args(arguments);
    } else {
        child
            .args(arguments)
            .env(TOOL_OPTIONS, tool_options(std::env::var_os(TOOL_OPTIONS), &flag)?);
    }
    // Registered before the child exists: no signal may end us and leave it behind unseen.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let mut child =
        child.spawn().with_context(|| format!("cannot start {}", Path::new(program).display()))?;
    let pid = child.id();
    thread::spawn(move || {
        for signal in signals.forever() {
            // A terminal sends Ctrl-C to the child as well; the others come to us alone.
            if signal != SIGINT {
                forward(pid, signal);
            }
        }
    });
    let guests = meeting.receive(quiet);
    let status = child.wait().context("cannot wait for the program")?;
    // A JVM that ends closes its connection with its process; give that moment to the report.
    guests.settle(Duration::from_millis(500));
    if guests.seen() == 0 && !quiet {
        anstream::eprintln!(
            "{WARN}tare: no JVM reported. Does the command start Java on this machine, as this \
             user, with {TOOL_OPTIONS} left in its environment?{WARN:#}"
        );
    }
    Ok(status)
}

fn forward(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let signal = rustix::process::Signal::from_named_raw(signal);
    if let (Some(pid), Some(signal)) = (pid, signal) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Only the launcher itself takes JVM flags first; `javac` and friends want `-J`.
fn is_java(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new("java"))
}

fn agent_flag(library: &Path, options: &AgentOptions) -> Result<String> {
    let path = library.to_str().context("the path of the agent library is not UTF-8")?;
    if path.contains('=') {
        // The JVM ends the path at the first of these.
        bail!(
            "the agent library lies in {path}; a JVM cannot load it from a path with '='. Set TARE_CACHE to another directory"
        );
    }
    Ok(format!("-agentpath:{path}={options}"))
}

/// What was there stays, and stays first: the JVM takes the last of contradicting flags.
fn tool_options(existing: Option<OsString>, flag: &str) -> Result<OsString> {
    let quoted = if !flag.contains(char::is_whitespace) {
        flag.to_owned()
    } else if !flag.contains('"') {
        format!("\"{flag}\"")
    } else {
        bail!(
            "the path of the agent library has both spaces and quotes; set TARE_CACHE to another directory"
        );
    };
    let mut value = existing.unwrap_or_default();
    if !value.is_empty() {
        value.push(" ");
    }
    value.push(quoted);
    Ok(value)
}

/// The socket where launched JVMs report, in a directory that only we can enter.
struct Meeting {
    dir: PathBuf,
    listener: Option<UnixListener>,
}

impl Meeting {
    fn new() -> Result<Self> {
        let name = format!(".tare-run-{}-{:x}", std::process::id(), clock_nanos());
        let dir = Path::new("/tmp").join(name);
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .with_context(|| format!("cannot create {}", dir.display()))?;
        let mut meeting = Meeting { dir, listener: None };
        meeting.listener = Some(UnixListener::bind(meeting.dir.join("meet"))?);
        Ok(meeting)
    }

    fn path(&self) -> Result<String> {
        let path = self.dir.join("meet");
        Ok(path.to_str().context("the temporary directory is not UTF-8")?.to_owned())
    }

    fn receive(&self, quiet: bool) -> Guests {
        let guests = Guests::default();
        if let Some(listener) = self.listener.as_ref().and_then(|l| l.try_clone().ok()) {
            let guests = guests.clone();
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let guests = guests.clone();
                    thread::spawn(move || guests.attend(stream, quiet));
                }
            });
        }
        guests
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.dir.join("meet"));
        let _ = std::fs::remove_dir(&self.dir);
    }
}

fn clock_nanos() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos())
}

/// The JVMs that reported, and how many of them still run.
#[derive(Clone, Default)]
struct Guests {
    seen: Arc<AtomicUsize>,
    present: Arc<Mutex<usize>>,
}

impl Guests {
    fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    fn present(&self) -> std::sync::MutexGuard<'_, usize> {
        self.present.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn settle(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while *self.present() > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stays with one JVM from its report to its end.
    fn attend(&self, mut stream: UnixStream, quiet: bool) {
        let Some(started) = hear(&mut stream) else { return };
        // The JVM may count pids differently (a container); the kernel tells its pid here.
        let pid = rustix::net::sockopt::socket_peercred(stream.as_fd())
            .map_or(started.pid, |c| c.pid.as_raw_nonzero().get().cast_unsigned());
        self.seen.fetch_add(1, Ordering::Relaxed);
        *self.present() += 1;
        let began = Instant::now();
        let what =
            format!("JVM {pid} (java {}, {})", started.java_version, short(&started.command));
        if !quiet {
            anstream::eprintln!("{DIM}tare: {what} is up with the agent inside{DIM:#}");
        }
        let _ = stream.write_all(&Response::Ok.to_message().encode());
        // Nothing more is said on this connection; it ends with the JVM, or when the agent leaves.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        if !quiet {
            let ended = tare_attach::inspect(pid).is_err();
            let how = if ended { "ended" } else { "goes on without the agent," };
            let after = term::time(began.elapsed());
            anstream::eprintln!("{DIM}tare: {what} {how} after {after}{DIM:#}");
        }
        *self.present() -= 1;
    }
}

fn hear(stream: &mut UnixStream) -> Option<Started> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut decoder = Decoder::default();
    let mut portion = [0; 4096];
    let message = loop {
        match stream.read(&mut portion) {
            Ok(n) if n > 0 => decoder.push(&portion[..n]),
            _ => return None,
        }
        if let Some(message) = decoder.next_message().ok()? {
            break message;
        }
    };
    stream.set_read_timeout(None).ok()?;
    Started::from_message(&message).ok()
}

/// The first word of a command is its main class or jar.
fn short(command: &str) -> &str {
    command.split_whitespace().next().unwrap_or("unknown main class")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_tool_options_are_kept() {
        let check = |existing: Option<&str>, flag: &str, expected: &str| {
            let value = tool_options(existing.map(OsString::from), flag).unwrap();
            assert_eq!(value, OsString::from(expected));
        };
        check(None, "-agentpath:/a=b", "-agentpath:/a=b");
        check(Some(""), "-agentpath:/a=b", "-agentpath:/a=b");
        check(Some("-Xmx1g"), "-agentpath:/a=b", "-Xmx1g -agentpath:/a=b");
        check(None, "-agentpath:/a b=c", "\"-agentpath:/a b=c\"");
        assert!(tool_options(None, "-agentpath:/a \"b=c").is_err());
    }

    #[test]
    fn only_the_launcher_takes_the_flag_itself() {
        for yes in ["java", "/usr/lib/jvm/x/bin/java", "./java"] {
            assert!(is_java(OsStr::new(yes)), "{yes}");
        }
        for no in ["javac", "gradlew", "/opt/java/run.sh", "mvn"] {
            assert!(!is_java(OsStr::new(no)), "{no}");
        }
    }
}
