//! What the JVM tells of classes that are loaded already: supertypes, methods, constants, code. And
//! of the thread that asks: what is on its stack, which locks it holds.
//!
//! Nothing here changes the JVM.

use super::{Failure, Jni, Jvmti, call, check};
use crate::events::callbacks::OfThread;
use jvmti_bindings::sys::jni::{self, jclass, jfieldID, jint, jmethodID, jobject, jthread};
use jvmti_bindings::sys::jvmti::{
    self, jvmtiEvent, jvmtiExtensionEvent, jvmtiExtensionEventInfo, jvmtiExtensionFunction,
    jvmtiExtensionFunctionInfo, jvmtiFrameInfo, jvmtiParamInfo,
};
use std::ffi::{CStr, c_char};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;

/// Frames of a stack that are looked at.
const FRAMES: usize = 1024;

/// A class that the JVM may unload although we know of it.
pub struct WeakClass(jobject);

// SAFETY: weak global references may be used from any thread.
unsafe impl Send for WeakClass {}

/// What callbacks ask about, of classes of the JDK. Where they run, a class must not be looked up
/// by name: that may run Java code, which loads classes, which brings the thread back to us.
struct Known {
    thread: jclass,
    holds_lock: jmethodID,
    /// None where there are no virtual threads.
    carrier: Option<jclass>,
    executable: jclass,
    member_name: jclass,
    member_class: jfieldID,
    get_name: jmethodID,
}

// SAFETY: global references and ids may be used from any thread.
unsafe impl Send for Known {}
// SAFETY: as above; they are never changed.
unsafe impl Sync for Known {}

/// Tells what a carrier carries, where the JVM can.
static CARRIED: OnceLock<Option<jvmtiExtensionFunction>> = OnceLock::new();

static KNOWN: OnceLock<Known> = OnceLock::new();

/// A method of a loaded class.
pub struct MethodOf {
    pub id: jmethodID,
    pub name: Vec<u8>,
    pub descriptor: Vec<u8>,
    pub access_flags: u16,
}

impl Jvmti {
    /// `com/acme/Orders`; hidden classes have a dot in it. None for arrays and primitive types.
    pub fn class_name(self, class: jclass) -> Option<Vec<u8>> {
        let mut signature = ptr::null_mut();
        call!(self, GetClassSignature, class, &raw mut signature, ptr::null_mut()).ok()?;
        let text = self.take_text(signature);
        text.strip_prefix(b"L").and_then(|t| t.strip_suffix(b";")).map(<[u8]>::to_vec)
    }

    /// A local reference, or null for the JVM's own loader.
    pub fn class_loader(self, class: jclass) -> Result<jobject, Failure> {
        let mut loader: jobject = ptr::null_mut();
        call!(self, GetClassLoader, class, &raw mut loader)?;
        Ok(loader)
    }

    /// Direct superinterfaces, as local references. None while the class is not prepared.
    pub fn interfaces(self, class: jclass) -> Option<Vec<jclass>> {
        let (mut count, mut list) = (0 as jint, ptr::null_mut());
        call!(self, GetImplementedInterfaces, class, &raw mut count, &raw mut list).ok()?;
        Some(self.take_array(count, list))
    }

    pub fn class_flags(self, class: jclass) -> u16 {
        let mut flags: jint = 0;
        let _ = call!(self, GetClassModifiers, class, &raw mut flags);
        flags as u16
    }

    /// Whether its static initialiser has run, or has failed.
    pub fn is_initialised(self, class: jclass) -> bool {
        const DONE: jint = 4 | 8;
        let mut status: jint = 0;
        call!(self, GetClassStatus, class, &raw mut status).is_ok() && status & DONE != 0
    }

    /// None while the class is not prepared.
    pub fn methods(self, class: jclass) -> Option<Vec<MethodOf>> {
        let (mut count, mut list) = (0 as jint, ptr::null_mut());
        call!(self, GetClassMethods, class, &raw mut count, &raw mut list).ok()?;
        let methods = self.take_array(count, list);
        Some(methods.into_iter().filter_map(|id| self.method(id)).collect())
    }

