//! Starting a program with the agent inside, and meeting its JVMs.
//!
//! Each JVM that comes up with our agent reports at a socket of ours before its `main` runs and
//! holds that connection until it ends. The program's input, output and exit status stay its own.

mod command_line;
mod guests;
mod meeting;

pub use command_line::is_java;
pub use meeting::{Guest, Running};

use crate::error::{Context, Result, refuse};
use crate::library;
use crate::observer::Note;
use command_line::{TOOL_OPTIONS, agent_flag, archiving, tool_options};
use guests::Here;
use meeting::Meeting;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use tare_protocol::AgentOptions;

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
            "no JVM was started with the agent. Does the command start Java on this machine, as this \
             user, and keep {TOOL_OPTIONS} in its environment? (A JVM that dumps a class data archive, \
             as with -XX:ArchiveClassesAtExit, starts without the agent.)"
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
    /// They wait longer than usual until they are recorded.
    pub held: bool,
    /// Flags before all others, so that the user's own win.
    pub flags: &'static [&'static str],
    /// What the user is told about them.
    pub word: Option<&'static str>,
}

/// Runs a command to its end. `attend` is called, on a thread of its own, for every JVM that
/// reports; the JVM's `main` waits, for a few seconds at most, until [`Guest::let_go`]. `notes`
/// hears what the user should know.
pub fn launch(
    command: &[OsString],
    settings: &Settings,
    notes: &dyn Fn(Note),
    attend: impl Fn(Guest) + Send + Sync + 'static,
) -> Result<Launched> {
    let [program, arguments @ ..] = command else {
        refuse!("no command after `--`: name the program to start, as in `-- java -jar app.jar`")
    };
    let library = library::install()?;
    let meeting = Meeting::new()?;
    let options = AgentOptions {
        rendezvous: Some(meeting.path()?),
        exact: settings.exact,
        fixed: settings.fixed,
        held: settings.held,
        ..AgentOptions::default()
    };
    let flag = agent_flag(&library, &options)?;

    let mut child = Command::new(program);
    let archiving = is_java(program).then(|| archiving(arguments)).flatten();
    if let Some(option) = &archiving {
        notes(Note::Warning(format!(
            "started without the agent: with {option} the JVM dumps a class data archive, \
             which HotSpot does not do safely with an agent. Leave that option out, or attach \
             to the program once it runs"
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
