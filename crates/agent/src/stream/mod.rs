//! The stream of records that a front end drains: the ring, stacks that were sent already, names of
//! methods, and the threads that records are about.
//!
//! Engines append, from signal handlers and the JVM's callbacks; what their records mean is theirs.
//! The stream by itself sends threads when they come and end, and names of the methods in whatever
//! stacks were sent. There is one at a time: its threads are in a table that signal handlers
//! search. The first engine that needs it opens it, others join it, and the last that leaves ends
//! it. All of them are one front end's (`control`).
//!
//! It begins in this order: [`Stream::new`], [`Stream::open`] (the JVM's events reach it), then
//! threads are taken in ([`Stream::take_threads`]), to whoever listens to them. It ends the other
//! way round: [`Stream::close`], and when no handler uses it any more, [`Stream::end`].

pub mod classes;
pub mod engine;
pub mod joined;
mod kinds;
mod names;
mod older;
pub mod pace;
mod ring;
pub mod threads;
mod traces;
pub mod watch;

use crate::events::{self, Enabled, Subscriber};
use crate::jvm::threads::ThreadFields;
use crate::jvm::{Failure, Jni, Jvmti};
use crate::kernel;
use crate::pauses::{self, Listening};
use crate::rights::{self, Right};
use crate::stacks::Stacks;
use crate::stacks::frames::Frame;
use crate::stacks::ids::{MethodIds, Sweep};
use crate::thread;
use jvmti_bindings::sys::jvmti::{self, jvmtiEvent};
use names::MethodNames;
use older::Known;
use pace::Pace;
pub use ring::Ring;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_arena::samples::layout::header;
use traces::Traces;
use watch::Watch;

const EVENTS: [jvmtiEvent; 3] = [
    jvmti::JVMTI_EVENT_THREAD_START,
    jvmti::JVMTI_EVENT_THREAD_END,
    jvmti::JVMTI_EVENT_CLASS_PREPARE,
];

/// Native threads that came or went are looked for this often.
pub const SCAN_EVERY: Duration = Duration::from_millis(250);

/// What one engine has done for the stream need not be done by another so soon.
const TICKS_APART: Duration = Duration::from_millis(10);

/// With thousands of threads that takes milliseconds, and so does the process's clock, for which
/// the kernel adds up all of theirs. So each gets one part of the time in so many, and threads are
/// listed more rarely as long as their number has not changed; but no more rarely than this.
const CLOCK_SHARE: u32 = 500;
pub const SCAN_SHARE: u32 = 200;
const SCAN_SHARE_UNCHANGED: u32 = 2_000;
const CLOCK_AT_LEAST: Duration = Duration::from_millis(250);
pub const SCAN_AT_LEAST: Duration = Duration::from_secs(10);

/// How long the end of the JVM waits until names can be sent.
const LAST_NAMES: Duration = Duration::from_millis(200);

static OPEN: Mutex<Option<Arc<Stream>>> = Mutex::new(None);

/// What engines append to, and what they need for it.
pub struct Stream {
    pub ring: Arc<Ring>,
    pub stacks: Stacks,
    pub watch: Watch,
    /// The methods that the JVM knows.
    pub ids: MethodIds,
    /// Nanoseconds that threads have spent on it while they linked classes.
    pub preparing: AtomicU64,
    traces: Traces,
    /// Engines that write to it.
    users: AtomicU32,
    upkeep: Mutex<Upkeep>,
}

