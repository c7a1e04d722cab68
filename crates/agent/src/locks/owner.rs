//! Who has a monitor, read from HotSpot's own structures, and what that thread does, asked by a
//! signal.
//!
//! The monitor that a thread is about to wait for stands in HotSpot's thread, and its owner in the
//! monitor: since JDK 24 as a thread's id, before as the address of HotSpot's thread. A monitor that
//! was a light lock until somebody wanted it names its owner by an address in that thread's stack,
//! or not at all; then the threads are looked through for the one whose stack, or list of light
//! locks, it is. Everything is read under the fault guard, and believed only if the threads that we
//! know agree.
//!
//! The owner gets our signal, looks for its [`Ask`]s, and walks its own stack. So it is asked
//! at most once in a while for each monitor, and so often in a second ([`Budget`]); whoever comes in
//! between shares the answer. The handler runs on any thread at any instruction: no allocation, no
//! lock, no panic. Asks are statics, because a signal may come when the session is over.

mod parked;

use super::shared::{Here, Shared, with_session};
use super::waits::Owner;
use crate::jvm::Jvmti;
use crate::kernel;
use crate::stacks::Stacks;
use crate::stacks::memory::Memory;
use crate::stacks::walk::Registers;
use crate::stream::threads::{Change, Record};
use crate::vm_tables::{Missing, Tables};
use jvmti_bindings::sys::jni::jobject;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use tare_arena::samples::EventHead;

/// An owner of a monitor is asked again after this time.
const AGAIN: u64 = 1_000_000;

/// Questions in a second, and looks through all threads.
const MOST: u64 = 2_000;

/// A question that is not answered for so long is not answered any more.
const FORGET_AFTER: u64 = 2_000_000_000;

/// Monitors that are remembered, and threads by their ids.
const RECENT: usize = 256;

/// HotSpot's words for an owner that is not named: whoever has the light lock, and whoever takes
/// the monitor down.
const NOBODY: u64 = 0;
const ANONYMOUS: u64 = 1;
const DEFLATER: u64 = 2;

/// A longer queue than this was misread.
const LONGEST_QUEUE: i32 = 1 << 20;

/// Light locks that a thread can have.
const LIGHT_LOCKS: u64 = 64;

/// A question to the owner of a lock.
#[derive(Default)]
struct Ask {
    /// Who is to answer; zero while it is free, [`BUSY`] while somebody uses it.
    tid: AtomicU32,
    number: AtomicU64,
    at: AtomicU64,
    /// Where the owner stands, and what stood there; zero for nowhere.
    place: AtomicU64,
    was: AtomicU64,
}

const BUSY: u32 = u32::MAX;
const ASKS: usize = 256;

static QUESTIONS: [Ask; ASKS] = [const {
    Ask {
        tid: AtomicU32::new(0),
        number: AtomicU64::new(0),
        at: AtomicU64::new(0),
        place: AtomicU64::new(0),
        was: AtomicU64::new(0),
    }
}; ASKS];

/// Questions that are not answered yet, and not forgotten.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// In the payload of the signal: an address nobody else has.
fn payload() -> usize {
    QUESTIONS.as_ptr() as usize
}

/// Whether a signal with this payload is a question of ours.
pub fn is_question(value: usize) -> bool {
    value == payload()
}

/// Answers all that the calling thread is asked. For the signal handler, whatever its signal was
/// sent for: the kernel keeps one of a kind for a thread, and others come to nothing meanwhile.
pub fn answer(tid: u32, record: Option<&'static Record>, registers: &Registers) {
    if OPEN.load(Relaxed) == 0 {
        return;
    }
    let mut stack = None;
    for ask in &QUESTIONS {
        if ask.tid.load(Relaxed) == tid
            && ask.tid.compare_exchange(tid, BUSY, AcqRel, Relaxed).is_ok()
        {
            if let Some(record) = record {
                with_session(|shared| shared.answer(ask, tid, record, registers, &mut stack));
            }
            ask.close();
        }
    }
}

impl Ask {
    /// It is free again.
    fn close(&self) {
        OPEN.fetch_sub(1, Relaxed);
        self.tid.store(0, Release);
    }
}

/// So much in a second.
#[derive(Default)]
struct Budget {
    second: AtomicU64,
    used: AtomicU64,
}

