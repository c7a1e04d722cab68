//! The stack of the calling thread, taken under the fault guard: its frames, the virtual thread
//! that is mounted on it, and what the thread did.
//!
//! For signal handlers, so: no allocation, no lock, no panic. The walk itself is `walk`.

use super::Stacks;
use super::fault_guard;
use super::frames::{Frame, Frames};
use super::kernel_frames;
use super::memo::Memo;
use super::memory::{Memory, Own};
use super::native::{FramePointers, MODULES, UnwindTables};
use super::walk::{Registers, Walker};
use std::ffi::c_void;
use std::ptr;
use tare_arena::samples::{Special, State};
use tare_unwind::Modules;

/// What is known of the calling thread before its stack is walked.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub tid: u32,
    /// HotSpot's thread; zero for a thread that runs no Java.
    pub thread: u64,
    /// The thread's own id.
    pub java_id: u64,
    /// Where the kernel has left its frames; zero for nowhere.
    pub kernel_records: u64,
    /// How long it took to answer, if it was asked; then its state is wanted.
    pub answered_after: Option<u64>,
    pub registers: &'a Registers,
}

/// What a walk tells of a thread beside its frames; what stands in it when a fault ends the walk
/// is what was known by then.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Why the stack is not whole.
    pub end: Option<Special>,
    /// The virtual thread that is mounted; zero for none.
    pub mounted: u64,
    /// What the thread did until it was interrupted, where that is asked for.
    pub state: State,
    /// A fault ended the walk.
    pub faulted: bool,
}

/// One walk, as the guard runs it.
struct Walk<'a> {
    stacks: &'a Stacks,
    modules: Option<&'a Modules>,
    caller: Caller<'a>,
    frames: &'a mut Frames,
    memo: Memo,
    /// Whether native frames are wanted.
    native: bool,
    /// What was found out beside the frames.
    taken: Taken,
}

impl Stacks {
    /// Takes the calling thread's stack into `frames`, which are those of buffer `index`.
    pub fn take(&self, index: usize, caller: Caller<'_>, frames: &mut Frames) -> Taken {
        self.taken(index, caller, frames, self.native)
    }

    /// The same with native frames, whether others want them or not.
    pub fn take_with_native(&self, index: usize, caller: Caller<'_>, frames: &mut Frames) -> Taken {
        self.taken(index, caller, frames, true)
    }

    fn taken(&self, index: usize, caller: Caller<'_>, frames: &mut Frames, native: bool) -> Taken {
        let modules = MODULES.read(caller.tid as usize);
        let end = Some(Special::Fault);
        let mut job = Walk {
            stacks: self,
            modules: modules.as_deref(),
            caller,
            frames,
            memo: self.buffers.memo(index),
            native,
            taken: Taken { end, mounted: 0, state: State::Running, faulted: false },
        };
        let argument = (&raw mut job).cast();
        // SAFETY: `walk` calls nothing outside this library and owns nothing; what it has pushed
        // so far stays when it is ended by a fault.
        let whole = unsafe { fault_guard::run(index, caller.tid, walk, argument) };
        // SAFETY: a field of ours; volatile because a fault may have ended the writer.
        let taken = unsafe { ptr::read_volatile(&raw const job.taken) };
        Taken { faulted: !whole, ..taken }
    }

    /// Eight bytes that may not be there.
    pub fn peek(&self, at: u64) -> Option<u64> {
        self.look(|memory| memory.word(at))
    }

    /// Looks at memory that may not be there; `None` also when it was not. `work` only reads: a
    /// fault ends it in the middle.
    pub fn look<R: Copy>(&self, work: impl Fn(&Own) -> Option<R> + Copy) -> Option<R> {
        struct Job<R, W>(W, Option<R>);
        extern "C" fn read<R, W: Fn(&Own) -> Option<R>>(argument: *mut c_void) {
            // SAFETY: a `Job` that lives across the call below.
            let job = unsafe { &mut *argument.cast::<Job<R, W>>() };
            job.1 = (job.0)(&Own);
        }
        fn body<R, W: Fn(&Own) -> Option<R>>(_: &Job<R, W>) -> extern "C" fn(*mut c_void) {
            read::<R, W>
        }
        let tid = crate::kernel::gettid();
        let (index, _) = self.buffers.take(tid)?;
        let mut job = Job(work, None);
        // SAFETY: `read` does nothing but read, and what it holds needs no end.
        let done = unsafe { fault_guard::run(index, tid, body(&job), (&raw mut job).cast()) };
        self.buffers.give_back(index);
        if done { job.1 } else { None }
    }

    /// What tells the calling thread from others while it waits: the id of the thread or virtual
    /// thread, where that may go on waiting on another carrier; else the number of the carrier.
    pub fn own_id(&self, thread: u64, tid: u32) -> u64 {
        // The thread's own structure, which lives as long as it runs: no guard is needed.
        let id = self.layout.thread_owner_id.filter(|_| thread != 0);
        let id = id.and_then(|offset| Own.word(thread.wrapping_add(offset)));
        id.unwrap_or_else(|| u64::from(tid))
    }

    /// The virtual thread that is mounted on one of HotSpot's threads, which has an id of its own;
    /// zero for none.
    pub fn mounted_on(&self, thread: u64, java_id: u64) -> u64 {
        self.look(|memory| Some(self.mounted(memory, thread, java_id))).unwrap_or(0)
    }

