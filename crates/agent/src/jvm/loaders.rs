//! What a class loader has as fields: its name and its parent. Runs no Java.

use super::Jni;
use jvmti_bindings::sys::jni::{jfieldID, jobject};
use std::ffi::CStr;

/// Fields of `ClassLoader`.
#[derive(Clone, Copy)]
pub struct Fields {
    name: jfieldID,
    parent: jfieldID,
}

// SAFETY: ids of fields may be used on any thread; `ClassLoader` is never unloaded.
unsafe impl Send for Fields {}
// SAFETY: as above.
unsafe impl Sync for Fields {}

impl Jni {
    pub fn loader_fields(self) -> Option<Fields> {
        self.frame(|| {
            let class = self.found(c"java/lang/ClassLoader")?;
            let field = |name: &CStr, kind: &CStr| {
                // SAFETY: the texts live across the call; the environment is this thread's.
                let field =
                    unsafe { ((**self.0).GetFieldID)(self.0, class, name.as_ptr(), kind.as_ptr()) };
                (!self.failed() && !field.is_null()).then_some(field)
            };
            Some(Fields {
                name: field(c"name", c"Ljava/lang/String;")?,
                parent: field(c"parent", c"Ljava/lang/ClassLoader;")?,
            })
        })?
    }

    /// The name that a loader was given, and its parent, which may be null. Makes local references:
    /// call inside [`Jni::frame`].
    pub fn loader_name_and_parent(
        self,
        fields: Fields,
        loader: jobject,
    ) -> (Option<String>, jobject) {
        // SAFETY: a reference to a loader, and fields of that class.
        let [name, parent] = [fields.name, fields.parent]
            .map(|field| unsafe { ((**self.0).GetObjectField)(self.0, loader, field) });
        (self.text(name), parent)
    }
}
