//! Where objects have their fields. The JDK's own `Unsafe` is asked, which the JVM answers from the
//! class itself.

use super::Jni;
use jvmti_bindings::sys::jni::{jclass, jvalue};
use std::ffi::CStr;

const UNSAFE: &CStr = c"jdk/internal/misc/Unsafe";

impl Jni {
    /// The distances of fields from the beginning of an object of a class, in bytes. `None` if one
    /// of them is not there. Makes local references: call inside [`Jni::frame`].
    pub fn field_offsets<const N: usize>(
        self,
        class: jclass,
        names: [&CStr; N],
    ) -> Option<[u64; N]> {
        let kind = self.found(UNSAFE)?;
        let get = self.static_method_of(kind, c"getUnsafe", c"()Ljdk/internal/misc/Unsafe;")?;
        let (name, signature) = (c"objectFieldOffset", c"(Ljava/lang/Class;Ljava/lang/String;)J");
        // SAFETY: the class is referred to, the texts live across the calls, and each method gets
        // what its signature names.
        unsafe {
            let (name, signature) = (name.as_ptr(), signature.as_ptr());
            let method = ((**self.0).GetMethodID)(self.0, kind, name, signature);
            if self.failed() || method.is_null() {
                return None;
            }
            let asked = ((**self.0).CallStaticObjectMethodA)(self.0, kind, get, std::ptr::null());
            if self.failed() || asked.is_null() {
                return None;
            }
            let mut offsets = [0; N];
            for (offset, name) in offsets.iter_mut().zip(names) {
                let arguments = [jvalue { l: class }, jvalue { l: self.new_text(name) }];
                let found = ((**self.0).CallLongMethodA)(self.0, asked, method, arguments.as_ptr());
                if self.failed() {
                    return None;
                }
                *offset = u64::try_from(found).ok()?;
            }
            Some(offsets)
        }
    }
}
