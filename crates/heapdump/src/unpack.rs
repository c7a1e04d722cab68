//! Unpacks a dump that was packed by gzip, into memory or into a file without a name.
//!
//! HotSpot packs a dump in members of a megabyte, which are unpacked on all processors. Where one
//! begins is not told, so it is guessed by its first bytes. What was unpacked counts only if it
//! begins where the member before it ends; a wrong guess costs time and nothing else. A file that is
//! packed in one piece, or cut, is unpacked front to back.

use crate::error::{HeapError, Result};
use crate::input::{Input, Store, read_file};
use crate::par;
use flate2::bufread::GzDecoder;
use flate2::read::MultiGzDecoder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// A packed file that unpacks to no more than this stays in memory.
const IN_MEMORY: usize = 64 << 20;

/// What a packed file may unpack to. Anything larger is a bomb rather than a heap.
const MOST_UNPACKED: u64 = 1 << 40;

/// Buffers for unpacking.
const PORTION: usize = 1 << 20;

/// What a member may unpack to if it is to be unpacked beside others; HotSpot's have a megabyte.
const LARGEST: u64 = 4 << 20;

/// Members that each processor unpacks in one turn, and what of the file is looked at for them.
const IN_A_TURN: usize = 8;
const LOOKED_AT: usize = 2 << 20;

/// What a member begins with, but for the first one, which has a comment: deflated, no name and no
/// time.
const BEGINNING: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
const ZEROS: usize = 5;

/// Unpacks all members of a file; what a cut one has is taken.
pub fn unpack(
    file: &File,
    packed: u64,
    temporary: &Path,
    progress: &dyn Fn(u64, u64),
) -> Result<Input> {
    let mut out = Out { temporary, memory: Vec::new(), spilled: None, length: 0 };
    let at = beside_each_other(file, packed, &mut out, progress)?;
    let mut notes = Vec::new();
    if at < packed {
        notes.extend(one_by_one(file, at, packed, &mut out, progress)?);
    }
    let Out { memory, spilled, length, .. } = out;
    let store = spilled.map_or_else(|| Store::Memory(memory), Store::File);
    Ok(Input::new(store, length, notes))
}

/// Unpacks members as long as they are small; how far that went.
fn beside_each_other(
    file: &File,
    packed: u64,
    out: &mut Out<'_>,
    progress: &dyn Fn(u64, u64),
) -> Result<u64> {
    let mut at = 0;
    let mut bytes = vec![0; LOOKED_AT * par::threads()];
    // What the turn before has unpacked, which is written while others are unpacked.
    let mut ready: Vec<Vec<u8>> = Vec::new();
    // Buffers that were written: memory that is used again need not be had from the system.
    let spare: Mutex<Vec<Vec<u8>>> = Mutex::default();
    loop {
        let count = read_file(file, at, &mut bytes)?;
        let begins = beginnings(&bytes[..count], IN_A_TURN * par::threads());
        let writing = Mutex::new((&mut *out, std::mem::take(&mut ready)));
        let members = par::each(begins.len() + 1, |turn| match turn.checked_sub(1) {
            Some(number) => {
                let buffer = lock(&spare).pop().unwrap_or_else(|| Vec::with_capacity(PORTION));
                Ok(member(&bytes[begins[number]..count], buffer))
            }
            None => {
                let (out, ready) = &mut *lock(&writing);
                for buffer in ready.drain(..) {
                    out.put(&buffer)?;
                    lock(&spare).push(buffer);
                }
                Ok(None)
            }
        });
        let mut members: Vec<Option<Member>> = members.into_iter().collect::<Result<_>>()?;
        let mut end = 0;
        while let Ok(number) = begins.binary_search(&end)
            && let Some(member) = members[number + 1].take()
        {
            end += member.packed;
            ready.push(member.bytes);
        }
        if end == 0 {
            return Ok(at);
        }
        at += end as u64;
        progress(at.min(packed), packed);
    }
}

