//! This process's memory, read through the kernel: what is gone meanwhile fails to be read, instead
//! of faulting. Slower than plain loads under a guard, and without a word of `unsafe`.

use crate::stacks::memory::Memory;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub struct ByKernel(File);

impl ByKernel {
    pub fn open() -> io::Result<Self> {
        Ok(ByKernel(File::open("/proc/self/mem")?))
    }

    /// A field of eight bytes.
    pub fn field(&self, of: u64, offset: u64) -> Option<u64> {
        self.word(of.checked_add(offset)?)
    }

    /// As many bytes as there are, and no more than asked for.
    pub fn bytes(&self, at: u64, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let count = self.0.read_at(&mut bytes, at).unwrap_or(0);
        bytes.truncate(count);
        bytes
    }

    fn read<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }
}

impl Memory for ByKernel {
    fn word(&self, at: u64) -> Option<u64> {
        self.read(at).map(u64::from_ne_bytes)
    }

    fn int(&self, at: u64) -> Option<i32> {
        self.read(at).map(i32::from_ne_bytes)
    }

    fn short(&self, at: u64) -> Option<u16> {
        self.read(at).map(u16::from_ne_bytes)
    }

    fn byte(&self, at: u64) -> Option<u8> {
        self.read(at).map(|[byte]| byte)
    }
}

/// The same, with a copy of a piece of a stack in place of what is there by now.
pub struct WithStack<'a> {
    pub rest: &'a ByKernel,
    pub start: u64,
    pub stack: &'a [u8],
}

impl Memory for WithStack<'_> {
    fn word(&self, at: u64) -> Option<u64> {
        let copied = || {
            let from = usize::try_from(at.checked_sub(self.start)?).ok()?;
            let bytes = self.stack.get(from..from.checked_add(8)?)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        };
        copied().or_else(|| self.rest.word(at))
    }

    fn int(&self, at: u64) -> Option<i32> {
        self.rest.int(at)
    }

    fn short(&self, at: u64) -> Option<u16> {
        self.rest.short(at)
    }

    fn byte(&self, at: u64) -> Option<u8> {
        self.rest.byte(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_read_and_a_copy_hides_what_is() {
        let memory = ByKernel::open().unwrap();
        let words = [1_u64, 0x0807_0605_0403_0201];
        let at = std::hint::black_box(&words).as_ptr() as u64;
        assert_eq!(memory.field(at, 8), Some(words[1]));
        assert_eq!(memory.int(at + 8), Some(0x0403_0201));
        assert_eq!((memory.short(at + 9), memory.byte(at + 15)), (Some(0x0302), Some(8)));
        assert_eq!((memory.word(8), memory.bytes(8, 4)), (None, Vec::new()));
        assert_eq!(memory.bytes(at + 8, 3), [1, 2, 3]);
        let copy = 7_u64.to_ne_bytes();
        let with_stack = WithStack { rest: &memory, start: at, stack: &copy };
        assert_eq!((with_stack.word(at), with_stack.word(at + 8)), (Some(7), Some(words[1])));
    }
}
