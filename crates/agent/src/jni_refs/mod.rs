//! Global and weak global references of native code: who makes them, and which are never deleted.
//!
//! Who does what: our functions stand in the JVM's table of JNI functions (`hook`). The thread that
//! makes a reference walks its stack, native and Java frames, and counts it at its site (`shared`).
//! The control thread (`session`) begins and ends, and tells what has changed.
//!
//! A session belongs to a connection; there is one at a time.

mod hook;
mod session;
mod shared;

use crate::engines::{EngineError, Jvm};
use crate::stream::engine::{Of, Session};
use crate::stream::joined::OpenError;
use session::JniRefsSession;
use std::fmt;
use std::fs::File;
use std::sync::Mutex;
use std::time::Duration;
use tare_protocol::{EngineChange, EngineName, EnginePlan, EngineStatus, JniRefsPlan};

/// How often the stream is looked after.
const TICK: Duration = Duration::from_millis(20);

static SESSION: Mutex<Option<JniRefsSession>> = Mutex::new(None);

/// Why a session did not begin.
#[derive(Debug)]
pub enum JniRefsError {
    AlreadyOn,
    /// The stream that is open has no room for more kinds of events, or walks no stacks.
    Stream,
    Open(OpenError),
}

impl fmt::Display for JniRefsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JniRefsError::AlreadyOn => {
                write!(f, "references of this JVM are being recorded already; end that first")
            }
            JniRefsError::Stream => {
                write!(
                    f,
                    "the samples under way leave no room for references, or are taken at safepoints; \
                     record references by themselves"
                )
            }
            JniRefsError::Open(e) => write!(f, "{e}"),
        }
    }
}

impl From<OpenError> for JniRefsError {
    fn from(error: OpenError) -> Self {
        JniRefsError::Open(error)
    }
}

impl From<JniRefsError> for EngineError {
    fn from(error: JniRefsError) -> Self {
        EngineError::Refused(error.to_string())
    }
}

/// Tells what has changed: the JVM is about to end.
pub fn last() {
    if let Ok(session) = SESSION.try_lock()
        && let Some(session) = session.as_ref()
    {
        session.last();
    }
}

pub type JniRefs = Of<JniRefsSession>;

impl Session for JniRefsSession {
    const NAME: EngineName = EngineName::JniRefs;
    const TICK: Duration = TICK;
    type Plan = JniRefsPlan;
    type Error = JniRefsError;

    fn place() -> &'static Mutex<Option<Self>> {
        &SESSION
    }

    fn plan(plan: &EnginePlan) -> Option<&JniRefsPlan> {
        match plan {
            EnginePlan::JniRefs(plan) => Some(plan),
            _ => None,
        }
    }

    fn already_on() -> JniRefsError {
        JniRefsError::AlreadyOn
    }

    fn start(jvm: Jvm, plan: &JniRefsPlan) -> Result<(Self, Vec<File>), JniRefsError> {
        JniRefsSession::start(jvm, plan)
    }

    fn change(&mut self, _: Jvm, change: &EngineChange) -> Option<Result<(), JniRefsError>> {
        let EngineChange::JniRefs { paused } = change else { return None };
        self.pause(*paused);
        Some(Ok(()))
    }

    fn end(&mut self, jvm: Jvm) {
        JniRefsSession::end(self, jvm);
    }

    fn status(&self) -> EngineStatus {
        EngineStatus::JniRefs(Box::new(JniRefsSession::status(self)))
    }

    fn tick(&mut self, jvm: Jvm) {
        JniRefsSession::tick(self, jvm);
    }
}
