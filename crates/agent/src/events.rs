//! Which events are on, and for how many engines: an event goes off with the last one that wants
//! it, not with the first that has had enough.

use crate::jvm::{Failure, Jvmti};
use jvmti_bindings::sys::jvmti::jvmtiEvent;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

static WANTED: Mutex<BTreeMap<jvmtiEvent, u32>> = Mutex::new(BTreeMap::new());

/// Switches an event on for one engine.
pub fn on(jvmti: Jvmti, event: jvmtiEvent) -> Result<(), Failure> {
    let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = wanted.entry(event).or_default();
    if *count == 0 {
        jvmti.event(event, true)?;
    }
    *count += 1;
    Ok(())
}

/// The engine that had switched it on wants it no more.
pub fn off(jvmti: Jvmti, event: jvmtiEvent) {
    let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = wanted.entry(event).or_default();
    *count = count.saturating_sub(1);
    if *count == 0 {
        // A JVM that refuses this is about to end.
        let _ = jvmti.event(event, false);
    }
}

/// Events that are on for one engine.
#[must_use]
pub struct Enabled(Vec<jvmtiEvent>);

impl Enabled {
    pub fn off(self, jvmti: Jvmti) {
        self.0.into_iter().for_each(|event| off(jvmti, event));
    }
}

/// Switches several on for one engine; after a failure none of them is.
pub fn enable(
    jvmti: Jvmti,
    events: impl IntoIterator<Item = jvmtiEvent>,
) -> Result<Enabled, Failure> {
    let mut done = Enabled(Vec::new());
    for event in events {
        match on(jvmti, event) {
            Ok(()) => done.0.push(event),
            Err(failure) => {
                done.off(jvmti);
                return Err(failure);
            }
        }
    }
    Ok(done)
}

/// All are off, with the environment that they belonged to.
pub fn forget() {
    WANTED.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
