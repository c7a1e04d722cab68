//! Every thread in the form of jstack, which many tools read.

use super::words::{frame, lock};
use crate::term::plain;
use std::io::{self, Write};
use tare_protocol::{DumpedThread, How, State, ThreadDump, Wait};

pub fn write(out: &mut impl Write, dump: &ThreadDump) -> io::Result<()> {
    writeln!(out, "\nFull thread dump by Tare:\n")?;
    dump.threads.iter().try_for_each(|thread| one(out, dump, thread))
}

fn one(out: &mut impl Write, dump: &ThreadDump, thread: &DumpedThread) -> io::Result<()> {
    let kind = match (thread.is_virtual, thread.daemon) {
        (true, _) => "virtual ",
        (_, true) => "daemon ",
        _ => "",
    };
    let name = plain(&thread.name);
    write!(out, "\"{name}\" #{} {kind}prio={} os_prio=0 ", thread.id, thread.priority)?;
    if let Some(os) = thread.os {
        write!(out, "cpu={:.2}ms ", os.cpu_ns as f64 / 1e6)?;
    }
    let nid = thread.os.map_or(0, |os| os.tid);
    let (doing, state) = words(dump, thread);
    writeln!(out, "tid=0x{:016x} nid=0x{nid:x} {doing}", thread.id)?;
    writeln!(out, "   java.lang.Thread.State: {state}")?;
    if thread.carrier != 0 {
        writeln!(out, "   Carrier: #{}", thread.carrier)?;
    }
    for (depth, line) in (0..).zip(dump.frames_of(thread)) {
        writeln!(out, "\tat {}", frame(line))?;
        if let Some(wait) = thread.wait.as_ref().filter(|_| depth == 0) {
            writeln!(out, "\t- {} {}", awaits(wait), lock(&wait.class, wait.lock))?;
        }
        for held in thread.held.iter().filter(|held| held.depth == depth) {
            writeln!(out, "\t- locked {}", lock(&held.class, held.lock))?;
        }
    }
    for held in thread.held.iter().filter(|held| held.depth < 0) {
        writeln!(out, "\t- locked {} by native code", lock(&held.class, held.lock))?;
    }
    let left_out = dump.stacks.get(thread.stack).map_or(0, |stack| stack.left_out);
    if left_out > 0 {
        writeln!(out, "\t... {left_out} more frames")?;
    }
    writeln!(out)
}

fn awaits(wait: &Wait) -> &'static str {
    match wait.how {
        How::Enter => "waiting to lock",
        How::Wait => "waiting on",
        How::Park => "parking to wait for ",
        How::Carry => "carrying",
    }
}

/// What jstack says of a thread at the end of its first line, and its state.
fn words(dump: &ThreadDump, thread: &DumpedThread) -> (&'static str, String) {
    let top = dump.frames_of(thread).next();
    let is = |class: &str, method: &str| {
        top.is_some_and(|frame| frame.class == class && frame.method.starts_with(method))
    };
    let state = thread.state.name();
    match thread.state {
        State::Blocked => ("waiting for monitor entry", format!("{state} (on object monitor)")),
        State::Waiting | State::TimedWaiting if is("java.lang.Object", "wait") => {
            ("in Object.wait()", format!("{state} (on object monitor)"))
        }
        State::TimedWaiting if is("java.lang.Thread", "sleep") => {
            ("waiting on condition", format!("{state} (sleeping)"))
        }
        State::Waiting | State::TimedWaiting => {
            ("waiting on condition", format!("{state} (parking)"))
        }
        State::Runnable => ("runnable", state.to_owned()),
        State::New | State::Terminated => ("not started", state.to_owned()),
    }
}
