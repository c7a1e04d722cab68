//! The signal handler: where is this thread, and put it into the ring.
//!
//! It runs on any thread at any instruction, so: no allocation, no lock, no thread-local of ours,
//! no panic (nothing here indexes or unwraps), bounded work, errno kept. What it uses is found
//! through one pointer to the [`Shared`] part of the session; `INSIDE` counts those who may hold
//! it, and the session is taken down only when nobody does.
//!
//! System calls: `gettid`, twice `clock_gettime` of the thread's clock; for perf events one
//! `ioctl`. In wall-clock mode `clock_gettime` twice.

use super::armer;
use super::interruption;
use super::perf;
use crate::kernel;
use crate::locks::owner;
use crate::signal_chain::Previous;
use crate::stacks::frames::Frame;
use crate::stacks::native::Place;
use crate::stacks::take::Caller;
use crate::stacks::walk::Registers;
use crate::stream::Stream;
use crate::stream::threads::{self, Record};
use crate::threads::stalled::asked;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use tare_arena::samples::{Counter, Sample, Special, State};
use tare_protocol::SampleTrigger;

/// What a session shares with its handlers.
pub struct Shared {
    pub stream: Arc<Stream>,
    pub trigger: SampleTrigger,
    pub wall: bool,
    pub interval: AtomicU64,
    pub paused: AtomicBool,
    /// Methods in which a thread waits: their keys tell what it waits for.
    pub waits: [AtomicU64; WAITS],
    /// What a signal costs its thread beside the handler, in nanoseconds.
    pub interruption: u64,
}

/// Methods that tell a state, at most.
pub const WAITS: usize = 8;

static SESSION: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static PREVIOUS: Previous = Previous::new();

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
    Timer {
        overruns: u32,
    },
    Asked,
    Perf {
        fd: i32,
    },
    /// A lock is waited for that the thread has.
    Owner,
    /// A safepoint is waited for that the thread does not reach.
    Stalled,
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
        libc::SI_QUEUE if owner::is_question(value) => Some(Cause::Owner),
        libc::SI_QUEUE if asked::is_question(value) => Some(Cause::Stalled),
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
        && interruption::is_watched(fd)
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
    // SAFETY: the kernel's context.
    let registers = unsafe { registers(context) };
    owner::answer(tid, record, &registers);
    asked::answer(tid, &registers);
    // SAFETY: published by the session, which stays while somebody is inside.
    let Some(shared) = (unsafe { SESSION.load(SeqCst).as_ref() }) else {
        return true;
    };
    let Some(record) = record else {
        if !matches!(cause, Cause::Stalled) {
            shared.stream.ring.add(Counter::LostThread, 1);
        }
        return true;
    };
    if shared.paused.load(Relaxed) {
        if !matches!(cause, Cause::Owner | Cause::Stalled) {
            shared.stream.ring.add(Counter::Late, 1);
        }
        record.asked.store(0, Release);
        return true;
    }
    let now = || kernel::clock(libc::CLOCK_THREAD_CPUTIME_ID);
    match cause {
        Cause::Timer { overruns } => {
            let interval = shared.interval.load(Relaxed);
            let began = now();
            shared.stream.ring.add(Counter::Overruns, u64::from(overruns));
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
                perf::set_period(fd, armer::period(shared.trigger, interval));
            }
            perf::enable_once(fd);
        }
        Cause::Asked => shared.asked(tid, record, &registers),
        // The kernel keeps one signal for a thread. What the sampler has sent may have come to
        // nothing while this one was on its way.
        Cause::Owner | Cause::Stalled => {
            if record.asked.load(Acquire) != 0 {
                shared.asked(tid, record, &registers);
            }
            let fd = record.fd.load(SeqCst);
            if fd >= 0 {
                perf::enable_once(fd);
            }
        }
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

impl Shared {
    /// The processor time that a perf event's signal stands for, in whole intervals: as many as
    /// have passed since the last sample, and at least the one that it tells of.
    fn perf_weight(&self, record: &Record, used: u64) -> u64 {
        let interval = self.interval.load(Relaxed).max(1);
        let charged = record.charged.load(Relaxed);
        let open = used.saturating_sub(charged);
        if self.trigger == SampleTrigger::PerfCycles {
            // Cycles come at any rate; only the clock knows the time.
            record.charged.store(used, Relaxed);
            return open;
        }
        let passed = ((open + interval / 2) / interval).max(1);
        record.charged.store(charged + passed * interval, Relaxed);
        self.stream.ring.add(Counter::Overruns, passed - 1);
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
        let stacks = &self.stream.stacks;
        let Some((index, mut frames)) = stacks.buffers.take(tid) else {
            self.lose(Counter::LostBuffer, weight);
            return None;
        };
        let caller = Caller {
            tid,
            thread: record.thread.load(Relaxed),
            java_id: record.java_id.load(Relaxed),
            kernel_records: record.pages.load(SeqCst),
            answered_after,
            registers,
        };
        let found = stacks.take(index, caller, &mut frames);
        if found.faulted {
            self.stream.ring.add(Counter::Faults, 1);
        }
        if let Some(end) = found.end {
            frames.end(end);
            self.stream.ring.add_failure(end);
        }
        let cut = found.end == Some(Special::Cut);
        let state = match answered_after {
            Some(_) => self.refine(found.state, frames.as_slice()),
            None => found.state,
        };
        let trace = self.stream.intern(frames.as_slice(), cut);
        stacks.buffers.give_back(index);
        let sent = trace.filter(|trace| {
            self.stream.ring.append_sample(&Sample {
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
        self.stream.ring.add(Counter::Samples, 1);
        self.stream.ring.add(Counter::Weight, weight);
        record.last_state.store(state as u8, Relaxed);
        sent
    }

    /// A sample has taken so long in its handler.
    fn own(&self, inside: u64) {
        self.stream.ring.add(Counter::Own, inside + self.interruption);
    }

    fn lose(&self, why: Counter, weight: u64) {
        self.stream.ring.add(why, 1);
        self.stream.ring.add(Counter::LostWeight, weight);
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
