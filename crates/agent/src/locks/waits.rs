//! The waits that are under way, by the thread that waits.
//!
//! A virtual thread may go on waiting on another carrier, so nothing here belongs to a thread of
//! the operating system: a wait is found by the id of whoever waits. The table has a fixed size.
//! Each key has a window of places in which it may stand; who finds none there counts the wait as
//! lost. A place is claimed by compare-and-swap on its key and filled while nobody can find it, so
//! nobody waits for anybody.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use tare_protocol::LockWait;

/// Waits at a time: more than there are threads in most programs.
const PLACES: usize = 1 << 14;

/// A wait is at most this far from where its key says.
const WINDOW: usize = 32;

const FREE: u64 = 0;
/// Being filled, or read out.
const BUSY: u64 = u64::MAX;

/// Who noted a wait. A thread has one of each at most: entering a monitor may be a part of another
/// wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Enter,
    Wait,
}

/// Who has a lock, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The stream's number of the thread, or of the carrier; zero if it is not known.
    pub thread: u32,
    /// The id of a virtual thread, or, without a number, of any thread; zero for none.
    pub java_id: u64,
    /// The number under which its stack was asked for; zero for not at all.
    pub asked: u64,
}

impl Owner {
    pub fn is_known(&self) -> bool {
        self.thread != 0 || self.java_id != 0
    }
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub kind: LockWait,
    /// By the monotonic clock.
    pub began: u64,
    /// The stream's number of the thread that it began on, and the virtual thread on it.
    pub thread: u32,
    pub java_id: u64,
    /// The stack, with the class of what is waited for innermost; zero if there is none.
    pub trace: u32,
    /// The text of that class.
    pub class: u32,
    /// Tells objects of a class apart; zero if that is not known.
    pub instance: u64,
    pub owner: Owner,
    /// How many wait for the same, this one among them; zero if that is not known.
    pub queue: u32,
}

#[derive(Default)]
struct Place {
    key: AtomicU64,
    began: AtomicU64,
    java_id: AtomicU64,
    instance: AtomicU64,
    owner_id: AtomicU64,
    asked: AtomicU64,
    kind: AtomicU64,
    thread: AtomicU32,
    trace: AtomicU32,
    class: AtomicU32,
    owner: AtomicU32,
    queue: AtomicU32,
}

impl Place {
    fn fill(&self, wait: &Wait) {
        self.began.store(wait.began, Relaxed);
        self.java_id.store(wait.java_id, Relaxed);
        self.instance.store(wait.instance, Relaxed);
        self.owner_id.store(wait.owner.java_id, Relaxed);
        self.asked.store(wait.owner.asked, Relaxed);
        self.kind.store(wait.kind.code(), Relaxed);
        self.thread.store(wait.thread, Relaxed);
        self.trace.store(wait.trace, Relaxed);
        self.class.store(wait.class, Relaxed);
        self.owner.store(wait.owner.thread, Relaxed);
        self.queue.store(wait.queue, Relaxed);
    }

    fn read(&self) -> Wait {
        Wait {
            kind: LockWait::of_code(self.kind.load(Relaxed)).unwrap_or(LockWait::Park),
            began: self.began.load(Relaxed),
            thread: self.thread.load(Relaxed),
            java_id: self.java_id.load(Relaxed),
            trace: self.trace.load(Relaxed),
            class: self.class.load(Relaxed),
            instance: self.instance.load(Relaxed),
            owner: Owner {
                thread: self.owner.load(Relaxed),
                java_id: self.owner_id.load(Relaxed),
                asked: self.asked.load(Relaxed),
            },
            queue: self.queue.load(Relaxed),
        }
    }

    /// Takes out what stands there under a key, unless somebody else is about to.
    fn take(&self, key: u64) -> Option<Wait> {
        if key == FREE || key == BUSY || self.key.load(Relaxed) != key {
            return None;
        }
        self.key.compare_exchange(key, BUSY, Acquire, Relaxed).ok()?;
        let wait = self.read();
        self.key.store(FREE, Release);
        Some(wait)
    }
}

