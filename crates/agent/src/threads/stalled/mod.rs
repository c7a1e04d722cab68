//! A dump of the threads of a JVM that reaches no safepoint: what can be read without asking it.
//!
//! A thread that enters the JVM while it waits for a safepoint waits, too, and so does the control
//! thread with the dump that it was asked for. So a thread of ours that the JVM does not know
//! watches it. When the control thread has not used its processor for so long, the watcher reads
//! HotSpot's list of threads and their stacks, and answers in its place. Who is not in Java code
//! has noted its last Java frame and stands there; who is, is asked by our signal (`asked`).
//! These are the ones that keep the others waiting. Until the control thread is back, the watcher
//! serves who comes (`guests`).

pub mod asked;
mod guests;
mod names;

use super::memory::{ByKernel, WithStack};
use crate::control::connection::Connection;
use crate::gate;
use crate::jvm::Jvmti;
use crate::kernel;
use crate::lifecycle;
use crate::sampling;
use crate::shared_memory;
use crate::socket;
use crate::stacks::frames::Frame;
use crate::stacks::memory::Memory;
use crate::stacks::others::Others;
use crate::thread::{self, Handle, Ours};
use crate::vm_tables::{Missing, Tables};
use guests::House;
use names::Names;
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt::Write;
use std::fs;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tare_arena::samples::Special;
use tare_protocol::{Response, ThreadsPlan};

/// How often it is looked whether the control thread has got on.
const TURN: Duration = Duration::from_millis(50);

/// Who runs in two looks so far apart is no passer-by.
const APART: Duration = Duration::from_millis(100);

/// Threads that are looked at, and of these, those that are asked.
const MOST_THREADS: usize = 100_000;
const MOST_ASKED: usize = 32;

/// HotSpot's states of a thread, unchanged for decades.
const IN_NATIVE: i32 = 4;
const IN_NATIVE_TRANS: i32 = 5;
const IN_JAVA: i32 = 8;
/// Who is in one of these is in the JVM or in Java code, and a safepoint waits for it.
const UNSAFE: std::ops::RangeInclusive<i32> = 6..=9;

/// A dump that is under way, and who answers it.
pub struct Watch {
    shared: Arc<Shared>,
    thread: Handle,
}

#[derive(Default)]
struct Shared {
    turn: Mutex<Turn>,
    changed: Condvar,
    /// Who has come meanwhile, and is still there.
    guests: Mutex<Vec<Connection>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    /// The control thread is to answer.
    #[default]
    Control,
    /// The watcher is about to.
    Watcher,
    /// It has.
    Answered,
    /// Nothing is to be watched any more.
    Over,
}

impl Shared {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, turn: Turn) {
        *self.turn() = turn;
        self.changed.notify_all();
    }
}

/// Watches the calling thread, which is about to enter the JVM for whoever is on this stream;
/// others come by the listener. `None` if that cannot be done; then nothing is different from
/// before.
pub fn watch(
    stream: &UnixStream,
    listener: Option<&UnixListener>,
    jvmti: Jvmti,
    plan: ThreadsPlan,
) -> Option<Watch> {
    let stall = Duration::from_millis(u64::from(plan.stall_ms));
    if stall.is_zero() {
        return None;
    }
    let (stream, control) = (stream.try_clone().ok()?, kernel::gettid());
    let listener = listener.and_then(|listener| listener.try_clone().ok());
    let inside = jvmti.inside_libjvm() as usize;
    let shared = Arc::new(Shared::default());
    let theirs = Arc::clone(&shared);
    let body = move || {
        let _ours = Ours::note();
        if !theirs.stalls(control, stall) {
            return;
        }
        let used = || kernel::clock(kernel::thread_clock(control));
        let before = used();
        let began = Instant::now();
        let dump = |depth| dump(inside as *const c_void, depth, stall + began.elapsed()).ok();
        // The control thread waits for this, so a panic must not end it.
        let answered = gate::enter(false, || {
            let dump = dump(plan.depth);
            // Whoever has gone meanwhile needs no answer; others may come.
            if dump.as_ref().is_some_and(|dump| answer(&stream, dump).is_none()) {
                let _ = stream.shutdown(Shutdown::Both);
            }
            dump.is_some()
        });
        drop(stream);
        theirs.set(if answered { Turn::Answered } else { Turn::Over });
        if let Some(listener) = listener {
            let house = House { is_stalled: &|| used() == before, dump: &dump };
            let left = guests::serve(&theirs, &listener, &house);
            theirs.guests.lock().unwrap_or_else(PoisonError::into_inner).extend(left);
        }
    };
    let started = lifecycle::with_signals_blocked(|| thread::spawn("tare-watch", 512 << 10, body));
    Some(Watch { shared, thread: started.ok()? })
}

