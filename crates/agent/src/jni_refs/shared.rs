//! What happens on the thread that makes or deletes a reference, and what a session shares with it.
//!
//! The thread is in native code, in the middle of a call of JNI: it may allocate and take locks for
//! moments. What it uses is found through one pointer; `SESSION` counts those who may hold it, and
//! the session is taken down when nobody does.
//!
//! References are kept by their addresses with the site that made them, a stack and a kind; each site
//! counts. What has changed goes out from time to time, so a program that makes many of them costs
//! the stream no more than one that makes few.

use crate::jvm::{Jni, Jvmti};
use crate::kernel;
use crate::published::Published;
use crate::stacks::fault_guard;
use crate::stacks::frames::Frame;
use crate::stacks::native::Place;
use crate::stacks::take::Caller;
use crate::stacks::walk::Registers;
use crate::stream::Stream;
use crate::stream::classes::Classes;
use crate::stream::threads;
use crate::thread;
use jvmti_bindings::sys::jni::jobject;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tare_arena::samples::{EventHead, FieldKind, Special};

static SESSION: Published<Shared> = Published::new();

/// References that are followed at a time, and sites.
const MOST_REFERENCES: u64 = 1 << 20;
const MOST_SITES: usize = 1 << 16;

/// Parts of the table, each with a lock of its own.
const PARTS: usize = 64;

/// Stacks that are walked a second; of more references the place is not known.
const WALKS_A_SECOND: u64 = 20_000;

/// What was lost, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Room,
    Sites,
    Rate,
    Buffer,
    Trace,
}

impl Loss {
    pub const ALL: [Loss; 5] = [Loss::Room, Loss::Sites, Loss::Rate, Loss::Buffer, Loss::Trace];

    pub fn name(self) -> &'static str {
        match self {
            Loss::Room => "not followed: more than a million at once",
            Loss::Sites => "without a stack: too many different ones",
            Loss::Rate => "without a stack: more than 20,000 a second",
            Loss::Buffer => "without a stack: no buffer for walking it",
            Loss::Trace => "without a stack: the front end reads too slowly",
        }
    }
}

/// A reference that was just made.
pub struct Made {
    pub reference: jobject,
    pub weak: bool,
    /// Inside our function that was called for it.
    pub place: Place,
}

/// Where references are made.
#[derive(Default)]
struct Site {
    trace: u32,
    weak: bool,
    made: u64,
    deleted: u64,
    /// What of both has been told.
    told: [u64; 2],
}

#[derive(Default)]
struct Sites {
    list: Vec<Site>,
    by_stack: HashMap<(u32, bool), u32>,
}

/// What a session shares with its threads.
pub struct Shared {
    pub stream: Arc<Stream>,
    pub kind: u32,
    pub jvmti: Jvmti,
    pub classes: Classes,
    /// With `-Xcheck:jni` no reference more is made than the program makes.
    pub checked: bool,
    pub paused: AtomicBool,
    parts: [Mutex<HashMap<u64, u32>>; PARTS],
    sites: Mutex<Sites>,
    /// Walks in the second that began then.
    second: AtomicU64,
    walks: AtomicU64,
    pub made: AtomicU64,
    pub deleted: AtomicU64,
    pub alive: AtomicU64,
    pub before: AtomicU64,
    pub losses: [AtomicU64; Loss::ALL.len()],
    pub failures: [AtomicU64; Special::ALL.len()],
}

/// The kind of event in the stream; `None` when there is no room for it.
pub fn declare(stream: &Stream) -> Option<u32> {
    let fields = ["weak", "made", "deleted"].map(|name| (name, FieldKind::Integer));
    stream.declare("jni-refs", &fields)
}

/// Lets threads find the session; null ends that.
pub fn publish(shared: *mut Shared) {
    SESSION.publish(shared);
}

/// Whether no thread uses a session, or what it had found in one before this call.
pub fn nobody_inside() -> bool {
    SESSION.nobody_inside()
}

