//! The signal handler: where is this thread, and put it into the ring.
//!
//! It runs on any thread at any instruction, so: no allocation, no lock, no thread-local of ours,
//! no panic (nothing here indexes or unwraps), bounded work, errno kept. What it uses is found
//! through one pointer to the [`Shared`] part of the session; `INSIDE` counts those who may hold
//! it, and the session is taken down only when nobody does.
//!
//! System calls: `gettid`, twice `clock_gettime` of the thread's clock; for perf events one `ioctl`.
//! In wall-clock mode `clock_gettime` twice.

use super::engines;
use super::own;
use super::perf;
use crate::kernel;
use crate::signal_chain::Previous;
use crate::stacks::fault_guard::{self, LANDINGS};
use crate::stacks::frames::{Frame, Frames};
use crate::stacks::hotspot::Layout;
use crate::stacks::methods::IdLayout;
use crate::stacks::virtual_threads::VirtualIds;
use crate::stacks::walk::{FramePointers, Memory, NativeStep, Own, Place, Registers, Walker};
use crate::stream::ring::Ring;
use crate::stream::threads::{self, Record};
use crate::stream::traces::Traces;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use tare_arena::samples::{Counter, Sample, Special, State};
use tare_protocol::SampleEngine;
use tare_unwind::{Modules, Published};

/// What a session shares with its handlers.
pub struct Shared {
    pub ring: Ring,
    pub traces: Traces,
    pub layout: Layout,
    pub buffers: Buffers,
    pub engine: SampleEngine,
    pub wall: bool,
    pub native: bool,
    pub interval: AtomicU64,
    pub paused: AtomicBool,
    /// Methods in which a thread waits: their keys tell what it waits for.
    pub waits: [AtomicU64; WAITS],
    pub virtual_ids: VirtualIds,
    pub id_layout: IdLayout,
    /// What a signal costs its thread beside the handler, in nanoseconds.
    pub interruption: u64,
}

/// Methods that tell a state, at most.
pub const WAITS: usize = 8;

static SESSION: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static PREVIOUS: Previous = Previous::new();

/// Tables for unwinding native code, of the modules that are loaded now.
pub static MODULES: Published<Modules> = Published::new();

/// Puts the handler in for good: a signal of ours that is still pending when a session ends
/// would kill the JVM if nobody handled it. True if somebody had put another over it.
pub fn install() -> std::io::Result<bool> {
    PREVIOUS.install(kernel::SIGNAL, on_signal)
}

/// Lets handlers find the session; null ends that.
pub fn publish(shared: *mut Shared) {
    SESSION.store(shared, SeqCst);
}

/// Whether some handler may still use a session that is no longer published.
pub fn busy() -> bool {
    INSIDE.load(SeqCst) != 0
}

/// Memory for walking, one piece per landing of the guard.
pub struct Buffers {
    start: *mut Frame,
    /// Frames of a stack; each piece has room for one more and for native ones on top.
    depth: usize,
    taken: [AtomicU32; LANDINGS],
}

// SAFETY: a piece belongs to the one who took it by compare-and-swap.
unsafe impl Send for Buffers {}
// SAFETY: as above.
unsafe impl Sync for Buffers {}

impl Buffers {
    pub fn new(depth: usize) -> std::io::Result<Self> {
        let at = kernel::reserve(Self::bytes(depth))?;
        Ok(Buffers { start: at.cast(), depth, taken: [const { AtomicU32::new(0) }; LANDINGS] })
    }

    fn bytes(depth: usize) -> usize {
        LANDINGS * (depth + 1) * size_of::<Frame>()
    }

    /// A piece that nobody else has, until it is given back.
    pub fn take(&self, tid: u32) -> Option<(usize, Frames)> {
        let first = tid as usize % LANDINGS;
        for step in 0..LANDINGS {
            let index = (first + step) % LANDINGS;
            let free = self.taken.get(index)?;
            if free.load(Relaxed) == 0 && free.compare_exchange(0, tid, AcqRel, Relaxed).is_ok() {
                // SAFETY: this piece of the mapping is ours now, and has room for one frame
                // more than `depth`.
                let frames =
                    unsafe { Frames::new(self.start.add(index * (self.depth + 1)), self.depth) };
                return Some((index, frames));
            }
        }
        None
    }

