//! What is remembered of methods from session to session, and when it is forgotten: with the
//! loaders of their classes. A class that stays must get the same ids again.

use super::{REGISTRY, Recording, Registry, locked, recording, redefined, registry::Size};
use crate::jvm::Jni;
use crate::loaders;
use std::time::{Duration, Instant};

/// How often loaders that are gone are looked for: each look asks the JVM about every loader.
const EVERY: Duration = Duration::from_secs(1);

/// How much is remembered. Between sessions this is when loaders that are gone are looked for.
pub fn remembered(jni: Jni) -> Size {
    if recording().is_none() {
        forget_gone(jni, None);
    }
    locked(&REGISTRY).as_ref().map(Registry::size).unwrap_or_default()
}

/// Forgets what is known of classes whose loaders are gone.
pub fn forget_gone(jni: Jni, recording: Option<&Recording>) {
    let gone = loaders::gone(jni);
    if gone.is_empty() {
        return;
    }
    if let Some(registry) = locked(&REGISTRY).as_mut() {
        registry.forget(&gone);
    }
    redefined::forget(&gone);
    if let Some(recording) = recording {
        recording.forget_natives(&gone);
    }
}

impl Recording {
    /// From time to time; for the control thread.
    pub(super) fn tidy(&self, jni: Jni) {
        let now = Instant::now();
        let mut tidied = locked(&self.tidied);
        if now >= tidied.next {
            forget_gone(jni, Some(self));
            // A program with very many loaders is asked less often.
            tidied.next = now + EVERY.max(now.elapsed() * 20);
        }
    }
}

/// When to look next.
pub struct Tidied {
    next: Instant,
}

impl Default for Tidied {
    fn default() -> Self {
        Tidied { next: Instant::now() + EVERY }
    }
}
