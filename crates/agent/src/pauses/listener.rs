//! One ring that pauses are told to: the numbers of kinds and texts in it, and how an event becomes
//! values.
//!
//! [`Listener::collection`] runs while the world stands still, so all texts that it may need were
//! sent before. What nobody could send has the number zero, and is not known to who reads it.

use super::causes::CAUSES;
use super::safepoints::{self, Current, REASONS_MOST, Safepoint, Tracing};
use super::used::UNKNOWN;
use crate::kernel;
use crate::perf_memory::{self, COLLECTORS_MOST};
use crate::stream::{Ring, threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use tare_arena::samples::{EventHead, FieldKind};

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

/// What G1 before JDK 20 calls by one name.
const OLD_NAMES: [&str; 2] = ["G1PauseRemark", "G1PauseCleanup"];
const BOTH_OLD: &str = "G1Concurrent";

/// A collection that has just ended.
pub struct Ended {
    /// By the monotonic clock.
    pub began: u64,
    pub duration: u64,
    /// How many collectors ran in it, and the number of the last.
    pub collectors: u64,
    pub collector: Option<usize>,
    pub operation: Option<Current>,
    /// Its number in [`CAUSES`].
    pub cause: Option<usize>,
    /// Bytes in use before and after.
    pub heap: [u64; 2],
    pub old: [u64; 2],
}

/// Who is told.
pub struct Listener {
    pub ring: Arc<Ring>,
    /// Whether threads have numbers there.
    has_threads: bool,
    /// Numbers of kinds and texts in the ring.
    gc: u32,
    collectors: [AtomicU32; COLLECTORS_MOST],
    causes: [AtomicU32; CAUSES.len()],
    reasons: [AtomicU32; REASONS_MOST],
    old: [AtomicU32; 2],
    /// Collections told so far.
    number: AtomicU64,
}

impl Listener {
    /// To a ring that is empty still, so there is room for the first kind.
    pub fn new(ring: Arc<Ring>, has_threads: bool) -> Self {
        let gc = ring.declare("gc", &GC).unwrap_or(0);
        debug_assert!(gc != 0);
        let listener = Listener {
            ring,
            has_threads,
            gc,
            collectors: [const { AtomicU32::new(0) }; COLLECTORS_MOST],
            causes: [const { AtomicU32::new(0) }; CAUSES.len()],
            reasons: [const { AtomicU32::new(0) }; REASONS_MOST],
            old: [const { AtomicU32::new(0) }; 2],
            number: AtomicU64::new(0),
        };
        for (id, collector) in listener.collectors.iter().zip(perf_memory::collectors()) {
            listener.send(id, &collector.name);
        }
        if perf_memory::causes().is_some() {
            let causes = listener.causes.iter().zip(CAUSES);
            causes.for_each(|(id, cause)| listener.send(id, cause));
        }
        listener
    }

    fn send(&self, id: &AtomicU32, text: &str) {
        id.store(self.ring.text(text.to_owned()).unwrap_or(0), Relaxed);
    }

    /// Sends the texts of operations that may be collections.
    pub fn learn(&self, tracing: &Tracing) {
        for (id, name) in self.reasons.iter().zip(&tracing.names) {
            if collects(name) {
                self.send(id, name);
            }
        }
        self.old.iter().zip(OLD_NAMES).for_each(|(id, name)| self.send(id, name));
    }

    /// The number of the kind of safepoints.
    pub fn declare_safepoints(&self) -> Option<u32> {
        self.ring.declare("safepoint", &SAFEPOINT)
    }

    /// Tells of a collection. The world stands still.
    pub fn collection(&self, ended: &Ended) {
        let text = |id: Option<&AtomicU32>| id.map_or(0, |id| u64::from(id.load(Relaxed)));
        let operation = ended.operation.map_or(0, |current| {
            let names = safepoints::tracing().map(|tracing| &tracing.names);
            let name = names.and_then(|names| names.get(current.reason));
            match name.is_some_and(|name| name == BOTH_OLD) {
                true => text(self.old.get(usize::from(current.is_cleanup))),
                false => text(self.reasons.get(current.reason)),
            }
        });
        let values = [
            self.number.fetch_add(1, Relaxed) + 1,
            text(ended.collector.and_then(|at| self.collectors.get(at))),
            ended.collectors,
            operation,
            text(ended.cause.and_then(|at| self.causes.get(at))),
            ended.heap[0],
            ended.heap[1],
            ended.old[0],
            ended.old[1],
            ended.operation.map_or(UNKNOWN, |current| current.reach),
        ];
        let record = threads::table().and_then(|table| table.find(kernel::gettid()));
        let record = record.filter(|_| self.has_threads);
        let head = EventHead {
            kind: self.gc,
            thread: record.map_or(0, |record| record.number.load(Relaxed)),
            time: ended.began,
            duration: ended.duration,
            ..EventHead::default()
        };
        self.ring.append_event(&head, &values);
    }

    /// Tells of a safepoint, the `number`th.
    pub fn safepoint(&self, kind: u32, number: u64, one: Safepoint) {
        let reason = self.reasons.get(one.reason).map_or(0, |id| {
            let name = safepoints::tracing().and_then(|tracing| tracing.names.get(one.reason));
            if id.load(Relaxed) == 0
                && let Some(name) = name
            {
                self.send(id, name);
            }
            u64::from(id.load(Relaxed))
        });
        let head = EventHead { kind, time: one.begin, duration: one.total, ..EventHead::default() };
        self.ring.append_event(&head, &[number, reason, one.count, one.reach, one.running]);
    }
}

/// Whether an operation of the JVM, by its name, may be a collection.
fn collects(name: &str) -> bool {
    const OF_COLLECTORS: [&str; 8] =
        ["G1", "Z", "X", "Shenandoah", "Gen", "Serial", "Parallel", "Collect"];
    OF_COLLECTORS.iter().any(|prefix| name.starts_with(prefix))
}
