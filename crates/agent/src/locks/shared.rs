//! What a session shares with whoever tells it of waits: the stream, the waits under way, the sums.
//!
//! Sources of waits run on the thread that waits, in the JVM's callbacks; what they use is found
//! through one pointer. `SESSION` counts those who may hold it, and the session is taken down when
//! nobody does.

use super::owner::Owners;
use super::parks;
use super::waits::{Wait, Waits};
use crate::jvm::{Jni, Jvmti};
use crate::kernel;
use crate::published::Published;
use crate::stacks::frames::Frame;
use crate::stacks::take::Caller;
use crate::stacks::walk::Registers;
use crate::stream::Stream;
use crate::stream::classes::Classes;
use crate::stream::threads::{self, Record};
use crate::thread;
use jvmti_bindings::sys::jni::{jclass, jobject};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use tare_arena::samples::{EventHead, FieldKind, Special};
use tare_protocol::LockWait;

static SESSION: Published<Shared> = Published::new();

/// What was lost, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Ring,
    Room,
    Buffer,
    Class,
    Trace,
    Before,
}

impl Loss {
    pub const ALL: [Loss; 6] =
        [Loss::Ring, Loss::Room, Loss::Buffer, Loss::Class, Loss::Trace, Loss::Before];

    pub fn name(self) -> &'static str {
        match self {
            Loss::Ring => "lost: the front end reads too slowly",
            Loss::Room => "lost: too many threads wait at once",
            Loss::Buffer => "without a stack: no buffer for walking it",
            Loss::Class => "without a class: the JVM did not tell it",
            Loss::Before => "not told: they began before the recording, or while it was paused",
            Loss::Trace => "without a stack: the front end reads too slowly",
        }
    }
}

/// The kinds of events in the stream.
#[derive(Clone, Copy)]
pub struct Kinds {
    pub wait: u32,
    pub owner: u32,
    pub sums: u32,
    pub task: u32,
    pub start: u32,
}

impl Kinds {
    /// `None` when there is no room for them.
    pub fn declare(stream: &Stream) -> Option<Self> {
        use FieldKind::{Duration, Integer, Text, Thread};
        let wait = [
            ("operation", Integer),
            ("class", Text),
            ("instance", Integer),
            ("owner", Thread),
            ("owner-id", Integer),
            ("asked", Integer),
            ("queue", Integer),
        ];
        let sums = [
            ("contentions", Integer),
            ("blocked", Duration),
            ("waiting", Duration),
            ("lost-contentions", Integer),
            ("lost-blocked", Duration),
            ("lost-waiting", Duration),
        ];
        Some(Kinds {
            wait: stream.declare("lock-wait", &wait)?,
            owner: stream.declare("lock-owner", &[("number", Integer), ("held", Integer)])?,
            sums: stream.declare("lock-sums", &sums)?,
            task: stream.declare("lock-task", &[("class", Text), ("executor", Text)])?,
            start: stream.declare("thread-start", &[("java-id", Integer)])?,
        })
    }
}

/// How often, and how long in all.
#[derive(Default)]
pub struct Sum {
    pub count: AtomicU64,
    pub time: AtomicU64,
}

impl Sum {
    fn add(&self, time: u64) {
        self.count.fetch_add(1, Relaxed);
        self.time.fetch_add(time, Relaxed);
    }

    /// What there is by now.
    pub fn get(&self) -> (u64, u64) {
        (self.count.load(Relaxed), self.time.load(Relaxed))
    }
}

/// Waits of both sorts.
#[derive(Default)]
pub struct Sums {
    pub contention: Sum,
    pub waiting: Sum,
}

impl Sums {
    fn of(&self, kind: LockWait) -> &Sum {
        if kind.is_contention() { &self.contention } else { &self.waiting }
    }
}

/// What a session shares with its callbacks.
pub struct Shared {
    pub stream: Arc<Stream>,
    pub kinds: Kinds,
    pub classes: Classes,
    pub jvmti: Jvmti,
    pub threshold: AtomicU64,
    pub paused: AtomicBool,
    pub waits: Waits,
    pub owners: Owners,
    /// All waits that are over, those that were too short, and those that could not be told.
    pub all: Sums,
    pub short: Sums,
    pub lost: Sums,
    /// Waits under way that have found no place.
    pub unplaced: AtomicU64,
    pub told: AtomicU64,
    pub owned: AtomicU64,
    pub losses: [AtomicU64; Loss::ALL.len()],
    pub failures: [AtomicU64; Special::ALL.len()],
}

/// Lets callbacks find the session; null ends that.
pub fn publish(shared: *mut Shared) {
    SESSION.publish(shared);
}

/// Whether no callback uses a session, or what it had found in one before this call.
pub fn nobody_inside() -> bool {
    SESSION.nobody_inside()
}

/// Uses the session, if there is one. For signal handlers, too.
pub fn with_session(work: impl FnOnce(&Shared)) {
    SESSION.with(work);
}

/// The calling thread.
#[derive(Clone, Copy)]
pub struct Here {
    pub tid: u32,
    /// HotSpot's thread; zero if it is not known.
    pub thread: u64,
    /// Tells it, or the virtual thread that runs on it, from all others.
    pub id: u64,
    record: Option<&'static Record>,
}

