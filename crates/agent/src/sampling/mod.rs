//! Sampling: every thread tells from time to time where it is.
//!
//! Who does what: timers, perf events or the sampler thread (`armer`, `sampler`) raise a signal on
//! a thread; its handler (`handler`) walks the stack (`crate::stacks`) and appends to the shared
//! memory (`crate::stream`); the control thread looks after the session (`session`).
//!
//! A session belongs to a connection; there is one at a time.

mod armer;
mod arming;
mod handler;
mod interruption;
mod perf;
mod sampler;
mod session;

pub use handler::install as install_handler;

use crate::engines::{Between, Engine, EngineError, Jvm};
use crate::jvm::Failure;
use crate::stacks::StacksError;
use crate::stream;
use session::SamplingSession;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};
use tare_protocol::{EngineChange, EngineName, EnginePlan, EngineStatus};

/// How often the stream is looked after: names of methods, and memory that was read. Less often where
/// a thread's samples are as far apart, since each look wakes a thread.
const TICK: Duration = Duration::from_millis(20);
const CALM_TICK: Duration = Duration::from_millis(50);

static SESSION: Mutex<Option<SamplingSession>> = Mutex::new(None);

/// Why a session did not begin.
#[derive(Debug)]
pub enum SamplingError {
    AlreadyOn,
    /// The stream was opened by an engine that cannot share it with a sampler that comes later.
    StreamOpen,
    /// This JVM does not say where something is.
    Unknown(String),
    Engine(String),
    Memory(io::Error),
    Signal(io::Error),
    Thread(io::Error),
    Jvmti(Failure),
}

impl fmt::Display for SamplingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SamplingError::AlreadyOn => {
                write!(f, "a sampling session of this JVM is already under way; end that one first")
            }
            SamplingError::StreamOpen => {
                write!(
                    f,
                    "allocations or locks of this JVM are being recorded; sampling can only be started \
                     before them: end that recording, and ask for both at once \
                     (`tare record --alloc --cpu`)"
                )
            }
            SamplingError::Unknown(what) => {
                write!(
                    f,
                    "this JVM does not tell where to find {what}, so stacks cannot be walked; \
                     `--engine safepoint` needs none of it"
                )
            }
            SamplingError::Engine(why) => write!(f, "{why}"),
            SamplingError::Memory(e) => write!(f, "no memory for samples: {e}"),
            SamplingError::Signal(e) => write!(f, "no signal handler can be installed: {e}"),
            SamplingError::Thread(e) => write!(f, "no thread for sampling: {e}"),
            SamplingError::Jvmti(failure) => write!(f, "{failure}"),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<StacksError> for SamplingError {
    fn from(error: StacksError) -> Self {
        match error {
            StacksError::Guard(e) => SamplingError::Signal(e),
            StacksError::Memory(e) => SamplingError::Memory(e),
        }
    }
}

impl From<SamplingError> for EngineError {
    fn from(error: SamplingError) -> Self {
        EngineError::Refused(error.to_string())
    }
}

pub struct Sampling;

impl Engine for Sampling {
    fn name(&self) -> EngineName {
        EngineName::Sampling
    }

    fn start(
        &self,
        jvm: Jvm,
        plan: &EnginePlan,
        _: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError> {
        let EnginePlan::Sampling(plan) = plan else {
            return Err(EngineError::misdirected(self.name()));
        };
        let mut session = locked(&SESSION);
        if session.is_some() {
            return Err(SamplingError::AlreadyOn.into());
        }
        if stream::is_open() {
            return Err(SamplingError::StreamOpen.into());
        }
        let (mut new, files) = SamplingSession::new(jvm, (**plan).clone())?;
        new.begin(jvm).inspect_err(|_| new.end(jvm))?;
        *session = Some(new);
        Ok(files.into())
    }

    fn change(
        &self,
        _: Jvm,
        change: &EngineChange,
        _: &mut Between<'_>,
    ) -> Result<(), EngineError> {
        let EngineChange::Sampling { interval_ns, paused } = change else {
            return Err(EngineError::misdirected(self.name()));
        };
        if let Some(session) = locked(&SESSION).as_ref() {
            session.change(*interval_ns, *paused);
        }
        Ok(())
    }

    fn stop(&self, jvm: Jvm, _: &mut Between<'_>) {
        let session = locked(&SESSION).take();
        if let Some(mut session) = session {
            session.end(jvm);
        }
    }

    fn status(&self) -> Option<EngineStatus> {
        let status = locked(&SESSION).as_ref().map(SamplingSession::status)?;
        Some(EngineStatus::Sampling(Box::new(status)))
    }

    fn uses_stream(&self) -> bool {
        true
    }

    fn yields(&self) -> bool {
        locked(&SESSION).as_ref().is_some_and(SamplingSession::yields)
    }

    fn tick_every(&self) -> Option<Duration> {
        let interval = locked(&SESSION).as_ref().map_or(Duration::ZERO, SamplingSession::interval);
        Some(if interval < TICK { TICK } else { CALM_TICK })
    }

    fn tick(&self, jvm: Jvm) {
        if let Some(session) = locked(&SESSION).as_mut() {
            session.tick(jvm);
        }
    }
}
