//! A stack as it is walked: a buffer of frames, in the form in which they go into the ring.

use std::ptr;
use tare_arena::samples::layout::frame;
use tare_arena::samples::{How, Special};

/// A frame, laid out as in the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Frame {
    pub value: u64,
    pub bci: i32,
    pub kind: u8,
    pub how: u8,
    pub spare: u16,
}

const _: () = assert!(size_of::<Frame>() == frame::SIZE);
const _: () = assert!(std::mem::offset_of!(Frame, bci) == frame::BCI);
const _: () = assert!(std::mem::offset_of!(Frame, kind) == frame::KIND);
const _: () = assert!(std::mem::offset_of!(Frame, how) == frame::HOW);

impl Frame {
    pub fn java(method: u64, bci: i32, how: How) -> Self {
        Frame { value: method, bci, kind: frame::JAVA, how: how as u8, spare: 0 }
    }

    pub fn native(address: u64) -> Self {
        Frame { value: address, bci: -1, kind: frame::NATIVE, how: 0, spare: 0 }
    }

    pub fn kernel(address: u64) -> Self {
        Frame { value: address, bci: -1, kind: frame::KERNEL, how: 0, spare: 0 }
    }

    /// The class of an object, by the text that is its signature.
    pub fn class(text: u32) -> Self {
        Frame { value: u64::from(text), bci: -1, kind: frame::CLASS, how: 0, spare: 0 }
    }

    /// The method of a Java frame.
    pub fn method(&self) -> Option<u64> {
        (self.kind == frame::JAVA).then_some(self.value)
    }

    /// The address of a native one.
    pub fn address(&self) -> Option<u64> {
        (self.kind == frame::NATIVE).then_some(self.value)
    }

    /// Whether it is the class of an object.
    pub fn is_class(&self) -> bool {
        self.kind == frame::CLASS
    }

    pub fn special(kind: Special) -> Self {
        Frame { value: kind as u64, bci: -1, kind: frame::SPECIAL, how: 0, spare: 0 }
    }
}

/// A bounded stack in memory that somebody else owns. What was pushed is in memory at once, so
/// that it is there when a fault ends the walk.
pub struct Frames {
    start: *mut Frame,
    capacity: usize,
    count: usize,
    /// With so many nobody wants more.
    enough: usize,
}

impl Frames {
    /// # Safety
    /// `start` has room for `capacity` frames and one more, which nobody else uses meanwhile.
    pub unsafe fn new(start: *mut Frame, capacity: usize) -> Self {
        Frames { start, capacity, count: 0, enough: capacity }
    }

    /// False when there is no more room.
    pub fn push(&mut self, frame: Frame) -> bool {
        if self.count >= self.capacity {
            return false;
        }
        self.put(frame);
        true
    }

    /// Says why the stack ends here; there is always room for that.
    pub fn end(&mut self, why: Special) {
        if self.count <= self.capacity {
            self.put(Frame::special(why));
        }
    }

    fn put(&mut self, frame: Frame) {
        // SAFETY: the count is at most the capacity, and there is room for one more than that.
        unsafe {
            ptr::write_volatile(self.start.add(self.count), frame);
            ptr::write_volatile(&raw mut self.count, self.count + 1);
        }
    }

    /// Puts another in the place of the first one, if there is one.
    pub fn replace_first(&mut self, frame: Frame) {
        if self.count() > 0 {
            // SAFETY: inside what was written, and nothing is being walked.
            unsafe { ptr::write_volatile(self.start, frame) };
        }
    }

    /// Takes those frames out that come first behind the first `kept` ones.
    pub fn drop_leading(&mut self, kept: usize, is_hidden: impl Fn(&Frame) -> bool) {
        let all = self.as_slice();
        let hidden = all.iter().skip(kept).take_while(|frame| is_hidden(frame)).count();
        let rest = all.len().saturating_sub(kept + hidden);
        if hidden > 0 {
            // SAFETY: both ranges are inside what was written, and nothing is being walked.
            unsafe {
                let to = self.start.add(kept);
                ptr::copy(to.add(hidden), to, rest);
            }
            self.count = kept + rest;
        }
    }

    /// Takes the last frames away, so that these many are left.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count().min(count);
    }

    /// This many frames are enough. What is inlined where the last one is comes as well.
    pub fn limit(&mut self, frames: usize) {
        self.enough = self.capacity.min(frames);
    }

    pub fn is_enough(&self) -> bool {
        self.count() >= self.enough
    }

    /// Whether there was no room for some, perhaps.
    pub fn is_full(&self) -> bool {
        self.count() >= self.capacity
    }

    pub fn count(&self) -> usize {
        // SAFETY: a field of ours; volatile because a fault may have ended the writer.
        unsafe { ptr::read_volatile(&raw const self.count) }
    }

    /// Whether the last frame is Java's, with a name or without.
    pub fn last_is_java(&self) -> bool {
        let nameless = Frame::special(Special::OldMethod);
        self.as_slice().last().is_some_and(|last| last.kind == frame::JAVA || *last == nameless)
    }

    pub fn as_slice(&self) -> &[Frame] {
        // SAFETY: so many frames were written.
        unsafe { std::slice::from_raw_parts(self.start, self.count()) }
    }
}
