//! One recording of references: what the control thread does for it from its beginning to its end.
//!
//! It ends in this order: the JVM's table is as it was, or ours only pass through; threads find
//! nothing, those inside are waited for, what has changed is told.

use super::JniRefsError;
use super::hook;
use super::shared::{self, Loss, Shared};
use crate::engines::{Engine, Jvm};
use crate::sampling::Sampling;
use crate::stacks::fault_guard;
use crate::stacks::native::{LoadedModules, MODULES};
use crate::stream::joined::{self, OpenError};
use crate::vm_tables::Tables;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};
use tare_arena::samples::Special;
use tare_protocol::{JniRefsPlan, JniRefsStatus};

/// How often what has changed goes out.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// How often new libraries and unloaded classes are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long the end waits for threads that are still inside.
const PATIENCE: Duration = Duration::from_secs(5);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Owned by the control thread.
pub struct JniRefsSession {
    shared: Arc<Shared>,
    modules: LoadedModules,
    next_tell: Instant,
    next_look: Instant,
    number: u32,
    since: Instant,
    notes: Vec<String>,
}

impl JniRefsSession {
    /// Begins. After an error everything is as it was.
    pub fn start(jvm: Jvm, plan: &JniRefsPlan) -> Result<(Self, Vec<File>), JniRefsError> {
        let (stream, files) = joined::join_or_open(jvm, plan.depth, plan.memory)?;
        let kind = shared::declare(&stream).filter(|_| stream.stacks.are_walkable());
        let Some(kind) = kind else {
            joined::leave(jvm, &stream);
            return Err(JniRefsError::Stream);
        };
        let tables = Tables::read(jvm.jvmti.inside_libjvm()).ok();
        let checked = tables.and_then(|tables| tables.flag("CheckJNICalls")).unwrap_or(false);
        let mut modules = LoadedModules::default();
        modules.renew();
        let shared = Arc::new(Shared::new(stream, kind, jvm.jvmti, checked));
        shared::publish(Arc::as_ptr(&shared).cast_mut());
        let unknown = "Classes of objects are not told: the JVM checks JNI (-Xcheck:jni).";
        let session = JniRefsSession {
            shared,
            modules,
            next_tell: Instant::now() + TELL_EVERY,
            next_look: Instant::now() + LOOK_EVERY,
            number: NUMBER.fetch_add(1, Relaxed) + 1,
            since: Instant::now(),
            notes: checked.then(|| unknown.to_owned()).into_iter().collect(),
        };
        if let Err(failure) = hook::begin(jvm.jvmti, jvm.jni) {
            session.end(jvm);
            return Err(OpenError::Jvmti(failure).into());
        }
        Ok((session, files))
    }

    pub fn pause(&self, paused: bool) {
        self.shared.paused.store(paused, Relaxed);
    }

    pub fn tick(&mut self, jvm: Jvm) {
        // Another profiler may have put its handler over ours.
        let _ = fault_guard::install();
        self.shared.stream.tick_if_due(jvm.jvmti, jvm.jni);
        let now = Instant::now();
        if now >= self.next_tell {
            self.next_tell = now + TELL_EVERY;
            self.shared.tell();
        }
        if now >= self.next_look {
            self.next_look = now + LOOK_EVERY;
            self.modules.renew();
            self.shared.classes.forget_unloaded(jvm.jni);
        }
        MODULES.tidy();
        self.shared.classes.tidy(jvm.jni, shared::nobody_inside);
    }

    /// Nothing of ours is left in the JVM, but functions that pass through if others call them.
    pub fn end(&self, jvm: Jvm) {
        hook::end(jvm.jvmti);
        shared::publish(std::ptr::null_mut());
        let limit = Instant::now() + PATIENCE;
        while !shared::nobody_inside() && Instant::now() < limit {
            std::thread::sleep(Duration::from_micros(200));
        }
        let is_empty = shared::nobody_inside();
        if !is_empty {
            // A thread is stopped inside: what it uses must stay.
            std::mem::forget(Arc::clone(&self.shared));
        }
        self.shared.tell();
        if is_empty {
            self.shared.classes.clear(jvm.jni);
        }
        // The sampler needs the tables as long as it is on.
        if Sampling.status().is_none() {
            MODULES.replace(None);
        }
        joined::leave(jvm, &self.shared.stream);
    }

    /// Tells what has changed: the JVM is about to end.
    pub fn last(&self) {
        self.shared.tell();
    }

    pub fn status(&self) -> JniRefsStatus {
        let shared = &self.shared;
        let named = |count: &AtomicU64, name: &str| {
            let count = count.load(Relaxed);
            (count > 0).then(|| format!("{count} {name}"))
        };
        let lost = Loss::ALL.into_iter().zip(&shared.losses);
        let failures = Special::ALL.iter().zip(&shared.failures);
        JniRefsStatus {
            session: self.number,
            paused: shared.paused.load(Relaxed),
            made: shared.made.load(Relaxed),
            deleted: shared.deleted.load(Relaxed),
            alive: shared.alive.load(Relaxed),
            before: shared.before.load(Relaxed),
            lost: lost.filter_map(|(why, count)| named(count, why.name())).collect(),
            failures: failures.filter_map(|(kind, count)| named(count, kind.name())).collect(),
            elapsed_ns: u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            notes: self.notes.clone(),
        }
    }
}
