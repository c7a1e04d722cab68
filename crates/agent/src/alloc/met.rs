//! What happens on the thread whose object the JVM's sampler has met.
//!
//! It runs in the JVM's callback, on a thread that is in native code, so it may allocate and take
//! locks for moments; never is the JVM called with one held. What it uses is found through one
//! pointer; `SESSION` counts those who may hold it, and the session is taken down when nobody does.

use super::collections::Begun;
use super::table::{Entry, is_taken_in, thin};
use super::woven;
use crate::jvm::references::Weak;
use crate::jvm::{Jni, Jvmti};
use crate::kernel;
use crate::published::Published;
use crate::stacks::frames::Frame;
use crate::stacks::take::Caller;
use crate::stacks::walk::Registers;
use crate::stream::Stream;
use crate::stream::classes::Classes;
use crate::stream::threads;
use crate::thread;
use jvmti_bindings::sys::jni::{jclass, jlong, jobject};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tare_arena::samples::{EventHead, FieldKind, Special};
use tare_protocol::Unwatched;

/// What the JVM draws samples from while nobody has asked for anything else.
pub const DEFAULT_INTERVAL: u64 = 512 << 10;

static SESSION: Published<Shared> = Published::new();

/// Why a sample, or what could be known of it, was lost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Ring,
    Buffer,
    Class,
    Reference,
    Room,
}

impl Loss {
    pub const ALL: [Loss; 5] = [Loss::Ring, Loss::Buffer, Loss::Class, Loss::Reference, Loss::Room];

    pub fn name(self) -> &'static str {
        match self {
            Loss::Ring => "lost: the front end reads too slowly",
            Loss::Buffer => "lost: no buffer for walking the stack",
            Loss::Class => "lost: the JVM did not tell the class",
            Loss::Reference => "not watched: the JVM has no memory for references",
            Loss::Room => "not watched: too many objects at once",
        }
    }
}

/// The kinds of events in the stream.
#[derive(Clone, Copy)]
pub struct Kinds {
    pub allocation: u32,
    pub survived: u32,
    pub gone: u32,
    pub level: u32,
    pub swept: u32,
    /// Where woven code hands objects over.
    pub woven: Option<woven::Kinds>,
}

impl Kinds {
    /// `None` when there is no room for them.
    pub fn declare(stream: &Stream, woven: bool) -> Option<Self> {
        use FieldKind::{Bytes, Integer};
        let fields = [("number", Integer), ("size", Bytes), ("interval", Bytes), ("born", Integer)];
        let (number, level, epoch) = (("number", Integer), ("level", Integer), ("epoch", Integer));
        let swept = ["below", "epoch", "entries", "unproven", "old"].map(|name| (name, Integer));
        let woven = match woven {
            true => Some(woven::Kinds::declare(stream)?),
            false => None,
        };
        Some(Kinds {
            allocation: stream.declare("allocation", &fields)?,
            survived: stream.declare("live-survived", &[number, level, epoch])?,
            gone: stream.declare("live-gone", &[number, epoch])?,
            level: stream.declare("live-level", &[number, level])?,
            swept: stream.declare("live-swept", &swept)?,
            woven,
        })
    }
}

/// Objects that are to be watched, and the number that the next one gets.
#[derive(Default)]
pub struct Incoming {
    pub next: u64,
    pub list: Vec<Entry<Weak>>,
    /// Of those that woven code has made.
    pub bytes: u64,
}

/// What a session shares with its callbacks.
pub struct Shared {
    pub stream: Arc<Stream>,
    pub kinds: Kinds,
    pub classes: Classes,
    pub begun: Begun,
    /// Collections begun when the session did.
    pub base: u32,
    pub live: bool,
    /// Objects of this size and larger ones are born old.
    pub old_from: u64,
    /// Objects are those that woven code hands over.
    pub woven: bool,
    /// Those of them that are not watched.
    pub unwatched: [AtomicU64; Unwatched::ALL.len()],
    pub interval: AtomicU64,
    pub paused: AtomicBool,
    /// One in 2^level objects is watched.
    pub level: AtomicU8,
    /// As many may be on their way into the table.
    pub room: AtomicUsize,
    /// Of objects that woven code hands over, so many bytes; what is short if there is no more
    /// room; and whether there is none until the next look.
    pub room_bytes: AtomicU64,
    pub is_short_of_young: AtomicBool,
    pub is_full: AtomicBool,
    /// Threads with this number and higher ones are younger than the session.
    pub first_thread: u32,
    pub incoming: Mutex<Incoming>,
    pub samples: AtomicU64,
    pub bytes: AtomicU64,
    pub tickets: AtomicU64,
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

/// Uses the session, if there is one.
pub fn with_session(work: impl FnOnce(&Shared)) {
    SESSION.with(work);
}

/// The JVM's sampler has met an object.
pub fn allocated(jvmti: Jvmti, jni: Jni, object: jobject, class: jclass, size: jlong) {
    with_session(|shared| shared.met(jvmti, jni, object, class, size.max(0).cast_unsigned()));
}

/// A pause of a collector ends; the world stands still.
pub fn pause_ends() {
    with_session(|shared| shared.begun.pause_ends());
}

impl Shared {
    pub fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn lose(&self, why: Loss) {
        self.losses[why as usize].fetch_add(1, Relaxed);
    }

