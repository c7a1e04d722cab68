//! Brings a JVM to open its attach socket, and connects to it.
//!
//! HotSpot opens the socket `/tmp/.java_pidN` when it receives SIGQUIT and finds a file
//! `.attach_pidN` of its own user in its working directory or in /tmp. Everything else that
//! SIGQUIT can do is harm: a JVM that does not catch it (`-Xrs`, or not far enough in its start)
//! dies, and one that finds no file, or whose socket exists already, prints all its threads. So
//! the signal is sent once, and only when every condition has been seen to hold:
//!
//! - the process is the one that was inspected (start time, and a pidfd where there is one);
//! - it maps libjvm, catches SIGQUIT and has the thread that handles it for HotSpot;
//! - it has passed the point in its start where it removes old sockets (its service thread runs);
//! - it is not stopped: the signal would be handled after our file has gone;
//! - no setting forbids attaching;
//! - the file is there, through the JVM's own root, with the right owner, and no other file in its
//!   working directory takes precedence with a wrong one;
//! - the socket is not there.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::as_jvm_user::AsJvmUser;
use crate::error::{Error, Step};
use crate::hotspot::{self, Answer, Silence};
use crate::jvm::{self, Jvm, VmKind};
use crate::jvm_files::{self, JvmFiles};
use crate::procfs::{self, Mapped, SIGQUIT, Stat, Status};
use crate::rights::{as_jvm_user, peer_is};

/// HotSpot on Linux has this compiled in; TMPDIR and java.io.tmpdir do not matter.
const HOTSPOT_TMP: &str = "/tmp";

/// From this age on a JVM has certainly started, even if a thread that we look for has another
/// name in it.
const GROWN_UP: Duration = Duration::from_secs(10);

/// The last thread of a JVM's start may be absent (it serves optional features), so that it is
/// not waited for longer than this.
const NEARLY_GROWN_UP: Duration = Duration::from_secs(3);

/// An attach file that is older than this was forgotten by whoever made it.
const FORGOTTEN: Duration = Duration::from_secs(5);

/// The means to reach one JVM: its file system, and who acts there with its rights.
pub(crate) struct Attachment<'a> {
    pub jvm: &'a Jvm,
    pub files: JvmFiles,
    pub as_user: AsJvmUser,
    pub deadline: Instant,
    pub timeout: Duration,
    pub progress: &'a mut dyn FnMut(Step),
}

/// The state of the JVM's attach socket.
enum Socket {
    Ours(OwnedFd),
    Absent,
    /// The queue of connections is full.
    Busy,
    /// The file leads to nobody, but the JVM can replace it.
    Stale,
}

/// Whether the JVM can be signalled.
enum Readiness {
    Ready,
    /// Something has to be waited for first.
    NotYet(Step),
}

impl<'a> Attachment<'a> {
    pub(crate) fn new(
        jvm: &'a Jvm,
        timeout: Duration,
        progress: &'a mut dyn FnMut(Step),
    ) -> Result<Self, Error> {
        if jvm.vm == VmKind::OpenJ9 {
            return Err(Error::OpenJ9 { pid: jvm.pid });
        }
        if !proc_is_ours() {
            return Err(Error::ForeignProc);
        }
        if !jvm.is_same_process() {
            return Err(Error::Gone { pid: jvm.pid });
        }
        let files = jvm.files()?;
        let as_user = as_jvm_user(jvm, true)?;
        let deadline = Instant::now() + timeout;
        Ok(Self { jvm, files, as_user, deadline, timeout, progress })
    }

    /// Fails at once when the JVM is known to refuse, before anything is made for it.
    pub(crate) fn refuse_early(&self) -> Result<(), Error> {
        let tmp = self.tmp()?;
        if jvm_files::entry(&tmp, &self.socket_name()).is_err() {
            self.readiness(false, &mut None)?;
        }
        Ok(())
    }

    fn tmp(&self) -> Result<OwnedFd, Error> {
        let doing = format!("open {HOTSPOT_TMP} as process {} sees it", self.jvm.pid);
        self.files.directory(Path::new(HOTSPOT_TMP)).map_err(Error::io(doing))
    }

