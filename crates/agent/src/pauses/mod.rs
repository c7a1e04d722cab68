//! Pauses as events of the stream: garbage collections (`gc`) and safepoints (`safepoint`); and, once
//! a second, what the compilers did (`compilers`). On in every stream: it costs next to nothing.
//!
//! The JVM tells of collections while the world stands still: there is no call into the JVM here,
//! no lock, no allocation, and all texts were sent before. The stream is found through one pointer;
//! `INSIDE` counts who may hold it, and it is given up only when nobody does.
//!
//! What a collection was: which collectors ran tell HotSpot's own counters (`perf_memory`), of which
//! some have moved meanwhile; what the pause was for and how long it took to reach it, HotSpot's
//! notes for its log (`safepoints`); what the heap held, its structures (`used`). What this JVM does
//! not tell stays open. Kinds of pauses are named by the front end.
//!
//! Safepoints of every reason and the compilers' counters are looked at by a thread of ours, which
//! never enters the JVM.

mod causes;
mod compilers;
mod safepoints;
mod used;

use crate::jvm::Jvmti;
use crate::kernel;
use crate::lifecycle::with_signals_blocked;
use crate::perf_memory::{self, COLLECTORS_MOST};
use crate::stream::{Stream, threads};
use crate::thread::{self, Handle, Ours};
use causes::CAUSES;
use compilers::Compilers;
use safepoints::{Looker, REASONS_MOST, Safepoint};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tare_arena::samples::{EventHead, FieldKind};
use used::{Places, UNKNOWN, Used};

/// How long the end of a stream waits for a callback that is still inside.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often safepoints are looked at: two that come in between are told together.
const LOOK: Duration = Duration::from_millis(5);

/// The fields of a `gc` event, in the order of their values.
const GC: [(&str, FieldKind); 10] = [
    ("number", FieldKind::Integer),
    ("collector", FieldKind::Text),
    ("collectors", FieldKind::Integer),
    ("operation", FieldKind::Text),
    ("cause", FieldKind::Text),
    ("heap-before", FieldKind::Bytes),
    ("heap-after", FieldKind::Bytes),
    ("old-before", FieldKind::Bytes),
    ("old-after", FieldKind::Bytes),
    ("reach", FieldKind::Duration),
];

/// Those of a `safepoint`.
const SAFEPOINT: [(&str, FieldKind); 5] = [
    ("number", FieldKind::Integer),
    ("reason", FieldKind::Text),
    ("count", FieldKind::Integer),
    ("reach", FieldKind::Duration),
    ("running", FieldKind::Integer),
];

static STREAM: AtomicPtr<Stream> = AtomicPtr::new(ptr::null_mut());
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Numbers of kinds and texts in the stream.
static KIND: AtomicU32 = AtomicU32::new(0);
static COLLECTOR_TEXTS: [AtomicU32; COLLECTORS_MOST] =
    [const { AtomicU32::new(0) }; COLLECTORS_MOST];
static CAUSE_TEXTS: [AtomicU32; CAUSES.len()] = [const { AtomicU32::new(0) }; CAUSES.len()];
static REASON_TEXTS: [AtomicU32; REASONS_MOST] = [const { AtomicU32::new(0) }; REASONS_MOST];
/// What G1 before JDK 20 calls by one name.
static OLD_TEXTS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
const OLD_NAMES: [&str; 2] = ["G1PauseRemark", "G1PauseCleanup"];
const BOTH_OLD: &str = "G1Concurrent";

/// Collections told so far.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The collection under way; one at a time, since the world stands still. When it began (zero: there
/// is none), how often each collector had run then, and what was in use.
static BEGAN: AtomicU64 = AtomicU64::new(0);
static RUNS: [AtomicU64; COLLECTORS_MOST] = [const { AtomicU64::new(0) }; COLLECTORS_MOST];
static HEAP_BEFORE: AtomicU64 = AtomicU64::new(UNKNOWN);
static OLD_BEFORE: AtomicU64 = AtomicU64::new(UNKNOWN);

static PLACES: OnceLock<Option<Places>> = OnceLock::new();

/// Who looks at safepoints.
static LOOKING: Mutex<Option<Looking>> = Mutex::new(None);

struct Looking {
    ends: Arc<AtomicBool>,
    thread: Handle,
}

