//! Compiled code's own notes: which methods are inlined at an instruction, and where in each of
//! them it is. Part of the walker; `walk` finds the frames.

use super::code::Blob;
use super::frames::Frames;
use super::memory::Memory;
use super::native::NativeStep;
use super::walk::{Walker, up};
use tare_arena::samples::How;

/// The size of one of HotSpot's `PcDesc`s.
const PC_DESC: u64 = 16;

/// Scopes inlined into each other; HotSpot's own limits are far lower.
const DEEPEST_INLINING: usize = 256;

fn pc_desc(table: u64, index: u64) -> u64 {
    table.wrapping_add(index.wrapping_mul(PC_DESC))
}

impl<M: Memory, N: NativeStep> Walker<'_, M, N> {
    /// The method at a place in compiled code and those that it is inlined into.
    pub(super) fn scopes(
        &self,
        blob: Blob,
        pc: u64,
        leaf: bool,
        outer: How,
        frames: &mut Frames,
    ) -> Option<()> {
        let l = self.layout;
        let pcs = self.resolve(blob.at, l.scopes_pcs)?;
        let end = self.resolve(blob.at, l.scopes_pcs_end)?;
        let data = self.resolve(blob.at, l.scopes_data)?;
        let metadata = self.resolve(blob.at, l.metadata)?;
        // A description stands at the end of what it describes: of a call, where it returns to. An
        // interrupted instruction is not behind anything yet, so one that begins there is not its.
        let place = pc.checked_sub(blob.code)?.checked_add(u64::from(leaf))?;
        let wanted = i32::try_from(place).ok()?;
        let (mut low, mut high) = (0, end.checked_sub(pcs)? / PC_DESC);
        while low < high {
            let middle = low.midpoint(high);
            if self.memory.int(pc_desc(pcs, middle))? < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut scope = self.memory.int(pc_desc(pcs, low).wrapping_add(4))?;
        if pc_desc(pcs, low) >= end || scope <= 0 {
            return None;
        }
        let mut pushed = None;
        for _ in 0..DEEPEST_INLINING {
            let mut at = data.wrapping_add(u64::from(scope.cast_unsigned()));
            let sender = self.number(&mut at)?;
            let method = self.number(&mut at)?;
            let bci = self.number(&mut at)?.cast_signed().wrapping_sub(1);
            let method = self.memory.word(up(metadata, u64::from(method.checked_sub(1)?)))?;
            let how = if sender == 0 { outer } else { How::Inlined };
            frames.push(self.version(method)?.frame(bci, how));
            pushed = Some(());
            if sender == 0 {
                break;
            }
            scope = sender.cast_signed();
        }
        pushed
    }

    /// A compressed number of HotSpot's debug information: one to five bytes, base 64.
    fn number(&self, at: &mut u64) -> Option<u32> {
        let mut sum = 0_u32;
        for index in 0..5 {
            let byte = u32::from(self.memory.byte(*at)?);
            *at = at.wrapping_add(1);
            let digit = byte.wrapping_sub(self.layout.unsigned5_base);
            sum = sum.wrapping_add(digit.wrapping_shl(6 * index));
            if byte < 192 {
                break;
            }
        }
        Some(sum)
    }
}