/// Uses the session, if there is one.
pub fn with_session(work: impl FnOnce(&Shared)) {
    SESSION.with(work);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub fn new(stream: Arc<Stream>, kind: u32, jvmti: Jvmti, checked: bool) -> Self {
        Shared {
            stream,
            kind,
            jvmti,
            classes: Classes::default(),
            checked,
            paused: AtomicBool::new(false),
            parts: std::array::from_fn(|_| Mutex::default()),
            sites: Mutex::default(),
            second: AtomicU64::new(0),
            walks: AtomicU64::new(0),
            made: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
            alive: AtomicU64::new(0),
            before: AtomicU64::new(0),
            losses: Default::default(),
            failures: Default::default(),
        }
    }

    fn lose(&self, why: Loss) {
        self.losses[why as usize].fetch_add(1, Relaxed);
    }

    fn part(&self, reference: u64) -> MutexGuard<'_, HashMap<u64, u32>> {
        locked(&self.parts[(reference >> 3) as usize % PARTS])
    }

    pub fn made(&self, jni: Jni, made: &Made) {
        let tid = kernel::gettid();
        if self.paused.load(Relaxed) || thread::is_ours(tid) {
            return;
        }
        let Some(trace) = self.stack(jni, tid, made) else { return };
        let site = self.site(trace, made.weak);
        self.made.fetch_add(1, Relaxed);
        if self.alive.load(Relaxed) >= MOST_REFERENCES {
            return self.lose(Loss::Room);
        }
        if self.part(made.reference as u64).insert(made.reference as u64, site).is_none() {
            self.alive.fetch_add(1, Relaxed);
        }
    }

    pub fn deleted(&self, reference: u64) {
        let site = self.part(reference).remove(&reference);
        match site {
            Some(site) => {
                self.deleted.fetch_add(1, Relaxed);
                self.alive.fetch_sub(1, Relaxed);
                if let Some(site) = locked(&self.sites).list.get_mut(site as usize) {
                    site.deleted += 1;
                }
            }
            None if thread::is_ours(kernel::gettid()) => {}
            None => _ = self.before.fetch_add(1, Relaxed),
        }
    }

    /// Counts one more for a site, and gives its number.
    fn site(&self, trace: u32, weak: bool) -> u32 {
        let mut sites = locked(&self.sites);
        let Sites { list, by_stack } = &mut *sites;
        let key = match by_stack.contains_key(&(trace, weak)) || list.len() < MOST_SITES {
            true => (trace, weak),
            false => {
                self.lose(Loss::Sites);
                (0, weak)
            }
        };
        let at = *by_stack.entry(key).or_insert_with(|| {
            list.push(Site { trace: key.0, weak, ..Site::default() });
            list.len() as u32 - 1
        });
        if let Some(site) = list.get_mut(at as usize) {
            site.made += 1;
        }
        at
    }

    /// Whether one more stack may be walked in this second.
    fn may_walk(&self) -> bool {
        let now = kernel::monotonic() / 1_000_000_000;
        if self.second.swap(now, Relaxed) != now {
            self.walks.store(0, Relaxed);
        }
        self.walks.fetch_add(1, Relaxed) < WALKS_A_SECOND
    }

    /// The stack that made a reference, with the class of the object innermost; zero if it cannot
    /// be had. `None` if it was made by ourselves.
    fn stack(&self, jni: Jni, tid: u32, made: &Made) -> Option<u32> {
        if !self.may_walk() {
            self.lose(Loss::Rate);
            return Some(0);
        }
        let stacks = &self.stream.stacks;
        let record = threads::table().and_then(|table| table.find(tid));
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
            registers: &Registers { place: made.place, ..Registers::default() },
        };
        let Some((index, mut frames)) = stacks.buffers.take(tid) else {
            self.lose(Loss::Buffer);
            return Some(0);
        };
        // The place of the class.
        frames.push(Frame::class(0));
        let found = stacks.take_with_native(index, caller, &mut frames);
        // The first is our own function; one more of ours, and we have called it.
        let second = frames.as_slice().get(2).map(|frame| (is_own(frame), frame.address()));
        if let Some((true, _)) = second {
            stacks.buffers.give_back(index);
            return None;
        }
        frames.drop_leading(1, is_own);
        // To know a class takes a reference, too: only where it is certain that we are not asked
        // for that one.
        let is_others = matches!(second, Some((false, Some(_))));
        match is_others.then(|| self.class(jni, made.reference)) {
            None | Some(0) => frames.drop_leading(0, Frame::is_class),
            Some(class) => frames.replace_first(Frame::class(class)),
        }
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
        Some(trace.unwrap_or(0))
    }

    /// The text of an object's class; zero if it is not known.
    fn class(&self, jni: Jni, object: jobject) -> u32 {
        if self.checked || jni.is_throwing() {
            return 0;
        }
        let text = |class| self.classes.text(self.jvmti, jni, &self.stream, class);
        jni.with_class_of(object, text).flatten().unwrap_or(0)
    }

    /// Sends what has changed, as far as there is room.
    pub fn tell(&self) {
        let now = kernel::monotonic();
        for site in &mut locked(&self.sites).list {
            let all = [site.made, site.deleted];
            if all == site.told {
                continue;
            }
            let head =
                EventHead { kind: self.kind, time: now, trace: site.trace, ..EventHead::default() };
            let [made, deleted] = [0, 1].map(|at| all[at] - site.told[at]);
            let values = [u64::from(site.weak), made, deleted];
            if !self.stream.ring.append_event(&head, &values) {
                return;
            }
            site.told = all;
        }
    }
}

/// Whether a frame is of this library.
fn is_own(frame: &Frame) -> bool {
    frame.address().is_some_and(fault_guard::is_own_code)
}
