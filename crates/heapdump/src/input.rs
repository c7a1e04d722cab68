//! The bytes of a dump, read by position: a file as it is, or what a packed one unpacks to.
//!
//! Files are read and not mapped. A mapped file that somebody cuts would end this process by a
//! signal, and its pages would count as memory of ours.

use crate::error::{HeapError, Result};
use flate2::read::MultiGzDecoder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A packed file that unpacks to no more than this stays in memory.
const IN_MEMORY: usize = 64 << 20;

/// What a packed file may unpack to. Anything larger is a bomb rather than a heap.
const MOST_UNPACKED: u64 = 1 << 40;

/// Buffers for unpacking.
const PORTION: usize = 1 << 20;

pub struct Input {
    store: Store,
    length: u64,
    /// What the reader should know about the file, in sentences.
    pub notes: Vec<String>,
}

enum Store {
    Memory(Vec<u8>),
    File(File),
}

/// Opens a file. Opening a pipe would wait for whoever writes into it, so it is refused.
pub fn open(path: &Path) -> Result<File> {
    let kind = fs::metadata(path).map_err(HeapError::io("it cannot be opened"))?.file_type();
    if !kind.is_file() {
        let reason = "it is a directory, a device or a pipe; name a file".to_owned();
        return Err(HeapError::NotADump { reason });
    }
    File::open(path).map_err(HeapError::io("it cannot be opened"))
}

impl Input {
    /// A file; one packed by gzip is unpacked first, into memory or a file in `temporary` that has
    /// no name any more.
    pub fn of_file(file: File, temporary: &Path, progress: &dyn Fn(u64, u64)) -> Result<Input> {
        let length = file.metadata().map_err(HeapError::io("it cannot be read"))?.len();
        let mut magic = [0; 2];
        let read = file.read_at(&mut magic, 0).map_err(HeapError::io("it cannot be read"))?;
        if read == 2 && magic == [0x1f, 0x8b] {
            return unpack(&file, length, temporary, progress);
        }
        Ok(Input { store: Store::File(file), length, notes: Vec::new() })
    }

    pub fn of_bytes(bytes: Vec<u8>) -> Input {
        let length = bytes.len() as u64;
        Input { store: Store::Memory(bytes), length, notes: Vec::new() }
    }

    pub fn length(&self) -> u64 {
        self.length
    }
}

/// Something that is read by position.
pub trait ReadAt: Sync {
    /// Fills the buffer from a position; fewer bytes are read only at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;
}

impl ReadAt for Input {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match &self.store {
            Store::Memory(bytes) => {
                let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let count = buffer.len().min(bytes.len() - begin);
                buffer[..count].copy_from_slice(&bytes[begin..begin + count]);
                Ok(count)
            }
            Store::File(file) => read_file(file, offset, buffer),
        }
    }
}

fn read_file(file: &File, offset: u64, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(HeapError::Io { doing: "it cannot be read", error }),
        }
    }
    Ok(filled)
}

/// Unpacks all members of a file, one after the other; what a cut one has is taken.
fn unpack(
    file: &File,
    packed: u64,
    temporary: &Path,
    progress: &dyn Fn(u64, u64),
) -> Result<Input> {
    let mut source = MultiGzDecoder::new(io::BufReader::with_capacity(PORTION, file));
    let mut memory = Vec::new();
    let mut spilled: Option<File> = None;
    let mut length = 0_u64;
    let mut notes = Vec::new();
    let mut buffer = vec![0; PORTION];
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let sum = length >> 20;
                notes.push(format!("it cannot be unpacked beyond {sum} MiB ({error})"));
                break;
            }
        };
        length += count as u64;
        if length > MOST_UNPACKED {
            let what = format!("it unpacks to more than {} GiB", MOST_UNPACKED >> 30);
            return Err(HeapError::TooLarge { what });
        }
        if spilled.is_none() && memory.len() + count > IN_MEMORY {
            let mut file = nameless(temporary)?;
            file.write_all(&memory).map_err(HeapError::io(CANNOT_UNPACK))?;
            memory = Vec::new();
            spilled = Some(file);
        }
        match &mut spilled {
            Some(file) => {
                file.write_all(&buffer[..count]).map_err(HeapError::io(CANNOT_UNPACK))?;
            }
            None => memory.extend_from_slice(&buffer[..count]),
        }
        let position = io::Seek::stream_position(&mut &*file).unwrap_or(0);
        progress(position.min(packed), packed);
    }
    let store = spilled.map_or_else(|| Store::Memory(memory), Store::File);
    Ok(Input { store, length, notes })
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
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn open(name: &str, bytes: &[u8]) -> Input {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("tare-input-{name}-{}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        let input = Input::of_file(super::open(&path).unwrap(), &directory, &|_, _| {});
        fs::remove_file(&path).unwrap();
        input.unwrap()
    }

    #[test]
    fn members_are_unpacked_one_after_the_other() {
        let file = [packed(b"one "), packed(b"two")].concat();
        let input = open("members", &file);
        let mut bytes = [0; 16];
        assert_eq!(input.read_at(0, &mut bytes).unwrap(), 7);
        assert_eq!(&bytes[..7], b"one two");
        assert!(input.notes.is_empty());
    }

    #[test]
    fn what_a_cut_file_has_is_there_and_the_loss_is_said() {
        let whole: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let file = packed(&whole);
        let input = open("cut", &file[..file.len() / 2]);
        assert!(input.length() > 1000 && input.length() < whole.len() as u64);
        assert_eq!(input.notes.len(), 1);
        let mut start = [0; 1000];
        input.read_at(0, &mut start).unwrap();
        assert_eq!(start[..], whole[..1000]);
    }

    #[test]
    fn a_large_one_goes_through_a_file() {
        let whole = vec![7; IN_MEMORY + 10];
        let input = open("large", &packed(&whole));
        assert!(matches!(input.store, Store::File(_)));
        let mut end = [0; 20];
        assert_eq!(input.read_at(IN_MEMORY as u64, &mut end).unwrap(), 10);
        assert_eq!(end[..10], [7; 10]);
    }
}
