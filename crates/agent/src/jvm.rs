//! A thin, typed layer over the JVM's two function tables, with just the calls that we make.
//!
//! All `unsafe` towards the JVM lives here. The pointers inside [`Vm`] and [`Jvmti`] come from the
//! JVM and stay valid for the process's life (`JavaVM`) or until [`Jvmti::dispose`]; afterwards
//! HotSpot answers calls on them with an error, so a late call fails instead of crashing.

mod arrays;
pub mod classes;
mod fields;
pub mod heap_walk;
pub mod inspect;
pub mod loaders;
mod methods;
mod modules;
pub mod references;
pub mod threads;

use jvmti_bindings::sys::jni::{self, JNIEnv, JavaVM};
use jvmti_bindings::sys::jvmti::{
    self, jvmtiCapabilities, jvmtiEnv, jvmtiError, jvmtiEvent, jvmtiEventCallbacks,
};
use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr;

/// The oldest interface that all supported JVMs have.
const INTERFACE: jni::jint = jvmti::JVMTI_VERSION_11;

/// A JVMTI call that did not return `JVMTI_ERROR_NONE`.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub call: &'static str,
    pub error: jvmtiError,
}

impl Failure {
    /// For a function that this JVM's table does not have.
    pub(crate) fn not_available(call: &'static str) -> Self {
        Failure { call, error: jvmti::JVMTI_ERROR_NOT_AVAILABLE }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answered {:?}", self.call, self.error)
    }
}

pub(crate) fn check(call: &'static str, error: jvmtiError) -> Result<(), Failure> {
    if error == jvmti::JVMTI_ERROR_NONE { Ok(()) } else { Err(Failure { call, error }) }
}

/// Calls a JVMTI function by name; a slot that is empty counts as "not available".
macro_rules! call {
    ($env:expr, $name:ident $(, $arg:expr)*) => {{
        // SAFETY: `$env.0` came from GetEnv and the JVM keeps the environment's memory readable;
        // the arguments have the types that the table declares, and every out-pointer refers to
        // a local of the calling function.
        match unsafe { (*(*$env.0).functions).$name } {
            // SAFETY: as above.
            Some(function) => check(stringify!($name), unsafe { function($env.0 $(, $arg)*) }),
            None => Err($crate::jvm::Failure::not_available(stringify!($name))),
        }
    }};
}
pub(crate) use call;

/// The JVM in this process.
#[derive(Clone, Copy)]
pub struct Vm(*mut JavaVM);

// SAFETY: the invocation interface may be used from any thread.
unsafe impl Send for Vm {}

impl Vm {
    /// # Safety
    /// `vm` is the pointer that the JVM passed to `Agent_OnLoad` or `Agent_OnAttach`.
    pub unsafe fn new(vm: *mut JavaVM) -> Self {
        Vm(vm)
    }

    /// A JVMTI environment of our own.
    pub fn jvmti(self) -> Option<Jvmti> {
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: `self.0` is the JVM's own pointer; `env` is a local.
        let code = unsafe { ((**self.0).GetEnv)(self.0, &raw mut env, INTERFACE) };
        (code == jni::JNI_OK && !env.is_null()).then_some(Jvmti(env.cast()))
    }

    /// Makes one environment, idle and without capabilities, that is never disposed of.
    ///
    /// HotSpot (17, 21 and 25) keeps notes on threads that had events. A thread that ends has them
    /// removed only while there is any environment; the notes of those that end after the last one
    /// was disposed of stay, and the next environment writes through them into freed memory. So the
    /// last one must never go.
    pub fn keep_an_environment(self) {
        static KEPT: std::sync::Once = std::sync::Once::new();
        KEPT.call_once(|| _ = self.jvmti());
    }

    /// The JNI environment of the calling thread, if the JVM knows that thread.
    pub fn jni(self) -> Option<Jni> {
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: `self.0` is the JVM's own pointer; `env` is a local.
        let code = unsafe { ((**self.0).GetEnv)(self.0, &raw mut env, jni::JNI_VERSION_10) };
        (code == jni::JNI_OK && !env.is_null()).then_some(Jni(env.cast()))
    }

