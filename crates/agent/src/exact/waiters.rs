//! Threads that wait for a lock whose holder is held up for our sake.
//!
//! A thread that loads a class waits until it is woven, and whoever wants a lock that it holds waits
//! with it: that of the class loader, or any other. The JVM tells when a thread begins to wait for a
//! lock and when it has it. A thread that was held up looks who waits for what it holds: those can
//! not go on before it does, so that it may stop their clocks in their stead.
//!
//! Not seen are waits inside the JVM: for the end of a class's initialisation, and for a class that
//! the JVM's own loader is loading for another thread.

use super::inject::{self, Part};
use super::{Engine, engine, locked};
use crate::gate;
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::{JNIEnv, jobject, jthread};
use jvmti_bindings::sys::jvmti::{self, jvmtiEnv, jvmtiEvent, jvmtiEventCallbacks};
use std::collections::HashMap;
use std::sync::Mutex;

/// What has to be on for it, where times are recorded.
pub const EVENTS: [jvmtiEvent; 2] =
    [jvmti::JVMTI_EVENT_MONITOR_CONTENDED_ENTER, jvmti::JVMTI_EVENT_MONITOR_CONTENDED_ENTERED];

/// Of more, some keep the wait in their times: a thread that is held up does not look through thousands.
const MOST_WAITERS: usize = 200;

/// Who waits, by its tree. A thread waits for one lock at a time.
#[derive(Default)]
pub struct Waiters(Mutex<HashMap<u64, Wait>>);

struct Wait {
    /// A global reference.
    object: jobject,
    since: u64,
}

// SAFETY: global references may be used from any thread.
unsafe impl Send for Wait {}

impl Engine {
    pub(super) fn sees_waits(&self) -> bool {
        self.plan.timed && !self.plan.cpu_time
    }

    /// The calling thread begins to wait.
    fn waits(&self, jni: Jni, object: jobject) {
        let Some(tree) = current_tree(jni) else { return };
        let Some(object) = jni.global(object) else { return };
        let wait = Wait { object, since: self.memory.unpaused() };
        let older = locked(&self.waiters.0).insert(tree, wait);
        if let Some(older) = older {
            jni.delete_global(older.object);
        }
    }

    fn has_it(&self, jni: Jni) {
        if locked(&self.waiters.0).is_empty() {
            return;
        }
        let wait = current_tree(jni).and_then(|tree| locked(&self.waiters.0).remove(&tree));
        if let Some(wait) = wait {
            jni.delete_global(wait.object);
        }
    }

    /// The calling thread was held up from `began` until now: so were those who wait for it.
    pub(super) fn held_others(&self, jni: Jni, began: u64) {
        if locked(&self.waiters.0).is_empty() {
            return;
        }
        let now = self.memory.unpaused();
        jni.frame_of(MOST_WAITERS, || {
            for (tree, object, since) in self.waits_now(jni) {
                if jni.holds_lock(object) {
                    self.memory.adjust(tree, now.saturating_sub(began.max(since)));
                }
            }
        });
    }

    /// Who waits, for what, and since when, by references of the calling thread. The JVM is asked
    /// nothing that could bring this thread back here while the list is locked.
    fn waits_now(&self, jni: Jni) -> Vec<(u64, jobject, u64)> {
        let waiters = locked(&self.waiters.0);
        let waits = waiters.iter().take(MOST_WAITERS);
        waits.filter_map(|(&tree, w)| Some((tree, jni.local(w.object)?, w.since))).collect()
    }

    pub(super) fn forget_waiters(&self, jni: Jni) {
        let waiters = std::mem::take(&mut *locked(&self.waiters.0));
        waiters.into_values().for_each(|wait| jni.delete_global(wait.object));
    }
}

/// The tree of the calling thread, if it is inside the subgraph.
fn current_tree(jni: Jni) -> Option<u64> {
    let tree = jni.get_static_long(inject::runtime(jni).ok()?[Part::Probe], c"tree")?;
    (tree != 0).then_some(tree.cast_unsigned())
}

pub fn install(callbacks: &mut jvmtiEventCallbacks) {
    callbacks.MonitorContendedEnter = Some(monitor_contended_enter);
    callbacks.MonitorContendedEntered = Some(monitor_contended_entered);
}

extern "system" fn monitor_contended_enter(
    _env: *mut jvmtiEnv,
    jni: *mut JNIEnv,
    _thread: jthread,
    object: jobject,
) {
    gate::enter((), || {
        if let Some(engine) = engine() {
            engine.waits(Jni(jni), object);
        }
    });
}

extern "system" fn monitor_contended_entered(
    _env: *mut jvmtiEnv,
    jni: *mut JNIEnv,
    _thread: jthread,
    _object: jobject,
) {
    gate::enter((), || {
        if let Some(engine) = engine() {
            engine.has_it(Jni(jni));
        }
    });
}
