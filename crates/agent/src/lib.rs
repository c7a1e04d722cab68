//! The part of Tare that lives inside the profiled JVM.
//!
//! This file holds the JVM's three entry points and nothing else; each passes the gate. What
//! happens between them is in `lifecycle`. The agent's rule: say it once, profile less, never
//! hurt the program. It knows nothing of reports.

mod alloc;
mod classes;
mod control;
mod counters;
mod doing;
mod engines;
mod events;
mod exact;
mod fits;
mod gate;
mod heap;
mod hooks;
mod jni_refs;
mod jvm;
mod kernel;
mod libjvm;
mod lifecycle;
mod loaders;
mod locks;
#[cfg(all(any_libc, not(test)))]
mod old_libc;
mod pauses;
mod perf_memory;
mod published;
mod rendezvous;
mod rights;
mod sampling;
mod shared_memory;
mod signal_chain;
mod socket;
mod stacks;
mod stream;
mod thread;
mod threads;
mod vm_tables;

use jvmti_bindings::sys::jni::{JNI_ERR, JNI_OK, JavaVM, jint};
use std::ffi::{CStr, c_char, c_void};
use tare_protocol::{AgentOptions, BUILD_MARKER, OptionError};

/// Lets the tool see which build a library file is without loading it.
#[used]
static MARKER: &str = BUILD_MARKER;

/// Called by the JVM for `-agentpath`. A non-zero answer would end the JVM, so it is always zero:
/// a program that cannot be profiled still runs.
///
/// # Safety
/// The JVM passes its own pointer and a NUL-terminated text or null.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    options: *mut c_char,
    _reserved: *mut c_void,
) -> jint {
    gate::enter((), || {
        // SAFETY: passed on from the JVM, see above.
        let (vm, text) = unsafe { (jvm::Vm::new(vm), text(options)) };
        let outcome = text
            .and_then(|text| AgentOptions::parse(&text))
            .map_err(|e| e.to_string())
            .and_then(|options| lifecycle::on_load(vm, options).map_err(|e| e.to_string()));
        if let Err(e) = outcome {
            gate::say(&format!("not active in this JVM: {e}"));
        }
    });
    JNI_OK
}

/// Called by the JVM when a front end attaches. An error is harmless here and reaches the one who
/// asked.
///
/// # Safety
/// The JVM passes its own pointer and a NUL-terminated text or null.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(
    vm: *mut JavaVM,
    options: *mut c_char,
    _reserved: *mut c_void,
) -> jint {
    gate::enter(JNI_ERR, || {
        // SAFETY: passed on from the JVM, see above.
        let (vm, text) = unsafe { (jvm::Vm::new(vm), text(options)) };
        let outcome = text
            .and_then(|text| AgentOptions::parse(&text))
            .map_err(|e| e.to_string())
            .and_then(|options| lifecycle::on_attach(vm, &options).map_err(|e| e.to_string()));
        match outcome {
            Ok(()) => JNI_OK,
            Err(e) => {
                gate::say(&format!("not active in this JVM: {e}"));
                JNI_ERR
            }
        }
    })
}

/// # Safety
/// `options` is null or a NUL-terminated text.
unsafe fn text(options: *const c_char) -> Result<String, OptionError> {
    if options.is_null() {
        return Ok(String::new());
    }
    // SAFETY: see above.
    let text = unsafe { CStr::from_ptr(options) };
    text.to_str().map(str::to_owned).map_err(|_| OptionError::NotText)
}