    /// Makes the calling thread a daemon thread of the JVM. With a group the reference is freed.
    pub fn attach_daemon(self, name: &CStr, group: Option<Group>) -> Option<Jni> {
        let mut args = jni::JavaVMAttachArgs {
            version: jni::JNI_VERSION_10,
            name: name.as_ptr().cast_mut(),
            group: group.as_ref().map_or(ptr::null_mut(), |group| group.0),
        };
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: `args` and the name in it live across the call; `env` is a local.
        let code = unsafe {
            ((**self.0).AttachCurrentThreadAsDaemon)(self.0, &raw mut env, (&raw mut args).cast())
        };
        if code != jni::JNI_OK || env.is_null() {
            return None;
        }
        let env = Jni(env.cast());
        if let Some(group) = group {
            // SAFETY: the reference came from NewGlobalRef and is not used again.
            unsafe { ((**env.0).DeleteGlobalRef)(env.0, group.0) };
        }
        Some(env)
    }

    /// The calling thread is no thread of the JVM afterwards.
    pub fn detach_current(self) {
        // SAFETY: allowed on any thread that has no Java frames; ours never has any.
        unsafe { ((**self.0).DetachCurrentThread)(self.0) };
    }
}

/// The JNI environment of one attached thread; it must stay on that thread.
#[derive(Clone, Copy)]
pub struct Jni(pub(crate) *mut JNIEnv);

impl Jni {
    /// Frees the local references that `body` makes. A control thread never returns to Java, so
    /// without this they would pile up.
    pub fn frame<R>(self, body: impl FnOnce() -> R) -> Option<R> {
        self.frame_of(16, body)
    }

    /// The same for more references than a few.
    pub fn frame_of<R>(self, most: usize, body: impl FnOnce() -> R) -> Option<R> {
        let most = jni::jint::try_from(most).ok()?;
        // SAFETY: the environment belongs to the calling thread.
        if unsafe { ((**self.0).PushLocalFrame)(self.0, most) } != jni::JNI_OK {
            // SAFETY: as above; the pending OutOfMemoryError would make every later call wrong.
            unsafe { ((**self.0).ExceptionClear)(self.0) };
            return None;
        }
        let result = body();
        // SAFETY: pops the frame pushed above.
        unsafe { ((**self.0).PopLocalFrame)(self.0, ptr::null_mut()) };
        Some(result)
    }

    /// The outermost thread group. Our thread lives there, so that programs that look through
    /// their own group do not meet it.
    pub fn outermost_group(self, jvmti: Jvmti) -> Option<Group> {
        self.frame(|| {
            let group = jvmti.top_thread_group()?;
            // SAFETY: `group` is a local reference of this thread.
            let global = unsafe { ((**self.0).NewGlobalRef)(self.0, group) };
            (!global.is_null()).then_some(Group(global))
        })?
    }
}

/// A global reference to a thread group, freed by [`Vm::attach_daemon`].
pub struct Group(jni::jobject);

// SAFETY: global references may be used from any thread.
unsafe impl Send for Group {}

/// A JVMTI environment.
#[derive(Clone, Copy)]
pub struct Jvmti(pub(crate) *mut jvmtiEnv);

// SAFETY: a JVMTI environment may be used from any attached thread, and by several at once: JVMTI's
// functions are safe to call so, and the pointer itself is never changed.
unsafe impl Send for Jvmti {}
// SAFETY: as above.
unsafe impl Sync for Jvmti {}

impl Jvmti {
    pub fn dispose(self) -> Result<(), Failure> {
        call!(self, DisposeEnvironment)
    }

    pub fn system_property(self, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        let mut value = ptr::null_mut();
        call!(self, GetSystemProperty, key.as_ptr(), &raw mut value).ok()?;
        // SAFETY: on success `value` is a NUL-terminated string that we now own.
        let text = unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned();
        self.deallocate(value.cast());
        Some(text)
    }

    /// The Java version that users know, such as `17.0.15`. The JVM itself has only its build
    /// (`17.0.15+6-Debian-1`); `java.version` belongs to the class library.
    pub fn java_version(self) -> Option<String> {
        let build = self.system_property("java.vm.version")?;
        build.split(['+', '-']).next().map(str::to_owned)
    }

    /// Platform threads alive. Makes local references: call inside [`Jni::frame`].
    pub fn thread_count(self) -> Result<u32, Failure> {
        let (mut count, mut threads) = (0 as jni::jint, ptr::null_mut());
        call!(self, GetAllThreads, &raw mut count, &raw mut threads)?;
        self.deallocate(threads.cast());
        Ok(count.max(0).cast_unsigned())
    }

    /// Classes loaded. Makes local references: call inside [`Jni::frame`].
    pub fn class_count(self) -> Result<u32, Failure> {
        let (mut count, mut classes) = (0 as jni::jint, ptr::null_mut());
        call!(self, GetLoadedClasses, &raw mut count, &raw mut classes)?;
        self.deallocate(classes.cast());
        Ok(count.max(0).cast_unsigned())
    }

