//! What the JVM does for the module of a class that a hook has changed.
//!
//! When a hook first changes a class of a named module, HotSpot lets that module read the unnamed
//! ones, by a call of Java code (`jdk.internal.module.Modules.transformedByAgent`). If that class is
//! being loaded, the code runs on the loading thread before the class is there; should it need the
//! very same class, the program gets a `ClassCircularityError`, and gets it again at every use.

use super::Jni;
use jvmti_bindings::sys::jni::{self, jclass, jobject};

impl Jni {
    /// Has that Java code run for `java.base`, so that the classes it needs are there. To be called
    /// before a hook changes classes that are being loaded. The module reads nothing then that the
    /// JVM would not let it read at the first change; a JDK without that code has no such call.
    pub fn prepare_for_changed_classes(self) {
        self.frame(|| {
            let modules = self.found(c"jdk/internal/module/Modules")?;
            let base = self.module_of(modules)?;
            // What adds a read, and then what finds it there.
            self.transformed_by_agent(modules, base);
            self.transformed_by_agent(modules, base);
            Some(())
        });
    }

    /// The module of a class. Makes local references: call inside [`Jni::frame`].
    fn module_of(self, class: jclass) -> Option<jobject> {
        // SAFETY: a class is an object, and its own class is java.lang.Class; the texts live across
        // the calls, and the method takes nothing.
        unsafe {
            let kind = ((**self.0).GetObjectClass)(self.0, class);
            let (name, signature) = (c"getModule".as_ptr(), c"()Ljava/lang/Module;".as_ptr());
            let method = ((**self.0).GetMethodID)(self.0, kind, name, signature);
            if self.failed() || method.is_null() {
                return None;
            }
            let none: [jni::jvalue; 0] = [];
            let module = ((**self.0).CallObjectMethodA)(self.0, class, method, none.as_ptr());
            (!self.failed() && !module.is_null()).then_some(module)
        }
    }

    fn transformed_by_agent(self, modules: jclass, module: jobject) {
        // SAFETY: a class, and a module for the one argument that the signature names; the texts
        // live across the calls.
        unsafe {
            let (name, signature) =
                (c"transformedByAgent".as_ptr(), c"(Ljava/lang/Module;)V".as_ptr());
            let method = ((**self.0).GetStaticMethodID)(self.0, modules, name, signature);
            if self.failed() || method.is_null() {
                return;
            }
            let arguments = [jni::jvalue { l: module }];
            ((**self.0).CallStaticVoidMethodA)(self.0, modules, method, arguments.as_ptr());
            self.failed();
        }
    }
}
