//! Reading memory of the own process that may not be there.
//!
//! There are two ways. Plain loads, inside bounds of which the caller knows that they stay mapped
//! ([`Bounds`]): a thread's stack from the interrupted stack pointer up. And `process_vm_readv`
//! on ourselves, which answers with an error where a load would fault ([`Window`], [`read_self`]).
//! A handler for SIGSEGV, the third way, would replace the JVM's and make `-Xcheck:jni` complain;
//! `examples/measure.rs` shows what the others cost.
//!
//! System calls of this file: process_vm_readv; under a filter, which might forbid that,
//! [`read_self`] reads the file `/proc/self/mem` instead.

use crate::filter::is_filtered;
use crate::walk::Cursor;
use std::ffi::c_void;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Where the words of a stack come from.
pub trait Memory {
    /// The word at an address, or nothing if it cannot be read.
    fn load(&mut self, address: u64) -> Option<u64>;
}

/// Memory that is known to be there.
pub struct Bounds {
    low: u64,
    high: u64,
}

impl Bounds {
    /// # Safety
    /// All of `low..high` must be readable as long as the value lives.
    pub unsafe fn new(low: u64, high: u64) -> Self {
        Self { low, high }
    }
}

impl Memory for Bounds {
    fn load(&mut self, address: u64) -> Option<u64> {
        let end = address.checked_add(8)?;
        if address < self.low || end > self.high || !address.is_multiple_of(8) {
            return None;
        }
        // SAFETY: aligned and inside the bounds, which the creator vouched for. Volatile, because
        // the stack belongs to the interrupted code and not to any object of this program.
        Some(unsafe { (address as *const u64).read_volatile() })
    }
}

/// Memory that may be missing: read by system call, some words at a time, since the words of a
/// stack lie together.
pub struct Window<const WORDS: usize> {
    pid: i32,
    /// The address of the first word.
    at: u64,
    /// How many words were read.
    valid: usize,
    words: [u64; WORDS],
    /// How many system calls were made.
    pub calls: u32,
}

impl<const WORDS: usize> Window<WORDS> {
    /// `pid` is that of this process; the caller knows it without a system call.
    pub fn new(pid: i32) -> Self {
        Self { pid, at: 0, valid: 0, words: [0; WORDS], calls: 0 }
    }
}

impl<const WORDS: usize> Memory for Window<WORDS> {
    fn load(&mut self, address: u64) -> Option<u64> {
        if !address.is_multiple_of(8) {
            return None;
        }
        if let Some(offset) = address.checked_sub(self.at)
            && let Some(word) = self.words.get((offset / 8) as usize)
            && offset / 8 < self.valid as u64
        {
            return Some(*word);
        }
        self.at = address;
        self.calls += 1;
        let length = WORDS * size_of::<u64>();
        // SAFETY: the words are ours and `length` bytes long; any bytes are valid words.
        let read = unsafe { copy(self.pid, address, self.words.as_mut_ptr().cast(), length) };
        self.valid = read / size_of::<u64>();
        self.words.first().copied().filter(|_| self.valid > 0)
    }
}

/// Copies what can be read from an address on, without faulting. Allocates: not for handlers.
pub fn read_self(pid: i32, address: u64, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    if bytes.try_reserve_exact(length).is_err() {
        return bytes;
    }
    if is_filtered() {
        read_file(address, length, &mut bytes);
        return bytes;
    }
    while bytes.len() < length {
        let at = address.wrapping_add(bytes.len() as u64);
        let copied = bytes.len();
        let spare = bytes.spare_capacity_mut();
        let wanted = spare.len().min(length - copied);
        // SAFETY: the spare capacity is ours, and at least `wanted` bytes long.
        let read = unsafe { copy(pid, at, spare.as_mut_ptr().cast(), wanted) };
        if read == 0 {
            break;
        }
        // SAFETY: that many bytes behind the old length were just written.
        unsafe { bytes.set_len(bytes.len() + read) };
    }
    bytes
}

/// As [`read_self`], by calls that no filter forbids.
fn read_file(address: u64, length: usize, bytes: &mut Vec<u8>) {
    let Ok(memory) = File::open("/proc/self/mem") else { return };
    bytes.resize(length, 0);
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match memory.read_at(rest, address.wrapping_add(done as u64)) {
            Ok(read) if read > 0 => done += read,
            _ => break,
        }
    }
    bytes.truncate(done);
}

/// Copies from an address of this process; returns how many bytes could be read.
///
/// # Safety
/// `to` must be valid for writes of `length` bytes.
unsafe fn copy(pid: i32, from: u64, to: *mut c_void, length: usize) -> usize {
    let local = libc::iovec { iov_base: to, iov_len: length };
    let remote = libc::iovec { iov_base: from as *mut c_void, iov_len: length };
    // SAFETY: the kernel checks the remote side and answers EFAULT; the local side is the caller's
    // promise. Reading oneself needs no privilege.
    let read = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

/// The registers of the frame that a signal interrupted.
///
/// # Safety
/// `context` must be the third argument of a handler installed with SA_SIGINFO, during that handler.
pub unsafe fn registers_of(context: *const c_void) -> Cursor {
    // SAFETY: the caller's promise; the kernel made it.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    {
        let registers = &context.uc_mcontext.gregs;
        Cursor {
            pc: registers[libc::REG_RIP as usize] as u64,
            sp: registers[libc::REG_RSP as usize] as u64,
            fp: registers[libc::REG_RBP as usize] as u64,
            lr: 0,
            interrupted: true,
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let registers = &context.uc_mcontext;
        Cursor {
            pc: registers.pc,
            sp: registers.sp,
            fp: registers.regs[29],
            lr: registers.regs[30],
            interrupted: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_tells_what_the_call_does() {
        let here: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        let mut bytes = Vec::new();
        read_file(here.as_ptr() as u64, here.len(), &mut bytes);
        assert_eq!(bytes, here);
        read_file(8, 16, &mut bytes);
        assert!(bytes.is_empty(), "nothing is there");
    }
}