impl Here {
    /// Whether it runs a virtual thread that may go on somewhere else after a wait: then HotSpot's
    /// thread has an id of whoever runs on it.
    pub fn may_leave_its_carrier(&self, shared: &Shared) -> bool {
        let own = self.record.map_or(0, |record| record.java_id.load(Relaxed));
        shared.stream.stacks.owner_id_at().is_some() && own != self.id
    }

    /// The stream's number of it; zero if it is not known.
    pub fn number(&self) -> u32 {
        self.record.map_or(0, |record| record.number.load(Relaxed))
    }
}

impl Shared {
    pub fn lose(&self, why: Loss) {
        self.losses[why as usize].fetch_add(1, Relaxed);
    }

    /// Where we are; `None` on a thread of ours, and while nothing is to be recorded.
    pub fn here(&self, jni: Jni) -> Option<Here> {
        let tid = kernel::gettid();
        if self.paused.load(Relaxed) || thread::is_ours(tid) {
            return None;
        }
        Some(self.found(jni, tid))
    }

    /// A thread that a signal has interrupted.
    pub fn interrupted(&self, tid: u32, record: &'static Record) -> Here {
        let thread = record.thread.load(Relaxed);
        Here { tid, thread, id: self.stream.stacks.own_id(thread, tid), record: Some(record) }
    }

    /// The same while nothing new is to be recorded, to end what was begun.
    pub fn found(&self, jni: Jni, tid: u32) -> Here {
        let record = threads::table().and_then(|table| table.find(tid));
        let thread = match record.map(|record| record.thread.load(Relaxed)) {
            None | Some(0) => self.stream.watch.own_thread(jni),
            Some(thread) => thread,
        };
        Here { tid, thread, id: self.stream.stacks.own_id(thread, tid), record }
    }

    /// The text of an object's class, and what tells the object from others of that class; zeros
    /// for what the JVM does not tell.
    pub fn object(&self, jni: Jni, object: jobject) -> (u32, u64) {
        let class = jni.with_class_of(object, |class| self.class(jni, class)).unwrap_or(0);
        let hash = self.jvmti.identity_hash(object).unwrap_or(0);
        (class, u64::from(hash.cast_unsigned()))
    }

    /// The text of a class; zero if the JVM does not tell it.
    pub fn class(&self, jni: Jni, class: jclass) -> u32 {
        self.classes.text(self.jvmti, jni, &self.stream, class).unwrap_or_else(|| {
            self.lose(Loss::Class);
            0
        })
    }

    /// The stack of the calling thread with a class innermost, and the virtual thread that is
    /// mounted; zeros for what cannot be had.
    pub fn stack(&self, here: &Here, class: u32) -> (u32, u64) {
        self.walked(here, class, &Registers::default())
    }

    /// The same from where a signal has interrupted it, without a class if that is zero.
    pub fn walked(&self, here: &Here, class: u32, registers: &Registers) -> (u32, u64) {
        let caller = Caller {
            tid: here.tid,
            thread: here.thread,
            java_id: here.record.map_or(0, |record| record.java_id.load(Relaxed)),
            kernel_records: 0,
            answered_after: None,
            registers,
        };
        let stacks = &self.stream.stacks;
        let Some((index, mut frames)) = stacks.buffers.take(here.tid) else {
            self.lose(Loss::Buffer);
            return (0, 0);
        };
        if class != 0 {
            frames.push(Frame::class(class));
        }
        let found = stacks.take(index, caller, &mut frames);
        frames.drop_leading(usize::from(class != 0), parks::is_own);
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

    /// A wait is over. Takes no lock, calls nobody: the thread may hold what it waited for.
    pub fn ended(&self, wait: &Wait, now: u64) {
        let duration = now.saturating_sub(wait.began);
        self.all.of(wait.kind).add(duration);
        if duration < self.threshold.load(Relaxed) {
            self.short.of(wait.kind).add(duration);
            return;
        }
        let head = EventHead {
            kind: self.kinds.wait,
            thread: wait.thread,
            time: wait.began,
            duration,
            java_id: wait.java_id,
            trace: wait.trace,
        };
        let values = [
            wait.kind.code(),
            wait.class.into(),
            wait.instance,
            wait.owner.thread.into(),
            wait.owner.java_id,
            wait.owner.asked,
            wait.queue.into(),
        ];
        if self.stream.ring.append_event(&head, &values) {
            self.told.fetch_add(1, Relaxed);
            self.owned.fetch_add(u64::from(wait.owner.is_known()), Relaxed);
        } else {
            self.lost.of(wait.kind).add(duration);
            self.lose(Loss::Ring);
        }
    }

    /// A wait is over of which nobody knows when it began.
    pub fn unbegun(&self, tid: u32) {
        let one_less = |count: u64| count.checked_sub(1);
        let has_no_place = self.unplaced.fetch_update(Relaxed, Relaxed, one_less).is_ok();
        if !has_no_place && !self.paused.load(Relaxed) && !thread::is_ours(tid) {
            self.lose(Loss::Before);
        }
    }

    /// A wait for which there is no place: it is counted, and how long it takes is not known.
    pub fn untimed(&self, kind: LockWait) {
        self.unplaced.fetch_add(1, Relaxed);
        self.all.of(kind).add(0);
        self.lost.of(kind).add(0);
        self.lose(Loss::Room);
    }
}
