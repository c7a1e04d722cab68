//! One recording of allocations: what the control thread does for it from its beginning to its
//! end.
//!
//! It ends in this order: the JVM samples no more, callbacks find nothing, those inside are waited
//! for, the table is looked at once more, every reference goes.

use super::AllocError;
use super::around::Around;
use super::born_old::BornOld;
use super::collections::{self, Collections, Proven};
use super::met::{self, DEFAULT_INTERVAL, Incoming, Kinds, Loss, Shared};
use super::table::{Table, Task};
use super::woven;
use crate::engines::Jvm;
use crate::events::{self, Enabled, Subscriber};
use crate::jvm::Jni;
use crate::jvm::references::Weak;
use crate::kernel;
use crate::pauses;
use crate::stacks::fault_guard;
use crate::stream::joined::{self, OpenError};
use crate::stream::pace::Pace;
use crate::vm_tables::{Missing, Tables};
use jvmti_bindings::sys::jvmti::{self, JVMTI_ERROR_NOT_AVAILABLE, jvmtiEvent};
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tare_arena::samples::{EventHead, Special};
use tare_protocol::{AllocPlan, AllocStatus};

/// Intervals that can be asked for: below the first there would be little else than sampling.
const INTERVALS: std::ops::RangeInclusive<u64> = 64..=1 << 30;

/// Entries of the table that can be asked for.
const TABLES: std::ops::RangeInclusive<u64> = 64..=1 << 24;

/// Objects on their way into the table, at most.
const INCOMING: usize = 1 << 16;

/// Objects that are not proven, where only collections of the whole heap prove: the JVM holds their
/// references until then.
const UNPROVEN: usize = 4096;

/// Entries that are looked at in one go; a fraction of a millisecond. Passes take one part in so
/// many of a processor's time.
const STEP: usize = 10_000;
const SHARE: u32 = 100;

/// The same where every object is watched, some milliseconds: there the dead are in the way of the
/// living until they are found.
const STEP_WOVEN: usize = 100_000;
const SHARE_WOVEN: u32 = 5;

/// Passes wait no longer than this for their next step.
const STEP_AT_LEAST: Duration = Duration::from_millis(500);

/// Unloaded classes are looked for this often.
const FORGETTING: Duration = Duration::from_secs(10);

/// How long the end waits for callbacks that are still inside.
const PATIENCE: Duration = Duration::from_secs(5);

const EVENTS: [jvmtiEvent; 2] =
    [jvmti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, jvmti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH];

pub static SUBSCRIBER: Subscriber = Subscriber {
    sampled_allocation: met::allocated,
    collection_finish: met::pause_ends,
    ..Subscriber::NONE
};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Owned by the control thread.
pub struct AllocSession {
    shared: Arc<Shared>,
    events: Option<Enabled>,
    collections: Collections,
    born_old: BornOld,
    table: Table<Weak>,
    /// Entries at most, and of them those that nothing has proven.
    most: usize,
    unproven_most: usize,
    pace: Pace,
    /// The number that the next object gets: what is below has been taken in.
    taken: u64,
    /// What a finished collection has shown, and no sweep has told yet.
    proven: Option<Proven>,
    /// When the pass under way began: all that it tells is of that moment.
    pass_began: u64,
    state: woven::State,
    next_forgetting: Instant,
    number: u32,
    since: Instant,
    notes: Vec<String>,
}

