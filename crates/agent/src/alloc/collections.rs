//! Collections, counted, and which of them prove that an object lives.
//!
//! HotSpot counts the collections that it has begun, beside its heap. That number leaves out pauses
//! that are no collection of their own, and counts a collection of several pauses once. G1 has it
//! move in the pause that cleans up after a marking, too, which decides about no young object: there
//! the counters of its two kinds of collections are taken, if the JVM keeps them.
//!
//! Where a collection is one pause, it has decided about every object when the pause is over.
//! Collectors that work beside the program (ZGC, Shenandoah) decide at some moment in between, and
//! generational ZGC clears weak references in major collections only. There a *sentinel* tells: an
//! object of ours that nobody refers to. When its weak reference is cleared, a collection that
//! began after it was made has decided, and so it has about all objects that are older. That needs
//! no knowledge of the collector. Shenandoah does not count what it begins: there every sentinel
//! that is cleared is one collection, and collections within a tick of each other are one.

use super::born_old;
use crate::jvm::Jni;
use crate::jvm::references::Weak;
use crate::perf_memory::{self, Collector};
use crate::vm_tables::Tables;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

/// Collectors that decide in pauses.
const IN_PAUSES: [&str; 4] = ["UseSerialGC", "UseParallelGC", "UseG1GC", "UseEpsilonGC"];

/// The first of G1's collectors by their counters: its collections of young objects and of the whole
/// heap. The next are the pauses of its marking.
const G1_COLLECTIONS: usize = 2;

/// A sentinel is made anew at most so often.
const RENEWED: Duration = Duration::from_millis(100);

/// So long nothing is allocated for a sentinel after the JVM had no memory for one.
const REFUSED: Duration = Duration::from_secs(5);

/// Pauses of the JVM's collectors, of any kind.
static PAUSES: AtomicU64 = AtomicU64::new(0);

/// Where the number of collections is.
enum Count {
    Heap(&'static AtomicU32),
    /// Beside the heap there are others than collections; these have nothing else.
    Collectors(&'static [Collector]),
    /// The collector keeps no count of collections (Shenandoah; G1 if the JVM has no counters);
    /// then it is that of sentinels that were cleared.
    Sentinels,
    /// It is not known; then every pause counts as one.
    Pauses,
}

/// Where sentinels count: collections that have decided, in this JVM's life.
static DECIDED: AtomicU32 = AtomicU32::new(0);

/// How many collections the JVM has begun. For callbacks, too.
pub struct Begun(Count);

/// Collections begun by the end of the last pause; where one is a pause, those that are over.
static FINISHED: AtomicU32 = AtomicU32::new(0);

impl Begun {
    /// With generational ZGC those of the whole heap.
    fn new(tables: &Tables, majors: bool) -> Self {
        if tables.flag("UseShenandoahGC") == Some(true) {
            return Begun(Count::Sentinels);
        }
        if tables.flag("UseG1GC") == Some(true) {
            let collectors = perf_memory::collectors().get(..G1_COLLECTIONS);
            return Begun(collectors.map_or(Count::Sentinels, Count::Collectors));
        }
        let heap = tables.static_value("Universe", "_collectedHeap").ok().filter(|at| *at != 0);
        let field = tables.field("CollectedHeap", "_total_collections");
        let count = heap.zip(field).map(|(heap, field)| {
            // SAFETY: two numbers of four bytes in the JVM's heap, which it made at its start and
            // never moves: collections and, behind it, collections of the whole heap.
            unsafe {
                let all = (heap + field.offset) as *const AtomicU32;
                (&*all, &*all.add(1))
            }
        });
        Begun(match count {
            // A whole one is one of all: where that is not so, the second is something else.
            Some((all, whole)) if majors && whole.load(Relaxed) <= all.load(Relaxed) => {
                Count::Heap(whole)
            }
            Some((all, _)) if !majors => Count::Heap(all),
            _ => Count::Pauses,
        })
    }

    pub fn now(&self) -> u32 {
        match self.0 {
            Count::Heap(count) => count.load(Acquire),
            Count::Collectors(all) => all.iter().map(Collector::runs).sum::<u64>() as u32,
            Count::Sentinels => DECIDED.load(Acquire),
            Count::Pauses => PAUSES.load(Acquire) as u32,
        }
    }

    /// A pause of a collector ends. The world stands still: no call into the JVM.
    pub fn pause_ends(&self) {
        // Nobody else writes them, and who sees the pause sees what it has finished.
        let pauses = PAUSES.load(Relaxed) + 1;
        let finished = match self.0 {
            Count::Pauses => pauses as u32,
            Count::Heap(_) | Count::Collectors(_) | Count::Sentinels => self.now(),
        };
        FINISHED.store(finished, Release);
        born_old::pause_ends();
        PAUSES.store(pauses, Release);
    }
}

/// What proves that objects live.
enum Proof {
    /// The end of a pause; how many there were when it was looked at last.
    Pause(u64),
    Sentinel(Option<Sentinel>),
}

struct Sentinel {
    weak: Weak,
    /// Objects with lower numbers are older.
    below: u64,
    /// Collections begun when it was made.
    begun: u32,
}

/// What a look has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proven {
    /// Objects with lower numbers.
    Below(u64),
    /// Objects that were born before this many collections had begun.
    BornBefore(u32),
}

/// Followed by the control thread.
pub struct Collections {
    proof: Proof,
    /// Collections that have decided, in this JVM's life.
    epoch: u32,
    base: u32,
    /// A sentinel is not made before.
    next_try: Instant,
    /// Weak references to young objects are cleared only by collections of the whole heap.
    pub rare: bool,
    pub notes: Vec<String>,
}

/// Whether ZGC has generations here. The flag that said so came with JDK 21 and went with 24.
fn is_generational_zgc(tables: &Tables, java: u32) -> bool {
    tables.flag("UseZGC") == Some(true) && tables.flag("ZGenerational").unwrap_or(java >= 23)
}

/// Begins to count.
pub fn follow(tables: &Tables, java: u32) -> (Begun, Collections) {
    let rare = is_generational_zgc(tables, java);
    let begun = Begun::new(tables, rare);
    let in_pauses = IN_PAUSES.iter().any(|flag| tables.flag(flag) == Some(true))
        && !matches!(begun.0, Count::Sentinels);
    let mut notes = Vec::new();
    if let Count::Pauses = begun.0 {
        notes.push(
            "This JVM does not tell how many collections there were: ages are counted in pauses \
             of the collector, of which one collection may have several."
                .to_owned(),
        );
    }
    if tables.flag("CheckJNICalls") == Some(true) {
        notes.push(
            "The JVM runs with -Xcheck:jni, with which looking at an object keeps it alive \
             (JDK-8323421): some objects may seem to live that would be gone without it."
                .to_owned(),
        );
    }
    let now = begun.now();
    FINISHED.store(now, Release);
    let proof = match in_pauses {
        true => Proof::Pause(PAUSES.load(Acquire)),
        false => Proof::Sentinel(None),
    };
    let next_try = Instant::now();
    (begun, Collections { proof, epoch: now, base: now, next_try, rare, notes })
}

impl Collections {
    /// Collections that were over by the last look, since the engine began.
    pub fn epoch(&self) -> u64 {
        u64::from(self.epoch.wrapping_sub(self.base))
    }

