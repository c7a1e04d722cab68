//! Walks over the heap, and objects whose addresses can be looked up during one.

use super::{Failure, Jni, Jvmti, call, check};
use jvmti_bindings::sys::jni::{jint, jobject};
use jvmti_bindings::sys::jvmti::{jvmtiHeapCallbacks, jvmtiHeapReferenceCallback};
use std::ffi::c_void;
use std::ptr;

/// An object of ours that nothing else refers to, alive until [`Jni::delete_known`].
#[derive(Clone, Copy)]
pub struct Known(jobject);

impl Known {
    /// Where HotSpot keeps the object's address: what a reference is, but for its lowest bits.
    pub fn slot(self) -> *const u64 {
        ((self.0 as usize) & !3) as *const u64
    }
}

impl Jni {
    /// An array of so many nulls. `None` when the JVM is out of memory.
    pub fn known_object(self, length: jint) -> Option<Known> {
        self.frame(|| {
            // SAFETY: the environment is this thread's, and so are the local references; the text
            // lives across the call.
            unsafe {
                let class = ((**self.0).FindClass)(self.0, c"java/lang/Object".as_ptr());
                if self.failed() || class.is_null() {
                    return None;
                }
                let null = ptr::null_mut();
                let object = ((**self.0).NewObjectArray)(self.0, length, class, null);
                if self.failed() || object.is_null() {
                    return None;
                }
                let global = ((**self.0).NewGlobalRef)(self.0, object);
                (!self.failed() && !global.is_null()).then_some(Known(global))
            }
        })
        .flatten()
    }

    pub fn delete_known(self, known: Known) {
        // SAFETY: it came from NewGlobalRef, and is deleted once.
        unsafe { ((**self.0).DeleteGlobalRef)(self.0, known.0) };
    }
}

impl Jvmti {
    /// Follows references from the roots on, in a pause, on a thread of the JVM's own. Needs the
    /// right to tag objects.
    ///
    /// # Safety
    /// `callback` can be called with `data` until this returns, on another thread.
    pub unsafe fn follow_references(
        self,
        callback: jvmtiHeapReferenceCallback,
        data: *mut c_void,
    ) -> Result<(), Failure> {
        let callbacks = jvmtiHeapCallbacks {
            heap_reference_callback: Some(callback),
            ..jvmtiHeapCallbacks::default()
        };
        let (class, object) = (ptr::null_mut(), ptr::null_mut());
        call!(self, FollowReferences, 0, class, object, &raw const callbacks, data.cast_const())
    }
}
