//! The targets, by whose bytes they read.

pub mod arena;
pub mod class_file;
pub mod elf;
pub mod formats;
pub mod heap_dump;
pub mod heap_index;
pub mod http;
pub mod jar;
pub mod process;
pub mod protocol;
pub mod recording;
pub mod stream;

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A file in memory with these bytes, and as long as that: what lies behind them is a hole.
pub fn file(bytes: &[u8], length: usize) -> File {
    let file = memfd_create("tare-fuzz", MemfdFlags::CLOEXEC).expect("a file in memory");
    let file = File::from(file);
    file.set_len(length.max(bytes.len()) as u64).expect("a file in memory");
    file.write_all_at(bytes, 0).expect("a file in memory");
    file
}
