//! Gzip with a bound: a small file must not become an endless one.

use crate::collapsed;
use crate::error::ReadError;
use flate2::read::MultiGzDecoder;
use std::io::{BufRead, BufReader, Read};
use tare_profile::Profile;

/// So much is unpacked before the rest is.
const BEGINNING: u64 = 1 << 20;
/// Small files may unpack to this, whatever their size.
const FLOOR: u64 = 64 << 20;
/// No file unpacks to more in memory: it would not fit beside the profile made of it.
const CEILING: u64 = 1 << 30;
/// What is in JFR and pprof was packed once by their own ways, and gzip finds little more.
const RATIO: u64 = 30;
/// Lines of stacks repeat themselves a lot, but not more than this; they are read as they come.
const RATIO_OF_LINES: u64 = 200;
const CEILING_OF_LINES: u64 = 16 << 30;
/// Bytes of a line.
const LONGEST_LINE: u64 = 8 << 20;
/// Bytes of the profile made of such lines, whatever the file's size, and for each of its bytes.
const PROFILE: u64 = 256 << 20;
const PROFILE_RATIO: u64 = 100;
/// Lines after which its memory is looked at.
const LOOK: u64 = 1 << 10;

pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// What is in a packed file, as far as it is told by its beginning.
pub enum Unpacked {
    /// All bytes, to be read.
    Bytes(Vec<u8>),
    /// Collapsed stacks, which are read already.
    Profile(Box<Profile>),
}

/// How much may be unpacked.
#[derive(Clone, Copy)]
struct Limits {
    bytes: u64,
    lines: u64,
    profile: u64,
}

/// The unpacked content, and what was wrong at the end, if something was: what comes before a
/// damage is still good.
pub fn unpack(bytes: &[u8]) -> Result<(Unpacked, Option<String>), ReadError> {
    let size = bytes.len() as u64;
    unpack_up_to(
        bytes,
        Limits {
            bytes: size.saturating_mul(RATIO).clamp(FLOOR, CEILING),
            lines: size.saturating_mul(RATIO_OF_LINES).clamp(FLOOR, CEILING_OF_LINES),
            profile: size.saturating_mul(PROFILE_RATIO).saturating_add(PROFILE),
        },
    )
}

fn unpack_up_to(bytes: &[u8], limits: Limits) -> Result<(Unpacked, Option<String>), ReadError> {
    let mut out = Vec::new();
    let mut unpacked = MultiGzDecoder::new(bytes);
    let mut outcome = (&mut unpacked).take(BEGINNING.min(limits.bytes + 1)).read_to_end(&mut out);
    // Most bombs are nothing that could be read, and that is seen at their beginning.
    if out.len() as u64 == BEGINNING && !crate::is_known(&out) {
        return Err(ReadError::Unknown);
    }
    let is_whole = (out.len() as u64) < BEGINNING;
    if !is_whole && outcome.is_ok() && collapsed::is_read_first(&out) {
        return lines(&out, unpacked, limits);
    }
    let limit = limits.bytes;
    if outcome.is_ok() {
        let rest = (limit + 1).saturating_sub(out.len() as u64);
        outcome = unpacked.take(rest).read_to_end(&mut out);
    }
    if out.len() as u64 > limit {
        return Err(ReadError::Bomb { limit });
    }
    match outcome {
        Ok(_) => Ok((Unpacked::Bytes(out), None)),
        Err(error) if out.is_empty() => {
            Err(ReadError::malformed("gzip", 0, &format!("it cannot be unpacked ({error})")))
        }
        Err(error) => Ok((Unpacked::Bytes(out), Some(error.to_string()))),
    }
}

