//! The JVM's calls about threads: their fields, and the stacks of all of them.

use super::{Failure, Jni, Jvmti, call, check};
use jvmti_bindings::sys::jni::{self, jfieldID, jlong, jobject};
use jvmti_bindings::sys::jvmti;
use std::ffi::CStr;
use std::ptr;

/// The fields of a `java.lang.Thread` that we need, found once.
#[derive(Clone, Copy)]
pub struct ThreadFields {
    native: jfieldID,
    id: jfieldID,
    name: jfieldID,
}

#[cfg(test)]
impl ThreadFields {
    /// For what looks at no `Thread`.
    pub fn unknown() -> Self {
        let none = std::ptr::null_mut();
        ThreadFields { native: none, id: none, name: none }
    }
}

// SAFETY: field ids are valid on all threads; `Thread` is never unloaded.
unsafe impl Send for ThreadFields {}
// SAFETY: as above.
unsafe impl Sync for ThreadFields {}

impl Jvmti {
    /// Runs `body` on the stack of every platform thread, all of them at one safepoint: the
    /// thread, and its frames as (method, bytecode index), the innermost first. Call inside
    /// [`Jni::frame`].
    pub fn with_stacks(
        self,
        depth: usize,
        mut body: impl FnMut(jobject, &[jvmti::jvmtiFrameInfo]),
    ) -> Result<(), Failure> {
        let depth = jni::jint::try_from(depth).unwrap_or(jni::jint::MAX);
        let (mut stacks, mut count) = (ptr::null_mut(), 0 as jni::jint);
        call!(self, GetAllStackTraces, depth, &raw mut stacks, &raw mut count)?;
        // SAFETY: on success `stacks` holds `count` entries, each with as many frames as it says.
        unsafe {
            let count = if stacks.is_null() { 0 } else { count.max(0) as usize };
            let stacks = if count == 0 { &[] } else { std::slice::from_raw_parts(stacks, count) };
            for stack in stacks {
                let frames = stack.frame_count.max(0) as usize;
                let frames = match frames {
                    0 => &[],
                    _ => std::slice::from_raw_parts(stack.frame_buffer, frames),
                };
                body(stack.thread, frames);
            }
        }
        self.deallocate(stacks.cast());
        Ok(())
    }
}

impl Jni {
    pub fn thread_fields(self) -> Option<ThreadFields> {
        self.frame(|| {
            // SAFETY: the texts live across the calls; the environment is this thread's.
            unsafe {
                let class = ((**self.0).FindClass)(self.0, c"java/lang/Thread".as_ptr());
                if self.failed() || class.is_null() {
                    return None;
                }
                let field = |name: &CStr, kind: &CStr| {
                    let field =
                        ((**self.0).GetFieldID)(self.0, class, name.as_ptr(), kind.as_ptr());
                    (!self.failed() && !field.is_null()).then_some(field)
                };
                Some(ThreadFields {
                    native: field(c"eetop", c"J")?,
                    id: field(c"tid", c"J")?,
                    name: field(c"name", c"Ljava/lang/String;")?,
                })
            }
        })?
    }

    /// HotSpot's own thread behind a `Thread` (zero when it is not alive), and its Java id.
    pub fn thread_numbers(self, fields: ThreadFields, thread: jobject) -> (u64, u64) {
        // SAFETY: a reference to a thread, and fields of that class.
        unsafe {
            let get = |field| -> jlong { ((**self.0).GetLongField)(self.0, thread, field) };
            (get(fields.native).cast_unsigned(), get(fields.id).cast_unsigned())
        }
    }

    /// A thread's name, from its field: `GetThreadInfo` looks through the list of all threads each
    /// time. Makes a local reference: call inside [`Jni::frame`].
    pub fn thread_name(self, fields: ThreadFields, thread: jobject) -> String {
        // SAFETY: a reference to a thread, and a field of that class.
        let name = unsafe { ((**self.0).GetObjectField)(self.0, thread, fields.name) };
        self.text(name).unwrap_or_default()
    }

    /// Makes a `VirtualThread` that never runs, with `id` in its field, and has `look` look at it
    /// through the address of a reference to it. `None` where there are no virtual threads.
    pub fn with_marked_virtual_thread<R>(
        self,
        fields: ThreadFields,
        id: jlong,
        look: impl FnOnce(u64) -> Option<R>,
    ) -> Option<R> {
        self.frame(|| {
            // SAFETY: the text lives across the call; the environment is this thread's, the field
            // one of the object's class. A local reference is the address of the object's address.
            unsafe {
                let class = ((**self.0).FindClass)(self.0, c"java/lang/VirtualThread".as_ptr());
                if self.failed() || class.is_null() {
                    return None;
                }
                let object = ((**self.0).AllocObject)(self.0, class);
                if self.failed() || object.is_null() {
                    return None;
                }
                ((**self.0).SetLongField)(self.0, object, fields.id, id);
                look(object as u64)
            }
        })
        .flatten()
    }

    /// The `Thread` of the calling thread, in HotSpot's own form.
    pub fn environment(self) -> u64 {
        self.0 as u64
    }
}
