//! Native code that the tests bring into a JVM, as an agent: it stops threads wherever they are,
//! calls Java from native frames, makes references, and puts threads under filters of system calls. The Java side is
//! `Natives` among the tests' targets.
//!
//! It serves tests, so any failure ends the process with a message.

use jvmti_bindings::sys::jni::{self, JNI_OK, JNIEnv, JavaVM, jclass, jint, jobject};
use jvmti_bindings::sys::jvmti::{self, jvmtiCapabilities, jvmtiEnv};
use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

struct Environment {
    vm: *mut JavaVM,
    jvmti: *mut jvmtiEnv,
}

// SAFETY: both pointers are the JVM's, for its life, and may be used from any thread.
unsafe impl Send for Environment {}
// SAFETY: as above.
unsafe impl Sync for Environment {}

static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();

fn give_up(what: &str) -> ! {
    eprintln!("test natives: {what}");
    std::process::exit(3)
}

fn environment() -> &'static Environment {
    ENVIRONMENT.get().unwrap_or_else(|| give_up("the library is not loaded as an agent"))
}

/// # Safety
/// Called by the JVM, with its own pointer.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    _options: *mut c_char,
    _reserved: *mut c_void,
) -> jint {
    let mut env: *mut c_void = ptr::null_mut();
    // SAFETY: `vm` is the JVM's own pointer; `env` is a local.
    let code = unsafe { ((**vm).GetEnv)(vm, &raw mut env, jvmti::JVMTI_VERSION_11) };
    if code != JNI_OK || env.is_null() {
        give_up("there is no JVMTI");
    }
    let env: *mut jvmtiEnv = env.cast();
    let mut capabilities = jvmtiCapabilities::default();
    capabilities.set_can_signal_thread(true);
    // SAFETY: the environment that the JVM handed out; the table holds this function.
    let error = unsafe {
        let add = (*(*env).functions).AddCapabilities;
        add.map(|add| add(env, &raw const capabilities))
    };
    if error != Some(jvmti::JVMTI_ERROR_NONE) {
        give_up("this JVM lets nobody stop threads");
    }
    let _ = ENVIRONMENT.set(Environment { vm, jvmti: env });
    JNI_OK
}

/// Makes an exception appear in a thread wherever it is; false if it has ended.
///
/// # Safety
/// Called by the JVM for the native method of this name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_Natives_stop(
    _jni: *mut JNIEnv,
    _class: jclass,
    thread: jobject,
    exception: jobject,
) -> jni::jboolean {
    let env = environment().jvmti;
    // SAFETY: as in `Agent_OnLoad`; the references are this call's arguments.
    let error = unsafe {
        let stop = (*(*env).functions).StopThread;
        stop.map(|stop| stop(env, thread, exception))
    };
    u8::from(error == Some(jvmti::JVMTI_ERROR_NONE))
}

/// Calls `run()` of an object. Whatever that throws stays on its way through this frame.
///
/// # Safety
/// Called by the JVM for the native method of this name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_Natives_call(jni: *mut JNIEnv, _class: jclass, task: jobject) {
    run(jni, task);
}

/// Calls `run()` of an object, and takes away what it throws; true if it did.
///
/// # Safety
/// Called by the JVM for the native method of this name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_Natives_callAndCatch(
    jni: *mut JNIEnv,
    _class: jclass,
    task: jobject,
) -> jni::jboolean {
    run(jni, task);
    take_exception(jni)
}

/// Calls `run()` of an object on a thread that the JVM did not start, and waits for it.
///
/// # Safety
/// Called by the JVM for the native method of this name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_Natives_callOnNewThread(
    jni: *mut JNIEnv,
    _class: jclass,
    task: jobject,
) {
    // SAFETY: a reference that is alive during this call.
    let task = unsafe { ((**jni).NewGlobalRef)(jni, task) } as usize;
    let thread = std::thread::spawn(move || {
        let vm = environment().vm;
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: the JVM's own pointer; `env` is a local; no arguments mean a name of its choice.
        let code = unsafe { ((**vm).AttachCurrentThread)(vm, &raw mut env, ptr::null_mut()) };
        if code != JNI_OK {
            give_up("the JVM takes no new thread");
        }
        let jni: *mut JNIEnv = env.cast();
        run(jni, task as jobject);
        take_exception(jni);
        // SAFETY: this thread's environment, attached above; the reference is not used again.
        unsafe {
            ((**jni).DeleteGlobalRef)(jni, task as jobject);
            ((**vm).DetachCurrentThread)(vm);
        }
    });
    if thread.join().is_err() {
        give_up("a thread panicked");
    }
}

/// Makes global references to an object, or weak ones, and deletes none.
///
/// # Safety
/// Called by the JVM for the native method of this name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_Natives_leakReferences(
    jni: *mut JNIEnv,
    _class: jclass,
    object: jobject,
    number: jint,
    weak: jni::jboolean,
) {
    for _ in 0..number {
        // SAFETY: a reference that is alive during this call.
        unsafe {
            if weak == 0 {
                ((**jni).NewGlobalRef)(jni, object);
            } else {
                ((**jni).NewWeakGlobalRef)(jni, object);
            }
        }
    }
}

