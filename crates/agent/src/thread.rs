//! Threads of ours, which become threads of the JVM: made as HotSpot makes its own.
//!
//! HotSpot closes pages at the end of the stack of a thread that it gets to know, and leaves them
//! closed when it lets go of it. glibc keeps the stacks of ended threads for new ones. A thread
//! with a guard page of glibc's own, as the standard library makes them, has the closed pages one
//! page higher than a Java thread has, so a Java thread that gets its stack later finds a closed
//! page where HotSpot expects none, and dies of it. Threads without that guard page have theirs in
//! the same place; HotSpot's pages guard them as well.

use crate::gate;
use crate::kernel;
use std::ffi::{CString, c_void};
use std::io;
use std::mem;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// Threads of ours that live as long as a recording does, and are not part of it.
static OURS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Their numbers.
pub fn ours() -> Vec<u32> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The processor time of all of them, in nanoseconds.
pub fn own_cpu() -> u64 {
    ours().into_iter().map(|tid| kernel::clock(kernel::thread_clock(tid))).sum()
}

/// Whether a thread is one of them.
pub fn is_ours(tid: u32) -> bool {
    OURS.lock().unwrap_or_else(PoisonError::into_inner).contains(&tid)
}

/// The calling thread is not part of recordings for as long as the value lives.
pub struct Ours(u32);

impl Ours {
    pub fn note() -> Self {
        let tid = kernel::gettid();
        OURS.lock().unwrap_or_else(PoisonError::into_inner).push(tid);
        Ours(tid)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        OURS.lock().unwrap_or_else(PoisonError::into_inner).retain(|tid| *tid != self.0);
    }
}

/// A thread that can be waited for; it goes on by itself when the value is dropped.
pub struct Handle {
    id: libc::pthread_t,
    joined: bool,
}

/// What a thread runs.
type Body = Box<dyn FnOnce() + Send>;

struct Start {
    name: CString,
    body: Body,
}

/// Starts a thread with a stack of so many bytes; a panic ends what it runs, and nothing else.
pub fn spawn(name: &str, stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<Handle> {
    let start = Start { name: CString::new(name)?, body: Box::new(body) };
    let start = Box::into_raw(Box::new(start));
    let mut id: libc::pthread_t = 0;
    // SAFETY: the attributes are initialised before use and destroyed after it; the new thread
    // takes the box over, or nobody does and it is freed here.
    let code = unsafe {
        let mut attributes: libc::pthread_attr_t = mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, stack);
        libc::pthread_attr_setguardsize(&raw mut attributes, 0);
        let code = libc::pthread_create(&raw mut id, &raw const attributes, run, start.cast());
        libc::pthread_attr_destroy(&raw mut attributes);
        if code != 0 {
            drop(Box::from_raw(start));
        }
        code
    };
    if code == 0 {
        Ok(Handle { id, joined: false })
    } else {
        Err(io::Error::from_raw_os_error(code))
    }
}

extern "C" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: the box that `spawn` gave away.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    // SAFETY: the calling thread, and a NUL-terminated name.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), start.name.as_ptr()) };
    gate::enter((), start.body);
    ptr::null_mut()
}

impl Handle {
    /// Waits for the thread's end.
    pub fn join(mut self) {
        self.joined = true;
        // SAFETY: a thread that was neither joined nor detached before.
        unsafe { libc::pthread_join(self.id, ptr::null_mut()) };
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.joined {
            // SAFETY: as above.
            unsafe { libc::pthread_detach(self.id) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_runs_under_its_name_without_a_guard_and_is_waited_for() {
        let (say, hear) = mpsc::channel();
        let handle = spawn("tare-test", 256 << 10, move || {
            // SAFETY: all zeros is valid for the call to fill; destroyed afterwards.
            let guard = unsafe {
                let mut attributes: libc::pthread_attr_t = mem::zeroed();
                libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes);
                let mut guard = usize::MAX;
                libc::pthread_attr_getguardsize(&raw const attributes, &raw mut guard);
                libc::pthread_attr_destroy(&raw mut attributes);
                guard
            };
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
            say.send((guard, name)).unwrap();
        });
        handle.unwrap().join();
        assert_eq!(hear.try_recv().unwrap(), (0, "tare-test\n".to_owned()));
        assert!(spawn("a\0b", 256 << 10, || {}).is_err());
    }
}
