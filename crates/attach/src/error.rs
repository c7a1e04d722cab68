//! Everything that can go wrong, each with its cause and its remedy in plain words.
//!
//! Texts are for the engineer on call: what happened, then what to do. Mapping to exit codes is
//! left to the command line, which gets a [`Kind`].

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What was being done, for progress and for time-outs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The JVM is too young to be asked; waiting until it can answer.
    AwaitingStart,
    /// The process is stopped, by SIGSTOP or by a debugger; waiting until it goes on.
    AwaitingContinue,
    /// The JVM was asked, by its attach file and SIGQUIT, to open its attach socket.
    AwaitingSocket,
    /// The attach socket is there; waiting until the JVM takes the connection.
    Connecting,
    /// Another attach to the same JVM is under way; waiting until it is done.
    AwaitingOther,
    /// The agent library was put where the JVM can read it.
    LibraryPlaced(PathBuf),
    /// The command was sent; waiting for the JVM's answer.
    AwaitingReply,
    /// The file systems of the JVM's directories are asked.
    AwaitingFiles,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AwaitingStart => f.write_str("waiting for the JVM to finish starting"),
            Self::AwaitingContinue => f.write_str("waiting for the stopped process to go on"),
            Self::AwaitingSocket => f.write_str("waiting for the JVM to open its attach socket"),
            Self::Connecting => f.write_str("waiting for the JVM to take the connection"),
            Self::AwaitingOther => f.write_str("waiting for another attach to the same JVM"),
            Self::LibraryPlaced(path) => write!(f, "placed the agent at {}", path.display()),
            Self::AwaitingReply => f.write_str("waiting for the JVM's answer"),
            Self::AwaitingFiles => f.write_str("waiting for the file systems of its directories"),
        }
    }
}

/// A JVM in a list of candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub pid: u32,
    pub name: String,
}

/// The sort of an [`Error`], for exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No such process, no JVM, or not one that was named clearly.
    NotFound,
    /// Another user is needed.
    Permission,
    /// This JVM cannot be attached to, by its kind or by its settings.
    Unsupported,
    /// The JVM did not answer in time.
    TimedOut,
    /// The JVM went away meanwhile.
    Gone,
    /// The surroundings are in the way: file systems, libraries, sockets.
    Environment,
    /// The JVM or the agent answered with a failure.
    Failed,
}

