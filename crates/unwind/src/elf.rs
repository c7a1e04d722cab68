//! What a loaded module says about itself: where its call-frame information begins, and its
//! build id. Bytes in, answers out.

use crate::cfi::Fault;
use crate::read::Bytes;

/// The contents of `.eh_frame_hdr`, but for its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// The address of `.eh_frame`.
    pub frames: u64,
    /// How many functions it describes, if the header says so.
    pub functions: Option<u64>,
}

/// Reads the first bytes of `.eh_frame_hdr`; `address` is where they are loaded.
pub fn frame_header(bytes: &[u8], address: u64) -> Result<FrameHeader, Fault> {
    const OMITTED: u8 = 0xff;
    let mut at = Bytes::new(bytes, address);
    if at.u8()? != 1 {
        return Err(Fault::Augmentation);
    }
    let [frames, count, _table] = [at.u8()?, at.u8()?, at.u8()?];
    let frames = at.pointer(frames)?;
    let functions = if count == OMITTED { None } else { Some(at.pointer(count)?) };
    Ok(FrameHeader { frames, functions })
}

/// Longer ones exist nowhere; linkers write 8, 16 or 20 bytes.
const BUILD_ID_LIMIT: usize = 64;

/// Finds the build id in the bytes of a note segment.
pub fn build_id(notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut at = Bytes::new(notes, 0);
    loop {
        let name_length = at.u32().ok()? as usize;
        let length = at.u32().ok()? as usize;
        let kind = at.u32().ok()?;
        let name = at.take(name_length.checked_next_multiple_of(4)?).ok()?.rest();
        let padded = length.checked_next_multiple_of(4)?;
        // The last note may lack its padding.
        let contents = at.take(padded.min(at.rest().len())).ok()?.rest();
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" && length <= BUILD_ID_LIMIT {
            return contents.get(..length).filter(|id| !id.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, contents: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [name.len() as u32, contents.len() as u32, kind] {
            bytes.extend(number.to_ne_bytes());
        }
        for part in [name, contents] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn a_build_id_is_found_among_notes() {
        let mut notes = note(b"GNU\0", 1, &[0; 16]);
        notes.extend(note(b"XYZ\0", 3, &[1, 2, 3]));
        assert_eq!(build_id(&notes), None);
        notes.extend(note(b"GNU\0", 3, &[7; 20]));
        assert_eq!(build_id(&notes), Some(&[7; 20][..]));
        for length in 0..notes.len() {
            assert_eq!(build_id(&notes[..length]), None, "of {length} bytes");
        }
        assert_eq!(build_id(&note(b"GNU\0", 3, &[7; 65])), None, "too long");
        assert_eq!(build_id(&[0xff; 64]), None);
    }

    #[test]
    fn a_frame_header_leads_to_the_frames() {
        let bytes = [1, 0x1b, 0x03, 0x3b, 0xf8, 0xff, 0xff, 0xff, 5, 0, 0, 0];
        let expected = FrameHeader { frames: 0x2004 - 8, functions: Some(5) };
        assert_eq!(frame_header(&bytes, 0x2000), Ok(expected));
        for length in 0..bytes.len() {
            assert_eq!(frame_header(&bytes[..length], 0x2000), Err(Fault::Truncated));
        }
        assert_eq!(frame_header(&[2; 12], 0x2000), Err(Fault::Augmentation));
    }
}
