//! Starting a program with the agent inside, and meeting its JVMs.
//!
//! Each JVM that comes up with our agent reports at a socket of ours before its `main` runs and
//! holds that connection until it ends. The program's input, output and exit status stay its own.

use crate::library;
use crate::term::{DIM, WARN, plain};
use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tare_protocol::{AgentOptions, Decoder, MEETING_SOCKET, Response, Started, meeting_dir_name};

const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// When it is first said that the recording of a program that has ended is not complete yet, and how often then.
const SAY_AFTER: Duration = Duration::from_secs(2);
const SAY_EVERY: Duration = Duration::from_secs(10);

/// A program that has ended.
pub struct Launched {
    pub status: ExitStatus,
    /// How many JVMs reported.
    pub guests: usize,
    /// It was started without the agent, which was said already.
    bare: bool,
}

impl Launched {
    pub fn warn_of_no_guest(&self) {
        if self.bare {
            return;
        }
        errln!(
            "{WARN}tare: no JVM reported. Does the command start Java on this machine, as this \
             user, with {TOOL_OPTIONS} left in its environment? (A JVM that makes an archive of its \
             classes, as with -XX:ArchiveClassesAtExit, starts with no agent.){WARN:#}"
        );
    }
}

/// As a shell does it: a program ended by a signal gives 128 plus its number.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// What the JVMs of a program get besides the agent.
pub struct Settings {
    /// They prepare for an exact recording.
    pub exact: bool,
    /// They leave nothing to chance that can be had from elsewhere.
    pub fixed: bool,
    /// Flags before all others, so that the user's own win.
    pub flags: &'static [&'static str],
    /// What the user is told about them.
    pub word: Option<&'static str>,
}

/// Runs a command to its end. `attend` is called, on a thread of its own, for every JVM that
/// reports; the JVM's `main` waits, for a few seconds at most, until [`Guest::let_go`].
pub fn launch(
    command: &[OsString],
    settings: &Settings,
    attend: impl Fn(Guest) + Send + Sync + 'static,
) -> Result<Launched> {
    let [program, arguments @ ..] = command else { bail!("name a command after --") };
    let library = library::install()?;
    let meeting = Meeting::new()?;
    let options = AgentOptions {
        rendezvous: Some(meeting.path()?),
        exact: settings.exact,
        fixed: settings.fixed,
        ..AgentOptions::default()
    };
    let flag = agent_flag(&library, &options)?;

    let mut child = Command::new(program);
    let archiving = is_java(program).then(|| archiving(arguments)).flatten();
    if let Some(option) = &archiving {
        errln!(
            "{WARN}tare: started without the agent: with {option} the JVM makes an archive of \
             classes, where HotSpot wants no agent. Leave that option out, or attach to the \
             program once it runs{WARN:#}"
        );
        child.args(arguments);
    } else if is_java(program) {
        child.args(settings.flags).arg(&flag).args(arguments);
    } else {
        let existing = std::env::var_os(TOOL_OPTIONS);
        let options = tool_options(settings.flags, existing, &flag)?;
        child.args(arguments).env(TOOL_OPTIONS, options);
    }
    // Registered before the child exists: no signal may end us and leave it behind unseen.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let mut child =
        child.spawn().with_context(|| format!("cannot start {}", Path::new(program).display()))?;
    let pid = child.id();
    let ended = Arc::new(AtomicBool::new(false));
    let enough = Arc::new(AtomicBool::new(false));
    thread::spawn({
        let (ended, enough) = (Arc::clone(&ended), Arc::clone(&enough));
        move || {
            for signal in signals.forever() {
                if ended.load(Relaxed) {
                    enough.store(true, Relaxed);
                } else if signal != SIGINT {
                    // A terminal sends Ctrl-C to the child as well; the others come to us alone.
                    forward(pid, signal);
                }
            }
        }
    });
    let guests = meeting.receive(attend);
    let status = child.wait().context("cannot wait for the program")?;
    ended.store(true, Relaxed);
    guests.settle(&enough);
    let guests = guests.book().seen;
    Ok(Launched { status, guests, bare: archiving.is_some() })
}

fn forward(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let signal = rustix::process::Signal::from_named_raw(signal);
    if let (Some(pid), Some(signal)) = (pid, signal) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Only the launcher itself takes JVM flags first; `javac` and friends want `-J`.
pub fn is_java(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new("java"))
}

/// The option by which a `java` command makes an archive of classes, wherever it stands.
fn archiving(arguments: &[OsString]) -> Option<String> {
    /// Longer files of options there are none.
    const LARGEST: u64 = 1 << 20;
    let words: Vec<String> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    // A pipe (`java @<(…)`) can be read once only, and that is up to the program.
    let read = |name: &str| {
        let file = tare_symbols::open_regular(Path::new(name)).ok()?;
        let mut text = String::new();
        file.take(LARGEST).read_to_string(&mut text).ok()?;
        Some(text)
    };
    archiving_option(tare_attach::vm_options(&words, &read, &|name| std::env::var(name).ok()))
}

