//! Reads jars that the JVM's owner chose: their own list of what is in them, and single files, both
//! within bounds.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// Bytes of a jar's own list of what is in it.
pub const LARGEST_LIST: u64 = 64 << 20;
/// Bytes of a class file.
pub const LARGEST_CLASS: u64 = 16 << 20;

/// One file of a jar. What unpacks it gets a jar with nothing else in it: it would read the whole
/// list of a larger one, whatever its size, and where it finds it.
pub fn member(jar: &File, name: &str) -> Option<Vec<u8>> {
    /// Heads, before a name: of a file, and of the list's end.
    const FILE: usize = 30;
    const END: usize = 22;
    let list = list_of(jar).ok()?;
    let record = records(&list.records).find(|record| name_of(record) == name.as_bytes())?;
    let size = u64::from(u32::from_le_bytes(word(record, 20)));
    let at = list.base.checked_add(u64::from(u32::from_le_bytes(word(record, 42))))?;
    let mut head = [0; FILE];
    jar.read_exact_at(&mut head, at).ok()?;
    let length = |at: usize| u64::from(u16::from_le_bytes(word(&head, at)));
    let whole = FILE as u64 + length(26) + length(28) + size;
    if size > LARGEST_CLASS || at.checked_add(whole)? > jar.metadata().ok()?.len() {
        return None;
    }
    let mut alone = vec![0; whole as usize];
    jar.read_exact_at(&mut alone, at).ok()?;
    let mut record = record.to_vec();
    record.get_mut(42..46)?.fill(0);
    let mut end = [0; END];
    end[..12].copy_from_slice(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    end[12..16].copy_from_slice(&u32::try_from(record.len()).ok()?.to_le_bytes());
    end[16..20].copy_from_slice(&u32::try_from(alone.len()).ok()?.to_le_bytes());
    alone.extend_from_slice(&record);
    alone.extend_from_slice(&end);
    let mut jar = zip::ZipArchive::new(io::Cursor::new(alone)).ok()?;
    let mut bytes = Vec::new();
    jar.by_index(0).ok()?.take(LARGEST_CLASS).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A jar's own list of what is in it.
#[derive(Default)]
pub struct List {
    pub records: Vec<u8>,
    /// Where the jar begins: a runnable one may have a script before it.
    base: u64,
}

/// The list, which stands at a jar's end; empty for a file that is no jar.
pub fn list_of(jar: &File) -> io::Result<List> {
    /// The end of the list, without and with its comment; and its long form, which stands before
    /// it.
    const END: usize = 22;
    const COMMENT: u64 = 65_535;
    const LONG_END: u64 = 56;
    const LOCATOR: u64 = 20;
    let length = jar.metadata()?.len();
    let mut tail = vec![0; length.min(END as u64 + COMMENT) as usize];
    let tail_at = length - tail.len() as u64;
    jar.read_exact_at(&mut tail, tail_at)?;
    let ends = tail.windows(END).rposition(|window| window.starts_with(b"PK\x05\x06"));
    let Some(at) = ends else { return Ok(List::default()) };
    let mut size = u64::from(u32::from_le_bytes(word(&tail, at + 12)));
    let mut offset = u64::from(u32::from_le_bytes(word(&tail, at + 16)));
    // Counted from its end, since bytes before the jar move all that is counted from its beginning.
    let mut list_end = tail_at + at as u64;
    if (size == u64::from(u32::MAX) || offset == u64::from(u32::MAX))
        && let Some(long_at) = list_end.checked_sub(LOCATOR + LONG_END)
    {
        let mut long = [0; LONG_END as usize];
        jar.read_exact_at(&mut long, long_at)?;
        if long.starts_with(b"PK\x06\x06") {
            size = u64::from_le_bytes(word(&long, 40));
            offset = u64::from_le_bytes(word(&long, 48));
            list_end = long_at;
        }
    }
    if size > LARGEST_LIST {
        return Err(io::Error::other("its list of files is larger than is read"));
    }
    let Some(list_at) = list_end.checked_sub(size) else { return Ok(List::default()) };
    let mut records = vec![0; size as usize];
    jar.read_exact_at(&mut records, list_at)?;
    Ok(List { records, base: list_at.saturating_sub(offset) })
}

/// The bytes of a record before its name.
const RECORD: usize = 46;

/// What there is of each file in such a list, up to where it is damaged.
fn records(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let head = list.get(..RECORD).filter(|head| head.starts_with(b"PK\x01\x02"))?;
        let length = |at: usize| usize::from(u16::from_le_bytes(word(head, at)));
        let whole = RECORD + length(28) + length(30) + length(32);
        let (record, rest) = list.split_at_checked(whole)?;
        list = rest;
        Some(record)
    })
}

fn name_of(record: &[u8]) -> &[u8] {
    let length = usize::from(u16::from_le_bytes(word(record, 28)));
    record.get(RECORD..RECORD + length).unwrap_or_default()
}

pub fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    records(list).map(name_of)
}

/// Bytes in the middle of others, which must be there.
fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn a_file_is_found_behind_a_script_and_however_it_is_packed() {
        use zip::CompressionMethod::{Deflated, Stored};
        let path = std::env::temp_dir().join(format!("tare-member-{}", std::process::id()));
        for method in [Stored, Deflated] {
            let mut bytes = b"#!/bin/sh\n".to_vec();
            let mut jar = Vec::new();
            let mut zip = zip::ZipWriter::new(io::Cursor::new(&mut jar));
            for (name, byte) in [("a/B.class", 1), ("a/C.class", 2)] {
                let options = zip::write::SimpleFileOptions::default().compression_method(method);
                zip.start_file(name, options).unwrap();
                zip.write_all(&[byte; 5000]).unwrap();
            }
            zip.finish().unwrap();
            for script in [false, true] {
                fs::write(&path, &jar).unwrap();
                if script {
                    bytes.extend(&jar);
                    fs::write(&path, &bytes).unwrap();
                }
                let found = |name| member(&File::open(&path).unwrap(), name);
                assert_eq!(found("a/B.class"), Some(vec![1; 5000]), "{method} {script}");
                assert_eq!(found("a/C.class"), Some(vec![2; 5000]), "{method} {script}");
                assert_eq!(found("a/D.class"), None);
            }
        }
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn damaged_lists_give_fewer_names() {
        let mut bytes = Vec::new();
        let mut zip = zip::ZipWriter::new(io::Cursor::new(&mut bytes));
        for name in ["a/B.class", "a/C.class", "a/D.txt"] {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(&[7; 300]).unwrap();
        }
        zip.finish().unwrap();
        let path = std::env::temp_dir().join(format!("tare-list-{}", std::process::id()));
        let count = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            list_of(&File::open(&path).unwrap()).map_or(0, |list| names(&list.records).count())
        };
        assert_eq!(count(&bytes), 3);
        // A script before the jar, as runnable ones have.
        assert_eq!(count(&[b"#!/bin/sh\n".as_slice(), &bytes].concat()), 3);
        for length in 0..bytes.len() {
            assert!(count(&bytes[..length]) <= 3, "{length}");
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0xff;
            assert!(count(&other) <= 3, "{at}");
        }
        fs::remove_file(&path).unwrap();
    }
}
