//! Sampled allocations, and which of the objects live on; or objects that woven code hands over.
//!
//! Who does what: the JVM's sampler calls the thread that allocates (`met`), which walks its stack
//! and appends to the stream. Woven code calls `woven`. The
//! control thread (`session`) keeps the objects in a table of weak references (`table`) and looks
//! at it after collections, which `collections` counts; `born_old` knows of objects that few
//! collections decide about.
//!
//! A session belongs to a connection; there is one at a time.

mod around;
mod born_old;
mod collections;
mod met;
mod session;
mod table;
mod woven;

pub use woven::made;

use crate::engines::{Between, Engine, EngineError, Jvm};
use crate::events::Subscriber;
use crate::jvm::Failure;
use crate::jvm::references::Weak;
use crate::stacks::StacksError;
use crate::stream::joined::OpenError;
use session::AllocSession;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};
use table::Entry;
use tare_protocol::heap::wire::Watched;
use tare_protocol::{EngineChange, EngineName, EnginePlan, EngineStatus};

/// How often the stream and the table are looked after.
const TICK: Duration = Duration::from_millis(20);

static SESSION: Mutex<Option<AllocSession>> = Mutex::new(None);

/// Libraries of other tools that use the JVM's sampler: a part of their file's name, and what they
/// are.
const OTHERS: [(&str, &str); 6] = [
    ("asyncProfiler", "async-profiler"),
    ("async-profiler", "async-profiler"),
    ("javaProfiler", "Datadog's profiler"),
    ("lightrun", "Lightrun"),
    ("jprofilerti", "JProfiler"),
    ("yjpagent", "YourKit"),
];

/// Why a session did not begin, or did not change.
#[derive(Debug)]
pub enum AllocError {
    AlreadyOn,
    /// Another agent has the JVM's sampler; who that may be.
    Taken(Vec<&'static str>),
    /// Native frames are asked for.
    Native,
    /// This JVM does not say where something is.
    Unknown(String),
    /// The same, for objects that woven code hands over.
    Unwatched(String),
    /// The stream that is open has no room for more kinds of events, or walks no stacks.
    Stream,
    Signal(io::Error),
    Memory(io::Error),
    Jvmti(Failure),
}

impl AllocError {
    /// The JVM gives its sampler to one agent at a time.
    fn taken() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        AllocError::Taken(holders(&maps))
    }
}

/// Who may hold the sampler, by what is mapped.
fn holders(maps: &str) -> Vec<&'static str> {
    let mut found: Vec<&'static str> = Vec::new();
    for (part, name) in OTHERS {
        let is_mapped = maps.lines().any(|line| line.contains(".so") && line.contains(part));
        if is_mapped && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllocError::AlreadyOn => {
                write!(f, "allocations of this JVM are being recorded already; end that first")
            }
            AllocError::Taken(who) => {
                write!(
                    f,
                    "another agent holds the JVM's allocation sampler, which only one can have"
                )?;
                if !who.is_empty() {
                    write!(f, " (probably {}, which is loaded)", who.join(" or "))?;
                }
                write!(f, "; stop it there, or count every allocation with `--alloc-exact`")
            }
            AllocError::Native => {
                write!(f, "stacks of allocations have Java frames only; ask without native ones")
            }
            AllocError::Unknown(what) => {
                write!(
                    f,
                    "this JVM does not tell where to find {what}, so stacks cannot be walked; \
                     `--alloc-exact` needs none of it"
                )
            }
            AllocError::Unwatched(what) => {
                write!(
                    f,
                    "this JVM does not tell where to find {what}, so nobody can tell which objects \
                     live; record without `--live`"
                )
            }
            AllocError::Stream => {
                write!(
                    f,
                    "the samples under way leave no room for allocations, or are taken at \
                     safepoints; record allocations by themselves"
                )
            }
            AllocError::Signal(e) => write!(f, "no signal handler can be installed: {e}"),
            AllocError::Memory(e) => write!(f, "no memory for samples: {e}"),
            AllocError::Jvmti(failure) => write!(f, "{failure}"),
        }
    }
}

