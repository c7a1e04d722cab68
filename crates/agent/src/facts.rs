//! What the JVM tells of classes that are loaded already: supertypes, methods, constants, code. And
//! of the thread that asks: what is on its stack, which locks it holds.
//!
//! Belongs to `jvm`; apart only because it is a subject of its own. Nothing here changes the JVM.

use crate::jvm::{Failure, Jni, Jvmti, call, check};
use jvmti_bindings::sys::jni::{self, jclass, jint, jmethodID, jobject};
use jvmti_bindings::sys::jvmti::{self, jvmtiFrameInfo};
use std::ffi::{CStr, c_char};
use std::ptr;

/// Frames of a stack that are looked at.
const FRAMES: usize = 1024;

/// A class that the JVM may unload although we know of it.
pub struct WeakClass(jobject);

// SAFETY: weak global references may be used from any thread.
unsafe impl Send for WeakClass {}

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
        let mut class: jclass = ptr::null_mut();
        call!(self, GetMethodDeclaringClass, id, &raw mut class).ok()?;
        Some((class, self.method(id)?))
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

    /// The methods on the calling thread's stack, innermost first.
    pub fn own_stack(self) -> Result<Vec<jmethodID>, Failure> {
        let empty = jvmtiFrameInfo { method: ptr::null_mut(), location: 0 };
        let mut frames = vec![empty; FRAMES];
        let mut count: jint = 0;
        let most = FRAMES as jint;
        let own = ptr::null_mut();
        call!(self, GetStackTrace, own, 0, most, frames.as_mut_ptr(), &raw mut count)?;
        frames.truncate(count.max(0) as usize);
        Ok(frames.into_iter().map(|frame| frame.method).collect())
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

    /// Class and name of what a `java.lang.invoke.MemberName` stands for.
    pub fn member_name(self, member: jobject) -> Option<(jclass, Vec<u8>)> {
        // SAFETY: the caller has the object from the JVM; the class is the JDK's, and its members
        // have these types, or else the lookup fails.
        unsafe {
            let class = ((**self.0).FindClass)(self.0, c"java/lang/invoke/MemberName".as_ptr());
            if self.failed() || class.is_null() || !self.is_a(member, class) {
                return None;
            }
            let (of, ty) = (c"clazz".as_ptr(), c"Ljava/lang/Class;".as_ptr());
            let field = ((**self.0).GetFieldID)(self.0, class, of, ty);
            if self.failed() || field.is_null() {
                return None;
            }
            let owner: jclass = ((**self.0).GetObjectField)(self.0, member, field);
            let (name, ty) = (c"getName".as_ptr(), c"()Ljava/lang/String;".as_ptr());
            let method = ((**self.0).GetMethodID)(self.0, class, name, ty);
            if self.failed() || method.is_null() || owner.is_null() {
                return None;
            }
            let text = ((**self.0).CallObjectMethodA)(self.0, member, method, ptr::null());
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
        // SAFETY: the class is always there; the object is the caller's.
        unsafe {
            let class = ((**self.0).FindClass)(self.0, c"java/lang/reflect/Executable".as_ptr());
            !self.failed() && !class.is_null() && self.is_a(object, class)
        }
    }

    fn is_a(self, object: jobject, class: jclass) -> bool {
        // SAFETY: two references of the calling thread.
        unsafe { ((**self.0).IsInstanceOf)(self.0, object, class) != 0 }
    }

    /// Whether the calling thread holds an object's lock.
    pub fn holds_lock(self, object: jobject) -> bool {
        let (name, signature) = (c"holdsLock".as_ptr(), c"(Ljava/lang/Object;)Z".as_ptr());
        // SAFETY: the class is always there; the method is static and takes one object.
        unsafe {
            let thread = ((**self.0).FindClass)(self.0, c"java/lang/Thread".as_ptr());
            if self.failed() || thread.is_null() {
                return false;
            }
            let method = ((**self.0).GetStaticMethodID)(self.0, thread, name, signature);
            if self.failed() || method.is_null() {
                return false;
            }
            let arguments = [jni::jvalue { l: object }];
            let answer =
                ((**self.0).CallStaticBooleanMethodA)(self.0, thread, method, arguments.as_ptr());
            !self.failed() && answer != 0
        }
    }
}
