//! The JVM's calls about classes: which are loaded, changing them, defining one of our own.

use super::{Failure, Jni, Jvmti, call, check};
use crate::loaders;
use jvmti_bindings::sys::jni::{self, jclass, jlong, jobject, jthread};
use jvmti_bindings::sys::jvmti;
use std::ffi::{CStr, CString};
use std::ptr;

/// Local references to classes; valid inside the [`Jni::frame`] they were made in.
pub struct Classes<'a> {
    jvmti: Jvmti,
    jni: Jni,
    list: &'a [jclass],
}

impl Jvmti {
    /// Runs `body` on all loaded classes. Call inside [`Jni::frame`].
    pub fn with_loaded_classes<R>(
        self,
        jni: Jni,
        body: impl FnOnce(&Classes<'_>) -> R,
    ) -> Result<R, Failure> {
        let (mut count, mut classes) = (0 as jni::jint, ptr::null_mut());
        call!(self, GetLoadedClasses, &raw mut count, &raw mut classes)?;
        // SAFETY: on success `classes` holds `count` references.
        let list = unsafe { std::slice::from_raw_parts(classes, count.max(0) as usize) };
        let result = body(&Classes { jvmti: self, jni, list });
        self.deallocate(classes.cast());
        Ok(result)
    }

    /// Some classes, by references of the current frame.
    pub fn classes(self, jni: Jni, list: &[jclass]) -> Classes<'_> {
        Classes { jvmti: self, jni, list }
    }

    /// Asks the JVM to load these classes again through the hooks, all or none.
    pub fn retransform(self, classes: &[jclass]) -> Result<(), Failure> {
        let count = jni::jint::try_from(classes.len()).unwrap_or(0);
        call!(self, RetransformClasses, count, classes.as_ptr())
    }

    /// Memory that the JVM frees, holding a copy of `bytes`.
    pub fn copy_to_jvm(self, bytes: &[u8]) -> Result<*mut u8, Failure> {
        let mut memory = ptr::null_mut();
        call!(self, Allocate, jlong::try_from(bytes.len()).unwrap_or(0), &raw mut memory)?;
        // SAFETY: the JVM just gave us this many bytes, and they overlap nothing of ours.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
        Ok(memory)
    }
}

impl Classes<'_> {
    pub fn list(&self) -> &[jclass] {
        self.list
    }

    /// The classes that `wanted` accepts, by name (`com/acme/Orders`), and that the JVM lets us
    /// change. Arrays and primitive types have no such name.
    pub fn select(&self, wanted: impl Fn(&str, jclass) -> bool) -> Vec<jclass> {
        self.list
            .iter()
            .copied()
            .filter(|&class| {
                self.name(class)
                    .is_some_and(|name| wanted(&name, class) && self.is_modifiable(class))
            })
            .collect()
    }

    pub fn name(&self, class: jclass) -> Option<String> {
        name_of(self.jvmti, class)
    }

    pub fn loader(&self, class: jclass) -> u32 {
        let mut loader: jobject = ptr::null_mut();
        if call!(self.jvmti, GetClassLoader, class, &raw mut loader).is_err() {
            return 0;
        }
        loaders::number(self.jvmti, self.jni, loader)
    }

    /// Has the JVM link a class unless it is; where it cannot, says which exception it threw.
    ///
    /// A class must be linked before it is loaded again. HotSpot makes the bytes that the hooks see
    /// from the class as it is, and linking rewrites the operands of its calls: of a class that
    /// another thread is linking meanwhile the bytes make no sense, so that they fail verification,
    /// or crash the program where nothing verifies them (JDK-8277444, in JDK 17, 21, and 25 before
    /// 25.0.2). The program's loaders may run, as they do when the JVM verifies a changed class.
    pub fn link(&self, class: jclass) -> Result<(), String> {
        if self.is_linked(class) {
            return Ok(());
        }
        let thrown = self.jni.frame(|| name_of(self.jvmti, self.jni.have_linked(class)));
        // Linking comes first; what follows it may have failed.
        if self.is_linked(class) {
            return Ok(());
        }
        let thrown = thrown.flatten().map(|name| name.replace('/', "."));
        Err(thrown.unwrap_or_else(|| "no reason given".to_owned()))
    }

    pub fn is_linked(&self, class: jclass) -> bool {
        const PREPARED: jni::jint = 2;
        let mut status: jni::jint = 0;
        call!(self.jvmti, GetClassStatus, class, &raw mut status).is_ok() && status & PREPARED != 0
    }

    fn is_modifiable(&self, class: jclass) -> bool {
        let mut answer: jni::jboolean = 0;
        call!(self.jvmti, IsModifiableClass, class, &raw mut answer).is_ok() && answer != 0
    }
}

