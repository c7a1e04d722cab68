//! A cursor over big-endian bytes that knows its offset in the whole file.
//!
//! Every read is checked; nothing here interprets what it reads.

use crate::error::{Error, ErrorKind, Result};

#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    data: &'a [u8],
    pos: usize,
    /// Offset of `data[0]` in the class file, for errors.
    base: usize,
}

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8], base: usize) -> Self {
        Self { data, pos: 0, base }
    }

    /// Offset in the class file of the next byte.
    pub fn offset(&self) -> usize {
        self.base + self.pos
    }

    /// Position inside the bytes that this reader was given.
    pub fn position(&self) -> usize {
        self.pos
    }

    pub fn is_empty(&self) -> bool {
        self.pos >= self.data.len()
    }

    pub fn remaining(&self) -> usize {
        self.data.len().saturating_sub(self.pos)
    }

    pub fn fail<T>(&self, kind: ErrorKind) -> Result<T> {
        Err(Error::new(self.offset(), kind))
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.data.get(self.pos..).and_then(|d| d.first_chunk::<N>()) {
            Some(chunk) => {
                self.pos += N;
                Ok(*chunk)
            }
            None => self.fail(ErrorKind::UnexpectedEnd),
        }
    }

    #[inline]
    pub fn u1(&mut self) -> Result<u8> {
        Ok(self.take::<1>()?[0])
    }

    #[inline]
    pub fn u2(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    #[inline]
    pub fn u4(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    #[inline]
    pub fn i4(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.take()?))
    }

    pub fn u8(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.pos.checked_add(len);
        match end.and_then(|end| self.data.get(self.pos..end)) {
            Some(bytes) => {
                self.pos += len;
                Ok(bytes)
            }
            None => self.fail(ErrorKind::LengthTooLarge),
        }
    }

    #[inline]
    pub fn skip(&mut self, len: usize) -> Result<()> {
        self.bytes(len).map(|_| ())
    }

    /// The bytes from `start` (a former [`position`](Self::position)) up to here.
    pub fn since(&self, start: usize) -> &'a [u8] {
        self.data.get(start..self.pos).unwrap_or(&[])
    }

    /// A reader over the next `len` bytes, which this one skips.
    pub fn sub(&mut self, len: usize) -> Result<Reader<'a>> {
        let base = self.offset();
        Ok(Reader::new(self.bytes(len)?, base))
    }

    /// Refuses bytes that nobody read.
    pub fn finish(&self) -> Result<()> {
        if self.is_empty() { Ok(()) } else { self.fail(ErrorKind::TrailingBytes) }
    }
}
