//! The thread that goes round: in wall-clock mode it asks threads where they are, with the
//! safepoint engine it takes their stacks itself.
//!
//! Wall-clock mode looks at every thread once per interval, or as often as its budget allows. A
//! thread whose processor clock stands still has not run since its last sample: it is not woken,
//! its last stack stands, and one record accounts for the whole time when it runs again (or after a
//! second, for those who watch). So ten thousand idle threads cost one clock reading each, in turn.

use super::arming::Arming;
use crate::gate;
use crate::jvm::{Jni, Jvmti, Vm};
use crate::kernel;
use crate::stacks::frames::Frame;
use crate::stream::threads::Record;
use crate::thread::{Handle, Ours};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;
use tare_arena::samples::{Counter, How, Sample, Special, State};
use tare_protocol::SampleTrigger;

/// Time between two rounds of a few threads each.
const ROUND: Duration = Duration::from_millis(1);

/// The most threads that a round looks at, and that it wakes.
const LOOKS: usize = 64;
const WAKES: usize = 16;

/// A thread that has used less than this since its handler ended has only gone back to sleep.
const SETTLING: u64 = 50_000;

/// An idle thread's time is told at least this often.
const TELL_EVERY: u64 = 1_000_000_000;

/// A signal that was not handled for so long was lost with its thread's attention.
const FORGET_AFTER: u64 = 2_000_000_000;

pub struct Sampler {
    ends: Arc<AtomicBool>,
    thread: Handle,
}

impl Sampler {
    pub fn start(vm: Vm, jvmti: Jvmti, arming: Arc<Arming>) -> io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&ends);
        let body = move || {
            gate::enter((), || {
                let _ours = Ours::note();
                match arming.shared.trigger {
                    SampleTrigger::Safepoint => at_safepoints(vm, jvmti, &arming, &theirs),
                    _ => round_and_round(&arming, &theirs),
                }
            });
        };
        let thread = crate::lifecycle::with_signals_blocked(|| {
            crate::thread::spawn("tare-sampler", 512 << 10, body)
        })?;
        Ok(Sampler { ends, thread })
    }

    pub fn stop(self) {
        self.ends.store(true, Relaxed);
        self.thread.join();
    }
}

/// Wall-clock mode by signals.
fn round_and_round(arming: &Arming, ends: &AtomicBool) {
    let mut order: Vec<&'static Record> = Vec::new();
    let mut next_turn = 0;
    let mut at = 0;
    while !ends.load(Relaxed) {
        std::thread::sleep(ROUND);
        if arming.shared.paused.load(Relaxed) {
            continue;
        }
        if at >= order.len() {
            let now = kernel::monotonic();
            if now < next_turn {
                continue;
            }
            next_turn = now + arming.shared.interval.load(Relaxed);
            order = arming.table().all();
            at = 0;
        }
        // So many per round that all have had their turn after an interval.
        let rounds = arming.shared.interval.load(Relaxed) / ROUND.as_nanos() as u64;
        let share = order.len().div_ceil(usize::try_from(rounds).unwrap_or(1).max(1));
        let (mut looks, mut wakes) = (share.min(LOOKS), WAKES);
        while at < order.len() && looks > 0 && wakes > 0 {
            looks -= 1;
            if arming.look(order[at]) {
                wakes -= 1;
            }
            at += 1;
        }
    }
    for record in arming.table().all() {
        arming.tell_idle(record, kernel::monotonic());
    }
}

impl Arming {
    /// Looks at a thread and wakes it if it has run; true if it was woken.
    fn look(&self, record: &Record) -> bool {
        let tid = record.tid();
        let now = kernel::monotonic();
        if record.asked.load(Acquire) != 0 {
            // It has not got to it yet.
            if now.saturating_sub(record.asked_at.load(Relaxed)) < FORGET_AFTER {
                return false;
            }
            record.asked.store(0, Relaxed);
        }
        let used = kernel::clock(kernel::thread_clock(tid));
        if used == 0 || self.table().find(tid).is_none() {
            return false;
        }
        if self.has_rested(record, used) {
            record.looked_at.store(now, Relaxed);
            if now.saturating_sub(record.last_time.load(Relaxed)) > TELL_EVERY {
                self.tell_idle(record, now);
            }
            return false;
        }
        // Up to the last look it stood where it was; what follows belongs to the new sample.
        self.tell_idle(record, record.looked_at.load(Relaxed));
        record.asked_at.store(now, Relaxed);
        record.asked.store(1, Release);
        if kernel::ask(tid) {
            return true;
        }
        record.asked.store(0, Relaxed);
        false
    }

    /// Whether a thread has done nothing since its last sample.
    fn has_rested(&self, record: &Record, used: u64) -> bool {
        let state = State::from_code(u64::from(record.last_state.load(Relaxed)));
        let resting = !matches!(state, Some(State::Running | State::Runnable) | None);
        if record.last_trace.load(Relaxed) == 0 || !resting {
            return false;
        }
        let last = record.last_cpu.load(Relaxed);
        if record.settled.load(Relaxed) != 0 {
            return used == last;
        }
        let settled = used.saturating_sub(last) < SETTLING;
        if settled {
            record.last_cpu.store(used, Relaxed);
            record.settled.store(1, Relaxed);
        }
        settled
    }

