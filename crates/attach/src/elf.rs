//! Looks whether a library file is whole, before a JVM is asked to load it.
//!
//! A loader maps what the headers promise. When the file is cut short, the JVM dies of SIGBUS at
//! the first touch beyond its end, so this is no nicety. Whether the code fits the machine is left
//! to the loader, which refuses that with a message.

/// `Err` says what is wrong with the file, as the end of a sentence.
pub(crate) fn check(bytes: &[u8]) -> Result<(), &'static str> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err("it is not a shared library");
    }
    if segments_fit(bytes) == Some(true) { Ok(()) } else { Err("it is cut short or damaged") }
}

/// Whether the library names others that the loader must find, a C library above all. One whose
/// tables cannot be read counts as such.
pub(crate) fn needs_libraries(bytes: &[u8]) -> bool {
    needed(bytes) != Some(false)
}

fn needed(bytes: &[u8]) -> Option<bool> {
    const DYNAMIC: u32 = 2;
    const NEEDED: u64 = 1;
    const END: u64 = 0;
    let word = |at: u64| -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    };
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let table = word(32)?;
    for index in 0..u64::from(half(56)?) {
        let header = table.checked_add(index.checked_mul(u64::from(half(54)?))?)?;
        if word(header)? as u32 != DYNAMIC {
            continue;
        }
        let (mut at, size) = (word(header.checked_add(8)?)?, word(header.checked_add(32)?)?);
        let end = at.checked_add(size)?;
        while at < end {
            match word(at)? {
                NEEDED => return Some(true),
                END => return Some(false),
                _ => at = at.checked_add(16)?,
            }
        }
        return Some(false);
    }
    None
}

/// Whether it is a 64-bit shared object whose tables and loadable segments all lie inside the
/// file; `None` when a header itself does not.
fn segments_fit(bytes: &[u8]) -> Option<bool> {
    const CLASS_64: u8 = 2;
    const LITTLE: u8 = 1;
    const SHARED_OBJECT: u64 = 3;
    const LOAD: u64 = 1;
    let little = *bytes.get(5)? == LITTLE;
    let number = |at: usize, size: usize| -> Option<u64> {
        let raw = bytes.get(at..at.checked_add(size)?)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if little { raw.iter().rev().fold(0, add) } else { raw.iter().fold(0, add) })
    };
    let length = bytes.len() as u64;
    let fits = |from: u64, size: u64| from.checked_add(size).is_some_and(|end| end <= length);
    if *bytes.get(4)? != CLASS_64 || number(16, 2)? != SHARED_OBJECT {
        return Some(false);
    }
    let (table, entry, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut loads = 0;
    for index in 0..count {
        let at = usize::try_from(table.checked_add(index.checked_mul(entry)?)?).ok()?;
        if number(at, 4)? == LOAD {
            loads += 1;
            if !fits(number(at.checked_add(8)?, 8)?, number(at.checked_add(32)?, 8)?) {
                return Some(false);
            }
        }
    }
    // The section headers come last in the file and are not loaded; a file without its end is
    // not to be trusted all the same.
    let (sections, size, count) = (number(40, 8)?, number(58, 2)?, number(60, 2)?);
    Some(loads > 0 && fits(sections, size.checked_mul(count)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_program_is_whole_and_a_part_of_it_is_not() {
        // Programs are position independent here, which makes them shared objects.
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(check(&bytes), Ok(()));
        for length in [0, 3, 4, 16, 63, 64, 100, 1000, bytes.len() / 2, bytes.len() - 1] {
            assert!(check(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn programs_name_their_libraries_and_bare_libraries_none() {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(needed(&bytes), Some(true));
        // The same program without its entries: the table begins with its end.
        let headers = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap()));
        let headers = headers.unwrap();
        let dynamic = (0..).map(|n| headers + 56 * n).find(|at| bytes[*at] == 2).unwrap();
        let table = u64::from_le_bytes(bytes[dynamic + 8..dynamic + 16].try_into().unwrap());
        bytes[usize::try_from(table).unwrap()..][..8].fill(0);
        assert!(!needs_libraries(&bytes));
        assert!(needs_libraries(&bytes[..100]), "not readable");
    }

    #[test]
    fn damaged_headers_are_survived() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let mut start = bytes[..2048].to_vec();
        for at in 4..1024 {
            let kept = std::mem::replace(&mut start[at], 0xff);
            let _ = check(&start);
            start[at] = kept;
        }
        assert!(check(b"#!/bin/sh").is_err());
    }
}
