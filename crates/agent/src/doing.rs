//! What the control thread is inside the JVM for, in memory that the tool can read meanwhile.
//!
//! A call into the JVM cannot be interrupted, and whoever makes it answers nobody. So its beginning
//! is noted in a page of memory with a name of its own, which `/proc/PID/fd` shows: no file, no
//! thread, and nothing that outlives the agent.

use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use tare_protocol::{BatchProgress, PROGRESS_BYTES};

/// `tare_protocol::PROGRESS_MEMORY`, as the system wants it.
const NAME: &std::ffi::CStr = c"tare-progress";

static MEMORY: Mutex<Option<File>> = Mutex::new(None);

/// Notes what begins now. Without memory for it nothing is noted, and nothing else is different.
pub fn note(progress: &BatchProgress) {
    let mut frame = progress.to_message().encode();
    frame.resize(PROGRESS_BYTES, 0);
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    if memory.is_none() {
        // SAFETY: a name that ends with a zero; the result is a descriptor that nobody else owns.
        *memory = unsafe {
            match libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) {
                -1 => None,
                fd => Some(File::from_raw_fd(fd)),
            }
        };
    }
    if let Some(memory) = memory.as_ref() {
        let _ = memory.write_at(&frame, 0);
    }
}

/// Nothing is under way any more.
pub fn done() {
    *MEMORY.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_protocol::{Decoder, Message, PROGRESS_MEMORY};

    #[test]
    fn what_is_noted_can_be_read_by_the_memory_s_name() {
        assert_eq!(NAME.to_str(), Ok(PROGRESS_MEMORY));
        for all in [7, 70_000] {
            note(&BatchProgress { all, ..BatchProgress::default() });
        }
        let link = |fd: &std::fs::DirEntry| std::fs::read_link(fd.path()).unwrap_or_default();
        let find = || {
            let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            all.into_iter().find(|fd| link(fd).to_string_lossy().contains(PROGRESS_MEMORY))
        };
        let bytes = std::fs::read(find().expect("the memory").path()).unwrap();
        let mut decoder = Decoder::default();
        decoder.push(&bytes);
        let message: Message = decoder.next_message().unwrap().expect("a frame");
        assert_eq!(BatchProgress::from_message(&message).unwrap().all, 70_000);
        done();
        assert!(find().is_none());
    }
}
