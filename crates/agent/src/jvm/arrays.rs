//! Calls of static methods of our own Java classes that answer with an array, copied.

use super::Jni;
use super::classes::OwnClass;
use jvmti_bindings::sys::jni::{self, jobject};
use std::ffi::CStr;

impl Jni {
    /// Calls a static method `(int, int, int) byte[]`; `None` where it threw or answered null.
    pub fn call_static_bytes(
        self,
        class: OwnClass,
        name: &CStr,
        values: [i32; 3],
    ) -> Option<Vec<u8>> {
        let values = values.map(|i| jni::jvalue { i });
        self.frame(|| {
            let array = self.call_static_object(class, name, c"(III)[B", &values)?;
            let length = self.array_length(array);
            let mut bytes = vec![0_u8; length];
            // SAFETY: the array is one of bytes and has so many; the vector has room for them.
            unsafe {
                let length = jni::jsize::try_from(length).ok()?;
                let to = bytes.as_mut_ptr().cast();
                ((**self.0).GetByteArrayRegion)(self.0, array, 0, length, to);
            }
            (!self.failed()).then_some(bytes)
        })
        .flatten()
    }

    /// Calls a static method `() long[]`; `None` where it threw or answered null.
    pub fn call_static_long_array(self, class: OwnClass, name: &CStr) -> Option<Vec<i64>> {
        self.frame(|| {
            let array = self.call_static_object(class, name, c"()[J", &[])?;
            let length = self.array_length(array);
            let mut longs = vec![0_i64; length];
            // SAFETY: the array is one of longs and has so many; the vector has room for them.
            unsafe {
                let length = jni::jsize::try_from(length).ok()?;
                ((**self.0).GetLongArrayRegion)(self.0, array, 0, length, longs.as_mut_ptr());
            }
            (!self.failed()).then_some(longs)
        })
        .flatten()
    }

    /// Calls a static method that answers an array of objects, and has its reference and its length
    /// looked at. `None` where it threw or answered null.
    pub fn with_static_array<T>(
        self,
        class: OwnClass,
        (name, signature): (&CStr, &CStr),
        look: impl FnOnce(jobject, usize) -> Option<T>,
    ) -> Option<T> {
        self.frame(|| {
            let array = self.call_static_object(class, name, signature, &[])?;
            look(array, self.array_length(array))
        })
        .flatten()
    }

    fn array_length(self, array: jobject) -> usize {
        // SAFETY: a reference to an array, of this thread.
        let length = unsafe { ((**self.0).GetArrayLength)(self.0, array) };
        usize::try_from(length).unwrap_or(0)
    }

    /// Calls a static method of a class of ours with as many arguments as its signature says.
    fn call_static_object(
        self,
        class: OwnClass,
        name: &CStr,
        signature: &CStr,
        arguments: &[jni::jvalue],
    ) -> Option<jobject> {
        let class = class.class();
        // SAFETY: the class is ours and alive; the texts live across the call, and the arguments
        // are those that the signature names.
        let answer = unsafe {
            let signature = signature.as_ptr();
            let method = ((**self.0).GetStaticMethodID)(self.0, class, name.as_ptr(), signature);
            if self.failed() || method.is_null() {
                return None;
            }
            ((**self.0).CallStaticObjectMethodA)(self.0, class, method, arguments.as_ptr())
        };
        (!self.failed() && !answer.is_null()).then_some(answer)
    }
}
