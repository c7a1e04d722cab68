//! The dump for scripts. A promise: fields are added, never renamed.

use super::words::frame;
use crate::commands::list::Row;
use crate::term;
use anyhow::Result;
use serde::Serialize;
use tare_analysis::{Circle, Waiting};
use tare_attach::Jvm;
use tare_protocol::{DumpedThread, How, ThreadDump, Wait};
use tare_session::threads::Looked;

#[derive(Serialize)]
struct Json<'a> {
    jvm: Row,
    deadlocks: Vec<Deadlock>,
    /// Threads that others wait for, without a circle.
    blockers: Vec<Vec<Place>>,
    unproven_circles: usize,
    /// Static initialisers that perhaps wait for each other; none if there is no such suspicion.
    initialisers: Option<Initialising<'a>>,
    looks: u32,
    /// The JVM reached no safepoint, and nothing is known of locks; none if it did.
    stalled: Option<Stalling<'a>>,
    platform_threads_left_out: u64,
    virtual_threads_left_out: u64,
    /// What is missing, in words of the JVM.
    notes: Vec<&'a str>,
    threads: Vec<Thread<'a>>,
}

#[derive(Serialize)]
struct Stalling<'a> {
    /// For so many milliseconds, or longer.
    ms: u64,
    /// Ids of the threads that it waits for.
    kept_by: &'a [u64],
}

#[derive(Serialize)]
struct Initialising<'a> {
    threads: Vec<Initialises<'a>>,
    /// Ids of others that stand still.
    behind: Vec<u64>,
}

#[derive(Serialize)]
struct Initialises<'a> {
    thread: u64,
    class: &'a str,
}

#[derive(Serialize)]
struct Deadlock {
    /// Ids; each waits for the next, the last for the first.
    threads: Vec<u64>,
    /// Who waits behind them: trees, each from a member on.
    victims: Vec<Vec<Place>>,
}

/// A thread in a tree: each comes before those that wait for it.
#[derive(Serialize)]
struct Place {
    thread: u64,
    depth: usize,
}

#[derive(Serialize)]
struct Thread<'a> {
    id: u64,
    name: &'a str,
    #[serde(rename = "virtual")]
    is_virtual: bool,
    state: &'static str,
    daemon: bool,
    in_native: bool,
    suspended: bool,
    priority: i32,
    os_tid: Option<u32>,
    cpu_ns: Option<u64>,
    carrier: Option<u64>,
    waits_for: Option<Waits<'a>>,
    holds: Vec<Holds<'a>>,
    stack: Vec<String>,
    frames_left_out: u64,
}

#[derive(Serialize)]
struct Waits<'a> {
    how: &'static str,
    class: &'a str,
    lock: String,
    /// The id of the thread that has it, if anybody knows.
    owner: Option<u64>,
}

#[derive(Serialize)]
struct Holds<'a> {
    class: &'a str,
    lock: String,
    /// From the top of the stack; none if native code has entered it.
    frame: Option<u32>,
}

pub fn print(jvm: &Jvm, looked: &Looked) -> Result<()> {
    let dump = &looked.dump;
    let notes = [&dump.no_management, &dump.no_virtual, &dump.incomplete];
    term::json(&Json {
        jvm: Row::new(jvm),
        deadlocks: looked.waits.deadlocks.iter().map(|circle| deadlock(dump, circle)).collect(),
        blockers: looked.waits.blockers.iter().map(|tree| places(dump, tree)).collect(),
        unproven_circles: looked.unproven.len(),
        initialisers: looked.initialisers.as_ref().map(|found| {
            let id = |at: usize| dump.threads[at].id;
            let inside = found.inside.iter();
            Initialising {
                threads: inside.map(|(at, class)| Initialises { thread: id(*at), class }).collect(),
                behind: found.behind.iter().map(|at| id(*at)).collect(),
            }
        }),
        looks: looked.looks,
        stalled: dump
            .stalled
            .as_ref()
            .map(|stalled| Stalling { ms: stalled.ms, kept_by: &stalled.kept_by }),
        platform_threads_left_out: dump.platform_left_out,
        virtual_threads_left_out: dump.virtual_left_out,
        notes: notes.into_iter().filter_map(Option::as_deref).collect(),
        threads: dump.threads.iter().map(|one| thread(dump, one)).collect(),
    })
}

fn deadlock(dump: &ThreadDump, circle: &Circle) -> Deadlock {
    Deadlock {
        threads: circle.members.iter().map(|at| dump.threads[*at].id).collect(),
        victims: circle.victims.iter().map(|tree| places(dump, tree)).collect(),
    }
}

fn places(dump: &ThreadDump, tree: &Waiting) -> Vec<Place> {
    let place = |(depth, at): (usize, usize)| Place { thread: dump.threads[at].id, depth };
    tree.in_order().into_iter().map(place).collect()
}

fn thread<'a>(dump: &'a ThreadDump, thread: &'a DumpedThread) -> Thread<'a> {
    Thread {
        id: thread.id,
        name: &thread.name,
        is_virtual: thread.is_virtual,
        state: thread.state.name(),
        daemon: thread.daemon,
        in_native: thread.in_native,
        suspended: thread.suspended,
        priority: thread.priority,
        os_tid: thread.os.map(|os| os.tid),
        cpu_ns: thread.os.map(|os| os.cpu_ns),
        carrier: Some(thread.carrier).filter(|carrier| *carrier != 0),
        waits_for: thread.wait.as_ref().map(waits),
        holds: thread
            .held
            .iter()
            .map(|held| Holds {
                class: &held.class,
                lock: hex(held.lock),
                frame: u32::try_from(held.depth).ok(),
            })
            .collect(),
        stack: dump.frames_of(thread).map(frame).collect(),
        frames_left_out: dump.stacks.get(thread.stack).map_or(0, |stack| stack.left_out),
    }
}

fn waits(wait: &Wait) -> Waits<'_> {
    let how = match wait.how {
        How::Enter => "monitor",
        How::Wait => "notification",
        How::Park => "park",
        How::Carry => "virtual-thread",
    };
    let owner = Some(wait.owner).filter(|owner| *owner != 0);
    Waits { how, class: &wait.class, lock: hex(wait.lock), owner }
}

fn hex(lock: u64) -> String {
    format!("0x{lock:08x}")
}