/// What this JVM does not tell of its pauses, in words for people.
pub fn untold() -> Vec<String> {
    let mut notes = Vec::new();
    if perf_memory::has_no_causes() {
        notes.push(
            "causes of collections are not known: this JVM keeps no counters for jstat \
             (-XX:-UsePerfData)"
                .to_owned(),
        );
    }
    if safepoints::is_untold() {
        notes.push(
            "safepoints are not told: libjvm's file has no symbol table, or not the one that is \
             known"
                .to_owned(),
        );
    }
    if PLACES.get().is_some_and(Option::is_none) {
        notes.push("what the heap held before and after collections is not known".to_owned());
    }
    notes
}

/// Declares the kinds in the stream, and lets the events reach it. To be called by the control
/// thread.
pub fn publish(stream: &Arc<Stream>, jvmti: Jvmti) {
    // The ring is empty still, so there is room.
    let kind = stream.declare("gc", &GC);
    debug_assert!(kind.is_some());
    KIND.store(kind.unwrap_or(0), Relaxed);
    for (id, collector) in COLLECTOR_TEXTS.iter().zip(perf_memory::collectors()) {
        send(stream, id, &collector.name);
    }
    NUMBER.store(0, Relaxed);
    REASON_TEXTS.iter().chain(&CAUSE_TEXTS).chain(&OLD_TEXTS).for_each(|id| id.store(0, Relaxed));
    BEGAN.store(0, Relaxed);
    STREAM.store(Arc::as_ptr(stream).cast_mut(), SeqCst);
    look(stream, jvmti);
}

fn send(stream: &Stream, id: &AtomicU32, text: &str) {
    id.store(stream.text(text.to_owned()).unwrap_or(0), Relaxed);
}

/// Finds what takes a while to find, and sends the texts that it needs. Collections that come before
/// are told without it.
fn learn(stream: &Stream, jvmti: Jvmti) -> Option<Looker> {
    if perf_memory::causes().is_some() {
        CAUSE_TEXTS.iter().zip(CAUSES).for_each(|(id, cause)| send(stream, id, cause));
    }
    PLACES.get_or_init(|| Places::find(jvmti).ok());
    let tracing = safepoints::learn(jvmti)?;
    for (id, name) in REASON_TEXTS.iter().zip(&tracing.names) {
        if collects(name) {
            send(stream, id, name);
        }
    }
    OLD_TEXTS.iter().zip(OLD_NAMES).for_each(|(id, name)| send(stream, id, name));
    Some(Looker::new(tracing))
}