/// The name of a class that is no array, as class files spell it.
pub fn name_of(jvmti: Jvmti, class: jclass) -> Option<String> {
    let mut signature = ptr::null_mut();
    call!(jvmti, GetClassSignature, class, &raw mut signature, ptr::null_mut()).ok()?;
    // SAFETY: on success a NUL-terminated text that we now own.
    let text = unsafe { CStr::from_ptr(signature) }.to_string_lossy();
    let name = text.strip_prefix('L').and_then(|t| t.strip_suffix(';')).map(str::to_owned);
    jvmti.deallocate(signature.cast());
    name
}

/// A class of ours in the JVM, held by a global reference for the JVM's life.
#[derive(Clone, Copy)]
pub struct OwnClass(jclass);

// SAFETY: global references may be used from any thread.
unsafe impl Send for OwnClass {}
// SAFETY: as above; the reference is never changed.
unsafe impl Sync for OwnClass {}

impl OwnClass {
    pub fn class(self) -> jclass {
        self.0
    }
}

impl Jni {
    /// Defines a class for the JVM's own loader.
    pub fn define(self, name: &CStr, bytes: &[u8]) -> Option<OwnClass> {
        let length = jni::jsize::try_from(bytes.len()).ok()?;
        // SAFETY: name and bytes live across the call; the environment is this thread's.
        let class = unsafe {
            ((**self.0).DefineClass)(
                self.0,
                name.as_ptr(),
                ptr::null_mut(),
                bytes.as_ptr().cast(),
                length,
            )
        };
        self.own(class)
    }

    /// Has the JVM initialise a class of ours.
    pub fn initialise(self, class: OwnClass) {
        let (name, signature) = (c"<clinit>".as_ptr(), c"()V".as_ptr());
        // SAFETY: the class is ours and alive; the texts live across the call. Looking for any
        // static method initialises the class, also when there is no such method.
        unsafe { ((**self.0).GetStaticMethodID)(self.0, class.0, name, signature) };
        self.failed();
    }

    fn own(self, class: jclass) -> Option<OwnClass> {
        if self.failed() || class.is_null() {
            return None;
        }
        // SAFETY: a local reference of this thread.
        let global = unsafe { ((**self.0).NewGlobalRef)(self.0, class) };
        (!global.is_null()).then_some(OwnClass(global))
    }

    /// Calls a static method `(long) void` of a class of ours.
    pub fn call_static_long(self, class: OwnClass, name: &CStr, value: i64) -> bool {
        self.call_static_void(class, name, c"(J)V", &[jni::jvalue { j: value }])
    }

    /// Calls a static method `(long, long) void` of a class of ours.
    pub fn call_static_longs(self, class: OwnClass, name: &CStr, a: i64, b: i64) -> bool {
        self.call_static_void(class, name, c"(JJ)V", &[jni::jvalue { j: a }, jni::jvalue { j: b }])
    }

    /// Calls a static method `(String, long) void` of a class of ours.
    pub fn call_static_text_long(self, class: OwnClass, name: &CStr, a: &CStr, b: i64) -> bool {
        self.frame(|| {
            let arguments = [jni::jvalue { l: self.new_text(a) }, jni::jvalue { j: b }];
            self.call_static_void(class, name, c"(Ljava/lang/String;J)V", &arguments)
        })
        .unwrap_or(false)
    }

