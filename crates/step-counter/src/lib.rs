//! A JVMTI agent that counts executed bytecodes by single-stepping: the independent witness
//! against which the counts of woven programs are held.
//!
//! It shares no code with Tare, knows nothing of blocks, and is as slow as that sounds. Options:
//! `FILE,PREFIX`. Steps in methods of classes whose signature begins with `L` and PREFIX are
//! counted, and at the end of the JVM FILE gets one line for each: class, method, descriptor and
//! count, separated by tabs. It serves tests, so any failure ends the process with a message.
//!
//! HotSpot posts one event before each bytecode that it interprets, also for one that then throws.
//! A `wide` prefix belongs to the bytecode behind it. Run it with `-Xint`.

use jvmti_bindings::sys::jni::{JNI_OK, JNIEnv, JavaVM, jclass, jint, jmethodID, jthread};
use jvmti_bindings::sys::jvmti::{
    self, jlocation, jvmtiCapabilities, jvmtiEnv, jvmtiError, jvmtiEvent, jvmtiEventCallbacks,
};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::fmt::Write as _;
use std::fs;
use std::ptr;
use std::sync::Mutex;

struct Counter {
    file: String,
    prefix: String,
    /// By method id; `None` for methods that nobody asked about.
    methods: HashMap<usize, Option<Method>>,
}

struct Method {
    class: String,
    name: String,
    descriptor: String,
    steps: u64,
}

static COUNTER: Mutex<Option<Counter>> = Mutex::new(None);

/// Ends the process: a witness that saw only a part must not testify.
fn give_up(what: &str) -> ! {
    eprintln!("step counter: {what}");
    std::process::exit(3)
}

fn check(what: &str, error: jvmtiError) {
    if error != jvmti::JVMTI_ERROR_NONE {
        give_up(&format!("{what} answered {error:?}"));
    }
}

/// Calls a function of the JVMTI table.
macro_rules! call {
    ($env:expr, $name:ident $(, $arg:expr)*) => {{
        // SAFETY: `$env` is the environment that the JVM handed out; it is never disposed of.
        let Some(function) = (unsafe { (*(*$env).functions).$name }) else {
            give_up(concat!("there is no ", stringify!($name)))
        };
        // SAFETY: as above; the arguments have the declared types, and every out-pointer refers to
        // a local of the calling function.
        check(stringify!($name), unsafe { function($env $(, $arg)*) })
    }};
}

/// # Safety
/// Called by the JVM, with its own pointer and a NUL-terminated text or null.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    options: *mut c_char,
    _reserved: *mut c_void,
) -> jint {
    if options.is_null() {
        give_up("options FILE,PREFIX are needed");
    }
    // SAFETY: not null, and NUL-terminated by the JVM's promise.
    let options = unsafe { CStr::from_ptr(options) }.to_string_lossy().into_owned();
    let Some((file, prefix)) = options.split_once(',') else {
        give_up("options FILE,PREFIX are needed")
    };
    let counter =
        Counter { file: file.to_owned(), prefix: format!("L{prefix}"), methods: HashMap::new() };
    *COUNTER.lock().unwrap_or_else(|e| e.into_inner()) = Some(counter);

    let mut env: *mut c_void = ptr::null_mut();
    // SAFETY: `vm` is the JVM's own pointer; `env` is a local.
    let code = unsafe { ((**vm).GetEnv)(vm, &raw mut env, jvmti::JVMTI_VERSION_11) };
    if code != JNI_OK || env.is_null() {
        give_up("there is no JVMTI");
    }
    let env: *mut jvmtiEnv = env.cast();
    let mut capabilities = jvmtiCapabilities::default();
    capabilities.set_can_generate_single_step_events(true);
    // With breakpoints possible HotSpot does not fold two bytecodes into one of its own.
    capabilities.set_can_generate_breakpoint_events(true);
    call!(env, AddCapabilities, &raw const capabilities);
    let mut callbacks = jvmtiEventCallbacks::default();
    callbacks.SingleStep = Some(on_step);
    callbacks.VMDeath = Some(on_death);
    let size = size_of::<jvmtiEventCallbacks>() as jint;
    call!(env, SetEventCallbacks, &raw const callbacks, size);
    for event in [jvmti::JVMTI_EVENT_SINGLE_STEP, jvmti::JVMTI_EVENT_VM_DEATH] {
        enable(env, event);
    }
    JNI_OK
}

fn enable(env: *mut jvmtiEnv, event: jvmtiEvent) {
    call!(env, SetEventNotificationMode, jvmti::JVMTI_ENABLE, event, ptr::null_mut());
}

unsafe extern "system" fn on_step(
    env: *mut jvmtiEnv,
    _jni: *mut JNIEnv,
    _thread: jthread,
    method: jmethodID,
    _location: jlocation,
) {
    let mut guard = COUNTER.lock().unwrap_or_else(|e| e.into_inner());
    let Some(counter) = guard.as_mut() else { return };
    let Counter { methods, prefix, .. } = counter;
    let known = methods.entry(method as usize).or_insert_with(|| describe(env, method, prefix));
    if let Some(method) = known {
        method.steps += 1;
    }
}

fn describe(env: *mut jvmtiEnv, method: jmethodID, prefix: &str) -> Option<Method> {
    let mut class: jclass = ptr::null_mut();
    call!(env, GetMethodDeclaringClass, method, &raw mut class);
    let mut signature: *mut c_char = ptr::null_mut();
    call!(env, GetClassSignature, class, &raw mut signature, ptr::null_mut());
    let class = take(env, signature);
    if !class.starts_with(prefix) {
        return None;
    }
    let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
    call!(env, GetMethodName, method, &raw mut name, &raw mut descriptor, ptr::null_mut());
    let class = class.trim_start_matches('L').trim_end_matches(';').to_owned();
    Some(Method { class, name: take(env, name), descriptor: take(env, descriptor), steps: 0 })
}

/// Copies a text of the JVM's and frees it.
fn take(env: *mut jvmtiEnv, text: *mut c_char) -> String {
    // SAFETY: JVMTI returned it as a NUL-terminated text of ours to free.
    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    call!(env, Deallocate, text.cast());
    copy
}

unsafe extern "system" fn on_death(_env: *mut jvmtiEnv, _jni: *mut JNIEnv) {
    let guard = COUNTER.lock().unwrap_or_else(|e| e.into_inner());
    let Some(counter) = guard.as_ref() else { return };
    let mut lines = String::new();
    for method in counter.methods.values().flatten() {
        let Method { class, name, descriptor, steps } = method;
        let _ = writeln!(lines, "{class}\t{name}\t{descriptor}\t{steps}");
    }
    if let Err(error) = fs::write(&counter.file, lines) {
        give_up(&format!("cannot write {}: {error}", counter.file));
    }
}