impl Budget {
    fn allows(&self, now: u64) -> bool {
        let second = now / 1_000_000_000;
        if self.second.swap(second, Relaxed) != second {
            self.used.store(0, Relaxed);
        }
        self.used.fetch_add(1, Relaxed) < MOST
    }
}

/// Where HotSpot keeps what is read of monitors.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// In HotSpot's thread.
    pending: u64,
    stack_size: Option<u64>,
    /// The first of its light locks, and where the end of them is.
    light_locks: Option<(u64, u64)>,
    /// In a monitor.
    owner: u64,
    contentions: Option<u64>,
}

impl Layout {
    fn new(tables: &Tables) -> Result<Self, Missing> {
        let thread = ["JavaThread", "Thread"];
        let field = |of: &str, name: &str| tables.field(of, name).map(|field| field.offset);
        let light_locks = || {
            let list = field("JavaThread", "_lock_stack")?;
            let first = field("LockStack", "_base[0]")?;
            Some((list + first, list + field("LockStack", "_top")?))
        };
        Ok(Layout {
            pending: tables.offset(&thread, "_current_pending_monitor")?,
            stack_size: tables.offset(&thread, "_stack_size").ok(),
            light_locks: light_locks(),
            owner: tables.offset(&["ObjectMonitor"], "_owner")?,
            contentions: field("ObjectMonitor", "_contentions"),
        })
    }
}

/// What was found out of a monitor, for those who come right after.
#[derive(Clone, Copy, Default)]
struct Recent {
    place: u64,
    was: u64,
    at: u64,
    owner: Owner,
}

/// A thread that owns a lock.
#[derive(Clone, Copy)]
struct Found {
    tid: u32,
    owner: Owner,
}

pub struct Owners {
    layout: Option<Layout>,
    recent: Box<[Mutex<Recent>]>,
    /// Threads that had an id when it was last looked for.
    ids: Box<[AtomicU32]>,
    looks: Budget,
    questions: Budget,
    next: AtomicU64,
    pub asked: AtomicU64,
    pub answered: AtomicU64,
}

impl Owners {
    /// With a sentence for a person if owners cannot be found.
    pub fn new(jvmti: Jvmti) -> (Self, Option<String>) {
        let tables = Tables::read(jvmti.inside_libjvm());
        let layout = tables.and_then(|tables| Layout::new(&tables));
        let note = layout.as_ref().err().map(|Missing(what)| {
            format!("Owners of monitors are not told: this JVM does not tell where {what} is.")
        });
        let owners = Owners {
            layout: layout.ok(),
            recent: (0..RECENT).map(|_| Mutex::default()).collect(),
            ids: (0..RECENT).map(|_| AtomicU32::new(0)).collect(),
            looks: Budget::default(),
            questions: Budget::default(),
            next: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        };
        (owners, note)
    }

    /// Who has the monitor that the calling thread is about to wait for, and how many wait for it.
    pub fn of_pending(&self, shared: &Shared, here: &Here, object: jobject) -> (Owner, u32) {
        let Some(layout) = self.layout.filter(|_| here.thread != 0) else {
            return (Owner::default(), 0);
        };
        let stacks = &shared.stream.stacks;
        let found = stacks.look(|memory| {
            let monitor = memory.word(here.thread.wrapping_add(layout.pending))?;
            let was = memory.word(monitor.wrapping_add(layout.owner))?;
            let queue = layout.contentions.and_then(|at| memory.int(monitor.wrapping_add(at)));
            Some((monitor.wrapping_add(layout.owner), was, queue.unwrap_or(0)))
        });
        let Some((place, was, queue)) = found else { return (Owner::default(), 0) };
        let queue = if (1..LONGEST_QUEUE).contains(&queue) { queue.cast_unsigned() } else { 0 };
        if was == NOBODY || was == DEFLATER {
            return (Owner::default(), queue);
        }
        let find = |now| self.find(shared, layout, was, object, now);
        (self.shared_answer(here, place, was, find), queue)
    }

