//! The arena's memory: a file without a name, mapped at an address that says which session it is.
//!
//! Ranges of addresses are reserved and cut into slots of 4 GiB; each session takes the next one,
//! so that an address from an earlier session is told by its upper half. Slots are never given
//! back nor used again: frames that were active when a session ended still run probes with tokens
//! from it. After a session its slot is plain zero memory of which nothing is in use.
//!
//! Pages of the file are allocated before the probes may touch them: memory that cannot be had
//! makes the limit stay where it is, and not the program die.

use super::clock::ticks;
use super::headroom::Headroom;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tare_arena::layout::{
    self, Holds, PAGE, SLOT_BYTES, header, page, record, ring, threads, tree,
};
use tare_arena::{MethodName, NameLog};

/// Slots to ask for; fewer if the process may not have that many addresses.
const SLOTS: [u64; 4] = [64, 16, 4, 2];

/// What is allocated beyond what is used: at least this, and half of what is used. A program can
/// make contexts for some 200 MB in a second, and the agent looks every 20 ms if it gets the
/// processor; what it does not allocate in time is folded although there was room in the budget.
const AHEAD: u64 = 32 << 20;

/// Bytes of the agent's own ring in a trace: compilations of some ten thousand methods at once.
const OWN_RING: u64 = 1 << 20;

/// The smallest budget that makes sense: the table of threads and some trees.
pub const SMALLEST: u64 = 8 << 20;

/// The part of the memory that only "all the rest" nodes may take.
const RESERVE_SHARE: u64 = 16;

/// A node's last child is found by a signed distance of 32 bits.
const LARGEST: u64 = 1 << 31;

/// Every session leaves a mapping or two behind, of which a process may have some 65,000.
const SESSIONS: u32 = 4096;

static SLOTS_TAKEN: Mutex<Taken> = Mutex::new(Taken { range: None, sessions: 0 });

struct Taken {
    range: Option<Range>,
    sessions: u32,
}

/// Reserved addresses of which the first slots are taken.
struct Range {
    base: u64,
    slots: u64,
    next: u64,
}

impl Range {
    fn reserve() -> io::Result<Self> {
        for slots in SLOTS {
            let length = (slots + 1) * SLOT_BYTES;
            // SAFETY: a new mapping at an address that the kernel chooses; nothing can touch it.
            let at = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    length as usize,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if at != libc::MAP_FAILED {
                let base = (at as u64).next_multiple_of(SLOT_BYTES);
                return Ok(Range { base, slots, next: 0 });
            }
        }
        Err(io::Error::last_os_error())
    }
}

/// The memory of one session.
pub struct Memory {
    pub base: u64,
    pub session: u32,
    arena: File,
    budget: u64,
    headroom: Headroom,
    names: Mutex<Names>,
    /// In a trace: bytes of a thread's ring, and where the agent's is.
    ring: u64,
    notes: Mutex<usize>,
}

struct Names {
    file: File,
    log: NameLog,
}

/// What a session's arena holds.
#[derive(Clone, Copy)]
pub struct Shape {
    pub holds: Holds,
    pub roots: bool,
    pub cpu_time: bool,
    pub fold: bool,
    pub depth: u32,
    /// With samples: how far apart they are, and the seed of what is random in that.
    pub every: u32,
    pub random: Option<u64>,
    pub budget: u64,
    /// In a trace: bytes of a thread's ring.
    pub ring: u64,
    /// In a trace: nanoseconds that a thread may wait for room in its ring.
    pub wait: u64,
}

impl Memory {
    pub fn new(shape: Shape) -> io::Result<Self> {
        let budget = shape.budget.clamp(SMALLEST, LARGEST) & !(PAGE as u64 - 1);
        let arena = memfd(c"tare-arena")?;
        arena.set_len(budget)?;
        let names = Names { file: memfd(c"tare-names")?, log: NameLog::default() };
        names.file.write_all_at(&names.log.length().to_le_bytes(), 0)?;
        let (base, session) = take_slot()?;
        let headroom = Headroom::new();
        let names = Mutex::new(names);
        let ring = shape.ring;
        let notes = Mutex::new(0);
        let memory = Memory { base, session, arena, budget, headroom, names, ring, notes };
        let first = (threads::AT + threads::BYTES).next_multiple_of(PAGE) as u64;
        // Less to begin with where memory is short; too little even for that is an error.
        let limit = [memory.ahead(), AHEAD / 8]
            .map(|ahead| (first + ahead).min(budget))
            .into_iter()
            .find(|limit| memory.allocate(0, *limit).is_ok())
            .ok_or_else(|| io::Error::other("the container has too little memory left"))?;
        memory.map(libc::MAP_SHARED, memory.arena.as_raw_fd())?;
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
        if ring > 0 {
            memory.make_own_ring(first);
        }
        memory.put64(header::WAIT, shape.wait);
        memory.put32(header::EVERY, shape.every);
        memory.put32(header::RANDOM, u32::from(shape.random.is_some()));
        memory.put64(header::SEED, shape.random.unwrap_or(0));
        memory.set_limit(limit);
        let (ticks, nanos) = clocks();
        memory.put64(header::TICKS_0, ticks);
        memory.put64(header::NANOS_0, nanos);
        memory.tick();
        Ok(memory)
    }

    /// The descriptors for a front end: trees, names.
    pub fn files(&self) -> io::Result<[File; 2]> {
        Ok([self.arena.try_clone()?, self.lock_names().file.try_clone()?])
    }

