//! Classes that are loaded, linked and unloaded: by which loader, why, and what it took.
//!
//! Who does what: the JVM tells of loaded and linked classes on the thread that needs them
//! (`shared`), which walks its stack and appends to the stream. `mirrors` has a number for each class
//! and tells when one is gone. The control thread (`session`) begins and ends, and tells of the
//! classes that were there before.
//!
//! A session belongs to a connection; there is one at a time.

mod mirrors;
mod session;
mod shared;

use crate::engines::{EngineError, Jvm};
use crate::events::Subscriber;
use crate::stream::engine::{Of, Session};
use crate::stream::joined::OpenError;
use session::ClassSession;
use std::fmt;
use std::fs::File;
use std::sync::Mutex;
use std::time::Duration;
use tare_protocol::{ClassPlan, EngineChange, EngineName, EnginePlan, EngineStatus};

/// How often the stream is looked after.
const TICK: Duration = Duration::from_millis(20);

static SESSION: Mutex<Option<ClassSession>> = Mutex::new(None);

/// Why a session did not begin.
#[derive(Debug)]
pub enum ClassError {
    AlreadyOn,
    /// The stream that is open has no room for more kinds of events, or walks no stacks.
    Stream,
    Open(OpenError),
}

impl fmt::Display for ClassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassError::AlreadyOn => {
                write!(f, "classes of this JVM are being recorded already; end that first")
            }
            ClassError::Stream => {
                write!(
                    f,
                    "the samples under way leave no room for classes, or are taken at safepoints; \
                     record classes by themselves"
                )
            }
            ClassError::Open(e) => write!(f, "{e}"),
        }
    }
}

impl From<OpenError> for ClassError {
    fn from(error: OpenError) -> Self {
        ClassError::Open(error)
    }
}

impl From<ClassError> for EngineError {
    fn from(error: ClassError) -> Self {
        EngineError::Refused(error.to_string())
    }
}

/// Tells what the JVM has summed up by now: it is about to end.
pub fn last_sums() {
    shared::with_session(|shared| shared.tell_sums(true));
}

pub type Classes = Of<ClassSession>;

impl Session for ClassSession {
    const NAME: EngineName = EngineName::Classes;
    const TICK: Duration = TICK;
    type Plan = ClassPlan;
    type Error = ClassError;

    fn place() -> &'static Mutex<Option<Self>> {
        &SESSION
    }

    fn subscriber() -> &'static Subscriber {
        &session::SUBSCRIBER
    }

    fn plan(plan: &EnginePlan) -> Option<&ClassPlan> {
        match plan {
            EnginePlan::Classes(plan) => Some(plan),
            _ => None,
        }
    }

    fn already_on() -> ClassError {
        ClassError::AlreadyOn
    }

    fn start(jvm: Jvm, plan: &ClassPlan) -> Result<(Self, Vec<File>), ClassError> {
        ClassSession::start(jvm, plan)
    }

    fn change(&mut self, _: Jvm, change: &EngineChange) -> Option<Result<(), ClassError>> {
        let EngineChange::Classes { paused } = change else { return None };
        self.pause(*paused);
        Some(Ok(()))
    }

    fn end(&mut self, jvm: Jvm) {
        ClassSession::end(self, jvm);
    }

    fn status(&self) -> EngineStatus {
        EngineStatus::Classes(Box::new(ClassSession::status(self)))
    }

    fn tick(&mut self, jvm: Jvm) {
        ClassSession::tick(self, jvm);
    }
}
