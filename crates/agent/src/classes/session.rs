//! One recording of classes: what the control thread does for it from its beginning to its end.
//!
//! It ends in this order: the JVM tells no more, callbacks find nothing, those inside are waited
//! for, the tags go with their environment.

use super::ClassError;
use super::mirrors::Mirrors;
use super::shared::{self, Kinds, Ledger, Loss, Shared};
use crate::engines::Jvm;
use crate::events::{self, Enabled, Subscriber};
use crate::pauses;
use crate::perf_memory::{self, ClassCounters};
use crate::stacks::fault_guard;
use crate::stream::joined::{self, OpenError};
use jvmti_bindings::sys::jvmti::{self, jvmtiEvent};
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tare_arena::samples::Special;
use tare_protocol::{ClassPlan, ClassStatus};

/// How often what was added to the JVM's sums goes out, if no class brings it.
const SUMS_EVERY: Duration = Duration::from_millis(100);

/// How long the end waits for callbacks that are still inside.
const PATIENCE: Duration = Duration::from_secs(5);

const EVENTS: [jvmtiEvent; 2] = [jvmti::JVMTI_EVENT_CLASS_LOAD, jvmti::JVMTI_EVENT_CLASS_PREPARE];

pub static SUBSCRIBER: Subscriber = Subscriber {
    class_load: |jni, class| shared::with_session(|shared| shared.loaded(jni, class)),
    class_prepare: |_, _, class| shared::with_session(|shared| shared.linked(class)),
    ..Subscriber::NONE
};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// What the JVM had counted when the session began.
struct Base {
    loaded: u64,
    unloaded: u64,
    times: [u64; 6],
}

/// Owned by the control thread.
pub struct ClassSession {
    shared: Arc<Shared>,
    events: Option<Enabled>,
    base: Option<Base>,
    /// Classes that were there before are still to be told of.
    is_behind: bool,
    next_sums: Instant,
    number: u32,
    since: Instant,
    notes: Vec<String>,
}

impl ClassSession {
    /// Begins. After an error everything is as it was.
    pub fn start(jvm: Jvm, plan: &ClassPlan) -> Result<(Self, Vec<File>), ClassError> {
        let jvmti = jvm.jvmti;
        let (stream, files) = joined::join_or_open(jvm, plan.depth, plan.memory)?;
        let kinds = Kinds::declare(&stream).filter(|_| stream.stacks.are_walkable());
        let Some(kinds) = kinds else {
            joined::leave(jvm, &stream);
            return Err(ClassError::Stream);
        };
        let mirrors = match Mirrors::new(jvm.vm) {
            Ok(mirrors) => mirrors,
            Err(failure) => {
                joined::leave(jvm, &stream);
                return Err(OpenError::Jvmti(failure).into());
            }
        };
        let counters = perf_memory::classes();
        let base = counters.map(|counters| Base {
            loaded: counters.loaded(),
            unloaded: counters.unloaded(),
            times: counters.times(),
        });
        let ledger = Ledger {
            times: base.as_ref().map_or([0; 6], |base| base.times),
            preparing: stream.preparing.load(Relaxed),
        };
        let unknown = "What loading costs is not known: this JVM keeps no counters that can be \
                       read (-XX:-UsePerfData or -XX:+PerfDisableSharedMem).";
        let shared = Arc::new(Shared {
            stream,
            kinds,
            jvmti,
            mirrors,
            fields: jvm.jni.loader_fields(),
            counters,
            base: base.as_ref().map_or((0, 0), |base| (base.loaded, base.unloaded)),
            ledger: Mutex::new(ledger),
            told_loaders: shared::told_loaders(),
            paused: AtomicBool::new(false),
            number: AtomicU64::new(0),
            present: AtomicU64::new(0),
            loads: AtomicU64::new(0),
            found: AtomicU64::new(0),
            links: AtomicU64::new(0),
            unloads: AtomicU64::new(0),
            own_loads: AtomicU64::new(0),
            own: AtomicU64::new(0),
            losses: Default::default(),
            failures: Default::default(),
        });
        shared::publish(Arc::as_ptr(&shared).cast_mut());
        let mut session = ClassSession {
            shared,
            events: None,
            base,
            is_behind: true,
            next_sums: Instant::now() + SUMS_EVERY,
            number: NUMBER.fetch_add(1, Relaxed) + 1,
            since: Instant::now(),
            notes: counters.is_none().then(|| unknown.to_owned()).into_iter().collect(),
        };
        match events::enable(jvmti, &SUBSCRIBER, EVENTS) {
            Ok(events) => session.events = Some(events),
            Err(failure) => {
                session.end(jvm);
                return Err(OpenError::Jvmti(failure).into());
            }
        }
        session.catch_up(jvm);
        Ok((session, files))
    }

