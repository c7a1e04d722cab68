//! What the program's threads bring to the graph as they run: a method that runs for the first
//! time, one that is called by reflection. A thread waits here until what follows from it is woven,
//! if it may.

use super::super::{locked, nanos_of, recording};
use super::{State, Subgraph, done};
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::jobject;
use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tare_callgraph::{Loader, Past};

/// How long a thread that runs a method for the first time waits for its callees to be woven.
const PATIENCE: Duration = Duration::from_secs(1);

/// After so many waits, whatever ever ran is followed as soon as something calls it, not only what
/// ran often.
const TRUSTING: u64 = 20;

/// After so many waits callees are followed so many levels ahead. A program in which there is that
/// much to be found would be held up too often otherwise; what is woven in vain costs it less.
const PATIENT: [(u64, u8); 4] = [(16, 1), (24, 2), (40, 4), (80, 8)];

/// A thread with one of these on its stack is loading or initialising a class.
const LOADING: [&[u8]; 5] =
    [b"<clinit>", b"loadClass", b"findClass", b"defineClass", b"loadClassOrNull"];

impl Subgraph {
    /// A method is entered in a context that is new, and may not have run before.
    pub fn first(&self, jni: Jni, id: u32) {
        let mut state = locked(&self.state);
        let Some(&method) = state.ids.get(&id) else { return };
        state.graph.ran(method);
        if self.wait(jni, state)
            && let Some(word) = done().get(id as usize / 32)
        {
            word.fetch_or(1 << (id % 32), Relaxed);
        }
    }

    /// A method is about to be called, or can be, in a way that no code tells. Whether all that
    /// follows from it is done.
    pub fn reveal(&self, jni: Jni, member: jobject, wait: bool) -> bool {
        let mut state;
        if jni.is_executable(member) {
            let of = jni.reflected(member).and_then(|method| self.jvmti.method_of(method));
            let Some((class, method)) = of else { return false };
            let Some(name) = self.jvmti.class_name(class) else { return false };
            let loader = self.loader(jni, class);
            state = locked(&self.state);
            state.graph.reveal(loader, &name, &method.name, &method.descriptor);
        } else {
            let Some((class, name)) = jni.member_name(member) else { return false };
            let Some(class_name) = self.jvmti.class_name(class) else { return false };
            let loader = self.loader(jni, class);
            state = locked(&self.state);
            state.graph.reveal_all(loader, &class_name, &name);
        }
        if !wait {
            if state.graph.wants_anything() {
                state.asked += 1;
                self.ring();
            }
            return false;
        }
        self.wait(jni, state)
    }

    /// Waits until what the graph wants is woven, if the calling thread may. Whether it is.
    fn wait(&self, jni: Jni, mut state: MutexGuard<'_, State>) -> bool {
        let wanted = state.graph.wants_anything();
        if wanted {
            state.asked += 1;
            self.ring();
        }
        let mine = state.asked;
        if state.finished < mine {
            if !self.may_wait(jni, &mut state) {
                self.hurried.fetch_add(1, Relaxed);
                return false;
            }
            let (began, began_ticks) = (Instant::now(), recording().map(|e| e.memory.unpaused()));
            let unfinished = |state: &mut State| !state.over && state.finished < mine;
            let (mut after, timeout) = self
                .settled
                .wait_timeout_while(state, PATIENCE, unfinished)
                .unwrap_or_else(PoisonError::into_inner);
            let waited = nanos_of(began.elapsed());
            let waits = self.waits.fetch_add(1, Relaxed) + 1;
            if waits == TRUSTING {
                after.graph.trust(Past::Ran);
            }
            if let Some((_, levels)) = PATIENT.iter().find(|(limit, _)| waits == *limit) {
                after.graph.look_ahead(*levels);
            }
            self.wait_ns.fetch_add(waited, Relaxed);
            self.longest_wait_ns.fetch_max(waited, Relaxed);
            drop(after);
            if let (Some(began), Some(recording)) = (began_ticks, recording()) {
                recording.held_others(jni, began);
            }
            if timeout.timed_out() {
                self.gave_up.fetch_add(1, Relaxed);
                return false;
            }
        }
        true
    }

    /// Whether nobody can need what the calling thread holds in order to load a class.
    fn may_wait(&self, jni: Jni, state: &mut State) -> bool {
        if state.over {
            return false;
        }
        let Ok(stack) = self.jvmti.own_stack() else { return false };
        for (method, _) in stack {
            let key = method as usize;
            let loading = match state.loading.get(&key) {
                Some(&loading) => loading,
                None => {
                    let of = jni.frame(|| self.jvmti.method_of(method)).flatten();
                    let loading = of.is_none_or(|(_, m)| LOADING.contains(&m.name.as_slice()));
                    state.loading.insert(key, loading);
                    loading
                }
            };
            if loading {
                return false;
            }
        }
        // Which loaders will be asked: those of the classes that are to be woven.
        let changed = state.graph.changed();
        let held = jni.frame(|| {
            let mut asked: HashSet<Loader> = HashSet::new();
            changed.into_iter().any(|id| {
                asked.insert(state.graph.loader_of(id))
                    && state.loaded.get(&id).and_then(|weak| jni.strong(weak)).is_some_and(
                        |class| {
                            let loader: Option<jobject> = self.jvmti.class_loader(class).ok();
                            loader.is_some_and(|l| !l.is_null() && jni.holds_lock(l))
                        },
                    )
            })
        });
        held == Some(false)
    }
}
