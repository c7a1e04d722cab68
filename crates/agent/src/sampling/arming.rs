//! The threads of the stream, each with a timer or perf event of its own: armed when they come,
//! disarmed when they go.

use super::armer::Armer;
use super::handler::Shared;
use crate::kernel;
use crate::stream::threads::{Record, Table};
use crate::stream::watch::ThreadListener;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use tare_arena::samples::Counter;
use tare_protocol::SampleTrigger;

/// What the control thread, the sampler thread and starting threads need to arm threads.
pub struct Arming {
    pub shared: Arc<Shared>,
    pub armer: Armer,
}

impl ThreadListener for Arming {
    fn filled(&self, record: &Record, tid: u32) {
        record.last_time.store(kernel::monotonic(), Relaxed);
        if self.shared.trigger == SampleTrigger::Safepoint {
            record.charged.store(kernel::clock(kernel::thread_clock(tid)), Relaxed);
        }
    }

    fn came(&self, record: &Record, tid: u32) -> bool {
        let interval = self.shared.interval.load(Relaxed);
        let refused = self.armer.arms(self.shared.wall) && !self.armer.arm(record, tid, interval);
        if self.shared.paused.load(Relaxed) {
            self.armer.rearm(record, tid, 0);
        }
        !refused
    }

    fn left(&self, record: &'static Record) {
        self.armer.disarm(record);
    }
}

impl Arming {
    pub fn table(&self) -> &'static Table {
        self.shared.stream.watch.table
    }

    /// When there are more threads than may be armed, those that work get what those that rest do
    /// not need.
    pub fn balance(&self) {
        let stream = &self.shared.stream;
        if !self.armer.arms(self.shared.wall) || stream.ring.count(Counter::ThreadsRefused) == 0 {
            return;
        }
        let table = self.table().change();
        if !stream.watch.is_open() || self.shared.paused.load(Relaxed) {
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
}