    /// Sends a command and gives the JVM's answer.
    pub(crate) fn command(&mut self, command: &str, arguments: [&str; 3]) -> Result<Answer, Error> {
        for (argument, what) in arguments.iter().zip(["first argument", "second", "options text"]) {
            if argument.len() > hotspot::LONGEST_ARGUMENT {
                return Err(Error::TooLong { what, length: argument.len() });
            }
        }
        let pid = self.jvm.pid;
        let socket = self.open()?;
        // A stopped JVM would carry the request out when it goes on, after we have given up.
        let mut pauses = Pauses::default();
        while Stat::of(pid).is_ok_and(is_stopped) {
            self.pause(&mut pauses, &Step::AwaitingContinue)?;
        }
        (self.progress)(Step::AwaitingReply);
        hotspot::converse(socket, command, arguments, self.deadline).map_err(
            |silence| match silence {
                Silence::TimedOut => self.timed_out(Step::AwaitingReply),
                _ if self.ends_soon() => Error::Gone { pid },
                Silence::Closed => Error::PeerRefused { pid },
                Silence::Nonsense(text) => Error::BadReply { pid, text },
                Silence::Io(error) => {
                    Error::Io { doing: format!("talk to JVM {pid} over its attach socket"), error }
                }
            },
        )
    }

    /// Whether the process has ended or does so within a moment: a JVM closes its connections
    /// before it is gone.
    fn ends_soon(&self) -> bool {
        for _ in 0..20 {
            match Stat::of(self.jvm.pid) {
                Ok(stat) if stat.start == self.jvm.start_ticks && stat.state != 'Z' => {}
                _ => return true,
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        false
    }

    pub(crate) fn timed_out(&self, step: Step) -> Error {
        let state = Stat::of(self.jvm.pid).ok().map(|stat| stat.state);
        Error::TimedOut { pid: self.jvm.pid, after: self.timeout, step, state }
    }

    /// Pauses before the next look, longer from time to time; fails when time is up.
    pub(crate) fn pause(&self, pauses: &mut Pauses, step: &Step) -> Result<(), Error> {
        if !self.jvm.is_same_process() {
            return Err(Error::Gone { pid: self.jvm.pid });
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.timed_out(step.clone()));
        }
        std::thread::sleep(pauses.next().min(left));
        Ok(())
    }

    /// A connection to the attach socket, which the JVM is asked to open if need be.
    fn open(&mut self) -> Result<OwnedFd, Error> {
        let tmp = self.tmp()?;
        let mut pauses = Pauses::default();
        let mut said = None;
        let mut listener_since = None;
        loop {
            let step = match self.try_connect(&tmp)? {
                Socket::Ours(socket) => return Ok(socket),
                Socket::Busy => Step::Connecting,
                found => {
                    match self.readiness(matches!(found, Socket::Stale), &mut listener_since)? {
                        Readiness::NotYet(step) => step,
                        Readiness::Ready => break,
                    }
                }
            };
            if said.as_ref() != Some(&step) {
                (self.progress)(step.clone());
                said = Some(step.clone());
            }
            self.pause(&mut pauses, &step)?;
        }
        let result = self.ask_and_wait(&tmp);
        // On a time-out the executor decides: the file may have to outlive us for a while.
        if !matches!(result, Err(Error::TimedOut { .. })) {
            let _ = self.as_user.remove();
        }
        result
    }

    fn socket_name(&self) -> String {
        format!(".java_pid{}", self.jvm.ns_pid)
    }

    fn attach_name(&self) -> String {
        format!(".attach_pid{}", self.jvm.ns_pid)
    }

    fn try_connect(&mut self, tmp: &OwnedFd) -> Result<Socket, Error> {
        let pid = self.jvm.pid;
        let name = self.socket_name();
        let path = PathBuf::from(HOTSPOT_TMP).join(&name);
        match self.as_user.connect(tmp.as_fd(), &name) {
            Ok(socket) if peer_is(&socket, pid) => Ok(Socket::Ours(socket)),
            // The JVM would take the name away from another JVM.
            Ok(_) => Err(Error::SocketTaken { pid, path }),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Ok(Socket::Absent),
                io::ErrorKind::WouldBlock => Ok(Socket::Busy),
                io::ErrorKind::ConnectionRefused | io::ErrorKind::PermissionDenied => {
                    match jvm_files::entry(tmp, &name) {
                        Ok(file) if file.st_uid == self.jvm.uid => match error.kind() {
                            io::ErrorKind::ConnectionRefused => Ok(Socket::Stale),
                            _ => Err(Error::NotPermitted {
                                pid,
                                user: self.jvm.user_name(),
                                what: "connect to its attach socket",
                            }),
                        },
                        // Another user's file, which the JVM could not replace.
                        Ok(_) => Err(Error::SocketTaken { pid, path }),
                        Err(_) => Ok(Socket::Absent),
                    }
                }
                _ => {
                    let doing = format!("connect to {} of process {pid}", path.display());
                    Err(Error::Io { doing, error })
                }
            },
        }
    }

