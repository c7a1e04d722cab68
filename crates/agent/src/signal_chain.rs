//! Our signal handlers beside those of others: put in, found displaced and put on top again, and
//! handing on what is not for us.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};

/// What a load of memory that is not there raises, and one of a file that has become too short.
pub const FAULTS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The handlers that were there before ours.
///
/// Whoever comes after us may put a handler of their own over ours, and ours has to come back to
/// the top: a fault of a walk must reach it. Their handler has then two neighbours that are both
/// ours: it is called by us, and calls us for what it does not know. So a signal that we hand on is
/// marked, and one that comes back with the mark goes to whoever was there at first.
pub struct Previous {
    /// Found at the very first.
    first: Action,
    /// Found when ours last came to the top.
    latest: Action,
    installed: AtomicBool,
}

struct Action {
    handler: AtomicUsize,
    flags: AtomicU32,
}

impl Action {
    const fn new() -> Self {
        Action { handler: AtomicUsize::new(libc::SIG_DFL), flags: AtomicU32::new(0) }
    }

    fn keep(&self, action: &libc::sigaction) {
        self.handler.store(action.sa_sigaction, SeqCst);
        self.flags.store(action.sa_flags.cast_unsigned(), SeqCst);
    }
}

/// In the field for an error number of a signal that we hand on, where the kernel leaves zero.
const MARK: c_int = 0x7461_7265;

impl Previous {
    pub const fn new() -> Self {
        Previous { first: Action::new(), latest: Action::new(), installed: AtomicBool::new(false) }
    }

    /// Puts our handler in, unless it is in already, and remembers the one that was. The
    /// disposition is left when we stop: others may have remembered ours by then. True if somebody
    /// had put another over ours.
    pub fn install(
        &self,
        signal: c_int,
        handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void),
    ) -> std::io::Result<bool> {
        // SAFETY: all zeros is a valid action; the pointers refer to locals.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut now) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let ours = handler as *const () as usize;
            if now.sa_sigaction == ours {
                return Ok(false);
            }
            let again = self.installed.load(SeqCst);
            if !again {
                self.first.keep(&now);
            }
            self.latest.keep(&now);
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = ours;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            if FAULTS.contains(&signal) {
                // As HotSpot has it for its own, so that nothing changes for what it calls.
                new.sa_mask = now.sa_mask;
                new.sa_flags |= now.sa_flags & libc::SA_NODEFER;
            } else {
                // Other profilers' signals wait: their handlers and ours use the same stack.
                libc::sigemptyset(&raw mut new.sa_mask);
                libc::sigaddset(&raw mut new.sa_mask, libc::SIGPROF);
                libc::sigaddset(&raw mut new.sa_mask, libc::SIGVTALRM);
            }
            if libc::sigaction(signal, &raw const new, std::ptr::null_mut()) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            self.installed.store(true, SeqCst);
            Ok(again)
        }
    }

    /// Hands a signal on to whom it was meant for. False if there is nobody.
    ///
    /// # Safety
    /// The arguments are those that the kernel passed to our handler.
    pub unsafe fn pass(
        &self,
        signal: c_int,
        info: *mut libc::siginfo_t,
        context: *mut c_void,
    ) -> bool {
        let alone = self.first.handler.load(SeqCst) == self.latest.handler.load(SeqCst);
        if alone || info.is_null() {
            // SAFETY: see above.
            return unsafe { self.first.call(signal, info, context) };
        }
        // SAFETY: the kernel's structure, which the thread's own stack holds.
        unsafe {
            if (*info).si_errno == MARK {
                (*info).si_errno = 0;
                let passed = self.first.call(signal, info, context);
                (*info).si_errno = MARK;
                return passed;
            }
            let before = std::mem::replace(&mut (*info).si_errno, MARK);
            let passed = self.latest.call(signal, info, context);
            (*info).si_errno = before;
            passed
        }
    }
}

impl Action {
    /// # Safety
    /// The arguments are those that the kernel passed to our handler.
    unsafe fn call(&self, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> bool {
        let handler = self.handler.load(SeqCst);
        if handler == libc::SIG_IGN {
            return true;
        }
        if handler == libc::SIG_DFL {
            return false;
        }
        if self.flags.load(SeqCst) & libc::SA_SIGINFO.cast_unsigned() != 0 {
            // SAFETY: the kernel gave this address as a handler with three arguments.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        } else {
            // SAFETY: as above, with one argument.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
        true
    }
}
