//! Sampling: every thread tells from time to time where it is.
//!
//! Who does what: timers, perf events or the sampler thread (`armer`, `sampler`) raise a signal
//! on a thread; its handler (`handler`) walks the stack (`crate::stacks`) and appends to the shared memory
//! (`crate::stream`); the control thread looks after the session (`session`) in [`tick`].
//!
//! A session belongs to a connection; there is one at a time.

mod armer;
mod arming;
mod handler;
mod interruption;
mod perf;
mod sampler;
mod session;

use crate::jvm::{Failure, Jni, Jvmti, Vm};
use session::SamplingSession;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, io};
use tare_protocol::{SamplePlan, SampleStatus};

static SESSION: Mutex<Option<SamplingSession>> = Mutex::new(None);

/// Why a session did not begin.
#[derive(Debug)]
pub enum SamplingError {
    AlreadyOn,
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
            SamplingError::Unknown(what) => {
                write!(
                    f,
                    "this JVM does not tell where to find {what}, so stacks cannot be walked; `--engine safepoint` needs none of it"
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

/// Begins a session; the descriptors of its stream.
pub fn start(vm: Vm, jvmti: Jvmti, jni: Jni, plan: SamplePlan) -> Result<[File; 2], SamplingError> {
    let mut session = locked(&SESSION);
    if session.is_some() {
        return Err(SamplingError::AlreadyOn);
    }
    let (mut new, files) = SamplingSession::new(jvmti, jni, plan)?;
    new.begin(vm, jvmti, jni).inspect_err(|_| new.end(jvmti, jni))?;
    *session = Some(new);
    Ok(files)
}

/// Ends the session, if there is one. The stream has all names, and nothing of ours is armed.
pub fn stop(jvmti: Jvmti, jni: Jni) {
    let session = locked(&SESSION).take();
    if let Some(mut session) = session {
        session.end(jvmti, jni);
    }
}

/// To be called several times a second while a session is on.
pub fn tick(jvmti: Jvmti, jni: Jni) {
    if let Some(session) = locked(&SESSION).as_mut() {
        session.tick(jvmti, jni);
    }
}

/// Another interval, a pause, or going on.
pub fn change(interval: Option<u64>, paused: Option<bool>) {
    if let Some(session) = locked(&SESSION).as_ref() {
        session.change(interval, paused);
    }
}

pub fn status() -> Option<SampleStatus> {
    locked(&SESSION).as_ref().map(SamplingSession::status)
}