pub struct Waits(Box<[Place]>);

/// A key that is never [`FREE`] or [`BUSY`].
fn key(source: Source, id: u64) -> u64 {
    id << 2 | (source as u64 + 1)
}

impl Waits {
    pub fn new() -> Self {
        Waits((0..PLACES).map(|_| Place::default()).collect())
    }

    fn window(&self, key: u64) -> impl Iterator<Item = &Place> {
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
        (0..WINDOW).filter_map(move |step| self.0.get((first + step) % PLACES))
    }

    /// Notes that somebody waits. False when there is no room. What the same waiter began before
    /// and never ended is forgotten.
    pub fn begin(&self, source: Source, id: u64, wait: &Wait) -> bool {
        self.end(source, id);
        let key = key(source, id);
        for place in self.window(key) {
            if place.key.load(Relaxed) == FREE
                && place.key.compare_exchange(FREE, BUSY, Acquire, Relaxed).is_ok()
            {
                place.fill(wait);
                place.key.store(key, Release);
                return true;
            }
        }
        false
    }

    /// The wait of somebody who waits no more.
    pub fn end(&self, source: Source, id: u64) -> Option<Wait> {
        let key = key(source, id);
        self.window(key).find_map(|place| place.take(key))
    }

    /// Takes out all of them.
    pub fn drain(&self) -> impl Iterator<Item = Wait> {
        self.0.iter().filter_map(|place| place.take(place.key.load(Relaxed)))
    }

    pub fn count(&self) -> usize {
        self.0.iter().filter(|place| place.key.load(Relaxed) != FREE).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(began: u64) -> Wait {
        Wait {
            kind: LockWait::MonitorWait,
            began,
            thread: 2,
            java_id: 3,
            trace: 4,
            class: 5,
            instance: 6,
            owner: Owner { thread: 7, java_id: 8, asked: 9 },
            queue: 10,
        }
    }

    #[test]
    fn a_wait_comes_out_once_as_it_went_in() {
        let waits = Waits::new();
        assert!(waits.begin(Source::Enter, 77, &wait(1)));
        assert!(waits.begin(Source::Wait, 77, &wait(2)), "another kind of the same thread");
        assert!(waits.begin(Source::Enter, 0, &wait(3)), "an id of zero is one");
        assert_eq!(waits.count(), 3);
        assert_eq!(waits.end(Source::Enter, 77), Some(wait(1)));
        assert_eq!(waits.end(Source::Enter, 77), None);
        assert_eq!(waits.end(Source::Wait, 77), Some(wait(2)));
        assert!(waits.begin(Source::Enter, 0, &wait(4)));
        assert_eq!(waits.drain().collect::<Vec<_>>(), [wait(4)], "the older one is forgotten");
        assert_eq!(waits.count(), 0);
    }

    #[test]
    fn thousands_wait_at_once_and_what_finds_no_room_is_told() {
        let waits = Waits::new();
        for id in 0..8_000 {
            assert!(waits.begin(Source::Enter, id, &wait(id)), "{id}");
        }
        for id in 0..8_000 {
            assert_eq!(waits.end(Source::Enter, id).map(|wait| wait.began), Some(id));
        }
        let room = (0..40_000).filter(|id| waits.begin(Source::Wait, *id, &wait(*id))).count();
        assert!((PLACES / 2..=PLACES).contains(&room), "{room}");
        assert_eq!(waits.drain().count(), room);
    }

    #[test]
    fn threads_that_wait_at_the_same_time_do_not_meet() {
        let waits = Waits::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let waits = &waits;
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let wait = wait(round * 4 + thread);
                        assert!(waits.begin(Source::Enter, thread, &wait));
                        assert_eq!(waits.end(Source::Enter, thread), Some(wait));
                    }
                });
            }
        });
        assert_eq!(waits.count(), 0);
    }
}
