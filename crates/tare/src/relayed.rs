//! This process runs a command for somebody far away: `tare relay` has started it, and passes on
//! what it prints, its file and its line of progress. Here is what a command then finds in place
//! of a terminal and of a disk: the sizes of theirs, and a queue that never makes it wait.
//!
//! How the relay talks to the other end is in `commands/relay`; what it says, in `tare-relay`.

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::collections::VecDeque;
use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tare_relay::{CHUNK, FromFar, Size};
use tare_session::Link;

/// Says that it is so, to which parent, and what the terminals there are: `out=80x24 err=80x24`.
pub const VARIABLE: &str = "TARE_RELAYED";

/// A recording that has so much waiting, or has had anything waiting for so long, sums up what
/// follows. The queue holds at most this and what one look writes.
const BEHIND: usize = 2 << 20;
const LATE: Duration = Duration::from_secs(3);

static RELAYED: OnceLock<Relayed> = OnceLock::new();

struct Relayed {
    out: Option<Size>,
    err: Option<Size>,
    queue: Arc<Queue>,
}

/// To be called at the start. The way back is standard input, which nothing else has a use for.
pub fn begin() -> Result<()> {
    let Ok(said) = env::var(VARIABLE) else { return Ok(()) };
    // If the relay dies, this is as a Ctrl-C from there.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let said = |key: &str| {
        said.split(' ').filter_map(|part| part.split_once('=')).find(|(k, _)| *k == key)
    };
    let parent = said("parent").and_then(|(_, pid)| pid.parse().ok());
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != parent {
        bail!("the relay that this was started by has gone");
    }
    let back = io::stdin().as_fd().try_clone_to_owned().context("the way back is missing")?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // Colours are the other end's business, too.
    anstream::ColorChoice::Always.write_global();
    let size = |key| said(key).and_then(|(_, size)| size.parse().ok());
    let queue = Arc::new(Queue::default());
    let (out, err) = (size("out"), size("err"));
    if RELAYED.set(Relayed { out, err, queue: Arc::clone(&queue) }).is_ok() {
        let mut back = UnixStream::from(back);
        std::thread::Builder::new().name("tare-back".to_owned()).spawn(move || {
            queue.send_all(&mut back);
            let _ = back.shutdown(Shutdown::Both);
        })?;
    }
    Ok(())
}

/// Whether it is so.
pub fn is() -> bool {
    RELAYED.get().is_some()
}

/// The terminals of the other end; nothing if this process has ones of its own.
pub fn terminal(of_error: bool) -> Option<Option<Size>> {
    RELAYED.get().map(|relayed| if of_error { relayed.err } else { relayed.out })
}

/// The line of progress from now on. Whether there is anybody to pass it on.
pub fn progress(text: &str) -> bool {
    let Some(relayed) = RELAYED.get() else { return false };
    relayed.queue.lock().progress = Some(FromFar::Progress(text.to_owned()).to_frame().encode());
    relayed.queue.changed.notify_all();
    true
}

/// A sentence about the file. Whether there is anybody to pass it on.
pub fn tell(text: &str) -> bool {
    let Some(relayed) = RELAYED.get() else { return false };
    relayed.queue.add(&FromFar::Told(text.to_owned()));
    true
}

/// Begins the file that the command makes.
pub fn file(name: &str, jvm: Option<(&str, u32)>) -> Option<FileThere> {
    let queue = Arc::clone(&RELAYED.get()?.queue);
    let (jvm, pid) = jvm.map_or((None, None), |(jvm, pid)| (Some(jvm.to_owned()), Some(pid)));
    queue.add(&FromFar::FileBegins { name: name.to_owned(), jvm, pid });
    Some(FileThere { queue })
}

/// Waits until all is passed on, or nobody takes it any more.
pub fn finish() {
    let Some(Relayed { queue, .. }) = RELAYED.get() else { return };
    let mut state = queue.lock();
    state.over = true;
    queue.changed.notify_all();
    while !state.done {
        state = queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

/// A file of the other end. It is complete when this is dropped.
pub struct FileThere {
    queue: Arc<Queue>,
}

impl Write for FileThere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.chunks(CHUNK) {
            self.queue.add(&FromFar::File(piece.to_vec()));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Link for FileThere {
    fn is_behind(&self) -> bool {
        let state = self.queue.lock();
        let waits = state.frames.front().map_or(Duration::ZERO, |(_, since)| since.elapsed());
        state.bytes > BEHIND || waits > LATE
    }
}

impl FileThere {
    /// Waits while much waits to be passed on, for whoever has nothing better to do.
    pub fn wait(&self) {
        let mut state = self.queue.lock();
        while state.bytes > BEHIND {
            state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for FileThere {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.queue.add(&FromFar::FileEnds);
        }
    }
}

/// Frames on their way to the relay. Nobody who adds one waits.
#[derive(Default)]
struct Queue {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Each since when.
    frames: VecDeque<(Vec<u8>, Instant)>,
    bytes: usize,
    /// The last line, which takes the place of those before.
    progress: Option<Vec<u8>>,
    /// Nothing more comes.
    over: bool,
    /// All is sent, or nobody takes it.
    done: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, said: &FromFar) {
        let frame = said.to_frame().encode();
        let mut state = self.lock();
        // What nobody takes needs no room.
        if !state.done {
            state.bytes += frame.len();
            state.frames.push_back((frame, Instant::now()));
            self.changed.notify_all();
        }
    }

    /// The next frame, once there is one; nothing when all is over.
    fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        loop {
            if let Some(frame) = state.progress.take() {
                return Some(frame);
            }
            if let Some((frame, _)) = state.frames.pop_front() {
                state.bytes -= frame.len();
                self.changed.notify_all();
                return Some(frame);
            }
            if state.over {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn send_all(&self, out: &mut impl Write) {
        while let Some(frame) = self.next() {
            if out.write_all(&frame).is_err() {
                break;
            }
        }
        let mut state = self.lock();
        *state = Waiting { done: true, ..Waiting::default() };
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_overtakes_and_replaces_and_the_rest_keeps_its_order() {
        let queue = Queue::default();
        let frame = |text: &str| FromFar::Progress(text.to_owned()).to_frame().encode();
        queue.add(&FromFar::Told("a".into()));
        queue.lock().progress = Some(frame("1 s"));
        queue.lock().progress = Some(frame("2 s"));
        queue.add(&FromFar::FileEnds);
        queue.lock().over = true;
        let mut sent = Vec::new();
        queue.send_all(&mut sent);
        let expected = [
            frame("2 s"),
            FromFar::Told("a".into()).to_frame().encode(),
            FromFar::FileEnds.to_frame().encode(),
        ];
        assert_eq!(sent, expected.concat());
        queue.add(&FromFar::FileEnds);
        assert!(queue.lock().frames.is_empty(), "it grows though nobody takes anything");
    }

    #[test]
    fn a_link_is_behind_when_much_waits() {
        let queue = Arc::new(Queue::default());
        let mut file = FileThere { queue: Arc::clone(&queue) };
        file.write_all(&vec![0; BEHIND - CHUNK]).unwrap();
        assert!(!file.is_behind());
        file.write_all(&vec![0; 2 * CHUNK]).unwrap();
        assert!(file.is_behind());
        while queue.lock().bytes > 0 {
            queue.next();
        }
        assert!(!file.is_behind());
    }
}