fn archiving_option(options: Vec<String>) -> Option<String> {
    const SWITCHES: [&str; 4] = [
        "AutoCreateSharedArchive",
        "RecordDynamicDumpInfo",
        "DumpSharedSpaces",
        "DynamicDumpSharedSpaces",
    ];
    let mut found: Vec<String> = Vec::new();
    for option in options {
        let flag = option.strip_prefix("-XX:").unwrap_or_default();
        let switch = |sign| flag.strip_prefix(sign).filter(|name| SWITCHES.contains(name));
        if let Some(off) = switch('-') {
            found.retain(|known| !known.ends_with(off));
        }
        let archives = option == "-Xshare:dump"
            || flag.starts_with("ArchiveClassesAtExit=")
            || flag == "AOTMode=create"
            || switch('+').is_some();
        if archives {
            found.push(option);
        }
    }
    found.pop()
}

fn agent_flag(library: &Path, options: &AgentOptions) -> Result<String> {
    let path = library.to_str().context("the path of the agent library is not UTF-8")?;
    if path.contains('=') {
        // The JVM ends the path at the first of these.
        bail!(
            "the agent library lies in {path}; a JVM cannot load it from a path with '='. \
             Set TARE_CACHE to another directory"
        );
    }
    Ok(format!("-agentpath:{path}={options}"))
}

/// What was there stays, and stays before the agent; our flags come first of all, because the JVM
/// takes the last of contradicting ones.
fn tool_options(flags: &[&str], existing: Option<OsString>, flag: &str) -> Result<OsString> {
    let quoted = if !flag.contains(char::is_whitespace) {
        flag.to_owned()
    } else if !flag.contains('"') {
        format!("\"{flag}\"")
    } else {
        bail!(
            "the path of the agent library has both spaces and quotes; \
             set TARE_CACHE to another directory"
        );
    };
    let existing = existing.filter(|value| !value.is_empty());
    let flags = flags.iter().map(OsString::from);
    let all: Vec<OsString> = flags.chain(existing).chain([quoted.into()]).collect();
    Ok(all.join(OsStr::new(" ")))
}

/// The socket where launched JVMs report, in a directory that only we can enter.
struct Meeting {
    dir: PathBuf,
    listener: Option<UnixListener>,
}

impl Meeting {
    fn new() -> Result<Self> {
        // Unique like a clock, and hard to guess by its nanoseconds.
        let salt = clock_nanos() as u32;
        let dir = Path::new("/tmp").join(meeting_dir_name(std::process::id(), salt));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .with_context(|| format!("cannot create {}", dir.display()))?;
        let mut meeting = Meeting { dir, listener: None };
        meeting.listener = Some(UnixListener::bind(meeting.dir.join(MEETING_SOCKET))?);
        Ok(meeting)
    }

    fn path(&self) -> Result<String> {
        let path = self.dir.join(MEETING_SOCKET);
        Ok(path.to_str().context("the temporary directory is not UTF-8")?.to_owned())
    }

    fn receive(&self, attend: impl Fn(Guest) + Send + Sync + 'static) -> Guests {
        let guests = Guests::default();
        if let Some(listener) = self.listener.as_ref().and_then(|l| l.try_clone().ok()) {
            let guests = guests.clone();
            let attend = Arc::new(attend);
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (guests, attend) = (guests.clone(), Arc::clone(&attend));
                    thread::spawn(move || {
                        if let Some(guest) = hear(stream) {
                            let pid = guest.pid;
                            guests.come(pid);
                            attend(guest);
                            guests.go(pid);
                        }
                    });
                }
            });
        }
        guests
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.dir.join(MEETING_SOCKET));
        let _ = std::fs::remove_dir(&self.dir);
    }
}

fn clock_nanos() -> u128 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos())
}

/// The JVMs that reported, and how many of them are still attended to.
#[derive(Clone, Default)]
struct Guests(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    seen: usize,
    /// The pids of those that are still attended to.
    present: Vec<u32>,
}

impl Guests {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn come(&self, pid: u32) {
        let mut book = self.book();
        book.seen += 1;
        book.present.push(pid);
    }

    fn go(&self, pid: u32) {
        self.book().present.retain(|present| *present != pid);
    }

