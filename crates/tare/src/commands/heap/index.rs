//! The index beside a dump, `FILE.tare-index`: opened if it is of this dump, written if it is not.
//!
//! It is written into a file without a name, which gets its name when it is complete. So whatever
//! ends us leaves nothing behind, and nobody ever opens half an index.

use super::progress::Line;
use crate::figures::remark_aside;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open as open_at};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tare_heapdump::index::{Key, Unusable};
use tare_heapdump::{Heap, Options, Progress, Result};

/// A smaller dump is read as quickly as its index.
const LEAST: u64 = 16 << 20;

/// What is left to do beside answering the question.
pub struct Unwritten(Option<(PathBuf, Key)>);

/// Opens a dump, with its index if there is one.
pub fn open(
    dump: File,
    path: Option<&Path>,
    options: &Options,
    progress: &dyn Progress,
) -> Result<(Heap, Unwritten)> {
    let is_large = dump.metadata().is_ok_and(|about| about.len() >= LEAST);
    let beside = path.filter(|_| is_large).map(beside);
    let key = beside.as_ref().and_then(|_| Key::of(&dump).ok());
    let (Some(beside), Some(key)) = (beside, key) else {
        return Ok((Heap::of_file(dump, options, progress)?, Unwritten(None)));
    };
    // Opening a pipe would wait for whoever writes into it.
    let is_file = fs::metadata(&beside).is_ok_and(|about| about.is_file());
    if let Some(index) = is_file.then(|| File::open(&beside).ok()).flatten() {
        let clone = dump
            .try_clone()
            .map_err(|error| tare_heapdump::HeapError::Io { doing: "it cannot be read", error })?;
        match Heap::of_index(clone, index, options, progress)? {
            Ok(heap) => return Ok((heap, Unwritten(Some((beside, key))))),
            Err(Unusable::Stale | Unusable::OtherVersion) => {}
            Err(Unusable::Damaged) => {
                let name = beside.display();
                remark_aside(&format!("{name} is damaged or no index; it is written anew"));
            }
        }
    }
    let heap = Heap::of_file(dump, options, progress)?;
    Ok((heap, Unwritten(Some((beside, key)))))
}

fn beside(dump: &Path) -> PathBuf {
    let mut name: OsString = dump.as_os_str().to_owned();
    name.push(".tare-index");
    PathBuf::from(name)
}

impl Unwritten {
    /// Answers a question, and meanwhile writes the index of a heap that was computed, on another
    /// processor. It is no harm if that fails; what is to be said of it comes after the answer.
    pub fn keep<T>(self, heap: &Heap, quiet: bool, answer: impl FnOnce() -> T) -> T {
        let Some((path, key)) = self.0 else { return answer() };
        let name = path.display();
        if heap.index().is_none() {
            let progress = Later { line: Line::new(quiet, None), may_tell: AtomicBool::new(false) };
            let (answer, written) = thread::scope(|scope| {
                let writing = scope.spawn(|| write(&path, heap, &key, &progress));
                let answer = answer();
                progress.may_tell.store(true, Ordering::Relaxed);
                (answer, writing.join())
            });
            let error = match written {
                Ok(Ok(())) => return answer,
                Ok(Err(error)) => error,
                Err(_) => io::Error::other("the thread that writes it has failed"),
            };
            drop(progress);
            remark_aside(&format!(
                "no index is kept beside the dump, which is read anew each time: {name} cannot be \
                 written ({error})"
            ));
            return answer;
        }
        let answer = answer();
        if heap.index() == Some(true) {
            let _ = fs::remove_file(&path);
            remark_aside(&format!(
                "{name} was damaged, and was removed; the dump was read instead"
            ));
        }
        answer
    }
}

/// Progress that nobody sees before the answer.
struct Later {
    line: Line,
    may_tell: AtomicBool,
}

impl Progress for Later {
    fn tell(&self, stage: &'static str, done: u64, all: u64) {
        if self.may_tell.load(Ordering::Relaxed) {
            self.line.tell(stage, done, all);
        }
    }
}

fn write(path: &Path, heap: &Heap, key: &Key, progress: &dyn Progress) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    // A heap has secrets: nobody else may read what is known of it.
    let file = File::from(open_at(directory, flags, Mode::RUSR | Mode::WUSR)?);
    // What is large passes it by.
    let mut out = BufWriter::with_capacity(64 << 10, &file);
    heap.write_index(key, &mut out, progress)?;
    out.flush()?;
    drop(out);
    // An old one is of no use to anybody.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    match linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        // Somebody else was as quick.
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