    fn method(self, id: jmethodID) -> Option<MethodOf> {
        let (mut name, mut descriptor, mut flags) = (ptr::null_mut(), ptr::null_mut(), 0);
        let generic = ptr::null_mut();
        call!(self, GetMethodName, id, &raw mut name, &raw mut descriptor, generic).ok()?;
        let (name, descriptor) = (self.take_text(name), self.take_text(descriptor));
        call!(self, GetMethodModifiers, id, &raw mut flags).ok()?;
        Some(MethodOf { id, name, descriptor, access_flags: flags as u16 })
    }

    /// The class of a method, and the method.
    pub fn method_of(self, id: jmethodID) -> Option<(jclass, MethodOf)> {
        Some((self.class_of(id)?, self.method(id)?))
    }

    pub fn class_of(self, method: jmethodID) -> Option<jclass> {
        let mut class: jclass = ptr::null_mut();
        call!(self, GetMethodDeclaringClass, method, &raw mut class).ok()?;
        Some(class)
    }

    /// The classes that a loader knows, as local references.
    pub fn classes_of(self, loader: jobject) -> Option<Vec<jclass>> {
        let (mut count, mut list) = (0 as jint, ptr::null_mut());
        call!(self, GetClassLoaderClasses, loader, &raw mut count, &raw mut list).ok()?;
        Some(self.take_array(count, list))
    }

    /// The constant pool as a class file has it, its count included.
    pub fn constant_pool(self, class: jclass) -> Option<Vec<u8>> {
        let (mut count, mut length, mut bytes) = (0 as jint, 0 as jint, ptr::null_mut());
        call!(self, GetConstantPool, class, &raw mut count, &raw mut length, &raw mut bytes)
            .ok()?;
        let mut pool = u16::try_from(count).ok()?.to_be_bytes().to_vec();
        pool.extend(self.take_array::<u8>(length, bytes));
        Some(pool)
    }

    pub fn code(self, method: jmethodID) -> Option<Vec<u8>> {
        let (mut length, mut bytes) = (0 as jint, ptr::null_mut());
        call!(self, GetBytecodes, method, &raw mut length, &raw mut bytes).ok()?;
        Some(self.take_array::<u8>(length, bytes))
    }

    pub fn is_modifiable(self, class: jclass) -> bool {
        let mut answer: jni::jboolean = 0;
        call!(self, IsModifiableClass, class, &raw mut answer).is_ok() && answer != 0
    }

    /// The methods on the calling thread's stack and where in them it is, innermost first.
    pub fn own_stack(self) -> Result<Vec<(jmethodID, i64)>, Failure> {
        // By its name: else JVMs with virtual threads stop all of these from being mounted
        // meanwhile.
        let mut own: jthread = ptr::null_mut();
        call!(self, GetCurrentThread, &raw mut own)?;
        self.stack(own)
    }

    /// The same of any thread.
    pub fn stack(self, thread: jthread) -> Result<Vec<(jmethodID, i64)>, Failure> {
        let empty = jvmtiFrameInfo { method: ptr::null_mut(), location: 0 };
        let mut frames = vec![empty; FRAMES];
        let mut count: jint = 0;
        let most = FRAMES as jint;
        call!(self, GetStackTrace, thread, 0, most, frames.as_mut_ptr(), &raw mut count)?;
        frames.truncate(count.max(0) as usize);
        Ok(frames.into_iter().map(|frame| (frame.method, frame.location)).collect())
    }

    /// Platform threads alive, as local references.
    pub fn threads(self) -> Option<Vec<jthread>> {
        let (mut count, mut list) = (0 as jint, ptr::null_mut());
        call!(self, GetAllThreads, &raw mut count, &raw mut list).ok()?;
        Some(self.take_array(count, list))
    }

