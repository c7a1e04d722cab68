//! The addresses of sessions. Ranges are reserved and cut into slots of 4 GiB; each session takes
//! the next one, so that an address from an earlier session is told by its upper half. Slots are
//! never given back nor used again: frames that were active when a session ended still run probes
//! with tokens from it. After a session its part of the slot is plain zero memory of which nothing
//! is in use.

use crate::gate;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tare_arena::layout::SLOT_BYTES;

/// Slots to ask for; fewer if the process may not have that many addresses.
const SLOTS: [u64; 4] = [64, 16, 4, 2];

/// Every session leaves a mapping or two behind, of which a process may have some 65,000.
const SESSIONS: u32 = 4096;

/// The smallest that there are; where they are larger, fewer are asked for.
const PAGE: u64 = 4096;

static TAKEN: Mutex<Taken> = Mutex::new(Taken { range: None, sessions: 0, left: Vec::new() });

struct Taken {
    range: Option<Range>,
    sessions: u32,
    /// Memory of sessions that have ended, which could not be given back: addresses and lengths.
    left: Vec<(u64, u64)>,
}

/// Reserved addresses of which the first slots are taken.
struct Range {
    base: u64,
    slots: u64,
    next: u64,
}

impl Range {
    fn reserve() -> io::Result<Self> {
        for slots in SLOTS {
            let length = (slots + 1) * SLOT_BYTES;
            // SAFETY: a new mapping at an address that the kernel chooses; nothing can touch it.
            let at = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    length as usize,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if at != libc::MAP_FAILED {
                let base = (at as u64).next_multiple_of(SLOT_BYTES);
                return Ok(Range { base, slots, next: 0 });
            }
        }
        Err(io::Error::last_os_error())
    }
}

fn taken() -> MutexGuard<'static, Taken> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Addresses that no session had before, and the session's number.
pub fn take() -> io::Result<(u64, u32)> {
    give_back_what_was_left();
    let mut taken = taken();
    if taken.sessions == SESSIONS {
        return Err(io::Error::other(format!(
            "this JVM has had {SESSIONS} exact recordings, and no address space is left for another; \
             restart it"
        )));
    }
    let range = match taken.range.take() {
        Some(range) if range.next < range.slots => range,
        _ => Range::reserve()?,
    };
    let base = range.base + range.next * SLOT_BYTES;
    taken.range = Some(Range { next: range.next + 1, ..range });
    taken.sessions += 1;
    Ok((base, taken.sessions))
}