impl AllocSession {
    /// Begins. After an error everything is as it was.
    pub fn start(jvm: Jvm, plan: &AllocPlan) -> Result<(Self, Vec<File>), AllocError> {
        if plan.native {
            return Err(AllocError::Native);
        }
        let jvmti = jvm.jvmti;
        let tables = Tables::read(jvmti.inside_libjvm());
        let tables = tables.map_err(|Missing(what)| OpenError::Unknown(what))?;
        let interval = plan.interval_bytes.clamp(*INTERVALS.start(), *INTERVALS.end());
        // What woven code hands over needs nothing of the JVM's sampler.
        let events = EVENTS.into_iter().skip(usize::from(plan.woven));
        // First what may be refused; nobody finds a session yet.
        let enabled = events::enable(jvmti, &SUBSCRIBER, events).map_err(|failure| {
            match failure.error == JVMTI_ERROR_NOT_AVAILABLE {
                true => AllocError::taken(),
                false => OpenError::Jvmti(failure).into(),
            }
        })?;
        let sampler = match plan.woven {
            true => Ok(()),
            false => jvmti.set_allocation_interval(interval).map_err(OpenError::Jvmti),
        };
        let begun = sampler
            .map_err(AllocError::from)
            .and_then(|()| Self::on_stream(jvm, plan, interval, &tables));
        match begun {
            Ok((mut session, files)) => {
                session.events = Some(enabled);
                session.publish_room();
                met::publish(Arc::as_ptr(&session.shared).cast_mut());
                Ok((session, files))
            }
            Err(error) => {
                if !plan.woven {
                    let _ = jvmti.set_allocation_interval(DEFAULT_INTERVAL);
                }
                enabled.off(jvmti);
                Err(error)
            }
        }
    }

    fn on_stream(
        jvm: Jvm,
        plan: &AllocPlan,
        interval: u64,
        tables: &Tables,
    ) -> Result<(Self, Vec<File>), AllocError> {
        let java = jvm.jvmti.java_version();
        let java = java.and_then(|version| version.split('.').next()?.parse().ok()).unwrap_or(0);
        let (stream, files) = joined::join_or_open(jvm, plan.depth, plan.memory)?;
        let kinds = Kinds::declare(&stream, plan.woven);
        let kinds = kinds.filter(|_| plan.woven || stream.stacks.are_walkable());
        let Some(kinds) = kinds else {
            joined::leave(jvm, &stream);
            return Err(AllocError::Stream);
        };
        let (begun, collections) = collections::follow(tables, java);
        let born_old = BornOld::new(tables);
        let shared = Shared {
            kinds,
            classes: Default::default(),
            base: begun.now(),
            begun,
            live: plan.live || plan.woven,
            woven: plan.woven,
            unwatched: Default::default(),
            old_from: born_old.from,
            interval: AtomicU64::new(if plan.woven { 0 } else { interval }),
            paused: AtomicBool::new(false),
            level: AtomicU8::new(0),
            room: AtomicUsize::new(0),
            room_bytes: AtomicU64::new(0),
            is_short_of_young: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            first_thread: stream.watch.next_number(),
            stream,
            incoming: Mutex::new(Incoming { next: 1, ..Incoming::default() }),
            samples: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            tickets: AtomicU64::new(0),
            losses: Default::default(),
            failures: Default::default(),
        };
        let most = plan.table.clamp(*TABLES.start(), *TABLES.end()) as usize;
        let unproven_most = match (collections.rare, plan.woven) {
            (false, _) => most,
            (true, false) => UNPROVEN.min(most),
            (true, true) => woven::UNPROVEN.min(most),
        };
        let notes = if shared.live { collections.notes.clone() } else { Vec::new() };
        let session = AllocSession {
            shared: Arc::new(shared),
            events: None,
            born_old,
            table: Table::new(),
            most,
            unproven_most,
            collections,
            pace: Pace::new(Duration::ZERO, STEP_AT_LEAST),
            taken: 1,
            proven: None,
            pass_began: 0,
            state: woven::State::default(),
            next_forgetting: Instant::now() + FORGETTING,
            number: NUMBER.fetch_add(1, Relaxed) + 1,
            since: Instant::now(),
            notes,
        };
        Ok((session, files))
    }

    /// Another interval, a pause, or going on.
    pub fn change(
        &self,
        jvm: Jvm,
        interval: Option<u64>,
        paused: Option<bool>,
    ) -> Result<(), AllocError> {
        if let Some(interval) = interval.filter(|_| !self.shared.woven) {
            let interval = interval.clamp(*INTERVALS.start(), *INTERVALS.end());
            jvm.jvmti.set_allocation_interval(interval).map_err(OpenError::Jvmti)?;
            self.shared.interval.store(interval, Relaxed);
        }
        if let Some(paused) = paused {
            self.shared.paused.store(paused, Relaxed);
        }
        Ok(())
    }

