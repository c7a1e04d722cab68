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

use crate::engines::{EngineError, Jvm};
use crate::events::Subscriber;
use crate::jvm::references::Weak;
use crate::stream::engine::{self, Of, Session};
use crate::stream::joined::OpenError;
use session::AllocSession;
use std::fmt;
use std::fs::File;
use std::sync::Mutex;
use std::time::Duration;
use table::Entry;
use tare_protocol::heap::wire::Watched;
use tare_protocol::{AllocPlan, EngineChange, EngineName, EnginePlan, EngineStatus};

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
    /// This JVM does not say where something is that tells which objects live.
    Unwatched(String),
    /// The stream that is open has no room for more kinds of events, or walks no stacks.
    Stream,
    Open(OpenError),
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
            AllocError::Open(e @ OpenError::Unknown(_)) => {
                write!(f, "{e}; `--alloc-exact` needs none of it")
            }
            AllocError::Open(e) => write!(f, "{e}"),
        }
    }
}

impl From<OpenError> for AllocError {
    fn from(error: OpenError) -> Self {
        AllocError::Open(error)
    }
}

impl From<AllocError> for EngineError {
    fn from(error: AllocError) -> Self {
        EngineError::Refused(error.to_string())
    }
}

/// The sampled objects that are watched: where the JVM has the address of each, and what front
/// ends know it by. Those that no tick has taken in yet are too young to be told of.
pub fn watched() -> Vec<[u8; Watched::BYTES]> {
    let session = engine::on::<AllocSession>();
    let Some(session) = session.as_ref() else { return Vec::new() };
    let sampled = session.table().entries().filter(|entry| entry.is_sampled());
    let watched = |entry: &Entry<Weak>| {
        Watched { slot: entry.reference.slot(), number: entry.name() }.encode()
    };
    sampled.map(watched).collect()
}

pub type Alloc = Of<AllocSession>;

impl Session for AllocSession {
    const NAME: EngineName = EngineName::Alloc;
    const TICK: Duration = TICK;
    type Plan = AllocPlan;
    type Error = AllocError;

    fn place() -> &'static Mutex<Option<Self>> {
        &SESSION
    }

    fn subscriber() -> &'static Subscriber {
        &session::SUBSCRIBER
    }

    fn plan(plan: &EnginePlan) -> Option<&AllocPlan> {
        match plan {
            EnginePlan::Alloc(plan) => Some(plan),
            _ => None,
        }
    }

    fn already_on() -> AllocError {
        AllocError::AlreadyOn
    }

    fn start(jvm: Jvm, plan: &AllocPlan) -> Result<(Self, Vec<File>), AllocError> {
        AllocSession::start(jvm, plan).map_err(|error| match error {
            AllocError::Open(OpenError::Unknown(what)) if plan.woven => AllocError::Unwatched(what),
            other => other,
        })
    }

    fn change(&mut self, jvm: Jvm, change: &EngineChange) -> Option<Result<(), AllocError>> {
        let EngineChange::Alloc { interval_bytes, paused } = change else { return None };
        Some(AllocSession::change(self, jvm, *interval_bytes, *paused))
    }

    fn end(&mut self, jvm: Jvm) {
        AllocSession::end(self, jvm);
    }

    fn status(&self) -> EngineStatus {
        EngineStatus::Alloc(Box::new(AllocSession::status(self)))
    }

    fn tick(&mut self, jvm: Jvm) {
        AllocSession::tick(self, jvm);
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
