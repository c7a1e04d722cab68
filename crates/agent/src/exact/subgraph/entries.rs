//! Where the JVM, the probes and the control thread come in: each finds the session that is on, if
//! it looks for what roots reach, and passes on what has happened.

use super::super::{Between, recording, rules};
use super::Subgraph;
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::{jclass, jobject};
use std::os::fd::RawFd;
use tare_protocol::{Explanations, MethodPattern};

/// Called on a thread that has just made a class ready.
pub fn class_prepared(jni: Jni, class: jclass) {
    let Some(recording) = recording() else { return };
    recording.prepared(class);
    if let Some(subgraph) = &recording.subgraph {
        subgraph.prepared(jni, class);
    }
}

/// Called on a thread that has just loaded a class.
pub fn class_loaded(jni: Jni, class: jclass) {
    if let Some(recording) = recording()
        && let Some(subgraph) = &recording.subgraph
    {
        subgraph.loaded(jni, class);
    }
}

/// Called by the probes when a method runs in a new context and may run for the first time.
pub fn first(jni: Jni, id: i32) {
    if let Some(recording) = recording()
        && let Some(subgraph) = &recording.subgraph
        && let Ok(id) = u32::try_from(id)
    {
        subgraph.first(jni, id);
    }
}

/// Called by the probes when a method is called by reflection, or a handle to one is made.
pub fn revealed(jni: Jni, member: jobject, wait: bool) -> bool {
    recording().is_some_and(|recording| {
        let subgraph = recording.subgraph.as_ref();
        let seen = jni.frame(|| subgraph.is_some_and(|s| s.reveal(jni, member, wait)));
        seen == Some(true)
    })
}

/// What the search for what the roots reach knows of the methods that fit.
pub fn explain(pattern: &MethodPattern) -> Option<Explanations> {
    let recording = recording()?;
    let subgraph = recording.subgraph.as_ref()?;
    Some(subgraph.explain(pattern, |name| rules::why_outside(&recording.plan, name)))
}

/// Readable when there is weaving to do.
pub fn bell() -> Option<RawFd> {
    recording()?.subgraph.as_ref().map(Subgraph::bell)
}

/// Weaves what has been found to be reachable. For the control thread, when the bell rings. What is
/// left when `between` ends it stays: the session is about to end.
pub fn work(jni: Jni, between: &mut Between<'_>) {
    if let Some(recording) = recording()
        && let Some(subgraph) = &recording.subgraph
    {
        subgraph.work(&recording, jni, between);
    }
}
