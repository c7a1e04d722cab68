//! The JVM's calls about methods and threads that sampling makes.
//!
//! Belongs to `jvm`; apart only because it is a subject of its own.

use super::ids::MethodIds;
use crate::classes::Classes;
use crate::jvm::{Failure, Jni, Jvmti, call, check};
use jvmti_bindings::sys::jni::{self, jclass, jfieldID, jlong, jmethodID, jobject};
use jvmti_bindings::sys::jvmti::{self, jvmtiLineNumberEntry};
use std::ffi::{CStr, c_char};
use std::ptr;
use tare_arena::samples::{LineEntry, SampleMethod};

/// A text that the JVM allocated, as ours.
fn take_text(jvmti: Jvmti, text: *mut c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a NUL-terminated text from the JVM that we now own.
    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    jvmti.deallocate(text.cast());
    copy
}

impl Jvmti {
    /// What is known of a method. A key whose class is gone gives empty texts. The key is an id that the JVM
    /// gave: it dereferences whatever it gets.
    pub fn describe_method(self, jni: Jni, key: u64) -> SampleMethod {
        let method = key as jmethodID;
        let mut out = SampleMethod { key, ..SampleMethod::default() };
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        let named =
            call!(self, GetMethodName, method, &raw mut name, &raw mut descriptor, ptr::null_mut());
        if named.is_err() {
            return out;
        }
        out.name = take_text(self, name);
        out.descriptor = take_text(self, descriptor);
        let mut modifiers: jni::jint = 0;
        if call!(self, GetMethodModifiers, method, &raw mut modifiers).is_ok() {
            out.modifiers = modifiers.cast_unsigned();
        }
        let _ = jni.frame(|| {
            let mut class: jclass = ptr::null_mut();
            if call!(self, GetMethodDeclaringClass, method, &raw mut class).is_err() {
                return;
            }
            let mut signature = ptr::null_mut();
            if call!(self, GetClassSignature, class, &raw mut signature, ptr::null_mut()).is_ok() {
                let text = take_text(self, signature);
                let name = text.strip_prefix('L').and_then(|text| text.strip_suffix(';'));
                out.class = name.unwrap_or(&text).to_owned();
            }
            let mut file = ptr::null_mut();
            if call!(self, GetSourceFileName, class, &raw mut file).is_ok() {
                out.file = take_text(self, file);
            }
        });
        out.lines = self.lines(method);
        out
    }

    fn lines(self, method: jmethodID) -> Vec<LineEntry> {
        let mut count: jni::jint = 0;
        let mut table: *mut jvmtiLineNumberEntry = ptr::null_mut();
        if call!(self, GetLineNumberTable, method, &raw mut count, &raw mut table).is_err() {
            return Vec::new();
        }
        if table.is_null() || count <= 0 {
            return Vec::new();
        }
        // SAFETY: on success `table` holds `count` entries.
        let entries = unsafe { std::slice::from_raw_parts(table, count as usize) };
        let mut lines: Vec<_> = entries
            .iter()
            .filter_map(|entry| {
                Some(LineEntry {
                    bci: u16::try_from(entry.start_location).ok()?,
                    line: u16::try_from(entry.line_number).ok()?,
                })
            })
            .collect();
        self.deallocate(table.cast());
        lines.sort_by_key(|entry| entry.bci);
        lines
    }

    /// The ids of a class's methods, which the JVM makes if there are none yet.
    pub fn method_ids(self, class: jclass) -> Option<Vec<u64>> {
        let (mut count, mut methods) = (0 as jni::jint, ptr::null_mut());
        call!(self, GetClassMethods, class, &raw mut count, &raw mut methods).ok()?;
        let ids = match usize::try_from(count) {
            Ok(count) if count > 0 && !methods.is_null() => {
                // SAFETY: on success `methods` holds `count` ids.
                let all = unsafe { std::slice::from_raw_parts(methods, count) };
                all.iter().map(|id| *id as u64).collect()
            }
            _ => Vec::new(),
        };
        self.deallocate(methods.cast());
        Some(ids)
    }

