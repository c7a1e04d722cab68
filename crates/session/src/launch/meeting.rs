//! Where launched JVMs report, each before its `main`, and how they are let go.

use super::guests::Guests;
use crate::error::{Context, Result};
use crate::words::plain;
use std::fmt;
use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tare_protocol::{Decoder, MEETING_SOCKET, Response, Started, meeting_dir_name};

/// The socket where launched JVMs report, in a directory that only we can enter.
pub(super) struct Meeting {
    dir: PathBuf,
    listener: Option<UnixListener>,
}

impl Meeting {
    pub(super) fn new() -> Result<Self> {
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

    pub(super) fn path(&self) -> Result<String> {
        let path = self.dir.join(MEETING_SOCKET);
        Ok(path.to_str().context("the temporary directory is not UTF-8")?.to_owned())
    }

    pub(super) fn receive(&self, attend: impl Fn(Guest) + Send + Sync + 'static) -> Guests {
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
