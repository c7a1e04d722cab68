//! Running code that may touch memory which is gone: a fault ends the run, not the process.
//!
//! A walker follows pointers that other threads change under it. Asking the kernel before each
//! load (`process_vm_readv`) costs a system call per frame; instead the whole walk runs under a
//! guard, and a fault inside it continues behind the call that began it.
//!
//! The protocol: [`run`] stores the registers that a call keeps in the caller's [`Landing`] and
//! marks it with the thread's id. The handler of SIGSEGV and SIGBUS looks for a landing of its own
//! thread, and only if the faulting instruction is in this library, changes the interrupted context
//! to return from [`run`] a second time, with `false`. Every other fault goes to the handler that
//! was there before us, HotSpot's, which needs it for null checks and safepoints. Code under a
//! guard owns nothing that must be dropped and calls no other library.
//!
//! System calls in the handler: `gettid`.

use crate::signal_chain::{FAULTS, Previous};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Where a fault continues.
#[repr(C)]
pub struct Landing {
    registers: UnsafeCell<[u64; 16]>,
    /// The thread that is under the guard; zero is none.
    tid: AtomicU32,
    /// Greater than that of whoever was interrupted inside a guard of its own.
    order: AtomicU64,
}

// SAFETY: `registers` is written by the thread that owns the landing before `tid` is set, and
// read by that same thread's fault handler.
unsafe impl Sync for Landing {}

impl Landing {
    pub const fn new() -> Self {
        let registers = UnsafeCell::new([0; 16]);
        Landing { registers, tid: AtomicU32::new(0), order: AtomicU64::new(0) }
    }
}

/// All landings there are, one per walking buffer; fixed, so that the handler can search them.
pub const LANDINGS: usize = 64;
static ALL: [Landing; LANDINGS] = [const { Landing::new() }; LANDINGS];

/// Counts who came under a guard.
static ORDER: AtomicU64 = AtomicU64::new(1);

/// How many threads are under a guard: the common fault of the JVM costs one load.
static UNDER: AtomicUsize = AtomicUsize::new(0);

/// The addresses of this library's code.
static CODE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    // tare_guard_run(body, argument, registers) -> 0; a second return with 1 after a fault.
    ".hidden tare_guard_run",
    ".globl tare_guard_run",
    "tare_guard_run:",
    ".cfi_startproc",
    "mov [rdx], rbx",
    "mov [rdx + 8], rbp",
    "mov [rdx + 16], r12",
    "mov [rdx + 24], r13",
    "mov [rdx + 32], r14",
    "mov [rdx + 40], r15",
    "mov [rdx + 48], rsp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call rax",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "xor eax, eax",
    "ret",
    ".cfi_endproc",
    ".hidden tare_guard_landing",
    ".globl tare_guard_landing",
    "tare_guard_landing:",
    "mov eax, 1",
    "ret",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".hidden tare_guard_run",
    ".globl tare_guard_run",
    "tare_guard_run:",
    "stp x19, x20, [x2]",
    "stp x21, x22, [x2, #16]",
    "stp x23, x24, [x2, #32]",
    "stp x25, x26, [x2, #48]",
    "stp x27, x28, [x2, #64]",
    "stp x29, x30, [x2, #80]",
    "mov x9, sp",
    "str x9, [x2, #96]",
    "stp x29, x30, [sp, #-16]!",
    "mov x9, x0",
    "mov x0, x1",
    "blr x9",
    "ldp x29, x30, [sp], #16",
    "mov x0, #0",
    "ret",
    ".hidden tare_guard_landing",
    ".globl tare_guard_landing",
    "tare_guard_landing:",
    "mov x0, #1",
    "ret",
);

unsafe extern "C" {
    fn tare_guard_run(
        body: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        registers: *mut u64,
    ) -> u64;
    fn tare_guard_landing();
}

/// Runs `body(argument)` under the guard of landing `index`, which the caller holds alone; `tid`
/// is the calling thread. False when it was ended by a fault.
///
/// # Safety
/// `body` calls no other library and leaves nothing undone when it ends in the middle.
pub unsafe fn run(
    index: usize,
    tid: u32,
    body: extern "C" fn(*mut c_void),
    argument: *mut c_void,
) -> bool {
    let Some(landing) = ALL.get(index) else { return false };
    landing.order.store(ORDER.fetch_add(1, Relaxed), Relaxed);
    UNDER.fetch_add(1, SeqCst);
    landing.tid.store(tid, SeqCst);
    // SAFETY: the registers have room for what the routine stores; the landing is the caller's.
    let fault = unsafe { tare_guard_run(body, argument, landing.registers.get().cast()) } != 0;
    landing.tid.store(0, SeqCst);
    UNDER.fetch_sub(1, SeqCst);
    !fault
}

/// Called by the handler of faults. True if the interrupted context was changed to land.
///
/// # Safety
/// `context` is what the kernel passed to the handler.
pub unsafe fn land(context: *mut c_void) -> bool {
    if UNDER.load(SeqCst) == 0 || context.is_null() {
        return false;
    }
    // SAFETY: the kernel's context.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let pc = pc_of(context);
    if pc < CODE[0].load(Relaxed) || pc >= CODE[1].load(Relaxed) {
        return false;
    }
    // SAFETY: no preconditions.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    // A signal handler that walks may have interrupted a walk of the same thread: the fault is of
    // the one that began last.
    let own = ALL.iter().filter(|landing| landing.tid.load(SeqCst) == tid);
    let Some(landing) = own.max_by_key(|landing| landing.order.load(Relaxed)) else {
        return false;
    };
    // SAFETY: written by this thread before it set `tid`.
    let registers = unsafe { &*landing.registers.get() };
    set_registers(context, registers);
    true
}

