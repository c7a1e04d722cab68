//! Any bytes as a `.tare` recording: no panic, no hang, no more memory than was allowed, and what
//! is loaded is a sound profile.

use flate2::Crc;
use std::io::Cursor;
use tare_recording::{LoadOptions, Recording};

/// Bytes of the headers of the file and of a block, and of the end.
const HEADER: usize = 32;

/// What a profile may take.
const LIMIT: u64 = 64 << 20;

pub fn run(data: &[u8]) {
    // A fuzzer does not find checksums. The last byte says whether they are made right.
    let Some(&choice) = data.last() else { return };
    let mut bytes = data.to_vec();
    if choice & 1 == 0 {
        seal_all(&mut bytes);
    }
    let Ok(mut recording) = Recording::new(Cursor::new(bytes)) else { return };
    let _ = recording.summary();
    let whole = LoadOptions { memory_limit: Some(LIMIT), ..LoadOptions::default() };
    let merged = LoadOptions { merge: true, ..whole.clone() };
    let part = LoadOptions { series: Some(vec![0]), time: Some(1000..2_000_000), ..whole.clone() };
    for options in [whole, merged, part] {
        if let Ok(loaded) = recording.load(&options) {
            loaded.profile.check().expect("a sound profile");
        }
    }
}

/// Makes the checksums of all headers and of all blocks right, as far as blocks follow each other.
fn seal_all(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + HEADER) {
        let is_block = head.starts_with(b"\xf5TBk");
        let stored = u32::from_le_bytes([head[12], head[13], head[14], head[15]]) as usize;
        let mut next = at + HEADER;
        if is_block && let Some(content) = bytes[next..].get(..stored) {
            let checksum = crc(content);
            bytes[at + 20..at + 24].copy_from_slice(&checksum);
            next += stored;
        }
        let checksum = crc(&bytes[at..at + 28]);
        bytes[at + 28..at + 32].copy_from_slice(&checksum);
        at = next;
    }
}

fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}
