//! Garbage collections as events of the stream.
//!
//! The JVM tells of them while the world stands still: there is no call into the JVM here, no lock,
//! no allocation. The stream is found through one pointer; `INSIDE` counts who may hold it, and it
//! is given up only when nobody does.
//!
//! Which collector it was tell HotSpot's own counters (`perf_memory`), of which one has moved
//! meanwhile; without them it stays open.

use super::Stream;
use super::threads;
use crate::kernel;
use crate::perf_memory::{self, COLLECTORS_MOST};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};
use tare_arena::samples::{EventHead, FieldKind};

/// How long the end of a stream waits for a callback that is still inside.
const PATIENCE: Duration = Duration::from_secs(5);

static STREAM: AtomicPtr<Stream> = AtomicPtr::new(ptr::null_mut());
/// The number of the kind in the stream, and of each collector's name.
static KIND: AtomicU32 = AtomicU32::new(0);
static NAMES: [AtomicU32; COLLECTORS_MOST] = [const { AtomicU32::new(0) }; COLLECTORS_MOST];
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// When the collection under way began; zero while there is none. One at a time: the world stands
/// still.
static BEGAN: AtomicU64 = AtomicU64::new(0);
/// How often each collector had run then.
static RUNS: [AtomicU64; COLLECTORS_MOST] = [const { AtomicU64::new(0) }; COLLECTORS_MOST];

/// Declares the kind in the stream, and lets the events reach it. To be called by the control
/// thread.
pub fn publish(stream: &Arc<Stream>) {
    // The ring is empty still, so there is room.
    let kind = stream.declare("gc", &[("collector", FieldKind::Text)]);
    debug_assert!(kind.is_some());
    KIND.store(kind.unwrap_or(0), Relaxed);
    for (id, collector) in NAMES.iter().zip(perf_memory::collectors()) {
        id.store(stream.text(collector.name.clone()).unwrap_or(0), Relaxed);
    }
    BEGAN.store(0, Relaxed);
    STREAM.store(Arc::as_ptr(stream).cast_mut(), SeqCst);
}

/// Nobody finds the stream from now on. Whoever is inside is waited for; one that stays there keeps
/// what it uses for ever.
pub fn withdraw(stream: &Arc<Stream>) {
    STREAM.store(ptr::null_mut(), SeqCst);
    let limit = Instant::now() + PATIENCE;
    while INSIDE.load(SeqCst) != 0 {
        if Instant::now() > limit {
            std::mem::forget(Arc::clone(stream));
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

pub fn started() {
    for (before, collector) in RUNS.iter().zip(perf_memory::known_collectors()) {
        before.store(collector.runs(), Relaxed);
    }
    BEGAN.store(kernel::monotonic(), Relaxed);
}

pub fn finished() {
    let now = kernel::monotonic();
    let began = BEGAN.swap(0, Relaxed);
    // A collection that was under way when we came has no beginning for us.
    if began == 0 {
        return;
    }
    INSIDE.fetch_add(1, SeqCst);
    // SAFETY: published by the control thread, which keeps it alive while somebody is inside.
    if let Some(stream) = unsafe { STREAM.load(SeqCst).as_ref() } {
        let mut runs = RUNS.iter().zip(perf_memory::known_collectors());
        let moved = runs.position(|(before, now)| before.load(Relaxed) != now.runs());
        let name = moved.and_then(|at| NAMES.get(at));
        let collector = name.map_or(0, |id| u64::from(id.load(Relaxed)));
        let record = threads::table().and_then(|table| table.find(kernel::gettid()));
        let head = EventHead {
            kind: KIND.load(Relaxed),
            thread: record.map_or(0, |record| record.number.load(Relaxed)),
            time: began,
            duration: now.saturating_sub(began),
            ..EventHead::default()
        };
        stream.ring.append_event(&head, &[collector]);
    }
    INSIDE.fetch_sub(1, SeqCst);
}
