//! The kernel's performance events, for both ends: what can be counted, and the one call that opens
//! an event on a thread. The tool counts with them, the agent samples.
//!
//! Whether the call may be tried at all, the callers decide: filters of system calls (seccomp) may
//! end whoever makes it. The tool tries it in a child first; the agent does not try it under a
//! filter unless the user asks for perf events by name.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// What can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Cycles,
    Instructions,
    CacheMisses,
    /// The processor's time of the thread, by the kernel's clock.
    CpuClock,
    PageFaults,
    ContextSwitches,
}

impl Event {
    /// The kernel's type and number of it.
    fn numbers(self) -> (u32, u64) {
        const HARDWARE: u32 = 0;
        const SOFTWARE: u32 = 1;
        match self {
            Event::Cycles => (HARDWARE, 0),
            Event::Instructions => (HARDWARE, 1),
            Event::CacheMisses => (HARDWARE, 3),
            Event::CpuClock => (SOFTWARE, 0),
            Event::PageFaults => (SOFTWARE, 2),
            Event::ContextSwitches => (SOFTWARE, 3),
        }
    }
}

/// What is to be done with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It counts from now on.
    Count,
    /// It tells whenever it has come so far, once it is switched on. Where kernel code counts, each
    /// record has the kernel's frames.
    Sample { period: u64 },
}

/// `perf_event_attr`, in its oldest form that has what we use.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
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

const CALLCHAIN: u64 = 1 << 5;
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

impl Attributes {
    fn new(event: Event, purpose: Purpose, kernel: bool) -> Self {
        let (kind, config) = event.numbers();
        let (period, sample_type, wakeup_events, of_purpose) = match purpose {
            Purpose::Count => (0, 0, 0, 0),
            Purpose::Sample { period } if kernel => {
                (period, CALLCHAIN, 1, DISABLED | EXCLUDE_CALLCHAIN_USER)
            }
            Purpose::Sample { period } => (period, 0, 1, DISABLED),
        };
        let hidden = if kernel { 0 } else { EXCLUDE_KERNEL };
        Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            period,
            sample_type,
            flags: EXCLUDE_HYPERVISOR | of_purpose | hidden,
            wakeup_events,
            ..Attributes::default()
        }
    }
}

/// Opens an event on a thread; zero is the calling one. Kernel code counts if `kernel` says so.
pub fn open(event: Event, thread: u32, purpose: Purpose, kernel: bool) -> io::Result<OwnedFd> {
    let attributes = Attributes::new(event, purpose, kernel);
    let fd = system_call(&raw const attributes, thread, CLOSE_ON_EXEC);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Makes the call without anything to open, to see whether a filter lets the caller live. Only
/// system calls are made, so that a child after `fork` may.
pub fn try_nothing() {
    system_call(std::ptr::null(), 0, 0);
}

fn system_call(attributes: *const Attributes, thread: u32, flags: libc::c_ulong) -> libc::c_long {
    // SAFETY: the pointer is null, which the kernel refuses, or refers to a structure of the
    // caller's that has the size that it names.
    unsafe { libc::syscall(libc::SYS_perf_event_open, attributes, thread, -1, -1, flags) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_of_the_kernel_is_what_was_meant() {
        assert_eq!(size_of::<Attributes>(), 72, "the second published size");
        let count = Attributes::new(Event::CacheMisses, Purpose::Count, false);
        assert_eq!((count.kind, count.config, count.size), (0, 3, 72));
        assert_eq!(count.flags, EXCLUDE_HYPERVISOR | EXCLUDE_KERNEL);
        assert_eq!((count.period, count.sample_type), (0, 0));
        let sample = Purpose::Sample { period: 7 };
        let clock = Attributes::new(Event::CpuClock, sample, true);
        assert_eq!((clock.kind, clock.config, clock.period), (1, 0, 7));
        assert_eq!(clock.flags, DISABLED | EXCLUDE_HYPERVISOR | EXCLUDE_CALLCHAIN_USER);
        assert_eq!((clock.sample_type, clock.wakeup_events), (CALLCHAIN, 1));
        let own = Attributes::new(Event::Cycles, sample, false);
        assert_eq!(own.flags, DISABLED | EXCLUDE_HYPERVISOR | EXCLUDE_KERNEL);
        assert_eq!(own.sample_type, 0);
    }
}
