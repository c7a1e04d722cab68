//! Telling the process that launched this JVM that it is up, before its `main` runs.
//!
//! The session keeps the connection open; its end tells the launcher that the JVM has ended or the
//! agent has left. A launcher that is gone is no error: a build daemon outlives the command that
//! started it.

use crate::jvm::Jvmti;
use crate::socket;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tare_protocol::{BUILD_ID, Decoder, Started};

/// How long the start of a program may be held up by a launcher that does not answer.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The same for a launcher that begins a recording before the program runs.
pub const PATIENCE_TO_RECORD: Duration = Duration::from_secs(20);

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

/// Says it, waits for the launcher's nod, and gives back the connection to be kept.
pub fn report(path: &str, started: &Started, patience: Duration) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(path).ok()?;
    socket::send(&stream, &started.to_message().encode()).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    // The answer means that the launcher has done what it wanted to do before `main`.
    let mut decoder = Decoder::default();
    let mut portion = [0; 256];
    while let Ok(None) = decoder.next_message() {
        match stream.read(&mut portion) {
            Ok(n) if n > 0 => decoder.push(&portion[..n]),
            _ => break,
        }
    }
    Some(stream)
}