    /// The calling thread. Makes a local reference: call inside [`Jni::frame`].
    pub fn current_thread(self) -> Option<jni::jobject> {
        let mut thread = ptr::null_mut();
        call!(self, GetCurrentThread, &raw mut thread).ok()?;
        (!thread.is_null()).then_some(thread)
    }

    fn top_thread_group(self) -> Option<jni::jobject> {
        let (mut count, mut groups) = (0, ptr::null_mut());
        call!(self, GetTopThreadGroups, &raw mut count, &raw mut groups).ok()?;
        // SAFETY: on success `groups` holds `count` references.
        let first = (count > 0).then(|| unsafe { *groups });
        self.deallocate(groups.cast());
        first
    }

    /// The address of a function of libjvm.
    pub fn inside_libjvm(self) -> *const std::ffi::c_void {
        // SAFETY: the environment's table is readable; its functions are libjvm's.
        unsafe { (*(*self.0).functions).GetVersionNumber.map_or(ptr::null(), |f| f as *const _) }
    }

    pub fn potential_capabilities(self) -> Result<jvmtiCapabilities, Failure> {
        let mut capabilities = jvmtiCapabilities::default();
        call!(self, GetPotentialCapabilities, &raw mut capabilities)?;
        Ok(capabilities)
    }

    pub fn capabilities(self) -> Result<jvmtiCapabilities, Failure> {
        let mut capabilities = jvmtiCapabilities::default();
        call!(self, GetCapabilities, &raw mut capabilities)?;
        Ok(capabilities)
    }

    pub fn add_capabilities(self, capabilities: &jvmtiCapabilities) -> Result<(), Failure> {
        call!(self, AddCapabilities, ptr::from_ref(capabilities))
    }

    pub fn relinquish_capabilities(self, capabilities: &jvmtiCapabilities) -> Result<(), Failure> {
        call!(self, RelinquishCapabilities, ptr::from_ref(capabilities))
    }

    pub fn set_callbacks(self, callbacks: &jvmtiEventCallbacks) -> Result<(), Failure> {
        let size = jni::jint::try_from(size_of::<jvmtiEventCallbacks>()).unwrap_or(0);
        call!(self, SetEventCallbacks, ptr::from_ref(callbacks), size)
    }

    /// Switches an event on or off for all threads.
    pub fn event(self, event: jvmtiEvent, on: bool) -> Result<(), Failure> {
        let mode = if on { jvmti::JVMTI_ENABLE } else { jvmti::JVMTI_DISABLE };
        call!(self, SetEventNotificationMode, mode, event, ptr::null_mut())
    }

    pub(crate) fn deallocate(self, memory: *mut u8) {
        // A failure here would mean that the pointer was not the JVM's, which it was.
        let _ = call!(self, Deallocate, memory);
    }
}

/// The names of the capabilities in a set, as the JVMTI specification spells them.
pub fn capability_names(set: &jvmtiCapabilities) -> Vec<String> {
    macro_rules! names {
        ($($name:ident)*) => { [$((stringify!($name), set.$name())),*] };
    }
    let all = names! {
        can_tag_objects can_generate_field_modification_events can_generate_field_access_events
        can_generate_vm_object_alloc_events can_generate_garbage_collection_events
        can_generate_object_free_events can_generate_sampled_object_alloc_events
        can_get_bytecodes can_get_synthetic_attribute can_get_owned_monitor_info
        can_get_current_contended_monitor can_get_monitor_info can_pop_frame
        can_access_local_variables can_generate_frame_pop_events can_redefine_classes
        can_redefine_any_class can_generate_all_class_hook_events can_retransform_classes
        can_retransform_any_class can_generate_early_class_hook_events can_signal_thread
        can_get_source_file_name can_get_line_numbers can_get_source_debug_extension
        can_maintain_original_method_order can_generate_single_step_events
        can_generate_exception_events can_generate_breakpoint_events can_suspend
        can_generate_compiled_method_load_events can_generate_monitor_events
        can_generate_native_method_bind_events can_force_early_return
        can_get_owned_monitor_stack_depth_info can_get_constant_pool
        can_set_native_method_prefix can_get_current_thread_cpu_time can_get_thread_cpu_time
        can_generate_method_entry_events can_generate_method_exit_events
        can_generate_resource_exhaustion_heap_events
        can_generate_resource_exhaustion_threads_events can_generate_early_vmstart
        can_support_virtual_threads
    };
    all.iter().filter(|(_, on)| *on).map(|(name, _)| (*name).to_owned()).collect()
}
