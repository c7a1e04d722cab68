//! Memory of this process at addresses that may be wrong: reached by system calls, which then fail.
//!
//! By those meant for it, or, where a filter might forbid these, by the file `/proc/self/mem`. A
//! thread of the program may have a filter of its own: only the thread that looked is free of that.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

const FILE: &str = "/proc/self/mem";

/// The thread that was found to be under no filter, or none.
static FREE: AtomicI32 = AtomicI32::new(0);

/// Decides which way to take; called when a session begins, by the thread that does most of it.
pub fn learn() {
    FREE.store(if tare_unwind::is_filtered() { 0 } else { this_thread() }, Relaxed);
}

fn this_thread() -> i32 {
    // SAFETY: takes nothing and changes nothing.
    unsafe { libc::gettid() }
}

/// Bytes, if they are there.
pub fn read<const N: usize>(at: u64) -> Option<[u8; N]> {
    if FREE.load(Relaxed) == this_thread() {
        return read_directly(at);
    }
    // Opened each time: a descriptor that can change all memory is not left open in a program.
    match File::open(FILE) {
        Ok(file) => read_file(&file, at),
        // A process that may not be looked at by others has no such file.
        Err(_) if !tare_unwind::is_filtered() => read_directly(at),
        Err(_) => None,
    }
}

/// # Safety
/// What is at the address, if anything is, must be something that may be changed, in one piece.
pub unsafe fn write<const N: usize>(at: u64, bytes: [u8; N]) -> Option<()> {
    if FREE.load(Relaxed) != this_thread() {
        match OpenOptions::new().write(true).open(FILE) {
            Ok(file) => return file.write_all_at(&bytes, at).ok(),
            Err(_) if tare_unwind::is_filtered() => return None,
            Err(_) => {}
        }
    }
    // SAFETY: the caller's promise.
    unsafe { write_directly(at, bytes) }
}

fn read_file<const N: usize>(file: &File, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, at).ok()?;
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
    // SAFETY: reads a local; the caller vouches for the address, and one where nothing is gives an
    // error.
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
        let file = File::open(FILE).expect("our own memory");
        assert_eq!(read_file(&file, at), Some(word.to_ne_bytes()));
        assert_eq!(read_directly(at), Some(word.to_ne_bytes()));
        assert_eq!(read_file::<8>(&file, 8), None);
        assert_eq!(read_directly::<8>(8), None);
    }

    #[test]
    fn threads_that_nobody_looked_at_take_the_file() {
        learn();
        let here = this_thread();
        let free = FREE.load(Relaxed);
        assert!(free == here || tare_unwind::is_filtered());
        let word = 77_u64;
        let at = (&raw const word) as u64;
        let there = std::thread::spawn(move || (this_thread(), read::<8>(at)));
        let (other, found) = there.join().expect("no panic");
        assert_ne!(other, free);
        assert_eq!(found, Some(word.to_ne_bytes()));
    }
}
