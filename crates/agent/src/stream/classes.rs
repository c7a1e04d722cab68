//! Which text stands for which class: asked for once, then known.
//!
//! Callbacks look a class up by its identity hash and compare it with a weak reference, so a class
//! can be unloaded although it is known. The lock is never held across a call into the JVM. A
//! reference that goes out of the table may still be in the hands of a callback; it is deleted when
//! none is inside any more.

use super::Stream;
use crate::jvm::references::Weak;
use crate::jvm::{Jni, Jvmti};
use jvmti_bindings::sys::jni::jclass;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Classes that are known at a time.
const MOST: usize = 8192;

/// Classes that share a hash are told apart, up to so many.
const WAYS: u64 = 4;

#[derive(Clone, Copy)]
struct Known {
    weak: Weak,
    text: u32,
}

#[derive(Default)]
struct Inside {
    known: HashMap<u64, Known>,
    /// Out of the table, and not deleted yet.
    old: Vec<Weak>,
}

#[derive(Default)]
pub struct Classes(Mutex<Inside>);

fn key(hash: i32, way: u64) -> u64 {
    u64::from(hash.cast_unsigned()) * WAYS + way
}

impl Classes {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the text that is the class's signature, which is sent if it is new. `None` when
    /// the JVM does not tell it, or there is no room for it. To be called where the end of the
    /// session waits for.
    pub fn text(&self, jvmti: Jvmti, jni: Jni, stream: &Stream, class: jclass) -> Option<u32> {
        let hash = jvmti.identity_hash(class)?;
        let mut free = key(hash, 0);
        for way in 0..WAYS {
            let known = self.inside().known.get(&key(hash, way)).copied();
            match known {
                Some(known) if jni.refers_to(known.weak, class) => return Some(known.text),
                Some(_) => {}
                None => {
                    free = key(hash, way);
                    break;
                }
            }
        }
        let text = stream.text(jvmti.signature(class)?)?;
        // Without a reference it is asked for again the next time.
        if let Some(weak) = jni.weak_object(class) {
            self.keep(free, Known { weak, text });
        }
        Some(text)
    }

    fn keep(&self, at: u64, known: Known) {
        let mut inside = self.inside();
        if inside.known.len() >= MOST {
            let any = inside.known.keys().next().copied();
            let out = any.and_then(|key| inside.known.remove(&key));
            inside.old.extend(out.map(|known| known.weak));
        }
        let before = inside.known.insert(at, known);
        inside.old.extend(before.map(|known| known.weak));
    }

    /// Forgets classes that are unloaded. For the control thread, from time to time.
    pub fn forget_unloaded(&self, jni: Jni) {
        let all: Vec<_> = self.inside().known.iter().map(|(key, known)| (*key, *known)).collect();
        // Only this thread deletes references, so these are alive.
        let gone = all.into_iter().filter(|(_, known)| jni.is_collected(known.weak));
        for (key, known) in gone {
            let mut inside = self.inside();
            if inside.known.get(&key).is_some_and(|now| now.weak == known.weak) {
                inside.known.remove(&key);
                inside.old.push(known.weak);
            }
        }
    }

    /// Deletes what is out of the table, unless a callback may still use it. For the control
    /// thread.
    pub fn tidy(&self, jni: Jni, nobody_inside: impl Fn() -> bool) {
        let old = std::mem::take(&mut self.inside().old);
        if nobody_inside() {
            old.into_iter().for_each(|weak| jni.delete_weak(weak));
        } else {
            self.inside().old.extend(old);
        }
    }

    /// Deletes everything. No callback is inside any more.
    pub fn clear(&self, jni: Jni) {
        let all = std::mem::take(&mut *self.inside());
        let known = all.known.into_values().map(|known| known.weak);
        known.chain(all.old).for_each(|weak| jni.delete_weak(weak));
    }
}