    /// Checks all that is known of the process before a file is made for it.
    fn readiness(
        &self,
        stale: bool,
        listener_since: &mut Option<Instant>,
    ) -> Result<Readiness, Error> {
        let pid = self.jvm.pid;
        let settings = &self.jvm.settings;
        if settings.disable_attach == Some(true) {
            return Err(Error::AttachDisabled { pid });
        }
        if self.jvm.is_unmapped() {
            return Err(Error::UnmappedUser { pid });
        }
        let gone = |_| Error::Gone { pid };
        let status = Status::of(pid).map_err(gone)?;
        let stat = Stat::of(pid).map_err(gone)?;
        if is_stopped(stat) {
            return Ok(Readiness::NotYet(Step::AwaitingContinue));
        }
        if matches!(stat.state, 'Z' | 'X') {
            return Err(Error::Gone { pid });
        }
        let age = jvm::uptime(self.jvm.start_ticks);
        let not_yet = Readiness::NotYet(Step::AwaitingStart);
        let reduced = settings.reduce_signals == Some(true);
        if reduced || !status.catches(SIGQUIT) {
            // With reduced signals the JVM opens the socket on its own, at its start.
            let over = if reduced { NEARLY_GROWN_UP } else { GROWN_UP };
            return if age < over { Ok(not_yet) } else { Err(Error::SignalsReduced { pid }) };
        }
        let threads = procfs::thread_names(pid);
        let has = |name: &str| threads.iter().any(|thread| thread == name);
        if !has("Signal Dispatch") && !has("Signal Dispatcher") {
            // Somebody else's handler would get the signal.
            return if age < GROWN_UP { Ok(not_yet) } else { Err(Error::SignalsReduced { pid }) };
        }
        let started = has("Service Thread") && (has("VM Periodic Tas") || age > NEARLY_GROWN_UP);
        if !started && age < GROWN_UP {
            return Ok(not_yet);
        }
        if has("Attach Listener") {
            if stale {
                // The JVM believes that its socket is in place, and would print its threads.
                let path = PathBuf::from(HOTSPOT_TMP).join(self.socket_name());
                return Err(Error::SocketTaken { pid, path });
            }
            // Either another tool asked a moment ago and the socket is about to appear, or it
            // was there once and somebody has removed it: then the JVM makes it anew.
            let since = listener_since.get_or_insert_with(Instant::now);
            if since.elapsed() < Duration::from_secs(1) {
                return Ok(Readiness::NotYet(Step::AwaitingOther));
            }
        }
        Ok(Readiness::Ready)
    }

    /// Makes the file, sends the signal, and waits for the socket.
    fn ask_and_wait(&mut self, tmp: &OwnedFd) -> Result<OwnedFd, Error> {
        let mut pauses = Pauses::default();
        let mut asked = false;
        let mut step = Step::AwaitingSocket;
        loop {
            if !asked {
                asked = self.make_attach_file(tmp)?;
                // Without a file of ours, another tool is at it, and its signal does for both.
                let now = if asked { Step::AwaitingSocket } else { Step::AwaitingOther };
                if asked || now != step {
                    (self.progress)(now.clone());
                    step = now;
                }
                if asked && let Some(socket) = self.signal(tmp)? {
                    return Ok(socket);
                }
            }
            if let Socket::Ours(socket) = self.try_connect(tmp)? {
                return Ok(socket);
            }
            self.pause(&mut pauses, &step)?;
        }
    }

    /// Places the attach file in the JVM's /tmp or, failing that, its working directory. False
    /// when a fresh one of another tool is there already.
    fn make_attach_file(&mut self, tmp: &OwnedFd) -> Result<bool, Error> {
        let pid = self.jvm.pid;
        let name = self.attach_name();
        let cwd = self.files.cwd().map(|cwd| ("its directory", cwd));
        let mut dirs = vec![(HOTSPOT_TMP, tmp.as_fd())];
        dirs.extend(cwd);
        let there = |dir| jvm_files::entry(dir, &name).ok();
        for (_, dir) in &dirs {
            if there(*dir).is_some_and(|f| self.owner_will_do(f.st_uid) && age(&f) < FORGOTTEN) {
                return Ok(false);
            }
        }
        // The working directory takes precedence: what is there must not be in the way.
        if let Some(found) = self.files.cwd().and_then(there)
            && !self.owner_will_do(found.st_uid)
        {
            let reason = format!("{name} in its directory belongs to user {}", found.st_uid);
            return Err(Error::AttachFileBlocked { pid, reason });
        }
        let mut reasons = Vec::new();
        for (place, dir) in dirs {
            let forgotten = there(dir);
            if let Some(found) = forgotten.as_ref().filter(|f| !self.owner_will_do(f.st_uid)) {
                reasons.push(format!("{name} in {place} belongs to user {}", found.st_uid));
                continue;
            }
            if let Err(error) = self.as_user.create(dir, &name, forgotten.is_some()) {
                reasons.push(format!("{place}: {error}"));
                if place == HOTSPOT_TMP {
                    // The socket could not be made there either.
                    break;
                }
                continue;
            }
            match jvm_files::entry(dir, &name) {
                Ok(made) if self.owner_will_do(made.st_uid) => return Ok(true),
                // A file system that gives every file another owner, as some network ones do.
                _ => {
                    reasons.push(format!("{place} does not keep the owner of new files"));
                    let _ = self.as_user.remove();
                }
            }
        }
        Err(Error::AttachFileBlocked { pid, reason: reasons.join("; ") })
    }

