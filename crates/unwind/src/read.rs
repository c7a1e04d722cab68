//! A cursor over bytes of others: every read may fail, none can panic.

use crate::cfi::Fault;

#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    bytes: &'a [u8],
    /// Of the first byte that is left, in the process that is described.
    address: u64,
}

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8], address: u64) -> Self {
        Self { bytes, address }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn take(&mut self, count: usize) -> Result<Self, Fault> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(Fault::Truncated)?;
        let taken = Self { bytes: taken, address: self.address };
        self.bytes = rest;
        self.address = self.address.wrapping_add(count as u64);
        Ok(taken)
    }

    pub fn take_long(&mut self, count: u64) -> Result<Self, Fault> {
        self.take(usize::try_from(count).map_err(|_| Fault::Truncated)?)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.take(N)?.bytes.try_into().map_err(|_| Fault::Truncated)
    }

    pub fn u8(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_ne_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_ne_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_ne_bytes)
    }

    /// An unsigned number in groups of seven bits. Bits beyond the 64th are an error.
    pub fn uleb(&mut self) -> Result<u64, Fault> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Fault::Number);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::Number)
    }

    /// A signed number in groups of seven bits.
    pub fn sleb(&mut self) -> Result<i64, Fault> {
        let mut value = 0_i64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let width = shift + 7;
                let negative = byte & 0x40 != 0;
                return Ok(if negative && width < 64 { value | (-1_i64 << width) } else { value });
            }
        }
        Err(Fault::Number)
    }

    /// The bytes before the next zero, which is skipped.
    pub fn text(&mut self) -> Result<&'a [u8], Fault> {
        let end = self.bytes.iter().position(|&b| b == 0).ok_or(Fault::Truncated)?;
        let text = self.take(end)?.bytes;
        self.u8()?;
        Ok(text)
    }

    /// A pointer in one of the encodings of exception tables (`DW_EH_PE_…`).
    pub fn pointer(&mut self, encoding: u8) -> Result<u64, Fault> {
        let at = self.address;
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.u64()?,
            0x01 => self.uleb()?,
            0x02 => u64::from(self.u16()?),
            0x03 => u64::from(self.u32()?),
            0x09 => self.sleb()? as u64,
            0x0a => self.u16()?.cast_signed() as i64 as u64,
            0x0b => i64::from(self.u32()?.cast_signed()) as u64,
            _ => return Err(Fault::Encoding),
        };
        match encoding & 0xf0 {
            0x00 => Ok(value),
            // Relative to where the pointer itself is.
            0x10 => Ok(at.wrapping_add(value)),
            _ => Err(Fault::Encoding),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: &[u8]) -> Bytes<'_> {
        Bytes::new(bytes, 0x1000)
    }

    #[test]
    fn numbers_in_groups_of_seven_bits() {
        for (text, expected) in [
            (&[0x00][..], Ok(0)),
            (&[0x7f], Ok(127)),
            (&[0x80, 0x01], Ok(128)),
            (&[0xe5, 0x8e, 0x26], Ok(624_485)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Ok(u64::MAX)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], Err(Fault::Number)),
            (&[0x80; 20], Err(Fault::Number)),
            (&[0x80], Err(Fault::Truncated)),
        ] {
            assert_eq!(bytes(text).uleb(), expected, "{text:x?}");
        }
        for (text, expected) in [
            (&[0x02][..], Ok(2)),
            (&[0x7e], Ok(-2)),
            (&[0xff, 0x00], Ok(127)),
            (&[0x81, 0x7f], Ok(-127)),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f], Ok(i64::MIN)),
            (&[0x80; 20], Err(Fault::Number)),
        ] {
            assert_eq!(bytes(text).sleb(), expected, "{text:x?}");
        }
    }

    #[test]
    fn pointers_are_relative_to_themselves() {
        let mut at = bytes(&[1, 0xfc, 0xff, 0xff, 0xff]);
        at.u8().unwrap();
        assert_eq!(at.pointer(0x1b), Ok(0x1001 - 4));
        assert_eq!(bytes(&[0; 8]).pointer(0x9b), Err(Fault::Encoding), "indirect");
        assert_eq!(bytes(&[0; 7]).pointer(0x00), Err(Fault::Truncated));
    }
}
