//! Weak references to objects, and what the JVM tells of an object that was just allocated.
//!
//! A weak reference is a number here: whoever has copies of one sees to it that it is deleted once,
//! when nobody uses it any more.

use super::{Failure, Jni, Jvmti, call, check};
use jvmti_bindings::sys::jni::{jclass, jint, jobject};
use std::ffi::CStr;
use std::ptr;

/// A weak global reference, alive until [`Jni::delete_weak`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weak(jobject);

// SAFETY: weak global references may be used from any thread.
unsafe impl Send for Weak {}

impl Weak {
    /// Where HotSpot keeps the object's address: what a reference is, but for its lowest bits.
    pub fn slot(self) -> u64 {
        self.0 as u64 & !3
    }
}

impl Jni {
    /// `None` when the JVM is out of memory for references.
    pub fn weak_object(self, object: jobject) -> Option<Weak> {
        // SAFETY: a reference of the calling thread.
        let weak = unsafe { ((**self.0).NewWeakGlobalRef)(self.0, object) };
        match weak.is_null() {
            // What the JVM has thrown for it is not the program's.
            true => {
                self.failed();
                None
            }
            false => Some(Weak(weak)),
        }
    }

    /// Calls with the class of an object, which is a reference for that long. Runs no Java.
    pub fn with_class_of<R>(self, object: jobject, work: impl FnOnce(jclass) -> R) -> Option<R> {
        // SAFETY: a reference of the calling thread.
        let class = unsafe { ((**self.0).GetObjectClass)(self.0, object) };
        if class.is_null() {
            return None;
        }
        let result = work(class);
        self.delete_local(class);
        Some(result)
    }

    /// Whether a Java exception is pending.
    pub fn is_throwing(self) -> bool {
        // SAFETY: the environment belongs to the calling thread; allowed at any time.
        unsafe { ((**self.0).ExceptionCheck)(self.0) != 0 }
    }

    /// Whether the object was collected.
    pub fn is_collected(self, weak: Weak) -> bool {
        self.is_same(weak.0, ptr::null_mut())
    }

    /// Whether it refers to this object.
    pub fn refers_to(self, weak: Weak, object: jobject) -> bool {
        self.is_same(weak.0, object)
    }

    pub fn delete_weak(self, weak: Weak) {
        // SAFETY: it came from NewWeakGlobalRef, and is deleted once.
        unsafe { ((**self.0).DeleteWeakGlobalRef)(self.0, weak.0) };
    }

    /// A reference to a new object that nothing else refers to. It is cleared by the first
    /// collection that proves anything of objects which were there before it.
    pub fn weak_to_garbage(self) -> Option<Weak> {
        self.frame(|| {
            // SAFETY: the text lives across the call; the environment is this thread's, and so
            // are the references.
            unsafe {
                let class = ((**self.0).FindClass)(self.0, c"java/lang/Object".as_ptr());
                if self.failed() || class.is_null() {
                    return None;
                }
                let object = ((**self.0).AllocObject)(self.0, class);
                if self.failed() || object.is_null() { None } else { self.weak_object(object) }
            }
        })
        .flatten()
    }
}

impl Jvmti {
    /// An object's identity hash code.
    pub fn identity_hash(self, object: jobject) -> Option<jint> {
        let mut hash = 0;
        call!(self, GetObjectHashCode, object, &raw mut hash).ok()?;
        Some(hash)
    }

    /// The signature of a class, also of an array's: `Lcom/acme/Order;`, `[B`.
    pub fn signature(self, class: jclass) -> Option<String> {
        let mut signature = ptr::null_mut();
        call!(self, GetClassSignature, class, &raw mut signature, ptr::null_mut()).ok()?;
        // SAFETY: on success a NUL-terminated text that we now own.
        let text = unsafe { CStr::from_ptr(signature) }.to_string_lossy().into_owned();
        self.deallocate(signature.cast());
        Some(text)
    }

    /// Bytes of allocation between two samples, on average, for the whole JVM.
    pub fn set_allocation_interval(self, bytes: u64) -> Result<(), Failure> {
        let bytes = jint::try_from(bytes).unwrap_or(jint::MAX);
        call!(self, SetHeapSamplingInterval, bytes)
    }
}
