//! Memory of this process at addresses that may be wrong: reached by system calls, which then fail.

/// Bytes, if they are there.
pub fn read<const N: usize>(at: u64) -> Option<[u8; N]> {
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
/// What is at the address, if anything is, must be something that may be changed, in one piece.
pub unsafe fn write<const N: usize>(at: u64, mut bytes: [u8; N]) -> Option<()> {
    let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: N };
    let theirs = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: N };
    // SAFETY: reads a local; the caller vouches for the address, and one where nothing is gives an error.
    let done = unsafe {
        libc::process_vm_writev(libc::getpid(), &raw const ours, 1, &raw const theirs, 1, 0)
    };
    (done == N as isize).then_some(())
}
