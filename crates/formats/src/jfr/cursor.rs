//! Reads numbers and texts of a chunk, within its bounds.

use super::FORMAT;
use crate::error::ReadError;

/// A place in a chunk.
#[derive(Clone)]
pub struct Cursor<'a> {
    chunk: &'a [u8],
    at: usize,
    /// Where the chunk begins in the file.
    base: usize,
    /// Whether numbers are LEB128; if not, they are big-endian.
    compressed: bool,
}

/// A text that stands in a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Text {
    Null,
    Here(String),
    /// The key of a constant of type `java.lang.String`.
    Constant(i64),
}

impl<'a> Cursor<'a> {
    pub fn new(chunk: &'a [u8], base: usize, compressed: bool) -> Self {
        Cursor { chunk, at: 0, base, compressed }
    }

    /// The same chunk, at another place.
    pub fn at(&self, at: usize) -> Self {
        Cursor { at, ..self.clone() }
    }

    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn remaining(&self) -> usize {
        self.chunk.len().saturating_sub(self.at)
    }

    pub fn problem(&self, problem: &str) -> ReadError {
        ReadError::malformed(FORMAT, self.base + self.at, problem)
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        let end = self.at.checked_add(count);
        let bytes = end.and_then(|end| self.chunk.get(self.at..end));
        let Some(bytes) = bytes else { return Err(self.problem("a value that is cut short")) };
        self.at += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub fn byte(&mut self) -> Result<u8, ReadError> {
        Ok(self.bytes(1)?[0])
    }

    pub fn short(&mut self) -> Result<i64, ReadError> {
        match self.compressed {
            true => Ok(i64::from(self.leb128()? as i16)),
            false => Ok(i64::from(i16::from_be_bytes(self.array()?))),
        }
    }

    pub fn char(&mut self) -> Result<u16, ReadError> {
        match self.compressed {
            true => Ok(self.leb128()? as u16),
            false => Ok(u16::from_be_bytes(self.array()?)),
        }
    }

    pub fn int(&mut self) -> Result<i64, ReadError> {
        match self.compressed {
            true => Ok(i64::from(self.leb128()? as i32)),
            false => Ok(i64::from(i32::from_be_bytes(self.array()?))),
        }
    }

    pub fn long(&mut self) -> Result<i64, ReadError> {
        match self.compressed {
            true => Ok(self.leb128()? as i64),
            false => Ok(i64::from_be_bytes(self.array()?)),
        }
    }

    /// A number that counts things which take at least a byte each.
    pub fn count(&mut self) -> Result<usize, ReadError> {
        let count = self.int()?;
        let count = usize::try_from(count).ok().filter(|count| *count <= self.remaining());
        count.ok_or_else(|| self.problem("a count that passes the end"))
    }

    pub fn float(&mut self) -> Result<f64, ReadError> {
        Ok(f64::from(f32::from_be_bytes(self.array()?)))
    }

    pub fn double(&mut self) -> Result<f64, ReadError> {
        Ok(f64::from_be_bytes(self.array()?))
    }

    pub fn text(&mut self) -> Result<Text, ReadError> {
        match self.byte()? {
            0 => Ok(Text::Null),
            1 => Ok(Text::Here(String::new())),
            2 => Ok(Text::Constant(self.long()?)),
            3 => {
                let length = self.count()?;
                Ok(Text::Here(String::from_utf8_lossy(self.bytes(length)?).into_owned()))
            }
            4 => {
                let length = self.count()?;
                let units: Result<Vec<u16>, _> = (0..length).map(|_| self.char()).collect();
                Ok(Text::Here(String::from_utf16_lossy(&units?)))
            }
            5 => {
                let length = self.count()?;
                Ok(Text::Here(self.bytes(length)?.iter().copied().map(char::from).collect()))
            }
            _ => Err(self.problem("a text of an unknown encoding")),
        }
    }

    /// Passes over a text without making one.
    pub fn skip_text(&mut self) -> Result<(), ReadError> {
        match self.byte()? {
            0 | 1 => Ok(()),
            2 => self.long().map(drop),
            3 | 5 => {
                let length = self.count()?;
                self.bytes(length).map(drop)
            }
            4 => {
                let length = self.count()?;
                (0..length).try_for_each(|_| self.char().map(drop))
            }
            _ => Err(self.problem("a text of an unknown encoding")),
        }
    }

    /// Passes over compressed numbers.
    pub fn skip_numbers(&mut self, count: usize) -> Result<(), ReadError> {
        let rest = self.chunk.get(self.at..).unwrap_or_default();
        let mut at = 0;
        for _ in 0..count {
            let mut length = 1;
            while length < 9 && rest.get(at + length - 1).is_some_and(|byte| *byte >= 0x80) {
                length += 1;
            }
            at += length;
            if at > rest.len() {
                self.at = self.chunk.len();
                return Err(self.problem("a value that is cut short"));
            }
        }
        self.at += at;
        Ok(())
    }

    /// Seven bits per byte, the lowest first; the ninth byte holds eight.
    #[inline]
    fn leb128(&mut self) -> Result<u64, ReadError> {
        let rest = self.chunk.get(self.at..).unwrap_or_default();
        let mut value = 0;
        for (place, byte) in rest.iter().take(8).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * place);
            if *byte < 0x80 {
                self.at += place + 1;
                return Ok(value);
            }
        }
        let Some(last) = rest.get(8) else {
            self.at = self.chunk.len();
            return Err(self.problem("a value that is cut short"));
        };
        self.at += 9;
        Ok(value | u64::from(*last) << 56)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_numbers() {
        let bytes = [0x7f, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0xff];
        let mut cursor = Cursor::new(&bytes, 0, true);
        assert_eq!(cursor.long().unwrap(), 127);
        assert_eq!(cursor.long().unwrap(), 16383);
        assert_eq!(cursor.long().unwrap(), i64::from(-1));
        assert!(cursor.long().unwrap_err().to_string().contains("byte 13"));
        let mut skipping = Cursor::new(&bytes, 0, true);
        skipping.skip_numbers(3).unwrap();
        assert_eq!(skipping.position(), 12);
        assert!(skipping.skip_numbers(1).unwrap_err().to_string().contains("byte 13"));
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x0f], 0, true).int().unwrap(), -1);
    }

    #[test]
    fn plain_numbers_are_big_endian() {
        let mut cursor = Cursor::new(&[0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3], 0, false);
        let short = cursor.short().unwrap();
        assert_eq!((short, cursor.int().unwrap(), cursor.long().unwrap()), (1, 2, 3));
    }

    #[test]
    fn texts_of_all_encodings() {
        let bytes = [0, 1, 2, 9, 3, 2, 0xc3, 0xbc, 4, 1, 0xfc, 0x01, 5, 1, 0xfc, 6];
        let mut cursor = Cursor::new(&bytes, 0, true);
        let mut skipping = cursor.clone();
        let here = |text: &str| Text::Here(text.to_owned());
        for expected in [Text::Null, here(""), Text::Constant(9), here("ü"), here("ü"), here("ü")]
        {
            assert_eq!(cursor.text().unwrap(), expected);
            skipping.skip_text().unwrap();
            assert_eq!(cursor.position(), skipping.position());
        }
        assert!(cursor.text().is_err() && skipping.skip_text().is_err());
        assert!(Cursor::new(&[3, 0xff, 0xff, 0xff, 0x7f, 1], 0, true).text().is_err());
    }
}