    /// The owner that stands at `place` as `was`, asked for its stack unless that was done a moment
    /// ago.
    fn shared_answer(
        &self,
        here: &Here,
        place: u64,
        was: u64,
        find: impl FnOnce(u64) -> (Owner, Option<u32>),
    ) -> Owner {
        let now = kernel::monotonic();
        let recent = self.recent.get((place >> 6) as usize % RECENT);
        // Whoever has it held finds out the same.
        let mut recent = recent.and_then(|recent| recent.try_lock().ok());
        if let Some(recent) = &recent
            && (recent.place, recent.was) == (place, was)
            && now.saturating_sub(recent.at) < AGAIN
        {
            return recent.owner;
        }
        let (mut owner, tid) = find(now);
        if let Some(tid) = tid.filter(|tid| *tid != here.tid) {
            owner.asked = self.ask(tid, place, was, now).unwrap_or(0);
        }
        if let Some(recent) = &mut recent {
            **recent = Recent { place, was, at: now, owner };
        }
        owner
    }

    /// Asks a thread for its stack; the number under which the answer comes. `place` is where the
    /// owner of the lock stands, and `was` what stands there; zeros if that cannot be looked at.
    pub fn ask(&self, tid: u32, place: u64, was: u64, now: u64) -> Option<u64> {
        if !self.questions.allows(now) {
            return None;
        }
        let number = self.next.fetch_add(1, Relaxed) + 1;
        let first = number as usize;
        let ask =
            (0..ASKS).filter_map(|step| QUESTIONS.get((first + step) % ASKS)).find(|ask| {
                let asked = ask.tid.load(Relaxed);
                let is_free = asked == 0
                    || asked != BUSY && now.saturating_sub(ask.at.load(Relaxed)) > FORGET_AFTER;
                let is_taken =
                    is_free && ask.tid.compare_exchange(asked, BUSY, Acquire, Relaxed).is_ok();
                if is_taken && asked == 0 {
                    OPEN.fetch_add(1, Relaxed);
                }
                is_taken
            })?;
        ask.number.store(number, Relaxed);
        ask.at.store(now, Relaxed);
        ask.place.store(place, Relaxed);
        ask.was.store(was, Relaxed);
        ask.tid.store(tid, Release);
        self.asked.fetch_add(1, Relaxed);
        if kernel::ask_with(tid, payload()) {
            return Some(number);
        }
        // It is gone.
        if ask.tid.compare_exchange(tid, BUSY, AcqRel, Relaxed).is_ok() {
            ask.close();
        }
        None
    }

    /// The thread behind what stands in a monitor, and who is to be asked.
    fn find(
        &self,
        shared: &Shared,
        layout: Layout,
        was: u64,
        object: jobject,
        now: u64,
    ) -> (Owner, Option<u32>) {
        let stacks = &shared.stream.stacks;
        let found = match (was, stacks.owner_id_at()) {
            (ANONYMOUS, _) => {
                let locks = |(first, top)| self.with_light_lock(shared, first, top, object, now);
                layout.light_locks.and_then(locks)
            }
            (id, Some(at)) => {
                let found = self.by_id(shared, id, at, now);
                // A virtual thread that is not mounted has nobody who could be asked.
                return found.map_or_else(
                    || (Owner { java_id: id, ..Owner::default() }, None),
                    |found| (found.owner, Some(found.tid)),
                );
            }
            (thread, None) => known(shared, thread).or_else(|| {
                let size = layout.stack_size?;
                self.with_stack(shared, size, thread, now)
            }),
        };
        found.map_or_else(Default::default, |found| (found.owner, Some(found.tid)))
    }

    /// The thread that runs who has this id.
    fn by_id(&self, shared: &Shared, id: u64, at: u64, now: u64) -> Option<Found> {
        let stacks = &shared.stream.stacks;
        let table = shared.stream.watch.table;
        let has_id = |record: &Record, memory: &dyn Memory| {
            let thread = record.thread.load(Relaxed);
            thread != 0 && memory.word(thread.wrapping_add(at)) == Some(id)
        };
        let cached = self.ids.get(id as usize % RECENT)?;
        let record = table
            .find(cached.load(Relaxed))
            .filter(|record| stacks.look(|memory| Some(has_id(record, memory))) == Some(true));
        let record = match record {
            Some(record) => record,
            None => {
                let record = self.look_through(shared, now, |stacks, all| {
                    stacks.look(|memory| all.all().find(|record| has_id(record, memory)))
                })?;
                cached.store(record.tid(), Relaxed);
                record
            }
        };
        Some(found(stacks, record))
    }

