//! Who else records a JVM: a sentence about them, and the file that they write, which can be read
//! while it grows.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tare_attach::Jvm;
use tare_protocol::Status;
use tare_recording::Follower;
use tare_session::command_socket;

/// Engines that write to the stream, which is one front end's.
const STREAM: [&str; 6] = ["sampling", "alloc", "locks", "classes", "jni-refs", "hooks"];

/// Somebody else has the stream.
pub struct Other {
    pub sentence: String,
    /// What they record into, if we may read it.
    pub path: Option<PathBuf>,
    who: Who,
}

/// What tells one recording from the next.
#[derive(Clone, PartialEq, Eq)]
struct Who {
    /// The process, if it has a number here.
    pid: Option<u32>,
    /// The file, whatever it is called.
    file: Option<(u64, u64)>,
}

/// Whether somebody has it.
pub fn has_stream(status: &Status) -> bool {
    status.engine_names().iter().any(|name| STREAM.contains(name))
}

impl Other {
    pub fn find(jvm: &Jvm, status: &Status) -> Other {
        Other::of(recorder(jvm), status)
    }

    /// Whoever has it now, if that is not the same one, or the same one has another file or has
    /// begun it only now.
    pub fn next(&self, jvm: &Jvm, status: &Status) -> Option<Other> {
        let pid = recorder(jvm);
        // To look for a file is worth it only if it is not known.
        let is_same = pid == self.who.pid;
        if is_same && self.who.file.is_some() && self.path.as_deref().and_then(id) == self.who.file
        {
            return None;
        }
        let next = Other::of(pid, status);
        (next.who != self.who).then_some(next)
    }

    fn of(pid: Option<u32>, status: &Status) -> Other {
        let on: Vec<&str> =
            status.engine_names().into_iter().filter(|name| STREAM.contains(name)).collect();
        let on = on.join(", ");
        let who = match pid {
            Some(pid) => match command(pid) {
                Some(command) => format!("`{command}` (pid {pid})"),
                None => format!("process {pid}"),
            },
            None => "another front end".to_owned(),
        };
        let path = pid.and_then(recording_of);
        let rest = match path {
            Some(_) => "what it records is shown",
            None => "its figures cannot be read from here; top goes on when it ends",
        };
        let sentence = format!("{who} records this JVM ({on}); {rest}");
        let file = path.as_deref().and_then(id);
        Other { sentence, path, who: Who { pid, file } }
    }
}

/// The process that records a JVM, if that is not this one.
fn recorder(jvm: &Jvm) -> Option<u32> {
    command_socket::recorder(jvm).filter(|pid| *pid != std::process::id())
}

/// Which file a path leads to.
fn id(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|there| (there.dev(), there.ino()))
}

/// How somebody began a process.
fn command(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<String> = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let mut words = tare_attach::mask_secrets(&words);
    let first = words.first_mut()?;
    *first = first.rsplit('/').next().unwrap_or(first).to_owned();
    Some(words.join(" "))
}

/// The recording that a process writes.
fn recording_of(pid: u32) -> Option<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let paths = entries.flatten().map(|entry| entry.path());
    let looks_so = |path: &PathBuf| {
        fs::read_link(path).is_ok_and(|link| {
            let link = link.to_string_lossy();
            let link = link.trim_end_matches(" (deleted)");
            link.ends_with(".tare") || link.starts_with("/memfd:")
        })
    };
    paths.into_iter().filter(looks_so).find(|path| Follower::open(path).is_ok())
}