    pub fn tick(&mut self, jvm: Jvm) {
        if !self.shared.woven {
            // Another profiler may have put its handler over ours.
            let _ = fault_guard::install();
        }
        let jni = jvm.jni;
        self.shared.stream.tick_if_due(jvm.jvmti, jni);
        if Instant::now() >= self.next_forgetting {
            self.next_forgetting = Instant::now() + FORGETTING;
            self.shared.classes.forget_unloaded(jni);
        }
        self.shared.classes.tidy(jni, met::nobody_inside);
        if self.shared.live {
            self.look(jni);
            self.choose();
            let woven = self.shared.woven;
            let (most, share) = if woven { (STEP_WOVEN, SHARE_WOVEN) } else { (STEP, SHARE) };
            if self.table.is_busy() && self.pace.is_due(share) {
                let (table, shared, time) = (&mut self.table, &self.shared, self.pass_began);
                let mut done = None;
                self.pace.work(|| done = table.step(most, &mut Around { jni, shared, time }));
                self.finish(done);
            }
            self.publish_room();
            self.tell_state();
        }
    }

    fn tell_state(&mut self) {
        let (unproven, bytes) = (self.table.unproven(), self.table.unproven_bytes());
        self.state.tell(&self.shared, unproven, bytes);
    }

    /// Takes in new objects, and what collections have shown.
    fn look(&mut self, jni: Jni) {
        // In this order: what is proven by now concerns objects that are taken in here.
        let shared = &self.shared;
        let next = shared.incoming().next;
        self.born_old.look(next);
        let proven = self.collections.look(jni, &shared.begun, || shared.incoming().next);
        self.proven = proven.or(self.proven);
        let new = {
            let mut incoming = self.shared.incoming();
            self.taken = incoming.next;
            self.shared.take_room(&mut incoming);
            std::mem::take(&mut incoming.list)
        };
        self.table.extend(new);
    }

    /// Begins a pass, if one is due and none is under way.
    fn choose(&mut self) {
        if self.table.is_busy() {
            return;
        }
        self.pass_began = kernel::monotonic();
        // First who has no room: with one collection after the other there is always one to tell.
        // What woven code hands over stands for itself, and none is let go.
        let thins = !self.shared.woven;
        let is_full = |count: usize, most: usize| thins && count > most - most / 8;
        if is_full(self.table.count(), self.most) {
            self.shared.level.fetch_add(1, Relaxed);
            self.table.begin(Task::Thin);
        } else if is_full(self.table.unproven(), self.unproven_most) {
            self.shared.level.fetch_add(1, Relaxed);
            self.table.begin(Task::ThinUnproven);
        } else if let Some(proven) = self.proven.take() {
            let below = match proven {
                Proven::Below(below) => below,
                Proven::BornBefore(collections) => {
                    self.table.first_born_since(collections).unwrap_or(self.taken)
                }
            };
            let (old, epoch) = (self.born_old.below, self.collections.epoch());
            self.table.begin(Task::Sweep { below, old, epoch });
        }
    }

    /// A pass is over.
    fn finish(&mut self, done: Option<Task>) {
        let Some(Task::Sweep { below, old, epoch }) = done else { return };
        self.tell_swept(below, old, epoch);
        let (entries, unproven) = (self.table.count(), self.table.unproven());
        let is_empty = |count: usize, most: usize| count < most / 4;
        let level = &self.shared.level;
        if level.load(Relaxed) > 0
            && is_empty(entries, self.most)
            && is_empty(unproven, self.unproven_most)
        {
            level.fetch_sub(1, Relaxed);
        }
    }

    fn tell_swept(&self, below: u64, old: u64, epoch: u64) {
        let (table, shared) = (&self.table, &self.shared);
        let [entries, unproven] = [table.count(), table.unproven()].map(|count| count as u64);
        let head = EventHead {
            kind: shared.kinds.swept,
            time: kernel::monotonic(),
            ..EventHead::default()
        };
        let values = [below, epoch, entries, unproven, old];
        shared.stream.ring.append_event(&head, &values);
    }