#[cfg(target_arch = "x86_64")]
fn pc_of(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.gregs[libc::REG_RIP as usize].cast_unsigned()
}

#[cfg(target_arch = "x86_64")]
fn set_registers(context: &mut libc::ucontext_t, registers: &[u64; 16]) {
    let order = [
        libc::REG_RBX,
        libc::REG_RBP,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
        libc::REG_RSP,
    ];
    let all = &mut context.uc_mcontext.gregs;
    for (register, value) in order.into_iter().zip(registers) {
        all[register as usize] = value.cast_signed();
    }
    all[libc::REG_RIP as usize] = (tare_guard_landing as *const () as u64).cast_signed();
}

#[cfg(target_arch = "aarch64")]
fn pc_of(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.pc
}

#[cfg(target_arch = "aarch64")]
fn set_registers(context: &mut libc::ucontext_t, registers: &[u64; 16]) {
    context.uc_mcontext.regs[19..31].copy_from_slice(&registers[..12]);
    context.uc_mcontext.sp = registers[12];
    context.uc_mcontext.pc = tare_guard_landing as *const () as u64;
}

/// Learns where this library's code is; without it no fault is caught, and no walk begun.
pub fn learn_code() -> std::io::Result<()> {
    let own = land as *const () as u64;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let range = maps.lines().find_map(|line| {
        let (range, _) = line.split_once(' ')?;
        let (low, high) = range.split_once('-')?;
        let (low, high) = (u64::from_str_radix(low, 16).ok()?, u64::from_str_radix(high, 16).ok()?);
        (low..high).contains(&own).then_some((low, high))
    });
    let unreadable = || std::io::Error::other("/proc/self/maps does not tell where we are");
    let (low, high) = range.ok_or_else(unreadable)?;
    CODE[0].store(low, Relaxed);
    CODE[1].store(high, Relaxed);
    Ok(())
}

/// Whether an address is in this library's code, once that is known.
pub fn is_own_code(address: u64) -> bool {
    (CODE[0].load(Relaxed)..CODE[1].load(Relaxed)).contains(&address)
}

static PREVIOUS: [Previous; 2] = [Previous::new(), Previous::new()];

/// Puts the handler of faults in. True if somebody had put another over it.
pub fn install() -> std::io::Result<bool> {
    let mut displaced = false;
    for (signal, previous) in FAULTS.into_iter().zip(&PREVIOUS) {
        displaced |= previous.install(signal, on_fault)?;
    }
    Ok(displaced)
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's context.
    if unsafe { land(context) } {
        return;
    }
    let previous = FAULTS.iter().zip(&PREVIOUS).find(|(fault, _)| **fault == signal);
    // SAFETY: the kernel's arguments.
    if previous.is_some_and(|(_, previous)| unsafe { previous.pass(signal, info, context) }) {
        return;
    }
    // Nobody handles it: what would have happened without us happens now. The instruction is
    // run again and faults again.
    // SAFETY: all zeros is the default action.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &raw const default, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Job {
        at: *const u8,
        read: Option<u8>,
    }

    extern "C" fn read(argument: *mut c_void) {
        // SAFETY: a `Job` that lives across the call; the load is what is tested.
        unsafe {
            let job = argument.cast::<Job>();
            (*job).read = Some(std::ptr::read_volatile((*job).at));
        }
    }

    /// Reads a byte under the guard.
    fn peek(at: *const u8) -> Option<u8> {
        let mut job = Job { at, read: None };
        let tid = crate::kernel::gettid();
        // SAFETY: `read` does nothing but read; no other test uses the last landing.
        let done = unsafe { run(LANDINGS - 1, tid, read, (&raw mut job).cast()) };
        assert_eq!(done, job.read.is_some());
        job.read
    }

    #[test]
    fn memory_that_is_not_there_ends_the_run_and_nothing_else() {
        learn_code().unwrap();
        install().unwrap();
        assert!(!install().unwrap(), "nobody put another handler over ours");
        let here = 7;
        assert_eq!(peek(&raw const here), Some(7));
        assert_eq!(peek(0x10 as *const u8), None, "SIGSEGV");
        // SAFETY: a file and a mapping of our own; nothing but `peek` touches it.
        unsafe {
            let fd = libc::memfd_create(c"short".as_ptr(), libc::MFD_CLOEXEC);
            assert_eq!(libc::ftruncate(fd, 8192), 0);
            let (prot, flags) = (libc::PROT_READ, libc::MAP_SHARED);
            let base = libc::mmap(std::ptr::null_mut(), 8192, prot, flags, fd, 0);
            assert_ne!(base, libc::MAP_FAILED);
            let last = base.cast::<u8>().add(8191);
            assert_eq!(peek(last), Some(0));
            assert_eq!(libc::ftruncate(fd, 4096), 0);
            assert_eq!(peek(last), None, "SIGBUS");
            assert_eq!(peek(base.cast()), Some(0));
            libc::munmap(base, 8192);
            libc::close(fd);
        }
    }
}
