//! The kernel's performance events, as far as the tool asks for them from outside.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::sync::OnceLock;

/// The fields of `perf_event_attr` that we set, at their fixed places; the kernel takes the
/// first published size of the structure from everyone.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    bp_type: u32,
    bp_addr: u64,
}

/// What can be counted: the kernel's type and number of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Cycles,
    Instructions,
    CacheMisses,
    CpuClock,
    PageFaults,
    ContextSwitches,
}

impl Event {
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

/// An event that is being counted on one thread.
#[derive(Debug)]
pub struct Counter(File);

const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: u32 = 8;

impl Counter {
    /// Counts from now on, in a thread (0 is the calling one); in the kernel's code only if asked for.
    pub fn open(event: Event, thread: u32, kernel: bool) -> io::Result<Self> {
        if !survives() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, FORBIDDEN));
        }
        let (kind, config) = event.numbers();
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            flags: EXCLUDE_HYPERVISOR | if kernel { 0 } else { EXCLUDE_KERNEL },
            ..Attributes::default()
        };
        // SAFETY: the structure has the size that it declares and lives across the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread,
                -1,
                -1,
                CLOSE_ON_EXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
        Ok(Counter(unsafe { File::from_raw_fd(fd as i32) }))
    }

    /// What it has come to; it stays after the thread's end.
    pub fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

const FORBIDDEN: &str = "the filter of system calls that tare runs under (seccomp) ends whoever \
                         asks for perf events";

/// Whether asking for perf events does not end us: some filters of system calls do that. Under a
/// filter a child tries it first; it costs the tool nothing, other than a JVM with its large heap.
fn survives() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let status = std::fs::read("/proc/self/status").unwrap_or_default();
        let free = status.split(|&b| b == b'\n').any(|line| line == b"Seccomp:\t0");
        free || child_survives()
    })
}

fn child_survives() -> bool {
    // SAFETY: the child only makes system calls, and ends: no lock that another thread may have
    // held is needed. It leaves no core file. The parent waits for it alone.
    unsafe {
        match libc::fork() {
            -1 => false,
            0 => {
                libc::prctl(libc::PR_SET_DUMPABLE, 0);
                libc::syscall(
                    libc::SYS_perf_event_open,
                    std::ptr::null::<Attributes>(),
                    0,
                    -1,
                    -1,
                    0,
                );
                libc::_exit(0)
            }
            child => {
                let mut how = 0;
                while libc::waitpid(child, &raw mut how, 0) < 0 {
                    if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                        return false;
                    }
                }
                libc::WIFEXITED(how)
            }
        }
    }
}

/// Why an event cannot be counted, for people.
pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            "absent: this machine offers no such counter, as most virtual machines".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            format!("absent: the kernel refuses it ({error}); see `tare doctor`")
        }
        _ => format!("absent: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_counted_or_there_is_a_reason() {
        for event in [Event::Instructions, Event::CacheMisses, Event::PageFaults] {
            match Counter::open(event, 0, false) {
                Ok(counter) => {
                    let before = counter.read().unwrap();
                    // So much that it is new memory, and not what another test has given back.
                    let touched = vec![1_u8; 64 << 20];
                    assert!(std::hint::black_box(touched).iter().step_by(1 << 10).all(|b| *b == 1));
                    let after = counter.read().unwrap();
                    assert!(after >= before, "{event:?}");
                    assert!(event == Event::CacheMisses || after > before, "{event:?}");
                }
                Err(error) => assert!(reason(&error).starts_with("absent: "), "{error}"),
            }
        }
    }
}
