//! Tasks on their way through the queue of an executor: noted when they are handed over, told when
//! a thread begins to run them. Woven code calls all of this on the program's threads.
//!
//! A task is known by its identity hash, so nothing here keeps one alive. A task that is never run
//! gives its place to a later one with a hash near to its own, and a task that finds no place is not
//! told.

use super::super::shared::{Shared, with_session};
use crate::jvm::Jni;
use crate::kernel;
use jvmti_bindings::sys::jni::jclass;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::*};
use tare_arena::samples::EventHead;

const CAPACITY: usize = 1 << 16;
const NEAR: usize = 8;

/// Stacks of submissions that are walked in a second; tasks beyond that are told without.
const MOST: u64 = 5_000;

/// A place: hash and executor, stack, time. Zero is for nobody; [`BUSY`] while somebody writes.
#[derive(Default)]
struct Place {
    key: AtomicU64,
    trace: AtomicU64,
    time: AtomicU64,
}

const BUSY: u64 = u64::MAX;

/// The bits of a key that are the text of the executor's class.
const TEXT: u32 = (1 << 31) - 1;

pub struct Tasks {
    places: Box<[Place]>,
    second: AtomicU64,
    walked: AtomicU64,
}

static TASKS: OnceLock<Tasks> = OnceLock::new();

fn tasks() -> &'static Tasks {
    TASKS.get_or_init(|| Tasks::new(CAPACITY))
}

/// No task is on its way, for a new session.
pub fn clear() {
    if let Some(tasks) = TASKS.get() {
        tasks.places.iter().for_each(|place| place.key.store(0, Release));
    }
}

fn hash_of(task: i32) -> u64 {
    // Never zero.
    u64::from(task.cast_unsigned()) << 32 | 1 << 31
}

impl Tasks {
    fn new(capacity: usize) -> Self {
        let places = (0..capacity).map(|_| Place::default()).collect();
        Tasks { places, second: AtomicU64::new(0), walked: AtomicU64::new(0) }
    }

    fn near(&self, task: i32) -> impl Iterator<Item = &Place> {
        let first = task.cast_unsigned() as usize;
        (0..NEAR).filter_map(move |step| self.places.get((first + step) % self.places.len()))
    }

    /// Notes a task; of those near to it the oldest goes if there is no room.
    fn note(&self, task: i32, executor: u32, trace: u32, time: u64) {
        // One method that takes a task over may call another.
        let known = self.find(task).map(|(place, _)| place);
        let free = || self.near(task).find(|place| place.key.load(Relaxed) == 0);
        let oldest = || self.near(task).min_by_key(|place| place.time.load(Relaxed));
        let Some(place) = known.or_else(free).or_else(oldest) else { return };
        let key = place.key.load(Relaxed);
        if key == BUSY || place.key.compare_exchange(key, BUSY, Acquire, Relaxed).is_err() {
            return;
        }
        place.trace.store(u64::from(trace), Relaxed);
        place.time.store(time, Relaxed);
        place.key.store(hash_of(task) | u64::from(executor & TEXT), Release);
    }

    fn find(&self, task: i32) -> Option<(&Place, u64)> {
        let upper = |key: u64| key >> 31;
        self.near(task).find_map(|place| {
            let key = place.key.load(Acquire);
            (key != BUSY && upper(key) == upper(hash_of(task))).then_some((place, key))
        })
    }

    /// Takes a task out: the text of its executor's class, the stack and the time of its submission.
    fn take(&self, task: i32) -> Option<(u32, u32, u64)> {
        let (place, key) = self.find(task)?;
        place.key.compare_exchange(key, BUSY, Acquire, Relaxed).ok()?;
        let found = (place.trace.load(Relaxed) as u32, place.time.load(Relaxed));
        place.key.store(0, Release);
        Some((key as u32 & TEXT, found.0, found.1))
    }

    fn may_walk(&self, now: u64) -> bool {
        let second = now / 1_000_000_000;
        if self.second.swap(second, Relaxed) != second {
            self.walked.store(0, Relaxed);
        }
        self.walked.fetch_add(1, Relaxed) < MOST
    }
}

/// An executor takes a task over.
pub fn submitted(jni: Jni, executor: jclass, task: i32) {
    with_session(|shared| shared.submitted(jni, executor, task));
}

/// Whether a task was noted.
pub fn waits_for_thread(task: i32) -> bool {
    tasks().find(task).is_some()
}

/// A thread is about to run a task that was noted.
pub fn started(jni: Jni, class: jclass, task: i32) {
    with_session(|shared| shared.started(jni, class, task));
}

impl Shared {
    fn submitted(&self, jni: Jni, executor: jclass, task: i32) {
        let time = kernel::monotonic();
        let Some(here) = self.here(jni) else { return };
        let executor = self.class(jni, executor);
        let trace = match tasks().may_walk(time) {
            true => self.stack(&here, 0).0,
            false => 0,
        };
        tasks().note(task, executor, trace, time);
    }

    fn started(&self, jni: Jni, class: jclass, task: i32) {
        let now = kernel::monotonic();
        let Some((executor, trace, time)) = tasks().take(task) else { return };
        let duration = now.saturating_sub(time);
        if duration < self.threshold.load(Relaxed) {
            return;
        }
        let Some(here) = self.here(jni) else { return };
        let head = EventHead {
            kind: self.kinds.task,
            thread: here.number(),
            time,
            duration,
            java_id: 0,
            trace,
        };
        let values = [u64::from(self.class(jni, class)), u64::from(executor)];
        self.stream.ring.append_event(&head, &values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_taken_out_once() {
        let tasks = Tasks::new(64);
        for task in [5, -7, i32::MAX] {
            tasks.note(task, 9, 11, 100);
        }
        for task in [5, -7, i32::MAX] {
            assert!(tasks.find(task).is_some());
            assert_eq!(tasks.take(task), Some((9, 11, 100)), "{task}");
            assert_eq!(tasks.take(task), None, "{task}");
        }
        assert_eq!(tasks.take(6), None);
    }

    #[test]
    fn the_oldest_goes_where_there_is_no_room() {
        let tasks = Tasks::new(NEAR);
        for task in 0..=NEAR as i32 {
            tasks.note(task, 1, 0, 100 + u64::from(task.cast_unsigned()));
        }
        assert_eq!(tasks.take(0), None);
        assert_eq!((1..=NEAR as i32).filter_map(|task| tasks.take(task)).count(), NEAR);
    }

    #[test]
    fn stacks_are_walked_so_often_in_a_second() {
        let tasks = Tasks::new(NEAR);
        assert_eq!((0..3 * MOST).filter(|_| tasks.may_walk(7_000_000_000)).count() as u64, MOST);
        assert!(tasks.may_walk(8_000_000_000));
    }
}