    /// The method that a thread is in, and where in it.
    pub fn top_frame(self, thread: jthread) -> Option<(jmethodID, i64)> {
        let mut frame = jvmtiFrameInfo { method: ptr::null_mut(), location: 0 };
        let mut count: jint = 0;
        call!(self, GetStackTrace, thread, 0, 1, &raw mut frame, &raw mut count).ok()?;
        (count == 1).then_some((frame.method, frame.location))
    }

    /// Whether a thread neither parks nor sleeps nor waits for a lock; it may wait inside the JVM.
    pub fn is_runnable(self, thread: jthread) -> bool {
        self.has_state(thread, jvmti::JVMTI_THREAD_STATE_RUNNABLE)
    }

    /// Whether a thread is in a native function, and not in the JVM.
    pub fn is_in_native(self, thread: jthread) -> bool {
        self.has_state(thread, jvmti::JVMTI_THREAD_STATE_IN_NATIVE)
    }

    fn has_state(self, thread: jthread, which: jint) -> bool {
        let mut state: jint = 0;
        call!(self, GetThreadState, thread, &raw mut state).is_ok() && state & which != 0
    }

    /// The virtual thread that is mounted on a carrier.
    pub fn carried(self, carrier: jthread) -> Option<jthread> {
        let function = (*CARRIED
            .get_or_init(|| self.extension(c"com.sun.hotspot.functions.GetVirtualThread")))?;
        let mut carried: jthread = ptr::null_mut();
        // SAFETY: the function takes a thread and a place for another one.
        let error = unsafe { function(self.0, carrier, &raw mut carried) };
        (error == jvmti::JVMTI_ERROR_NONE && !carried.is_null()).then_some(carried)
    }

    /// The processor time of a thread, in nanoseconds.
    pub fn processor_time(self, thread: jthread) -> Option<u64> {
        let mut used: jni::jlong = 0;
        call!(self, GetThreadCpuTime, thread, &raw mut used).ok()?;
        u64::try_from(used).ok()
    }

    /// A function that this JVM has beyond the specification.
    fn extension(self, id: &CStr) -> Option<jvmtiExtensionFunction> {
        let (mut count, mut list) = (0 as jint, ptr::null_mut());
        call!(self, GetExtensionFunctions, &raw mut count, &raw mut list).ok()?;
        let mut found = None;
        for function in self.take_array::<jvmtiExtensionFunctionInfo>(count, list) {
            if self.take_text(function.id) == id.to_bytes() {
                found = function.func;
            }
            self.take_text(function.short_description);
            self.take_parameters(function.param_count, function.params);
            self.take_array(function.error_count, function.errors);
        }
        found
    }

    /// The number of an event that this JVM has beyond the specification.
    pub fn extension_event(self, id: &CStr) -> Option<jvmtiEvent> {
        let (mut count, mut list) = (0 as jint, ptr::null_mut());
        call!(self, GetExtensionEvents, &raw mut count, &raw mut list).ok()?;
        let mut found = None;
        for event in self.take_array::<jvmtiExtensionEventInfo>(count, list) {
            if self.take_text(event.id) == id.to_bytes() {
                found = jvmtiEvent::try_from(event.extension_event_index).ok();
            }
            self.take_text(event.short_description);
            self.take_parameters(event.param_count, event.params);
        }
        found
    }

    /// What is called for such an event, which must be one that tells of a thread.
    pub fn set_extension_callback(
        self,
        event: jvmtiEvent,
        callback: Option<OfThread>,
    ) -> Result<(), Failure> {
        // SAFETY: the JVM calls it with the environments and a thread. On the systems that we are
        // built for, arguments of a function that takes any number of them are passed like others.
        let callback = callback
            .map(|callback| unsafe { transmute::<OfThread, jvmtiExtensionEvent>(callback) });
        call!(self, SetExtensionEventCallback, event.cast_signed(), callback)
    }

    fn take_parameters(self, count: jint, list: *mut jvmtiParamInfo) {
        for parameter in self.take_array::<jvmtiParamInfo>(count, list) {
            self.take_text(parameter.name);
        }
    }

