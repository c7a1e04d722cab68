//! The event counters: threads, classes, collections and compilations while somebody watches.
//!
//! The cheapest engine: each event is one atomic addition. Off means that the JVM does not call
//! us at all and that the capabilities are given back.

use crate::engines::{Between, Engine, EngineError, Jvm};
use crate::events::{self, Enabled, Subscriber};
use crate::kernel;
use jvmti_bindings::sys::jvmti::{self, jvmtiEvent};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tare_protocol::{EngineName, EnginePlan, EngineStatus, EventCounts};

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

static SUBSCRIBER: Subscriber = Subscriber {
    thread_start: |_, _| count(&THREADS_STARTED),
    thread_end: |_, _| count(&THREADS_ENDED),
    class_prepare: |_, _, _| count(&CLASSES_PREPARED),
    compiled_method_load: |_| count(&METHODS_COMPILED),
    collection_start,
    collection_finish,
    ..Subscriber::NONE
};

fn enabled() -> MutexGuard<'static, Option<Enabled>> {
    ENABLED.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Counters;

impl Engine for Counters {
    fn name(&self) -> EngineName {
        EngineName::Counters
    }

    fn subscriber(&self) -> &'static Subscriber {
        &SUBSCRIBER
    }

    /// Everybody may watch at once; the figures are those since the first began.
    fn is_shared(&self) -> bool {
        true
    }

    fn start(
        &self,
        jvm: Jvm,
        _: &EnginePlan,
        _: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError> {
        for counter in COUNTERS {
            counter.store(0, Relaxed);
        }
        *enabled() = Some(events::enable(jvm.jvmti, &SUBSCRIBER, EVENTS)?);
        Ok(Vec::new())
    }

    fn stop(&self, jvm: Jvm, _: &mut Between<'_>) {
        if let Some(events) = enabled().take() {
            events.off(jvm.jvmti);
        }
    }

    fn status(&self) -> Option<EngineStatus> {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        enabled().as_ref().map(|_| {
            EngineStatus::Counters(EventCounts {
                threads_started: read(&THREADS_STARTED),
                threads_ended: read(&THREADS_ENDED),
                classes_prepared: read(&CLASSES_PREPARED),
                collections: read(&COLLECTIONS),
                collection_ns: read(&COLLECTION_NS),
                methods_compiled: read(&METHODS_COMPILED),
            })
        })
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
