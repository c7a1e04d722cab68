//! What an agent of ours is doing that answers nobody, as far as it can be seen from outside.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use tare_protocol::{BatchProgress, Decoder, PROGRESS_BYTES, PROGRESS_MEMORY};

use crate::jvm_files;
use crate::procfs;

/// Descriptors of a JVM that are looked at.
const MOST_FILES: usize = 100_000;

/// The agent's thread, from before its control socket is there until all that it did is undone.
const THREAD: &str = "tare-control";

/// Whether the thread of an agent is in a JVM: then it is at work, or leaving.
#[must_use]
pub fn has_control_thread(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .any(|comm| comm.trim_end() == THREAD)
}

/// What the agent in a JVM is inside the JVM for at this moment, if that may take long.
#[must_use]
pub fn progress(pid: u32) -> Option<BatchProgress> {
    let named = format!("/memfd:{PROGRESS_MEMORY}{}", procfs::DELETED);
    let is_it = |path: &Path| fs::read_link(path).is_ok_and(|link| link == Path::new(&named));
    let all = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    // Anybody can give a file that name, so it is read no more trustingly than any other.
    all.take(MOST_FILES).map(|entry| entry.path()).filter(|path| is_it(path)).find_map(read)
}

/// The first bytes of what must be a regular file, without waiting for anything.
fn read(path: PathBuf) -> Option<BatchProgress> {
    let place = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    if FileType::from_raw_mode(fstat(&place).ok()?.st_mode) != FileType::RegularFile {
        return None;
    }
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, link, flags, Mode::empty()).ok()?);
    parse(&jvm_files::read_regular(file, PROGRESS_BYTES as u64).ok()?)
}

fn parse(bytes: &[u8]) -> Option<BatchProgress> {
    let mut decoder = Decoder::default();
    decoder.push(bytes.get(..bytes.len().min(PROGRESS_BYTES))?);
    BatchProgress::from_message(&decoder.next_message().ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_frame_is_no_progress() {
        let progress = BatchProgress { all: 7, ..BatchProgress::default() };
        let mut bytes = progress.to_message().encode();
        assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
        bytes.resize(PROGRESS_BYTES, 0);
        assert_eq!(parse(&bytes), Some(progress));
        assert_eq!(parse(&[0; PROGRESS_BYTES]), None);
        assert_eq!(parse(&[0xff; 10_000]), None);
        assert!(!has_control_thread(std::process::id()));
    }

    #[test]
    fn an_endless_file_of_that_name_is_not_read_whole() {
        use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
        use std::os::unix::fs::FileExt;
        let progress = BatchProgress { all: 7, ..BatchProgress::default() };
        // Nothing but holes, more than there is memory; and another that is what it says.
        let endless = memfd_create(PROGRESS_MEMORY, MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&endless, 1 << 46).unwrap();
        let true_one = File::from(memfd_create(PROGRESS_MEMORY, MemfdFlags::CLOEXEC).unwrap());
        true_one.write_all_at(&progress.to_message().encode(), 0).unwrap();
        assert_eq!(super::progress(std::process::id()), Some(progress));
        let of = |file: &std::os::fd::OwnedFd| format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(read(of(&endless).into()), None);
        let (pipe, _writes) = rustix::pipe::pipe().unwrap();
        assert_eq!(read(of(&pipe).into()), None);
    }
}