/// Makes global references to an object, and deletes each.
///
/// # Safety
/// Called by the JVM for the native method of this name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_Natives_tidyReferences(
    jni: *mut JNIEnv,
    _class: jclass,
    object: jobject,
    number: jint,
) {
    for _ in 0..number {
        // SAFETY: a reference that is alive during this call; the one that is made is used no more.
        unsafe {
            let made = ((**jni).NewGlobalRef)(jni, object);
            ((**jni).DeleteGlobalRef)(jni, made);
        }
    }
}

/// The address of the function that makes global references now.
///
/// # Safety
/// Called by the JVM for the native method of this name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_Natives_referenceFunction(
    jni: *mut JNIEnv,
    _class: jclass,
) -> jni::jlong {
    // SAFETY: the calling thread's environment.
    unsafe { (**jni).NewGlobalRef as usize as jni::jlong }
}

type NewGlobalRef = unsafe extern "system" fn(*mut JNIEnv, jobject) -> jobject;

static COUNTED: AtomicU64 = AtomicU64::new(0);
static BELOW: OnceLock<NewGlobalRef> = OnceLock::new();

extern "system" fn counting(env: *mut JNIEnv, object: jobject) -> jobject {
    COUNTED.fetch_add(1, Ordering::Relaxed);
    match BELOW.get() {
        // SAFETY: the function that the table had before.
        Some(below) => unsafe { below(env, object) },
        None => ptr::null_mut(),
    }
}

/// Puts a function that counts over whatever makes global references now, once, or puts what was
/// there back; how often it was called.
///
/// # Safety
/// Called by the JVM for the native method of this name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_Natives_countReferences(
    _jni: *mut JNIEnv,
    _class: jclass,
    on: jni::jboolean,
) -> jni::jlong {
    let env = environment().jvmti;
    let mut table = ptr::null_mut();
    // SAFETY: as in `Agent_OnLoad`; the JVM hands out a copy of its table, which is ours.
    unsafe {
        let functions = &*(*env).functions;
        let (Some(get), Some(set)) = (functions.GetJNIFunctionTable, functions.SetJNIFunctionTable)
        else {
            give_up("the JVM does not show its table of functions")
        };
        if get(env, &raw mut table) != jvmti::JVMTI_ERROR_NONE {
            give_up("the JVM does not show its table of functions");
        }
        if on != 0 {
            let _ = BELOW.set((*table).NewGlobalRef);
            (*table).NewGlobalRef = counting;
        } else if let Some(below) = BELOW.get() {
            (*table).NewGlobalRef = *below;
        }
        if set(env, table.cast_const()) != jvmti::JVMTI_ERROR_NONE {
            give_up("the JVM does not take a table of functions");
        }
    }
    COUNTED.load(Ordering::Relaxed).cast_signed()
}

/// Puts the calling thread under a filter that ends the process for `perf_event_open`.
///
/// # Safety
/// Called by the JVM for the native method of this name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_Natives_filter(_jni: *mut JNIEnv, _class: jclass) {
    const SET_NO_NEW_PRIVS: c_int = 38;
    const SET_SECCOMP: c_int = 22;
    const MODE_FILTER: c_ulong = 2;
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const PERF_EVENT_OPEN: u32 = if cfg!(target_arch = "x86_64") { 298 } else { 241 };
    /// One step of the filter's program, as the kernel reads it.
    #[repr(C)]
    struct Step(u16, u8, u8, u32);
    #[repr(C)]
    struct Program {
        length: u16,
        steps: *const Step,
    }
    let steps = [
        Step(LOAD_WORD, 0, 0, 0),
        Step(JUMP_IF_EQUAL, 1, 0, PERF_EVENT_OPEN),
        Step(RETURN, 0, 0, 0x7fff_0000),
        Step(RETURN, 0, 0, 0x8000_0000),
    ];
    let program = Program { length: steps.len() as u16, steps: steps.as_ptr() };
    let (one, none): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: the C library's function; the program is alive during the call, which copies it.
    let done = unsafe {
        prctl(SET_NO_NEW_PRIVS, one, none, none, none) == 0
            && prctl(SET_SECCOMP, MODE_FILTER, &raw const program) == 0
    };
    if !done {
        give_up("no filter can be installed");
    }
}

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
}

fn run(jni: *mut JNIEnv, task: jobject) {
    // SAFETY: the calling thread's environment, and a reference that is alive; the texts live
    // across the calls, and the method takes no arguments.
    unsafe {
        let class = ((**jni).GetObjectClass)(jni, task);
        let method = ((**jni).GetMethodID)(jni, class, c"run".as_ptr(), c"()V".as_ptr());
        if method.is_null() {
            give_up("the object has no run()");
        }
        ((**jni).CallVoidMethodA)(jni, task, method, ptr::null());
    }
}

fn take_exception(jni: *mut JNIEnv) -> jni::jboolean {
    // SAFETY: the calling thread's environment.
    unsafe {
        let pending = ((**jni).ExceptionCheck)(jni);
        ((**jni).ExceptionClear)(jni);
        pending
    }
}
