//! HotSpot's texts: names and descriptors, and the packed numbers beside them.

use super::copy::Copy;
use super::hotspot::Hotspot;
use crate::error::{Error, Result};
use std::sync::Arc;

/// The symbol at an address.
pub fn at(copy: &mut Copy, hotspot: &Hotspot, symbol: u64) -> Result<String> {
    if symbol == 0 {
        return Ok(String::new());
    }
    let length = copy.u16_at(symbol + hotspot.symbol_length)?;
    let mut bytes = vec![0; usize::from(length)];
    copy.bytes(symbol + hotspot.symbol_body, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// An entry of a constant pool that is a symbol.
pub fn in_pool(copy: &mut Copy, hotspot: &Hotspot, pool: u64, index: u32) -> Result<Arc<str>> {
    let length = copy.u32_at(pool + hotspot.pool_length)?;
    if index == 0 || index >= length {
        return Err(Error::Confused("a name is outside its constant pool".to_owned()));
    }
    let symbol = copy.u64_at(pool + hotspot.pool_size + 8 * u64::from(index))?;
    at(copy, hotspot, symbol).map(Arc::from)
}

/// One of the JVM's own symbols, by its number.
pub fn of_vm(copy: &mut Copy, hotspot: &Hotspot, number: u32) -> Result<Arc<str>> {
    let symbol = copy.u64_at(hotspot.vm_symbols + 8 * u64::from(number & 0xffff))?;
    at(copy, hotspot, symbol).map(Arc::from)
}

/// The next packed number: digits of base 64, the least first; bytes below a limit end it. Five
/// bytes at most.
pub fn packed(bytes: &mut &[u8], least: u32) -> Option<u32> {
    const HIGH_CODES: u32 = 64;
    let low_codes = 256 - least - HIGH_CODES;
    let mut sum = 0_u32;
    for digit in 0..5 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let value = u32::from(*byte).checked_sub(least)?;
        sum = sum.wrapping_add(value << (6 * digit));
        if value < low_codes {
            break;
        }
    }
    Some(sum)
}

/// A class's name as people know it: `com.acme.Order`, `byte[]`. Of a hidden class the part behind
/// the slash is its own.
pub fn class_name(internal: &str) -> String {
    let dimensions = internal.bytes().take_while(|byte| *byte == b'[').count();
    let element = &internal[dimensions..];
    let element = match (dimensions, element) {
        (0, name) => name,
        (_, "Z") => "boolean",
        (_, "B") => "byte",
        (_, "C") => "char",
        (_, "S") => "short",
        (_, "I") => "int",
        (_, "J") => "long",
        (_, "F") => "float",
        (_, "D") => "double",
        (_, name) => name.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(name),
    };
    let mut name = element.replace('/', ".").replace('+', "/");
    for _ in 0..dimensions {
        name.push_str("[]");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_people_know() {
        for (internal, name) in [
            ("com/acme/Order", "com.acme.Order"),
            ("[B", "byte[]"),
            ("[[Lcom/acme/Order;", "com.acme.Order[][]"),
            ("Main$$Lambda+0x0000000800c03000", "Main$$Lambda/0x0000000800c03000"),
            ("B", "B"),
        ] {
            assert_eq!(class_name(internal), name);
        }
    }

    #[test]
    fn packed_numbers_of_both_kinds() {
        let check = |bytes: &[u8], least, expected: &[u32]| {
            let mut rest = bytes;
            let numbers: Vec<_> = std::iter::from_fn(|| packed(&mut rest, least)).collect();
            assert_eq!(numbers, expected);
        };
        check(&[0, 191, 192, 0, 255, 3], 0, &[0, 191, 192, 255 + (3 << 6)]);
        check(&[1, 191, 192, 1, 255, 4], 1, &[0, 190, 191, 254 + (3 << 6)]);
        check(&[255], 1, &[]);
        check(&[0], 1, &[]);
    }
}
