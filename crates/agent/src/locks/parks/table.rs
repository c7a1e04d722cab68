//! Waits under way, by the thread that waits: a virtual thread ends its wait on another carrier than
//! it began it on, so nothing of the operating system's thread can hold them.
//!
//! A fixed table in memory that is never given back, so that a thread that was parked while a
//! session ended may still look. A thread has one place, and only it begins and ends the wait
//! there; what others read of it is a hint.
//!
//! A thread that waits for a lock may be woken and not get it. Each acquisition has a node in the
//! lock's queue, so a wait with a node is kept for a while after its end: if the thread parks again
//! with that node, it is the same wait. The control thread takes those out that have ended for good.

use super::super::waits::{Owner, Wait};
use crate::kernel;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tare_protocol::LockWait;

/// Threads that can be followed at a time, and how many share a neighbourhood.
const CAPACITY: usize = 1 << 17;
const NEAR: usize = 16;

/// Stages of a place, beside the thread's id. Nobody but the thread changes one that is open, and
/// nobody but who took it one that is taken.
const STAGES: u32 = 2;
const OPEN: u64 = 1;
const ENDED: u64 = 2;
const TAKEN: u64 = 3;

/// A wait, how it may go on, and when it ended last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Park {
    pub wait: Wait,
    /// Tells acquisitions of one lock apart; zero where there is no queue.
    pub node: u32,
    /// When the thread went to sleep, after all that was looked up.
    pub parked: u64,
    pub ended: u64,
}

const WORDS: usize = 11;

/// Which of them has the stack.
const TRACE: usize = 2;

