//! Starting a program with the agent inside, and meeting its JVMs.
//!
//! Each JVM that comes up with our agent reports at a socket of ours before its `main` runs and
//! holds that connection until it ends. The program's input, output and exit status stay its own.

use crate::completion::Completion;
use crate::error::{Context, Result, refuse};
use crate::library;
use crate::observer::Note;
use crate::words::plain;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
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
    /// Whether a signal came before all that was recorded of them was complete.
    pub interrupted: bool,
    /// It was started without the agent, which was said already.
    bare: bool,
}

impl Launched {
    /// What to tell whoever waited for JVMs and met none.
    pub fn nobody_came(&self) -> Option<Note> {
        let why = format!(
            "no JVM reported. Does the command start Java on this machine, as this \
             user, with {TOOL_OPTIONS} left in its environment? (A JVM that makes an archive of its \
             classes, as with -XX:ArchiveClassesAtExit, starts with no agent.)"
        );
        (self.guests == 0 && !self.bare).then_some(Note::Warning(why))
    }
}

/// As a shell does it: a program ended by a signal gives 128 plus its number.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// What the JVMs of a program get besides the agent.
#[derive(Clone, Copy, Debug, Default)]
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
/// reports; the JVM's `main` waits, for a few seconds at most, until [`Guest::let_go`]. `notes` hears
/// what the user should know.
pub fn launch(
    command: &[OsString],
    settings: &Settings,
    notes: &dyn Fn(Note),
    attend: impl Fn(Guest) + Send + Sync + 'static,
) -> Result<Launched> {
    let [program, arguments @ ..] = command else { refuse!("name a command after --") };
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
        notes(Note::Warning(format!(
            "started without the agent: with {option} the JVM makes an archive of \
             classes, where HotSpot wants no agent. Leave that option out, or attach to the \
             program once it runs"
        )));
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
    let interrupted = !guests.settle(&enough, &mut Here::new(notes));
    let guests = guests.book().seen;
    Ok(Launched { status, guests, interrupted, bare: archiving.is_some() })
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
        refuse!(
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
        refuse!(
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
                        // Not in the condition, which would hold the book until the end.
                        let leave = Arc::clone(&guests.book().leave);
                        if let Some(guest) = hear(stream, leave) {
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
    /// Set when the command has ended and those that go on are to be left.
    leave: Arc<AtomicBool>,
}

/// What is around somebody who waits.
trait Around {
    /// Since the command has ended.
    fn elapsed(&self) -> Duration;
    fn pause(&mut self);
    fn has_ended(&self, pid: u32) -> bool;
    fn say(&mut self, text: &str);
    fn warn(&mut self, text: &str);
    /// How far the recordings are.
    fn headway(&self) -> String;
}

/// The true surroundings.
struct Here<'a> {
    notes: &'a dyn Fn(Note),
    since: Instant,
    then: Completion,
}

impl<'a> Here<'a> {
    fn new(notes: &'a dyn Fn(Note)) -> Self {
        Here { notes, since: Instant::now(), then: Completion::now() }
    }
}

impl Around for Here<'_> {
    fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    fn pause(&mut self) {
        thread::sleep(Duration::from_millis(10));
    }

    fn has_ended(&self, pid: u32) -> bool {
        tare_attach::inspect(pid).is_err()
    }

    fn say(&mut self, text: &str) {
        (self.notes)(Note::Aside(text.to_owned()));
    }

    fn warn(&mut self, text: &str) {
        (self.notes)(Note::Warning(text.to_owned()));
    }

    fn headway(&self) -> String {
        Completion::now().since(self.then)
    }
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

    /// Waits for the attendants, for as long as they take: until then the recordings are not complete. A JVM
    /// that outlives the command (a build daemon) is left after a moment, which ends its recording.
    /// False if `enough`, a signal that comes meanwhile, ended it before.
    fn settle(&self, enough: &AtomicBool, around: &mut impl Around) -> bool {
        let mut say_at = SAY_AFTER;
        loop {
            let (present, leave) = {
                let book = self.book();
                (book.present.clone(), Arc::clone(&book.leave))
            };
            let Some(&first) = present.first() else { return true };
            let ended = present.iter().find(|pid| around.has_ended(**pid)).copied();
            if enough.load(Relaxed) {
                around.warn(&format!(
                    "stopped before the recording of JVM {} was complete",
                    ended.unwrap_or(first)
                ));
                return false;
            }
            let passed = around.elapsed();
            let lives = present.iter().find(|pid| !around.has_ended(**pid));
            if let Some(pid) = lives.filter(|_| passed > GRACE)
                && !leave.swap(true, Relaxed)
            {
                around.say(&format!("JVM {pid} outlives its command, and is left alone now"));
            }
            if passed > say_at {
                around.say(&format!(
                    "the program has ended; completing the recording of JVM {} ({} s): {} …",
                    ended.unwrap_or(first),
                    passed.as_secs(),
                    around.headway(),
                ));
                say_at = passed + SAY_EVERY;
            }
            around.pause();
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
    leave: Arc<AtomicBool>,
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
        Running { stream: self.stream, leave: self.leave }
    }
}

/// A launched JVM in its program.
pub struct Running {
    stream: UnixStream,
    leave: Arc<AtomicBool>,
}

impl Running {
    /// What is set when the command has ended and this JVM has not.
    pub fn leave(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.leave)
    }

    /// Whether the command has ended and this JVM has not.
    pub fn is_left(&self) -> bool {
        self.leave.load(Relaxed)
    }

    /// Returns when the JVM has ended or the agent has left it: nothing more is said on this
    /// connection. Or when it is left.
    pub fn wait(&mut self) {
        const STEP: Duration = Duration::from_millis(50);
        let mut portion = [0; 256];
        let _ = self.stream.set_read_timeout(Some(STEP));
        while !self.is_left() {
            match self.stream.read(&mut portion) {
                Ok(0) => return,
                Ok(_) => {}
                Err(e) if matches!(e.kind(), WouldBlock | TimedOut | Interrupted) => {}
                Err(_) => return,
            }
        }
    }
}

fn hear(mut stream: UnixStream, leave: Arc<AtomicBool>) -> Option<Guest> {
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
    Some(Guest { pid, started, stream, leave })
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

    /// Each pause is ten seconds long. What happens at which of them is told.
    struct Fake<'a> {
        pauses: u64,
        ended: bool,
        at: &'a dyn Fn(u64),
        said: Vec<String>,
    }

    impl<'a> Fake<'a> {
        fn new(ended: bool, at: &'a dyn Fn(u64)) -> Self {
            Fake { pauses: 0, ended, at, said: Vec::new() }
        }
    }

    impl Around for Fake<'_> {
        fn elapsed(&self) -> Duration {
            Duration::from_secs(10 * self.pauses)
        }

        fn pause(&mut self) {
            self.pauses += 1;
            assert!(self.pauses < 10_000, "waits for ever");
            (self.at)(self.pauses);
        }

        fn has_ended(&self, _: u32) -> bool {
            self.ended
        }

        fn say(&mut self, text: &str) {
            self.said.push(text.to_owned());
        }

        fn warn(&mut self, text: &str) {
            self.say(text);
        }

        fn headway(&self) -> String {
            format!("{} MiB written", self.pauses)
        }
    }

    #[test]
    fn a_recording_of_a_jvm_that_has_ended_is_waited_for() {
        let guests = Guests::default();
        guests.come(7);
        let at = |pause| {
            if pause == 360 {
                guests.go(7);
            }
        };
        let mut around = Fake::new(true, &at);
        assert!(guests.settle(&AtomicBool::new(false), &mut around));
        assert_eq!(around.pauses, 360, "an hour is what it takes");
        let Fake { said, .. } = around;
        assert!(
            said.len() > 100 && said.iter().all(|line| line.contains("MiB written")),
            "{said:?}"
        );
        assert_ne!(said[10], said[11], "it says how far it is");
        assert!(!guests.book().leave.load(Relaxed), "it has ended by itself");
    }

    #[test]
    fn a_signal_ends_the_waiting_and_what_is_not_complete_is_told() {
        let guests = Guests::default();
        guests.come(7);
        let enough = AtomicBool::new(false);
        for ended in [true, false] {
            enough.store(false, Relaxed);
            let at = |pause| enough.store(pause == 5, Relaxed);
            let mut around = Fake::new(ended, &at);
            assert!(!guests.settle(&enough, &mut around));
            let last = around.said.last().map_or("", String::as_str);
            assert_eq!(last, "stopped before the recording of JVM 7 was complete");
        }
    }

    #[test]
    fn a_jvm_that_outlives_its_command_is_left_and_its_recording_completed() {
        let guests = Guests::default();
        guests.come(7);
        // Whoever attends to it sees that it is to be left, and takes two minutes to complete.
        let seen = AtomicBool::new(false);
        let at = |pause| {
            seen.fetch_or(guests.book().leave.load(Relaxed), Relaxed);
            if pause == 12 {
                guests.go(7);
            }
        };
        let mut around = Fake::new(false, &at);
        assert!(guests.settle(&AtomicBool::new(false), &mut around));
        assert!(seen.load(Relaxed), "nobody was told to leave");
        assert_eq!(around.pauses, 12);
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
