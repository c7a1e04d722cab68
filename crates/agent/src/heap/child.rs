//! The copy of the JVM, from its first moment on.
//!
//! It begins as a process of one thread, the VM thread, in which any lock may be held by one that
//! does not exist. So nothing here allocates, locks, unwinds or calls the C library but for plain
//! system calls; and it is made by the system call itself, so that no handlers of `fork` that
//! libraries have installed run in the middle of a pause.
//!
//! It must not be noticed: it holds no descriptor of the program's, its death sends no signal and
//! leaves no core, it dies with the JVM, it yields processor and memory to everybody, and after a
//! limit it ends in any case.
//!
//! System calls: clone, close_range or close, dup3, openat, write, read, prctl, setpriority, setrlimit,
//! alarm, rt_sigaction, rt_sigprocmask, getppid, mmap, pipe2, clock_nanosleep, exit_group.

use super::serve::Server;
use super::walk::Roots;
use std::mem;
use std::ptr;
use tare_protocol::heap::wire::Hello;

/// Everything that the copy has to know, set before the pause.
pub struct Errand {
    /// The copy's end of the socket.
    pub socket: libc::c_int,
    pub parent: libc::pid_t,
    pub redact: bool,
    /// That mark the heap.
    pub threads: usize,
    pub limit_s: u32,
    /// All but what is known in the pause only.
    pub hello: Hello,
    /// A word that the JVM and the copy share: one of the `IN_` states.
    pub state: *mut u32,
}

/// The copy runs code of the JVM's, in which it can hang.
pub const IN_JVM: u32 = 0;
/// It runs our code.
pub const IN_OURS: u32 = 1;

/// As `fork`: the pid of the copy, zero in the copy, -1 if there is none.
pub fn fork(errand: &Errand) -> libc::pid_t {
    // SAFETY: the sets are locals that the calls fill. A clone without flags is a fork: the new
    // process has this thread only, on a copy of its stack. Without a signal for its end nobody
    // who waits for any child of his gets to know of it.
    unsafe {
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&raw mut all);
        // No handler of the JVM's or the program's may run in the copy.
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) as libc::pid_t;
        if pid == 0 {
            settle(errand);
        } else {
            let errno = *libc::__errno_location();
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
            *libc::__errno_location() = errno;
        }
        pid
    }
}

/// What the copy does with itself before anything else.
fn settle(errand: &Errand) {
    // SAFETY: plain system calls with constants, locals and NUL-terminated texts, in a process of
    // one thread.
    unsafe {
        // Should the JVM be gone already, the signal would never come.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != errand.parent {
            libc::_exit(1);
        }
        reset_signals();
        libc::alarm(errand.limit_s);
        // While this file may still be written, which the next call ends.
        offer_to_killer();
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::prctl(libc::PR_SET_NAME, c"tare-heap".as_ptr());
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
        close_others(errand.socket);
    }
}

/// # Safety
/// In a process of one thread whose handlers nobody needs.
unsafe fn reset_signals() {
    // SAFETY: all zeros is the default action; the set is a local. Signals that have none or may
    // not be changed make the call fail, without effect.
    unsafe {
        let mut default: libc::sigaction = mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        for signal in 1..65 {
            libc::sigaction(signal, &raw const default, ptr::null_mut());
        }
        let mut none = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// If memory runs out, the copy goes before anybody else.
///
/// # Safety
/// As above.
unsafe fn offer_to_killer() {
    // SAFETY: a NUL-terminated path, a text of so many bytes, a descriptor of our own.
    unsafe {
        let path = c"/proc/self/oom_score_adj".as_ptr();
        let file = libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            libc::write(file, c"1000".as_ptr().cast(), 4);
            libc::close(file);
        }
    }
}

/// Closes every descriptor but one: a listening socket must not outlive the JVM, nor a pipe seem
/// open to whoever reads it.
///
/// # Safety
/// As above.
unsafe fn close_others(keep: libc::c_int) {
    let kept = keep.cast_unsigned();
    // SAFETY: no pointers; nobody else is there who would use them.
    unsafe {
        let close = |from: u32, to: u32| {
            from > to || libc::syscall(libc::SYS_close_range, from, to, 0) == 0
        };
        if (kept == 0 || close(0, kept - 1)) && close(kept + 1, u32::MAX) {
            return;
        }
        // Before Linux 5.9, or behind a filter.
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        let most = limit.rlim_cur.min(1 << 20) as libc::c_int;
        for other in (0..most).filter(|other| *other != keep) {
            libc::close(other);
        }
    }
}

/// Greets the tool; a copy that nobody listens to ends.
pub fn begin(errand: &Errand, roots: &Roots) -> Server {
    ours(errand, true);
    let hello = Hello {
        greeting: Hello::greeting(),
        roots: roots.address(),
        root_count: roots.count as u64,
        roots_dropped: roots.dropped,
        ..errand.hello
    };
    match Server::new(errand.socket, hello, errand.redact, errand.threads) {
        Some(server) => server,
        None => end(),
    }
}

/// Notes whose code runs.
pub fn ours(errand: &Errand, ours: bool) {
    // SAFETY: a word of memory that lives as long as the copy.
    unsafe { errand.state.write_volatile(if ours { IN_OURS } else { IN_JVM }) };
}

/// The end of the copy.
pub fn end() -> ! {
    // SAFETY: no destructor and no handler of this process must run.
    unsafe { libc::_exit(0) }
}