    /// A Java string, or null.
    pub fn new_text(self, text: &CStr) -> jni::jobject {
        // SAFETY: the text lives across the call; the environment is this thread's.
        let made = unsafe { ((**self.0).NewStringUTF)(self.0, text.as_ptr()) };
        if self.failed() { ptr::null_mut() } else { made }
    }

    /// The text of a Java string.
    pub fn text(self, string: jni::jobject) -> Option<String> {
        if string.is_null() {
            return None;
        }
        // SAFETY: a string of this thread; the bytes end with a zero and are ours until released.
        unsafe {
            let bytes = ((**self.0).GetStringUTFChars)(self.0, string, ptr::null_mut());
            if bytes.is_null() {
                self.failed();
                return None;
            }
            let text = CStr::from_ptr(bytes).to_string_lossy().into_owned();
            ((**self.0).ReleaseStringUTFChars)(self.0, string, bytes);
            Some(text)
        }
    }

    /// Calls a static method of a class of ours with as many arguments as its signature says.
    fn call_static_void(
        self,
        class: OwnClass,
        name: &CStr,
        signature: &CStr,
        arguments: &[jni::jvalue],
    ) -> bool {
        // SAFETY: the class is ours and alive; the texts live across the call.
        let method = unsafe {
            let signature = signature.as_ptr();
            ((**self.0).GetStaticMethodID)(self.0, class.0, name.as_ptr(), signature)
        };
        if self.failed() || method.is_null() {
            return false;
        }
        // SAFETY: the arguments that the signature names.
        unsafe {
            ((**self.0).CallStaticVoidMethodA)(self.0, class.0, method, arguments.as_ptr());
        }
        !self.failed()
    }

    /// Calls a static method of a class of ours that takes so many `int`s and returns a `long`.
    pub fn call_static_ints<const N: usize>(
        self,
        class: OwnClass,
        name: &CStr,
        values: [i32; N],
    ) -> Option<i64> {
        let signature = CString::new(format!("({})J", "I".repeat(N))).ok()?;
        self.get_static(class, name, &signature, &values.map(|i| jni::jvalue { i }))
    }

    /// Calls a static method `() long` of a class of ours.
    pub fn get_static_long(self, class: OwnClass, name: &CStr) -> Option<i64> {
        self.get_static(class, name, c"()J", &[])
    }

    /// Calls a static method `(Thread) long` of a class of ours.
    pub fn get_static_long_of_thread(
        self,
        class: OwnClass,
        name: &CStr,
        thread: jthread,
    ) -> Option<i64> {
        let signature = c"(Ljava/lang/Thread;)J";
        self.get_static(class, name, signature, &[jni::jvalue { l: thread }])
    }

    /// Calls a static method that returns a long, with as many arguments as its signature says.
    fn get_static(
        self,
        class: OwnClass,
        name: &CStr,
        signature: &CStr,
        arguments: &[jni::jvalue],
    ) -> Option<i64> {
        // SAFETY: as in `call_static_void`.
        let method = unsafe {
            let signature = signature.as_ptr();
            ((**self.0).GetStaticMethodID)(self.0, class.0, name.as_ptr(), signature)
        };
        if self.failed() || method.is_null() {
            return None;
        }
        // SAFETY: the arguments that the signature names.
        let answer = unsafe {
            ((**self.0).CallStaticLongMethodA)(self.0, class.0, method, arguments.as_ptr())
        };
        (!self.failed()).then_some(answer)
    }

    /// The id of a static method of a class of ours.
    pub fn static_method(
        self,
        class: OwnClass,
        name: &CStr,
        signature: &CStr,
    ) -> Option<jni::jmethodID> {
        self.static_method_of(class.0, name, signature)
    }

    /// The same of any class that is referred to.
    pub fn static_method_of(
        self,
        class: jclass,
        name: &CStr,
        signature: &CStr,
    ) -> Option<jni::jmethodID> {
        let (name, signature) = (name.as_ptr(), signature.as_ptr());
        // SAFETY: the class is alive; the texts live across the call.
        let method = unsafe { ((**self.0).GetStaticMethodID)(self.0, class, name, signature) };
        (!self.failed() && !method.is_null()).then_some(method)
    }

