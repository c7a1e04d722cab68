//! A value that one thread replaces and signal handlers read.
//!
//! A handler may interrupt any code, also the replacing one, so it can take no lock, and reference
//! counts do not help: between loading a pointer and counting, the value may be gone. Instead a
//! handler announces itself before it loads the pointer, in one of several counters. A value that
//! was replaced is freed once every counter has been seen at zero after the exchange: who comes
//! later gets the new pointer. If a handler takes its time, the old value waits for the next visit
//! of the replacing thread; nobody ever waits for a handler.
//!
//! Orderings: all are sequentially consistent. What must not happen is that a handler's counter
//! and the pointer it loads are seen in another order than by the replacing thread (store, then
//! load of something else, on both sides), and nothing weaker rules that out.

use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Handlers on different threads should rarely share a counter.
const COUNTERS: usize = 16;

#[repr(align(64))]
struct Counter(AtomicUsize);

pub struct Published<T> {
    current: AtomicPtr<T>,
    counters: [Counter; COUNTERS],
    /// Replaced values, each with the counters that were not yet seen at zero. Never locked by
    /// a handler.
    replaced: Mutex<Vec<Replaced<T>>>,
}

struct Replaced<T> {
    _value: Box<T>,
    /// A bit for each counter that may still count somebody who uses the value.
    busy: u16,
}

impl<T> Published<T> {
    pub const fn new() -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
            counters: [const { Counter(AtomicUsize::new(0)) }; COUNTERS],
            replaced: Mutex::new(Vec::new()),
        }
    }

    /// Puts a value in the place of the one before, or none, and frees what nobody reads any more.
    /// Returns how many old values still wait to be freed. Not for handlers.
    pub fn replace(&self, value: Option<Box<T>>) -> usize {
        let new = value.map_or(ptr::null_mut(), Box::into_raw);
        let old = self.current.swap(new, Ordering::SeqCst);
        let mut replaced = self.replaced.lock().unwrap_or_else(|e| e.into_inner());
        if !old.is_null() {
            // SAFETY: it came from `Box::into_raw`, and the exchange made us its only owner;
            // handlers that still read it are waited for before it is dropped.
            let value = unsafe { Box::from_raw(old) };
            replaced.push(Replaced { _value: value, busy: u16::MAX });
        }
        self.free(&mut replaced)
    }

    /// Frees what nobody reads any more; returns how many old values still wait. Not for handlers.
    pub fn tidy(&self) -> usize {
        self.free(&mut self.replaced.lock().unwrap_or_else(|e| e.into_inner()))
    }

    fn free(&self, replaced: &mut Vec<Replaced<T>>) -> usize {
        for old in replaced.iter_mut() {
            for (index, counter) in self.counters.iter().enumerate() {
                if counter.0.load(Ordering::SeqCst) == 0 {
                    old.busy &= !(1 << index);
                }
            }
        }
        replaced.retain(|old| old.busy != 0);
        replaced.len()
    }

    /// The value of this moment, kept alive by the guard. Async-signal-safe. `hint` should differ
    /// between threads; any number will do.
    pub fn read(&self, hint: usize) -> Option<Guard<'_, T>> {
        // The remainder is smaller than the number of counters.
        let counter = &self.counters[hint % COUNTERS].0;
        counter.fetch_add(1, Ordering::SeqCst);
        let value = self.current.load(Ordering::SeqCst);
        // SAFETY: null, or a box that is not freed before our counter was zero again.
        match unsafe { value.as_ref() } {
            Some(value) => Some(Guard { value, counter }),
            None => {
                counter.fetch_sub(1, Ordering::SeqCst);
                None
            }
        }
    }
}

impl<T> Default for Published<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        // Nobody reads: a guard borrows us.
        self.replace(None);
    }
}

// SAFETY: values are handed to other threads by reference, and dropped on whichever replaces them.
unsafe impl<T: Send + Sync> Sync for Published<T> {}
// SAFETY: as above; it owns its values.
unsafe impl<T: Send> Send for Published<T> {}

pub struct Guard<'a, T> {
    value: &'a T,
    counter: &'a AtomicUsize,
}

impl<T> std::ops::Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_value_lives_as_long_as_somebody_reads_it() {
        let published = Published::new();
        let first = Arc::new(1);
        assert_eq!(published.replace(Some(Box::new(first.clone()))), 0);
        let guard = published.read(3).unwrap();
        assert_eq!(published.replace(Some(Box::new(Arc::new(2)))), 1, "still read");
        assert_eq!(**guard, 1);
        // Readers of the new value, in another counter or the same, hold nothing up for long.
        let other = published.read(4).unwrap();
        assert_eq!(**other, 2);
        drop(guard);
        assert_eq!(published.tidy(), 0);
        assert_eq!(Arc::strong_count(&first), 1, "freed");
        drop(other);
        published.replace(None);
        assert!(published.read(0).is_none());
    }

    #[test]
    fn readers_and_a_writer_at_the_same_time() {
        let published = &Published::new();
        published.replace(Some(Box::new(vec![0_usize; 64])));
        std::thread::scope(|scope| {
            for hint in 0..3 {
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        let value = published.read(hint).unwrap();
                        let first = value[0];
                        assert!(value.iter().all(|v| *v == first), "torn or freed");
                    }
                });
            }
            for n in 0..5_000 {
                published.replace(Some(Box::new(vec![n; 64])));
            }
        });
        assert_eq!(published.tidy(), 0);
    }
}