    pub fn give_back(&self, index: usize) {
        if let Some(taken) = self.taken.get(index) {
            taken.store(0, Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; no handler is inside any more.
        unsafe { libc::munmap(self.start.cast(), Self::bytes(self.depth)) };
    }
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: glibc gives each thread an errno from its start on.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    INSIDE.fetch_add(1, SeqCst);
    // SAFETY: the kernel's arguments.
    let ours = unsafe { handle(info, context) };
    INSIDE.fetch_sub(1, SeqCst);
    if !ours {
        // SAFETY: the kernel's arguments. Without a handler before us the signal would have
        // ended the process; now it is ignored.
        unsafe { PREVIOUS.pass(signal, info, context) };
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Why a signal came.
enum Cause {
    Timer { overruns: u32 },
    Asked,
    Perf { fd: i32 },
}

/// # Safety
/// `info` is what the kernel passed to a handler.
unsafe fn cause(info: *const libc::siginfo_t) -> Option<Cause> {
    if info.is_null() {
        return None;
    }
    let at = info.cast::<u8>();
    // SAFETY: the kernel's structure: code at 8, overrun count of a timer at 20, payload or
    // descriptor at 24.
    let (code, overruns, value, fd) = unsafe {
        (
            at.add(8).cast::<i32>().read(),
            at.add(20).cast::<i32>().read(),
            at.add(24).cast::<usize>().read(),
            at.add(24).cast::<i32>().read(),
        )
    };
    match code {
        libc::SI_TIMER if value == kernel::cookie() => {
            Some(Cause::Timer { overruns: u32::try_from(overruns).unwrap_or(0) })
        }
        libc::SI_QUEUE if value == kernel::cookie() => Some(Cause::Asked),
        // What a descriptor has to say: "in" or, when it has signalled as often as asked, "hup".
        1..=6 => Some(Cause::Perf { fd }),
        _ => None,
    }
}

/// False when the signal is somebody else's.
///
/// # Safety
/// The arguments are those of a signal handler.
unsafe fn handle(info: *const libc::siginfo_t, context: *const c_void) -> bool {
    // SAFETY: see above.
    let Some(cause) = (unsafe { cause(info) }) else { return false };
    if let Cause::Perf { fd } = cause
        && own::is_watched(fd)
    {
        return true;
    }
    let tid = kernel::gettid();
    let record = threads::table().and_then(|table| table.find(tid));
    let _inside = record.map(Record::enter);
    if let Cause::Perf { fd } = cause
        && record.is_none_or(|record| record.fd.load(SeqCst) != fd)
    {
        return false;
    }
    // SAFETY: published by the session, which stays while somebody is inside.
    let Some(shared) = (unsafe { SESSION.load(SeqCst).as_ref() }) else {
        return true;
    };
    let Some(record) = record else {
        shared.ring.add(Counter::LostThread, 1);
        return true;
    };
    if shared.paused.load(Relaxed) {
        shared.ring.add(Counter::Late, 1);
        record.asked.store(0, Release);
        return true;
    }
    // SAFETY: the kernel's context.
    let registers = unsafe { registers(context) };
    let now = || kernel::clock(libc::CLOCK_THREAD_CPUTIME_ID);
    match cause {
        Cause::Timer { overruns } => {
            let interval = shared.interval.load(Relaxed);
            let began = now();
            shared.ring.add(Counter::Overruns, u64::from(overruns));
            let weight = interval.saturating_mul(u64::from(overruns) + 1);
            shared.sample(tid, record, &registers, weight, None);
            shared.own(now().saturating_sub(began));
        }
        Cause::Perf { fd } => {
            let began = now();
            let weight = shared.perf_weight(record, began);
            shared.sample(tid, record, &registers, weight, None);
            shared.own(now().saturating_sub(began));
            if record.fresh.swap(0, Relaxed) != 0 {
                let interval = shared.interval.load(Relaxed);
                perf::set_period(fd, engines::period(shared.engine, interval));
            }
            perf::enable_once(fd);
        }
        Cause::Asked => shared.asked(tid, record, &registers),
    }
    true
}

/// # Safety
/// `context` is what the kernel passed to a handler.
unsafe fn registers(context: *const c_void) -> Registers {
    // SAFETY: see above.
    let Some(context) = (unsafe { context.cast::<libc::ucontext_t>().as_ref() }) else {
        return Registers::default();
    };
    #[cfg(target_arch = "x86_64")]
    {
        let all = &context.uc_mcontext.gregs;
        let get = |index: c_int| all.get(index as usize).map_or(0, |value| value.cast_unsigned());
        Registers {
            place: Place { pc: get(libc::REG_RIP), sp: get(libc::REG_RSP), fp: get(libc::REG_RBP) },
            bcp: get(libc::REG_R13),
            method: get(libc::REG_RBX),
            thrown_at: get(libc::REG_RDX),
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let all = &context.uc_mcontext;
        let get = |index: usize| all.regs.get(index).copied().unwrap_or(0);
        Registers {
            place: Place { pc: all.pc, sp: all.sp, fp: get(29) },
            bcp: get(22),
            method: get(12),
            thrown_at: get(3),
        }
    }
}

/// Native frames by the tables of their modules; by frame pointers where there are none.
struct Tables<'a>(&'a Modules);

impl NativeStep for Tables<'_> {
    fn knows(&self, pc: u64) -> bool {
        self.0.find(pc).is_some()
    }

    fn step(&self, memory: &impl Memory, place: Place, leaf: bool) -> Option<Place> {
        struct Reads<'a, M>(&'a M);
        impl<M: Memory> tare_unwind::Memory for Reads<'_, M> {
            fn load(&mut self, address: u64) -> Option<u64> {
                self.0.word(address)
            }
        }
        let from = tare_unwind::Cursor {
            pc: place.pc,
            sp: place.sp,
            fp: place.fp,
            lr: 0,
            interrupted: leaf,
        };
        match tare_unwind::step(self.0, from, &mut Reads(memory)) {
            Ok(to) => Some(Place { pc: to.pc, sp: to.sp, fp: to.fp }),
            Err(tare_unwind::End::Bottom) => None,
            Err(_) => FramePointers.step(memory, place, leaf),
        }
    }
}

/// One walk, as the guard runs it.
struct Walk<'a> {
    shared: &'a Shared,
    modules: Option<&'a Modules>,
    thread: u64,
    /// The thread's own id.
    java_id: u64,
    /// Where the kernel has left its frames; zero for nowhere.
    pages: u64,
    /// How long it took to answer, if it was asked; then its state is wanted.
    answered_after: Option<u64>,
    registers: &'a Registers,
    frames: &'a mut Frames,
    /// What was found out beside the frames.
    found: Found,
}

