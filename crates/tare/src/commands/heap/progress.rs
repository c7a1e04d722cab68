//! The line that says how far reading a dump is.

use crate::{interrupt, term};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tare_heapdump::Progress;

/// Nobody reads faster.
const PAUSE: Duration = Duration::from_millis(100);

pub struct Line {
    /// When it was written last; `None` if nobody sees it.
    last: Option<Mutex<Option<Instant>>>,
    /// Whether Ctrl-C was pressed, if somebody looks for it.
    stop: Option<Arc<AtomicBool>>,
}

/// The status of a command that Ctrl-C ended.
pub const STOPPED: i32 = 130;

impl Line {
    pub fn new(quiet: bool, stop: Option<Arc<AtomicBool>>) -> Line {
        Line { last: term::shows_progress(quiet).then(|| Mutex::new(None)), stop }
    }
}

impl Progress for Line {
    fn tell(&self, stage: &'static str, done: u64, all: u64) {
        // Nothing is left behind: what is read has no name any more.
        if self.stop.as_deref().is_some_and(interrupt::is_set) {
            std::process::exit(STOPPED);
        }
        let Some(last) = &self.last else { return };
        // Of two threads one is enough.
        let Ok(mut last) = last.try_lock() else { return };
        if last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        *last = Some(Instant::now());
        let percent = done * 100 / all.max(1);
        term::progress(&format!("{stage}: {percent} %"));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.last.as_ref().is_some_and(|last| last.lock().is_ok_and(|last| last.is_some())) {
            term::progress("");
        }
    }
}