    /// Accounts for the time up to `until` that a thread has spent at its last sample's place.
    fn tell_idle(&self, record: &Record, until: u64) {
        let last = record.last_time.load(Relaxed);
        let trace = record.last_trace.load(Relaxed);
        if trace == 0 || record.settled.load(Relaxed) == 0 || until <= last {
            return;
        }
        let ring = &self.shared.stream.ring;
        let state = State::from_code(u64::from(record.last_state.load(Relaxed)));
        let sent = ring.append_sample(&Sample {
            thread: record.number.load(Relaxed),
            time: until,
            weight: until - last,
            java_id: 0,
            trace,
            state: state.unwrap_or(State::Unknown),
            unchanged: true,
        });
        if sent {
            ring.add(Counter::Samples, 1);
            ring.add(Counter::Unchanged, 1);
            ring.add(Counter::Weight, until - last);
            record.last_time.store(until, Relaxed);
        }
    }
}

/// The safepoint engine: every interval one safepoint, and the stacks of those who have used
/// processor time since the last (in wall-clock mode, of all).
fn at_safepoints(vm: Vm, jvmti: Jvmti, arming: &Arming, ends: &AtomicBool) {
    let Some(jni) = vm.attach_daemon(c"tare-sampler", None) else { return };
    while !ends.load(Relaxed) {
        let interval = arming.shared.interval.load(Relaxed);
        std::thread::sleep(Duration::from_nanos(interval));
        if !arming.shared.paused.load(Relaxed) {
            let _ = jni.frame(|| arming.take_stacks(jvmti, jni, interval));
        }
    }
    vm.detach_current();
}

impl Arming {
    fn take_stacks(&self, jvmti: Jvmti, jni: Jni, interval: u64) {
        let now = kernel::monotonic();
        // Who is to be charged, and with how much, decided before the world stands still.
        let mut due: HashMap<u64, (&Record, u64)> = HashMap::new();
        for record in self.table().all() {
            let weight = self.due(record, now, interval);
            let java_id = record.java_id.load(Relaxed);
            if weight == 0 {
                continue;
            }
            if java_id == 0 {
                self.put(record, &[Frame::special(Special::NoWalker)], weight, now);
            } else {
                due.insert(java_id, (record, weight));
            }
        }
        if due.is_empty() {
            return;
        }
        let mut frames = Vec::new();
        let taken = jvmti.with_stacks(1024, |thread, stack| {
            let (_, java_id) = jni.thread_numbers(self.shared.stream.watch.fields, thread);
            let Some((record, weight)) = due.remove(&java_id) else { return };
            frames.clear();
            frames.extend(stack.iter().map(|frame| {
                let bci = i32::try_from(frame.location).unwrap_or(-1);
                // Given by the JVM, if not by the class: an old version, for one.
                self.shared.stream.ids.add(frame.method as u64);
                Frame::java(frame.method as u64, bci, How::Unknown)
            }));
            self.put(record, &frames, weight, now);
        });
        if taken.is_err() {
            self.shared.stream.ring.add(Counter::LostBuffer, due.len() as u64);
        }
        for (record, weight) in due.into_values() {
            self.put(record, &[Frame::special(Special::ThreadExit)], weight, now);
        }
    }

    /// The time that a thread is to be charged with now.
    fn due(&self, record: &Record, now: u64, interval: u64) -> u64 {
        if self.shared.wall {
            return now.saturating_sub(record.last_time.swap(now, Relaxed));
        }
        let used = kernel::clock(kernel::thread_clock(record.tid()));
        let charged = record.charged.load(Relaxed);
        // Small change waits until it is worth a sample, so that a thread which wakes up
        // briefly is not charged each time.
        let open = used.saturating_sub(charged);
        if open < interval / 2 {
            return 0;
        }
        record.charged.store(used, Relaxed);
        open
    }

    fn put(&self, record: &Record, frames: &[Frame], weight: u64, now: u64) {
        let shared = &self.shared;
        if let [Frame { kind: tare_arena::samples::layout::frame::SPECIAL, value, .. }] = frames {
            shared.stream.ring.add_failure(Special::from_code(*value).unwrap_or(Special::Unknown));
        }
        let state = if shared.wall { State::Unknown } else { State::Running };
        let sent = shared.stream.intern(frames, false).is_some_and(|trace| {
            shared.stream.ring.append_sample(&Sample {
                thread: record.number.load(Relaxed),
                time: now,
                weight,
                java_id: 0,
                trace,
                state,
                unchanged: false,
            })
        });
        if sent {
            shared.stream.ring.add(Counter::Samples, 1);
            shared.stream.ring.add(Counter::Weight, weight);
        } else {
            shared.stream.ring.add(Counter::LostRing, 1);
            shared.stream.ring.add(Counter::LostWeight, weight);
        }
    }
}
