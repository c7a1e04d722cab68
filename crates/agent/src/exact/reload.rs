//! Has the JVM load classes again, in batches, through the hook: to weave them, to weave them in
//! another way, to restore them. What becomes of a class there is `weaving`'s.

use super::clock::ticks;
use super::{REGISTRY, Recording, locked, redefined};
use crate::engines::{Between, Step};
use crate::jvm::classes::{Classes, is_about_a_class};
use crate::jvm::{Failure, Jni};
use crate::perf_memory;
use jvmti_bindings::sys::jni::jclass;
use jvmti_bindings::sys::jvmti;
use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tare_protocol::Activity;

/// What classes are loaded again for.
#[derive(Clone, PartialEq, Eq)]
pub enum Purpose {
    Weave,
    /// Woven already, to be woven in another way: loaders and names.
    WeaveAnew(HashSet<(u32, String)>),
    /// To see what is called by reflection and handles.
    Watch,
    Restore,
}

/// How the program stood still while classes were loaded again.
#[derive(Clone, Copy, Default)]
pub struct Pauses {
    pub count: u64,
    pub total: Duration,
    pub longest: Duration,
    /// The JVM does not tell how long it was; these are the calls.
    pub whole_calls: bool,
}

impl Pauses {
    /// A call into the JVM, and how long all threads stood still in it, if that is known.
    fn add(&mut self, call: Duration, still: Option<Duration>) {
        let felt = still.unwrap_or(call);
        self.count += 1;
        self.total += felt;
        self.longest = self.longest.max(felt);
        self.whole_calls |= still.is_none();
    }
}

impl Recording {
    pub(super) fn has_woven(&self, name: &str, loader: u32) -> bool {
        let registry = locked(&REGISTRY);
        registry.as_ref().is_some_and(|r| r.is_woven(loader, name, self.memory.session))
    }

    /// Has the JVM load the chosen ones of the loaded classes again, through the hook. Whether that
    /// is all of them: `between` may end it, unless classes are restored.
    pub(super) fn reload(
        &self,
        jni: Jni,
        purpose: Purpose,
        between: &mut Between<'_>,
    ) -> Result<bool, Failure> {
        let outcome = jni.frame(|| {
            self.jvmti.with_loaded_classes(jni, |classes| {
                let mut chosen = classes.select(|name, class| match &purpose {
                    Purpose::Weave => self.wants_class(name),
                    Purpose::WeaveAnew(wanted) => {
                        wanted.contains(&(classes.loader(class), name.to_owned()))
                            && self.has_woven(name, classes.loader(class))
                    }
                    Purpose::Watch => {
                        self.is_watched(name, classes.loader(class))
                            || (self.subgraph.is_some() && self.regions.fits_class(name))
                    }
                    Purpose::Restore => self.has_woven(name, classes.loader(class)),
                });
                let forgets = jni.forgets_redefinitions();
                let mut left = Vec::new();
                if forgets {
                    left.extend_from_slice(classes.list());
                    left.retain(|class| redefined::is_left(jni, classes, *class));
                }
                if purpose != Purpose::Restore {
                    self.leave_events_alone(jni, classes, &mut chosen);
                    if forgets {
                        chosen.retain(|class| self.is_as_we_left_it(jni, classes, *class));
                    }
                }
                let activity = match purpose {
                    Purpose::Restore => Activity::Restoring,
                    _ => Activity::Weaving,
                };
                let all = self.in_batches(classes, &chosen, activity, between)?
                    && self.renew_callers(jni, classes, between)?;
                left.iter().for_each(|class| redefined::leave_again(jni, classes, *class));
                if purpose == Purpose::Restore && forgets {
                    chosen.iter().for_each(|class| redefined::leave(jni, classes, *class));
                }
                Ok(all)
            })
        });
        match outcome {
            Some(Ok(done)) => done,
            Some(Err(failure)) => Err(failure),
            None => {
                Err(Failure { call: "PushLocalFrame", error: jvmti::jvmtiError::OUT_OF_MEMORY })
            }
        }
    }

    /// The next batch of classes that are woven.
    pub(super) fn step(&self, done: usize, now: usize, all: usize) -> Step {
        Step { activity: Activity::Weaving, done, now, all, methods: self.methods.load(Relaxed) }
    }

    /// Has the JVM load these classes again, some at a time. Whether that is all of them.
    pub(super) fn in_batches(
        &self,
        all: &Classes<'_>,
        chosen: &[jclass],
        activity: Activity,
        between: &mut Between<'_>,
    ) -> Result<bool, Failure> {
        let mut done = 0;
        while let Some(rest) = chosen.get(done..).filter(|rest| !rest.is_empty()) {
            let batch = &rest[..rest.len().min(self.batches.size())];
            let goes_on = between(Step { activity, ..self.step(done, batch.len(), chosen.len()) });
            if !goes_on && activity != Activity::Restoring {
                return Ok(false);
            }
            self.retransform(all, batch)?;
            done += batch.len();
            // Probes run on meanwhile, and may need memory.
            self.memory.tick();
        }
        Ok(true)
    }

    /// One batch. Classes that cannot be linked stay as they are: the JVM would refuse them, too.
    pub(super) fn retransform(&self, all: &Classes<'_>, batch: &[jclass]) -> Result<(), Failure> {
        let mut linked = batch.to_vec();
        linked.retain(|&class| match all.link(class) {
            Ok(()) => true,
            Err(thrown) => {
                self.not_taken(all, class, &format!("the JVM cannot link it: {thrown}"));
                false
            }
        });
        if linked.is_empty() { Ok(()) } else { self.retransform_linked(all, &linked) }
    }

    /// When one of the classes is the reason for a failure, the others still get their turn: the
    /// batch is halved until that class stands alone.
    pub(super) fn retransform_linked(
        &self,
        all: &Classes<'_>,
        batch: &[jclass],
    ) -> Result<(), Failure> {
        let (began, ticks_before) = (Instant::now(), ticks());
        let stood_still = perf_memory::safepoint_ns();
        let outcome = self.jvmti.retransform(batch);
        // At once: what is compiled in between would do without the woven bodies.
        if outcome.is_ok() && locked(&self.candidates).any() {
            for class in batch {
                self.switch_intrinsics_off(*class);
            }
        }
        let call = began.elapsed();
        let still = stood_still.zip(perf_memory::safepoint_ns());
        let still = still.map(|(before, after)| Duration::from_nanos(after.saturating_sub(before)));
        self.batches.took(batch.len(), call.saturating_sub(still.unwrap_or_default()), still);
        if let Some(still) = still {
            let rate = (ticks() - ticks_before) as f64 / call.as_nanos().max(1) as f64;
            let still = (still.as_nanos() as f64 * rate) as u64;
            if self.plan.is_trace() {
                self.note_pause(still);
            } else if self.plan.is_timed() && !self.plan.is_cpu_time() {
                self.memory.add_pause(still);
            }
        }
        locked(&self.pauses).add(call, still);
        match outcome {
            Err(failure) if is_about_a_class(&failure) => match *batch {
                [] => Ok(()),
                [class] => {
                    let why = format!("the JVM did not take the woven class ({failure})");
                    self.not_taken(all, class, &why);
                    Ok(())
                }
                _ => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    self.retransform_linked(all, first)?;
                    self.retransform_linked(all, second)
                }
            },
            other => other,
        }
    }
}
