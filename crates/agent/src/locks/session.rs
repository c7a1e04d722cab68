//! One recording of locks: what the control thread does for it from its beginning to its end.
//!
//! It ends in this order: the JVM tells no more, callbacks find nothing, those inside are waited
//! for, the waits that are under way are told as far as they have come.

use super::LockError;
use super::monitor::{EVENTS, SUBSCRIBER};
use super::owner::Owners;
use super::parks::Parks;
use super::shared::{self, Kinds, Loss, Shared};
use super::waits::Waits;
use crate::engines::Jvm;
use crate::events::{self, Enabled};
use crate::kernel;
use crate::pauses;
use crate::sampling;
use crate::stacks::fault_guard;
use crate::stream::joined::{self, OpenError};
use std::fs::File;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};
use tare_arena::samples::{EventHead, Special};
use tare_protocol::{LockPlan, LockStatus};

/// Thresholds that can be asked for: up to a minute.
const THRESHOLDS: RangeInclusive<u64> = 0..=60_000_000_000;

/// How often sums go out.
const SUMS_EVERY: Duration = Duration::from_millis(100);

/// Unloaded classes are looked for this often.
const FORGETTING: Duration = Duration::from_secs(10);

/// How long the end waits for callbacks that are still inside.
const PATIENCE: Duration = Duration::from_secs(5);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// What the sums were when they were sent last: contentions, their time, time of waiting; the same
/// of what was lost.
type Sent = [u64; 6];

/// Owned by the control thread.
pub struct LockSession {
    shared: Arc<Shared>,
    events: Option<Enabled>,
    sent: Sent,
    next_sums: Instant,
    next_forgetting: Instant,
    number: u32,
    since: Instant,
    notes: Vec<String>,
    /// On while the session is.
    parks: Option<Parks>,
}

impl LockSession {
    /// Begins. After an error everything is as it was.
    pub fn start(jvm: Jvm, plan: &LockPlan) -> Result<(Self, Vec<File>), LockError> {
        let jvmti = jvm.jvmti;
        // Owners are asked by a signal.
        sampling::install_handler().map_err(OpenError::Signal)?;
        let (stream, files) = joined::join_or_open(jvm, plan.depth, plan.memory)?;
        let kinds = Kinds::declare(&stream).filter(|_| stream.stacks.are_walkable());
        let Some(kinds) = kinds else {
            joined::leave(jvm, &stream);
            return Err(LockError::Stream);
        };
        let (owners, note) = Owners::new(jvmti);
        let unasked = kernel::may_ask().err().map(|e| {
            format!("Owners cannot be asked for their stacks: rt_tgsigqueueinfo is denied ({e}).")
        });
        let shared = Arc::new(Shared {
            stream,
            kinds,
            classes: Default::default(),
            jvmti,
            threshold: AtomicU64::new(clamped(plan.threshold_ns)),
            paused: AtomicBool::new(false),
            waits: Waits::new(),
            owners,
            all: Default::default(),
            short: Default::default(),
            lost: Default::default(),
            unplaced: AtomicU64::new(0),
            told: AtomicU64::new(0),
            owned: AtomicU64::new(0),
            losses: Default::default(),
            failures: Default::default(),
        });
        shared::publish(Arc::as_ptr(&shared).cast_mut());
        let mut session = LockSession {
            shared,
            events: None,
            sent: Sent::default(),
            next_sums: Instant::now() + SUMS_EVERY,
            next_forgetting: Instant::now() + FORGETTING,
            number: NUMBER.fetch_add(1, Relaxed) + 1,
            since: Instant::now(),
            notes: note.into_iter().chain(unasked).collect(),
            parks: None,
        };
        match events::enable(jvmti, &SUBSCRIBER, EVENTS) {
            Ok(events) => session.events = Some(events),
            Err(failure) => {
                session.end(jvm);
                return Err(OpenError::Jvmti(failure).into());
            }
        }
        session.parks = Some(Parks::start(jvm, plan.weave, &SUBSCRIBER, &mut session.notes));
        Ok((session, files))
    }

    /// Another threshold, a pause, or going on.
    pub fn change(&self, threshold: Option<u64>, paused: Option<bool>) {
        if let Some(threshold) = threshold {
            self.shared.threshold.store(clamped(threshold), Relaxed);
        }
        if let Some(paused) = paused {
            self.shared.paused.store(paused, Relaxed);
        }
    }