/// What a walk tells of a thread beside its frames; what stands in it when a fault ends the walk
/// is what was known by then.
#[derive(Clone, Copy)]
struct Found {
    end: Option<Special>,
    /// The virtual thread that is mounted; zero for none.
    mounted: u64,
    /// What the thread did until it was interrupted, where that is asked for.
    state: State,
}

impl Walk<'_> {
    /// The virtual thread that is mounted, and what the thread did. HotSpot's thread is read like
    /// everything else: a thread that left the JVM while it was being found has none any more.
    fn facts(&self) -> (u64, State) {
        (self.mounted(), self.answered_after.map_or(State::Running, |after| self.state(after)))
    }

    /// The id of the virtual thread that is mounted on a thread, from where the JVM keeps it as a
    /// plain number, or from the object; zero when there is none.
    fn mounted(&self) -> u64 {
        match self.shared.layout.thread_owner_id {
            Some(offset) if self.thread != 0 && self.java_id != 0 => {
                let id = Own.word(self.thread.wrapping_add(offset));
                id.filter(|id| *id != self.java_id).unwrap_or(0)
            }
            Some(_) => 0,
            None => self.shared.virtual_ids.mounted(&Own, self.thread),
        }
    }

    /// What the thread did until it was interrupted.
    fn state(&self, answered_after: u64) -> State {
        if !in_system_call(self.registers.place.pc) {
            // A thread on a processor is interrupted at once; one that waits for a processor
            // must first get one.
            return if answered_after > PROMPT { State::Runnable } else { State::Running };
        }
        if self.thread == 0 {
            return State::SystemCall;
        }
        let layout = &self.shared.layout;
        let os = Own.word(self.thread.wrapping_add(layout.thread_os)).unwrap_or(0);
        match Own.int(os.wrapping_add(layout.os_state)) {
            Some(MONITOR_WAIT) => State::Blocked,
            Some(CONDVAR_WAIT | OBJECT_WAIT) => State::Waiting,
            _ => State::SystemCall,
        }
    }
}

