//! Safepoints: when each was asked for, reached and left, and what for.
//!
//! HotSpot notes it for its own log in a few variables (`SafepointTracing`), whether that log is on
//! or not. They are not exported, but libjvm's file names them unless it was stripped. The JVM's
//! thread writes them without a lock; a thread of ours looks at them now and then, and takes what it
//! has read only if nothing moved meanwhile. HotSpot counts safepoints by reason, too, so what came
//! and went between two looks is known by its number, and by its time from the counters for `jstat`.
//!
//! During a pause the JVM's own thread may ask what the pause is for ([`current`]).

use super::used::UNKNOWN;
use crate::jvm::Jvmti;
use crate::kernel;
use crate::libjvm::{Module, Variable};
use crate::perf_memory;
use crate::vm_tables::word;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*, fence};

const BEGIN: &str = "_ZN16SafepointTracing29_last_safepoint_begin_time_nsE";
const SYNC: &str = "_ZN16SafepointTracing28_last_safepoint_sync_time_nsE";
const END: &str = "_ZN16SafepointTracing27_last_safepoint_end_time_nsE";
const APP: &str = "_ZN16SafepointTracing17_last_app_time_nsE";
const TYPE: &str = "_ZN16SafepointTracing13_current_typeE";
const RUNNING: &str = "_ZN16SafepointTracing12_nof_runningE";
const COUNTS: &str = "_ZN16SafepointTracing9_op_countE";
const NAMES: &str = "_ZN12VM_Operation6_namesE";
const OPERATION: &str = "_ZN8VMThread17_cur_vm_operationE";

/// More reasons than HotSpot has.
pub const REASONS_MOST: usize = 256;

/// The end of a safepoint is in all counters once it is so many nanoseconds past.
const SETTLED: u64 = 100_000;

/// Safepoints that wait to be told; a power of two.
const NOTED: usize = 64;

/// What the JVM's own thread has seen of a safepoint from inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Noted {
    /// How many there were, with it.
    number: u64,
    reason: u64,
    begin: u64,
    sync: u64,
    running: u64,
    /// The end of the one before.
    before: u64,
}

/// Written by the JVM's thread, which is inside one safepoint at a time, and read by one that looks.
/// What finds no room is not told alone.
struct Notes {
    slots: [[AtomicU64; 6]; NOTED],
    written: AtomicUsize,
    read: AtomicUsize,
    /// When the one that was noted last began.
    last: AtomicU64,
}

impl Notes {
    const fn new() -> Self {
        Notes {
            slots: [const { [const { AtomicU64::new(0) }; 6] }; NOTED],
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            last: AtomicU64::new(0),
        }
    }

    fn push(&self, noted: Noted) {
        let at = self.written.load(Relaxed);
        let Noted { number, reason, begin, sync, running, before } = noted;
        let Some(slot) = self.slots.get(at % NOTED) else { return };
        if at.wrapping_sub(self.read.load(Acquire)) >= NOTED {
            return;
        }
        for (to, from) in slot.iter().zip([number, reason, begin, sync, running, before]) {
            to.store(from, Relaxed);
        }
        self.written.store(at.wrapping_add(1), Release);
    }

    fn pop(&self) -> Option<Noted> {
        let at = self.read.load(Relaxed);
        if at == self.written.load(Acquire) {
            return None;
        }
        let [number, reason, begin, sync, running, before] =
            self.slots.get(at % NOTED)?.each_ref().map(|value| value.load(Relaxed));
        self.read.store(at.wrapping_add(1), Release);
        Some(Noted { number, reason, begin, sync, running, before })
    }
}

/// Where HotSpot notes its safepoints.
pub struct Tracing {
    begin: &'static AtomicU64,
    sync: &'static AtomicU64,
    end: &'static AtomicU64,
    /// How long the program had run since the safepoint before.
    ran: &'static AtomicU64,
    reason: &'static AtomicU32,
    running: &'static AtomicU32,
    counts: &'static [AtomicU64],
    /// Of the operation that the JVM's thread executes.
    operation: u64,
    /// What each reason is called.
    pub names: Vec<String>,
    module: Module,
    notes: Notes,
}

static TRACING: OnceLock<Option<Tracing>> = OnceLock::new();

/// Finds it; to be called once before the rest, by a thread that may allocate.
pub fn learn(jvmti: Jvmti) -> Option<&'static Tracing> {
    TRACING.get_or_init(|| Tracing::find(jvmti)).as_ref()
}

/// It, if it was found. Allocates nothing.
pub fn tracing() -> Option<&'static Tracing> {
    TRACING.get()?.as_ref()
}