    /// A class of the JDK that is loaded, or can be. Makes a local reference: call inside
    /// [`Jni::frame`].
    pub fn found(self, name: &CStr) -> Option<jclass> {
        // SAFETY: the name lives across the call.
        let class = unsafe { ((**self.0).FindClass)(self.0, name.as_ptr()) };
        (!self.failed() && !class.is_null()).then_some(class)
    }

    /// Calls a static method `() void` of a class of ours.
    pub fn call_static(self, class: OwnClass, name: &CStr) -> bool {
        self.call_static_void(class, name, c"()V", &[])
    }

    /// Whether this JVM may load a class again from older bytes than those it was last redefined
    /// with (JDK-7124710, up to JDK 19).
    pub fn forgets_redefinitions(self) -> bool {
        const JDK_20: jni::jint = 0x0014_0000;
        // SAFETY: the environment belongs to the calling thread.
        unsafe { ((**self.0).GetVersion)(self.0) < JDK_20 }
    }

    /// How often the JVM has redefined or loaded again a class or one of its super classes.
    pub fn changes(self, class: jclass) -> Option<i32> {
        // SAFETY: a class is an object, and its own class is java.lang.Class; the texts live
        // across the call, and the field is an int, as asked for.
        unsafe {
            let kind = ((**self.0).GetObjectClass)(self.0, class);
            let (name, signature) = (c"classRedefinedCount".as_ptr(), c"I".as_ptr());
            let field = ((**self.0).GetFieldID)(self.0, kind, name, signature);
            ((**self.0).DeleteLocalRef)(self.0, kind);
            if self.failed() || field.is_null() {
                return None;
            }
            Some(((**self.0).GetIntField)(self.0, class, field))
        }
    }

    /// Asks for the public fields of a class, because the JVM links it first; no other call links a
    /// class and neither initialises it nor looks at more. The class of the exception if one is
    /// thrown, or null. Call inside [`Jni::frame`].
    fn have_linked(self, class: jclass) -> jclass {
        // SAFETY: a class is an object, and its own class is java.lang.Class; the texts live across
        // the calls, and the method takes one boolean. What is thrown is taken before it is
        // cleared.
        unsafe {
            let kind = ((**self.0).GetObjectClass)(self.0, class);
            let (name, signature) =
                (c"getDeclaredFields0".as_ptr(), c"(Z)[Ljava/lang/reflect/Field;".as_ptr());
            let fields = ((**self.0).GetMethodID)(self.0, kind, name, signature);
            if !fields.is_null() {
                let only_public = [jni::jvalue { z: 1 }];
                ((**self.0).CallObjectMethodA)(self.0, class, fields, only_public.as_ptr());
            }
            let thrown = ((**self.0).ExceptionOccurred)(self.0);
            if !self.failed() || thrown.is_null() {
                return ptr::null_mut();
            }
            ((**self.0).GetObjectClass)(self.0, thrown)
        }
    }

    /// Whether a Java exception is pending; it is taken away.
    pub(crate) fn failed(self) -> bool {
        // SAFETY: the environment belongs to the calling thread.
        unsafe {
            let pending = ((**self.0).ExceptionCheck)(self.0) != 0;
            if pending {
                ((**self.0).ExceptionClear)(self.0);
            }
            pending
        }
    }
}

/// The JVMTI error that a class of a batch made the whole batch fail, as opposed to an error that
/// has nothing to do with classes.
pub fn is_about_a_class(failure: &Failure) -> bool {
    let about_environment = [
        jvmti::jvmtiError::WRONG_PHASE,
        jvmti::jvmtiError::OUT_OF_MEMORY,
        jvmti::jvmtiError::MUST_POSSESS_CAPABILITY,
        jvmti::jvmtiError::INVALID_ENVIRONMENT,
        jvmti::jvmtiError::UNATTACHED_THREAD,
    ];
    !about_environment.contains(&failure.error)
}