fn two(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl Park {
    fn words(&self) -> [u64; WORDS] {
        let Wait { kind, began, thread, java_id, trace, class, instance, owner, queue } = self.wait;
        [
            kind.code(),
            began,
            two(thread, trace),
            java_id,
            two(class, queue),
            instance,
            two(owner.thread, self.node),
            owner.java_id,
            owner.asked,
            self.parked,
            self.ended,
        ]
    }

    fn from_words(words: [u64; WORDS]) -> Self {
        let [kind, began, thread, java_id, class, instance, owner, owner_id, asked, parked, ended] =
            words;
        let ((thread, trace), (class, queue), (owner, node)) =
            (halves(thread), halves(class), halves(owner));
        let kind = LockWait::of_code(kind).unwrap_or(LockWait::Park);
        let owner = Owner { thread: owner, java_id: owner_id, asked };
        let wait = Wait { kind, began, thread, java_id, trace, class, instance, owner, queue };
        Park { wait, node, parked, ended }
    }
}

#[repr(C, align(128))]
struct Place {
    /// The thread's id and the stage; zero for nobody.
    state: AtomicU64,
    session: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl Place {
    fn park(&self) -> Park {
        Park::from_words(std::array::from_fn(|at| self.words[at].load(Relaxed)))
    }

    /// Nobody waits here, and nobody finds a stack of before.
    fn free(&self) {
        self.words[TRACE].store(0, Relaxed);
        self.state.store(0, Release);
    }

    fn set(&self, park: &Park) {
        self.words.iter().zip(park.words()).for_each(|(word, value)| word.store(value, Relaxed));
    }
}

/// What became of a thread that begins to wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun {
    /// It waits already: what parks inside of a wait is part of it.
    Inside,
    /// It goes on with the wait of this token.
    Again(Token),
    /// It has a place. What it waited for before is over.
    New(Token, Option<Park>),
    /// There is no room.
    Full,
}

/// A place and the session in which it was given, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(u64);

impl Token {
    fn new(session: u32, at: usize) -> Self {
        Token(u64::from(session) << 32 | (at as u64 + 1))
    }

    pub fn from_raw(raw: i64) -> Self {
        Token(raw.cast_unsigned())
    }

    pub fn raw(self) -> i64 {
        self.0.cast_signed()
    }

    pub fn session(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

pub struct Table {
    places: &'static [Place],
    /// Places whose waits have ended and are kept.
    ended: Mutex<Vec<u32>>,
}

static TABLE: OnceLock<Option<Table>> = OnceLock::new();

/// The table, made at the first call. `None` when there is no memory for it.
pub fn table() -> Option<&'static Table> {
    TABLE.get_or_init(|| Table::new(CAPACITY)).as_ref()
}

impl Table {
    fn new(capacity: usize) -> Option<Self> {
        let at = kernel::reserve(capacity * size_of::<Place>()).ok()?;
        // SAFETY: the mapping is never given back, holds so many places, and all zeros are valid
        // atomics.
        let places = unsafe { std::slice::from_raw_parts(at.cast(), capacity) };
        Some(Table { places, ended: Mutex::default() })
    }

    fn ended(&self) -> MutexGuard<'_, Vec<u32>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn near(&self, thread: u64) -> impl Iterator<Item = usize> + '_ {
        let first = (thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (0..NEAR).map(move |step| first.wrapping_add(step) & (self.places.len() - 1))
    }

    /// Nobody waits, for a new session. Nobody uses the table meanwhile.
    pub fn clear(&self) {
        self.ended().clear();
        let used = self.places.iter().filter(|place| place.state.load(Relaxed) != 0);
        used.for_each(Place::free);
    }

    /// A thread begins to wait. What is known of it is set by [`Table::fill`].
    pub fn begin(&self, session: u32, thread: u64, node: u32) -> Begun {
        let key = thread << STAGES;
        for at in self.near(thread) {
            let place = &self.places[at];
            let token = Token::new(session, at);
            let state = place.state.load(Acquire);
            if state == key | OPEN {
                return Begun::Inside;
            }
            // One that is being taken out at this moment is nobody's.
            if state == key | ENDED
                && place.state.compare_exchange(state, key | OPEN, AcqRel, Relaxed).is_ok()
            {
                let before = place.park();
                if node == 0 || before.node != node {
                    place.words[TRACE].store(0, Relaxed);
                }
                return match node != 0 && before.node == node {
                    true => Begun::Again(token),
                    false => Begun::New(token, Some(before)),
                };
            }
        }
        for at in self.near(thread) {
            let place = &self.places[at];
            if place.state.compare_exchange(0, key | OPEN, AcqRel, Relaxed).is_ok() {
                place.session.store(session, Relaxed);
                return Begun::New(Token::new(session, at), None);
            }
        }
        Begun::Full
    }

    fn place(&self, token: Token) -> Option<(usize, &Place)> {
        let at = (token.0 as u32 as usize).checked_sub(1)?;
        let place = self.places.get(at)?;
        let is_open = place.state.load(Acquire) & TAKEN == OPEN;
        (is_open && place.session.load(Relaxed) == token.session()).then_some((at, place))
    }

    /// The wait that a thread has begun and not ended.
    pub fn token_of(&self, thread: u64) -> Option<Token> {
        let open = |at: &usize| self.places[*at].state.load(Acquire) == thread << STAGES | OPEN;
        let at = self.near(thread).find(open)?;
        Some(Token::new(self.places[at].session.load(Relaxed), at))
    }

    /// What is known of a wait that was just begun.
    pub fn fill(&self, token: Token, park: &Park) {
        if let Some((_, place)) = self.place(token) {
            place.set(park);
        }
    }

    /// The thread waits no more. The wait, unless it may go on.
    pub fn end(&self, token: Token, time: u64) -> Option<Park> {
        let (at, place) = self.place(token)?;
        let park = Park { ended: time, ..place.park() };
        if park.node == 0 {
            place.free();
            return Some(park);
        }
        place.set(&park);
        let state = place.state.load(Relaxed);
        place.state.store(state & !TAKEN | ENDED, Release);
        let mut ended = self.ended();
        if ended.len() >= 2 * self.places.len() {
            // Nobody has looked for long.
            ended.sort_unstable();
            ended.dedup();
        }
        ended.push(at as u32);
        None
    }

    /// Takes waits out that have ended before a time and did not go on.
    pub fn over(&self, before: u64, mut tell: impl FnMut(Park)) {
        let mut list = std::mem::take(&mut *self.ended());
        list.retain(|at| {
            let place = &self.places[*at as usize];
            let state = place.state.load(Acquire);
            if state & TAKEN != ENDED {
                // It goes on, and comes back with its next end.
                return false;
            }
            if place.park().ended >= before {
                return true;
            }
            let taken = state & !TAKEN | TAKEN;
            if place.state.compare_exchange(state, taken, AcqRel, Relaxed).is_ok() {
                let park = place.park();
                place.free();
                tell(park);
            }
            false
        });
        self.ended().append(&mut list);
    }

    /// Waits that have not ended, without taking them out.
    pub fn under_way(&self) -> impl Iterator<Item = Park> {
        let open = self.places.iter().filter(|place| place.state.load(Acquire) & TAKEN == OPEN);
        open.map(Place::park).filter(|park| park.wait.trace != 0)
    }

    /// Where a thread's wait stands, and what stands there for as long as it waits.
    pub fn proof(&self, token: Token) -> (u64, u64) {
        let place = self.place(token).map(|(_, place)| &place.state);
        place.map_or((0, 0), |state| (state.as_ptr() as u64, state.load(Relaxed)))
    }

    /// The number of the stack with which a thread waits now, if it does.
    pub fn trace_of(&self, thread: u64) -> Option<u32> {
        let waits = |place: &&Place| place.state.load(Acquire) == thread << STAGES | OPEN;
        let place = self.near(thread).map(|at| &self.places[at]).find(waits)?;
        let trace = place.park().wait.trace;
        (trace != 0 && waits(&place)).then_some(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn park(node: u32, began: u64) -> Park {
        let owner = Owner { thread: 7, java_id: 8, asked: 9 };
        let (kind, thread, java_id, trace) = (LockWait::SharedLock, 2, 3, 5);
        let (class, instance, queue) = (11, 12, 10);
        let wait = Wait { kind, began, thread, java_id, trace, class, instance, owner, queue };
        Park { wait, node, parked: began + 1, ended: 0 }
    }

    fn begun(table: &Table, thread: u64, node: u32, began: u64) -> Token {
        let Begun::New(token, _) = table.begin(1, thread, node) else { panic!("no new wait") };
        table.fill(token, &park(node, began));
        token
    }

    #[test]
    fn a_wait_without_a_queue_ends_at_once() {
        let table = Table::new(64).unwrap();
        let token = begun(&table, 7, 0, 10);
        assert_eq!(table.begin(1, 7, 0), Begun::Inside);
        assert_eq!(table.trace_of(7), Some(5));
        assert_eq!(table.end(token, 30), Some(Park { ended: 30, ..park(0, 10) }));
        assert_eq!(table.end(token, 40), None, "it has ended");
        assert_eq!(table.trace_of(7), None);
    }

    #[test]
    fn a_wait_is_found_by_its_thread_while_it_lasts() {
        let table = Table::new(64).unwrap();
        assert_eq!(table.token_of(7), None);
        let token = begun(&table, 7, 9, 10);
        assert_eq!(table.token_of(7), Some(token));
        assert_eq!(table.token_of(8), None);
        table.end(token, 20);
        assert_eq!(table.token_of(7), None, "it may go on, and does not wait");
    }

    #[test]
    fn an_acquisition_that_parks_again_is_one_wait() {
        let table = Table::new(64).unwrap();
        let token = begun(&table, 7, 9, 10);
        assert_eq!(table.end(token, 20), None);
        assert_eq!(table.begin(1, 7, 9), Begun::Again(token));
        assert_eq!(table.end(token, 30), None);
        let mut told = Vec::new();
        table.over(30, |park| told.push(park));
        assert_eq!(told, [], "it may go on");
        table.over(31, |park| told.push(park));
        assert_eq!(told, [Park { ended: 30, ..park(9, 10) }]);
        table.over(u64::MAX, |park| panic!("{park:?} is told twice"));
    }

    #[test]
    fn the_next_acquisition_is_another_wait() {
        let table = Table::new(64).unwrap();
        let token = begun(&table, 7, 9, 10);
        assert_eq!(table.end(token, 20), None);
        let Begun::New(next, Some(before)) = table.begin(1, 7, 8) else { panic!("not told") };
        assert_eq!(before, Park { ended: 20, ..park(9, 10) });
        table.fill(next, &park(0, 25));
        assert_eq!(table.end(next, 26).map(|park| park.wait.began), Some(25));
        table.over(u64::MAX, |park| panic!("{park:?} was told"));
    }

    #[test]
    fn waits_of_a_session_that_is_over_are_in_nobodys_way() {
        let table = Table::new(NEAR).unwrap();
        let old: Vec<Token> = (1..=NEAR as u64).map(|thread| begun(&table, thread, 3, 1)).collect();
        assert_eq!(table.begin(1, 99, 0), Begun::Full);
        table.clear();
        for thread in 1..=NEAR as u64 {
            assert!(matches!(table.begin(2, 100 + thread, 0), Begun::New(_, None)), "{thread}");
        }
        assert_eq!(old.iter().find_map(|token| table.end(*token, 5)), None);
        table.over(u64::MAX, |park| panic!("{park:?} is of the other session"));
    }
}