/// Whether it was looked for and is not there.
pub fn is_untold() -> bool {
    TRACING.get().is_some_and(Option::is_none)
}

/// What the world stands still for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Current {
    /// The number of the reason.
    pub reason: usize,
    /// Nanoseconds from asking for the safepoint to reaching it.
    pub reach: u64,
    /// G1 before JDK 20 has one operation for both of its short pauses.
    pub is_cleanup: bool,
}

impl Tracing {
    fn find(jvmti: Jvmti) -> Option<Self> {
        let module = Module::containing(jvmti.inside_libjvm())?;
        let names = [BEGIN, SYNC, END, APP, TYPE, RUNNING, COUNTS, NAMES, OPERATION];
        let found = module.variables(&names)?;
        let [begin, sync, end, ran, reason, running, counts, names, operation] =
            <[Option<Variable>; 9]>::try_from(found).ok()?;
        let long = |found: Option<Variable>| found.filter(|found| found.size == 8)?.atomic();
        let int = |found: Option<Variable>| found.filter(|found| found.size == 4)?.atomic();
        let (counts, names) = (counts?, names?);
        let reasons = usize::try_from(counts.size / 8).ok()?;
        if reasons == 0 || reasons > REASONS_MOST || names.size != counts.size {
            return None;
        }
        let text = |index: u64| {
            // SAFETY: an element of the array, which is inside the module.
            let at = unsafe { word(names.at + 8 * index) };
            // SAFETY: HotSpot's names are texts of the module, which stays where it is.
            module.has(at, 1).then(|| unsafe { CStr::from_ptr(at as *const c_char) })
        };
        let named = (0..counts.size / 8).map(|index| Some(text(index)?.to_str().ok()?.to_owned()));
        let names: Vec<String> = named.collect::<Option<_>>()?;
        let first: &'static AtomicU64 = counts.atomic()?;
        Some(Tracing {
            begin: long(begin)?,
            sync: long(sync)?,
            end: long(end)?,
            ran: long(ran)?,
            reason: int(reason)?,
            running: int(running)?,
            // SAFETY: an array of so many numbers inside the module, which is never unloaded.
            counts: unsafe { std::slice::from_raw_parts(first, reasons) },
            operation: operation.filter(|found| found.size == 8).map_or(0, |found| found.at),
            names,
            module,
            notes: Notes::new(),
        })
    }

    /// All safepoints of the JVM's life.
    fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// The pause under way. Only for the JVM's own thread, inside it: then nothing moves.
    pub fn current(&self) -> Current {
        let (begin, sync) = (self.begin.load(Relaxed), self.sync.load(Relaxed));
        let reason = self.reason.load(Relaxed) as usize;
        let is_old = self.names.get(reason).is_some_and(|name| name == "G1Concurrent");
        Current {
            reason,
            reach: sync.saturating_sub(begin),
            is_cleanup: is_old && self.says(b"Pause Cleanup\0"),
        }
    }

    /// Keeps what is known of the safepoint under way for who looks from time to time. Only for the
    /// JVM's own thread, inside it; the second time it does nothing.
    pub fn note(&self) {
        let begin = self.begin.load(Relaxed);
        if self.notes.last.swap(begin, Relaxed) != begin {
            self.notes.push(Noted {
                number: self.count(),
                reason: self.reason.load(Relaxed).into(),
                begin,
                sync: self.sync.load(Relaxed),
                running: self.running.load(Relaxed).into(),
                before: begin.saturating_sub(self.ran.load(Relaxed)),
            });
        }
    }

    /// Whether the operation that is executed has a text in it.
    fn says(&self, text: &[u8]) -> bool {
        /// In words. The operation that is asked is longer than that.
        const LOOKED_AT: u64 = 6;
        if self.operation == 0 {
            return false;
        }
        // SAFETY: the calling thread executes the operation, so it is there. Its fields may be
        // anything, and only what points into the module is followed.
        unsafe {
            let operation = word(self.operation);
            operation != 0
                && (1..LOOKED_AT).map(|index| word(operation + 8 * index)).any(|at| {
                    self.module.has(at, text.len() as u64)
                        && std::slice::from_raw_parts(at as *const u8, text.len()) == text
                })
        }
    }

