//! What another engine that weaves a few methods needs of this one: which classes and methods are
//! better left alone, and the book of how classes were left, which is one for all.

use super::intrinsics::{self, MARK};
use super::{archive, locked, recorder, redefined, rules};
use crate::jvm::classes::Classes;
use crate::jvm::{Jni, Jvmti};
use jvmti_bindings::sys::jni::jclass;

pub use intrinsics::is_never_run;

/// Whether a recording has classes woven, so that no other engine may.
pub fn is_recording() -> bool {
    locked(&super::RECORDING).is_some()
}

/// Why no class of this JVM may be changed, if so.
pub fn refusal(jvmti: Jvmti) -> Option<&'static str> {
    archive::refusal(jvmti)
}

/// Why a class is not to be loaded again, if so.
pub fn why_left_alone(jni: Jni, all: &Classes<'_>, class: jclass) -> Option<&'static str> {
    if recorder::is_any_event(jni, class) {
        return Some(recorder::REASON);
    }
    let is_changed = jni.forgets_redefinitions() && redefined::is_changed(jni, all, class);
    is_changed.then_some(
        "somebody else redefined it since it was woven last, and this JVM might bring back its \
         older code (JDK-7124710)",
    )
}

/// Notes around a batch how classes are left.
pub fn reload<R>(jni: Jni, all: &Classes<'_>, batch: &[jclass], work: impl FnOnce() -> R) -> R {
    if !jni.forgets_redefinitions() {
        return work();
    }
    let mut left = all.list().to_vec();
    left.retain(|class| redefined::is_left(jni, all, *class));
    let done = work();
    left.iter().for_each(|class| redefined::leave_again(jni, all, *class));
    batch.iter().for_each(|class| redefined::leave(jni, all, *class));
    done
}

/// Methods of a class that the JVM's compilers replace, by position.
pub fn intrinsics(loader: u32, bytes: &[u8]) -> Vec<usize> {
    rules::marked(loader, bytes, &[MARK])
}