    /// The thread in whose stack an address is.
    fn with_stack(&self, shared: &Shared, size: u64, address: u64, now: u64) -> Option<Found> {
        let base = shared.stream.stacks.stack_base_at();
        let record = self.look_through(shared, now, |stacks, all| {
            stacks.look(|memory| {
                all.all().find(|record| {
                    let thread = record.thread.load(Relaxed);
                    let word = |at: u64| match thread {
                        0 => 0,
                        thread => memory.word(thread.wrapping_add(at)).unwrap_or(0),
                    };
                    let top = word(base);
                    (top.saturating_sub(word(size))..top).contains(&address)
                })
            })
        })?;
        Some(found(&shared.stream.stacks, record))
    }

    /// The thread that has the light lock of an object.
    fn with_light_lock(
        &self,
        shared: &Shared,
        first: u64,
        top: u64,
        object: jobject,
        now: u64,
    ) -> Option<Found> {
        let handle = object as u64;
        let record = self.look_through(shared, now, |stacks, all| {
            stacks.look(|memory| {
                let object = memory.word(handle)?;
                all.all().find(|record| {
                    let thread = record.thread.load(Relaxed);
                    if thread == 0 {
                        return false;
                    }
                    // The end is told by its distance from the thread.
                    let end = memory.int(thread.wrapping_add(top)).unwrap_or(0).cast_unsigned();
                    let end = u64::from(end).min(first + 8 * LIGHT_LOCKS);
                    let mut locks = (first..end).step_by(8);
                    locks.any(|at| memory.word(thread.wrapping_add(at)) == Some(object))
                })
            })
        })?;
        Some(found(&shared.stream.stacks, record))
    }

    /// Looks through all threads, unless that was done too often.
    fn look_through(
        &self,
        shared: &Shared,
        now: u64,
        look: impl FnOnce(&Stacks, &Change) -> Option<&'static Record>,
    ) -> Option<&'static Record> {
        if !self.looks.allows(now) {
            return None;
        }
        let all = shared.stream.watch.table.change();
        look(&shared.stream.stacks, &all)
    }
}

/// One of HotSpot's threads, if that is what it is.
fn known(shared: &Shared, thread: u64) -> Option<Found> {
    let stacks = &shared.stream.stacks;
    let record = shared.stream.watch.table.find(stacks.tid_of(thread)?)?;
    (record.thread.load(Relaxed) == thread).then(|| found(stacks, record))
}

fn found(stacks: &Stacks, record: &Record) -> Found {
    let (thread, own) = (record.thread.load(Relaxed), record.java_id.load(Relaxed));
    let java_id = stacks.mounted_on(thread, own);
    let number = record.number.load(Relaxed);
    Found { tid: record.tid(), owner: Owner { thread: number, java_id, asked: 0 } }
}

impl Shared {
    /// `stack` has what was walked for another question of the same signal.
    fn answer(
        &self,
        ask: &Ask,
        tid: u32,
        record: &'static Record,
        registers: &Registers,
        stack: &mut Option<(u32, u64)>,
    ) {
        let here = self.interrupted(tid, record);
        let (place, was) = (ask.place.load(Relaxed), ask.was.load(Relaxed));
        let now = match place {
            0 => None,
            place => self.stream.stacks.peek(place),
        };
        let held = now.is_some_and(|now| now == was || now == here.thread || now == here.id);
        let (trace, java_id) = *stack.get_or_insert_with(|| self.walked(&here, 0, registers));
        if trace == 0 {
            return;
        }
        let head = EventHead {
            kind: self.kinds.owner,
            thread: here.number(),
            time: kernel::monotonic(),
            java_id,
            trace,
            ..EventHead::default()
        };
        if self.stream.ring.append_event(&head, &[ask.number.load(Relaxed), held.into()]) {
            self.owners.answered.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_from_other_signals_of_ours() {
        assert!(is_question(payload()));
        assert!(!is_question(kernel::cookie()) && !is_question(0));
    }

    #[test]
    fn a_budget_is_for_a_second() {
        let budget = Budget::default();
        let used = (0..3 * MOST).filter(|_| budget.allows(5_000_000_000)).count();
        assert_eq!(used as u64, MOST);
        assert!(budget.allows(6_000_000_000));
    }
}
