//! Every callback of the JVM, and the table of them. Each finds who wants its event and calls
//! those, inside the gate.
//!
//! A new event gets a function here, a line in the table and one in
//! [`Subscriber`](super::Subscriber).

use super::class_hook::{self, ClassHook, LoadedClass};
use super::extensions::Extension;
use super::{Subscriber, who_wants};
use crate::gate;
use crate::jvm::{Jni, Jvmti};
use crate::lifecycle;
use jvmti_bindings::sys::jni::{
    JNIEnv, jboolean, jclass, jint, jlong, jmethodID, jobject, jthread,
};
use jvmti_bindings::sys::jvmti::{self, jvmtiAddrLocationMap, jvmtiEnv, jvmtiEventCallbacks};
use std::borrow::Cow;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The table. No event in it is on yet.
pub fn table() -> jvmtiEventCallbacks {
    let mut table = jvmtiEventCallbacks::default();
    table.VMInit = Some(vm_init);
    table.VMDeath = Some(vm_death);
    table.ThreadStart = Some(thread_start);
    table.ThreadEnd = Some(thread_end);
    table.ClassFileLoadHook = Some(class_hook::callback::<ToSubscribers>);
    table.ClassLoad = Some(class_load);
    table.ClassPrepare = Some(class_prepare);
    table.CompiledMethodLoad = Some(compiled_method_load);
    table.CompiledMethodUnload = Some(compiled_method_unload);
    table.MonitorContendedEnter = Some(monitor_contended_enter);
    table.MonitorContendedEntered = Some(monitor_contended_entered);
    table.MonitorWait = Some(monitor_wait);
    table.MonitorWaited = Some(monitor_waited);
    table.SampledObjectAlloc = Some(sampled_allocation);
    table.GarbageCollectionStart = Some(collection_start);
    table.GarbageCollectionFinish = Some(collection_finish);
    table
}

/// What the JVM is to call for an event of its own, and the event's name there.
pub fn of_extension(extension: Extension) -> (&'static CStr, OfThread) {
    match extension {
        Extension::VirtualThreadUnmount => {
            (c"com.sun.hotspot.events.VirtualThreadUnmount", virtual_thread_unmount)
        }
        Extension::VirtualThreadMount => {
            (c"com.sun.hotspot.events.VirtualThreadMount", virtual_thread_mount)
        }
    }
}

/// A callback that is told of a thread.
pub type OfThread = extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, jthread);

/// Events that the JVM has told us of.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// How many events the JVM has told us of since the library was loaded; while none is on, none
/// come.
pub fn told() -> u64 {
    TOLD.load(Relaxed)
}

/// Calls one function of all who want an event; a panic of one is not the others'.
macro_rules! tell {
    ($event:ident, $function:ident $(, $argument:expr)*) => {
        tell(who_wants(jvmti::$event), |subscriber| (subscriber.$function)($($argument),*));
    };
}

fn tell(who: impl Iterator<Item = &'static Subscriber>, work: impl Fn(&Subscriber)) {
    TOLD.fetch_add(1, Relaxed);
    for subscriber in who {
        gate::enter((), || work(subscriber));
    }
}

extern "system" fn vm_init(_: *mut jvmtiEnv, _: *mut JNIEnv, _: jthread) {
    gate::enter((), lifecycle::vm_init);
}

extern "system" fn vm_death(env: *mut jvmtiEnv, jni: *mut JNIEnv) {
    lifecycle::vm_death(Jvmti(env), Jni(jni));
}

extern "system" fn thread_start(_: *mut jvmtiEnv, jni: *mut JNIEnv, thread: jthread) {
    tell!(JVMTI_EVENT_THREAD_START, thread_start, Jni(jni), thread);
}

extern "system" fn thread_end(_: *mut jvmtiEnv, jni: *mut JNIEnv, thread: jthread) {
    tell!(JVMTI_EVENT_THREAD_END, thread_end, Jni(jni), thread);
}

