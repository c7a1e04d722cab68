//! What return addresses in compiled code stand for, remembered from one walk to the next.
//!
//! Reading a compiled frame's inlined methods out of HotSpot's notes takes ten times as long as
//! finding the frame, and the next stack of a thread has nearly the same ones. An address is
//! remembered with the code that it is in and that code's number, which no other compilation gets:
//! an address whose code was replaced meanwhile is not found. Frames of redefined methods are not
//! found either, because HotSpot has them return elsewhere.
//!
//! A piece of memory belongs to who walks, so no lock is needed; there is nothing to free.

use super::frames::{Frame, Frames};
use tare_arena::samples::layout::frame;

/// Addresses that one piece remembers.
const SLOTS: usize = 1024;

/// Frames of an address that are worth their room.
const MOST: usize = 10;

#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    /// Zero: empty.
    pc: u64,
    code: Code,
    count: u32,
    frames: [Frame; MOST],
}

/// Compiled code: where it is, and which compilation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    pub at: u64,
    pub compilation: i32,
}

/// The memory of one who walks.
#[derive(Clone, Copy, Debug)]
pub struct Memo(*mut Slot);

impl Memo {
    pub const BYTES: usize = SLOTS * size_of::<Slot>();

    /// One that remembers nothing.
    pub const NONE: Memo = Memo(std::ptr::null_mut());

    /// # Safety
    /// There are `BYTES` at `start`, zeros or what an earlier one left, aligned to eight, which
    /// nobody else uses while this one is used.
    pub unsafe fn new(start: *mut u8) -> Self {
        Memo(start.cast())
    }

    fn slot(&self, pc: u64) -> Option<*mut Slot> {
        let index = (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % SLOTS;
        // SAFETY: within the piece.
        (!self.0.is_null()).then(|| unsafe { self.0.add(index) })
    }

    /// Pushes the frames of an address; false if they are not known.
    pub fn recall(&self, pc: u64, code: Code, frames: &mut Frames) -> bool {
        let Some(slot) = self.slot(pc) else { return false };
        // SAFETY: a slot of ours, which nobody writes meanwhile.
        let slot = unsafe { &*slot };
        if slot.pc != pc || slot.code != code {
            return false;
        }
        slot.frames.iter().take(slot.count as usize).all(|frame| frames.push(*frame))
    }

    /// Remembers the frames of an address, if they have all their names. What may fault has been
    /// done by then.
    pub fn keep(&self, pc: u64, code: Code, pushed: &[Frame]) {
        let whole = |one: &Frame| one.kind == frame::JAVA && one.bci >= 0;
        if pushed.is_empty() || pushed.len() > MOST || !pushed.iter().all(whole) {
            return;
        }
        let Some(slot) = self.slot(pc) else { return };
        // SAFETY: as above.
        let slot = unsafe { &mut *slot };
        // Nothing in here can fault, and a signal's handler has a piece of its own.
        slot.code = code;
        slot.count = pushed.len() as u32;
        slot.frames[..pushed.len()].copy_from_slice(pushed);
        slot.pc = pc;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_arena::samples::{How, Special};

    #[test]
    fn an_address_is_known_only_in_the_code_it_was_in() {
        let mut memory = vec![0_u64; Memo::BYTES / 8];
        // SAFETY: as many bytes, for this test alone.
        let memo = unsafe { Memo::new(memory.as_mut_ptr().cast()) };
        let code = Code { at: 0x1000, compilation: 7 };
        let frame = |bci| Frame::java(0x8000, bci, How::Inlined);
        let mut buffer = [frame(0); 17];
        // SAFETY: room for sixteen and one more.
        let mut frames = unsafe { Frames::new(buffer.as_mut_ptr(), 16) };
        assert!(!memo.recall(0x1040, code, &mut frames));
        memo.keep(0x1040, code, &[frame(3), frame(9)]);
        assert!(memo.recall(0x1040, code, &mut frames));
        assert_eq!(frames.as_slice(), [frame(3), frame(9)]);
        for other in [Code { at: 0x1008, ..code }, Code { compilation: 8, ..code }] {
            assert!(!memo.recall(0x1040, other, &mut frames));
        }
        assert!(!memo.recall(0x1044, code, &mut frames));
        // What lacks something may have it the next time.
        memo.keep(0x2000, code, &[frame(3), frame(-1)]);
        memo.keep(0x2000, code, &[Frame::special(Special::OldMethod)]);
        memo.keep(0x2000, code, &[frame(1); MOST + 1]);
        memo.keep(0x2000, code, &[]);
        assert!(!memo.recall(0x2000, code, &mut frames));
        assert_eq!(frames.count(), 2);
    }
}
