//! Stacks of this process, interrupted at any moment, against the unwinder of the C++ runtime.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tare_unwind::{Budget, End, Modules, Published, Window, registers_of, walk};

const DEPTH: usize = 128;
const SAMPLES: usize = 2_000;

static MODULES: Published<Modules> = Published::new();
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static BUSY: AtomicBool = AtomicBool::new(false);

struct Sample {
    ours: [u64; DEPTH],
    frames: usize,
    end: End,
    theirs: [u64; DEPTH],
    their_frames: usize,
}

struct Store(UnsafeCell<Vec<Sample>>);
// SAFETY: only the handler that holds BUSY writes; the test reads after the timer is gone.
unsafe impl Sync for Store {}
static STORE: Store = Store(UnsafeCell::new(Vec::new()));

unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut c_void, before: *mut c_int) -> usize;
}

/// Their walk begins in the handler; ours with the interrupted frame.
struct Theirs {
    sample: *mut Sample,
    from: u64,
    started: bool,
}

extern "C" fn on_frame(context: *mut c_void, data: *mut c_void) -> c_int {
    let mut exact = 0;
    // SAFETY: libgcc's own context, and the data that the handler passed.
    let (pc, theirs) =
        unsafe { (_Unwind_GetIPInfo(context, &mut exact) as u64, &mut *data.cast::<Theirs>()) };
    let lookup = if exact != 0 { pc } else { pc.wrapping_sub(1) };
    theirs.started |= lookup == theirs.from && exact != 0;
    if theirs.started && pc != 0 {
        // SAFETY: the handler's sample, which lives longer than the walk.
        let sample = unsafe { &mut *theirs.sample };
        if let Some(slot) = sample.theirs.get_mut(sample.their_frames) {
            *slot = lookup;
            sample.their_frames += 1;
        }
    }
    0
}

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    if BUSY.swap(true, Ordering::Acquire) {
        return;
    }
    // SAFETY: BUSY is ours; nobody else touches the store.
    let store = unsafe { &mut *STORE.0.get() };
    // No allocation: the room was reserved before the timer began.
    if store.len() < store.capacity()
        && let Some(modules) = MODULES.read(0)
    {
        // SAFETY: the kernel's context of this handler.
        let from = unsafe { registers_of(context) };
        let mut memory = Window::<64>::new(std::process::id() as i32);
        let mut sample = Sample {
            ours: [0; DEPTH],
            frames: 0,
            end: End::Full,
            theirs: [0; DEPTH],
            their_frames: 0,
        };
        let walked = walk(&modules, from, &mut memory, &mut sample.ours);
        (sample.frames, sample.end) = (walked.frames, walked.end);
        let mut theirs = Theirs { sample: &mut sample, from: from.pc, started: false };
        // SAFETY: libgcc's unwinder was used once before, so that it no longer allocates.
        unsafe { _Unwind_Backtrace(on_frame, (&raw mut theirs).cast()) };
        store.push(sample);
        TAKEN.fetch_add(1, Ordering::Relaxed);
    }
    BUSY.store(false, Ordering::Release);
}

/// Work in this program, in the C library and in between, at changing depths.
#[inline(never)]
fn work(depth: u32, words: &mut [u64]) -> u64 {
    if depth == 0 {
        words.sort_unstable_by_key(|w| w.rotate_left(7).wrapping_mul(0x9e37_79b9));
        let text = format!("{:?}", &words[..32]);
        let copy = text.clone();
        return copy.bytes().map(u64::from).sum::<u64>() + words[0];
    }
    let found = work(depth - 1, words).wrapping_add(u64::from(depth));
    // Something after the call, so that the call is not the function's end.
    std::hint::black_box(found)
}

#[test]
fn interrupted_stacks_are_those_of_the_c_runtime() {
    let pid = std::process::id() as i32;
    MODULES.replace(Some(Box::new(Modules::read(pid, None, Budget::default()))));
    // SAFETY: as in the handler, but nobody interrupts yet.
    unsafe { &mut *STORE.0.get() }.reserve_exact(SAMPLES);
    let mut nothing =
        Sample { ours: [0; DEPTH], frames: 0, end: End::Full, theirs: [0; DEPTH], their_frames: 0 };
    let mut warm = Theirs { sample: &mut nothing, from: 0, started: false };
    // SAFETY: an ordinary call of libgcc's unwinder, before any signal comes.
    unsafe { _Unwind_Backtrace(on_frame, (&raw mut warm).cast()) };

    // SAFETY: a handler of the right type for SIGPROF, which nobody else uses in this process, and
    // a timer for it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut()), 0);
    }
    set_timer(1_000);
    let mut words: Vec<u64> = (0..512_u64).map(|n| n.wrapping_mul(0x2545_f491_4f6c_dd1d)).collect();
    let mut depth = 0;
    // A CPU second at most, however busy the machine is.
    while TAKEN.load(Ordering::Relaxed) < 200 && cpu_seconds() < 20 {
        depth = (depth + 1) % 60;
        std::hint::black_box(work(depth, &mut words));
    }
    set_timer(0);
    while BUSY.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    // SAFETY: BUSY is ours for good.
    let samples = unsafe { &*STORE.0.get() };
    assert!(samples.len() >= 100, "{} samples", samples.len());
    let mut deep = 0;
    for sample in samples.iter() {
        let ours = &sample.ours[..sample.frames];
        let theirs = &sample.theirs[..sample.their_frames];
        assert_eq!(sample.end, End::Bottom, "{ours:x?}\n{theirs:x?}");
        assert_eq!(ours, theirs);
        deep = deep.max(ours.len());
    }
    assert!(deep > 30, "the deepest stack had {deep} frames");
}

fn set_timer(micros: i64) {
    let time = libc::timeval { tv_sec: 0, tv_usec: micros };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: a valid timer value; the old one is not wanted.
    assert_eq!(unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut()) }, 0);
}

fn cpu_seconds() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec
}