/// Where members may begin; the first bytes are one in any case.
fn beginnings(bytes: &[u8], most: usize) -> Vec<usize> {
    let mut begins = Vec::new();
    if !bytes.is_empty() {
        begins.push(0);
    }
    // It ends with five zeros, so every fifth byte is enough to look at: just one of them is it.
    let zeros = (0..bytes.len()).step_by(ZEROS).filter(|at| bytes[*at] == 0);
    let others = zeros.flat_map(|zero| {
        let first = (zero + 1).saturating_sub(BEGINNING.len()).max(1);
        let last = zero.saturating_sub(BEGINNING.len() - ZEROS);
        (first..=last).filter(|at| bytes[*at..].starts_with(&BEGINNING))
    });
    begins.extend(others.take(most));
    begins
}

struct Member {
    bytes: Vec<u8>,
    /// How many bytes it has in the file.
    packed: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Unpacks the member at the beginning into a buffer; `None` if it is none, cut or large.
fn member(packed: &[u8], mut bytes: Vec<u8>) -> Option<Member> {
    bytes.clear();
    let mut decoder = GzDecoder::new(packed).take(LARGEST + 1);
    decoder.read_to_end(&mut bytes).ok()?;
    let left = decoder.into_inner().into_inner().len();
    let is_small = bytes.len() as u64 <= LARGEST;
    is_small.then(|| Member { bytes, packed: packed.len() - left })
}

/// Unpacks from a member on, to the end; what could not be unpacked, in a sentence.
fn one_by_one(
    file: &File,
    from: u64,
    packed: u64,
    out: &mut Out<'_>,
    progress: &dyn Fn(u64, u64),
) -> Result<Option<String>> {
    let mut file = file;
    file.seek(SeekFrom::Start(from)).map_err(HeapError::io("it cannot be read"))?;
    let mut source = MultiGzDecoder::new(io::BufReader::with_capacity(PORTION, file));
    let mut buffer = vec![0; PORTION];
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let sum = out.length >> 20;
                return Ok(Some(format!("it cannot be unpacked beyond {sum} MiB ({error})")));
            }
        };
        out.put(&buffer[..count])?;
        let position = file.stream_position().unwrap_or(0);
        progress(position.min(packed), packed);
    }
}

/// Where it is unpacked to.
struct Out<'a> {
    temporary: &'a Path,
    memory: Vec<u8>,
    spilled: Option<File>,
    length: u64,
}

impl Out<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        if self.length > MOST_UNPACKED {
            let what = format!("it unpacks to more than {} GiB", MOST_UNPACKED >> 30);
            return Err(HeapError::TooLarge { what });
        }
        if self.spilled.is_none() && self.memory.len() + bytes.len() > IN_MEMORY {
            let mut file = nameless(self.temporary)?;
            file.write_all(&self.memory).map_err(HeapError::io(CANNOT_UNPACK))?;
            self.memory = Vec::new();
            self.spilled = Some(file);
        }
        match &mut self.spilled {
            Some(file) => file.write_all(bytes).map_err(HeapError::io(CANNOT_UNPACK))?,
            None => self.memory.extend_from_slice(bytes),
        }
        Ok(())
    }
}

const CANNOT_UNPACK: &str =
    "it cannot be unpacked into the directory for temporary files (TMPDIR chooses another)";

