//! Counters of the kernel's performance events, as far as the tool asks for them from outside.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;
pub use tare_perf_events::Event;
use tare_perf_events::{Purpose, open};

/// An event that is being counted on one thread.
#[derive(Debug)]
pub struct Counter(File);

impl Counter {
    /// Counts from now on, in a thread (0 is the calling one); in the kernel's code only if asked
    /// for.
    pub fn open(event: Event, thread: u32, kernel: bool) -> io::Result<Self> {
        if !survives() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, FORBIDDEN));
        }
        open(event, thread, Purpose::Count, kernel).map(|fd| Counter(fd.into()))
    }

    /// What it has come to; it stays after the thread's end.
    pub fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

const FORBIDDEN: &str = "the seccomp filter that tare runs under kills a process that asks for \
                         perf events";

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
                tare_perf_events::try_nothing();
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
            "absent: this machine has no such counter, like most virtual machines".to_owned()
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
