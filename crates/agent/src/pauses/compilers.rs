//! What the JVM's compilers did, second by second: how many methods, for how long, and how often
//! code was thrown away or left again. Counts and times are HotSpot's own: those of compilations
//! from its counters for `jstat`, uncommon traps from its statistics of them, which libjvm's file
//! names unless it was stripped.

use crate::jvm::Jvmti;
use crate::kernel;
use crate::libjvm::Module;
use crate::perf_memory::{self, Counter};
use crate::stream::Stream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tare_arena::samples::{EventHead, FieldKind};

/// Nanoseconds from one event to the next.
const EVERY: u64 = 1_000_000_000;

const FIELDS: [(&str, FieldKind); 5] = [
    ("compilations", FieldKind::Integer),
    ("compile-time", FieldKind::Duration),
    ("bailouts", FieldKind::Integer),
    ("invalidated", FieldKind::Integer),
    ("uncommon-traps", FieldKind::Integer),
];

/// Traps by reason and action; the first number is that of all of them.
const TRAPS: &str = "_ZN14Deoptimization20_deoptimization_histE";

pub struct Compilers {
    kind: u32,
    /// Compilations, their two times, bailouts, invalidated ones.
    counters: [Counter; 5],
    traps: Option<&'static AtomicU32>,
    since: u64,
    before: [u64; 5],
}

impl Compilers {
    /// From now on; `None` if this JVM keeps no counters.
    pub fn begin(stream: &Stream, jvmti: Jvmti) -> Option<Self> {
        let counters = perf_memory::counters([
            c"sun.ci.totalCompiles",
            c"sun.ci.standardTime",
            c"sun.ci.osrTime",
            c"sun.ci.totalBailouts",
            c"sun.ci.totalInvalidates",
        ])?;
        let kind = stream.declare("compilers", &FIELDS)?;
        let mut compilers =
            Compilers { kind, counters, traps: traps(jvmti), since: 0, before: [0; 5] };
        (compilers.since, compilers.before) = (kernel::monotonic(), compilers.now());
        Some(compilers)
    }

    fn now(&self) -> [u64; 5] {
        let [compiles, standard, osr, bailouts, invalidated] = self.counters.map(Counter::get);
        let traps = self.traps.map_or(0, |traps| u64::from(traps.load(Relaxed)));
        [compiles, standard.wrapping_add(osr), bailouts, invalidated, traps]
    }

    /// Tells what was done in the last second, if anything was and it is over; with `last`, in what
    /// there was of it.
    pub fn look(&mut self, stream: &Stream, last: bool) {
        let time = kernel::monotonic();
        if time.saturating_sub(self.since) < EVERY && !last {
            return;
        }
        let now = self.now();
        let mut done = [0; 5];
        for ((done, now), before) in done.iter_mut().zip(now).zip(self.before) {
            *done = now.saturating_sub(before);
        }
        if done.iter().any(|done| *done > 0) {
            if self.traps.is_none() {
                done[4] = u64::MAX;
            }
            let head = EventHead {
                kind: self.kind,
                time: self.since,
                duration: time - self.since,
                ..EventHead::default()
            };
            stream.ring.append_event(&head, &done);
        }
        (self.since, self.before) = (time, now);
    }
}

fn traps(jvmti: Jvmti) -> Option<&'static AtomicU32> {
    static FOUND: OnceLock<Option<&AtomicU32>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = Module::containing(jvmti.inside_libjvm())?.variables(&[TRAPS])?;
        let at = (*found.first()?)?.at as *const AtomicU32;
        // SAFETY: a variable of libjvm, which is never unloaded; its first part is such a number.
        at.is_aligned().then(|| unsafe { &*at })
    })
}
