//! The table of threads: found by the signal handler through the operating system's thread id,
//! filled by everybody else.
//!
//! A fixed table in memory that is never given back, so a handler may always look. Lookups take
//! no lock: a record's id is stored last when it is added and cleared first when it is removed.
//! Adding and removing are behind one lock, which is held for moments and never by a handler.

use crate::kernel;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Threads that can be watched at a time.
pub const CAPACITY: usize = 1 << 15;

/// A record is at most this far from where its id says.
const FARTHEST: usize = 256;

const FREE: u32 = 0;
/// Was used: a search must go on behind it.
const LEFT: u32 = u32::MAX;

/// One thread.
#[repr(C, align(128))]
pub struct Record {
    tid: AtomicU32,
    /// The thread's number in the session.
    pub number: AtomicU32,
    /// HotSpot's thread; zero for a thread that runs no Java.
    pub thread: AtomicU64,
    pub java_id: AtomicU64,
    /// The kernel's number of its timer, and its perf descriptor; -1 for none.
    pub timer: AtomicI32,
    pub fd: AtomicI32,
    /// Where the kernel puts its own frames for the descriptor; zero for nowhere.
    pub pages: AtomicU64,
    /// The thread is inside our handler, and may use the two.
    inside: AtomicU8,
    /// Processor time that samples stand for so far; for engines whose signals carry no count.
    pub charged: AtomicU64,
    /// The perf event still has the length of its first, random period.
    pub fresh: AtomicU8,
    /// The last sample in wall-clock mode: when, its trace, and the processor clock after it.
    pub last_time: AtomicU64,
    pub last_trace: AtomicU32,
    pub last_state: AtomicU8,
    /// Whether `last_cpu` was read after the thread had gone back to sleep.
    pub settled: AtomicU8,
    /// A signal was sent and has not been handled yet.
    pub asked: AtomicU8,
    pub asked_at: AtomicU64,
    /// When it was last seen not to have run.
    pub looked_at: AtomicU64,
    pub last_cpu: AtomicU64,
    /// The interval from which the JVM drew the thread's next sample of an allocation; zero while
    /// none of its samples was seen.
    pub drawn: AtomicU64,
}

impl Record {
    pub fn tid(&self) -> u32 {
        self.tid.load(Acquire)
    }

    /// The calling thread, whose record this is, is inside the handler until the value is dropped.
    /// What it finds in the record meanwhile stays valid.
    pub fn enter(&self) -> Inside<'_> {
        self.inside.store(1, SeqCst);
        Inside(self)
    }

    /// Whether its thread may use what was in the record when it entered the handler. All orderings
    /// are sequentially consistent: who takes something out looks here afterwards, who enters
    /// looks into the record afterwards, and one of them sees the other.
    pub fn is_inside(&self) -> bool {
        self.inside.load(SeqCst) != 0
    }

    fn clear(&self) {
        self.number.store(0, Relaxed);
        self.thread.store(0, Relaxed);
        self.java_id.store(0, Relaxed);
        self.timer.store(-1, Relaxed);
        self.fd.store(-1, Relaxed);
        self.pages.store(0, Relaxed);
        self.charged.store(0, Relaxed);
        self.fresh.store(0, Relaxed);
        self.asked_at.store(0, Relaxed);
        self.looked_at.store(0, Relaxed);
        self.last_time.store(0, Relaxed);
        self.last_trace.store(0, Relaxed);
        self.last_state.store(0, Relaxed);
        self.settled.store(0, Relaxed);
        self.asked.store(0, Relaxed);
        self.last_cpu.store(0, Relaxed);
        self.drawn.store(0, Relaxed);
    }
}

/// See [`Record::enter`].
pub struct Inside<'a>(&'a Record);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.store(0, SeqCst);
    }
}

pub struct Table {
    records: &'static [Record],
    live: Mutex<Vec<u32>>,
}

static TABLE: OnceLock<Option<Table>> = OnceLock::new();

/// The table, made at the first call, which must not be a handler's. `None` when there is no
/// memory for it.
pub fn make() -> Option<&'static Table> {
    TABLE.get_or_init(Table::new).as_ref()
}