/// Maps a part of a slot, in place of what is there. Nobody else may have addresses in it.
pub fn map(at: u64, length: u64, flags: libc::c_int, fd: libc::c_int) -> io::Result<()> {
    // SAFETY: the callers pass addresses inside a range that we reserved and never gave back.
    let mapped = unsafe {
        libc::mmap(
            at as *mut libc::c_void,
            length as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            flags | libc::MAP_FIXED,
            fd,
            0,
        )
    };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The end of a session: its memory becomes zeros. Threads may be inside a probe at this very
/// moment, so there is no moment without memory at these addresses; what cannot be had now is tried
/// again when the next session begins, and until then the old pages stay.
pub fn give_back(at: u64, length: u64) {
    if let Err(e) = zeros(at, length) {
        taken().left.push((at, length));
        gate::say(&format!(
            "the system has no address space to take {} MB of an ended recording back ({e}); they \
             stay in use until another recording begins or the JVM ends",
            length >> 20
        ));
    }
}

fn give_back_what_was_left() {
    let mut taken = taken();
    taken.left.retain(|(at, length)| zeros(*at, *length).is_err());
}

const PLAIN: libc::c_int = libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// Puts zeros in place of what is at an address. Private memory counts as data of the process and,
/// on systems that commit strictly, as used; shared memory may still be had then.
fn zeros(at: u64, length: u64) -> io::Result<()> {
    replace(at, length, |flags| map(at, length, flags, -1))
}

/// A call that fails may have taken the old pages away before it found out (Linux before 6.12). So
/// it is tried elsewhere first; what goes wrong in spite of that, because another thread took what
/// was left just then, leaves a hole, which is filled at once.
fn replace(at: u64, length: u64, map: impl Fn(libc::c_int) -> io::Result<()>) -> io::Result<()> {
    let mut last = None;
    for kind in [libc::MAP_PRIVATE, libc::MAP_SHARED] {
        let tried = could_map(length, kind | PLAIN).and_then(|()| {
            map(kind | PLAIN)
                .or_else(|e| if is_mapped(at, length) { Err(e) } else { fill(at, length) })
        });
        match tried {
            Ok(()) => return Ok(()),
            Err(e) => last = Some(e),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("nothing was tried")))
}

/// Whether there is memory at all of these addresses.
fn is_mapped(at: u64, length: u64) -> bool {
    let mut pages = vec![0_u8; (length / PAGE) as usize];
    // SAFETY: the call only looks; the vector has a byte for each page.
    unsafe { libc::mincore(at as *mut libc::c_void, length as usize, pages.as_mut_ptr()) == 0 }
}

/// Puts zeros where there is a hole, and nowhere else: somebody may have got an address of it. As
/// many addresses as are needed were just given up, so they can be had again, if need be in pieces.
fn fill(at: u64, length: u64) -> io::Result<()> {
    const TRIES: usize = 100;
    const PIECE: u64 = 1 << 20;
    for _ in 0..TRIES {
        if plug(at, length).is_ok() {
            return Ok(());
        }
        for start in (0..length).step_by(PIECE as usize) {
            let piece = PIECE.min(length - start);
            if plug(at + start, piece).is_err() {
                let pages = (0..piece).step_by(PAGE as usize);
                pages.for_each(|page| _ = plug(at + start + page, PAGE));
            }
        }
        if is_mapped(at, length) {
            return Ok(());
        }
        std::thread::yield_now();
    }
    Err(io::Error::from_raw_os_error(libc::ENOMEM))
}

/// Maps zeros where nothing is mapped.
fn plug(at: u64, length: u64) -> io::Result<()> {
    private_or_shared(|kind| {
        // SAFETY: nothing that is mapped is replaced.
        let mapped = unsafe {
            libc::mmap(
                at as *mut libc::c_void,
                length as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                kind | PLAIN | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if mapped as u64 != at {
            // A kernel that does not know the flag (before 4.17) takes the address for a hint.
            // SAFETY: the mapping just made, which nobody knows of.
            unsafe { libc::munmap(mapped, length as usize) };
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        Ok(())
    })
}

fn private_or_shared(map: impl Fn(libc::c_int) -> io::Result<()>) -> io::Result<()> {
    map(libc::MAP_PRIVATE).or_else(|_| map(libc::MAP_SHARED))
}

/// Whether such a mapping can be had: one is made somewhere, and goes again.
fn could_map(length: u64, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping just made, which nobody knows of.
    unsafe { libc::munmap(at, length as usize) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory;
    use std::os::fd::AsRawFd;
    use std::process::Command;

    const CHILD: &str = "TARE_TEST_OF_SLOTS";
    const LENGTH: u64 = 1 << 20;
    const OLD: u64 = 0x0123_4567_89ab_cdef;

    /// A session's memory, with something in it.
    fn session() -> u64 {
        let (base, _) = take().unwrap();
        let file = shared_memory::create(c"tare-test").unwrap();
        shared_memory::allocate(&file, 0, LENGTH).unwrap();
        map(base, LENGTH, libc::MAP_SHARED, file.as_raw_fd()).unwrap();
        put(base, OLD);
        base
    }

    fn get(at: u64) -> u64 {
        // SAFETY: the tests pass addresses that are mapped, or the child dies of it, which is told.
        unsafe { (at as *const u64).read_volatile() }
    }

    fn put(at: u64, value: u64) {
        // SAFETY: as above.
        unsafe { (at as *mut u64).write_volatile(value) };
    }

    /// Sets the soft limit; returns what it was.
    fn limit(resource: libc::__rlimit_resource_t, to: u64) -> u64 {
        let mut both = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a local for the answer.
        assert_eq!(unsafe { libc::getrlimit(resource, &raw mut both) }, 0);
        let before = both.rlim_cur;
        both.rlim_cur = to;
        // SAFETY: a local, read only.
        assert_eq!(unsafe { libc::setrlimit(resource, &raw const both) }, 0);
        before
    }

    /// In a process of its own, because it sets the limits of its process.
    #[test]
    fn a_session_that_ends_leaves_no_hole_whatever_the_limits() {
        if std::env::var_os(CHILD).is_none() {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["a_session_that_ends_leaves_no_hole", "--nocapture", "--test-threads=1"]);
            let output = child.env(CHILD, "1").output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{:?}: {text}", output.status);
            assert!(text.contains("stay in use"), "nobody was told: {text}");
            return;
        }
        // Private memory is refused: shared memory does as well.
        let base = session();
        let before = limit(libc::RLIMIT_DATA, 4096);
        give_back(base, LENGTH);
        limit(libc::RLIMIT_DATA, before);
        assert_eq!(get(base), 0);
        put(base + LENGTH - 8, 1);
        // Both are refused: the old pages stay, until the next session begins.
        let base = session();
        let before = limit(libc::RLIMIT_AS, 4096);
        give_back(base, LENGTH);
        limit(libc::RLIMIT_AS, before);
        assert_eq!(get(base), OLD);
        put(base + LENGTH - 8, 1);
        take().unwrap();
        assert_eq!((get(base), get(base + LENGTH - 8)), (0, 0));
    }

    /// As Linux before 6.12 does it when it runs short at the last moment.
    #[test]
    fn a_hole_is_filled_at_once() {
        let base = session();
        let takes_away = |_| {
            // SAFETY: memory of this test, which nobody uses meanwhile.
            unsafe { libc::munmap(base as *mut libc::c_void, LENGTH as usize) };
            Err(io::Error::from_raw_os_error(libc::ENOMEM))
        };
        replace(base, LENGTH, takes_away).unwrap();
        assert!(is_mapped(base, LENGTH));
        assert_eq!((get(base), get(base + LENGTH - 8)), (0, 0));
        put(base + LENGTH - 8, 1);
        // What somebody else has got meanwhile is left alone.
        let middle = base + LENGTH / 2;
        // SAFETY: as above.
        unsafe { libc::munmap(base as *mut libc::c_void, LENGTH as usize) };
        plug(middle, PAGE).unwrap();
        put(middle, OLD);
        assert!(!is_mapped(base, LENGTH));
        fill(base, LENGTH).unwrap();
        assert_eq!((get(base), get(middle), get(base + LENGTH - 8)), (0, OLD, 0));
        // Where nothing is taken away, the old pages stay.
        let base = session();
        let refuses = |_| Err(io::Error::from_raw_os_error(libc::ENOMEM));
        assert!(replace(base, LENGTH, refuses).is_err());
        assert_eq!(get(base), OLD);
    }
}
