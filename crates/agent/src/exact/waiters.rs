//! Threads that wait for a lock whose holder is held up for our sake.
//!
//! A thread that loads a class waits until it is woven, and whoever wants a lock that it holds
//! waits with it: that of the class loader, or any other. The JVM tells when a thread begins to
//! wait for a lock and when it has it. A thread that was held up looks who waits for what it holds:
//! those can not go on before it does, so that it may stop their clocks in their stead. Who waited
//! for one of those is told by it, when it has its lock.
//!
//! Of waits inside the JVM nobody is told: [`inside`] finds them.
//!
//! All that is bounded in a second ([`budget`]); whom nobody looked at for that is counted.

mod budget;
mod inside;

use super::inject::{self, Part};
use super::{Recording, locked, recording};
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti::{self, jvmtiEvent};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// What has to be on for it, where times are recorded.
pub const EVENTS: [jvmtiEvent; 2] =
    [jvmti::JVMTI_EVENT_MONITOR_CONTENDED_ENTER, jvmti::JVMTI_EVENT_MONITOR_CONTENDED_ENTERED];

/// Of more, some keep the wait in their times, and are counted: a thread that is held up does not
/// look through thousands.
const MOST_WAITERS: usize = 200;

/// Who waits, by its tree.
#[derive(Default)]
pub struct Waiters {
    /// A thread waits for one lock at a time.
    locks: Mutex<HashMap<u64, Wait>>,
    known: inside::Known,
    budget: budget::Budget,
}

struct Wait {
    /// A global reference.
    object: jobject,
    since: u64,
    /// When it waited for our sake.
    held: Vec<Range<u64>>,
}

/// A thread that waits now, by a reference of the calling thread.
struct Waiting {
    tree: u64,
    object: jobject,
    since: u64,
}

// SAFETY: global references may be used from any thread.
unsafe impl Send for Wait {}

impl Recording {
    pub(super) fn sees_waits(&self) -> bool {
        self.plan.is_timed() && !self.plan.is_cpu_time()
    }

    /// The calling thread begins to wait.
    fn waits(&self, jni: Jni, object: jobject) {
        let Some(tree) = current_tree(jni) else { return };
        let Some(object) = jni.global(object) else { return };
        let wait = Wait { object, since: self.memory.unpaused(), held: Vec::new() };
        let older = locked(&self.waiters.locks).insert(tree, wait);
        if let Some(older) = older {
            jni.delete_global(older.object);
        }
    }

    fn has_it(&self, jni: Jni) {
        if locked(&self.waiters.locks).is_empty() {
            return;
        }
        let wait = current_tree(jni).and_then(|tree| locked(&self.waiters.locks).remove(&tree));
        let Some(wait) = wait else { return };
        if !wait.held.is_empty() {
            // Who waits for the lock that this thread has got waited for the same holder.
            self.for_those_held(jni, |waiting| {
                let same = jni.is_same(waiting.object, wait.object);
                if same { Vec::new() } else { wait.held.clone() }
            });
        }
        jni.delete_global(wait.object);
    }

    /// The calling thread was held up from `began` until now: so were those who wait for its locks.
    pub(super) fn held_others(&self, jni: Jni, began: u64) {
        let held = began..self.memory.unpaused();
        if !locked(&self.waiters.locks).is_empty() {
            self.for_those_held(jni, |_| vec![held.clone()]);
        }
    }

    /// Keeps times out of the figures of all who wait for a lock of the calling thread.
    fn for_those_held(&self, jni: Jni, times: impl Fn(&Waiting) -> Vec<Range<u64>>) {
        let look = || {
            for waiting in self.waits_now(jni) {
                let times = times(&waiting);
                if times.is_empty() || !jni.holds_lock(waiting.object) {
                    continue;
                }
                let times: Vec<Range<u64>> = times
                    .into_iter()
                    .map(|time| time.start.max(waiting.since)..time.end)
                    .filter(|time| !time.is_empty())
                    .collect();
                let ticks = times.iter().map(|time| time.end - time.start).sum();
                self.memory.adjust(waiting.tree, ticks);
                if let Some(wait) = locked(&self.waiters.locks).get_mut(&waiting.tree) {
                    wait.held.extend(times);
                }
            }
        };
        // Never more than few.
        jni.frame_of(MOST_WAITERS, look);
    }

    /// Who waits. The JVM is asked nothing that could bring this thread back here while the list is
    /// locked.
    fn waits_now(&self, jni: Jni) -> Vec<Waiting> {
        let locks = locked(&self.waiters.locks);
        if !self.waiters.budget.take(locks.len().min(MOST_WAITERS)) {
            self.memory.note_waits(0, locks.len());
            return Vec::new();
        }
        self.memory.note_waits(0, locks.len().saturating_sub(MOST_WAITERS));
        let waits = locks.iter().take(MOST_WAITERS);
        let waiting = |(&tree, wait): (&u64, &Wait)| {
            Some(Waiting { tree, object: jni.local(wait.object)?, since: wait.since })
        };
        waits.filter_map(waiting).collect()
    }

    pub(super) fn forget_waiters(&self, jni: Jni) {
        let waiters = std::mem::take(&mut *locked(&self.waiters.locks));
        waiters.into_values().for_each(|wait| jni.delete_global(wait.object));
    }
}

/// The time in which a thread is held up for our sake.
pub struct Held {
    recording: Arc<Recording>,
    began: u64,
    inside: Option<inside::Holds>,
}

impl Held {
    /// To be called before a class is looked at that the calling thread brings.
    pub fn begin(jni: Jni, class: &str, by_the_jvm: bool) -> Option<Self> {
        let recording = recording()
            .filter(|recording| recording.plan.is_timed() || recording.plan.is_trace())?;
        let began = recording.probe_clock();
        let concerned = recording.sees_waits() && recording.may_weave(class);
        let inside = concerned.then(|| recording.holds(jni, class, by_the_jvm)).flatten();
        Some(Self { recording, began, inside })
    }

    /// Keeps the time since then out of the calling thread's figures, and out of those of the
    /// threads that waited for it.
    pub fn end(self, jni: Jni) {
        let Self { recording, began, inside } = self;
        let Ok(runtime) = inject::runtime(jni) else { return };
        if let Some(holds) = inside {
            recording.held_inside(jni, &holds, began);
        }
        if recording.sees_waits() {
            recording.held_others(jni, began);
        }
        let ticks = recording.probe_clock().saturating_sub(began);
        jni.call_static_long(runtime[Part::Clock], c"held", ticks.cast_signed());
    }
}

/// The tree of the calling thread, if it is inside the subgraph.
fn current_tree(jni: Jni) -> Option<u64> {
    let tree = jni.get_static_long(inject::runtime(jni).ok()?[Part::Probe], c"tree")?;
    (tree != 0).then_some(tree.cast_unsigned())
}

/// Called on a thread that begins to wait for a lock.
pub fn begins_to_wait(jni: Jni, object: jobject) {
    if let Some(recording) = recording() {
        recording.waits(jni, object);
    }
}

/// Called on a thread that has got the lock which it waited for.
pub fn has_its_lock(jni: Jni) {
    if let Some(recording) = recording() {
        recording.has_it(jni);
    }
}
