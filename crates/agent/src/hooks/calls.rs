//! What a hook does when a call is to be told: on the program's thread, in a native method of the
//! probe runtime. It looks at the two innermost frames, notes who called, and takes the time.
//!
//! No lock, no allocation, no call into the JVM. What is used is found through one pointer;
//! `SESSION` counts those who may hold it, and the session is taken down when nobody does.

use super::blocks::{HOOKS, REHEARSED};
use super::edges::{Edges, key};
use super::open::{Call, Open};
use crate::jvm::Jni;
use crate::kernel;
use crate::published::Published;
use crate::stacks::frames::Frame;
use crate::stacks::take::Caller;
use crate::stacks::walk::Registers;
use crate::stream::Stream;
use crate::stream::threads;
use crate::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use tare_arena::samples::Counter;

static SESSION: Published<Shared> = Published::new();

/// Frames of the hook's own runtime, of which there are three, the hooked method, and its caller.
const FRAMES: usize = 5;

/// What takes longer than this is not of our doing, and took what it usually does, in nanoseconds.
const INTERRUPTED: u64 = 20_000;
const USUAL: u64 = 1_000;

/// What was lost, and why.
#[derive(Clone, Copy)]
pub enum Loss {
    Place,
    Room,
    Buffer,
    Trace,
    Stack,
}

impl Loss {
    pub const ALL: [Loss; 5] = [Loss::Place, Loss::Room, Loss::Buffer, Loss::Trace, Loss::Stack];

    pub fn name(self) -> &'static str {
        match self {
            Loss::Place => "calls without a time: too many are under way at once",
            Loss::Room => "calls without a caller: a method has too many",
            Loss::Buffer => "calls without a caller: no buffer for walking the stack",
            Loss::Trace => "calls without a caller: the front end reads too slowly",
            Loss::Stack => "calls without a caller: the stack could not be walked so far",
        }
    }
}

/// What a session shares with hooks.
pub struct Shared {
    pub stream: Arc<Stream>,
    pub open: Open,
    pub edges: Edges,
    /// The number of whoever has a hook; zero for nobody. No two have the same in a session.
    pub numbers: [AtomicU32; HOOKS + 1],
    /// The methods of the runtime, sorted: nobody wants to see them in a stack.
    pub own_methods: Vec<u64>,
    /// Nanoseconds that were spent in here, and on how many calls.
    pub spent: AtomicU64,
    pub told: AtomicU64,
    /// What a call takes that does nothing, by its own measures, in nanoseconds: by the wall clock
    /// and by the processor's, which takes longer to read.
    pub empty: AtomicU64,
    pub empty_cpu: AtomicU64,
    pub losses: [AtomicU64; Loss::ALL.len()],
    /// The control thread, which is not part of the program.
    pub control: u32,
}

/// Lets hooks find the session; null ends that.
pub fn publish(shared: *mut Shared) {
    SESSION.publish(shared);
}

/// Whether no hook uses a session, or what it had found in one before this call.
pub fn nobody_inside() -> bool {
    SESSION.nobody_inside()
}

/// Woven code found a call that is to be told. Its token; zero if nothing is to be told at its end.
pub fn called(jni: Jni, hook: i32) -> i64 {
    SESSION.with(|shared| shared.called(jni, hook)).flatten().unwrap_or(0)
}

/// A call that was told ends.
pub fn returns(token: i64) {
    let wall = kernel::monotonic();
    SESSION.with(|shared| shared.returns(token, wall));
}

fn own_cpu() -> u64 {
    kernel::clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

impl Shared {
    fn lose(&self, why: Loss) {
        self.losses[why as usize].fetch_add(1, Relaxed);
    }

    fn called(&self, jni: Jni, hook: i32) -> Option<i64> {
        let began = kernel::monotonic();
        let slot = usize::try_from(hook).ok()?;
        let number = self.numbers.get(slot)?.load(Relaxed);
        let tid = kernel::gettid();
        if number == 0 || tid == self.control && slot != REHEARSED {
            return None;
        }
        let trace = self.caller(jni, tid).unwrap_or(0);
        let mut edge = key(number, trace);
        if !self.edges.enter(edge) {
            self.lose(Loss::Room);
            edge = key(number, 0);
            self.edges.enter(edge);
        }
        self.told.fetch_add(1, Relaxed);
        let cpu = own_cpu();
        let wall = kernel::monotonic();
        self.spend(wall.saturating_sub(began));
        let token = self.open.begin(&Call { edge, hook: slot as u32, tid, wall, cpu });
        if token.is_none() {
            self.lose(Loss::Place);
        }
        token
    }

    fn returns(&self, token: i64, wall: u64) {
        let Some(call) = self.open.end(token) else { return };
        let cpu = own_cpu();
        let number = (call.edge >> 32) as u32;
        let is_on = |number: &AtomicU32| number.load(Relaxed);
        // Whoever has the hook now may be another method.
        if self.numbers.get(call.hook as usize).map(is_on) == Some(number) {
            let empty = self.empty.load(Relaxed);
            let took = wall.saturating_sub(call.wall).saturating_sub(empty);
            // A virtual thread may have gone on elsewhere, where another clock runs.
            let cpu = cpu.saturating_sub(call.cpu);
            let empty = self.empty_cpu.load(Relaxed);
            // The processor's clock is slow to read, so what it says of a short call is bounded.
            let cpu = (kernel::gettid() == call.tid).then(|| cpu.saturating_sub(empty).min(took));
            self.edges.end(call.edge, call.hook as usize, took, cpu);
        }
        self.spend(kernel::monotonic().saturating_sub(wall));
    }

    /// What samples and the agent's own threads took so far, in nanoseconds.
    pub fn beside(&self) -> u64 {
        self.stream.ring.count(Counter::Own) + thread::own_cpu()
    }

    /// A thread that was interrupted has spent that time elsewhere.
    fn spend(&self, nanos: u64) {
        let spent = if nanos > INTERRUPTED { USUAL } else { nanos };
        self.spent.fetch_add(spent, Relaxed);
    }

    /// The stack of the hooked method and its caller.
    fn caller(&self, jni: Jni, tid: u32) -> Option<u32> {
        let record = threads::table().and_then(|table| table.find(tid));
        let caller = Caller {
            tid,
            thread: match record.map_or(0, |record| record.thread.load(Relaxed)) {
                0 => self.stream.watch.own_thread(jni),
                thread => thread,
            },
            java_id: record.map_or(0, |record| record.java_id.load(Relaxed)),
            kernel_records: 0,
            answered_after: None,
            registers: &Registers::default(),
        };
        let stacks = &self.stream.stacks;
        let Some((index, mut frames)) = stacks.buffers.take(tid) else {
            self.lose(Loss::Buffer);
            return None;
        };
        frames.limit(FRAMES);
        let found = stacks.take(index, caller, &mut frames);
        frames.drop_leading(0, |frame| self.is_own(frame));
        frames.truncate(2);
        let java = frames.as_slice().iter().filter(|frame| frame.method().is_some()).count();
        // A method that nobody calls is the root of its thread.
        let is_whole = java == 2 || (java == 1 && found.end.is_none());
        let trace = match is_whole {
            true => self.stream.intern(frames.as_slice(), false),
            false => None,
        };
        stacks.buffers.give_back(index);
        if trace.is_none() {
            self.lose(if is_whole { Loss::Trace } else { Loss::Stack });
        }
        trace
    }

    fn is_own(&self, frame: &Frame) -> bool {
        frame.method().is_some_and(|id| self.own_methods.binary_search(&id).is_ok())
    }
}
