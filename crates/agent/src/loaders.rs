//! Numbers for class loaders, the same for the JVM's life.
//!
//! A tag on the loader is the quick way to its number, but tags go with the JVMTI environment that
//! set them, at every detach. So loaders are also kept by weak references, by hash.

use crate::jvm::classes;
use crate::jvm::{Jni, Jvmti, call, check};
use jvmti_bindings::sys::jni::{self, jint, jlong, jobject};
use std::collections::HashMap;
use std::ptr;
use std::sync::{Mutex, PoisonError};

static LOADERS: Mutex<Option<Loaders>> = Mutex::new(None);

/// A loader's number; zero is the JVM's own loader.
pub fn number(jvmti: Jvmti, jni: Jni, loader: jobject) -> u32 {
    let mut loaders = LOADERS.lock().unwrap_or_else(PoisonError::into_inner);
    loaders.get_or_insert_default().number(jvmti, jni, loader)
}

/// The number of a loader that has one; it needs no JNI environment.
pub fn tagged(jvmti: Jvmti, loader: jobject) -> Option<u32> {
    if loader.is_null() {
        return Some(0);
    }
    let mut tag: jlong = 0;
    call!(jvmti, GetTag, loader, &raw mut tag).ok()?;
    u32::try_from(tag).ok().filter(|tag| *tag != 0)
}

/// The class of a loader, as `com/acme/PluginLoader`; empty if it is not known.
pub fn class_name(number: u32) -> String {
    let loaders = LOADERS.lock().unwrap_or_else(PoisonError::into_inner);
    let name = loaders.as_ref().and_then(|loaders| loaders.class_names.get(&number));
    name.cloned().unwrap_or_default()
}

/// The numbers of loaders that were collected since the last question; they are not used again.
/// What is kept by such a number can go.
pub fn gone(jni: Jni) -> Vec<u32> {
    let mut loaders = LOADERS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(loaders) = loaders.as_mut() else { return Vec::new() };
    loaders.tidy(jni);
    std::mem::take(&mut loaders.gone)
}

/// Names of loaders' classes that are kept. A program that makes a loader for each request makes
/// them of few classes, but their numbers are all different.
const MOST_NAMES: usize = 10_000;

#[derive(Default)]
struct Loaders {
    last: u32,
    class_names: HashMap<u32, String>,
    by_hash: HashMap<jint, Vec<(Weak, u32)>>,
    /// Those that nobody was told of yet.
    gone: Vec<u32>,
    /// When this many are kept, those that have gone are looked for.
    tidy_at: usize,
}

/// A weak global reference.
struct Weak(jni::jweak);

// SAFETY: global references, weak ones too, may be used from any thread.
unsafe impl Send for Weak {}

impl Loaders {
    fn number(&mut self, jvmti: Jvmti, jni: Jni, loader: jobject) -> u32 {
        if loader.is_null() || jni.0.is_null() {
            return 0;
        }
        let mut tag: jlong = 0;
        if call!(jvmti, GetTag, loader, &raw mut tag).is_ok() && tag != 0 {
            return u32::try_from(tag).unwrap_or(0);
        }
        let mut hash: jint = 0;
        if call!(jvmti, GetObjectHashCode, loader, &raw mut hash).is_err() {
            return 0;
        }
        let known = self.known(jni, loader, hash);
        let number = known.unwrap_or_else(|| {
            let number = self.add(jni, loader, hash);
            if self.class_names.len() < MOST_NAMES
                && let Some(name) = name_of_class(jvmti, jni, loader)
            {
                self.class_names.insert(number, name);
            }
            number
        });
        let _ = call!(jvmti, SetTag, loader, jlong::from(number));
        number
    }

    fn known(&self, jni: Jni, loader: jobject, hash: jint) -> Option<u32> {
        let same = |(weak, _): &&(Weak, u32)| jni.is_same(weak.0, loader);
        self.by_hash.get(&hash)?.iter().find(same).map(|(_, number)| *number)
    }

    fn add(&mut self, jni: Jni, loader: jobject, hash: jint) -> u32 {
        if self.by_hash.len() >= self.tidy_at {
            self.tidy(jni);
        }
        self.last += 1;
        // SAFETY: a reference that is alive during this call, on its own thread.
        let weak = unsafe { ((**jni.0).NewWeakGlobalRef)(jni.0, loader) };
        if !weak.is_null() {
            self.by_hash.entry(hash).or_default().push((Weak(weak), self.last));
        }
        self.last
    }

    /// Forgets those that are gone.
    fn tidy(&mut self, jni: Jni) {
        let Loaders { by_hash, gone, class_names, .. } = self;
        by_hash.retain(|_, list| {
            list.retain(|(weak, number)| {
                let is_gone = is_gone(jni, weak);
                if is_gone {
                    class_names.remove(number);
                    gone.push(*number);
                }
                !is_gone
            });
            !list.is_empty()
        });
        self.tidy_at = (2 * self.by_hash.len()).max(1000);
        // After many came and went.
        if self.by_hash.len() < self.by_hash.capacity() / 4 {
            self.by_hash.shrink_to_fit();
        }
    }
}

/// The class of an object, asked of the JVM without running any Java.
fn name_of_class(jvmti: Jvmti, jni: Jni, object: jobject) -> Option<String> {
    // SAFETY: a reference that is alive during this call, on its own thread.
    let class = unsafe { ((**jni.0).GetObjectClass)(jni.0, object) };
    if class.is_null() {
        return None;
    }
    let name = classes::name_of(jvmti, class);
    // SAFETY: the local reference that was just made, used no more.
    unsafe { ((**jni.0).DeleteLocalRef)(jni.0, class) };
    name
}

/// Whether the loader was collected; then the reference is given back.
fn is_gone(jni: Jni, weak: &Weak) -> bool {
    let gone = jni.is_same(weak.0, ptr::null_mut());
    if gone {
        // SAFETY: a weak reference of ours, which the caller forgets.
        unsafe { ((**jni.0).DeleteWeakGlobalRef)(jni.0, weak.0) };
    }
    gone
}