/// A file that is gone with this process, however that ends.
fn nameless(directory: &Path) -> Result<File> {
    let name = format!("tare-heap-{}.unpacked", std::process::id());
    let path: PathBuf = directory.join(name);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path);
    let file = file.map_err(HeapError::io(CANNOT_UNPACK))?;
    fs::remove_file(&path).map_err(HeapError::io(CANNOT_UNPACK))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::ReadAt;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn opened(name: &str, bytes: &[u8]) -> Input {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("tare-input-{name}-{}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        let input = Input::of_file(crate::input::open(&path).unwrap(), &directory, &|_, _| {});
        fs::remove_file(&path).unwrap();
        input.unwrap()
    }

    #[test]
    fn members_are_unpacked_one_after_the_other() {
        let file = [packed(b"one "), packed(b"two")].concat();
        let input = opened("members", &file);
        let mut bytes = [0; 16];
        assert_eq!(input.read_at(0, &mut bytes).unwrap(), 7);
        assert_eq!(&bytes[..7], b"one two");
        assert!(input.notes.is_empty());
    }

    #[test]
    fn what_a_cut_file_has_is_there_and_the_loss_is_said() {
        let whole: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let file = packed(&whole);
        let input = opened("cut", &file[..file.len() / 2]);
        assert!(input.length() > 1000 && input.length() < whole.len() as u64);
        assert_eq!(input.notes.len(), 1);
        let mut start = [0; 1000];
        input.read_at(0, &mut start).unwrap();
        assert_eq!(start[..], whole[..1000]);
    }

    #[test]
    fn a_large_one_goes_through_a_file() {
        let whole = vec![7; IN_MEMORY + 10];
        let input = opened("large", &packed(&whole));
        assert!(!input.is_in_memory());
        let mut end = [0; 20];
        assert_eq!(input.read_at(IN_MEMORY as u64, &mut end).unwrap(), 10);
        assert_eq!(end[..10], [7; 10]);
    }

    /// As HotSpot does: members without a name or a time, the first with a comment.
    fn packed_in_members(bytes: &[u8], each: usize) -> Vec<u8> {
        let pack = |(number, part): (usize, &[u8])| {
            let builder = flate2::GzBuilder::new();
            let builder = if number == 0 { builder.comment("HPROF BLOCKSIZE") } else { builder };
            let mut encoder = builder.write(Vec::new(), Compression::fast());
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap()
        };
        bytes.chunks(each).enumerate().flat_map(pack).collect()
    }

    fn whole(input: &Input) -> Vec<u8> {
        let mut bytes = vec![0; input.length() as usize];
        assert_eq!(input.read_at(0, &mut bytes).unwrap(), bytes.len());
        bytes
    }

    #[test]
    fn members_of_any_size_and_number_are_whole() {
        let bytes: Vec<u8> =
            (0..700_000_u32).flat_map(|n| [n as u8, (n >> 8) as u8, 1, 2, 3, 4, 5, 6]).collect();
        // Many, some, and so large that they are unpacked one by one.
        for each in [40_000, 1 << 20, 5 << 20] {
            let file = packed_in_members(&bytes, each);
            let input = opened(&format!("members-{each}"), &file);
            assert!(whole(&input) == bytes, "{each}");
            assert!(input.notes.is_empty(), "{each}: {:?}", input.notes);
            // The last member is cut off; all before it are there.
            let input = opened(&format!("members-cut-{each}"), &file[..file.len() - 5]);
            assert!(bytes.starts_with(&whole(&input)), "{each}");
            assert!(input.length() as usize >= bytes.len().saturating_sub(each + 1), "{each}");
            assert_eq!(input.notes.len(), 1, "{each}");
        }
    }

    #[test]
    fn beginnings_are_found_wherever_they_are() {
        for at in 1..40 {
            let mut bytes = vec![0; 60];
            bytes[at..at + 8].copy_from_slice(&BEGINNING);
            bytes[at + 12..at + 20].copy_from_slice(&BEGINNING);
            assert_eq!(beginnings(&bytes, 9), [0, at, at + 12], "{at}");
            assert_eq!(beginnings(&bytes[..at + 19], 9), [0, at], "{at}");
            assert_eq!(beginnings(&bytes, 1), [0, at], "{at}");
        }
        assert_eq!(beginnings(&[], 9), [0_usize; 0]);
    }

    #[test]
    fn what_looks_like_a_beginning_and_is_none_does_no_harm() {
        // Stored and not deflated, the inner members are there as they are.
        let inner = packed_in_members(&vec![7; 100_000], 10_000);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
        encoder.write_all(&inner).unwrap();
        let file = [encoder.finish().unwrap(), packed(b"end")].concat();
        assert!(beginnings(&file, 100).len() > 5);
        let input = opened("guessed", &file);
        assert!(whole(&input) == [inner.as_slice(), b"end"].concat());
        assert!(input.notes.is_empty());
    }
}