impl Watch {
    /// The control thread has come out of the JVM. Whether it was answered for it, and who has come
    /// meanwhile.
    pub fn end(self) -> (bool, Vec<Connection>) {
        let mut turn = self.shared.turn();
        while *turn == Turn::Watcher {
            turn = self.shared.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        let answered = *turn == Turn::Answered;
        *turn = Turn::Over;
        drop(turn);
        self.shared.changed.notify_all();
        self.thread.join();
        let guests = self.shared.guests.lock().unwrap_or_else(PoisonError::into_inner).split_off(0);
        (answered, guests)
    }
}

impl Shared {
    /// Waits until the control thread has stood still for so long, which makes it the watcher's
    /// turn; false if it is done before.
    fn stalls(&self, control: u32, stall: Duration) -> bool {
        let (mut used, mut since) = (0, Instant::now());
        let mut turn = self.turn();
        while *turn == Turn::Control {
            let waited = self.changed.wait_timeout(turn, TURN);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
            let now = kernel::clock(kernel::thread_clock(control));
            if now != used {
                (used, since) = (now, Instant::now());
            } else if *turn == Turn::Control && since.elapsed() >= stall {
                *turn = Turn::Watcher;
                return true;
            }
        }
        false
    }
}

/// Sends a dump to who waits for one.
fn answer(stream: &UnixStream, dump: &[u8]) -> Option<()> {
    let file = shared_memory::text(c"tare-threads", dump).ok()?;
    let message = Response::Ok.to_message().encode();
    let sent = socket::send_with(stream, &message, &[file]).ok()?;
    (sent == message.len()).then_some(())
}

/// One of HotSpot's Java threads.
struct Seen {
    thread: u64,
    tid: u32,
    state: i32,
    waits: i32,
}

/// Reads HotSpot's list of its Java threads, without our own.
fn threads(tables: &Tables, others: &Others, memory: &ByKernel) -> Result<Vec<Seen>, Missing> {
    let list = tables.static_value("ThreadsSMRSupport", "_java_thread_list")?;
    let length_at = tables.offset(&["ThreadsList"], "_length")?;
    let first_at = tables.offset(&["ThreadsList"], "_threads")?;
    let length = memory.int(list.wrapping_add(length_at)).and_then(|n| usize::try_from(n).ok());
    let first = memory.field(list, first_at).unwrap_or(0);
    let (l, ours) = (&others.layout, thread::ours());
    let seen = |at: usize| {
        let thread = memory.field(first, 8 * at as u64)?;
        let os = memory.field(thread, l.thread_os)?;
        let tid = memory.int(os.checked_add(l.os_id)?)?.cast_unsigned();
        let is_there = kernel::exists(tid) && !ours.contains(&tid);
        is_there.then_some(Seen {
            thread,
            tid,
            state: memory.int(thread.checked_add(l.thread_state)?)?,
            waits: memory.int(os.checked_add(l.os_state)?)?,
        })
    };
    Ok((0..length.unwrap_or(0).min(MOST_THREADS)).filter_map(seen).collect())
}

/// What the protocol calls a state of HotSpot's and of the thread below it.
fn state(seen: &Seen) -> &'static str {
    match (seen.state, seen.waits) {
        (IN_JAVA, _) => "RUNNABLE",
        (_, 3) => "BLOCKED",
        (_, 4 | 5) => "WAITING",
        (_, 7) => "TIMED_WAITING",
        _ => "RUNNABLE",
    }
}