    fn met(&self, jvmti: Jvmti, jni: Jni, object: jobject, class: jclass, size: u64) {
        let tid = kernel::gettid();
        if self.paused.load(Relaxed) || thread::is_ours(tid) {
            return;
        }
        let record = threads::table().and_then(|table| table.find(tid));
        let now = self.interval.load(Relaxed);
        // The sample's place was drawn when the one before it was taken, from the interval then.
        let drawn = match record.map(|record| (record.drawn.swap(now, Relaxed), record)) {
            Some((0, record)) if record.number.load(Relaxed) < self.first_thread => {
                DEFAULT_INTERVAL
            }
            Some((0, _)) | None => now,
            Some((drawn, _)) => drawn,
        };
        let Some(text) = self.classes.text(jvmti, jni, &self.stream, class) else {
            return self.lose(Loss::Class);
        };
        let thread = match record.map(|record| record.thread.load(Relaxed)) {
            None | Some(0) => self.stream.watch.own_thread(jni),
            Some(thread) => thread,
        };
        let caller = Caller {
            tid,
            thread,
            java_id: record.map_or(0, |record| record.java_id.load(Relaxed)),
            kernel_records: 0,
            answered_after: None,
            // None: the walk begins at the last Java frame.
            registers: &Registers::default(),
        };
        let stacks = &self.stream.stacks;
        let Some((index, mut frames)) = stacks.buffers.take(tid) else {
            return self.lose(Loss::Buffer);
        };
        frames.push(Frame::class(text));
        let found = stacks.take(index, caller, &mut frames);
        if let Some(end) = found.end {
            frames.end(end);
            self.failures[end as usize].fetch_add(1, Relaxed);
        }
        let trace = self.stream.intern(frames.as_slice(), found.end == Some(Special::Cut));
        stacks.buffers.give_back(index);
        let Some(trace) = trace else { return self.lose(Loss::Ring) };
        let head = EventHead {
            kind: self.kinds.allocation,
            thread: record.map_or(0, |record| record.number.load(Relaxed)),
            time: kernel::monotonic(),
            java_id: found.mounted,
            trace,
            ..EventHead::default()
        };
        self.tell(jni, head, object, size, drawn);
    }

    /// Lets half of those on their way go if they are too many before the control thread's next
    /// look: then one in twice as many is watched. The ones that go.
    fn make_room(&self, incoming: &mut Incoming) -> Vec<Entry<Weak>> {
        let room = self.room.load(Relaxed);
        if incoming.list.len() < room || room == 0 {
            return Vec::new();
        }
        self.level.fetch_add(1, Relaxed);
        thin(&mut incoming.list)
    }

    /// Sends the event, and has the object watched if one is to be.
    fn tell(&self, jni: Jni, head: EventHead, object: jobject, size: u64, drawn: u64) {
        let level = self.level.load(Relaxed);
        let wanted = self.live && is_taken_in(self.tickets.fetch_add(1, Relaxed), level);
        let weak = wanted.then(|| jni.weak_object(object)).flatten();
        if wanted && weak.is_none() {
            self.lose(Loss::Reference);
        }
        let (sent, unused, thinned) = {
            // The event goes out with the lock held: so numbers are in the order of births, and
            // nothing is told of an object before its allocation is.
            let mut incoming = self.incoming();
            let thinned = self.make_room(&mut incoming);
            let has_room = incoming.list.len() < self.room.load(Relaxed);
            let born = self.begun.now();
            let next = incoming.next;
            let entry = |weak| Entry::new(weak, next, born, level, size >= self.old_from);
            let entry = weak.filter(|_| has_room).map(entry);
            let number = entry.as_ref().map_or(0, Entry::name);
            let since = u64::from(born.wrapping_sub(self.base));
            let sent = self.stream.ring.append_event(&head, &[number, size, drawn, since]);
            match entry.filter(|_| sent) {
                Some(entry) => {
                    incoming.next += 1;
                    incoming.list.push(entry);
                    (sent, None, thinned)
                }
                None => (sent, weak, thinned),
            }
        };
        thinned.into_iter().for_each(|entry| jni.delete_weak(entry.reference));
        if let Some(weak) = unused {
            jni.delete_weak(weak);
            if sent {
                self.lose(Loss::Room);
            }
        }
        if sent {
            self.samples.fetch_add(1, Relaxed);
            self.bytes.fetch_add(size, Relaxed);
        } else {
            self.lose(Loss::Ring);
        }
    }
}
