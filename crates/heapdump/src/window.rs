//! A window that moves over a range of the file: what is near is there as one slice, and what is
//! large is passed over without being read.

use crate::error::{HeapError, Result};
use crate::input::ReadAt;

/// Bytes that are read at once by whoever reads all of a range.
pub const PORTION: usize = 1 << 20;

/// What may be asked for in one piece. The largest are bodies of instances and constants of
/// classes, both of which have at most 65,535 entries for each class on the way to `Object`.
const MOST: usize = 32 << 20;

pub struct Window<'a> {
    input: &'a dyn ReadAt,
    portion: usize,
    buffer: Vec<u8>,
    /// Where the buffer begins in the file, how much of it holds bytes, and where we are in it.
    start: u64,
    filled: usize,
    at: usize,
    end: u64,
}

impl<'a> Window<'a> {
    /// One that reads so many bytes at once.
    pub fn new(input: &'a dyn ReadAt, portion: usize) -> Window<'a> {
        Window { input, portion, buffer: Vec::new(), start: 0, filled: 0, at: 0, end: 0 }
    }

    /// Goes to a range of the file.
    pub fn go(&mut self, begin: u64, end: u64) {
        let loaded = self.start..self.start + self.filled as u64;
        if loaded.contains(&begin) {
            self.at = (begin - self.start) as usize;
        } else {
            (self.start, self.filled, self.at) = (begin, 0, 0);
        }
        self.end = end;
    }

    /// The position in the file.
    pub fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.offset())
    }

    /// The next bytes, behind which the window then stands; `None` if the range ends before.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<Option<&[u8]>> {
        if self.at + count > self.filled || self.left() < count as u64 {
            if self.left() < count as u64 {
                return Ok(None);
            }
            if !self.load(count)? {
                return Ok(None);
            }
        }
        let begin = self.at;
        self.at += count;
        Ok(Some(&self.buffer[begin..begin + count]))
    }

    /// The next bytes without moving; fewer if the range ends before.
    pub fn peek(&mut self, count: usize) -> Result<&[u8]> {
        let count = (count as u64).min(self.left()) as usize;
        if self.at + count > self.filled && !self.load(count)? {
            return Ok(&self.buffer[self.at..self.filled]);
        }
        Ok(&self.buffer[self.at..self.at + count])
    }

    /// Passes over bytes; `false` if the range ends before, where the window then stands.
    pub fn skip(&mut self, count: u64) -> bool {
        let left = self.left();
        let step = count.min(left);
        if step <= (self.filled - self.at) as u64 {
            self.at += step as usize;
        } else {
            (self.start, self.filled, self.at) = (self.offset() + step, 0, 0);
        }
        count <= left
    }

    #[cold]
    fn load(&mut self, count: usize) -> Result<bool> {
        if count > MOST {
            return Err(HeapError::damaged(self.offset(), "a record is larger than any can be"));
        }
        self.buffer.copy_within(self.at..self.filled, 0);
        self.start += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        let room = self.end.saturating_sub(self.start).min(self.portion.max(count) as u64) as usize;
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        if room > self.filled {
            let offset = self.start + self.filled as u64;
            self.filled += self.input.read_at(offset, &mut self.buffer[self.filled..room])?;
        }
        Ok(self.filled >= count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Input;

    #[test]
    fn it_takes_and_skips_across_portions() {
        let bytes: Vec<u8> = (0..3_u32 << 20).map(|n| (n % 251) as u8).collect();
        let input = Input::of_bytes(bytes.clone());
        let mut window = Window::new(&input, PORTION);
        window.go(10, 3 << 20);
        let mut at = 10;
        for step in [1, 100, 65_536, 1_500_000, 7].into_iter().cycle() {
            let expected = bytes.get(at..at + step);
            assert_eq!(window.take(step).unwrap(), expected, "at {at}");
            if expected.is_none() {
                break;
            }
            assert!(window.skip(3));
            at += step + 3;
            assert_eq!(window.offset(), at as u64);
        }
        window.go(5, 8);
        assert_eq!(window.take(3).unwrap(), Some(&bytes[5..8]));
        assert_eq!(window.take(1).unwrap(), None);
        window.go(5, 8);
        assert!(!window.skip(4));
        assert_eq!(window.left(), 0);
    }
}