    /// As many objects may come until the next look.
    fn publish_room(&self) {
        let (table, shared) = (&self.table, &self.shared);
        let whole = self.most.saturating_sub(table.count());
        let young = self.unproven_most.saturating_sub(table.unproven());
        let bytes = match self.collections.rare {
            true => woven::UNPROVEN_BYTES.saturating_sub(table.unproven_bytes()),
            false => u64::MAX,
        };
        let most = if shared.woven { usize::MAX } else { INCOMING };
        shared.room.store(whole.min(young).min(most), Relaxed);
        shared.room_bytes.store(bytes, Relaxed);
        shared.is_short_of_young.store(self.collections.rare && whole > 0, Relaxed);
        shared.is_full.store(false, Relaxed);
    }

    /// Nothing of ours is left in the JVM.
    pub fn end(&mut self, jvm: Jvm) {
        let Jvm { jvmti, jni, .. } = jvm;
        self.shared.paused.store(true, Relaxed);
        if !self.shared.woven {
            let _ = jvmti.set_allocation_interval(DEFAULT_INTERVAL);
        }
        if let Some(events) = self.events.take() {
            events.off(jvmti);
        }
        met::publish(std::ptr::null_mut());
        let limit = Instant::now() + PATIENCE;
        while !met::nobody_inside() && Instant::now() < limit {
            std::thread::sleep(Duration::from_micros(200));
        }
        if !met::nobody_inside() {
            // A thread is stopped inside a callback: what it uses must stay.
            std::mem::forget(Arc::clone(&self.shared));
        }
        self.last_look(jni);
        let shared = &self.shared;
        let mut around = Around { jni, shared, time: 0 };
        self.table.clear(&mut around);
        self.collections.clear(jni);
        if met::nobody_inside() {
            shared.classes.clear(jni);
        }
        joined::leave(jvm, &shared.stream);
    }

    /// What is known by the end, as far as there is room to tell it.
    fn last_look(&mut self, jni: Jni) {
        if !self.shared.live {
            return;
        }
        self.look(jni);
        // A pass that is under way, and one for what has come meanwhile.
        for _ in 0..2 {
            self.choose();
            let mut around = Around { jni, shared: &self.shared, time: self.pass_began };
            let done = self.table.step(usize::MAX, &mut around);
            self.finish(done);
        }
        self.tell_state();
    }

    pub fn table(&self) -> &Table<Weak> {
        &self.table
    }

    pub fn status(&self) -> AllocStatus {
        let shared = &self.shared;
        let named = |count: &AtomicU64, name: &str| {
            let count = count.load(Relaxed);
            (count > 0).then(|| format!("{count} {name}"))
        };
        let lost = Loss::ALL.into_iter().zip(&shared.losses);
        let failures = Special::ALL.iter().zip(&shared.failures);
        let (waiting, waiting_bytes) = {
            let incoming = shared.incoming();
            (incoming.list.len() as u64, incoming.bytes)
        };
        AllocStatus {
            session: self.number,
            paused: shared.paused.load(Relaxed),
            interval_bytes: shared.interval.load(Relaxed),
            samples: shared.samples.load(Relaxed),
            sampled_bytes: shared.bytes.load(Relaxed),
            lost: lost
                .filter_map(|(why, count)| named(count, why.name()))
                .chain(shared.unwatched())
                .collect(),
            failures: failures.filter_map(|(kind, count)| named(count, kind.name())).collect(),
            live: shared.live,
            entries: self.table.count() as u64 + waiting,
            entries_most: self.table.most() as u64,
            table_bytes: self.table.bytes() as u64,
            unproven: self.table.unproven() as u64 + waiting,
            unproven_bytes: self.table.unproven_bytes() + waiting_bytes,
            level: u32::from(shared.level.load(Relaxed)),
            collections: self.collections.epoch(),
            elapsed_ns: u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            notes: self.notes.iter().cloned().chain(pauses::untold()).collect(),
        }
    }
}