    fn take_text(self, text: *mut c_char) -> Vec<u8> {
        // SAFETY: the JVM gave us a NUL-terminated text that we now own.
        let copy = unsafe { CStr::from_ptr(text) }.to_bytes().to_vec();
        self.deallocate(text.cast());
        copy
    }

    fn take_array<T: Copy>(self, count: jint, list: *mut T) -> Vec<T> {
        if list.is_null() {
            return Vec::new();
        }
        // SAFETY: the JVM gave us an array of that length, which we now own.
        let copy = unsafe { std::slice::from_raw_parts(list, count.max(0) as usize) }.to_vec();
        self.deallocate(list.cast());
        copy
    }
}

impl Jni {
    /// A local reference to the superclass, or null.
    pub fn superclass(self, class: jclass) -> jclass {
        // SAFETY: a local reference of this thread.
        unsafe { ((**self.0).GetSuperclass)(self.0, class) }
    }

    pub fn weak(self, class: jclass) -> Option<WeakClass> {
        // SAFETY: a local reference of this thread.
        let weak = unsafe { ((**self.0).NewWeakGlobalRef)(self.0, class) };
        if self.failed() || weak.is_null() { None } else { Some(WeakClass(weak)) }
    }

    /// A local reference, unless the class is gone.
    pub fn strong(self, class: &WeakClass) -> Option<jclass> {
        // SAFETY: the weak reference is alive until `forget`, which takes it.
        let local = unsafe { ((**self.0).NewLocalRef)(self.0, class.0) };
        (!local.is_null()).then_some(local)
    }

    /// A reference that any thread can use, until it is deleted.
    pub fn global(self, object: jobject) -> Option<jobject> {
        // SAFETY: a reference of the calling thread.
        let global = unsafe { ((**self.0).NewGlobalRef)(self.0, object) };
        (!global.is_null()).then_some(global)
    }

    /// A second reference of the calling thread.
    pub fn local(self, object: jobject) -> Option<jobject> {
        // SAFETY: a reference that is alive.
        let local = unsafe { ((**self.0).NewLocalRef)(self.0, object) };
        (!local.is_null()).then_some(local)
    }

    pub fn is_same(self, one: jobject, other: jobject) -> bool {
        // SAFETY: both are null or references that are alive or weak; a weak one that has gone is
        // null.
        unsafe { ((**self.0).IsSameObject)(self.0, one, other) != 0 }
    }

    /// Of many references that are soon done with, before their frame is.
    pub fn delete_local(self, object: jobject) {
        // SAFETY: a local reference of the calling thread that is not used again.
        unsafe { ((**self.0).DeleteLocalRef)(self.0, object) };
    }

    pub fn delete_global(self, object: jobject) {
        // SAFETY: it came from NewGlobalRef and is not used again.
        unsafe { ((**self.0).DeleteGlobalRef)(self.0, object) };
    }

    pub fn forget(self, class: WeakClass) {
        // SAFETY: it came from NewWeakGlobalRef and is not used again.
        unsafe { ((**self.0).DeleteWeakGlobalRef)(self.0, class.0) };
    }

    /// The method that a `java.lang.reflect.Method` or `Constructor` stands for.
    pub fn reflected(self, method: jobject) -> Option<jmethodID> {
        // SAFETY: the caller has it from the JVM, as one of these two.
        let id = unsafe { ((**self.0).FromReflectedMethod)(self.0, method) };
        if self.failed() || id.is_null() { None } else { Some(id) }
    }

    /// Looks up what callbacks ask about; whether it is all there. To be called by a thread that
    /// holds nothing, before any of them: looking for a class may run Java code.
    pub fn learn(self) -> bool {
        KNOWN.get().is_some() || self.known().is_some_and(|known| KNOWN.set(known).is_ok())
    }

