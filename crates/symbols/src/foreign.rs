//! Files that somebody else chose: paths of another process, which may lead to pipes, devices, or
//! file systems that do not answer. They are opened without waiting, and read on a thread that can
//! be left behind.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Opens a regular file for reading, links followed. Anything else is an error, and is not even
/// opened: to open a pipe can wait for ever, and to open a device can do whatever the device likes.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let place = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    if !place.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    // The same file, whatever the path leads to by now.
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(link)
}

/// How long all that is asked of foreign files may be waited for.
#[derive(Debug)]
pub struct Patience {
    left: Duration,
    each: Duration,
}

impl Patience {
    #[must_use]
    pub fn new(each: Duration, all: Duration) -> Self {
        Patience { left: all, each }
    }

    /// Does something on a thread of its own; `None` if that takes too long. The thread is then
    /// left behind: it is told to stop, and ends with the process if not before.
    pub fn wait<T: Send + 'static>(
        &mut self,
        what: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Option<T> {
        if self.left.is_zero() {
            return None;
        }
        let (tell, told) = mpsc::channel();
        let began = Instant::now();
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        thread::Builder::new().spawn(move || _ = tell.send(what(&theirs))).ok()?;
        let answer = told.recv_timeout(self.each.min(self.left)).ok();
        if answer.is_none() {
            stop.store(true, Relaxed);
            self.left = self.left.saturating_sub(began.elapsed());
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn only_regular_files_are_opened() {
        let scratch = std::env::temp_dir().join(format!("tare-foreign-{}", std::process::id()));
        fs::create_dir_all(&scratch).unwrap();
        let (plain, link, pipe) =
            (scratch.join("plain"), scratch.join("link"), scratch.join("pipe"));
        fs::write(&plain, b"text").unwrap();
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(open_regular(&plain).is_ok());
        assert!(open_regular(&link).is_ok(), "jars are often links");
        for other in [pipe.as_path(), scratch.as_path(), Path::new("/dev/zero")] {
            let error = open_regular(other).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", other.display());
        }
        assert_eq!(open_regular(&scratch.join("no")).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(&scratch).unwrap();
    }

    #[test]
    fn what_hangs_is_left_behind() {
        let (_held, for_ever) = mpsc::channel::<()>();
        let mut patience = Patience::new(Duration::from_millis(50), Duration::from_millis(60));
        assert_eq!(patience.wait(move |_| for_ever.recv().is_ok()), None);
        let (_held, for_ever) = mpsc::channel::<()>();
        assert_eq!(patience.wait(move |_| for_ever.recv().is_ok()), None);
        assert_eq!(patience.wait(|_| 1), None, "all patience is used up, so it is not even tried");
        // What can be told to stop is.
        let (tell, told) = mpsc::channel();
        let mut patience = Patience::new(Duration::from_millis(20), Duration::from_secs(1));
        let endless = patience.wait(move |stop| {
            while !stop.load(Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            let _ = tell.send(());
        });
        assert_eq!(endless, None);
        told.recv_timeout(Duration::from_secs(60)).unwrap();
        let mut patience = Patience::new(Duration::from_secs(60), Duration::from_secs(60));
        assert_eq!(patience.wait(|_| 7), Some(7));
    }
}