impl From<OpenError> for AllocError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Unknown(what) => AllocError::Unknown(what),
            OpenError::Stacks(StacksError::Guard(e)) => AllocError::Signal(e),
            OpenError::Stacks(StacksError::Memory(e)) | OpenError::Memory(e) => {
                AllocError::Memory(e)
            }
            OpenError::Jvmti(failure) => AllocError::Jvmti(failure),
        }
    }
}

impl From<AllocError> for EngineError {
    fn from(error: AllocError) -> Self {
        EngineError::Refused(error.to_string())
    }
}

fn session() -> MutexGuard<'static, Option<AllocSession>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sampled objects that are watched: where the JVM has the address of each, and what front
/// ends know it by. Those that no tick has taken in yet are too young to be told of.
pub fn watched() -> Vec<[u8; Watched::BYTES]> {
    let session = session();
    let Some(session) = session.as_ref() else { return Vec::new() };
    let sampled = session.table().entries().filter(|entry| entry.is_sampled());
    let watched = |entry: &Entry<Weak>| {
        Watched { slot: entry.reference.slot(), number: entry.name() }.encode()
    };
    sampled.map(watched).collect()
}

pub struct Alloc;

impl Engine for Alloc {
    fn name(&self) -> EngineName {
        EngineName::Alloc
    }

    fn subscriber(&self) -> &'static Subscriber {
        &session::SUBSCRIBER
    }

    fn start(
        &self,
        jvm: Jvm,
        plan: &EnginePlan,
        _: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError> {
        let EnginePlan::Alloc(plan) = plan else {
            return Err(EngineError::misdirected(self.name()));
        };
        let mut session = session();
        if session.is_some() {
            return Err(AllocError::AlreadyOn.into());
        }
        let started = AllocSession::start(jvm, plan).map_err(|error| match error {
            AllocError::Unknown(what) if plan.woven => AllocError::Unwatched(what),
            other => other,
        });
        let (new, files) = started?;
        *session = Some(new);
        Ok(files)
    }

    fn change(
        &self,
        jvm: Jvm,
        change: &EngineChange,
        _: &mut Between<'_>,
    ) -> Result<(), EngineError> {
        let EngineChange::Alloc { interval_bytes, paused } = change else {
            return Err(EngineError::misdirected(self.name()));
        };
        if let Some(session) = session().as_ref() {
            session.change(jvm, *interval_bytes, *paused)?;
        }
        Ok(())
    }

    fn stop(&self, jvm: Jvm, _: &mut Between<'_>) {
        let session = session().take();
        if let Some(mut session) = session {
            session.end(jvm);
        }
    }

    fn status(&self) -> Option<EngineStatus> {
        let status = session().as_ref().map(AllocSession::status)?;
        Some(EngineStatus::Alloc(Box::new(status)))
    }

    fn uses_stream(&self) -> bool {
        true
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn tick(&self, jvm: Jvm) {
        if let Some(session) = session().as_mut() {
            session.tick(jvm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_the_sampler_is_named_by_its_library() {
        let maps = "1000-2000 r-xp 0 0:0 1 /opt/dd/libjavaProfiler.so\n\
                    3000-4000 r-xp 0 0:0 1 /tmp/libasyncProfiler.so\n\
                    5000-6000 r--p 0 0:0 1 /tmp/async-profiler.jar\n";
        assert_eq!(holders(maps), ["async-profiler", "Datadog's profiler"]);
        let taken = AllocError::Taken(holders(maps)).to_string();
        assert!(taken.contains("async-profiler or Datadog"), "{taken}");
        let unknown = AllocError::Taken(holders("")).to_string();
        assert!(unknown.contains("--alloc-exact") && !unknown.contains('('), "{unknown}");
    }
}