    fn known(self) -> Option<Known> {
        let (thread, executable) =
            (self.lasting(c"java/lang/Thread")?, self.lasting(c"java/lang/reflect/Executable")?);
        let member_name = self.lasting(c"java/lang/invoke/MemberName")?;
        let carrier = self.lasting(c"jdk/internal/misc/CarrierThread");
        // SAFETY: classes that never go; the members have these types, or else the lookup fails.
        unsafe {
            let (name, ty) = (c"holdsLock".as_ptr(), c"(Ljava/lang/Object;)Z".as_ptr());
            let holds_lock = ((**self.0).GetStaticMethodID)(self.0, thread, name, ty);
            let (name, ty) = (c"clazz".as_ptr(), c"Ljava/lang/Class;".as_ptr());
            let member_class = ((**self.0).GetFieldID)(self.0, member_name, name, ty);
            let (name, ty) = (c"getName".as_ptr(), c"()Ljava/lang/String;".as_ptr());
            let get_name = ((**self.0).GetMethodID)(self.0, member_name, name, ty);
            let missing = holds_lock.is_null() || member_class.is_null() || get_name.is_null();
            (!self.failed() && !missing).then_some(Known {
                thread,
                holds_lock,
                carrier,
                executable,
                member_name,
                member_class,
                get_name,
            })
        }
    }

    /// A class of the JDK, by a reference that is never given back.
    pub fn lasting(self, name: &CStr) -> Option<jclass> {
        // SAFETY: the name lives across the call.
        let class = unsafe { ((**self.0).FindClass)(self.0, name.as_ptr()) };
        if self.failed() || class.is_null() { None } else { self.global(class) }
    }

    /// Class and name of what a `java.lang.invoke.MemberName` stands for.
    pub fn member_name(self, member: jobject) -> Option<(jclass, Vec<u8>)> {
        let known = KNOWN.get()?;
        if !self.is_a(member, known.member_name) {
            return None;
        }
        // SAFETY: the object is of the class that field and method are of.
        unsafe {
            let owner: jclass = ((**self.0).GetObjectField)(self.0, member, known.member_class);
            if owner.is_null() {
                return None;
            }
            let text = ((**self.0).CallObjectMethodA)(self.0, member, known.get_name, ptr::null());
            if self.failed() || text.is_null() {
                return None;
            }
            let bytes = ((**self.0).GetStringUTFChars)(self.0, text, ptr::null_mut());
            if bytes.is_null() {
                return None;
            }
            let name = CStr::from_ptr(bytes).to_bytes().to_vec();
            ((**self.0).ReleaseStringUTFChars)(self.0, text, bytes);
            Some((owner, name))
        }
    }

    /// Whether an object is a `Method` or a `Constructor`.
    pub fn is_executable(self, object: jobject) -> bool {
        KNOWN.get().is_some_and(|known| self.is_a(object, known.executable))
    }

    fn is_a(self, object: jobject, class: jclass) -> bool {
        // SAFETY: two references of the calling thread.
        unsafe { ((**self.0).IsInstanceOf)(self.0, object, class) != 0 }
    }

    /// Whether a thread carries virtual ones.
    pub fn is_carrier(self, thread: jthread) -> bool {
        let carrier = KNOWN.get().and_then(|known| known.carrier);
        carrier.is_some_and(|carrier| self.is_a(thread, carrier))
    }

    pub fn is_subclass(self, class: jclass, of: jclass) -> bool {
        // SAFETY: two references of the calling thread, to classes.
        unsafe { ((**self.0).IsAssignableFrom)(self.0, class, of) != 0 }
    }

    /// Whether the calling thread holds an object's lock.
    pub fn holds_lock(self, object: jobject) -> bool {
        let Some(known) = KNOWN.get() else { return false };
        let arguments = [jni::jvalue { l: object }];
        // SAFETY: the method is static, native, and takes one object.
        let answer = unsafe {
            let arguments = arguments.as_ptr();
            ((**self.0).CallStaticBooleanMethodA)(self.0, known.thread, known.holds_lock, arguments)
        };
        !self.failed() && answer != 0
    }
}
