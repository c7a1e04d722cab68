//! Memory of this process at addresses that may be wrong: reached by system calls, which then fail.
//!
//! By those meant for it, or, where a filter might forbid these, by the file `/proc/self/mem`.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const FILE: &str = "/proc/self/mem";

/// Whether the file is used.
static BY_FILE: AtomicBool = AtomicBool::new(false);

/// Decides which way to take; called when a session begins.
pub fn learn() {
    BY_FILE.store(tare_unwind::is_filtered(), Relaxed);
}

/// Bytes, if they are there.
pub fn read<const N: usize>(at: u64) -> Option<[u8; N]> {
    if BY_FILE.load(Relaxed) { read_file(at) } else { read_directly(at) }
}

/// # Safety
/// What is at the address, if anything is, must be something that may be changed, in one piece.
pub unsafe fn write<const N: usize>(at: u64, bytes: [u8; N]) -> Option<()> {
    if BY_FILE.load(Relaxed) {
        let file = OpenOptions::new().write(true).open(FILE).ok()?;
        return file.write_all_at(&bytes, at).ok();
    }
    // SAFETY: the caller's promise.
    unsafe { write_directly(at, bytes) }
}

/// Opened each time: a descriptor that can change all memory is not left open in a program.
fn read_file<const N: usize>(at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    File::open(FILE).ok()?.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

fn read_directly<const N: usize>(at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: N };
    let theirs = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: N };
    // SAFETY: writes to a local; an address where nothing is gives an error.
    let done = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const ours, 1, &raw const theirs, 1, 0)
    };
    (done == N as isize).then_some(bytes)
}

/// # Safety
/// As for [`write`].
unsafe fn write_directly<const N: usize>(at: u64, mut bytes: [u8; N]) -> Option<()> {
    let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: N };
    let theirs = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: N };
    // SAFETY: reads a local; the caller vouches for the address, and one where nothing is gives an error.
    let done = unsafe {
        libc::process_vm_writev(libc::getpid(), &raw const ours, 1, &raw const theirs, 1, 0)
    };
    (done == N as isize).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_tell_the_same() {
        let word = 0x0123_4567_89ab_cdef_u64;
        let at = (&raw const word) as u64;
        assert_eq!(read_file(at), Some(word.to_ne_bytes()));
        assert_eq!(read_directly(at), Some(word.to_ne_bytes()));
        assert_eq!(read_file::<8>(8), None);
        assert_eq!(read_directly::<8>(8), None);
    }
}
