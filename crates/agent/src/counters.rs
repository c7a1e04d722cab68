//! The event counters: threads, classes, collections and compilations while somebody watches.
//!
//! The cheapest engine: each event is one atomic addition. Off means that the JVM does not call
//! us at all and that the capabilities are given back.

use crate::events::{self, Enabled, Subscriber};
use crate::jvm::{Failure, Jvmti};
use crate::kernel;
use jvmti_bindings::sys::jvmti::{self, jvmtiCapabilities, jvmtiEvent};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tare_protocol::EventCounts;

static THREADS_STARTED: AtomicU64 = AtomicU64::new(0);
static THREADS_ENDED: AtomicU64 = AtomicU64::new(0);
static CLASSES_PREPARED: AtomicU64 = AtomicU64::new(0);
static COLLECTIONS: AtomicU64 = AtomicU64::new(0);
static COLLECTION_NS: AtomicU64 = AtomicU64::new(0);
static COLLECTION_BEGAN: AtomicU64 = AtomicU64::new(0);
static ENABLED: Mutex<Option<Enabled>> = Mutex::new(None);
static METHODS_COMPILED: AtomicU64 = AtomicU64::new(0);

const COUNTERS: [&AtomicU64; 7] = [
    &THREADS_STARTED,
    &THREADS_ENDED,
    &CLASSES_PREPARED,
    &COLLECTIONS,
    &COLLECTION_NS,
    &COLLECTION_BEGAN,
    &METHODS_COMPILED,
];

const EVENTS: [jvmtiEvent; 6] = [
    jvmti::JVMTI_EVENT_THREAD_START,
    jvmti::JVMTI_EVENT_THREAD_END,
    jvmti::JVMTI_EVENT_CLASS_PREPARE,
    jvmti::JVMTI_EVENT_GARBAGE_COLLECTION_START,
    jvmti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
    jvmti::JVMTI_EVENT_COMPILED_METHOD_LOAD,
];

fn capabilities() -> jvmtiCapabilities {
    let mut set = jvmtiCapabilities::default();
    set.set_can_generate_garbage_collection_events(true);
    set.set_can_generate_compiled_method_load_events(true);
    set
}

pub static SUBSCRIBER: Subscriber = Subscriber {
    thread_start: |_, _| count(&THREADS_STARTED),
    thread_end: |_, _| count(&THREADS_ENDED),
    class_prepare: |_, _, _| count(&CLASSES_PREPARED),
    compiled_method_load: |_| count(&METHODS_COMPILED),
    collection_start,
    collection_finish,
    ..Subscriber::NONE
};

/// Starts counting, from zero. After a failure nothing is left on.
pub fn on(jvmti: Jvmti) -> Result<(), Failure> {
    for counter in COUNTERS {
        counter.store(0, Relaxed);
    }
    jvmti.add_capabilities(&capabilities())?;
    let enabled = events::enable(jvmti, &SUBSCRIBER, EVENTS).inspect_err(|_| {
        let _ = jvmti.relinquish_capabilities(&capabilities());
    })?;
    *ENABLED.lock().unwrap_or_else(PoisonError::into_inner) = Some(enabled);
    Ok(())
}

/// Stops counting; the figures stay readable.
pub fn off(jvmti: Jvmti) {
    if let Some(enabled) = ENABLED.lock().unwrap_or_else(PoisonError::into_inner).take() {
        enabled.off(jvmti);
        let _ = jvmti.relinquish_capabilities(&capabilities());
    }
}

pub fn read() -> EventCounts {
    EventCounts {
        threads_started: THREADS_STARTED.load(Relaxed),
        threads_ended: THREADS_ENDED.load(Relaxed),
        classes_prepared: CLASSES_PREPARED.load(Relaxed),
        collections: COLLECTIONS.load(Relaxed),
        collection_ns: COLLECTION_NS.load(Relaxed),
        methods_compiled: METHODS_COMPILED.load(Relaxed),
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

fn collection_start() {
    COLLECTION_BEGAN.store(kernel::monotonic(), Relaxed);
}

fn collection_finish() {
    let began = COLLECTION_BEGAN.swap(0, Relaxed);
    // A collection that was under way when we came has no beginning for us.
    if began != 0 {
        COLLECTIONS.fetch_add(1, Relaxed);
        COLLECTION_NS.fetch_add(kernel::monotonic().saturating_sub(began), Relaxed);
    }
}
