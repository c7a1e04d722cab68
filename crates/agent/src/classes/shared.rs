//! What happens on the thread that loads or links a class, and what a session shares with it.
//!
//! It runs in the JVM's callback, on a thread that is in native code, so it may allocate and take
//! locks for moments; never is the JVM called with one held. What it uses is found through one
//! pointer; `SESSION` counts those who may hold it, and the session is taken down when nobody does.
//!
//! The JVM tells of a class at the end of its definition, and of its linking. What that took the
//! JVM itself sums up, for all threads together, each sum when the outermost work of its kind on a
//! thread is over. Each event brings what was added to these sums since the event before it, and
//! what our own callbacks took, which the sums contain. Which class that is the time of is decided
//! by whoever reads the stream.

use super::mirrors::{Mirrors, UNTOLD};
use crate::jvm::loaders::Fields;
use crate::jvm::{Jni, Jvmti};
use crate::kernel;
use crate::loaders;
use crate::perf_memory::ClassCounters;
use crate::published::Published;
use crate::stacks::take::Caller;
use crate::stacks::walk::Registers;
use crate::stream::Stream;
use crate::stream::threads;
use crate::thread;
use jvmti_bindings::sys::jni::{jclass, jobject};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tare_arena::samples::{EventHead, FieldKind, Special};
use tare_protocol::ClassCost;

static SESSION: Published<Shared> = Published::new();

/// What was lost, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Ring,
    Buffer,
    Trace,
    Name,
    Tag,
}

impl Loss {
    pub const ALL: [Loss; 5] = [Loss::Ring, Loss::Buffer, Loss::Trace, Loss::Name, Loss::Tag];

    pub fn name(self) -> &'static str {
        match self {
            Loss::Ring => "lost: the front end reads too slowly",
            Loss::Buffer => "without a stack: no buffer for walking it",
            Loss::Trace => "without a stack: the front end reads too slowly",
            Loss::Name => "lost: the JVM did not tell the class",
            Loss::Tag => "not watched: the JVM has no memory for tags",
        }
    }
}

/// Of a loaded class: it was there, and another loader has found it.
const FLAG_FOUND: u64 = 1;

/// The kinds of events in the stream.
#[derive(Clone, Copy)]
pub struct Kinds {
    pub load: u32,
    pub link: u32,
    pub present: u32,
    pub unload: u32,
    pub loader: u32,
    pub sums: u32,
}

/// What every event that brings times has: what our callbacks took, and the JVM's sums.
const TIMES: usize = 1 + ClassCost::ALL.len();

impl Kinds {
    /// `None` when there is no room for them.
    pub fn declare(stream: &Stream) -> Option<Self> {
        use FieldKind::{Duration, Integer, Text};
        let times = ClassCost::ALL.map(|cost| (cost.name(), Duration));
        let times = [&[("own", Duration)][..], &times].concat();
        let class = [("number", Integer), ("class", Text), ("loader", Integer)];
        let load = [&class[..], &[("flags", Integer)], &times].concat();
        let link = [&[("number", Integer)][..], &times].concat();
        let loader = [("number", Integer), ("class", Text), ("name", Text), ("parent", Integer)];
        // What the JVM has counted since the session began, and the loads on our own threads.
        let counts = ["loaded", "unloaded", "own-loads"].map(|name| (name, Integer));
        let sums = [&counts[..], &times].concat();
        Some(Kinds {
            load: stream.declare("class-loaded", &load)?,
            link: stream.declare("class-linked", &link)?,
            present: stream.declare("class-present", &class)?,
            unload: stream.declare("class-unloaded", &[("number", Integer)])?,
            loader: stream.declare("class-loader", &loader)?,
            sums: stream.declare("class-sums", &sums)?,
        })
    }
}

/// Up to where the JVM's sums have been told. Held while an event is appended, so that events and
/// what they bring are in one order.
pub struct Ledger {
    pub times: [u64; ClassCost::ALL.len()],
    pub preparing: u64,
}

/// Loaders that were told of: a cache by number. One that fell out of it is told once more.
const LOADERS: usize = 4096;

/// What a session shares with its callbacks.
pub struct Shared {
    pub stream: Arc<Stream>,
    pub kinds: Kinds,
    pub jvmti: Jvmti,
    pub mirrors: Mirrors,
    /// Where a loader has its name and its parent.
    pub fields: Option<Fields>,
    pub counters: Option<&'static ClassCounters>,
    /// Classes that were loaded and unloaded when the session began, by the JVM's counters.
    pub base: (u64, u64),
    pub ledger: Mutex<Ledger>,
    pub told_loaders: Box<[AtomicU32]>,
    pub paused: AtomicBool,
    /// The number that the last class got.
    pub number: AtomicU64,
    pub present: AtomicU64,
    pub loads: AtomicU64,
    pub found: AtomicU64,
    pub links: AtomicU64,
    pub unloads: AtomicU64,
    pub own_loads: AtomicU64,
    pub own: AtomicU64,
    pub losses: [AtomicU64; Loss::ALL.len()],
    pub failures: [AtomicU64; Special::ALL.len()],
}