    fn mounted(&self, memory: &Own, thread: u64, java_id: u64) -> u64 {
        match self.layout.thread_owner_id {
            Some(offset) if thread != 0 && java_id != 0 => {
                let id = memory.word(thread.wrapping_add(offset));
                id.filter(|id| *id != java_id).unwrap_or(0)
            }
            Some(_) => 0,
            None => self.virtual_ids.mounted(memory, thread),
        }
    }

    /// Where HotSpot's thread has the id of whoever runs on it, where owners of monitors have that.
    pub fn owner_id_at(&self) -> Option<u64> {
        self.layout.thread_owner_id
    }

    /// Where HotSpot's thread has the upper end of its stack.
    pub fn stack_base_at(&self) -> u64 {
        self.layout.thread_stack_base
    }
}

impl Walk<'_> {
    /// The virtual thread that is mounted, and what the thread did. HotSpot's thread is read like
    /// everything else: a thread that left the JVM while it was being found has none any more.
    fn thread_and_state(&self) -> (u64, State) {
        (
            self.mounted(),
            self.caller.answered_after.map_or(State::Running, |after| self.state(after)),
        )
    }

    /// The id of the virtual thread that is mounted on a thread, from where the JVM keeps it as a
    /// plain number, or from the object; zero when there is none.
    fn mounted(&self) -> u64 {
        self.stacks.mounted(&Own, self.caller.thread, self.caller.java_id)
    }

    /// What the thread did until it was interrupted.
    fn state(&self, answered_after: u64) -> State {
        if !in_system_call(self.caller.registers.place.pc) {
            // A thread on a processor is interrupted at once; one that waits for a processor
            // must first get one.
            return if answered_after > PROMPT { State::Runnable } else { State::Running };
        }
        if self.caller.thread == 0 {
            return State::SystemCall;
        }
        let layout = &self.stacks.layout;
        let os = Own.word(self.caller.thread.wrapping_add(layout.thread_os)).unwrap_or(0);
        match Own.int(os.wrapping_add(layout.os_state)) {
            Some(MONITOR_WAIT) => State::Blocked,
            Some(CONDVAR_WAIT | OBJECT_WAIT) => State::Waiting,
            _ => State::SystemCall,
        }
    }
}

extern "C" fn walk(argument: *mut c_void) {
    // SAFETY: `Stacks::take` passes a `Walk` that lives across the call.
    let Some(walk) = (unsafe { argument.cast::<Walk<'_>>().as_mut() }) else { return };
    if walk.caller.kernel_records != 0 {
        kernel_frames::newest(walk.caller.kernel_records, &Own, |address| {
            walk.frames.push(Frame::kernel(address));
        });
    }
    let layout = &walk.stacks.layout;
    let (mounted, state) = walk.thread_and_state();
    // SAFETY: fields of the argument; volatile, because a fault may end the walk at any load.
    unsafe {
        ptr::write_volatile(&raw mut walk.taken.mounted, mounted);
        ptr::write_volatile(&raw mut walk.taken.state, state);
    }
    let top = match walk.caller.thread {
        0 => None,
        thread => Own.word(thread.wrapping_add(layout.thread_stack_base)),
    };
    let top = top.unwrap_or(u64::MAX);
    let with_native = walk.native;
    let ids = walk.stacks.id_layout.rules();
    let (memo, chunks) = (walk.memo, walk.stacks.chunks.rules());
    let end = match walk.modules {
        Some(modules) => {
            let native = &UnwindTables(modules);
            let walker =
                Walker { layout, ids, chunks, memo, memory: &Own, native, top, with_native };
            walker.walk(walk.caller.thread, walk.caller.registers, walk.frames)
        }
        None => {
            let native = &FramePointers;
            let walker =
                Walker { layout, ids, chunks, memo, memory: &Own, native, top, with_native };
            walker.walk(walk.caller.thread, walk.caller.registers, walk.frames)
        }
    };
    // SAFETY: a field of the argument; volatile, because a fault may end the walk before.
    unsafe { ptr::write_volatile(&raw mut walk.taken.end, end) };
}

/// States of HotSpot's `OSThread`; unchanged since they were introduced.
const MONITOR_WAIT: i32 = 3;
const CONDVAR_WAIT: i32 = 4;
const OBJECT_WAIT: i32 = 5;

/// A thread on a processor takes a signal well within this time, in nanoseconds.
const PROMPT: u64 = 300_000;

/// Whether a signal interrupted a system call: the kernel then leaves the thread at the
/// instruction, to call again, or right behind it.
#[cfg(target_arch = "x86_64")]
fn in_system_call(pc: u64) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let at = |pc: u64| [Own.byte(pc), Own.byte(pc.wrapping_add(1))] == SYSCALL.map(Some);
    // The two bytes before are read only where they are on the same page, which is mapped.
    at(pc) || (pc & 0xfff >= 2 && at(pc - 2))
}

#[cfg(target_arch = "aarch64")]
fn in_system_call(pc: u64) -> bool {
    const SVC: i32 = 0xd400_0001_u32.cast_signed();
    Own.int(pc) == Some(SVC) || (pc & 0xfff >= 4 && Own.int(pc - 4) == Some(SVC))
}