/// The table, if it was made.
pub fn table() -> Option<&'static Table> {
    TABLE.get()?.as_ref()
}

fn slot(tid: u32) -> usize {
    (tid.wrapping_mul(0x9e37_79b1) >> 8) as usize
}

impl Table {
    pub(super) fn new() -> Option<Self> {
        let at = kernel::reserve(CAPACITY * size_of::<Record>()).ok()?;
        // SAFETY: the mapping is never given back, holds so many records, and all zeros are
        // valid atomics.
        let records = unsafe { std::slice::from_raw_parts(at.cast(), CAPACITY) };
        Some(Table { records, live: Mutex::default() })
    }

    fn live(&self) -> MutexGuard<'_, Vec<u32>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn near(&self, tid: u32) -> impl Iterator<Item = (usize, &'static Record)> {
        let (records, start) = (self.records, slot(tid));
        (0..FARTHEST).filter_map(move |step| {
            let index = (start + step) % CAPACITY;
            Some((index, records.get(index)?))
        })
    }

    /// Finds a thread. Takes no lock; for handlers too.
    pub fn find(&self, tid: u32) -> Option<&'static Record> {
        for (_, record) in self.near(tid) {
            match record.tid() {
                found if found == tid => return Some(record),
                FREE => return None,
                _ => {}
            }
        }
        None
    }

    /// The right to change the table. Who holds it also arms and disarms threads, so that a
    /// record is never armed for one thread and disarmed for another.
    pub fn change(&'static self) -> Change {
        Change { table: self, live: self.live() }
    }

    /// All threads.
    pub fn all(&'static self) -> Vec<&'static Record> {
        self.change().all().collect()
    }

    pub fn len(&self) -> usize {
        self.live().len()
    }
}

/// The table, held for a change.
pub struct Change {
    table: &'static Table,
    live: MutexGuard<'static, Vec<u32>>,
}

impl Change {
    /// Adds a thread, prepared by `prepare` before it can be found, and says whether it is new.
    /// `None` when there is no room; the record that is there when the thread is known already.
    pub fn add(
        &mut self,
        tid: u32,
        prepare: impl FnOnce(&Record),
    ) -> Option<(&'static Record, bool)> {
        if let Some(record) = self.table.find(tid) {
            return Some((record, false));
        }
        let mut near = self.table.near(tid);
        let (index, record) = near.find(|(_, record)| matches!(record.tid(), FREE | LEFT))?;
        record.clear();
        prepare(record);
        record.tid.store(tid, Release);
        self.live.push(index as u32);
        Some((record, true))
    }

    /// Takes a thread out; its record, which nobody can find any more.
    pub fn remove(&mut self, tid: u32) -> Option<&'static Record> {
        let (index, record) = self.table.near(tid).find(|(_, record)| record.tid() == tid)?;
        record.tid.store(LEFT, Release);
        if let Some(at) = self.live.iter().position(|one| *one as usize == index) {
            self.live.swap_remove(at);
        }
        Some(record)
    }

    /// All threads.
    pub fn all(&self) -> impl Iterator<Item = &'static Record> {
        let records = self.table.records;
        self.live.iter().filter_map(move |index| records.get(*index as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_found_until_they_leave_and_their_records_are_used_again() {
        let table: &'static Table = Box::leak(Box::new(Table::new().unwrap()));
        let tids: Vec<u32> = (1..2000).map(|n| n * 7).collect();
        for tid in &tids {
            table
                .change()
                .add(*tid, |record| record.java_id.store(u64::from(*tid), Relaxed))
                .unwrap();
        }
        assert_eq!(table.len(), tids.len());
        for tid in &tids {
            assert_eq!(table.find(*tid).unwrap().java_id.load(Relaxed), u64::from(*tid));
        }
        for tid in tids.iter().step_by(2) {
            table.change().remove(*tid).unwrap();
        }
        for (index, tid) in tids.iter().enumerate() {
            assert_eq!(table.find(*tid).is_some(), index % 2 == 1);
        }
        for round in 0..100_000 {
            table.change().add(1_000_000 + round, |_| {}).expect("room again");
            table.change().remove(1_000_000 + round).unwrap();
        }
        assert_eq!(table.all().len(), tids.len() / 2);
    }
}