    /// Whether a method's class is gone. The id is one that the JVM gave.
    pub fn is_gone(self, id: u64) -> bool {
        let mut modifiers: jni::jint = 0;
        call!(self, GetMethodModifiers, id as jmethodID, &raw mut modifiers).is_err()
    }

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

    /// The address of a function of libjvm.
    pub fn inside_libjvm(self) -> *const std::ffi::c_void {
        // SAFETY: the environment's table is readable; its functions are libjvm's.
        unsafe { (*(*self.0).functions).GetVersionNumber.map_or(ptr::null(), |f| f as *const _) }
    }
}

impl Classes<'_> {
    /// Takes in the ids of all methods of these classes; returns how many classes.
    pub fn take_ids(&self, jvmti: Jvmti, ids: &MethodIds) -> u64 {
        self.list().iter().filter(|class| ids.add_class(jvmti, **class)).count() as u64
    }
}

/// The fields of a `java.lang.Thread` that we need, found once.
#[derive(Clone, Copy)]
pub struct ThreadFields {
    native: jfieldID,
    id: jfieldID,
    name: jfieldID,
}

// SAFETY: field ids are valid on all threads; `Thread` is never unloaded.
unsafe impl Send for ThreadFields {}
// SAFETY: as above.
unsafe impl Sync for ThreadFields {}

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

    /// A thread's name, from its field: `GetThreadInfo` looks through the list of all threads each time. Makes
    /// a local reference: call inside [`Jni::frame`].
    pub fn thread_name(self, fields: ThreadFields, thread: jobject) -> String {
        // SAFETY: a reference to a thread, and a field of that class.
        let name = unsafe { ((**self.0).GetObjectField)(self.0, thread, fields.name) };
        self.text(name).unwrap_or_default()
    }

    /// Makes a `VirtualThread` that never runs, with `id` in its field, and has `look` look at it through the address
    /// of a reference to it. `None` where there are no virtual threads.
    pub fn with_marked_virtual_thread<R>(
        self,
        fields: ThreadFields,
        id: jlong,
        look: impl FnOnce(u64) -> Option<R>,
    ) -> Option<R> {
        self.frame(|| {
            // SAFETY: the text lives across the call; the environment is this thread's, the field one of the
            // object's class. A local reference is the address of the object's address.
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

    /// The key of a method; zero if there is none of that name.
    pub fn method_key(self, class: &CStr, name: &CStr, descriptor: &CStr) -> u64 {
        let find = || {
            // SAFETY: the texts live across the calls; the environment is this thread's.
            unsafe {
                let class = ((**self.0).FindClass)(self.0, class.as_ptr());
                if self.failed() || class.is_null() {
                    return 0;
                }
                let (name, descriptor) = (name.as_ptr(), descriptor.as_ptr());
                let method = ((**self.0).GetMethodID)(self.0, class, name, descriptor);
                if !self.failed() && !method.is_null() {
                    return method as u64;
                }
                let method = ((**self.0).GetStaticMethodID)(self.0, class, name, descriptor);
                if self.failed() { 0 } else { method as u64 }
            }
        };
        self.frame(find).unwrap_or(0)
    }

    /// The ids of the methods of `java.lang.Object`; none if the JVM does not say.
    pub fn ids_of_object(self, jvmti: Jvmti) -> Vec<u64> {
        let ids = self.frame(|| {
            // SAFETY: the text lives across the call; the environment is this thread's.
            let class = unsafe { ((**self.0).FindClass)(self.0, c"java/lang/Object".as_ptr()) };
            if self.failed() || class.is_null() { None } else { jvmti.method_ids(class) }
        });
        ids.flatten().unwrap_or_default()
    }

    /// The `Thread` of the calling thread, in HotSpot's own form.
    pub fn environment(self) -> u64 {
        self.0 as u64
    }
}
