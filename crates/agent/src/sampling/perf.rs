//! Perf events of the kernel: opened on a thread, which they signal. Reading the frames that they
//! leave is `stacks/kernel_frames`.

use crate::kernel::SIGNAL;
use std::io;

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

mod number {
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
pub fn open(tid: u32, event: PerfEvent, period: u64, kernel: bool) -> io::Result<i32> {
    let (kind, config) = match event {
        PerfEvent::Cycles => (number::HARDWARE, number::CYCLES),
        PerfEvent::Clock => (number::SOFTWARE, number::CPU_CLOCK),
    };
    let hidden = if kernel { number::EXCLUDE_CALLCHAIN_USER } else { number::EXCLUDE_KERNEL };
    let attributes = PerfAttributes {
        kind,
        size: size_of::<PerfAttributes>() as u32,
        config,
        period,
        sample_type: if kernel { number::CALLCHAIN } else { 0 },
        flags: number::DISABLED | number::EXCLUDE_HYPERVISOR | hidden,
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
            number::CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = fd as i32;
    if let Err(e) = signal_its_thread(fd, tid) {
        close(fd);
        return Err(e);
    }
    Ok(fd)
}

/// Has the event signal its thread.
fn signal_its_thread(fd: i32, tid: u32) -> io::Result<()> {
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

/// Lets the event run until it has signalled once more.
pub fn enable_once(fd: i32) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::ioctl(fd, number::ENABLE_ONCE, 1) == 0 }
}

pub fn disable(fd: i32) {
    // SAFETY: no pointers.
    unsafe { libc::ioctl(fd, number::DISABLE, 0) };
}

pub fn set_period(fd: i32, period: u64) {
    // SAFETY: the pointer refers to a local.
    unsafe { libc::ioctl(fd, number::PERIOD, &raw const period) };
}

pub fn close(fd: i32) {
    // SAFETY: the caller's own descriptor.
    unsafe { libc::close(fd) };
}
