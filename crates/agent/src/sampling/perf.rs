//! Perf events of the kernel: opened on a thread, which they signal. Reading the frames that they
//! leave is `stacks/kernel_frames`.

use crate::kernel::SIGNAL;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use tare_perf_events::{Event, Purpose};

const ENABLE_ONCE: libc::c_ulong = 0x2402;
const DISABLE: libc::c_ulong = 0x2401;
const PERIOD: libc::c_ulong = 0x4008_2404;

/// Opens an event on a thread, switched off. With `kernel`, kernel code counts, and its frames
/// are recorded.
pub fn open(tid: u32, event: Event, period: u64, kernel: bool) -> io::Result<i32> {
    let fd = tare_perf_events::open(event, tid, Purpose::Sample { period }, kernel)?;
    signal_its_thread(fd.as_raw_fd(), tid)?;
    Ok(fd.into_raw_fd())
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
    unsafe { libc::ioctl(fd, ENABLE_ONCE, 1) == 0 }
}

pub fn disable(fd: i32) {
    // SAFETY: no pointers.
    unsafe { libc::ioctl(fd, DISABLE, 0) };
}

pub fn set_period(fd: i32, period: u64) {
    // SAFETY: the pointer refers to a local.
    unsafe { libc::ioctl(fd, PERIOD, &raw const period) };
}

pub fn close(fd: i32) {
    // SAFETY: the caller's own descriptor.
    unsafe { libc::close(fd) };
}
