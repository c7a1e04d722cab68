//! What we ask of the kernel: clocks, timers on a thread's processor clock, signals to a thread,
//! limits, memory. Perf events are `sampling/perf`.
//!
//! Raw system calls where glibc's wrappers would keep a table or a lock of their own.

use std::io;
use std::mem;
use std::sync::atomic::AtomicU8;

/// The signal by which threads are asked where they are: one that Linux has kept for decades and
/// nobody uses. SIGPROF is every other profiler's: signals of ours that came late, after their
/// descriptor was closed and its number given to a file of the program, would reach handlers that
/// read from it (async-profiler's does), and JFR would count our timers as its own. A real-time
/// signal would not do: when no more of them can be queued, the kernel sends SIGIO for a perf
/// event, which ends the process.
pub const SIGNAL: libc::c_int = libc::SIGSTKFLT;

/// In the payload of our signals, to tell them from others': an address nobody else has.
static COOKIE: AtomicU8 = AtomicU8::new(0);

pub fn cookie() -> usize {
    (&raw const COOKIE) as usize
}

pub fn gettid() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Whether this process has a thread of that number. One of which the kernel does not tell counts as
/// there.
pub fn exists(tid: u32) -> bool {
    // SAFETY: no memory is passed, and signal 0 is none.
    let asked = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) };
    asked == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Lets the calling thread, which is ours, have our signal.
pub fn unblock() {
    // SAFETY: a local, initialised by the first call.
    unsafe {
        let mut ours: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut ours);
        libc::sigaddset(&raw mut ours, SIGNAL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const ours, std::ptr::null_mut());
    }
}

/// The processor clock of a thread of this process.
pub fn thread_clock(tid: u32) -> libc::clockid_t {
    // As the kernel composes it: the negated id, "per thread", "scheduler's clock".
    (!tid.cast_signed() << 3) | 6
}

/// The processor clock of a process.
pub fn process_clock(pid: libc::pid_t) -> libc::clockid_t {
    // The same without "per thread".
    (!pid << 3) | 2
}

/// A clock in nanoseconds; zero if there is no such clock (any more).
pub fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local.
    if unsafe { libc::clock_gettime(id, &raw mut time) } != 0 {
        return 0;
    }
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

pub fn monotonic() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

fn spec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    }
}

/// The kernel's own event description; glibc's has a union that the bindings lack.
#[repr(C)]
struct SignalEvent {
    value: usize,
    signal: i32,
    notify: i32,
    tid: i32,
    spare: [i32; 11],
}

/// A timer that signals a thread each time it has used `interval` of processor time; the first
/// time after `first`.
pub fn create_timer(tid: u32, first: u64, interval: u64) -> io::Result<i32> {
    let mut event = SignalEvent {
        value: cookie(),
        signal: SIGNAL,
        notify: libc::SIGEV_THREAD_ID,
        tid: tid.cast_signed(),
        spare: [0; 11],
    };
    let mut timer: i32 = -1;
    // SAFETY: the structures are locals of the kernel's layout.
    let code = unsafe {
        libc::syscall(libc::SYS_timer_create, thread_clock(tid), &raw mut event, &raw mut timer)
    };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    if let Err(e) = set_timer(timer, first, interval) {
        delete_timer(timer);
        return Err(e);
    }
    Ok(timer)
}

/// Sets the times of a timer; zeros stop it.
pub fn set_timer(timer: i32, first: u64, interval: u64) -> io::Result<()> {
    let times = libc::itimerspec { it_interval: spec(interval), it_value: spec(first) };
    // SAFETY: the pointer refers to a local.
    let code = unsafe {
        libc::syscall(
            libc::SYS_timer_settime,
            timer,
            0,
            &raw const times,
            std::ptr::null_mut::<libc::itimerspec>(),
        )
    };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub fn delete_timer(timer: i32) {
    // SAFETY: no pointers; a number that is no timer is an error without effect.
    unsafe { libc::syscall(libc::SYS_timer_delete, timer) };
}

/// Asks a thread of this process where it is. False when it is gone or the queue is full.
pub fn ask(tid: u32) -> bool {
    ask_with(tid, cookie())
}

/// The same with a payload of the caller's.
pub fn ask_with(tid: u32, payload: usize) -> bool {
    queue(tid, SIGNAL, payload).is_ok()
}

/// Whether threads can be asked: a filter of system calls may deny it. Sends nothing.
pub fn may_ask() -> io::Result<()> {
    queue(gettid(), 0, cookie())
}

fn queue(tid: u32, signal: i32, payload: usize) -> io::Result<()> {
    // SAFETY: all zeros is a valid description; the fields are at the kernel's places: code at
    // 8, process at 16, user at 20, value at 24.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let at = (&raw mut info).cast::<u8>();
        at.cast::<i32>().write(signal);
        at.add(8).cast::<i32>().write(libc::SI_QUEUE);
        at.add(16).cast::<i32>().write(libc::getpid());
        at.add(20).cast::<u32>().write(libc::getuid());
        at.add(24).cast::<usize>().write(payload);
        let pid = libc::getpid();
        match libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, &raw mut info) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// New memory of zeros, whose pages are backed when they are first used.
pub fn reserve(bytes: usize) -> io::Result<*mut libc::c_void> {
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at) }
}

/// A quarter of a limit of this process: what we allow ourselves.
pub fn quarter(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes to a local.
    if unsafe { libc::getrlimit(resource, &raw mut limit) } != 0 {
        return 0;
    }
    limit.rlim_cur / 4
}
