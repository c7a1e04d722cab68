//! The threads of the process, watched: taken in and armed when they come, disarmed when they go. What belongs to a
//! session beside its threads is `mod`'s.

use super::engines::Armer;
use super::handler::Shared;
use super::older::{self, Known};
use super::sampler;
use crate::jvm::threads::ThreadFields;
use crate::kernel;
use crate::stacks::hotspot::Layout;
use crate::stacks::ids::MethodIds;
use crate::stream::threads::{Record, Table};
use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use tare_arena::samples::{Counter, Record as Event, SampleThread, ThreadType};
use tare_protocol::SampleEngine;

/// What the JVM's callbacks, the control thread and the sampler need to watch threads.
pub struct Watch {
    pub shared: Arc<Shared>,
    pub armer: Armer,
    pub table: &'static Table,
    /// The session ends and takes in no more threads; changed with the table held.
    pub closed: AtomicBool,
    pub next: AtomicU32,
    pub fields: ThreadFields,
    /// From HotSpot's thread to its JNI environment.
    pub environment: u64,
    /// Unknown where the JVM does not export it; then the JVM itself takes stacks.
    pub layout: Option<Layout>,
    /// The methods that the JVM knows.
    pub ids: MethodIds,
}

impl Watch {
    /// Watches a thread from now on; one that is known becomes the Java thread that it is.
    pub fn add(&self, mut new: SampleThread, native: u64) {
        let mut table = self.table.change();
        if self.closed.load(Relaxed) {
            return;
        }
        let added = table.add(new.os_id, |record| {
            record.number.store(self.next.fetch_add(1, Relaxed), Relaxed);
            self.fill(record, &new, native);
        });
        let ring = &self.shared.ring;
        let Some((record, fresh)) = added else {
            ring.add(Counter::ThreadsRefused, 1);
            return;
        };
        new.number = record.number.load(Relaxed);
        ring.append_bytes(&new.encode());
        if !fresh {
            self.fill(record, &new, native);
            return;
        }
        ring.add(Counter::ThreadsSeen, 1);
        let interval = self.shared.interval.load(Relaxed);
        let refused =
            self.armer.arms(self.shared.wall) && !self.armer.arm(record, new.os_id, interval);
        // A thread that has ended meanwhile has no clock any more, and needs nothing.
        if refused && kernel::clock(kernel::thread_clock(new.os_id)) != 0 {
            ring.add(Counter::ThreadsRefused, 1);
        }
        if self.shared.paused.load(Relaxed) {
            self.armer.rearm(record, new.os_id, 0);
        }
    }

    fn fill(&self, record: &Record, new: &SampleThread, native: u64) {
        record.thread.store(native, Relaxed);
        record.java_id.store(new.java_id, Relaxed);
        let now = kernel::monotonic();
        record.last_time.store(now, Relaxed);
        if self.shared.engine == SampleEngine::Safepoint {
            record.charged.store(kernel::clock(kernel::thread_clock(new.os_id)), Relaxed);
        }
    }

    pub fn remove(&self, tid: u32) {
        let mut table = self.table.change();
        if let Some(record) = table.remove(tid) {
            self.armer.disarm(record);
            let number = record.number.load(Relaxed);
            let end = Event::encode_thread_end(number, kernel::monotonic());
            self.shared.ring.append_bytes(&end);
        }
    }

    /// When there are more threads than may be armed, those that work get what those that rest do
    /// not need.
    pub fn balance(&self) {
        let wall = self.shared.wall;
        if !self.armer.arms(wall) || self.shared.ring.count(Counter::ThreadsRefused) == 0 {
            return;
        }
        let table = self.table.change();
        if self.closed.load(Relaxed) || self.shared.paused.load(Relaxed) {
            return;
        }
        let (mut resting, mut waiting) = (Vec::new(), Vec::new());
        for record in table.all() {
            let used = kernel::clock(kernel::thread_clock(record.tid()));
            let moved = record.last_cpu.swap(used, Relaxed) != used;
            let armed = record.timer.load(Relaxed) >= 0 || record.fd.load(Relaxed) >= 0;
            match (armed, moved) {
                (true, false) => resting.push(record),
                (false, true) => waiting.push(record),
                _ => {}
            }
        }
        let interval = self.shared.interval.load(Relaxed);
        for record in waiting {
            if !self.armer.arm(record, record.tid(), interval) {
                let Some(other) = resting.pop() else { return };
                self.armer.disarm(other);
                self.armer.arm(record, record.tid(), interval);
            }
        }
    }

    /// Disarms all threads, and takes in no more.
    pub fn close(&self) {
        let table = self.table.change();
        self.closed.store(true, Relaxed);
        for record in table.all() {
            self.armer.disarm(record);
        }
    }

    pub fn forget_threads(&self) {
        let mut table = self.table.change();
        let all: Vec<u32> = table.all().map(Record::tid).collect();
        for tid in all {
            table.remove(tid);
        }
    }

    /// Finds threads that came and went without the JVM's telling.
    pub fn scan_tasks(&self, mut known: Known) {
        let own = sampler::own_threads();
        let alive: HashSet<u32> = older::tasks().into_iter().collect();
        if alive.is_empty() {
            return;
        }
        for record in self.table.all() {
            let tid = record.tid();
            if !alive.contains(&tid) {
                self.remove(tid);
            }
        }
        for tid in alive {
            if own.contains(&tid) || self.table.find(tid).is_some() {
                continue;
            }
            let (new, native) = known.remove(&tid).unwrap_or_else(|| (native_thread(tid), 0));
            self.add(new, native);
        }
    }
}

fn native_thread(tid: u32) -> SampleThread {
    let name = fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
    SampleThread {
        kind: ThreadType::Native,
        os_id: tid,
        name: name.trim_end().to_owned(),
        ..SampleThread::default()
    }
}
