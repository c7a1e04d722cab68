//! The event counters: threads, classes, collections and compilations while somebody watches.
//!
//! The cheapest engine: each event is one atomic addition. Off means that the JVM does not call
//! us at all and that the capabilities are given back.

use crate::events;
use crate::exact;
use crate::gate;
use crate::jvm::{Failure, Jni, Jvmti};
use crate::stream;
use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jmethodID, jthread};
use jvmti_bindings::sys::jvmti::{
    self, jvmtiAddrLocationMap, jvmtiCapabilities, jvmtiEnv, jvmtiEvent, jvmtiEventCallbacks,
};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tare_protocol::EventCounts;

static THREADS_STARTED: AtomicU64 = AtomicU64::new(0);
static THREADS_ENDED: AtomicU64 = AtomicU64::new(0);
static CLASSES_PREPARED: AtomicU64 = AtomicU64::new(0);
static COLLECTIONS: AtomicU64 = AtomicU64::new(0);
static COLLECTION_NS: AtomicU64 = AtomicU64::new(0);
static COLLECTION_BEGAN: AtomicU64 = AtomicU64::new(0);
static METHODS_COMPILED: AtomicU64 = AtomicU64::new(0);

/// What there was when counting began. Only the control thread takes it.
static AT_START: Mutex<EventCounts> = Mutex::new(EventCounts::NONE);

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

/// Fills in the callbacks; they are called only between [`on`] and [`off`].
pub fn install(callbacks: &mut jvmtiEventCallbacks) {
    callbacks.ThreadStart = Some(thread_start);
    callbacks.ThreadEnd = Some(thread_end);
    callbacks.ClassPrepare = Some(class_prepare);
    callbacks.GarbageCollectionStart = Some(collection_start);
    callbacks.GarbageCollectionFinish = Some(collection_finish);
    callbacks.CompiledMethodLoad = Some(compiled_method_load);
}

/// Starts counting, from zero. After a failure nothing is left on.
pub fn on(jvmti: Jvmti) -> Result<(), Failure> {
    COLLECTION_BEGAN.store(0, Relaxed);
    *lock() = total();
    jvmti.add_capabilities(&capabilities())?;
    for (done, event) in EVENTS.into_iter().enumerate() {
        if let Err(failure) = events::on(jvmti, event) {
            EVENTS[..done].iter().for_each(|event| events::off(jvmti, *event));
            let _ = jvmti.relinquish_capabilities(&capabilities());
            return Err(failure);
        }
    }
    Ok(())
}

/// Stops counting. Only after [`on`].
pub fn off(jvmti: Jvmti) {
    EVENTS.iter().for_each(|event| events::off(jvmti, *event));
    let _ = jvmti.relinquish_capabilities(&capabilities());
}

/// What came since [`on`].
pub fn read() -> EventCounts {
    total().since(*lock())
}

fn lock() -> MutexGuard<'static, EventCounts> {
    AT_START.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What came in the agent's life, for whichever engine.
pub fn total() -> EventCounts {
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
    gate::enter((), || {
        counter.fetch_add(1, Relaxed);
    });
}

extern "system" fn thread_start(_: *mut jvmtiEnv, jni: *mut JNIEnv, thread: jthread) {
    count(&THREADS_STARTED);
    gate::enter((), || stream::thread_started(Jni(jni), thread));
}

extern "system" fn thread_end(_: *mut jvmtiEnv, jni: *mut JNIEnv, _: jthread) {
    count(&THREADS_ENDED);
    gate::enter((), || {
        exact::thread_ended(Jni(jni));
        stream::thread_ended();
    });
}

extern "system" fn class_prepare(
    jvmti: *mut jvmtiEnv,
    jni: *mut JNIEnv,
    _: jthread,
    class: jclass,
) {
    count(&CLASSES_PREPARED);
    gate::enter((), || {
        stream::class_prepared(Jvmti(jvmti), class);
        exact::class_prepared(Jni(jni), class);
    });
}

extern "system" fn compiled_method_load(
    _: *mut jvmtiEnv,
    method: jmethodID,
    _: jint,
    _: *const c_void,
    _: jint,
    _: *const jvmtiAddrLocationMap,
    _: *const c_void,
) {
    count(&METHODS_COMPILED);
    gate::enter((), || exact::compiled(method));
}

// The two collection events come while the world stands still: no call into the JVM, no lock.

extern "system" fn collection_start(_: *mut jvmtiEnv) {
    gate::enter((), || COLLECTION_BEGAN.store(now_ns(), Relaxed));
}

extern "system" fn collection_finish(_: *mut jvmtiEnv) {
    gate::enter((), || {
        let began = COLLECTION_BEGAN.swap(0, Relaxed);
        // A collection that was under way when we came has no beginning for us.
        if began != 0 {
            COLLECTIONS.fetch_add(1, Relaxed);
            COLLECTION_NS.fetch_add(now_ns().saturating_sub(began), Relaxed);
        }
    });
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local; this clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
