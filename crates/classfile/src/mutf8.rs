//! Modified UTF-8: the JVM's encoding of strings in the constant pool.
//!
//! It differs from UTF-8 in two ways: U+0000 takes two bytes, and characters beyond the basic
//! plane are two surrogates of three bytes each. Lone surrogates are legal in it and have no
//! counterpart in a Rust string, so decoding replaces them and says so by its name.

use std::borrow::Cow;

/// Decodes for display. What is malformed, or a lone surrogate, becomes U+FFFD.
pub fn decode_lossy(bytes: &[u8]) -> Cow<'_, str> {
    // Plain UTF-8 without surrogates, NUL or four-byte forms reads the same in both encodings.
    if let Ok(s) = std::str::from_utf8(bytes)
        && bytes.iter().all(|&b| b != 0 && b < 0xf0)
    {
        return Cow::Borrowed(s);
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((unit, len)) = next_unit(rest) {
        units.push(unit.unwrap_or(0xfffd));
        rest = rest.get(len..).unwrap_or(&[]);
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

/// Whether the JVM would accept these bytes as a string.
pub fn is_valid(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((unit, len)) = next_unit(rest) {
        if unit.is_none() || rest.first() == Some(&0) {
            return false;
        }
        rest = rest.get(len..).unwrap_or(&[]);
    }
    true
}

/// The next UTF-16 unit and how many bytes it took; `None` as unit when malformed.
fn next_unit(bytes: &[u8]) -> Option<(Option<u16>, usize)> {
    let tail = |b: u8| (b & 0xc0 == 0x80).then_some(u16::from(b & 0x3f));
    let &first = bytes.first()?;
    let found = match first {
        0x00..=0x7f => Some((u16::from(first), 1)),
        0xc0..=0xdf => {
            bytes.get(1).and_then(|&b| tail(b)).map(|b| (u16::from(first & 0x1f) << 6 | b, 2))
        }
        0xe0..=0xef => match (bytes.get(1), bytes.get(2)) {
            (Some(&b), Some(&c)) => {
                tail(b).zip(tail(c)).map(|(b, c)| (u16::from(first & 0x0f) << 12 | b << 6 | c, 3))
            }
            _ => None,
        },
        _ => None,
    };
    Some(match found {
        Some((unit, len)) => (Some(unit), len),
        None => (None, 1),
    })
}

/// Encodes a Rust string.
pub fn encode(s: &str) -> Cow<'_, [u8]> {
    if s.bytes().all(|b| b != 0 && b < 0xf0) {
        return Cow::Borrowed(s.as_bytes());
    }
    let mut out = Vec::with_capacity(s.len() + 8);
    for unit in s.encode_utf16() {
        match unit {
            0x01..=0x7f => out.push(unit as u8),
            0x00 | 0x80..=0x7ff => {
                out.push(0xc0 | (unit >> 6) as u8);
                out.push(0x80 | (unit & 0x3f) as u8);
            }
            _ => {
                out.push(0xe0 | (unit >> 12) as u8);
                out.push(0x80 | (unit >> 6 & 0x3f) as u8);
                out.push(0x80 | (unit & 0x3f) as u8);
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(s: &str, bytes: &[u8]) {
        assert_eq!(encode(s).as_ref(), bytes);
        assert_eq!(decode_lossy(bytes), s);
        assert!(is_valid(bytes));
    }

    #[test]
    fn both_ways() {
        check("plain", b"plain");
        check("caf\u{e9}", b"caf\xc3\xa9");
        check("\u{0}", b"\xc0\x80");
        check("\u{20ac}", b"\xe2\x82\xac");
        check("\u{1f600}", b"\xed\xa0\xbd\xed\xb8\x80");
    }

    #[test]
    fn malformed_is_replaced() {
        for bad in [&b"\x00"[..], b"\x80", b"\xc3", b"\xf0\x9f\x98\x80", b"\xe2\x82"] {
            assert!(!is_valid(bad), "{bad:?}");
        }
        assert_eq!(decode_lossy(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(decode_lossy(b"\xed\xa0\xbd"), "\u{fffd}");
    }
}