pub fn told_loaders() -> Box<[AtomicU32]> {
    (0..LOADERS).map(|_| AtomicU32::new(0)).collect()
}

/// Lets callbacks find the session; null ends that.
pub fn publish(shared: *mut Shared) {
    SESSION.publish(shared);
}

/// Whether no callback uses a session, or what it had found in one before this call.
pub fn nobody_inside() -> bool {
    SESSION.nobody_inside()
}

/// Uses the session, if there is one.
pub fn with_session(work: impl FnOnce(&Shared)) {
    SESSION.with(work);
}

impl Shared {
    pub fn lose(&self, why: Loss) {
        self.losses[why as usize].fetch_add(1, Relaxed);
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The JVM tells of a class: it was defined, or a loader that did not define it has found it.
    pub fn loaded(&self, jni: Jni, class: jclass) {
        let began = kernel::monotonic();
        if self.paused.load(Relaxed) {
            return;
        }
        let tid = kernel::gettid();
        let known = self.mirrors.number(class);
        let (known, number) = match known {
            0 => (0, self.numbered(class, 0)),
            tag if tag & UNTOLD != 0 => {
                self.mirrors.set(class, tag & !UNTOLD);
                (0, tag & !UNTOLD)
            }
            number => (number, number),
        };
        if thread::is_ours(tid) {
            self.own_loads.fetch_add(u64::from(known == 0), Relaxed);
            return;
        }
        let Some(text) = self.text(class) else { return self.lose(Loss::Name) };
        let loader = self.loader(jni, class);
        let record = threads::table().and_then(|table| table.find(tid));
        let thread = match record.map(|record| record.thread.load(Relaxed)) {
            None | Some(0) => self.stream.watch.own_thread(jni),
            Some(thread) => thread,
        };
        let java_id = record.map_or(0, |record| record.java_id.load(Relaxed));
        let (trace, mounted) = self.stack(tid, thread, java_id);
        let mut head = EventHead {
            kind: self.kinds.load,
            thread: record.map_or(0, |record| record.number.load(Relaxed)),
            time: began,
            java_id: mounted,
            trace,
            ..EventHead::default()
        };
        let flags = if known == 0 { 0 } else { FLAG_FOUND };
        let about = [number, text.into(), loader.into(), flags];
        let sent = self.tell(&mut head, began, about);
        if sent {
            let count = if known == 0 { &self.loads } else { &self.found };
            count.fetch_add(1, Relaxed);
        } else {
            self.lose(Loss::Ring);
        }
    }

    /// A class is linked.
    pub fn linked(&self, class: jclass) {
        let began = kernel::monotonic();
        if self.paused.load(Relaxed) {
            return;
        }
        let record = threads::table().and_then(|table| table.find(kernel::gettid()));
        let mut head = EventHead {
            kind: self.kinds.link,
            thread: record.map_or(0, |record| record.number.load(Relaxed)),
            time: began,
            ..EventHead::default()
        };
        let number = match self.mirrors.number(class) {
            0 => self.numbered(class, UNTOLD),
            tag => tag & !UNTOLD,
        };
        if self.tell(&mut head, began, [number]) {
            self.links.fetch_add(1, Relaxed);
        } else {
            self.lose(Loss::Ring);
        }
    }

    /// The mirror of a class is gone, and with it the class. Calls nobody, takes no lock.
    pub fn unloaded(&self, number: u64) {
        let head = EventHead {
            kind: self.kinds.unload,
            time: kernel::monotonic(),
            ..EventHead::default()
        };
        if self.stream.ring.append_event(&head, &[number]) {
            self.unloads.fetch_add(1, Relaxed);
        } else {
            self.lose(Loss::Ring);
        }
    }

    /// A class that was there before the session. False when there is no room to tell of it now.
    pub fn is_present(&self, jni: Jni, class: jclass) -> bool {
        if self.mirrors.number(class) != 0 {
            return true;
        }
        if !self.stream.ring.is_half_free() {
            return false;
        }
        let Some(signature) = self.jvmti.signature(class).filter(|name| name.starts_with('L'))
        else {
            return true;
        };
        let number = self.numbered(class, 0);
        let Some(text) = self.stream.text(signature) else { return false };
        let loader = self.loader(jni, class);
        let head = EventHead {
            kind: self.kinds.present,
            time: kernel::monotonic(),
            ..EventHead::default()
        };
        if self.stream.ring.append_event(&head, &[number, text.into(), loader.into()]) {
            self.present.fetch_add(1, Relaxed);
        }
        true
    }

    /// What the JVM has counted, and what was added to its sums since the last event. Unless it is
    /// the last time, only if anything was.
    pub fn tell_sums(&self, last: bool) {
        let mut head =
            EventHead { kind: self.kinds.sums, time: kernel::monotonic(), ..EventHead::default() };
        let Some(counters) = self.counters else { return };
        if last || counters.times() != self.ledger().times {
            let began = head.time;
            let (loaded, unloaded) = self.base;
            let counts = [
                counters.loaded().saturating_sub(loaded),
                counters.unloaded().saturating_sub(unloaded),
                self.own_loads.load(Relaxed),
            ];
            self.tell(&mut head, began, counts);
        }
    }

    /// A number for a class that has none, and what its tag is to say beside it.
    fn numbered(&self, class: jclass, beside: u64) -> u64 {
        let number = self.number.fetch_add(1, Relaxed) + 1;
        if !self.mirrors.set(class, number | beside) {
            self.lose(Loss::Tag);
        }
        number
    }

    fn text(&self, class: jclass) -> Option<u32> {
        self.stream.text(self.jvmti.signature(class)?)
    }

    /// The number of the loader that has defined a class; it is told of if that is new.
    fn loader(&self, jni: Jni, class: jclass) -> u32 {
        let number = jni.frame(|| {
            let loader = self.jvmti.class_loader(class).ok().filter(|loader| !loader.is_null())?;
            let number = loaders::number(self.jvmti, jni, loader);
            self.tell_loader(jni, loader, number, 0);
            Some(number)
        });
        number.flatten().unwrap_or(0)
    }

    fn tell_loader(&self, jni: Jni, loader: jobject, number: u32, depth: u32) {
        let Some(slot) = self.told_loaders.get(number as usize % LOADERS) else { return };
        if slot.swap(number, Relaxed) == number {
            return;
        }
        let (name, parent) = match self.fields {
            Some(fields) => jni.loader_name_and_parent(fields, loader),
            None => (None, ptr::null_mut()),
        };
        let parent_number = match parent.is_null() {
            true => 0,
            false => loaders::number(self.jvmti, jni, parent),
        };
        let text = |text: String| self.stream.text(text).map_or(0, u64::from);
        let class = text(loaders::class_name(number));
        let name = name.map_or(0, text);
        let head = EventHead {
            kind: self.kinds.loader,
            time: kernel::monotonic(),
            ..EventHead::default()
        };
        let values = [number.into(), class, name, parent_number.into()];
        self.stream.ring.append_event(&head, &values);
        // Chains of loaders are short, and a circle of them cannot be made.
        if !parent.is_null() && depth < 16 {
            self.tell_loader(jni, parent, parent_number, depth + 1);
        }
    }

    /// The stack of the calling thread, and the virtual thread that is mounted; zeros for what
    /// cannot be had.
    fn stack(&self, tid: u32, thread: u64, java_id: u64) -> (u32, u64) {
        let stacks = &self.stream.stacks;
        let Some((index, mut frames)) = stacks.buffers.take(tid) else {
            self.lose(Loss::Buffer);
            return (0, 0);
        };
        let caller = Caller {
            tid,
            thread,
            java_id,
            kernel_records: 0,
            answered_after: None,
            // None: the walk begins at the last Java frame.
            registers: &Registers::default(),
        };
        let found = stacks.take(index, caller, &mut frames);
        if let Some(end) = found.end {
            frames.end(end);
            if let Some(count) = self.failures.get(end as usize) {
                count.fetch_add(1, Relaxed);
            }
        }
        let trace = self.stream.intern(frames.as_slice(), found.end == Some(Special::Cut));
        stacks.buffers.give_back(index);
        if trace.is_none() {
            self.lose(Loss::Trace);
        }
        (trace.unwrap_or(0), found.mounted)
    }

    /// Appends an event about something, with what was added to the sums. Its callback began at a
    /// time that is given.
    fn tell<const N: usize>(&self, head: &mut EventHead, began: u64, about: [u64; N]) -> bool {
        let preparing = &self.stream.preparing;
        let mut ledger = self.ledger();
        let times = self.counters.map_or(ledger.times, ClassCounters::times);
        let prepared = preparing.load(Relaxed);
        let waited = kernel::monotonic().saturating_sub(began);
        let own = waited + prepared.wrapping_sub(ledger.preparing);
        let mut values = [0; 4 + TIMES];
        let (first, rest) = values.split_at_mut(N);
        first.copy_from_slice(&about);
        rest[0] = own;
        for (value, (now, before)) in rest[1..].iter_mut().zip(times.iter().zip(&ledger.times)) {
            *value = now.wrapping_sub(*before);
        }
        let sent = self.stream.ring.append_event(head, &values[..N + TIMES]);
        // What finds no room goes with the next.
        if sent {
            *ledger = Ledger { times, preparing: prepared };
            self.own.fetch_add(own, Relaxed);
        }
        sent
    }
}