    /// The last safepoint that is over, when the one before it was, and how many there were; `None`
    /// while one is under way, or moves under our eyes.
    fn last(&self) -> Option<(Safepoint, u64, u64)> {
        let read = || {
            let reason = self.reason.load(Acquire);
            let (begin, end) = (self.begin.load(Acquire), self.end.load(Acquire));
            (reason, begin, end)
        };
        let before = read();
        let (sync, running) = (self.sync.load(Acquire), self.running.load(Acquire));
        let (ran, count) = (self.ran.load(Acquire), self.count());
        fence(Acquire);
        let (reason, begin, end) = before;
        let settled = end.checked_add(SETTLED).is_some_and(|end| end <= kernel::monotonic());
        let whole = begin != 0 && begin <= sync && sync <= end && settled;
        (whole && read() == before).then(|| {
            let last = Safepoint {
                reason: reason as usize,
                begin,
                reach: sync - begin,
                total: end - begin,
                running: running.into(),
                count: 1,
            };
            (last, begin.saturating_sub(ran), count)
        })
    }
}

impl Variable {
    /// It as a number that others change; `T` must be an atomic type.
    fn atomic<T: Atomic>(self) -> Option<&'static T> {
        let at = self.at as *const T;
        // SAFETY: inside the module, which is never unloaded, and of the right alignment; any bytes
        // are a valid atomic number.
        at.is_aligned().then(|| unsafe { &*at })
    }
}

trait Atomic {}
impl Atomic for AtomicU32 {}
impl Atomic for AtomicU64 {}

/// One safepoint, or several that nobody saw alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Safepoint {
    /// [`REASONS_MOST`] for several of different reasons.
    pub reason: usize,
    /// By the monotonic clock; of several, as if they had followed each other without a break.
    pub begin: u64,
    /// Nanoseconds to reach it, and all in all.
    pub reach: u64,
    pub total: u64,
    /// Threads that ran when it was asked for; [`UNKNOWN`] of what nobody saw.
    pub running: u64,
    pub count: u64,
}

/// Who looks at them from time to time.
pub struct Looker {
    tracing: &'static Tracing,
    begin: u64,
    seen: u64,
    counts: Vec<u64>,
    sums: Option<perf_memory::Safepoints>,
}

impl Looker {
    /// What was before does not count.
    pub fn new(tracing: &'static Tracing) -> Self {
        while tracing.notes.pop().is_some() {}
        Looker {
            tracing,
            begin: tracing.begin.load(Relaxed),
            seen: tracing.count(),
            counts: tracing.counts.iter().map(|count| count.load(Relaxed)).collect(),
            sums: perf_memory::safepoints(),
        }
    }

    /// Tells what has come since the last look, in order.
    pub fn look(&mut self, mut tell: impl FnMut(Safepoint)) {
        let Some((last, before, count)) = self.tracing.last() else { return };
        if last.begin == self.begin {
            return;
        }
        let counts: Vec<u64> =
            self.tracing.counts.iter().map(|count| count.load(Relaxed)).collect();
        let sums = perf_memory::safepoints();
        let mut alone = self.noted(count, last.begin, before);
        alone.push(last);
        let unseen = count.saturating_sub(self.seen).saturating_sub(alone.len() as u64);
        if unseen > 0 {
            tell(self.unseen(unseen, &alone, &counts, sums));
        }
        alone.into_iter().for_each(tell);
        (self.begin, self.seen, self.counts, self.sums) = (last.begin, count, counts, sums);
    }

    /// What the JVM's thread has noted of those before the last, which is number `count`, as far as
    /// their ends are known: the one that follows says when.
    fn noted(&self, count: u64, last: u64, before: u64) -> Vec<Safepoint> {
        let mut noted: Vec<Noted> = Vec::new();
        while let Some(one) = self.tracing.notes.pop() {
            noted.push(one);
        }
        noted.retain(|one| one.number > self.seen && one.number < count && one.begin < last);
        let end = |one: &Noted, at: usize| match noted.get(at + 1) {
            Some(next) if next.number == one.number + 1 => Some(next.before),
            _ if one.number + 1 == count => Some(before),
            _ => None,
        };
        let told = noted.iter().enumerate().filter_map(|(at, one)| {
            let end = end(one, at).filter(|end| one.begin <= one.sync && one.sync <= *end)?;
            Some(Safepoint {
                reason: usize::try_from(one.reason).unwrap_or(REASONS_MOST),
                begin: one.begin,
                reach: one.sync - one.begin,
                total: end - one.begin,
                running: one.running,
                count: 1,
            })
        });
        told.collect()
    }

