//! The class-load hook: what the JVM passes made safe, and the new bytes given back. Which classes
//! change, and how, is each [`ClassHook`]'s.

use crate::gate;
use crate::jvm::{Jni, Jvmti, Vm};
use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jobject};
use jvmti_bindings::sys::jvmti::{self, jvmtiCapabilities, jvmtiEnv, jvmtiEventCallbacks};
use std::ffi::{CStr, c_char};

/// A class that is being loaded, or loaded again. Hidden ones have no name, cannot be changed, and
/// are not seen here.
#[derive(Clone, Copy)]
pub struct LoadedClass<'a> {
    pub jvmti: Jvmti,
    /// Null while the JVM is not up.
    pub jni: Jni,
    /// It was loaded before.
    pub again: bool,
    /// Null for the JVM's own loader.
    pub loader: jobject,
    /// As in a class file: `java/lang/Thread`.
    pub name: &'a CStr,
    pub bytes: &'a [u8],
}

pub trait ClassHook {
    /// The new bytes of a class, or nothing if it stays as it is.
    fn changed(class: &LoadedClass<'_>) -> Option<Vec<u8>>;
}

/// What the JVM calls whenever a class is loaded, or loaded again.
#[allow(clippy::too_many_arguments, reason = "the JVM's signature")]
pub extern "system" fn callback<H: ClassHook>(
    env: *mut jvmtiEnv,
    jni: *mut JNIEnv,
    again: jclass,
    loader: jobject,
    name: *const c_char,
    _domain: jobject,
    length: jint,
    data: *const u8,
    new_length: *mut jint,
    new_data: *mut *mut u8,
) {
    gate::enter((), || {
        if name.is_null() || data.is_null() {
            return;
        }
        // SAFETY: the JVM passes a NUL-terminated name and that many bytes, alive during this call.
        let (name, bytes) = unsafe {
            (CStr::from_ptr(name), std::slice::from_raw_parts(data, length.max(0) as usize))
        };
        let (jvmti, jni, again) = (Jvmti(env), Jni(jni), !again.is_null());
        let class = LoadedClass { jvmti, jni, again, loader, name, bytes };
        let Some(changed) = H::changed(&class) else { return };
        if let (Ok(size), Ok(copy)) = (jint::try_from(changed.len()), jvmti.copy_to_jvm(&changed)) {
            // SAFETY: the JVM gave us these two places for the answer, and takes the memory over.
            unsafe {
                *new_length = size;
                *new_data = copy;
            }
        }
    });
}

/// Has a hook see every class from the first on, in an environment of its own. To be called before
/// the JVM is up; without the JVM's consent nothing happens.
pub fn install_early<H: ClassHook>(vm: Vm) {
    let Some(environment) = vm.jvmti() else { return };
    let mut capabilities = jvmtiCapabilities::default();
    capabilities.set_can_generate_all_class_hook_events(true);
    capabilities.set_can_generate_early_class_hook_events(true);
    let mut callbacks = jvmtiEventCallbacks::default();
    callbacks.ClassFileLoadHook = Some(callback::<H>);
    let ready = environment
        .add_capabilities(&capabilities)
        .and_then(|()| environment.set_callbacks(&callbacks))
        .and_then(|()| environment.event(jvmti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, true));
    if ready.is_err() {
        let _ = environment.dispose();
    }
}