    /// Whether the JVM will find an attach file and accept it: it takes the one in its working
    /// directory if there is one, else that in /tmp.
    fn attach_file_serves(&self, tmp: &OwnedFd) -> bool {
        let name = self.attach_name();
        let in_cwd = self.files.cwd().and_then(|cwd| jvm_files::entry(cwd, &name).ok());
        in_cwd
            .or_else(|| jvm_files::entry(tmp, &name).ok())
            .is_some_and(|file| self.owner_will_do(file.st_uid))
    }

    /// HotSpot accepts its own effective user and, as it sees it, root.
    fn owner_will_do(&self, uid: u32) -> bool {
        uid == self.jvm.uid || self.jvm.namespace_root() == Some(uid)
    }

    /// Sends SIGQUIT after a last look at everything. A socket that has appeared meanwhile is
    /// returned instead: then the signal would only print the threads.
    fn signal(&mut self, tmp: &OwnedFd) -> Result<Option<OwnedFd>, Error> {
        let pid = self.jvm.pid;
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Error::Gone { pid })?;
        // From here on the descriptor names the process, not the number.
        let handle = match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            // Kernels before 5.3, and filters that bar the call.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => None,
            Err(_) => return Err(Error::Gone { pid }),
        };
        if Mapped::of(pid).is_ok_and(|mapped| mapped.libjvm.is_none()) {
            return Err(Error::Gone { pid });
        }
        let mut pauses = Pauses::default();
        let mut stale = false;
        loop {
            // The waits for the listener are over; only a stop can still hold us up.
            let mut long_ago = Instant::now().checked_sub(GROWN_UP);
            if let Readiness::NotYet(step) = self.readiness(stale, &mut long_ago)? {
                self.pause(&mut pauses, &step)?;
                continue;
            }
            if !self.jvm.is_same_process() {
                return Err(Error::Gone { pid });
            }
            if !self.attach_file_serves(tmp) {
                let reason = "it was removed or replaced meanwhile".to_owned();
                return Err(Error::AttachFileBlocked { pid, reason });
            }
            // Last of all, since another tool may have brought the JVM to open it this moment.
            match self.try_connect(tmp)? {
                Socket::Ours(socket) => return Ok(Some(socket)),
                Socket::Absent => break,
                Socket::Stale if stale => break,
                Socket::Stale => stale = true,
                Socket::Busy => self.pause(&mut pauses, &Step::Connecting)?,
            }
        }
        // Said before it is done: should we be killed in between, the file stays a little longer.
        let _ = self.as_user.signalled(pid, self.jvm.start_ticks, &self.socket_name());
        let sent = match &handle {
            Some(handle) => rustix::process::pidfd_send_signal(handle, Signal::QUIT),
            None => rustix::process::kill_process(raw, Signal::QUIT),
        };
        match sent {
            Ok(()) => Ok(None),
            Err(rustix::io::Errno::SRCH) => Err(Error::Gone { pid }),
            Err(rustix::io::Errno::PERM) => Err(Error::NotPermitted {
                pid,
                user: self.jvm.user_name(),
                what: "send it a signal",
            }),
            Err(error) => Err(Error::Io {
                doing: format!("send SIGQUIT to process {pid}"),
                error: error.into(),
            }),
        }
    }
}

fn is_stopped(stat: Stat) -> bool {
    matches!(stat.state, 'T' | 't')
}

/// Pauses between looks: short at first, since most JVMs answer within milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Pauses(u32);

impl Pauses {
    fn next(&mut self) -> Duration {
        self.0 = (self.0 + 1).min(40);
        Duration::from_micros(u64::from(self.0 * self.0) * 100)
    }
}

/// Whether /proc numbers processes as our system calls do.
fn proc_is_ours() -> bool {
    std::fs::read_link("/proc/self")
        .is_ok_and(|link| link.as_os_str() == std::process::id().to_string().as_str())
}

fn age(file: &rustix::fs::Stat) -> Duration {
    let modified = u64::try_from(file.st_mtime).unwrap_or(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().saturating_sub(Duration::from_secs(modified))
}
