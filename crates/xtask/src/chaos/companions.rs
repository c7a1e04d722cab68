//! Others who look at the same JVM: async-profiler, the flight recorder, `jcmd`, a debugger. What
//! they answer is their affair; that they come and go must hurt nobody.

use super::evidence::Failure;
use super::ground::Ground;
use super::watch::{self, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

pub struct Companions<'a> {
    ground: &'a Ground,
    directory: &'a Path,
    pid: u32,
    profiling: bool,
    flying: bool,
}

impl<'a> Companions<'a> {
    pub fn new(ground: &'a Ground, directory: &'a Path, pid: u32) -> Self {
        Companions { ground, directory, pid, profiling: false, flying: false }
    }

    /// Runs a command of `jcmd` to its end.
    pub fn jcmd(&self, words: &[&str]) -> Result<(), Failure> {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.directory.join("jcmd.log"))?;
        let mut command = Command::new(&self.ground.jcmd);
        command.arg(self.pid.to_string()).args(words).current_dir(self.directory);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut child = command.env(watch::MARK, self.directory).spawn()?;
        let waited = until(&format!("`jcmd {}` ends", words.join(" ")), || {
            matches!(child.try_wait(), Ok(Some(_)))
        });
        if waited.is_err() {
            // Evidence is taken by whoever hears of it; nobody waits for this one any more.
            let _ = child.kill();
            let _ = child.wait();
        }
        waited
    }

    /// Starts async-profiler, or stops it if it is on.
    pub fn async_profiler(&mut self, event: &str) -> Result<(), Failure> {
        let Some(library) = &self.ground.async_profiler else { return Ok(()) };
        let library = library.display().to_string();
        let file = self.directory.join("async.txt");
        let options = match self.profiling {
            false => format!("start,event={event},interval=1000000,file={}", file.display()),
            true => format!("stop,file={}", file.display()),
        };
        self.profiling = !self.profiling;
        self.jcmd(&["JVMTI.agent_load", &library, &options])
    }

    pub fn flight_recorder(&mut self) -> Result<(), Failure> {
        self.flying = !self.flying;
        match self.flying {
            true => self.jcmd(&["JFR.start", "name=chaos", "settings=profile"]),
            false => self.jcmd(&["JFR.stop", "name=chaos"]),
        }
    }

    pub fn heap_dump(&self) -> Result<(), Failure> {
        let file = self.directory.join("dump.hprof");
        let outcome = self.jcmd(&["GC.heap_dump", &file.display().to_string()]);
        // It is large; one that could not be made is not there.
        let _ = fs::remove_file(file);
        outcome
    }

    /// All go home.
    pub fn leave(&mut self) -> Result<(), Failure> {
        if self.profiling {
            self.async_profiler("")?;
        }
        if self.flying {
            self.flight_recorder()?;
        }
        Ok(())
    }
}

/// Suspends all threads of a JVM as a debugger does, for so long, and leaves. A JVM whose port is
/// taken is left alone.
pub fn debug(port: u16, span: Duration) {
    const HANDSHAKE: &[u8] = b"JDWP-Handshake";
    // Length, number, flags, set of commands (the virtual machine) and command.
    let packet = |number: u8, command: u8| [0, 0, 0, 11, 0, 0, 0, number, 0, 1, command];
    let (suspend, resume, dispose) = (8, 9, 6);
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let mut answer = [0; 14];
    let shakes = stream.set_read_timeout(Some(Duration::from_secs(20))).is_ok()
        && stream.write_all(HANDSHAKE).is_ok()
        && stream.read_exact(&mut answer).is_ok();
    if shakes && stream.write_all(&packet(1, suspend)).is_ok() {
        thread::sleep(span);
        // What is not heard any more ends with the connection, as does the suspension.
        let _ = stream.write_all(&packet(2, resume));
        let _ = stream.write_all(&packet(3, dispose));
        thread::sleep(Duration::from_millis(50));
    }
}
