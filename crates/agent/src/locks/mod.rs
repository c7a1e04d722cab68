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

use crate::engines::{Between, Engine, EngineError, Jvm};
use crate::events::Subscriber;
use crate::jvm::Failure;
use crate::stacks::StacksError;
use crate::stream::joined::OpenError;
use session::LockSession;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};
use tare_protocol::{EngineChange, EngineName, EnginePlan, EngineStatus};

/// How often sums are sent, and the stream is looked after.
const TICK: Duration = Duration::from_millis(20);

static SESSION: Mutex<Option<LockSession>> = Mutex::new(None);

/// Why a session did not begin.
#[derive(Debug)]
pub enum LockError {
    AlreadyOn,
    /// This JVM does not say where something is.
    Unknown(String),
    /// The stream that is open has no room for more kinds of events, or walks no stacks.
    Stream,
    Signal(io::Error),
    Memory(io::Error),
    Jvmti(Failure),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::AlreadyOn => {
                write!(f, "locks of this JVM are being recorded already; end that first")
            }
            LockError::Unknown(what) => {
                write!(
                    f,
                    "this JVM does not tell where to find {what}, so stacks cannot be walked; \
                     `tare threads` shows who waits for whom at one moment"
                )
            }
            LockError::Stream => {
                write!(
                    f,
                    "the samples under way leave no room for locks, or are taken at safepoints; \
                     record locks by themselves"
                )
            }
            LockError::Signal(e) => write!(f, "no signal handler can be installed: {e}"),
            LockError::Memory(e) => write!(f, "no memory for waits: {e}"),
            LockError::Jvmti(failure) => write!(f, "{failure}"),
        }
    }
}

impl From<OpenError> for LockError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Unknown(what) => LockError::Unknown(what),
            OpenError::Stacks(StacksError::Guard(e)) => LockError::Signal(e),
            OpenError::Stacks(StacksError::Memory(e)) | OpenError::Memory(e) => {
                LockError::Memory(e)
            }
            OpenError::Jvmti(failure) => LockError::Jvmti(failure),
        }
    }
}

impl From<LockError> for EngineError {
    fn from(error: LockError) -> Self {
        EngineError::Refused(error.to_string())
    }
}

fn session() -> MutexGuard<'static, Option<LockSession>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Locks;

impl Engine for Locks {
    fn name(&self) -> EngineName {
        EngineName::Locks
    }

    fn subscriber(&self) -> &'static Subscriber {
        &monitor::SUBSCRIBER
    }

    fn start(
        &self,
        jvm: Jvm,
        plan: &EnginePlan,
        _: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError> {
        let EnginePlan::Locks(plan) = plan else {
            return Err(EngineError::misdirected(self.name()));
        };
        let mut session = session();
        if session.is_some() {
            return Err(LockError::AlreadyOn.into());
        }
        let (new, files) = LockSession::start(jvm, plan)?;
        *session = Some(new);
        Ok(files)
    }

    fn change(
        &self,
        _: Jvm,
        change: &EngineChange,
        _: &mut Between<'_>,
    ) -> Result<(), EngineError> {
        let EngineChange::Locks { threshold_ns, paused } = change else {
            return Err(EngineError::misdirected(self.name()));
        };
        if let Some(session) = session().as_ref() {
            session.change(*threshold_ns, *paused);
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
        let status = session().as_ref().map(LockSession::status)?;
        Some(EngineStatus::Locks(Box::new(status)))
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
