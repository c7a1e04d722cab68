//! What we ask of the kernel: timers on a thread's processor clock, perf events, clocks, limits, memory.
//!
//! Raw system calls where glibc's wrappers would keep a table or a lock of their own.

use std::io;
use std::mem;
use std::sync::atomic::AtomicU8;

/// The signal by which threads are asked where they are: one that Linux has kept for decades and
/// nobody uses. SIGPROF is every other profiler's: signals of ours that came late, after their
/// descriptor was closed and its number given to a file of the program, would reach handlers that read from it
/// (async-profiler's does), and JFR would count our timers as its own. A real-time signal
/// would not do: when no more of them can be queued, the kernel sends SIGIO for a perf event,
/// which ends the process.
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
    queue(tid, SIGNAL).is_ok()
}

/// Whether threads can be asked: a filter of system calls may deny it. Sends nothing.
pub fn may_ask() -> io::Result<()> {
    queue(gettid(), 0)
}

fn queue(tid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: all zeros is a valid description; the fields are at the kernel's places: code at
    // 8, process at 16, user at 20, value at 24.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let at = (&raw mut info).cast::<u8>();
        at.cast::<i32>().write(signal);
        at.add(8).cast::<i32>().write(libc::SI_QUEUE);
        at.add(16).cast::<i32>().write(libc::getpid());
        at.add(20).cast::<u32>().write(libc::getuid());
        at.add(24).cast::<usize>().write(cookie());
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

/// Which perf event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfEvent {
    Cycles,
    Clock,
}

/// `perf_event_attr`, in its oldest form that has what we use.
#[repr(C)]
#[derive(Default)]
struct PerfAttributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
}

mod perf {
    pub const HARDWARE: u32 = 0;
    pub const SOFTWARE: u32 = 1;
    pub const CYCLES: u64 = 0;
    pub const CPU_CLOCK: u64 = 0;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const DISABLED: u64 = 1;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    pub const ENABLE_ONCE: libc::c_ulong = 0x2402;
    pub const DISABLE: libc::c_ulong = 0x2401;
    pub const PERIOD: libc::c_ulong = 0x4008_2404;
}

/// Opens an event on a thread, switched off. With `kernel`, kernel code counts, and its frames
/// are recorded.
pub fn open_perf(tid: u32, event: PerfEvent, period: u64, kernel: bool) -> io::Result<i32> {
    let (kind, config) = match event {
        PerfEvent::Cycles => (perf::HARDWARE, perf::CYCLES),
        PerfEvent::Clock => (perf::SOFTWARE, perf::CPU_CLOCK),
    };
    let hidden = if kernel { perf::EXCLUDE_CALLCHAIN_USER } else { perf::EXCLUDE_KERNEL };
    let attributes = PerfAttributes {
        kind,
        size: size_of::<PerfAttributes>() as u32,
        config,
        period,
        sample_type: if kernel { perf::CALLCHAIN } else { 0 },
        flags: perf::DISABLED | perf::EXCLUDE_HYPERVISOR | hidden,
        wakeup_events: 1,
        ..PerfAttributes::default()
    };
    // SAFETY: the pointer refers to a local of the size that it names.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            tid,
            -1,
            -1,
            perf::CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = fd as i32;
    if let Err(e) = own_perf(fd, tid) {
        close(fd);
        return Err(e);
    }
    Ok(fd)
}

/// Has the event signal its thread.
fn own_perf(fd: i32, tid: u32) -> io::Result<()> {
    #[repr(C)]
    struct Owner {
        kind: i32,
        pid: i32,
    }
    const F_SETSIG: i32 = 10;
    const F_SETOWN_EX: i32 = 15;
    const F_OWNER_TID: i32 = 0;
    let owner = Owner { kind: F_OWNER_TID, pid: tid.cast_signed() };
    // SAFETY: a descriptor of ours, and a pointer to a local.
    let done = unsafe {
        libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC) == 0
            && libc::fcntl(fd, F_SETSIG, SIGNAL) == 0
            && libc::fcntl(fd, F_SETOWN_EX, &raw const owner) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Bytes of the memory in which the kernel leaves records of an event: a page about the rest, and
/// one of records, which is enough because each record is read at once.
const RECORDS: usize = 8192;

/// Has the kernel leave the event's records in memory; zero when it does not want to.
pub fn map_records(fd: i32) -> u64 {
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            RECORDS,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            fd,
            0,
        )
    };
    if at == libc::MAP_FAILED { 0 } else { at as u64 }
}

pub fn unmap_records(at: u64) {
    // SAFETY: a mapping of ours of this length, which no handler uses any more.
    unsafe { libc::munmap(at as *mut libc::c_void, RECORDS) };
}

/// Calls `push` with the kernel's frames in the newest record, the innermost first, and marks all
/// records as read. The mapping stays while its thread is inside the handler.
pub fn kernel_frames(at: u64, memory: &impl super::walk::Memory, mut push: impl FnMut(u64)) {
    const HEAD: u64 = 1024;
    const TAIL: u64 = 1032;
    const DATA: u64 = 4096;
    const SAMPLE: u32 = 9;
    /// Not addresses but words about those that follow; all are above this.
    const CONTEXTS: u64 = -4095_i64 as u64;
    let (Some(head), Some(mut tail)) = (memory.word(at + HEAD), memory.word(at + TAIL)) else {
        return;
    };
    std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
    let word = |position: u64| memory.word(at + DATA + position % 4096);
    let mut newest = None;
    while tail < head {
        let Some(header) = word(tail) else { break };
        let size = header >> 48;
        if size < 8 {
            break;
        }
        if header as u32 == SAMPLE {
            newest = Some(tail);
        }
        tail += size;
    }
    if let Some(record) = newest {
        let count = word(record + 8).unwrap_or(0).min(512);
        for index in 0..count {
            match word(record + 16 + 8 * index) {
                Some(address) if address < CONTEXTS => push(address),
                Some(_) => {}
                None => break,
            }
        }
    }
    std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
    // SAFETY: the field through which the kernel learns what was read, in a mapping that stays.
    unsafe { std::ptr::write_volatile((at + TAIL) as *mut u64, head) };
}

/// Lets the event run until it has signalled once more.
pub fn enable_perf_once(fd: i32) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::ioctl(fd, perf::ENABLE_ONCE, 1) == 0 }
}

pub fn disable_perf(fd: i32) {
    // SAFETY: no pointers.
    unsafe { libc::ioctl(fd, perf::DISABLE, 0) };
}

pub fn set_perf_period(fd: i32, period: u64) {
    // SAFETY: the pointer refers to a local.
    unsafe { libc::ioctl(fd, perf::PERIOD, &raw const period) };
}

pub fn close(fd: i32) {
    // SAFETY: the caller's own descriptor.
    unsafe { libc::close(fd) };
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
