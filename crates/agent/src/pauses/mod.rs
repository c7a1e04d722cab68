//! Pauses as events: garbage collections (`gc`) and safepoints (`safepoint`); and, once a second,
//! what the compilers did (`compilers`, `uncommon-traps`). Every stream has them, and recordings without one have a
//! ring of their own for them (`engine`): it costs next to nothing.
//!
//! The JVM tells of collections while the world stands still: there is no call into the JVM here,
//! no lock, no allocation, and all texts were sent before. Listeners are found through one pointer
//! each; `INSIDE` counts who may hold one, and it is given up only when nobody does.
//!
//! What a collection was: which collectors ran tell HotSpot's own counters (`perf_memory`), of which
//! some have moved meanwhile; what the pause was for and how long it took to reach it, HotSpot's
//! notes for its log (`safepoints`); what the heap held, its structures (`used`). What this JVM does
//! not tell stays open. Kinds of pauses are named by the front end.
//!
//! Safepoints of every reason and the compilers' counters are looked at by a thread of ours, which
//! never enters the JVM (`looking`).

mod causes;
mod compilers;
mod engine;
mod listener;
mod looking;
mod safepoints;
mod traps;
mod used;

pub use engine::Pauses;
pub use looking::last;

use crate::events::{self, Enabled, Subscriber};
use crate::jvm::{Failure, Jvmti};
use crate::kernel;
use crate::perf_memory::{self, COLLECTORS_MOST};
use crate::stream::Ring;
use jvmti_bindings::sys::jvmti::{self, jvmtiEvent};
use listener::{Ended, Listener};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use used::{Places, UNKNOWN, Used};

/// How long the end of a listener waits for a callback that is still inside.
const PATIENCE: Duration = Duration::from_secs(5);

/// The stream, and the ring of the engine.
const LISTENERS_MOST: usize = 2;

static LISTENERS: [AtomicPtr<Listener>; LISTENERS_MOST] =
    [const { AtomicPtr::new(ptr::null_mut()) }; LISTENERS_MOST];
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// The collection under way; one at a time, since the world stands still. When it began (zero: there
/// is none), how often each collector had run then, and what was in use.
static BEGAN: AtomicU64 = AtomicU64::new(0);
static RUNS: [AtomicU64; COLLECTORS_MOST] = [const { AtomicU64::new(0) }; COLLECTORS_MOST];
static HEAP_BEFORE: AtomicU64 = AtomicU64::new(UNKNOWN);
static OLD_BEFORE: AtomicU64 = AtomicU64::new(UNKNOWN);

static PLACES: OnceLock<Option<Places>> = OnceLock::new();

const EVENTS: [jvmtiEvent; 2] =
    [jvmti::JVMTI_EVENT_GARBAGE_COLLECTION_START, jvmti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH];

static SUBSCRIBER: Subscriber =
    Subscriber { collection_start: started, collection_finish: finished, ..Subscriber::NONE };

/// On while somebody listens. Held by the control thread while that changes.
static ENABLED: Mutex<Option<Enabled>> = Mutex::new(None);

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

/// Who is told of pauses, until [`Listening::end`].
#[must_use]
pub struct Listening {
    listener: Arc<Listener>,
    place: usize,
}

/// Has pauses told to a ring that is empty still; `has_threads` if threads have numbers there. To be
/// called by the control thread.
pub fn listen(ring: &Arc<Ring>, has_threads: bool, jvmti: Jvmti) -> Result<Listening, Failure> {
    let mut enabled = ENABLED.lock().unwrap_or_else(PoisonError::into_inner);
    let free = LISTENERS.iter().position(|listener| listener.load(SeqCst).is_null());
    let place = free.ok_or(Failure::not_available("one more listener to pauses"))?;
    let listener = Arc::new(Listener::new(Arc::clone(ring), has_threads));
    if enabled.is_none() {
        BEGAN.store(0, Relaxed);
        *enabled = Some(events::enable(jvmti, &SUBSCRIBER, EVENTS)?);
    }
    LISTENERS[place].store(Arc::as_ptr(&listener).cast_mut(), SeqCst);
    looking::attend(&listener, jvmti);
    Ok(Listening { listener, place })
}

impl Listening {
    /// Nobody finds the listener from now on. Whoever is inside is waited for; one that stays there
    /// keeps what it uses for ever.
    pub fn end(self, jvmti: Jvmti) {
        let mut enabled = ENABLED.lock().unwrap_or_else(PoisonError::into_inner);
        LISTENERS[self.place].store(ptr::null_mut(), SeqCst);
        if LISTENERS.iter().all(|listener| listener.load(SeqCst).is_null())
            && let Some(events) = enabled.take()
        {
            events.off(jvmti);
        }
        looking::leave(&self.listener, jvmti);
        let limit = Instant::now() + PATIENCE;
        while INSIDE.load(SeqCst) != 0 {
            if Instant::now() > limit {
                std::mem::forget(self.listener);
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

fn runs() -> impl Iterator<Item = (usize, u64)> {
    perf_memory::known_collectors().iter().map(|collector| collector.runs()).enumerate()
}

fn used_now() -> Used {
    PLACES.get().copied().flatten().map_or(Used::UNKNOWN, Places::used)
}

fn started() {
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

fn finished() {
    let began = BEGAN.swap(0, Relaxed);
    // A collection that was under way when we came has no beginning for us.
    if began == 0 {
        return;
    }
    let ended = ended(began);
    INSIDE.fetch_add(1, SeqCst);
    for listener in &LISTENERS {
        // SAFETY: published by the control thread, which keeps it alive while somebody is inside.
        if let Some(listener) = unsafe { listener.load(SeqCst).as_ref() } {
            listener.collection(&ended);
        }
    }
    INSIDE.fetch_sub(1, SeqCst);
}

/// What is known of the collection that ends now.
fn ended(began: u64) -> Ended {
    // The last one is the one that collects most.
    let moved = runs().zip(&RUNS).filter(|((_, now), before)| before.load(Relaxed) != *now);
    let (collectors, last) = moved.fold((0, None), |(n, _), ((at, _), _)| (n + 1, Some(at)));
    let Used { heap, old } = used_now();
    Ended {
        began,
        duration: kernel::monotonic().saturating_sub(began),
        collectors,
        collector: last,
        operation: safepoints::tracing().map(safepoints::Tracing::current),
        cause: cause(collectors > 0),
        heap: [HEAP_BEFORE.load(Relaxed), heap],
        old: [OLD_BEFORE.load(Relaxed), old],
    }
}

/// The number of the cause of the collection that ends. The JVM may have put it away already, to
/// where the last one is; a pause in which no collector has run has none of its own there.
fn cause(has_run: bool) -> Option<usize> {
    let texts = perf_memory::known_causes()?;
    let mut room = [0; 64];
    causes::number_of(texts.now.read(&mut room))
        .or_else(|| has_run.then(|| causes::number_of(texts.last.read(&mut room))).flatten())
}
