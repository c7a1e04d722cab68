//! The JVM's calls about methods: their ids, names and line numbers.

use super::{Jni, Jvmti, call, check};
use crate::loaders;
use jvmti_bindings::sys::jni::{self, jclass, jmethodID};
use jvmti_bindings::sys::jvmti::jvmtiLineNumberEntry;
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
    /// What is known of a method. A key whose class is gone gives empty texts. The key is an id
    /// that the JVM gave: it dereferences whatever it gets.
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
            if let Ok(loader) = self.class_loader(class) {
                out.loader = loaders::number(self, jni, loader);
                out.loader_class = loaders::class_name(out.loader);
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
}

impl Jni {
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
}
