//! A thread that runs Java code has noted nothing, so it is asked, by our signal, for its registers
//! and for what is on its stack.
//!
//! The handler copies both and no more: whoever asked walks the copy, in peace. It runs on any
//! thread at any instruction: no allocation, no lock, no panic, no system call. One thread is asked
//! at a time. `STEP` says whose what is here: who asks writes while it is `IDLE`, the handler
//! while it is `COPYING`, and who has asked reads when it is `DONE`.

use crate::kernel;
use crate::stacks::native::Place;
use crate::stacks::walk::Registers;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// So much of a stack is copied: hundreds of frames.
const MOST: usize = 256 << 10;

/// A thread that has not answered by then has our signal blocked, or gets no processor.
const PATIENCE: Duration = Duration::from_millis(500);

const IDLE: u32 = 0;
const ASKED: u32 = 1;
const COPYING: u32 = 2;
const DONE: u32 = 3;

static ASKING: Mutex<()> = Mutex::new(());
static WHO: AtomicU32 = AtomicU32::new(0);
static STEP: AtomicU32 = AtomicU32::new(IDLE);
/// The bounds of the thread's stack.
static LOW: AtomicU64 = AtomicU64::new(0);
static HIGH: AtomicU64 = AtomicU64::new(0);
/// Room for the copy, made once, and how much of it was used.
static ROOM: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static COPIED: AtomicU64 = AtomicU64::new(0);
static REGISTERS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

/// In the payload of the signal: an address nobody else has.
fn payload() -> usize {
    (&raw const WHO) as usize
}

/// Whether a signal with this payload is a question of ours.
pub fn is_question(value: usize) -> bool {
    value == payload()
}

/// For the signal handler, whatever its signal was sent for: the kernel keeps one of a kind for a
/// thread, and others come to nothing meanwhile.
pub fn answer(tid: u32, registers: &Registers) {
    if WHO.load(Relaxed) != tid || STEP.compare_exchange(ASKED, COPYING, AcqRel, Relaxed).is_err() {
        return;
    }
    let (low, high, sp) = (LOW.load(Relaxed), HIGH.load(Relaxed), registers.place.sp);
    let room = ROOM.load(Relaxed);
    let mut count = 0;
    if (low..high).contains(&sp) && !room.is_null() {
        count = (high - sp).min(MOST as u64);
        // SAFETY: the running thread's own stack, from where it was interrupted towards its
        // beginning, which HotSpot tells; the room has so many bytes, and is ours while we copy.
        unsafe { ptr::copy_nonoverlapping(sp as *const u8, room, count as usize) };
    }
    COPIED.store(count, Relaxed);
    let Registers { place: Place { pc, sp, fp }, bcp, method, thrown_at } = *registers;
    for (to, value) in REGISTERS.iter().zip([pc, sp, fp, bcp, method, thrown_at]) {
        to.store(value, Relaxed);
    }
    STEP.store(DONE, Release);
}

/// Where a thread was, and its stack from there on.
pub struct Answer {
    pub registers: Registers,
    pub stack: Vec<u8>,
}

/// Asks a thread whose stack has these bounds. `None` if it does not answer.
pub fn ask(tid: u32, low: u64, high: u64) -> Option<Answer> {
    let _alone = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    // One that was stopped while it copied has what is here for good.
    if STEP.load(Acquire) != IDLE {
        return None;
    }
    if ROOM.load(Relaxed).is_null() {
        ROOM.store(kernel::reserve(MOST).ok()?.cast(), Relaxed);
    }
    LOW.store(low, Relaxed);
    HIGH.store(high, Relaxed);
    WHO.store(tid, Relaxed);
    STEP.store(ASKED, Release);
    let sent = kernel::ask_with(tid, payload());
    let end = Instant::now() + PATIENCE;
    while sent && STEP.load(Acquire) != DONE && Instant::now() < end {
        thread::sleep(Duration::from_micros(200));
    }
    if STEP.compare_exchange(ASKED, IDLE, AcqRel, Acquire).is_ok() {
        WHO.store(0, Relaxed);
        return None;
    }
    // Copying takes microseconds, once it has begun.
    while STEP.load(Acquire) != DONE && Instant::now() < end + PATIENCE {
        thread::sleep(Duration::from_micros(200));
    }
    if STEP.load(Acquire) != DONE {
        return None;
    }
    let value = |at: usize| REGISTERS.get(at).map_or(0, |value| value.load(Relaxed));
    let registers = Registers {
        place: Place { pc: value(0), sp: value(1), fp: value(2) },
        bcp: value(3),
        method: value(4),
        thrown_at: value(5),
    };
    let mut stack = vec![0; COPIED.load(Relaxed) as usize];
    // SAFETY: so many bytes of the room were filled; nobody writes there before it is `IDLE`.
    unsafe { ptr::copy_nonoverlapping(ROOM.load(Relaxed), stack.as_mut_ptr(), stack.len()) };
    WHO.store(0, Relaxed);
    STEP.store(IDLE, Release);
    Some(Answer { registers, stack })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_thread_that_runs_hands_over_its_stack_and_one_that_is_gone_nothing() {
        sampling::install_handler().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (say, hear) = std::sync::mpsc::channel();
        let theirs = Arc::clone(&stop);
        let busy = thread::spawn(move || {
            let mark = std::hint::black_box([0x5ca1_ab1e_u64; 64]);
            say.send((kernel::gettid(), mark.as_ptr() as u64)).unwrap();
            while !theirs.load(Relaxed) {
                std::hint::spin_loop();
            }
            std::hint::black_box(&mark);
        });
        let (tid, mark) = hear.recv().unwrap();
        let answer = ask(tid, mark - (1 << 16), mark + 512).expect("an answer");
        let sp = answer.registers.place.sp;
        assert!(answer.registers.place.pc != 0 && sp < mark);
        let at = usize::try_from(mark - sp).unwrap();
        assert_eq!(answer.stack[at..at + 8], 0x5ca1_ab1e_u64.to_ne_bytes());
        assert_eq!(answer.stack.len() as u64, mark + 512 - sp);
        // Somewhere else than its stack there is nothing to be copied.
        assert_eq!(ask(tid, 0x1000, 0x2000).expect("an answer").stack, []);
        stop.store(true, Relaxed);
        busy.join().unwrap();
        while kernel::exists(tid) {
            thread::yield_now();
        }
        assert!(ask(tid, mark - (1 << 16), mark + 512).is_none());
    }
}