/// Reads lines of stacks while they are unpacked, so that no more than one of them is held.
fn lines(
    beginning: &[u8],
    rest: impl Read,
    limits: Limits,
) -> Result<(Unpacked, Option<String>), ReadError> {
    let mut all = BufReader::with_capacity(1 << 16, beginning.chain(rest));
    let mut reader = collapsed::Reader::default();
    let mut line = Vec::new();
    let (mut read, mut count, mut problem) = (0, 0_u64, None);
    loop {
        line.clear();
        match (&mut all).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(length) => read += length as u64,
            Err(error) => {
                problem = Some(error.to_string());
                break;
            }
        }
        if read > limits.lines {
            return Err(ReadError::Bomb { limit: limits.lines });
        }
        reader.line(&line);
        count += 1;
        // A line may be as long as many, so both are looked at.
        let look = count.is_multiple_of(LOOK) || line.len() as u64 > BEGINNING / LOOK;
        if look && reader.memory() > limits.profile {
            return Err(ReadError::Bomb { limit: limits.profile });
        }
    }
    let profile = reader.finish()?;
    Ok((Unpacked::Profile(Box::new(profile)), problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_was_packed_comes_back() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let (found, problem) = unpacked(&pack(&text)).unwrap();
        assert_eq!((found, problem), (text, None));
    }

    fn unpacked(packed: &[u8]) -> Result<(Vec<u8>, Option<String>), ReadError> {
        match unpack(packed)? {
            (Unpacked::Bytes(bytes), problem) => Ok((bytes, problem)),
            (Unpacked::Profile(_), _) => panic!("these are no stacks"),
        }
    }

    fn up_to(bytes: u64) -> Limits {
        Limits { bytes, lines: bytes, profile: bytes }
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = pack(&b"a;b 1\n".repeat(1 << 18));
        let size = 6 << 18;
        let read = |limit: u64| unpack_up_to(&bomb, up_to(limit));
        assert!(matches!(read(size - 1), Err(ReadError::Bomb { .. })));
        assert!(matches!(read(1 << 19), Err(ReadError::Bomb { .. })));
        let Ok((Unpacked::Profile(profile), None)) = read(size) else { panic!("not read") };
        let total: i64 = profile.all_series().map(|(_, series)| series.total()).sum();
        assert_eq!(total, 1 << 18);
        let line = format!("a;{} 1\n", "b".repeat(1_018));
        let big = pack(line.repeat(FLOOR as usize / line.len() + 1).as_bytes());
        assert!(matches!(unpack(&big), Err(ReadError::Bomb { limit: FLOOR })));
        // What is no profile is not unpacked any further.
        let zeros = pack(&vec![0; 2 << 20]);
        assert!(matches!(unpack_up_to(&zeros, up_to(CEILING)), Err(ReadError::Unknown)));
    }

    /// Each line has its own beginning, so that nothing of the contexts is shared, and the rest of
    /// it costs the packed file nothing.
    #[test]
    fn lines_that_unfold_are_refused() {
        let deep = ";x".repeat(10_000);
        let text: String = (0..200).map(|n| format!("{n}{deep} 1\n")).collect();
        let packed = pack(text.as_bytes());
        assert!(packed.len() < 30_000, "{}", packed.len());
        let limits = Limits { bytes: 1 << 20, lines: 64 << 20, profile: 8 << 20 };
        let refused = unpack_up_to(&packed, limits);
        assert!(matches!(refused, Err(ReadError::Bomb { limit }) if limit == 8 << 20));
    }

    /// JFR and pprof are read from memory, so less of them is unpacked.
    #[test]
    fn a_bomb_that_begins_like_jfr_is_refused_early() {
        let mut bytes = b"FLR\0\0\x02\0\x01".to_vec();
        bytes.resize(FLOOR as usize + 1, 0);
        let packed = pack(&bytes);
        assert!(matches!(unpack(&packed), Err(ReadError::Bomb { limit: FLOOR })));
    }

    #[test]
    fn a_cut_file_gives_its_beginning() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let packed = pack(&text);
        let (part, problem) = unpacked(&packed[..packed.len() / 2]).unwrap();
        assert!(problem.is_some() && !part.is_empty() && text.starts_with(&part));
        assert!(unpack(&packed[..5]).is_err());
    }
}
