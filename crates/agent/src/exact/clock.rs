//! What the probes take for time, and the clocks behind it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the session that is on measures the processor's time.
static CPU_TIME: AtomicBool = AtomicBool::new(false);

pub fn set_cpu_time(on: bool) {
    CPU_TIME.store(on, Relaxed);
}

/// What the probes take for time: ticks of the processor's counter, or the nanoseconds that the
/// calling thread has spent on a processor.
pub fn probe_clock() -> u64 {
    if CPU_TIME.load(Relaxed) { clock_ns(libc::CLOCK_THREAD_CPUTIME_ID) } else { ticks() }
}

/// The processor's own counter, where there is one that can be used.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has this instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    nanos()
}

pub fn nanos() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// How fast the processor's counter runs, to a percent or so.
pub fn ticks_per_nano() -> f64 {
    const WHILE: u64 = 100_000;
    let (begun, from) = (nanos(), ticks());
    loop {
        let (now, to) = (nanos(), ticks());
        let passed = now.saturating_sub(begun);
        if passed >= WHILE {
            return to.saturating_sub(from) as f64 / passed as f64;
        }
    }
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local; the clocks that we name always exist on Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