    /// Waits for the attendants of JVMs that have ended, for as long as they take: until then the recording
    /// is not complete. A JVM that outlives the command (a build daemon) is not waited for. `enough` is
    /// a signal that comes meanwhile.
    fn settle(&self, enough: &AtomicBool) {
        let since = Instant::now();
        let mut say_at = SAY_AFTER;
        loop {
            let present = self.book().present.clone();
            if present.is_empty() {
                return;
            }
            let gone = present.iter().find(|pid| tare_attach::inspect(**pid).is_err());
            let Some(pid) = gone else {
                if since.elapsed() > GRACE {
                    return;
                }
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            if enough.load(Relaxed) {
                errln!(
                    "{WARN}tare: stopped before the recording of JVM {pid} was complete{WARN:#}"
                );
                return;
            }
            if since.elapsed() > say_at {
                errln!(
                    "{DIM}tare: the program has ended; completing the recording of JVM {pid} ({} s) …{DIM:#}",
                    since.elapsed().as_secs()
                );
                say_at = since.elapsed() + SAY_EVERY;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// How long a JVM that has not ended is waited for after its command has.
const GRACE: Duration = Duration::from_millis(500);

/// A JVM that has reported, and waits for us before it goes on.
pub struct Guest {
    pub pid: u32,
    pub started: Started,
    stream: UnixStream,
}

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.started.command.split_whitespace().next();
        let main = command.unwrap_or("unknown main class");
        let (java, main) = (plain(&self.started.java_version), plain(main));
        write!(f, "JVM {} (java {java}, {main})", self.pid)
    }
}

impl Guest {
    /// Lets the JVM's `main` run.
    pub fn let_go(mut self) -> Running {
        let _ = self.stream.write_all(&Response::Ok.to_message().encode());
        Running(self.stream)
    }
}

/// A launched JVM in its program.
pub struct Running(UnixStream);

impl Running {
    /// Returns when the JVM has ended or the agent has left it: nothing more is said on this
    /// connection.
    pub fn wait(mut self) {
        let _ = std::io::copy(&mut self.0, &mut std::io::sink());
    }
}

fn hear(mut stream: UnixStream) -> Option<Guest> {
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
    let started = Started::from_message(&message).ok()?;
    // The JVM may count pids differently (a container); the kernel tells its pid here.
    let pid = rustix::net::sockopt::socket_peercred(stream.as_fd())
        .map_or(started.pid, |c| c.pid.as_raw_nonzero().get().cast_unsigned());
    Some(Guest { pid, started, stream })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_tool_options_are_kept() {
        let check = |existing: Option<&str>, flag: &str, expected: &str| {
            let value = tool_options(&[], existing.map(OsString::from), flag).unwrap();
            assert_eq!(value, OsString::from(expected));
        };
        check(None, "-agentpath:/a=b", "-agentpath:/a=b");
        check(Some(""), "-agentpath:/a=b", "-agentpath:/a=b");
        check(Some("-Xmx1g"), "-agentpath:/a=b", "-Xmx1g -agentpath:/a=b");
        check(None, "-agentpath:/a b=c", "\"-agentpath:/a b=c\"");
        assert!(tool_options(&[], None, "-agentpath:/a \"b=c").is_err());
        let flags = tool_options(&["-XX:+A", "-XX:+B"], Some("-XX:-B".into()), "-x").unwrap();
        assert_eq!(flags, "-XX:+A -XX:+B -XX:-B -x", "the user's flags come after ours");
    }

    #[test]
    fn a_recording_of_a_jvm_that_has_ended_is_waited_for() {
        let guests = Guests::default();
        // No process has this number: such a JVM has ended.
        let gone = i32::MAX.cast_unsigned();
        guests.come(gone);
        let done = Arc::new(AtomicBool::new(false));
        let attendant = thread::spawn({
            let (guests, done) = (guests.clone(), Arc::clone(&done));
            move || {
                thread::sleep(3 * GRACE);
                done.store(true, Relaxed);
                guests.go(gone);
            }
        });
        guests.settle(&AtomicBool::new(false));
        assert!(done.load(Relaxed), "the command would have returned before the file was complete");
        attendant.join().unwrap();
        // A second Ctrl-C is heard, and a JVM that goes on is not waited for.
        guests.come(gone);
        guests.settle(&AtomicBool::new(true));
        guests.go(gone);
    }

    #[test]
    fn options_that_make_archives_are_found() {
        let found = |line: &str| {
            archiving_option(line.split(' ').map(str::to_owned).collect()).unwrap_or_default()
        };
        assert_eq!(
            found("-Xmx1g -XX:ArchiveClassesAtExit=a.jsa -Xrs"),
            "-XX:ArchiveClassesAtExit=a.jsa"
        );
        assert_eq!(found("-Xshare:dump"), "-Xshare:dump");
        assert_eq!(found("-XX:+AutoCreateSharedArchive"), "-XX:+AutoCreateSharedArchive");
        assert_eq!(found("-XX:+AutoCreateSharedArchive -XX:-AutoCreateSharedArchive"), "");
        assert_eq!(found("-Xshare:on -XX:SharedArchiveFile=a.jsa -XX:AOTMode=record"), "");
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