    /// Whether something is proven since the last look. `next` tells the number that the next
    /// object gets.
    pub fn look(&mut self, jni: Jni, begun: &Begun, next: impl Fn() -> u64) -> Option<Proven> {
        match &mut self.proof {
            Proof::Pause(seen) => {
                let pauses = PAUSES.load(Acquire);
                if std::mem::replace(seen, pauses) == pauses {
                    return None;
                }
                self.epoch = FINISHED.load(Acquire);
                Some(Proven::BornBefore(self.epoch))
            }
            Proof::Sentinel(sentinel) => {
                let cleared = sentinel.take_if(|sentinel| jni.is_collected(sentinel.weak));
                if let Some(old) = &cleared {
                    jni.delete_weak(old.weak);
                    self.epoch = decided(self.epoch, old.begun, begun.now());
                    DECIDED.store(self.epoch, Release);
                    self.next_try = Instant::now();
                }
                self.renew(jni, begun, next);
                cleared.map(|old| Proven::Below(old.below))
            }
        }
    }

    /// A sentinel as young as can be, as long as no collection has begun that could clear it.
    fn renew(&mut self, jni: Jni, begun: &Begun, next: impl Fn() -> u64) {
        let Proof::Sentinel(sentinel) = &mut self.proof else { return };
        let now = Instant::now();
        let is_old = |old: &Sentinel| old.begun == begun.now() && old.below != next();
        if now < self.next_try || !sentinel.as_ref().is_none_or(is_old) {
            return;
        }
        // In this order: all objects with lower numbers are older than it, and a collection that
        // begins from here on is not counted in `begun`.
        let (below, at) = (next(), begun.now());
        let Some(weak) = jni.weak_to_garbage() else {
            self.next_try = now + REFUSED;
            return;
        };
        self.next_try = now + RENEWED;
        if let Some(old) = sentinel.replace(Sentinel { weak, below, begun: at }) {
            jni.delete_weak(old.weak);
        }
    }

    /// Deletes what it holds.
    pub fn clear(&mut self, jni: Jni) {
        if let Proof::Sentinel(sentinel) = &mut self.proof
            && let Some(old) = sentinel.take()
        {
            jni.delete_weak(old.weak);
        }
    }
}

/// How many collections have decided, when a sentinel is cleared: the first that began after it was
/// made has, and if others have begun since, all but the last of them.
fn decided(epoch: u32, made_at: u32, begun: u32) -> u32 {
    let since = begun.wrapping_sub(made_at);
    let decided = made_at.wrapping_add(since.saturating_sub(1).max(1));
    // A JVM that does not count has had one all the same.
    if decided.wrapping_sub(epoch).cast_signed() > 0 { decided } else { epoch.wrapping_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_sentinel_tells_how_many_collections_have_decided() {
        assert_eq!(decided(3, 3, 4), 4, "the one after it");
        assert_eq!(decided(3, 3, 6), 5, "the last may be under way");
        assert_eq!(decided(3, 4, 5), 5, "made while one was under way");
        assert_eq!(decided(3, 3, 3), 4, "a JVM that does not count");
        assert_eq!(decided(9, 3, 3), 10);
        assert_eq!(decided(u32::MAX, u32::MAX, 1), 0, "the number came round");
    }

    #[test]
    fn pauses_that_begin_no_collection_do_not_count() {
        let count: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(7)));
        let begun = Begun(Count::Heap(count));
        let before = PAUSES.load(Relaxed);
        begun.pause_ends();
        assert_eq!((begun.now(), FINISHED.load(Relaxed)), (7, 7));
        count.store(8, Relaxed);
        begun.pause_ends();
        assert_eq!((begun.now(), FINISHED.load(Relaxed)), (8, 8));
        assert_eq!(PAUSES.load(Relaxed), before + 2);
    }
}