extern "C" fn walk(argument: *mut c_void) {
    // SAFETY: `Shared::stack` passes a `Walk` that lives across the call.
    let Some(walk) = (unsafe { argument.cast::<Walk<'_>>().as_mut() }) else { return };
    if walk.pages != 0 {
        perf::kernel_frames(walk.pages, &Own, |address| {
            walk.frames.push(Frame::kernel(address));
        });
    }
    let layout = &walk.shared.layout;
    let (mounted, state) = walk.facts();
    // SAFETY: fields of the argument; volatile, because a fault may end the walk at any load.
    unsafe {
        ptr::write_volatile(&raw mut walk.found.mounted, mounted);
        ptr::write_volatile(&raw mut walk.found.state, state);
    }
    let top = match walk.thread {
        0 => None,
        thread => Own.word(thread.wrapping_add(layout.thread_stack_base)),
    };
    let top = top.unwrap_or(u64::MAX);
    let with_native = walk.shared.native;
    let ids = walk.shared.id_layout.rules();
    let end = match walk.modules {
        Some(modules) => {
            let native = &Tables(modules);
            let walker = Walker { layout, ids, memory: &Own, native, top, with_native };
            walker.walk(walk.thread, walk.registers, walk.frames)
        }
        None => {
            let native = &FramePointers;
            let walker = Walker { layout, ids, memory: &Own, native, top, with_native };
            walker.walk(walk.thread, walk.registers, walk.frames)
        }
    };
    // SAFETY: a field of the argument; volatile, because a fault may end the walk before.
    unsafe { ptr::write_volatile(&raw mut walk.found.end, end) };
}

impl Shared {
    /// The processor time that a perf event's signal stands for, in whole intervals: as many as
    /// have passed since the last sample, and at least the one that it tells of.
    fn perf_weight(&self, record: &Record, used: u64) -> u64 {
        let interval = self.interval.load(Relaxed).max(1);
        let charged = record.charged.load(Relaxed);
        let open = used.saturating_sub(charged);
        if self.engine == SampleEngine::PerfCycles {
            // Cycles come at any rate; only the clock knows the time.
            record.charged.store(used, Relaxed);
            return open;
        }
        let passed = ((open + interval / 2) / interval).max(1);
        record.charged.store(charged + passed * interval, Relaxed);
        self.ring.add(Counter::Overruns, passed - 1);
        passed * interval
    }

    /// Walks and records. `None` when the sample is lost, which is counted; else its trace.
    /// `answered_after` is the time that a thread which was asked took.
    fn sample(
        &self,
        tid: u32,
        record: &Record,
        registers: &Registers,
        weight: u64,
        answered_after: Option<u64>,
    ) -> Option<u32> {
        let Some((index, mut frames)) = self.buffers.take(tid) else {
            self.lose(Counter::LostBuffer, weight);
            return None;
        };
        let found = self.stack(index, tid, record, registers, answered_after, &mut frames);
        if let Some(end) = found.end {
            frames.end(end);
            self.ring.add_failure(end);
        }
        let cut = found.end == Some(Special::Cut);
        let state = match answered_after {
            Some(_) => self.refine(found.state, frames.as_slice()),
            None => found.state,
        };
        let trace = self.traces.intern(&self.ring, frames.as_slice(), cut);
        self.buffers.give_back(index);
        let sent = trace.filter(|trace| {
            self.ring.append_sample(&Sample {
                thread: record.number.load(Relaxed),
                time: kernel::monotonic(),
                weight,
                java_id: found.mounted,
                trace: *trace,
                state,
                unchanged: false,
            })
        });
        if sent.is_none() {
            self.lose(Counter::LostRing, weight);
            return None;
        }
        self.ring.add(Counter::Samples, 1);
        self.ring.add(Counter::Weight, weight);
        record.last_state.store(state as u8, Relaxed);
        sent
    }

    /// A sample has taken so long in its handler.
    fn own(&self, inside: u64) {
        self.ring.add(Counter::Own, inside + self.interruption);
    }

    fn lose(&self, why: Counter, weight: u64) {
        self.ring.add(why, 1);
        self.ring.add(Counter::LostWeight, weight);
    }

    fn stack(
        &self,
        index: usize,
        tid: u32,
        record: &Record,
        registers: &Registers,
        answered_after: Option<u64>,
        frames: &mut Frames,
    ) -> Found {
        let modules = MODULES.read(tid as usize);
        let mut job = Walk {
            shared: self,
            modules: modules.as_deref(),
            thread: record.thread.load(Relaxed),
            java_id: record.java_id.load(Relaxed),
            pages: record.pages.load(SeqCst),
            answered_after,
            registers,
            frames,
            found: Found { end: Some(Special::Fault), mounted: 0, state: State::Running },
        };
        let argument = (&raw mut job).cast();
        // SAFETY: `walk` calls nothing outside this library and owns nothing; what it has pushed
        // so far stays when it is ended by a fault.
        if !unsafe { fault_guard::run(index, tid, walk, argument) } {
            self.ring.add(Counter::Faults, 1);
        }
        // SAFETY: a field of ours; volatile because a fault may have ended the writer.
        unsafe { ptr::read_volatile(&raw const job.found) }
    }

    /// A thread was asked in wall-clock mode.
    fn asked(&self, tid: u32, record: &Record, registers: &Registers) {
        let now = kernel::monotonic();
        let last = record.last_time.swap(now, Relaxed);
        let after = now.saturating_sub(record.asked_at.load(Relaxed));
        let weight = now.saturating_sub(last);
        let trace = self.sample(tid, record, registers, weight, Some(after));
        record.last_trace.store(trace.unwrap_or(0), Relaxed);
        record.looked_at.store(now, Relaxed);
        record.settled.store(0, Relaxed);
        record.last_cpu.store(kernel::clock(libc::CLOCK_THREAD_CPUTIME_ID), Relaxed);
        record.asked.store(0, Release);
    }

    /// Waiting is waiting for something in particular when the innermost Java method says so.
    fn refine(&self, state: State, frames: &[Frame]) -> State {
        if !matches!(state, State::SystemCall | State::Waiting) {
            return state;
        }
        let java = tare_arena::samples::layout::frame::JAVA;
        let Some(leaf) = frames.iter().find(|frame| frame.kind == java) else { return state };
        let known = self.waits.iter().position(|key| key.load(Relaxed) == leaf.value);
        match known {
            Some(index) => WAIT_STATES.get(index).copied().unwrap_or(state),
            None => state,
        }
    }
}

/// States of HotSpot's `OSThread`; unchanged since they were introduced.
const MONITOR_WAIT: i32 = 3;
const CONDVAR_WAIT: i32 = 4;
const OBJECT_WAIT: i32 = 5;

/// A thread on a processor takes a signal well within this time, in nanoseconds.
const PROMPT: u64 = 300_000;

/// Whether a signal interrupted a system call: the kernel then leaves the thread at the
/// instruction, to call again, or right behind it.
#[cfg(target_arch = "x86_64")]
fn in_system_call(pc: u64) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let at = |pc: u64| [Own.byte(pc), Own.byte(pc.wrapping_add(1))] == SYSCALL.map(Some);
    // The two bytes before are read only where they are on the same page, which is mapped.
    at(pc) || (pc & 0xfff >= 2 && at(pc - 2))
}

#[cfg(target_arch = "aarch64")]
fn in_system_call(pc: u64) -> bool {
    const SVC: i32 = 0xd400_0001_u32.cast_signed();
    Own.int(pc) == Some(SVC) || (pc & 0xfff >= 4 && Own.int(pc - 4) == Some(SVC))
}

/// The states that go with `Shared::waits`.
pub const WAIT_STATES: [State; WAITS] = [
    State::Sleeping,
    State::Sleeping,
    State::Sleeping,
    State::Parked,
    State::Waiting,
    State::Waiting,
    State::Unknown,
    State::Unknown,
];
