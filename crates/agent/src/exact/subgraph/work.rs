//! The control thread's part: what the graph wants is woven, some classes at a time.

use super::super::{Purpose, Recording, locked, redefined};
use super::Subgraph;
use crate::engines::Between;
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::jclass;
use std::io::Read;
use tare_callgraph::ClassId;

/// Why a native method is named in the recording.
const NATIVE: &str =
    "it is native: a method that it calls by JNI is missing unless something else leads to it, too";

impl Subgraph {
    /// Has everything woven that the graph wants; returns when nothing is left to do.
    /// Whether it is: `between` may end it.
    pub fn work(&self, recording: &Recording, jni: Jni, between: &mut Between<'_>) -> bool {
        let mut bell = [0; 8];
        let _ = (&self.bell).read(&mut bell);
        loop {
            self.read_wanted(jni);
            self.tell_natives(recording);
            let (changed, asked) = {
                let mut state = locked(&self.state);
                if !state.graph.wants_anything() {
                    state.finished = state.asked;
                    drop(state);
                    self.settled.notify_all();
                    return true;
                }
                (state.graph.take_changed(), state.asked)
            };
            if !self.weave(recording, jni, &changed, between) {
                return false;
            }
            let mut state = locked(&self.state);
            if !state.graph.wants_anything() {
                state.finished = state.finished.max(asked);
                drop(state);
                self.settled.notify_all();
            }
        }
    }

    /// Names the native methods that are called: what they call by JNI is found by no rule of ours.
    fn tell_natives(&self, recording: &Recording) {
        let natives: Vec<String> = {
            let mut state = locked(&self.state);
            let taken = state.graph.take_natives();
            taken.into_iter().map(|method| state.graph.full_name(method)).collect()
        };
        for name in natives {
            recording.refuse(&name, NATIVE);
        }
    }

    /// At the beginning: everything but the roots, and then the roots, so that no root runs while
    /// this thread is too busy to answer what it finds. Whether `between` let it come to its end.
    pub fn begin(&self, recording: &Recording, jni: Jni, between: &mut Between<'_>) -> bool {
        self.survey(recording, jni, between);
        let (roots, others): (Vec<ClassId>, Vec<ClassId>) = {
            let mut state = locked(&self.state);
            let changed = state.graph.take_changed();
            changed.into_iter().partition(|&id| state.graph.has_root(id))
        };
        if !self.weave(recording, jni, &others, between) {
            return false;
        }
        match recording.reload(jni, Purpose::Watch, between) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(failure) => recording.refuse("reflection", &failure.to_string()),
        }
        self.weave(recording, jni, &roots, between) && self.work(recording, jni, between)
    }

    /// Has classes woven, some at a time. Whether that is all of them.
    fn weave(
        &self,
        recording: &Recording,
        jni: Jni,
        classes: &[ClassId],
        between: &mut Between<'_>,
    ) -> bool {
        let mut done = 0;
        while let Some(rest) = classes.get(done..).filter(|rest| !rest.is_empty()) {
            let batch = &rest[..rest.len().min(recording.batches.size())];
            if !between(recording.step(done, batch.len(), classes.len())) {
                return false;
            }
            done += batch.len();
            jni.frame(|| {
                let mut chosen = Vec::with_capacity(batch.len());
                {
                    let mut state = locked(&self.state);
                    for &id in batch {
                        match state.loaded.get(&id).map(|weak| jni.strong(weak)) {
                            Some(Some(class)) => chosen.push(class),
                            Some(None) => {} // Unloaded.
                            None => {
                                state.awaited.insert(id);
                            }
                        }
                    }
                }
                self.reload(recording, jni, chosen, between);
            });
            // Probes run on meanwhile, and may need memory.
            recording.memory.tick();
        }
        true
    }

    /// Has the JVM load some classes again, through the hook.
    pub(super) fn reload(
        &self,
        recording: &Recording,
        jni: Jni,
        mut classes: Vec<jclass>,
        between: &mut Between<'_>,
    ) {
        classes.retain(|&class| self.jvmti.is_modifiable(class));
        let list = classes.clone();
        let all = self.jvmti.classes(jni, &list);
        recording.leave_events_alone(jni, &all, &mut classes);
        if !locked(&self.state).changed_before.is_empty() {
            classes.retain(|&class| {
                let changed = self.was_changed_before(jni, class);
                if changed {
                    recording.refuse_changed(&all, class);
                }
                !changed
            });
        }
        if !classes.is_empty()
            && let Err(failure) = recording.retransform(&all, &classes)
        {
            recording.refuse("classes that are reachable", &failure.to_string());
        }
        if recording.has_callers_to_renew() {
            let renewed = self
                .jvmti
                .with_loaded_classes(jni, |loaded| recording.renew_callers(jni, loaded, between))
                .and_then(|done| done);
            if let Err(failure) = renewed {
                recording.refuse("callers of intrinsic methods", &failure.to_string());
            }
        }
    }

    fn was_changed_before(&self, jni: Jni, class: jclass) -> bool {
        let name = self.jvmti.class_name(class).unwrap_or_default();
        let key = (self.loader(jni, class), name);
        locked(&self.state).changed_before.contains(&key)
    }

    /// After everything was restored: notes how the classes are that were left before.
    pub fn leave(&self, jni: Jni) {
        if !jni.forgets_redefinitions() {
            return;
        }
        jni.frame(|| {
            self.jvmti.with_loaded_classes(jni, |classes| {
                for &class in classes.list() {
                    jni.frame(|| {
                        if !self.was_changed_before(jni, class) {
                            redefined::leave_again(jni, classes, class);
                        }
                    });
                }
            })
        });
    }
}
