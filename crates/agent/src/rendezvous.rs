//! Telling the process that launched this JVM that it is up, before its `main` runs.
//!
//! The launcher keeps the connection and sees by its end that the JVM has ended. A launcher that
//! is gone is no error: a build daemon outlives the command that started it.

use crate::jvm::Jvmti;
use crate::socket;
use std::io::Read;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tare_protocol::{BUILD_ID, Decoder, Started};

/// How long the start of a program may be held up by a launcher that does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What there is to tell about this JVM.
pub fn describe(jvmti: Jvmti) -> Started {
    let property = |key| jvmti.system_property(key).unwrap_or_default();
    Started {
        pid: std::process::id(),
        java_version: jvmti.java_version().unwrap_or_default(),
        command: property("sun.java.command"),
        build: BUILD_ID.into(),
    }
}

pub fn report(path: &str, started: &Started) {
    let Ok(mut stream) = UnixStream::connect(path) else { return };
    if socket::send(&stream, &started.to_message().encode()).is_err()
        || stream.set_read_timeout(Some(PATIENCE)).is_err()
    {
        return;
    }
    // The answer means that the launcher has done what it wanted to do before `main`.
    let mut decoder = Decoder::default();
    let mut portion = [0; 256];
    while let Ok(None) = decoder.next_message() {
        match stream.read(&mut portion) {
            Ok(n) if n > 0 => decoder.push(&portion[..n]),
            _ => break,
        }
    }
    // Left open on purpose, for as long as the process lives: its end is the message.
    let _ = stream.into_raw_fd();
}
