//! Virtual threads that park in a running JVM, of which nothing is woven: HotSpot tells when one is
//! about to leave its carrier, and when one has a carrier again.
//!
//! The thread itself runs both callbacks, in native code that its own Java code has called. When it
//! is about to leave, it is still mounted: its frames are there, and Java may be run as in any
//! native method. The same when it is back. That is so for a thread that parks. There are others: a
//! thread that waits for a monitor leaves from inside of the JVM. So the state that the thread has
//! given itself is looked at first, and Java runs only for one that is about to park.

use crate::events::Subscriber;
use crate::events::extensions::{self, Extended, Extension};
use crate::jvm::classes::OwnClass;
use crate::jvm::{Failure, Jni, Jvmti};
use jvmti_bindings::sys::jni::{jfieldID, jint, jmethodID, jthread};
use std::ffi::CStr;
use std::ptr;
use std::sync::OnceLock;

/// The method that looks at what the running thread is about to wait for.
struct Looker {
    class: OwnClass,
    leaves: jmethodID,
}

// SAFETY: ids of methods may be used on any thread, for as long as their class is there; that one
// is never unloaded.
unsafe impl Send for Looker {}
// SAFETY: as above.
unsafe impl Sync for Looker {}

static LOOKER: OnceLock<Looker> = OnceLock::new();

/// What is known of `VirtualThread`: its fields, the states in which a thread is about to park, and
/// the methods by which it tells the JVM.
#[derive(Clone, Copy)]
struct Known {
    state: jfieldID,
    id: jfieldID,
    parking: [jint; 2],
    telling: [jmethodID; 2],
}

// SAFETY: field ids are valid on all threads; the class is never unloaded.
unsafe impl Send for Known {}
// SAFETY: as above.
unsafe impl Sync for Known {}

static KNOWN: OnceLock<Option<Known>> = OnceLock::new();

/// Has the JVM tell of virtual threads; a failure if this one cannot.
pub fn begin(
    jvmti: Jvmti,
    jni: Jni,
    class: OwnClass,
    who: &'static Subscriber,
) -> Result<Extended, Failure> {
    if LOOKER.get().is_none() {
        let leaves = jni.static_method(class, c"leaves", c"()J");
        let leaves = leaves.ok_or(Failure::not_available("a method of the probe runtime"))?;
        let _ = LOOKER.set(Looker { class, leaves });
    }
    extensions::enable(
        jvmti,
        who,
        &[Extension::VirtualThreadMount, Extension::VirtualThreadUnmount],
    )
}

/// A virtual thread, which is the calling one, is about to leave its carrier.
pub fn unmounts(jni: Jni, thread: jthread) {
    let Some(known) = known(jni, thread) else { return };
    if !is_parking(jni, known, thread) {
        return;
    }
    let Some(looker) = LOOKER.get() else { return };
    // SAFETY: the calling thread's environment, and a static method of that class without
    // parameters, which returns a long.
    unsafe {
        let (class, method) = (looker.class.class(), looker.leaves);
        ((**jni.0).CallStaticLongMethodA)(jni.0, class, method, ptr::null());
    }
    jni.failed();
}

/// It has a carrier again.
pub fn mounts(jni: Jni, thread: jthread) {
    let Some(known) = known(jni, thread) else { return };
    // SAFETY: a virtual thread, and a field of its class.
    let id = unsafe { ((**jni.0).GetLongField)(jni.0, thread, known.id) };
    // One that is still about to park could not leave, and parks on its carrier now.
    let has_left = !is_parking(jni, known, thread);
    super::is_back(id.cast_unsigned(), has_left);
}

/// Whether a method only tells the JVM that a thread leaves: nobody wants to see it in a stack.
pub fn is_telling(method: u64) -> bool {
    let known = KNOWN.get().copied().flatten();
    known.is_some_and(|known| known.telling.iter().any(|id| *id as u64 == method))
}

fn is_parking(jni: Jni, known: Known, thread: jthread) -> bool {
    // SAFETY: a virtual thread, and a field of its class.
    let state = unsafe { ((**jni.0).GetIntField)(jni.0, thread, known.state) };
    known.parking.contains(&state)
}

/// Learned from the first thread that is met: its class is initialised by then, which we must not
/// be the ones to do.
fn known(jni: Jni, thread: jthread) -> Option<Known> {
    *KNOWN.get_or_init(|| {
        let learned = jni.with_class_of(thread, |class| {
            // SAFETY: the class is alive, the texts live across the calls, and the fields are of
            // the kinds that they are asked for as.
            unsafe {
                let field = |name: &CStr, kind: &CStr| {
                    let field = ((**jni.0).GetFieldID)(jni.0, class, name.as_ptr(), kind.as_ptr());
                    (!jni.failed() && !field.is_null()).then_some(field)
                };
                let constant = |name: &CStr| {
                    let (name, kind) = (name.as_ptr(), c"I".as_ptr());
                    let field = ((**jni.0).GetStaticFieldID)(jni.0, class, name, kind);
                    let is_there = !jni.failed() && !field.is_null();
                    is_there.then(|| ((**jni.0).GetStaticIntField)(jni.0, class, field))
                };
                let method = |name: &CStr, kind: &CStr| {
                    let (name, kind) = (name.as_ptr(), kind.as_ptr());
                    let method = ((**jni.0).GetMethodID)(jni.0, class, name, kind);
                    if jni.failed() { ptr::null_mut() } else { method }
                };
                Some(Known {
                    state: field(c"state", c"I")?,
                    id: field(c"tid", c"J")?,
                    parking: [constant(c"PARKING")?, constant(c"TIMED_PARKING")?],
                    telling: [
                        method(c"notifyJvmtiUnmount", c"(Z)V"),
                        method(c"yieldContinuation", c"()Z"),
                    ],
                })
            }
        });
        learned.flatten()
    })
}
