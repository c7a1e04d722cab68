//! Waits for locks: how long, for which lock, who had it and what that thread did.
//!
//! Who does what: the JVM tells of waits for monitors (`monitor`). A source of waits looks up who
//! has the lock (`owner`), notes the wait by its thread (`waits`), and takes it out when it is over;
//! `shared` has what all of them use, and tells the stream. The control thread (`session`) begins
//! and ends, and sends the sums of what was too short to be told.
//!
//! A session belongs to a connection; there is one at a time.

mod monitor;
pub mod owner;
pub mod parks;
mod session;
pub mod shared;
pub mod waits;

use crate::engines::{EngineError, Jvm};
use crate::events::Subscriber;
use crate::stream::engine::{Of, Session};
use crate::stream::joined::OpenError;
use session::LockSession;
use std::fmt;
use std::fs::File;
use std::sync::Mutex;
use std::time::Duration;
use tare_protocol::{EngineChange, EngineName, EnginePlan, EngineStatus, LockPlan};

/// How often the stream is looked after. Nobody waits for it: front ends read the ring themselves.
const TICK: Duration = Duration::from_millis(50);

static SESSION: Mutex<Option<LockSession>> = Mutex::new(None);

/// Why a session did not begin.
#[derive(Debug)]
pub enum LockError {
    AlreadyOn,
    /// The stream that is open has no room for more kinds of events, or walks no stacks.
    Stream,
    Open(OpenError),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::AlreadyOn => {
                write!(f, "locks of this JVM are being recorded already; end that first")
            }
            LockError::Stream => {
                write!(
                    f,
                    "the samples under way leave no room for locks, or are taken at safepoints; \
                     record locks by themselves"
                )
            }
            LockError::Open(e @ OpenError::Unknown(_)) => {
                write!(f, "{e}; `tare threads` shows who waits for whom at one moment")
            }
            LockError::Open(e) => write!(f, "{e}"),
        }
    }
}

impl From<OpenError> for LockError {
    fn from(error: OpenError) -> Self {
        LockError::Open(error)
    }
}

impl From<LockError> for EngineError {
    fn from(error: LockError) -> Self {
        EngineError::Refused(error.to_string())
    }
}

pub type Locks = Of<LockSession>;

impl Session for LockSession {
    const NAME: EngineName = EngineName::Locks;
    const TICK: Duration = TICK;
    type Plan = LockPlan;
    type Error = LockError;

    fn place() -> &'static Mutex<Option<Self>> {
        &SESSION
    }

    fn subscriber() -> &'static Subscriber {
        &monitor::SUBSCRIBER
    }

    fn plan(plan: &EnginePlan) -> Option<&LockPlan> {
        match plan {
            EnginePlan::Locks(plan) => Some(plan),
            _ => None,
        }
    }

    fn already_on() -> LockError {
        LockError::AlreadyOn
    }

    fn start(jvm: Jvm, plan: &LockPlan) -> Result<(Self, Vec<File>), LockError> {
        LockSession::start(jvm, plan)
    }

    fn change(&mut self, _: Jvm, change: &EngineChange) -> Option<Result<(), LockError>> {
        let EngineChange::Locks { threshold_ns, paused } = change else { return None };
        LockSession::change(self, *threshold_ns, *paused);
        Some(Ok(()))
    }

    fn end(&mut self, jvm: Jvm) {
        LockSession::end(self, jvm);
    }

    fn status(&self) -> EngineStatus {
        EngineStatus::Locks(Box::new(LockSession::status(self)))
    }

    fn tick(&mut self, jvm: Jvm) {
        LockSession::tick(self, jvm);
    }
}
