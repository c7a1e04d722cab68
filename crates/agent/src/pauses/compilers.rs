//! What the JVM's compilers did, second by second: how many methods, for how long, and how often
//! code was thrown away or left again, and why. Counts and times are HotSpot's own: those of
//! compilations from its counters for `jstat`, uncommon traps from its statistics of them (`traps`).

use super::traps::{self, Traps};
use crate::jvm::Jvmti;
use crate::kernel;
use crate::perf_memory::{self, Counter};
use crate::stream::Ring;
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

const OF_REASONS: [(&str, FieldKind); 2] =
    [("reason", FieldKind::Text), ("count", FieldKind::Integer)];

pub struct Compilers {
    kind: u32,
    /// Compilations, their two times, bailouts, invalidated ones.
    counters: [Counter; 5],
    traps: Option<&'static Traps>,
    since: u64,
    before: [u64; 5],
    reasons: Option<Reasons>,
}

/// Uncommon traps by reason.
struct Reasons {
    kind: u32,
    traps: &'static Traps,
    before: Vec<u32>,
    /// The texts of their names, zero for those that were not sent.
    texts: Vec<u32>,
}

impl Compilers {
    /// From now on; `None` if this JVM keeps no counters.
    pub fn begin(ring: &Ring, jvmti: Jvmti) -> Option<Self> {
        let counters = perf_memory::counters([
            c"sun.ci.totalCompiles",
            c"sun.ci.standardTime",
            c"sun.ci.osrTime",
            c"sun.ci.totalBailouts",
            c"sun.ci.totalInvalidates",
        ])?;
        let kind = ring.declare("compilers", &FIELDS)?;
        let traps = traps::find(jvmti);
        let reasons = traps.filter(|traps| !traps.names.is_empty()).and_then(|traps| {
            let kind = ring.declare("uncommon-traps", &OF_REASONS)?;
            let texts = vec![0; traps.names.len()];
            Some(Reasons { kind, traps, before: traps.by_reason().collect(), texts })
        });
        let mut compilers = Compilers { kind, counters, traps, since: 0, before: [0; 5], reasons };
        (compilers.since, compilers.before) = (kernel::monotonic(), compilers.now());
        Some(compilers)
    }

    fn now(&self) -> [u64; 5] {
        let [compiles, standard, osr, bailouts, invalidated] = self.counters.map(Counter::get);
        let traps = self.traps.map_or(0, |traps| u64::from(traps.all()));
        [compiles, standard.wrapping_add(osr), bailouts, invalidated, traps]
    }

    /// Tells what was done in the last second, if anything was and it is over; with `last`, in what
    /// there was of it.
    pub fn look(&mut self, ring: &Ring, last: bool) {
        let time = kernel::monotonic();
        if time.saturating_sub(self.since) < EVERY && !last {
            return;
        }
        let now = self.now();
        let mut done = [0; 5];
        for ((done, now), before) in done.iter_mut().zip(now).zip(self.before) {
            *done = now.saturating_sub(before);
        }
        let head = EventHead {
            kind: self.kind,
            time: self.since,
            duration: time - self.since,
            ..EventHead::default()
        };
        if done.iter().any(|done| *done > 0) {
            if self.traps.is_none() {
                done[4] = u64::MAX;
            }
            ring.append_event(&head, &done);
        }
        if let Some(reasons) = &mut self.reasons {
            reasons.tell(ring, &head);
        }
        (self.since, self.before) = (time, now);
    }
}

impl Reasons {
    /// Tells of each reason that was one since the last time.
    fn tell(&mut self, ring: &Ring, head: &EventHead) {
        let known = self.before.iter_mut().zip(&mut self.texts);
        for ((before, text), (now, name)) in
            known.zip(self.traps.by_reason().zip(&self.traps.names))
        {
            // HotSpot counts without a lock, and its numbers are short.
            let count = now.wrapping_sub(*before);
            if count == 0 {
                continue;
            }
            if *text == 0 {
                *text = ring.text(name.clone()).unwrap_or(0);
            }
            let head = EventHead { kind: self.kind, ..*head };
            ring.append_event(&head, &[(*text).into(), count.into()]);
            *before = now;
        }
    }
}
