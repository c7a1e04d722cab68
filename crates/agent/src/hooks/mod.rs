//! Hooks in a few methods of a running program: who calls them, how often, and what a call takes.
//!
//! Who does what: a front end names the methods (`tare climb` chooses them); `woven` sets hooks and
//! takes them out. Woven code counts every call in memory of its own (`blocks`), and has some told
//! (`calls`): those look at the frame of their caller, and are timed while they are under way
//! (`open`). `edges` sums up by caller; `budget` says how many calls are timed, and `window` when
//! they are counted at all. The control thread (`session`) begins and ends, and sends the sums by
//! the stream. Hooks that are set and wait cost next to nothing, and become others' turn without
//! any class being loaded again. `rehearsal` measures what a hook takes in this JVM.
//!
//! A session belongs to a connection; there is one at a time, and none beside an exact recording,
//! which weaves the same classes.

mod blocks;
mod budget;
mod calls;
mod edges;
mod kinds;
mod open;
mod rehearsal;
mod session;
mod window;
mod woven;

pub use calls::{called, returns};

use crate::engines::{Between, Engine, EngineError, Jvm, Step};
use crate::exact::{foreign, inject};
use crate::jvm::Failure;
use crate::jvm::classes::OwnClass;
use crate::stream::joined::OpenError;
use session::HookSession;
use std::fmt;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tare_protocol::{Activity, EngineChange, EngineName, EnginePlan, EngineStatus};

/// How often hooks are looked after that count for short times only, or whose calls nobody knows yet.
const TICK: Duration = Duration::from_millis(20);

static SESSION: Mutex<Option<HookSession>> = Mutex::new(None);

/// Brought in once in a JVM's life, with the first session.
static CLASS: Mutex<Option<OwnClass>> = Mutex::new(None);

/// Why there are no hooks.
#[derive(Debug)]
pub enum HookError {
    AlreadyOn,
    /// An exact recording is under way.
    Exact,
    Memory,
    Runtime(&'static str),
    Weaving(String),
    /// The stream that is open has no room for more kinds of events, or walks no stacks.
    Stream,
    Open(OpenError),
    Name(String),
    TooMany(usize),
    Jvm(Failure),
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HookError::AlreadyOn => {
                write!(f, "somebody climbs in this JVM already; `tare stop` ends that")
            }
            HookError::Exact => write!(
                f,
                "an exact recording has methods of this JVM woven; end that first, or ask it: it \
                 knows all callers"
            ),
            HookError::Memory => write!(f, "no memory for hooks"),
            HookError::Runtime(why) => write!(f, "{why}"),
            HookError::Weaving(why) => write!(f, "no methods can be woven: {why}"),
            HookError::Stream => write!(
                f,
                "the samples under way leave no room for hooks, or are taken at safepoints"
            ),
            HookError::Open(e) => write!(f, "{e}"),
            HookError::Name(name) => {
                write!(f, "{name:?} is no method; one is named com/acme/Orders.place(I)V")
            }
            HookError::TooMany(count) => write!(f, "{count} hooks at once are too many"),
            HookError::Jvm(failure) => write!(f, "{failure}"),
        }
    }
}

impl From<OpenError> for HookError {
    fn from(error: OpenError) -> Self {
        HookError::Open(error)
    }
}

impl From<HookError> for EngineError {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Jvm(failure) => EngineError::Jvm(failure),
            other => EngineError::Refused(other.to_string()),
        }
    }
}

fn session() -> MutexGuard<'static, Option<HookSession>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether methods may have hooks, so that no other engine may weave them.
pub fn is_on() -> bool {
    session().is_some()
}

/// The class that woven code calls, and the ids of its methods, sorted.
fn class(jvm: Jvm) -> Result<(OwnClass, Vec<u64>), &'static str> {
    let mut class = CLASS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = match *class {
        Some(known) => known,
        None => {
            let made = inject::apart(jvm.jni, inject::HOOKS)?;
            jvm.jni.initialise(made);
            *class.insert(made)
        }
    };
    let mut ids = jvm.jvmti.method_ids(known.class()).unwrap_or_default();
    ids.sort_unstable();
    Ok((known, ids))
}

pub struct Hooks;

impl Engine for Hooks {
    fn name(&self) -> EngineName {
        EngineName::Hooks
    }

    fn start(
        &self,
        jvm: Jvm,
        plan: &EnginePlan,
        _: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError> {
        let EnginePlan::Hooks(plan) = plan else {
            return Err(EngineError::misdirected(self.name()));
        };
        let mut session = session();
        if session.is_some() {
            return Err(HookError::AlreadyOn.into());
        }
        if foreign::is_recording() {
            return Err(HookError::Exact.into());
        }
        if let Some(why) = foreign::refusal(jvm.jvmti) {
            return Err(HookError::Weaving(why.into()).into());
        }
        let (new, files) = HookSession::start(jvm, plan)?;
        *session = Some(new);
        Ok(files)
    }

    fn change(
        &self,
        jvm: Jvm,
        change: &EngineChange,
        between: &mut Between<'_>,
    ) -> Result<(), EngineError> {
        let EngineChange::Hooks { methods, waiting } = change else {
            return Err(EngineError::misdirected(self.name()));
        };
        // Nobody may have it while others are answered between two steps.
        let is_woven = session().as_ref().is_some_and(|s| s.is_woven(methods, waiting));
        let now = methods.len() + waiting.len();
        let step = Step { activity: Activity::Weaving, done: 0, now, all: now, methods: 0 };
        if !is_woven && !between(step) {
            return Ok(());
        }
        match session().as_mut() {
            Some(session) => session.change(jvm, methods, waiting).map_err(Into::into),
            None => Ok(()),
        }
    }

    fn stop(&self, jvm: Jvm, between: &mut Between<'_>) {
        let step = Step { activity: Activity::Restoring, done: 0, now: 1, all: 1, methods: 0 };
        if is_on() {
            between(step);
        }
        let session = session().take();
        if let Some(mut session) = session {
            session.end(jvm);
        }
    }

    fn status(&self) -> Option<EngineStatus> {
        let status = session().as_ref().map(HookSession::status)?;
        Some(EngineStatus::Hooks(Box::new(status)))
    }

    fn uses_stream(&self) -> bool {
        true
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(session().as_ref().map_or(TICK, HookSession::tick_every))
    }

    fn tick(&self, jvm: Jvm) {
        if let Some(session) = session().as_mut() {
            session.tick(jvm);
        }
    }
}