    pub fn pause(&self, paused: bool) {
        if paused {
            self.shared.tell_sums(true);
        }
        self.shared.paused.store(paused, Relaxed);
    }

    /// Tells of the classes that were there before, as far as there is room.
    fn catch_up(&mut self, jvm: Jvm) {
        if !self.is_behind {
            return;
        }
        let shared = &self.shared;
        let told = jvm.jni.frame(|| {
            jvm.jvmti.with_loaded_classes(jvm.jni, |classes| {
                classes.list().iter().all(|class| shared.is_present(jvm.jni, *class))
            })
        });
        self.is_behind = matches!(told, Some(Ok(false)));
    }

    pub fn tick(&mut self, jvm: Jvm) {
        // Another profiler may have put its handler over ours.
        let _ = fault_guard::install();
        self.shared.stream.tick_if_due(jvm.jvmti, jvm.jni);
        self.catch_up(jvm);
        let now = Instant::now();
        if now >= self.next_sums {
            self.next_sums = now + SUMS_EVERY;
            self.shared.tell_sums(false);
        }
    }

    /// Nothing of ours is left in the JVM.
    pub fn end(&mut self, jvm: Jvm) {
        if let Some(events) = self.events.take() {
            events.off(jvm.jvmti);
        }
        self.shared.mirrors.close();
        self.shared.tell_sums(true);
        self.shared.paused.store(true, Relaxed);
        shared::publish(std::ptr::null_mut());
        let limit = Instant::now() + PATIENCE;
        while !shared::nobody_inside() && Instant::now() < limit {
            std::thread::sleep(Duration::from_micros(200));
        }
        if !shared::nobody_inside() {
            // A thread is stopped inside a callback: what it uses must stay.
            std::mem::forget(Arc::clone(&self.shared));
        }
        self.shared.mirrors.end();
        joined::leave(jvm, &self.shared.stream);
    }

    pub fn status(&self) -> ClassStatus {
        let shared = &self.shared;
        let named = |count: &AtomicU64, name: &str| {
            let count = count.load(Relaxed);
            (count > 0).then(|| format!("{count} {name}"))
        };
        let lost = Loss::ALL.into_iter().zip(&shared.losses);
        let failures = Special::ALL.iter().zip(&shared.failures);
        let since = |now: u64, before: u64| now.wrapping_sub(before);
        let of_jvm = self.base.as_ref().zip(shared.counters);
        let times = |(base, counters): (&Base, &ClassCounters)| {
            let now = counters.times();
            now.into_iter().zip(base.times).map(|(now, before)| since(now, before)).collect()
        };
        ClassStatus {
            session: self.number,
            paused: shared.paused.load(Relaxed),
            present: shared.present.load(Relaxed),
            loads: shared.loads.load(Relaxed),
            found: shared.found.load(Relaxed),
            links: shared.links.load(Relaxed),
            unloads: shared.unloads.load(Relaxed),
            own_loads: shared.own_loads.load(Relaxed),
            own_ns: shared.own.load(Relaxed),
            jvm_loads: of_jvm.map(|(base, now)| since(now.loaded(), base.loaded)),
            jvm_unloads: of_jvm.map(|(base, now)| since(now.unloaded(), base.unloaded)),
            jvm_before_ns: self.base.as_ref().map_or(Vec::new(), |base| base.times.to_vec()),
            jvm_ns: of_jvm.map_or(Vec::new(), times),
            lost: lost.filter_map(|(why, count)| named(count, why.name())).collect(),
            failures: failures.filter_map(|(kind, count)| named(count, kind.name())).collect(),
            elapsed_ns: u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            notes: self.notes.iter().cloned().chain(pauses::untold()).collect(),
        }
    }
}