/// The whole dump, in the protocol's words.
fn dump(inside: *const c_void, depth: u32, stall: Duration) -> Result<Vec<u8>, Missing> {
    let gone = |_| Missing("/proc/self/mem".into());
    let memory = ByKernel::open().map_err(gone)?;
    let tables = Tables::read(inside)?;
    let others = Others::new(&tables)?;
    let mut names = Names::new(&tables, &others.layout, &memory)?;
    let stack_size = tables.offset(&["JavaThread", "Thread"], "_stack_size")?;
    let runs = |seen: &&Seen| UNSAFE.contains(&seen.state);
    let before: Vec<u32> =
        threads(&tables, &others, &memory)?.iter().filter(runs).map(|seen| seen.tid).collect();
    std::thread::sleep(APART);
    let seen = threads(&tables, &others, &memory)?;
    let can_ask = sampling::install_handler().is_ok() && kernel::may_ask().is_ok();
    let mut text = Text::default();
    let mut asked = 0;
    for one in &seen {
        let keeps = runs(&one) && before.contains(&one.tid);
        let high = memory.field(one.thread, others.layout.thread_stack_base).unwrap_or(0);
        let size = memory.field(one.thread, stack_size).unwrap_or(0);
        let mut answer = None;
        if keeps && can_ask && asked < MOST_ASKED {
            asked += 1;
            answer = asked::ask(one.tid, high.saturating_sub(size), high);
        }
        let most = depth.clamp(1, 4096) as usize;
        let (frames, end) = match &answer {
            Some(answer) => {
                let (start, stack) = (answer.registers.place.sp, answer.stack.as_slice());
                let memory = WithStack { rest: &memory, start, stack };
                others.frames(&memory, one.thread, Some(answer.registers), most)
            }
            None => others.frames(&memory, one.thread, None, most),
        };
        let stack = text.stack(&frames, end, &mut names);
        text.thread(one, stack);
        if keeps {
            let _ = write!(text.rest, "\nN\tkeeps\t{}", one.tid);
        }
    }
    let _ = write!(text.rest, "\nN\tstalled\t{}", stall.as_millis());
    Ok(text.finish())
}

/// A dump in the making: each frame and stack is told once.
#[derive(Default)]
struct Text {
    frames: HashMap<String, usize>,
    stacks: HashMap<Vec<usize>, usize>,
    head: String,
    rest: String,
}

impl Text {
    fn frame(&mut self, line: String) -> usize {
        let next = self.frames.len();
        *self.frames.entry(line).or_insert_with_key(|line| {
            let _ = writeln!(self.head, "F\t{line}");
            next
        })
    }

    fn stack(&mut self, frames: &[Frame], end: Option<Special>, names: &mut Names<'_>) -> usize {
        let mut all = Vec::new();
        for frame in frames {
            let named = frame.method().and_then(|method| names.of(method));
            let line = named.map_or_else(
                || "[unknown]\t[unknown]\t\t-1".to_owned(),
                |named| {
                    let [class, method, file] =
                        [&named.class, &named.method, &named.file].map(|text| escaped(text));
                    format!("{class}\t{method}\t{file}\t{}", named.line(frame.bci))
                },
            );
            all.push(self.frame(line));
        }
        if let Some(end) = end {
            all.push(self.frame(format!("[not whole]\t{}\t\t-1", escaped(end.name()))));
        }
        let next = self.stacks.len();
        *self.stacks.entry(all).or_insert_with_key(|all| {
            let all: Vec<String> = all.iter().map(usize::to_string).collect();
            let _ = writeln!(self.head, "S\t{}", all.join(" "));
            next
        })
    }

    /// By its number in the kernel, and by its name there: the other ones are in the JVM's heap.
    fn thread(&mut self, seen: &Seen, stack: usize) {
        let tid = seen.tid;
        let name = fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
        let native = matches!(seen.state, IN_NATIVE | IN_NATIVE_TRANS);
        let flags = if native { "n" } else { "" };
        let (name, state) = (escaped(name.trim_end_matches('\n')), state(seen));
        let used = kernel::clock(kernel::thread_clock(tid));
        let _ = write!(
            self.rest,
            "\nT\t{tid}\t{name}\tplatform\t{state}\t{flags}\t5\t{stack}\t0\nK\t{tid}\t{tid}\t{used}"
        );
    }

    fn finish(self) -> Vec<u8> {
        (self.head + self.rest.trim_start_matches('\n')).into_bytes()
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
}