/// Why a JVM was not found, not reached, or did not load the agent.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    NoSuchProcess { pid: u32 },
    NotAJvm { pid: u32, comm: String },
    NoMatch { who: String, running: usize },
    Ambiguous { who: String, candidates: Vec<Candidate> },
    NotPermitted { pid: u32, user: String, what: &'static str },
    OpenJ9 { pid: u32 },
    Musl { pid: u32 },
    Gone { pid: u32 },
    AttachDisabled { pid: u32 },
    DynamicLoadingDisabled { pid: u32 },
    SignalsReduced { pid: u32 },
    UnmappedUser { pid: u32 },
    SocketTaken { pid: u32, path: PathBuf },
    AttachFileBlocked { pid: u32, reason: String },
    PeerRefused { pid: u32 },
    TimedOut { pid: u32, after: Duration, step: Step, state: Option<char> },
    TooLong { what: &'static str, length: usize },
    LibraryUnreadable { path: PathBuf, error: std::io::Error },
    NoPlaceForLibrary { pid: u32, tried: Vec<String> },
    NoExec { pid: u32, text: String },
    OldGlibc { pid: u32, needs: String, has: Option<String> },
    LibraryRejected { pid: u32, text: String },
    AgentFailed { pid: u32, code: i32 },
    CommandFailed { pid: u32, command: String, text: String },
    BadReply { pid: u32, text: String },
    ForeignProc,
    Io { doing: String, error: std::io::Error },
}

impl Error {
    /// The sort of this error.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::NoSuchProcess { .. }
            | Self::NotAJvm { .. }
            | Self::NoMatch { .. }
            | Self::Ambiguous { .. } => Kind::NotFound,
            Self::NotPermitted { .. } | Self::PeerRefused { .. } => Kind::Permission,
            Self::OpenJ9 { .. }
            | Self::Musl { .. }
            | Self::AttachDisabled { .. }
            | Self::DynamicLoadingDisabled { .. }
            | Self::SignalsReduced { .. }
            | Self::UnmappedUser { .. } => Kind::Unsupported,
            Self::TimedOut { .. } => Kind::TimedOut,
            Self::Gone { .. } => Kind::Gone,
            Self::SocketTaken { .. }
            | Self::AttachFileBlocked { .. }
            | Self::TooLong { .. }
            | Self::LibraryUnreadable { .. }
            | Self::NoPlaceForLibrary { .. }
            | Self::NoExec { .. }
            | Self::OldGlibc { .. }
            | Self::ForeignProc
            | Self::Io { .. } => Kind::Environment,
            Self::LibraryRejected { .. }
            | Self::AgentFailed { .. }
            | Self::CommandFailed { .. }
            | Self::BadReply { .. } => Kind::Failed,
        }
    }

    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Io { doing, error }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::LibraryUnreadable { error, .. } | Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchProcess { pid } => {
                write!(f, "There is no process {pid}. `tare ps` lists the JVMs that run here.")
            }
            Self::NotAJvm { pid, comm } => write!(
                f,
                "Process {pid} ({}) is not a JVM: it has no libjvm.so loaded. `tare ps` lists \
                 the JVMs that run here.",
                comm.escape_debug()
            ),
            Self::NoMatch { who, running: 0 } => {
                write!(f, "No JVM matches \"{who}\": none is running that we can see.")
            }
            Self::NoMatch { who, running } => write!(
                f,
                "None of the {running} JVMs that run here has \"{who}\" in its main class or jar. \
                 `tare ps` lists them."
            ),
            Self::Ambiguous { who, candidates } => {
                write!(f, "\"{who}\" matches {} JVMs; name one by its pid:", candidates.len())?;
                let each =
                    candidates.iter().map(|c| format!(" {} ({})", c.pid, c.name.escape_debug()));
                write!(f, "{}.", each.collect::<Vec<_>>().join(","))
            }
            Self::NotPermitted { pid, user, what } if rustix::process::geteuid().is_root() => {
                write!(
                    f,
                    "JVM {pid} belongs to {user}, and we may not {what}, though we are root: \
                 capabilities are missing (CAP_SYS_PTRACE, CAP_SETUID, CAP_SETGID, CAP_KILL), or a \
                 security module forbids it. Run as {user}, or grant them."
                )
            }
            Self::NotPermitted { pid, user, what } if user == "root" => {
                write!(f, "JVM {pid} belongs to root, and we may not {what}. Run as root.")
            }
            Self::NotPermitted { pid, user, what } => write!(
                f,
                "JVM {pid} belongs to {user}, and we may not {what}. Run as {user} or as root."
            ),
            Self::OpenJ9 { pid } => write!(
                f,
                "JVM {pid} is Eclipse OpenJ9, and Tare works with HotSpot JVMs only. Run the \
                 program on a HotSpot build of the JDK (OpenJDK, Temurin, Corretto, Zulu)."
            ),
            Self::Musl { pid } => write!(
                f,
                "JVM {pid} runs on musl libc (Alpine), and this agent is linked with glibc. Use one of \
                 a released tare, or one built where gcc has its static libgcc_eh.a."
            ),
            Self::Gone { pid } => {
                write!(f, "Process {pid} ended, or its pid was given to another process.")
            }
            Self::AttachDisabled { pid } => write!(
                f,
                "JVM {pid} runs with -XX:+DisableAttachMechanism, so nothing can attach to it. \
                 Restart it without that flag, or start it with the agent: `tare run -- java …`."
            ),
            Self::DynamicLoadingDisabled { pid } => write!(
                f,
                "JVM {pid} runs with -XX:-EnableDynamicAgentLoading and loads no agent after its \
                 start. Restart it without that flag, or start it with the agent: \
                 `tare run -- java …`."
            ),
            Self::SignalsReduced { pid } => write!(
                f,
                "JVM {pid} does not listen to SIGQUIT (-Xrs or -XX:+ReduceSignalUsage) and has no \
                 attach socket; the signal would kill it, so none was sent. Restart it without \
                 that flag, or start it with the agent: `tare run -- java …`."
            ),
            Self::UnmappedUser { pid } => write!(
                f,
                "JVM {pid} runs in a user namespace in which its user or group has no number, so \
                 HotSpot cannot open its attach socket. Map them (`unshare --map-root-user`), or \
                 start the JVM with the agent: `tare run -- java …`."
            ),
            Self::SocketTaken { pid, path } => write!(
                f,
                "{} exists but does not lead to JVM {pid}: another JVM shares that directory, or \
                 the file is stale. Remove the file and try again.",
                path.display()
            ),
            Self::AttachFileBlocked { pid, reason } => write!(
                f,
                "The file that asks JVM {pid} to open its attach socket could not be placed \
                 ({reason}), so no signal was sent. Remove what is in the way, or make /tmp, as \
                 the JVM sees it, writable for the JVM's user."
            ),
            Self::PeerRefused { pid } => write!(
                f,
                "JVM {pid} closed the connection without an answer, as it does when our user or \
                 group differs from its own, or when it is ending. Run as the JVM's user with its \
                 primary group, or as root."
            ),
            Self::TimedOut { pid, after, step, state } => {
                write!(f, "JVM {pid} did not answer within {}: still {step}.", seconds(*after))?;
                match state {
                    Some('T') => f.write_str(
                        " The process is stopped (state T, SIGSTOP): continue it with `kill -CONT` \
                         and try again.",
                    ),
                    Some('t') => {
                        f.write_str(" The process is held by a debugger (state t): let it go on.")
                    }
                    Some('Z' | 'X') => f.write_str(" The process has ended."),
                    Some('D') => f.write_str(
                        " It is held in the kernel (state D): by a paused container, or by a disk \
                         or network file system.",
                    ),
                    _ => f.write_str(
                        " It may be starved of CPU, in a long collection or hung; try again, or \
                         allow more time.",
                    ),
                }?;
                match step {
                    Step::AwaitingReply => {
                        f.write_str(" If it comes back, it may still carry the request out.")
                    }
                    _ => Ok(()),
                }
            }
            Self::TooLong { what, length } => write!(
                f,
                "The {what} has {length} bytes, and HotSpot's attach protocol takes at most 1024. \
                 Make it shorter."
            ),
            Self::LibraryUnreadable { path, error } => {
                write!(f, "The agent library {} cannot be read: {error}.", path.display())
            }
            Self::NoPlaceForLibrary { pid, tried } => write!(
                f,
                "No directory was found from which JVM {pid} could load the agent ({}). Mount one \
                 of them writable and without noexec, or start the JVM with the agent: \
                 `tare run -- java …`.",
                tried.join("; ")
            ),
            Self::NoExec { pid, text } => write!(
                f,
                "JVM {pid} may not run code from the directory of the agent, which is mounted \
                 noexec or barred by a security module ({text}). Allow it, or start the JVM with \
                 the agent from another directory: `tare run -- java …`."
            ),
            Self::OldGlibc { pid, needs, has } => {
                let has = has.as_deref().unwrap_or("an older one");
                write!(
                    f,
                    "The agent needs glibc {needs}, and JVM {pid} runs on {has}. Use an agent \
                     built on an older system, or run the program on a newer one."
                )
            }
            Self::LibraryRejected { pid, text } => {
                write!(f, "JVM {pid} could not load the agent library: {text}")
            }
            Self::AgentFailed { pid, code } => write!(
                f,
                "The agent was loaded into JVM {pid} but refused to start (code {code}); the \
                 JVM's standard error says why."
            ),
            Self::CommandFailed { pid, command, text } => {
                write!(f, "JVM {pid} answered the command `{command}` with a failure: {text}")
            }
            Self::BadReply { pid, text } => write!(
                f,
                "JVM {pid} gave an answer that is not of HotSpot's attach protocol: {text:?}."
            ),
            Self::ForeignProc => f.write_str(
                "/proc shows another pid namespace than ours, so pids would name the wrong \
                 processes. Mount our own: `mount -t proc proc /proc`.",
            ),
            Self::Io { doing, error } => write!(f, "Could not {doing}: {error}."),
        }
    }
}

fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_names_the_wait_and_the_state() {
        let after = Duration::from_millis(2500);
        let step = Step::AwaitingSocket;
        let text = Error::TimedOut { pid: 7, after, step, state: Some('T') }.to_string();
        assert!(text.contains("2.5 s") && text.contains("attach socket"), "{text}");
        assert!(text.contains("stopped") && text.contains("kill -CONT"), "{text}");
    }

    #[test]
    fn what_is_too_long_is_named_with_its_limit() {
        let text = Error::TooLong { what: "agent's options", length: 1025 }.to_string();
        assert!(text.contains("agent's options") && text.contains("1025"), "{text}");
        assert!(text.contains("at most 1024") && text.contains("shorter"), "{text}");
    }

    #[test]
    fn candidates_are_listed() {
        let candidate = |pid, name: &str| Candidate { pid, name: name.into() };
        let candidates = vec![candidate(1, "A"), candidate(2, "B")];
        let text = Error::Ambiguous { who: "x".into(), candidates }.to_string();
        assert_eq!(text, "\"x\" matches 2 JVMs; name one by its pid: 1 (A), 2 (B).");
    }
}
