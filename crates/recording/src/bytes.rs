//! Numbers of variable length and texts, in and out of byte buffers. Reading never panics and never
//! allocates by a length that it was told.

/// No text in a file is longer.
pub const MAX_TEXT: usize = 1 << 20;

/// The content of a block is not what the format says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed(pub &'static str);

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes [`put_varint`] takes.
pub fn varint_size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Small numbers of either sign become small numbers: 0, −1, 1, −2, …
pub fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// What is left of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn take(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed("a length is too large"))?;
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or(Malformed("the block ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed("the block ends too early"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        // The bytes are looked at in place and taken once: this is where loading spends its time.
        for (at, &byte) in self.0.iter().enumerate().take(10) {
            if at == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.0 = &self.0[at + 1..];
                return Ok(value);
            }
        }
        Err(Malformed("a number has no end or more than 64 bits"))
    }

    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = self.varint()?;
        std::str::from_utf8(self.take(length)?).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        let mut values = vec![0, u64::MAX];
        values.extend((0..64).flat_map(|bit| [1_u64 << bit, (1_u64 << bit) - 1]));
        for value in values {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_size(value));
            assert_eq!(Bytes(&out).varint(), Ok(value));
            assert!(Bytes(&out[..out.len() - 1]).varint().is_err());
            assert_eq!(zigzag(unzigzag(value)), value);
        }
        assert_eq!([0, -1, 1, -2, i64::MIN].map(zigzag), [0, 1, 2, 3, u64::MAX]);
    }

    #[test]
    fn overlong_numbers_and_lengths_are_refused() {
        assert!(Bytes(&[0xff; 10]).varint().is_err());
        assert!(Bytes(&[0x80; 11]).varint().is_err());
        let mut hostile = Vec::new();
        put_varint(&mut hostile, u64::MAX);
        assert!(Bytes(&hostile).text().is_err());
        assert!(Bytes(&[2, 0xff, 0xff]).text().is_err());
    }
}
