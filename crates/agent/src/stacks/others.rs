//! Java frames of a thread, read by another one and without a word from the JVM: for when it
//! answers nobody.
//!
//! A thread that is not in Java code has noted its last Java frame, and the frames from there on
//! stand still. Methods stand for themselves here, and not for ids: only the JVM gives those.

use super::frames::{Frame, Frames};
use super::hotspot::Layout;
use super::memo::Memo;
use super::memory::Memory;
use super::methods::IdRules;
use super::native::FramePointers;
use super::walk::{Registers, Walker};
use crate::vm_tables::{Missing, Tables};
use tare_arena::samples::Special;

pub struct Others {
    pub layout: Layout,
}

impl Others {
    pub fn new(tables: &Tables) -> Result<Self, Missing> {
        // A number of four bytes, whatever lies behind it.
        let major = tables.static_value("Abstract_VM_Version", "_vm_major_version")? as u32;
        Ok(Others { layout: Layout::new(tables, major)? })
    }

    /// The frames of one of HotSpot's threads, the innermost first and so many at most, and why
    /// these are not all. Without registers they begin with the last Java frame that it has noted.
    pub fn frames(
        &self,
        memory: &impl Memory,
        thread: u64,
        registers: Option<Registers>,
        most: usize,
    ) -> (Vec<Frame>, Option<Special>) {
        let mut room = vec![Frame::special(Special::Cut); most + 1];
        // SAFETY: so many frames and one more, which nobody else uses as long as `frames` does.
        let mut frames = unsafe { Frames::new(room.as_mut_ptr(), most) };
        let top = memory.word(thread.wrapping_add(self.layout.thread_stack_base));
        let walker = Walker {
            layout: &self.layout,
            ids: IdRules { plain: true, ..IdRules::default() },
            chunks: None,
            memo: Memo::NONE,
            memory,
            native: &FramePointers,
            top: top.unwrap_or(0),
            with_native: false,
        };
        let end = walker.walk(thread, &registers.unwrap_or_default(), &mut frames);
        let count = frames.count();
        room.truncate(count);
        (room, end)
    }
}
