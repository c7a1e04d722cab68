//! An allocator that counts: how much memory an execution had at most.
//!
//! What is counted is what is asked for. A single wish beyond all reason is refused, which ends the
//! process; the driver that started it then knows which input it was.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// More than that at once no reader asks for, whatever a file claims.
const REFUSED: usize = 4 << 30;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Begins to count; the answer is what there is now.
pub fn begin() -> usize {
    let live = LIVE.load(Relaxed);
    MOST.store(live, Relaxed);
    live
}

/// The most that there was since [`begin`].
pub fn most() -> usize {
    MOST.load(Relaxed)
}

fn add(size: usize) {
    let live = LIVE.fetch_add(size, Relaxed).wrapping_add(size);
    MOST.fetch_max(live, Relaxed);
}

// SAFETY: every call goes to the system's allocator with what it was called with; counting neither
// allocates nor unwinds.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > REFUSED {
            return std::ptr::null_mut();
        }
        add(layout.size());
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > REFUSED {
            return std::ptr::null_mut();
        }
        add(layout.size());
        // SAFETY: the caller keeps to the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer is one of the system's, of this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > REFUSED {
            return std::ptr::null_mut();
        }
        add(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer is one of the system's, of this layout, and the caller keeps to the
        // contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
