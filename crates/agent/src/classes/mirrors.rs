//! Which classes are known by which number, and that they are gone: each class has its number as the
//! tag of its mirror, in a JVMTI environment of its own, and the JVM tells the tags of objects that
//! a collection has freed.
//!
//! A hidden class is linked before the JVM tells of it. Until then its tag says so ([`UNTOLD`]).
//!
//! HotSpot's own event for unloaded classes does not come on JDK 21 and 25. With the environment go
//! all tags, so nothing of them is left when a session ends.

use super::shared;
use crate::gate;
use crate::jvm::{Failure, Jvmti, Vm, call, check};
use jvmti_bindings::sys::jni::{jclass, jlong};
use jvmti_bindings::sys::jvmti::{self, jvmtiCapabilities, jvmtiEnv, jvmtiEventCallbacks};

/// A class that was linked and not told of yet: beside its number.
pub const UNTOLD: u64 = 1 << 62;

/// An environment that has tags on classes, until [`Mirrors::end`].
pub struct Mirrors(Jvmti);

impl Mirrors {
    pub fn new(vm: Vm) -> Result<Self, Failure> {
        let environment = vm.jvmti().ok_or(Failure::not_available("GetEnv"))?;
        let mut capabilities = jvmtiCapabilities::default();
        capabilities.set_can_tag_objects(true);
        capabilities.set_can_generate_object_free_events(true);
        let mut callbacks = jvmtiEventCallbacks::default();
        callbacks.ObjectFree = Some(freed);
        let ready = environment
            .add_capabilities(&capabilities)
            .and_then(|()| environment.set_callbacks(&callbacks))
            .and_then(|()| environment.event(jvmti::JVMTI_EVENT_OBJECT_FREE, true));
        match ready {
            Ok(()) => Ok(Mirrors(environment)),
            Err(failure) => {
                let _ = environment.dispose();
                Err(failure)
            }
        }
    }

    /// The number of a class; zero if it has none.
    pub fn number(&self, class: jclass) -> u64 {
        let mut tag: jlong = 0;
        match call!(self.0, GetTag, class, &raw mut tag) {
            Ok(()) => tag.cast_unsigned(),
            Err(_) => 0,
        }
    }

    /// Gives a class its number. False if the JVM has no memory for it.
    pub fn set(&self, class: jclass, number: u64) -> bool {
        call!(self.0, SetTag, class, number.cast_signed()).is_ok()
    }

    /// The JVM tells what it has not told yet of classes that are gone, and no more afterwards.
    pub fn close(&self) {
        let _ = self.0.event(jvmti::JVMTI_EVENT_OBJECT_FREE, false);
    }

    pub fn end(&self) {
        let _ = self.0.dispose();
    }
}

/// The mirror of a class was freed. No call into the JVM is allowed here.
extern "system" fn freed(_: *mut jvmtiEnv, tag: jlong) {
    let number = tag.cast_unsigned() & !UNTOLD;
    gate::enter((), || shared::with_session(|shared| shared.unloaded(number)));
}