    /// What nobody saw, of which only number and time are known.
    fn unseen(
        &self,
        count: u64,
        alone: &[Safepoint],
        counts: &[u64],
        sums: Option<perf_memory::Safepoints>,
    ) -> Safepoint {
        let since = counts.iter().zip(&self.counts).map(|(now, then)| now.saturating_sub(*then));
        let of = |at: usize| alone.iter().filter(|one| one.reason == at).count() as u64;
        let mut more = since.enumerate().filter(|(at, count)| *count > of(*at)).map(|(at, _)| at);
        let reason = more.next().filter(|_| more.next().is_none());
        let between = sums.zip(self.sums).map(|(now, then)| now.since(then));
        let (reach, inside) = between.map_or((0, 0), |sums| (sums.reach, sums.inside));
        let told: u64 = alone.iter().map(|one| one.reach).sum();
        let told_inside: u64 = alone.iter().map(|one| one.total - one.reach).sum();
        let (reach, inside) = (reach.saturating_sub(told), inside.saturating_sub(told_inside));
        let next = alone.first().map_or(0, |one| one.begin);
        Safepoint {
            reason: reason.unwrap_or(REASONS_MOST),
            begin: next.saturating_sub(reach + inside),
            reach,
            total: reach + inside,
            running: UNKNOWN,
            count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> &'static Tracing {
        fn long() -> &'static AtomicU64 {
            Box::leak(Box::default())
        }
        fn int() -> &'static AtomicU32 {
            Box::leak(Box::default())
        }
        let counts: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        Box::leak(Box::new(Tracing {
            begin: long(),
            sync: long(),
            end: long(),
            ran: long(),
            reason: int(),
            running: int(),
            counts: counts.leak(),
            operation: 0,
            names: ["A", "B", "C"].map(str::to_owned).to_vec(),
            module: Module::containing(made as *const _).expect("this program"),
            notes: Notes::new(),
        }))
    }

    impl Tracing {
        fn happens(&self, reason: u32, [begin, sync, end]: [u64; 3]) {
            self.counts[reason as usize].fetch_add(1, Relaxed);
            self.reason.store(reason, Relaxed);
            self.ran.store(begin.saturating_sub(self.end.load(Relaxed)), Relaxed);
            self.begin.store(begin, Relaxed);
            self.sync.store(sync, Relaxed);
            self.end.store(end, Relaxed);
        }
    }

    fn told(looker: &mut Looker) -> Vec<Safepoint> {
        let mut told = Vec::new();
        looker.look(|one| told.push(one));
        told
    }

    #[test]
    fn each_is_told_once_and_what_nobody_saw_by_its_number() {
        let tracing = made();
        tracing.happens(0, [5, 6, 7]);
        let mut looker = Looker::new(tracing);
        assert_eq!(told(&mut looker), []);
        tracing.happens(1, [100, 130, 190]);
        let one = Safepoint { reason: 1, begin: 100, reach: 30, total: 90, running: 0, count: 1 };
        assert_eq!(told(&mut looker), [one]);
        assert_eq!(told(&mut looker), []);
        tracing.happens(2, [200, 201, 202]);
        tracing.happens(2, [210, 211, 212]);
        tracing.happens(0, [220, 221, 223]);
        let [group, last] = told(&mut looker)[..] else { panic!("two") };
        assert_eq!((group.reason, group.count), (2, 2));
        assert_eq!((last.reason, last.begin, last.total), (0, 220, 3));
        tracing.happens(0, [300, 301, 302]);
        tracing.happens(1, [310, 311, 312]);
        tracing.happens(2, [320, 321, 323]);
        let [group, last] = told(&mut looker)[..] else { panic!("two") };
        assert_eq!((group.reason, group.count, last.reason), (REASONS_MOST, 2, 2));
    }

    #[test]
    fn what_the_jvm_noted_is_told_alone_if_its_end_is_known() {
        let tracing = made();
        let mut looker = Looker::new(tracing);
        tracing.happens(1, [100, 130, 190]);
        tracing.note();
        tracing.note();
        tracing.happens(2, [200, 201, 250]);
        tracing.note();
        // Nobody notes these.
        tracing.happens(0, [300, 301, 302]);
        tracing.happens(0, [310, 311, 323]);
        let told = told(&mut looker);
        let seen: Vec<[u64; 3]> =
            told.iter().map(|one| [one.reason as u64, one.total, one.count]).collect();
        // The end of the second is not known, since the one that follows was not seen.
        assert_eq!(seen[1..], [[1, 90, 1], [0, 13, 1]]);
        assert_eq!((told[0].count, told[0].reason), (2, REASONS_MOST));
    }

    #[test]
    fn one_under_way_is_told_when_it_is_over() {
        let tracing = made();
        let mut looker = Looker::new(tracing);
        tracing.happens(1, [100, 0, 0]);
        assert_eq!(told(&mut looker), []);
        tracing.sync.store(110, Relaxed);
        assert_eq!(told(&mut looker), []);
        tracing.end.store(kernel::monotonic(), Relaxed);
        assert_eq!(told(&mut looker), [], "not settled");
        tracing.end.store(140, Relaxed);
        assert_eq!(told(&mut looker).len(), 1);
    }
}