/// Nobody finds the stream from now on. Whoever is inside is waited for; one that stays there keeps
/// what it uses for ever.
pub fn withdraw(stream: &Arc<Stream>) {
    STREAM.store(ptr::null_mut(), SeqCst);
    let looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Looking { ends, thread }) = looking {
        ends.store(true, Relaxed);
        thread.join();
    }
    let limit = Instant::now() + PATIENCE;
    while INSIDE.load(SeqCst) != 0 {
        if Instant::now() > limit {
            std::mem::forget(Arc::clone(stream));
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Whether an operation of the JVM, by its name, may be a collection.
fn collects(name: &str) -> bool {
    const OF_COLLECTORS: [&str; 8] =
        ["G1", "Z", "X", "Shenandoah", "Gen", "Serial", "Parallel", "Collect"];
    OF_COLLECTORS.iter().any(|prefix| name.starts_with(prefix))
}

fn runs() -> impl Iterator<Item = (usize, u64)> {
    perf_memory::known_collectors().iter().map(|collector| collector.runs()).enumerate()
}

fn used_now() -> Used {
    PLACES.get().copied().flatten().map_or(Used::UNKNOWN, Places::used)
}

pub fn started() {
    let began = kernel::monotonic();
    if let Some(tracing) = safepoints::tracing() {
        tracing.note();
    }
    for ((_, runs), before) in runs().zip(&RUNS) {
        before.store(runs, Relaxed);
    }
    let Used { heap, old } = used_now();
    HEAP_BEFORE.store(heap, Relaxed);
    OLD_BEFORE.store(old, Relaxed);
    BEGAN.store(began, Relaxed);
}

pub fn finished() {
    let began = BEGAN.swap(0, Relaxed);
    // A collection that was under way when we came has no beginning for us.
    if began == 0 {
        return;
    }
    INSIDE.fetch_add(1, SeqCst);
    // SAFETY: published by the control thread, which keeps it alive while somebody is inside.
    if let Some(stream) = unsafe { STREAM.load(SeqCst).as_ref() } {
        tell(stream, began);
    }
    INSIDE.fetch_sub(1, SeqCst);
}

fn tell(stream: &Stream, began: u64) {
    let text = |id: Option<&AtomicU32>| id.map_or(0, |id| u64::from(id.load(Relaxed)));
    // The last one is the one that collects most.
    let moved = runs().zip(&RUNS).filter(|((_, now), before)| before.load(Relaxed) != *now);
    let (collectors, last) = moved.fold((0, None), |(n, _), ((at, _), _)| (n + 1, Some(at)));
    let current = safepoints::tracing().map(safepoints::Tracing::current);
    let operation = current.map_or(0, |current| {
        let names = safepoints::tracing().map(|tracing| &tracing.names);
        let name = names.and_then(|names| names.get(current.reason));
        match name.is_some_and(|name| name == BOTH_OLD) {
            true => text(OLD_TEXTS.get(usize::from(current.is_cleanup))),
            false => text(REASON_TEXTS.get(current.reason)),
        }
    });
    let after = used_now();
    let values = [
        NUMBER.fetch_add(1, Relaxed) + 1,
        text(last.and_then(|at| COLLECTOR_TEXTS.get(at))),
        collectors,
        operation,
        text(cause(collectors > 0).and_then(|at| CAUSE_TEXTS.get(at))),
        HEAP_BEFORE.load(Relaxed),
        after.heap,
        OLD_BEFORE.load(Relaxed),
        after.old,
        current.map_or(UNKNOWN, |current| current.reach),
    ];
    let record = threads::table().and_then(|table| table.find(kernel::gettid()));
    let head = EventHead {
        kind: KIND.load(Relaxed),
        thread: record.map_or(0, |record| record.number.load(Relaxed)),
        time: began,
        duration: kernel::monotonic().saturating_sub(began),
        ..EventHead::default()
    };
    stream.ring.append_event(&head, &values);
}

/// The number of the cause of the collection that ends. The JVM may have put it away already, to
/// where the last one is; a pause in which no collector has run has none of its own there.
fn cause(has_run: bool) -> Option<usize> {
    let texts = perf_memory::known_causes()?;
    let mut room = [0; 64];
    causes::number_of(texts.now.read(&mut room))
        .or_else(|| has_run.then(|| causes::number_of(texts.last.read(&mut room))).flatten())
}

/// Starts the thread that looks at what nobody tells.
fn look(stream: &Arc<Stream>, jvmti: Jvmti) {
    let (stream, ends) = (Arc::clone(stream), Arc::new(AtomicBool::new(false)));
    let theirs = Arc::clone(&ends);
    let body = move || {
        let _ours = Ours::note();
        let kind = stream.declare("safepoint", &SAFEPOINT);
        let mut looker = kind.zip(learn(&stream, jvmti));
        let mut compilers = Compilers::begin(&stream, jvmti);
        let mut number = 0;
        let mut over = looker.is_none() && compilers.is_none();
        while !over {
            over = theirs.load(Relaxed);
            if !over {
                std::thread::sleep(LOOK);
            }
            if let Some((kind, looker)) = &mut looker {
                looker.look(|one| {
                    number += 1;
                    tell_safepoint(&stream, *kind, number, one);
                });
            }
            if let Some(compilers) = &mut compilers {
                compilers.look(&stream, over);
            }
        }
    };
    let thread = with_signals_blocked(|| thread::spawn("tare-pauses", 128 << 10, body));
    if let Ok(thread) = thread {
        let looking = Looking { ends, thread };
        *LOOKING.lock().unwrap_or_else(PoisonError::into_inner) = Some(looking);
    }
}

fn tell_safepoint(stream: &Stream, kind: u32, number: u64, one: Safepoint) {
    let reason = REASON_TEXTS.get(one.reason).map_or(0, |id| {
        let name = safepoints::tracing().and_then(|tracing| tracing.names.get(one.reason));
        if id.load(Relaxed) == 0
            && let Some(name) = name
        {
            id.store(stream.text(name.clone()).unwrap_or(0), Relaxed);
        }
        u64::from(id.load(Relaxed))
    });
    let head = EventHead { kind, time: one.begin, duration: one.total, ..EventHead::default() };
    stream.ring.append_event(&head, &[number, reason, one.count, one.reach, one.running]);
}