/// What the control thread does for the stream from time to time.
struct Upkeep {
    events: Option<Enabled>,
    pauses: Option<Listening>,
    /// Whether [`RIGHTS`] are held.
    has_rights: bool,
    names: MethodNames,
    sweep: Sweep,
    clock: Pace,
    listing: Pace,
    next_scan: Instant,
    ticked: Instant,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What names of methods and the clocks of threads take.
const RIGHTS: [Right; 3] = [Right::LineNumbers, Right::SourceFiles, Right::ThreadCpuTime];

/// The stream that is open, for one more engine, which is to leave it.
pub fn join() -> Option<Arc<Stream>> {
    current().inspect(|stream| _ = stream.users.fetch_add(1, AcqRel))
}

/// Whether an engine has opened it.
pub fn is_open() -> bool {
    locked(&OPEN).is_some()
}

/// Sends all names that are missing: the JVM is about to end. Whoever sends some of them now is
/// waited for, but not for long.
pub fn name_all(jvmti: Jvmti, jni: Jni) {
    let Some(stream) = current() else { return };
    let limit = Instant::now() + LAST_NAMES;
    while Instant::now() < limit {
        if let Ok(mut upkeep) = stream.upkeep.try_lock() {
            return stream.name_methods(&mut upkeep, jvmti, jni, true);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The stream that is open, if one is.
fn current() -> Option<Arc<Stream>> {
    locked(&OPEN).clone()
}

pub static SUBSCRIBER: Subscriber = Subscriber {
    thread_start: |jni, thread| {
        if let Some(stream) = current() {
            stream.watch.started(&stream.ring, jni, thread);
        }
    },
    thread_end: |_, _| {
        if let Some(stream) = current() {
            stream.watch.remove(&stream.ring, kernel::gettid());
        }
    },
    // Its methods get ids before they can run.
    class_prepare: |jvmti, _, class| {
        if let Some(stream) = current() {
            let began = kernel::monotonic();
            stream.ids.add_class(jvmti, class);
            stream.preparing.fetch_add(kernel::monotonic().saturating_sub(began), Relaxed);
        }
    },
    ..Subscriber::NONE
};

impl Stream {
    /// With a ring of `memory` bytes. Nothing happens on it yet.
    pub fn new(
        stacks: Stacks,
        jvmti: Jvmti,
        jni: Jni,
        fields: ThreadFields,
        memory: u64,
    ) -> io::Result<Self> {
        let out_of_memory = || io::Error::from_raw_os_error(libc::ENOMEM);
        let table = threads::make().ok_or_else(out_of_memory)?;
        let own = jni.frame(|| own_thread(jvmti, jni, fields)).flatten();
        Ok(Stream {
            ring: Arc::new(Ring::new(memory)?),
            stacks,
            watch: Watch::new(table, fields, jni, own),
            ids: MethodIds::default(),
            preparing: AtomicU64::new(0),
            traces: Traces::new(),
            users: AtomicU32::new(1),
            upkeep: Mutex::new(Upkeep {
                events: None,
                pauses: None,
                has_rights: false,
                names: MethodNames::default(),
                sweep: Sweep::default(),
                clock: Pace::new(Duration::ZERO, CLOCK_AT_LEAST),
                listing: Pace::new(SCAN_EVERY, SCAN_AT_LEAST),
                next_scan: Instant::now() + SCAN_EVERY,
                ticked: Instant::now(),
            }),
        })
    }

    /// An engine leaves it: whether it was the last, which has to close and end it.
    pub fn leave(&self) -> bool {
        self.users.fetch_sub(1, AcqRel) == 1
    }

    /// For the front end: the stream, and where it says how far it has read.
    pub fn files(&self) -> io::Result<[File; 2]> {
        self.ring.files()
    }

    /// The id of a stack, which is sent if it was not yet. `None` when there is no room for it.
    pub fn intern(&self, frames: &[Frame], cut: bool) -> Option<u32> {
        self.traces.intern(&self.ring, frames, cut)
    }

    /// Lets the JVM's events reach it. Classes that are loaded already tell the ids of their
    /// methods now; the number of those classes. After an error it is to be closed, too.
    pub fn open(self: &Arc<Self>, jvmti: Jvmti, jni: Jni) -> Result<u64, Failure> {
        rights::take(jvmti, &RIGHTS)?;
        locked(&self.upkeep).has_rights = true;
        *locked(&OPEN) = Some(Arc::clone(self));
        let told = pauses::listen(&self.ring, true, jvmti)?;
        locked(&self.upkeep).pauses = Some(told);
        locked(&self.upkeep).events = Some(events::enable(jvmti, &SUBSCRIBER, EVENTS)?);
        let classes = jni.frame(|| {
            jvmti.with_loaded_classes(jni, |classes| self.ids.add_classes(jvmti, classes))
        });
        Ok(classes.and_then(Result::ok).unwrap_or(0))
    }

    /// Takes in the threads that there are, and notes both clocks of the beginning.
    pub fn take_threads(&self, jvmti: Jvmti, jni: Jni, interval: u64) {
        let known = self.older_threads(jvmti, jni);
        // What it took to come here is not the program's.
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.ring.put(header::STARTED, kernel::monotonic());
        self.ring.put(header::STARTED_UNIX, u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX));
        self.ring.put(header::CPU_STARTED, program_cpu());
        self.ring.put(header::INTERVAL, interval);
        self.stamp();
        self.watch.scan_tasks(&self.ring, known);
    }

    /// How far it has come, by both clocks at one time.
    pub fn stamp(&self) {
        self.ring.put(header::SEEN, kernel::monotonic());
        self.ring.put(header::CPU_SEEN, program_cpu());
    }

    /// As [`Stream::tick`], for each of the engines that share the stream: the first of them that
    /// comes does it.
    pub fn tick_if_due(&self, jvmti: Jvmti, jni: Jni) {
        if locked(&self.upkeep).ticked.elapsed() >= TICKS_APART {
            self.tick(jvmti, jni);
        }
    }

    /// To be called several times a second by the control thread.
    pub fn tick(&self, jvmti: Jvmti, jni: Jni) {
        let mut upkeep = locked(&self.upkeep);
        upkeep.ticked = Instant::now();
        if upkeep.clock.is_due(CLOCK_SHARE) {
            upkeep.clock.work(|| self.stamp());
        }
        self.name_methods(&mut upkeep, jvmti, jni, false);
        self.ring.free(upkeep.names.scanned);
        let gone = upkeep.sweep.step(&self.ids, |id| jvmti.is_gone(id));
        upkeep.names.forget(&gone);
        let now = Instant::now();
        if now >= upkeep.next_scan {
            upkeep.next_scan = now + SCAN_EVERY;
            let same = self.watch.knows_as_many_as_there_are();
            if upkeep.listing.is_due(if same { SCAN_SHARE_UNCHANGED } else { SCAN_SHARE }) {
                upkeep.listing.work(|| self.watch.scan_tasks(&self.ring, Known::new()));
            }
        }
    }

    /// Sends the names of methods that have come; with `last`, of all.
    fn name_methods(&self, upkeep: &mut Upkeep, jvmti: Jvmti, jni: Jni, last: bool) {
        upkeep.names.scan(&self.ring);
        upkeep.names.send(&self.ring, &self.ids, last, |id| jvmti.describe_method(jni, id));
    }

    /// The JVM's events reach it no more, and threads are let go.
    pub fn close(self: &Arc<Self>, jvmti: Jvmti) {
        if let Some(events) = locked(&self.upkeep).events.take() {
            events.off(jvmti);
        }
        let pauses = locked(&self.upkeep).pauses.take();
        if let Some(pauses) = pauses {
            pauses.end(jvmti);
        }
        *locked(&OPEN) = None;
        self.watch.close();
        self.watch.tell(None);
    }

    /// The last records: all names, and that nothing follows. No handler appends any more.
    pub fn end(&self, jvmti: Jvmti, jni: Jni) {
        self.watch.forget_threads();
        self.name_methods(&mut locked(&self.upkeep), jvmti, jni, true);
        self.ring.put(header::ENDED, 1);
        if std::mem::take(&mut locked(&self.upkeep).has_rights) {
            rights::give_back(jvmti, &RIGHTS);
        }
    }
}

/// HotSpot's thread behind the calling one.
fn own_thread(jvmti: Jvmti, jni: Jni, fields: ThreadFields) -> Option<u64> {
    let thread = jvmti.current_thread()?;
    let (native, _) = jni.thread_numbers(fields, thread);
    (native != 0).then_some(native)
}

/// Processor time of the process without that of our own threads, which are not sampled.
fn program_cpu() -> u64 {
    kernel::clock(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(thread::own_cpu())
}