    pub fn tick(&mut self, jvm: Jvm) {
        // Another profiler may have put its handlers over ours.
        let _ = fault_guard::install();
        let _ = sampling::install_handler();
        let jni = jvm.jni;
        self.shared.stream.tick_if_due(jvm.jvmti, jni);
        if let Some(parks) = &self.parks {
            parks.tick(&self.shared);
        }
        let now = Instant::now();
        if now >= self.next_sums {
            self.next_sums = now + SUMS_EVERY;
            self.tell_sums();
        }
        if now >= self.next_forgetting {
            self.next_forgetting = now + FORGETTING;
            self.shared.classes.forget_unloaded(jni);
        }
        self.shared.classes.tidy(jni, shared::nobody_inside);
    }

    /// Sends what has come to the sums since the last time.
    fn tell_sums(&mut self) {
        let shared = &self.shared;
        let mut now = Sent::default();
        for (values, sums) in now.chunks_exact_mut(3).zip([&shared.short, &shared.lost]) {
            let ((count, blocked), (_, waiting)) = (sums.contention.get(), sums.waiting.get());
            values.copy_from_slice(&[count, blocked, waiting]);
        }
        let mut new = now;
        new.iter_mut().zip(&self.sent).for_each(|(new, sent)| *new = new.wrapping_sub(*sent));
        if new == Sent::default() {
            return;
        }
        let head = EventHead {
            kind: shared.kinds.sums,
            time: kernel::monotonic(),
            ..EventHead::default()
        };
        // What finds no room goes with the next.
        if shared.stream.ring.append_event(&head, &new) {
            self.sent = now;
        }
    }

    /// Nothing of ours is left in the JVM.
    pub fn end(&mut self, jvm: Jvm) {
        self.shared.paused.store(true, Relaxed);
        if let Some(events) = self.events.take() {
            events.off(jvm.jvmti);
        }
        let mut parks = self.parks.take();
        if let Some(parks) = &mut parks {
            parks.stop(jvm);
        }
        shared::publish(std::ptr::null_mut());
        let limit = Instant::now() + PATIENCE;
        while !shared::nobody_inside() && Instant::now() < limit {
            std::thread::sleep(Duration::from_micros(200));
        }
        let is_empty = shared::nobody_inside();
        if !is_empty {
            // A thread is stopped inside a callback: what it uses must stay.
            std::mem::forget(Arc::clone(&self.shared));
        }
        let now = kernel::monotonic();
        // A wait that nobody has looked at yet would have no place in the program.
        let under_way = self.shared.waits.drain().filter(|wait| wait.trace != 0);
        under_way.for_each(|wait| self.shared.ended(&wait, now));
        if let Some(parks) = &parks {
            parks.finish(&self.shared);
        }
        self.tell_sums();
        if is_empty {
            self.shared.classes.clear(jvm.jni);
        }
        joined::leave(jvm, &self.shared.stream);
    }

    pub fn status(&self) -> LockStatus {
        let shared = &self.shared;
        let named = |count: &AtomicU64, name: &str| {
            let count = count.load(Relaxed);
            (count > 0).then(|| format!("{count} {name}"))
        };
        let lost = Loss::ALL.into_iter().zip(&shared.losses);
        let failures = Special::ALL.iter().zip(&shared.failures);
        let ((contentions, blocked_ns), (waits, waiting_ns)) =
            (shared.all.contention.get(), shared.all.waiting.get());
        LockStatus {
            session: self.number,
            paused: shared.paused.load(Relaxed),
            threshold_ns: shared.threshold.load(Relaxed),
            contentions,
            blocked_ns,
            waits,
            waiting_ns,
            told: shared.told.load(Relaxed),
            owned: shared.owned.load(Relaxed),
            asked: shared.owners.asked.load(Relaxed),
            answered: shared.owners.answered.load(Relaxed),
            waiting: shared.waits.count() as u64,
            lost: lost.filter_map(|(why, count)| named(count, why.name())).collect(),
            failures: failures.filter_map(|(kind, count)| named(count, kind.name())).collect(),
            elapsed_ns: u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            notes: self.notes.iter().cloned().chain(pauses::untold()).collect(),
        }
    }
}

fn clamped(threshold: u64) -> u64 {
    threshold.clamp(*THRESHOLDS.start(), *THRESHOLDS.end())
}
