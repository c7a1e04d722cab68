//! The arena's memory: a file without a name, mapped at an address that says which session it is.
//!
//! Which addresses those are is the business of `slots`; what lies behind them, that of `pages`.
//!
//! Pages of the file are allocated before the probes may touch them: memory that cannot be had
//! makes the limit stay where it is, and not the program die.

use super::budget::Want;
use super::clock::{ticks, ticks_per_nano};
use super::names_file::NoRoom;
use super::pages::Pages;
use super::{agents, bytecodes, locked};
use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tare_arena::MethodName;
use tare_arena::layout::{
    self, Holds, PAGE, header, kept, node, page, record, ring, tails, threads, tree,
};
use tare_protocol::{ExactPlan, Follow, Measure};

/// What is allocated beyond what is used: at least this, and half of what is used. A program can
/// make contexts for some 200 MB in a second, and the agent looks every 20 ms if it gets the
/// processor; who needs more before that allocates it himself.
const AHEAD: u64 = 32 << 20;

/// What a thread of the program allocates at once, when it must: a millisecond or two.
const AT_ONCE: u64 = AHEAD / 8;

/// A thread that waits for room in its ring may hold what others need.
const LONGEST_WAIT_MS: u64 = 1000;

/// Bytes of a thread's ring in a trace, at most.
const LARGEST_RING: u64 = 256 << 20;

/// Bytes of the agent's own ring in a trace: compilations of some ten thousand methods at once.
const OWN_RING: u64 = 1 << 20;

/// The smallest budget that makes sense: the table of threads and some trees.
pub const SMALLEST: u64 = 8 << 20;

/// The part of the memory that only "all the rest" nodes may take.
const RESERVE_SHARE: u64 = 16;

/// Between two calls of a context that are timed, on average, at most.
const LARGEST_DISTANCE: u32 = 1 << 16;

/// A node's children are found by signed distances of 32 bits.
const LARGEST: u64 = 1 << 31;

/// Called by the probes: a thread needs a session's memory up to this end, now. Whether it is
/// there.
pub fn more(base: i64, end: i64, rest: bool) -> bool {
    let recording = super::recording();
    let memory = recording.as_ref().map(|recording| &recording.memory);
    memory.is_some_and(|memory| {
        memory.base == base.cast_unsigned() && memory.back_up_to(end.cast_unsigned(), rest)
    })
}

/// Lengths of calls may take this part of the memory, the trees the rest.
const OF_SPREADS: u64 = 4;

/// The memory of one session.
pub struct Memory {
    pub base: u64,
    pub session: u32,
    pages: Pages,
    /// In a trace: bytes of a thread's ring, and where the agent's is.
    ring: u64,
    notes: Mutex<usize>,
    /// Held by who moves the limit.
    growth: Mutex<()>,
}

/// What a session's arena holds.
#[derive(Clone, Copy)]
pub struct Shape {
    pub holds: Holds,
    pub roots: bool,
    pub cpu_time: bool,
    pub fold: bool,
    /// No context is pruned.
    pub keeps: bool,
    pub depth: u32,
    /// With samples, and where some calls are timed: how far apart they are, and the seed of what
    /// is random in that.
    pub every: u32,
    pub random: Option<u64>,
    pub budget: u64,
    /// Which calls of roots are followed, if not all of them.
    pub follow: Option<Follow>,
    /// In a trace: bytes of a thread's ring.
    pub ring: u64,
    /// In a trace: nanoseconds that a thread may wait for room in its ring.
    pub wait: u64,
}

impl Shape {
    pub fn of(plan: &ExactPlan) -> Self {
        let follow = plan.follow();
        let (every, random) = match &plan.measure {
            Measure::Samples(samples) => (samples.every, samples.random),
            _ => match plan.some_times() {
                Some(some) => (some.one_in.clamp(1, LARGEST_DISTANCE), Some(some.seed)),
                None => (agents::FIRST, follow.map(|follow| follow.seed)),
            },
        };
        let (ring, wait) = match &plan.measure {
            Measure::Trace(trace) => (
                trace.ring.clamp(ring::LEAST as u64, LARGEST_RING).next_power_of_two(),
                trace.wait.min(LONGEST_WAIT_MS) * 1_000_000,
            ),
            _ => (0, 0),
        };
        Shape {
            holds: bytecodes::holds(plan),
            roots: plan.roots().is_some(),
            cpu_time: plan.is_cpu_time(),
            fold: plan.folds(),
            // Figures of followed calls are added to contexts as each of them ends.
            keeps: !plan.watched().is_empty() || follow.is_some(),
            depth: plan.depth(),
            every,
            random,
            budget: plan.memory,
            follow,
            ring,
            wait,
        }
    }
}