    pub fn used(&self) -> u64 {
        self.get64(header::BUMP)
    }

    pub fn budget(&self) -> u64 {
        self.budget
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
        let limit = self.get64(header::LIMIT);
        let wanted = (used + self.ahead().max(used / 2)).min(self.budget) & !(PAGE as u64 - 1);
        // Less at a time where memory is short.
        let steps = [wanted, limit + AHEAD / 8, limit + AHEAD / 32];
        let step = steps
            .into_iter()
            .filter(|step| limit < *step && *step <= wanted)
            .find(|step| self.allocate(limit, step - limit).is_ok());
        if let Some(limit) = step {
            self.set_limit(limit);
        } else if wanted > limit || wanted == self.budget {
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
        if tree >> 32 == self.base >> 32 && at as u64 + 8 <= self.budget {
            self.word64(at).fetch_add(ticks, Ordering::AcqRel);
        }
    }

    fn set_limit(&self, limit: u64) {
        self.put64(header::LIMIT, limit);
        // Rings are taken whole, and nothing comes after them.
        let reserve = if self.ring > 0 { 0 } else { limit / RESERVE_SHARE };
        self.put64(header::RESERVE, limit - reserve);
    }

    /// What is allocated beyond what is used, at least: room for some threads that begin at once.
    fn ahead(&self) -> u64 {
        AHEAD.max(16 * (self.ring + PAGE as u64))
    }

    /// The size of the next ring: what was asked for, as long as there is room for some more of them.
    fn ring_now(&self, used: u64) -> u32 {
        let part = (self.budget.saturating_sub(used) / 8).max(ring::LEAST as u64);
        self.ring.min(1 << part.ilog2()) as u32
    }

    /// The agent's ring, before all others.
    fn make_own_ring(&self, first: u64) {
        let at = first as usize;
        self.put32(header::RING, self.ring_now(first));
        self.put32(header::AGENT_RING, at as u32);
        self.put32(at + ring::SIZE, OWN_RING as u32);
        self.put32(at + page::TREE, at as u32);
        self.put32(at + page::KIND, page::KIND_RING);
        self.put64(header::BUMP, first + PAGE as u64 + OWN_RING);
        *self.notes.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = at;
    }

    /// Writes a record into the agent's ring, in a trace; one that finds no room is counted there.
    pub fn note(&self, kind: u8, time: u64, value: u32, depth: u32) {
        let notes = self.notes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let at = *notes;
        if at == 0 {
            return;
        }
        let head = self.get64(at + ring::HEAD);
        if head.saturating_sub(self.get64(at + ring::TAIL)) >= OWN_RING {
            self.word64(at + ring::DROPPED).fetch_add(1, Ordering::AcqRel);
            return;
        }
        let place = at + PAGE + (head & (OWN_RING - 1)) as usize;
        let upper = u32::from(kind) << record::DEPTH_BITS | depth;
        self.put64(place, time);
        self.put64(place + 8, u64::from(upper) << 32 | u64::from(value));
        self.put64(at + ring::HEAD, head + ring::RECORD as u64);
    }

    /// Makes pages of the file real. Fails, instead of the program later, when there are none.
    fn allocate(&self, at: u64, length: u64) -> io::Result<()> {
        if !self.headroom.allows(length) {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        // SAFETY: no pointers.
        let code = unsafe {
            libc::fallocate(
                self.arena.as_raw_fd(),
                0,
                at.cast_signed() as libc::off_t,
                length.cast_signed() as libc::off_t,
            )
        };
        if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Logs a name before its id can occur in a tree.
    pub fn log_name(&self, method: &MethodName) -> io::Result<()> {
        let mut names = self.lock_names();
        let at = names.log.length();
        let record = names.log.append(method);
        names.file.write_all_at(&record, at)?;
        names.file.write_all_at(&names.log.length().to_le_bytes(), 0)
    }

    fn lock_names(&self) -> std::sync::MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn map(&self, flags: libc::c_int, fd: libc::c_int) -> io::Result<()> {
        // SAFETY: the addresses are inside the range that we reserved and never gave back.
        let at = unsafe {
            libc::mmap(
                self.base as *mut libc::c_void,
                self.budget as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_FIXED,
                fd,
                0,
            )
        };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn word64(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the arena is mapped for as long as `self` lives, the offset is one of the layout's
        // and inside it, all of them are multiples of eight, and others access it atomically too.
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
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let _ = self.map(flags, -1);
    }
}

/// Addresses that no session had before, and the session's number.
fn take_slot() -> io::Result<(u64, u32)> {
    let mut taken = SLOTS_TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if taken.sessions == SESSIONS {
        return Err(io::Error::other(format!(
            "this JVM has had {SESSIONS} exact recordings, and no more addresses for another; \
             it needs a restart"
        )));
    }
    let range = match taken.range.take() {
        Some(range) if range.next < range.slots => range,
        _ => Range::reserve()?,
    };
    let base = range.base + range.next * SLOT_BYTES;
    taken.range = Some(Range { next: range.next + 1, ..range });
    taken.sessions += 1;
    Ok((base, taken.sessions))
}

fn memfd(name: &std::ffi::CStr) -> io::Result<File> {
    // SAFETY: a NUL-terminated name; a non-negative result is a descriptor that nobody else owns.
    unsafe {
        match libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

/// The clock of the probes and the monotonic one, read together.
fn clocks() -> (u64, u64) {
    (super::clock::ticks(), super::clock::nanos())
}
