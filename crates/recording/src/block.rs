//! Blocks: what the file is a sequence of. A header of fixed size with a checksum of its own, then
//! the packed content with another. So a reader can hop from header to header without reading
//! content, and can find the next whole block after any damage.

use crate::bytes::Malformed;
use crate::crc::crc32;

pub const FILE_HEADER: usize = 32;
pub const BLOCK_HEADER: usize = 32;
pub const TRAILER: usize = 32;

const FILE_MAGIC: [u8; 8] = *b"\x89TARE\r\n\x1a";
/// No text contains it: the first byte cannot begin a character of UTF-8.
pub const BLOCK_MAGIC: [u8; 4] = *b"\xf5TBk";
const END_MAGIC: [u8; 8] = *b"\x89TAREEND";

/// Content before packing is never larger.
pub const MAX_CONTENT: usize = 16 << 20;
/// Packed content is never larger: what LZ4 makes of incompressible data is, a little.
const MAX_STORED: usize = MAX_CONTENT + MAX_CONTENT / 128;

/// Which table a block holds rows of. Numbers are for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    Run = 1,
    Losses = 2,
    Strings = 3,
    Methods = 4,
    Frames = 5,
    Contexts = 6,
    Threads = 7,
    Series = 8,
    /// Rows of one series; the block's `number` is the row in `Series`.
    Values = 9,
    EventKinds = 10,
    EventFields = 11,
    /// Rows of one kind of event; the block's `number` is the row in `EventKinds`.
    Events = 12,
    /// What the values of one series come to, per context and thread, in a file that was finished.
    Sums = 13,
    Facts = 14,
    Index = 255,
}

impl Kind {
    pub fn from_number(number: u8) -> Option<Self> {
        use Kind::*;
        let all = [
            Run,
            Losses,
            Strings,
            Methods,
            Frames,
            Contexts,
            Threads,
            Series,
            Values,
            EventKinds,
            EventFields,
            Events,
            Sums,
            Facts,
            Index,
        ];
        all.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// The fields of a block's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// A [`Kind`], or one that a later version added.
    pub kind: u8,
    pub packed: bool,
    pub number: u16,
    /// Counts the blocks of the file.
    pub sequence: u32,
    pub stored: u32,
    pub content: u32,
    pub checksum: u32,
    pub file: u32,
}

impl BlockHeader {
    fn to_bytes(self) -> [u8; BLOCK_HEADER] {
        let mut out = [0; BLOCK_HEADER];
        out[..4].copy_from_slice(&BLOCK_MAGIC);
        out[4] = self.kind;
        out[5] = u8::from(self.packed);
        out[6..8].copy_from_slice(&self.number.to_le_bytes());
        let words = [self.sequence, self.stored, self.content, self.checksum, self.file];
        for (place, word) in out[8..28].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        seal(&mut out);
        out
    }

    /// `None` if these are not the bytes of a block's header.
    pub fn from_bytes(bytes: &[u8; BLOCK_HEADER]) -> Option<Self> {
        if bytes[..4] != BLOCK_MAGIC || !is_sealed(bytes) || bytes[5] > 1 {
            return None;
        }
        let header = BlockHeader {
            kind: bytes[4],
            packed: bytes[5] == 1,
            number: u16::from_le_bytes([bytes[6], bytes[7]]),
            sequence: word(bytes, 8),
            stored: word(bytes, 12),
            content: word(bytes, 16),
            checksum: word(bytes, 20),
            file: word(bytes, 24),
        };
        let fits = header.stored as usize <= MAX_STORED && header.content as usize <= MAX_CONTENT;
        fits.then_some(header)
    }

    /// Checks and unpacks the content.
    pub fn unpack(&self, stored: &[u8]) -> Result<Vec<u8>, Malformed> {
        if crc32(stored) != self.checksum {
            return Err(Malformed("its checksum is wrong"));
        }
        if !self.packed {
            return Ok(stored.to_vec());
        }
        // The header was checked: the size is bounded.
        let mut content = vec![0; self.content as usize];
        match lz4_flex::block::decompress_into(stored, &mut content) {
            Ok(length) if length == content.len() => Ok(content),
            _ => Err(Malformed("it cannot be unpacked")),
        }
    }
}

/// The bytes of a whole block. `content` is at most [`MAX_CONTENT`] long.
pub fn pack(kind: Kind, number: u16, sequence: u32, file: u32, content: &[u8]) -> Vec<u8> {
    let compressed = lz4_flex::block::compress(content);
    let packed = compressed.len() < content.len();
    let stored = if packed { &compressed[..] } else { content };
    let header = BlockHeader {
        kind: kind as u8,
        packed,
        number,
        sequence,
        stored: stored.len() as u32,
        content: content.len() as u32,
        checksum: crc32(stored),
        file,
    };
    [&header.to_bytes()[..], stored].concat()
}

pub fn file_header(version: u16, file: u32) -> [u8; FILE_HEADER] {
    let mut out = [0; FILE_HEADER];
    out[..8].copy_from_slice(&FILE_MAGIC);
    out[8..10].copy_from_slice(&version.to_le_bytes());
    out[12..16].copy_from_slice(&file.to_le_bytes());
    seal(&mut out);
    out
}

/// The version and the number of a file; `None` if these are not the bytes of a file's header.
pub fn read_file_header(bytes: &[u8; FILE_HEADER]) -> Option<(u16, u32)> {
    let is = bytes[..8] == FILE_MAGIC && is_sealed(bytes);
    is.then(|| (u16::from_le_bytes([bytes[8], bytes[9]]), word(bytes, 12)))
}

pub fn trailer(index: u64, file: u32) -> [u8; TRAILER] {
    let mut out = [0; TRAILER];
    out[..8].copy_from_slice(&END_MAGIC);
    out[8..16].copy_from_slice(&index.to_le_bytes());
    out[16..20].copy_from_slice(&file.to_le_bytes());
    seal(&mut out);
    out
}

/// Where the index begins; `None` if these are not the last bytes of that file.
pub fn read_trailer(bytes: &[u8; TRAILER], file: u32) -> Option<u64> {
    let is = bytes[..8] == END_MAGIC && is_sealed(bytes) && word(bytes, 16) == file;
    let index = [8, 9, 10, 11, 12, 13, 14, 15].map(|at| bytes[at]);
    is.then(|| u64::from_le_bytes(index))
}

fn word(bytes: &[u8; 32], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Puts the checksum of the first 28 bytes into the last four.
fn seal(bytes: &mut [u8; 32]) {
    let sum = crc32(&bytes[..28]);
    bytes[28..].copy_from_slice(&sum.to_le_bytes());
}

fn is_sealed(bytes: &[u8; 32]) -> bool {
    word(bytes, 28) == crc32(&bytes[..28])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_packed_or_not() {
        for content in [&b"xyz"[..], &[7; 10_000], b""] {
            let bytes = pack(Kind::Values, 3, 9, 77, content);
            let (head, stored) = bytes.split_first_chunk().unwrap();
            let header = BlockHeader::from_bytes(head).unwrap();
            assert_eq!((header.kind, header.number, header.sequence, header.file), (9, 3, 9, 77));
            assert_eq!(header.unpack(stored).unwrap(), content);
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = pack(Kind::Run, 0, 1, 2, &[9; 100]);
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (head, stored) = bytes.split_first_chunk().unwrap();
            let good = BlockHeader::from_bytes(head).is_some_and(|h| h.unpack(stored).is_ok());
            assert!(!good, "bit {bit}");
        }
    }
}