extern "system" fn class_load(_: *mut jvmtiEnv, jni: *mut JNIEnv, _: jthread, class: jclass) {
    tell!(JVMTI_EVENT_CLASS_LOAD, class_load, Jni(jni), class);
}

extern "system" fn class_prepare(env: *mut jvmtiEnv, jni: *mut JNIEnv, _: jthread, class: jclass) {
    tell!(JVMTI_EVENT_CLASS_PREPARE, class_prepare, Jvmti(env), Jni(jni), class);
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
    tell!(JVMTI_EVENT_COMPILED_METHOD_LOAD, compiled_method_load, method);
}

extern "system" fn compiled_method_unload(_: *mut jvmtiEnv, method: jmethodID, _: *const c_void) {
    tell!(JVMTI_EVENT_COMPILED_METHOD_UNLOAD, compiled_method_unload, method);
}

extern "system" fn monitor_contended_enter(
    _: *mut jvmtiEnv,
    jni: *mut JNIEnv,
    _: jthread,
    object: jobject,
) {
    tell!(JVMTI_EVENT_MONITOR_CONTENDED_ENTER, monitor_contended_enter, Jni(jni), object);
}

extern "system" fn monitor_contended_entered(
    _: *mut jvmtiEnv,
    jni: *mut JNIEnv,
    _: jthread,
    object: jobject,
) {
    tell!(JVMTI_EVENT_MONITOR_CONTENDED_ENTERED, monitor_contended_entered, Jni(jni), object);
}

extern "system" fn monitor_wait(
    _: *mut jvmtiEnv,
    jni: *mut JNIEnv,
    _: jthread,
    object: jobject,
    _: jlong,
) {
    tell!(JVMTI_EVENT_MONITOR_WAIT, monitor_wait, Jni(jni), object);
}

extern "system" fn monitor_waited(
    _: *mut jvmtiEnv,
    jni: *mut JNIEnv,
    _: jthread,
    object: jobject,
    _: jboolean,
) {
    tell!(JVMTI_EVENT_MONITOR_WAITED, monitor_waited, Jni(jni), object);
}

extern "C" fn virtual_thread_unmount(_: *mut jvmtiEnv, jni: *mut JNIEnv, thread: jthread) {
    let who = Extension::VirtualThreadUnmount.who_wants();
    tell(who, |subscriber| (subscriber.virtual_thread_unmount)(Jni(jni), thread));
}

extern "C" fn virtual_thread_mount(_: *mut jvmtiEnv, jni: *mut JNIEnv, thread: jthread) {
    let who = Extension::VirtualThreadMount.who_wants();
    tell(who, |subscriber| (subscriber.virtual_thread_mount)(Jni(jni), thread));
}

extern "system" fn sampled_allocation(
    env: *mut jvmtiEnv,
    jni: *mut JNIEnv,
    _: jthread,
    object: jobject,
    class: jclass,
    size: jlong,
) {
    let (tool, jni) = (Jvmti(env), Jni(jni));
    tell!(JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, sampled_allocation, tool, jni, object, class, size);
}

extern "system" fn collection_start(_: *mut jvmtiEnv) {
    tell!(JVMTI_EVENT_GARBAGE_COLLECTION_START, collection_start);
}

extern "system" fn collection_finish(_: *mut jvmtiEnv) {
    tell!(JVMTI_EVENT_GARBAGE_COLLECTION_FINISH, collection_finish);
}

/// The hook of our main environment: each subscriber gets what the one before it made of a class.
enum ToSubscribers {}

impl ClassHook for ToSubscribers {
    fn changed(class: &LoadedClass<'_>) -> Option<Vec<u8>> {
        TOLD.fetch_add(1, Relaxed);
        let mut bytes = Cow::Borrowed(class.bytes);
        for subscriber in who_wants(jvmti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK) {
            let class = LoadedClass { bytes: &bytes, ..*class };
            if let Some(changed) = gate::enter(None, || (subscriber.class_file_load)(&class)) {
                bytes = Cow::Owned(changed);
            }
        }
        match bytes {
            Cow::Owned(changed) => Some(changed),
            Cow::Borrowed(_) => None,
        }
    }
}
