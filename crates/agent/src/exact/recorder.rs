//! Event classes of the JVM's flight recorder, which are left alone once the recorder has begun.
//!
//! The recorder writes their code itself, by Java code that runs on whatever thread has them loaded
//! again. JDK 24 and 25 do so once for every instruction of the old code, which for a class that
//! the recorder had changed before is thousands of times: minutes by the interpreter, and code that
//! is too long in the end. Nobody has to pay for that who only wants to count.

use super::{Recording, dotted};
use crate::jvm::Jni;
use crate::jvm::classes::Classes;
use jvmti_bindings::sys::jni::jclass;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use tare_classfile::ClassFile;

/// There is an object of it from when the recorder has begun.
const RECORDER: &str = "jdk/jfr/internal/PlatformRecorder";

/// What events are, by the names of their superclasses.
const EVENTS: [&[u8]; 2] = [b"jdk/internal/event/Event", b"jdk/jfr/Event"];
const EVENTS_OF_THE_JDK: &[u8] = b"jdk/jfr/events/";

pub const REASON: &str =
    "the flight recorder (JFR) generates its code, and would again at each retransformation";

/// The class that all events extend, for the JVM's life.
struct Base(jclass);

// SAFETY: a global reference, which may be used from any thread.
unsafe impl Send for Base {}
// SAFETY: as above; it is never changed.
unsafe impl Sync for Base {}

static BASE: OnceLock<Base> = OnceLock::new();

impl Recording {
    /// Looks whether the recorder has begun, among all loaded classes.
    pub(super) fn look_for_recorder(&self, jni: Jni) {
        jni.frame(|| {
            self.jvmti.with_loaded_classes(jni, |classes| {
                let names = classes.list().iter().filter_map(|&class| classes.name(class));
                names.for_each(|name| self.notice_recorder(&name));
            })
        });
    }

    /// Notes the name of a class that is loaded: with one of them the recorder begins.
    pub(super) fn notice_recorder(&self, name: &str) {
        if name == RECORDER {
            self.flight_recorder.store(true, Relaxed);
        }
    }

    /// Takes events out of the classes that are to be loaded again.
    pub(super) fn leave_events_alone(&self, jni: Jni, all: &Classes<'_>, chosen: &mut Vec<jclass>) {
        chosen.retain(|&class| {
            let is_event = self.is_event(jni, class);
            if is_event {
                self.refuse(&dotted(&all.name(class).unwrap_or_default()), REASON);
            }
            !is_event
        });
    }

    /// Whether a class is an event that the recorder changes.
    pub(super) fn is_event(&self, jni: Jni, class: jclass) -> bool {
        self.flight_recorder.load(Relaxed) && is_any_event(jni, class)
    }

    /// The same of a class that is only just being loaded, as far as its own bytes tell.
    pub(super) fn is_event_of_bytes(&self, bytes: &[u8]) -> bool {
        self.flight_recorder.load(Relaxed) && extends_event(bytes)
    }
}

/// Whether a class is an event, which the recorder would change once it has begun.
pub fn is_any_event(jni: Jni, class: jclass) -> bool {
    if BASE.get().is_none()
        && let Some(base) = jni.lasting(c"jdk/internal/event/Event")
    {
        let _ = BASE.set(Base(base));
    }
    BASE.get().is_some_and(|base| jni.is_subclass(class, base.0))
}

fn extends_event(bytes: &[u8]) -> bool {
    let Ok(class) = ClassFile::parse(bytes) else { return false };
    let Ok(above) = class.pool.class_name(class.super_class) else { return false };
    EVENTS.contains(&above) || above.starts_with(EVENTS_OF_THE_JDK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A class X that extends another, and has nothing else.
    fn extending(above: &str) -> Vec<u8> {
        let mut out = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61, 0, 5];
        for text in ["X", above] {
            out.push(1);
            out.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
            out.extend(text.as_bytes());
        }
        out.extend([7, 0, 1, 7, 0, 2]);
        out.extend([0, 0x20, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
        out
    }

    #[test]
    fn events_are_known_by_what_they_extend() {
        for above in
            ["jdk/jfr/Event", "jdk/internal/event/Event", "jdk/jfr/events/AbstractJDKEvent"]
        {
            assert!(extends_event(&extending(above)), "{above}");
        }
        assert!(!extends_event(&extending("java/lang/Object")));
        assert!(!extends_event(&extending("jdk/jfr/Event")[..20]));
    }
}
