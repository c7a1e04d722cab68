//! What a session shares with callbacks, which find it without a lock and on any thread.
//!
//! The session publishes it, takes it back when it ends, and frees it once nobody is inside any
//! more. For signal handlers, too: nothing here waits.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

pub struct Published<T> {
    session: AtomicPtr<T>,
    inside: AtomicUsize,
}

/// Somebody is inside for as long as it lives.
struct Inside<'a>(&'a AtomicUsize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl<T: Sync> Published<T> {
    pub const fn new() -> Self {
        Published { session: AtomicPtr::new(ptr::null_mut()), inside: AtomicUsize::new(0) }
    }

    /// Lets callbacks find the session; null ends that. What is published stays where it is until
    /// it was taken back and nobody is inside.
    pub fn publish(&self, session: *mut T) {
        self.session.store(session, SeqCst);
    }

    /// Whether no callback uses the session, or what it had found in it before this call.
    pub fn nobody_inside(&self) -> bool {
        self.inside.load(SeqCst) == 0
    }

    /// Uses the session, if there is one.
    pub fn with<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        self.inside.fetch_add(1, SeqCst);
        let _inside = Inside(&self.inside);
        // SAFETY: published by the session, which stays while somebody is inside.
        unsafe { self.session.load(SeqCst).as_ref() }.map(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_is_inside_while_a_session_is_used_and_no_longer() {
        let published = Published::new();
        assert_eq!(published.with(|number: &u32| *number), None);
        let mut number = 7;
        published.publish(&raw mut number);
        let seen = published.with(|number| (*number, published.nobody_inside()));
        assert_eq!(seen, Some((7, false)));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            published.with(|_| panic!("inside"));
        }));
        assert!(panicked.is_err() && published.nobody_inside());
        published.publish(ptr::null_mut());
        assert_eq!(published.with(|number| *number), None);
    }
}
