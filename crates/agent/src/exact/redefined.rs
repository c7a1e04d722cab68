//! Classes that another agent redefined while they were woven.
//!
//! Up to JDK 19 a JVM that has once passed a class through a hook which changed it loads it again
//! from the bytes of that time, and forgets what was redefined since (JDK-7124710). So the hook
//! keeps what others brought, and gives it back when the class is restored. What others bring
//! while nothing is recorded we do not see; that it happened, a counter of the JVM tells.

use super::{REGISTRY, Recording, dotted, locked, recording, this_thread};
use crate::jvm::Jni;
use crate::jvm::classes::Classes;
use jvmti_bindings::sys::jni::jclass;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

/// Kept from session to session, as the JVM keeps its older bytes.
static REDEFINED: Mutex<Option<Redefined>> = Mutex::new(None);

/// By loader and name.
#[derive(Default)]
struct Redefined {
    classes: HashMap<(u32, String), Version>,
}

struct Version {
    /// What the JVM began with, as [`digest`] tells.
    first: u64,
    bytes: Vec<u8>,
}

pub fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

impl Redefined {
    /// Another agent had a woven class loaded again, from these bytes.
    fn note(&mut self, loader: u32, name: &str, first: u64, bytes: &[u8]) {
        let key = (loader, name.to_owned());
        if digest(bytes) == first {
            // As it was at first, or as it was again.
            self.classes.remove(&key);
        } else {
            self.classes.insert(key, Version { first, bytes: bytes.to_vec() });
        }
    }

    /// What a class is, when the JVM goes back to the first version instead.
    fn current(&self, loader: u32, name: &str, bytes: &[u8]) -> Option<&[u8]> {
        let version = self.classes.get(&(loader, name.to_owned()))?;
        (digest(bytes) == version.first).then_some(version.bytes.as_slice())
    }
}

impl Recording {
    /// Whether nobody has changed a class since we left it. Otherwise the JVM might bring older
    /// code back if we wove it.
    pub fn is_as_we_left_it(&self, jni: Jni, all: &Classes<'_>, class: jclass) -> bool {
        let changed = is_changed(jni, all, class);
        if changed {
            self.refuse_changed(all, class);
        }
        !changed
    }

    pub fn refuse_changed(&self, all: &Classes<'_>, class: jclass) {
        let reason = "it was redefined since an earlier recording, and this JVM might bring back its \
                      older code (JDK-7124710)";
        self.refuse(&dotted(&all.name(class).unwrap_or_default()), reason);
    }

    /// Another agent has a class loaded again: its bytes are what that one wants it to be.
    pub fn note_version(&self, name: &str, loader: u32, bytes: &[u8]) {
        let registry = locked(&REGISTRY);
        let first = registry.as_ref().and_then(|r| r.first(loader, name, self.memory.session));
        drop(registry);
        if let Some(first) = first {
            locked(&REDEFINED).get_or_insert_default().note(loader, name, first, bytes);
        }
    }
}

/// Whether somebody has changed a class since we left it.
pub fn is_changed(jni: Jni, all: &Classes<'_>, class: jclass) -> bool {
    let Some((name, loader, changes)) = state(jni, all, class) else { return false };
    let registry = locked(&REGISTRY);
    registry.as_ref().is_some_and(|r| r.changed_since(loader, &name, changes))
}

/// Whether a class is as we left it, having left it once.
pub fn is_left(jni: Jni, all: &Classes<'_>, class: jclass) -> bool {
    let Some((name, loader, changes)) = state(jni, all, class) else { return false };
    locked(&REGISTRY)
        .as_ref()
        .is_some_and(|r| r.was_left(loader, &name) && !r.changed_since(loader, &name, changes))
}

/// Notes how a class is now that we have left it before: that its superclasses were woven and
/// restored counts as a change of it, too.
pub fn leave_again(jni: Jni, all: &Classes<'_>, class: jclass) {
    if let Some((name, loader, changes)) = state(jni, all, class)
        && let Some(registry) = locked(&REGISTRY).as_mut()
        && registry.was_left(loader, &name)
    {
        registry.leave(loader, &name, changes);
    }
}

/// Notes how a class is when we leave it.
pub fn leave(jni: Jni, all: &Classes<'_>, class: jclass) {
    if let Some((name, loader, changes)) = state(jni, all, class) {
        locked(&REGISTRY).get_or_insert_default().leave(loader, &name, changes);
    }
}

fn state(jni: Jni, all: &Classes<'_>, class: jclass) -> Option<(String, u32, i32)> {
    let loader = all.loader(class);
    Some((all.name(class)?, loader, jni.changes(class)?))
}

/// Forgets the classes of loaders that are gone.
pub fn forget(gone: &[u32]) {
    if let Some(redefined) = locked(&REDEFINED).as_mut() {
        redefined.classes.retain(|(loader, _), _| !gone.contains(loader));
    }
}

/// What becomes of a class that is loaded, or loaded again; nothing if it stays as it is.
pub fn changed(
    again: bool,
    name: &str,
    loader: impl FnOnce() -> u32,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let Some(recording) = recording() else {
        // The classes are being restored.
        return current(loader(), name, bytes);
    };
    recording.notice_recorder(name);
    let wanted = recording.subgraph.is_some()
        || recording.wants_class(name)
        || recording.is_watched(name, 0);
    let ours = again && this_thread() == recording.owner;
    if !wanted && !ours {
        return None;
    }
    let loader = loader();
    if ours {
        let now = current(loader, name, bytes);
        let woven = wanted.then(|| recording.weave(name, loader, bytes, now.as_deref())).flatten();
        return woven.or(now);
    }
    if again {
        recording.note_version(name, loader, bytes);
    }
    recording.weave(name, loader, bytes, None)
}

/// What a class is, when the JVM gives us an older version of it.
fn current(loader: u32, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    locked(&REDEFINED).as_ref()?.current(loader, name, bytes).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_jvm_that_forgets_is_reminded() {
        let mut redefined = Redefined::default();
        let first = digest(b"first");
        redefined.note(1, "A", first, b"second");
        assert_eq!(redefined.current(1, "A", b"first"), Some(&b"second"[..]));
        assert_eq!(redefined.current(1, "A", b"second"), None);
        assert_eq!(redefined.current(2, "A", b"first"), None);
        redefined.note(1, "A", first, b"third");
        assert_eq!(redefined.current(1, "A", b"first"), Some(&b"third"[..]));
        redefined.note(1, "A", first, b"first");
        assert_eq!(redefined.current(1, "A", b"first"), None);
    }
}