impl Memory {
    pub fn new(shape: Shape) -> io::Result<Self> {
        let budget = shape.budget.clamp(SMALLEST, LARGEST) & !(PAGE as u64 - 1);
        let ring = shape.ring;
        let pages = Pages::new(budget, ring > 0)?;
        let behind = (threads::AT + threads::BYTES).next_multiple_of(PAGE) as u64;
        let places = if shape.follow.is_some() { kept::ROOTS * PAGE } else { 0 };
        let first = behind + places as u64;
        // Less to begin with where memory is short; too little even for that is an error.
        let limit = [ahead(ring), AT_ONCE]
            .into_iter()
            .find_map(|ahead| pages.back(0, first + ahead, Want::Ahead).ok())
            .ok_or_else(|| io::Error::other("the container has too little memory left"))?;
        // Only now is there something that could be written to.
        let (base, session) = pages.map()?;
        let memory =
            Memory { base, session, pages, ring, notes: Mutex::new(0), growth: Mutex::new(()) };
        memory.put64(header::MAGIC, layout::MAGIC);
        memory.put32(header::SESSION, session);
        memory.put32(header::HOLDS, shape.holds.code());
        memory.put64(header::FIRST, first);
        memory.put64(header::BUMP, first);
        memory.put32(header::NODE, shape.holds.node_size() as u32);
        memory.put32(header::ROOTS, u32::from(shape.roots));
        memory.put32(header::DEPTH, shape.depth);
        memory.put32(header::CPU, u32::from(shape.cpu_time));
        memory.put32(header::FOLD, u32::from(shape.fold));
        memory.put32(header::KEEPS, u32::from(shape.keeps));
        if let Some(follow) = shape.follow {
            memory.put32(header::FOLLOW, follow.one_in.max(1));
            memory.put32(header::KEPT, follow.kept.min(kept::MOST));
            memory.put32(header::KEPT_AT, behind as u32);
            memory.put32(header::SPREADS_MOST, (budget / OF_SPREADS / PAGE as u64) as u32);
        }
        if ring > 0 {
            memory.make_own_ring(first);
        }
        memory.put64(header::WAIT, shape.wait);
        memory.put32(header::EVERY, shape.every);
        memory.put32(header::RANDOM, u32::from(shape.random.is_some()));
        memory.put64(header::SEED, shape.random.unwrap_or(0));
        let rate = if shape.cpu_time { 1.0 } else { ticks_per_nano() };
        memory.put64(header::LONG, (node::LONG_NANOS as f64 * rate) as u64);
        memory.set_limit(limit);
        // There will be no more: threads need not wait for a look of ours to be told.
        let whole = limit >= memory.pages.for_trees(Want::Needed);
        memory.put32(header::FULL, u32::from(whole));
        let (ticks, nanos) = clocks();
        memory.put64(header::TICKS_0, ticks);
        memory.put64(header::NANOS_0, nanos);
        memory.tick();
        Ok(memory)
    }

    pub fn files(&self, drains: bool) -> io::Result<Vec<File>> {
        self.pages.files(drains)
    }

    /// From now on one call of a root in so many is followed, where they are drawn.
    pub fn follow(&self, one_in: u32) {
        if self.get32(header::FOLLOW) != 0 {
            self.put32(header::FOLLOW, one_in.max(1));
        }
    }

    pub fn used(&self) -> u64 {
        self.get64(header::BUMP)
    }

    /// Bytes of the names.
    pub fn of_names(&self) -> u64 {
        self.pages.of_names()
    }

    pub fn budget(&self) -> u64 {
        self.pages.budget
    }

    /// Called from time to time: reads the clocks, and allocates memory ahead of the probes.
    pub fn tick(&self) {
        let (ticks, nanos) = clocks();
        self.put64(header::TICKS_1, ticks);
        self.put64(header::NANOS_1, nanos);
        let used = self.used();
        if self.ring > 0 {
            self.put32(header::RING, self.ring_now(used));
        }
        let _growth = locked(&self.growth);
        self.grow(used, used + ahead(self.ring).max(used / 2));
    }

    /// Called by a thread that finds no room: whether there is some up to this end now.
    fn back_up_to(&self, end: u64, rest: bool) -> bool {
        let _growth = locked(&self.growth);
        let place = if rest { header::LIMIT } else { header::RESERVE };
        if self.get64(place) < end {
            self.grow(self.used(), end + AT_ONCE + end / RESERVE_SHARE);
        }
        self.get64(place) >= end
    }

    /// Moves the limit, as far as can be and at most to there. Only by who holds `growth`.
    fn grow(&self, used: u64, wanted: u64) {
        let limit = self.get64(header::LIMIT);
        // What is nearly used up is needed.
        let want = if used > limit / 2 { Want::Needed } else { Want::Ahead };
        let wanted = wanted.min(self.pages.for_trees(want)) & !(PAGE as u64 - 1);
        // Less at a time where memory is short.
        let steps = [wanted, limit + AT_ONCE, limit + AHEAD / 32];
        let step = steps
            .into_iter()
            .filter(|step| limit < *step && *step <= wanted)
            .find_map(|step| self.pages.back(limit, step, want).ok());
        if let Some(limit) = step {
            self.set_limit(limit);
        } else if wanted > limit || wanted >= self.pages.for_trees(Want::Needed) {
            // Threads that find no room now make some of their own.
            self.put32(header::FULL, 1);
        }
    }

