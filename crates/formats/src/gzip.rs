//! Gzip with a bound: a small file must not become an endless one.

use crate::error::ReadError;
use flate2::read::MultiGzDecoder;
use std::io::Read;

/// So much is unpacked before the rest is.
const BEGINNING: u64 = 1 << 20;
/// Small files may unpack to this, whatever their size.
const FLOOR: u64 = 64 << 20;
/// No file unpacks to more: it would not fit beside the profile made of it.
const CEILING: u64 = 4 << 30;
/// Stacks repeat themselves a lot, but not more than this.
const RATIO: u64 = 200;

pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The unpacked bytes, and what was wrong at the end, if something was: what comes before a damage
/// is still good.
pub fn unpack(bytes: &[u8]) -> Result<(Vec<u8>, Option<String>), ReadError> {
    unpack_up_to(bytes, (bytes.len() as u64).saturating_mul(RATIO).clamp(FLOOR, CEILING))
}

fn unpack_up_to(bytes: &[u8], limit: u64) -> Result<(Vec<u8>, Option<String>), ReadError> {
    let mut out = Vec::new();
    let mut unpacked = MultiGzDecoder::new(bytes).take(limit + 1);
    let mut outcome = (&mut unpacked).take(BEGINNING).read_to_end(&mut out);
    // Most bombs are nothing that could be read, and that is seen at their beginning.
    if out.len() as u64 == BEGINNING && !crate::is_known(&out) {
        return Err(ReadError::Unknown);
    }
    if outcome.is_ok() {
        outcome = unpacked.read_to_end(&mut out);
    }
    if out.len() as u64 > limit {
        return Err(ReadError::Bomb { limit });
    }
    match outcome {
        Ok(_) => Ok((out, None)),
        Err(error) if out.is_empty() => {
            Err(ReadError::malformed("gzip", 0, &format!("it cannot be unpacked ({error})")))
        }
        Err(error) => Ok((out, Some(error.to_string()))),
    }
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
        assert_eq!(unpack(&pack(&text)).unwrap(), (text, None));
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = pack(&b"a;b 1\n".repeat(1 << 18));
        let size = 6 << 18;
        assert!(matches!(unpack_up_to(&bomb, size - 1), Err(ReadError::Bomb { .. })));
        assert!(matches!(unpack_up_to(&bomb, 1 << 19), Err(ReadError::Bomb { .. })));
        assert!(unpack_up_to(&bomb, size).is_ok());
        let big = pack(&b"a;b 1\n".repeat(FLOOR as usize / 6 + 1));
        assert!(matches!(unpack(&big), Err(ReadError::Bomb { limit: FLOOR })));
        // What is no profile is not unpacked any further.
        let zeros = pack(&vec![0; 2 << 20]);
        assert!(matches!(unpack_up_to(&zeros, CEILING), Err(ReadError::Unknown)));
    }

    #[test]
    fn a_cut_file_gives_its_beginning() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let packed = pack(&text);
        let (part, problem) = unpack(&packed[..packed.len() / 2]).unwrap();
        assert!(problem.is_some() && !part.is_empty() && text.starts_with(&part));
        assert!(unpack(&packed[..5]).is_err());
    }
}
