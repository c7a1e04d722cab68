//! The bytes of a dump, read by position: a file as it is, or what a packed one unpacks to.
//!
//! Files are read and not mapped. A mapped file that somebody cuts would end this process by a
//! signal, and its pages would count as memory of ours.

use crate::error::{HeapError, Result};
use crate::unpack;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub struct Input {
    store: Store,
    length: u64,
    /// What the reader should know about the file, in sentences.
    pub notes: Vec<String>,
}

pub enum Store {
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
            return unpack::unpack(&file, length, temporary, progress);
        }
        Ok(Input::new(Store::File(file), length, Vec::new()))
    }

    pub fn of_bytes(bytes: Vec<u8>) -> Input {
        let length = bytes.len() as u64;
        Input::new(Store::Memory(bytes), length, Vec::new())
    }

    pub(crate) fn new(store: Store, length: u64, notes: Vec<String>) -> Input {
        Input { store, length, notes }
    }

    #[cfg(test)]
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.store, Store::Memory(_))
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

pub fn read_file(file: &File, offset: u64, buffer: &mut [u8]) -> Result<usize> {
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