    /// Keeps the time in which all threads stood still out of their figures.
    pub fn add_pause(&self, ticks: u64) {
        self.word64(header::PAUSED).fetch_add(ticks, Ordering::AcqRel);
    }

    /// The time without pauses, which every clock leaves out by itself.
    pub fn unpaused(&self) -> u64 {
        ticks().wrapping_sub(self.get64(header::PAUSED))
    }

    pub fn trees(&self) -> u32 {
        self.get32(header::TREES)
    }

    /// Notes waits that nobody could tell from others, and threads that nobody looked at.
    pub fn note_waits(&self, doubted: usize, unseen: usize) {
        self.word64(header::DOUBTED).fetch_add(doubted as u64, Ordering::Relaxed);
        self.word64(header::UNSEEN).fetch_add(unseen as u64, Ordering::Relaxed);
    }

    /// Keeps time out of a tree's figures. Only while its thread cannot run.
    pub fn adjust(&self, tree: u64, ticks: u64) {
        let at = (tree as u32) as usize + tree::ADJUST;
        if tree >> 32 == self.base >> 32 && at as u64 + 8 <= self.pages.budget {
            self.word64(at).fetch_add(ticks, Ordering::AcqRel);
        }
    }

    fn set_limit(&self, limit: u64) {
        self.put64(header::LIMIT, limit);
        // Rings are taken whole, and nothing comes after them.
        let reserve = if self.ring > 0 { 0 } else { limit / RESERVE_SHARE };
        self.put64(header::RESERVE, limit - reserve);
    }

    /// The size of the next ring: what was asked for, as long as there is room for some more of
    /// them.
    fn ring_now(&self, used: u64) -> u32 {
        let most = self.pages.for_trees(Want::Needed);
        let part = (most.saturating_sub(used) / 8).max(ring::LEAST as u64);
        self.ring.min(1 << part.ilog2()) as u32
    }

    /// The agent's ring, before all others.
    fn make_own_ring(&self, first: u64) {
        let at = first as usize;
        self.put32(header::RING, self.ring_now(first));
        self.put32(header::AGENT_RING, at as u32);
        self.put32(at + ring::SIZE, OWN_RING as u32);
        self.put32(at + ring::MASK, OWN_RING as u32 - 1);
        self.put32(at + page::TREE, at as u32);
        self.put32(at + page::KIND, page::KIND_RING);
        self.put64(header::BUMP, first + PAGE as u64 + OWN_RING);
        *locked(&self.notes) = at;
    }

    /// Writes a record into the agent's ring, in a trace; one that finds no room is counted there.
    pub fn note(&self, kind: u8, time: u64, value: u32, depth: u32) {
        let notes = locked(&self.notes);
        let at = *notes;
        if at == 0 {
            return;
        }
        let head = self.get64(at + ring::HEAD);
        // The front end's word for how far it has come; what cannot be is taken for a full ring.
        let tail = self.get64((tails::AT + tails::of(at as u64)) as usize);
        if head.wrapping_sub(tail) >= OWN_RING {
            self.word64(at + ring::DROPPED).fetch_add(1, Ordering::AcqRel);
            return;
        }
        let place = at + PAGE + (head & (OWN_RING - 1)) as usize;
        let upper = u32::from(kind) << record::DEPTH_BITS | depth;
        self.put64(place, time);
        self.put64(place + 8, u64::from(upper) << 32 | u64::from(value));
        self.put64(at + ring::HEAD, head + ring::RECORD as u64);
    }

    /// Logs a name before its id can occur in a tree.
    pub fn log_name(&self, method: &MethodName, beside: u64) -> Result<(), NoRoom> {
        self.pages.log_name(method, beside)
    }

    fn word64(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the arena is mapped for as long as `self` lives, the offset is one of the
        // layout's and inside it, all of them are multiples of eight, and others access it
        // atomically too.
        unsafe { &*((self.base as usize + at) as *const AtomicU64) }
    }

    fn get64(&self, at: usize) -> u64 {
        self.word64(at).load(Ordering::Acquire)
    }

    fn put64(&self, at: usize, value: u64) {
        self.word64(at).store(value, Ordering::Release);
    }

    fn word32(&self, at: usize) -> &AtomicU32 {
        // SAFETY: as in `word64`, with multiples of four.
        unsafe { &*((self.base as usize + at) as *const AtomicU32) }
    }

    fn get32(&self, at: usize) -> u32 {
        self.word32(at).load(Ordering::Acquire)
    }

    fn put32(&self, at: usize, value: u32) {
        self.word32(at).store(value, Ordering::Release);
    }
}

impl Drop for Memory {
    /// Threads may be inside a probe at this very moment: the memory under them becomes zeros,
    /// which every path through the probes survives, and never goes away.
    fn drop(&mut self) {
        self.tick();
        self.pages.give_back(self.base);
    }
}

/// What is allocated beyond what is used, at least: room for some threads that begin at once.
fn ahead(ring: u64) -> u64 {
    AHEAD.max(16 * (ring + PAGE as u64))
}

/// The clock of the probes and the monotonic one, read together.
fn clocks() -> (u64, u64) {
    (super::clock::ticks(), super::clock::nanos())
}
