//! Threads, locks and frames in words, for all forms of the dump.

use crate::term::plain;
use std::collections::HashMap;
use tare_protocol::{DumpedFrame, DumpedThread, How, State, ThreadDump, Wait};

/// `"name" #id`, and what tells a virtual thread from others.
pub fn name(thread: &DumpedThread) -> String {
    let kind = if thread.is_virtual { " virtual" } else { "" };
    format!("\"{}\" #{}{kind}", plain(&thread.name), thread.id)
}

/// `<0x1b2c3d> (a com.acme.Account)`.
pub fn lock(class: &str, lock: u64) -> String {
    let class = if class.is_empty() { "monitor whose class is unknown" } else { class };
    format!("<0x{lock:08x}> (a {})", plain(class))
}

/// What a thread waits for, after its name.
pub fn waits(thread: &DumpedThread, wait: &Wait) -> String {
    let lock = lock(&wait.class, wait.lock);
    let how = match wait.how {
        How::Enter => "waits to lock",
        How::Wait => "waits for a notification of",
        How::Park => "waits for",
        How::Carry => "carries",
    };
    let limit = if thread.state == State::TimedWaiting { " for a limited time" } else { "" };
    format!("{how} {lock}{limit}")
}

/// `com.acme.Bank.transfer(Bank.java:12)`.
pub fn frame(frame: &DumpedFrame) -> String {
    let place = match (frame.file.as_str(), frame.line) {
        (_, -2) => "Native Method".to_owned(),
        ("", _) => "Unknown Source".to_owned(),
        (file, line) if line < 0 => plain(file).into_owned(),
        (file, line) => format!("{}:{line}", plain(file)),
    };
    format!("{}.{}({place})", plain(&frame.class), plain(&frame.method))
}

/// What a thread does, in a few words.
pub fn does(dump: &ThreadDump, thread: &DumpedThread) -> &'static str {
    let top = dump.frames_of(thread).next();
    let in_sleep =
        top.is_some_and(|f| f.class == "java.lang.Thread" && f.method.starts_with("sleep"));
    let wait = thread.wait.as_ref();
    match (thread.state, wait.map(|wait| wait.how)) {
        _ if thread.suspended => "is suspended",
        (State::Blocked, _) => "waits for a monitor whose owner is unknown",
        (State::TimedWaiting, _) if in_sleep => "sleeps",
        (_, Some(How::Wait)) => "waits for a notification",
        (_, Some(How::Carry)) => "carries a virtual thread",
        (State::Waiting | State::TimedWaiting, _) => "is parked",
        (State::Runnable, _) if thread.in_native => "is in native code",
        (State::Runnable, _) => "runs",
        (State::New | State::Terminated, _) => "does not run",
    }
}

/// The threads by their ids.
pub fn by_id(dump: &ThreadDump) -> HashMap<u64, &DumpedThread> {
    dump.threads.iter().map(|thread| (thread.id, thread)).collect()
}
