//! What code an address belongs to: HotSpot's code cache, its blobs, and whether an address in it
//! is one that a call returns to. Part of the walker; `walk` knows what to do with it.

use super::hotspot::At;
use super::memory::Memory;
use super::native::NativeStep;
use super::walk::Walker;

const fn text(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes)
}

/// How the names of blobs begin.
const NMETHOD: u64 = text(*b"nmethod\0");
const NATIVE_NMETHOD: u64 = text(*b"native n");
pub const DEOPTIMIZATION: u64 = text(*b"Deoptimi");

/// What code a place belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob {
    pub at: u64,
    pub code: u64,
    pub frame_size: i32,
    pub kind: BlobKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobKind {
    Interpreter,
    Compiled,
    /// The wrapper of a native method.
    Wrapper,
    Stub,
}

impl<M: Memory, N: NativeStep> Walker<'_, M, N> {
    /// The part of the code cache that `pc` is in.
    pub(super) fn heap_of(&self, pc: u64) -> Option<u64> {
        let l = self.layout;
        l.heaps.iter().copied().take_while(|heap| *heap != 0).find(|heap| {
            let low = self.memory.word(heap.wrapping_add(l.heap_low)).unwrap_or(0);
            let high = self.memory.word(heap.wrapping_add(l.heap_high)).unwrap_or(0);
            (low..high).contains(&pc)
        })
    }

    /// The code that `pc` is in.
    pub(super) fn blob(&self, pc: u64) -> Option<Blob> {
        self.blob_in(self.heap_of(pc)?, pc)
    }

    /// The same in a part of the code cache.
    pub(super) fn blob_in(&self, heap: u64, pc: u64) -> Option<Blob> {
        let l = self.layout;
        let low = self.field(heap, l.heap_low)?;
        let segments = self.field(heap, l.heap_segments)?;
        let mut index = pc.wrapping_sub(low) >> l.segment_shift;
        // Each segment says how many segments back its block begins, or that further back it is
        // told.
        loop {
            match self.byte_field(segments, index)? {
                0xff => return None,
                0 => break,
                back => index = index.checked_sub(u64::from(back))?,
            }
        }
        let block = low.wrapping_add(index << l.segment_shift);
        if self.byte_field(block, l.block_used)? == 0 {
            return None;
        }
        let at = block.wrapping_add(l.block_header);
        let kind = if (l.interpreter.0..l.interpreter.1).contains(&pc) {
            BlobKind::Interpreter
        } else {
            match self.memory.word(self.field(at, l.blob_name)?)? {
                NMETHOD => BlobKind::Compiled,
                NATIVE_NMETHOD => BlobKind::Wrapper,
                _ => BlobKind::Stub,
            }
        };
        let frame_size = self.int_field(at, l.blob_frame_size)?;
        Some(Blob { at, code: self.resolve(at, l.blob_code)?, frame_size, kind })
    }

    pub(super) fn resolve(&self, base: u64, at: At) -> Option<u64> {
        let distance = |offset| self.int_field(base, offset).map(i64::from);
        match at {
            At::Pointer(offset) => self.field(base, offset),
            At::Distance(offset) => Some(base.wrapping_add_signed(distance(offset)?)),
            At::Behind(pointer, offset) => {
                Some(self.field(base, pointer)?.wrapping_add_signed(distance(offset)?))
            }
            At::Absent => None,
        }
    }

    /// The code that `pc` is in, if `pc` is where a call returns to: behind a call, in the
    /// interpreter, which jumps, or where deoptimised code goes on.
    pub(super) fn returns_to(&self, pc: u64) -> Option<Blob> {
        let blob = self.blob(pc)?;
        let returns = match blob.kind {
            BlobKind::Interpreter => true,
            BlobKind::Compiled => self.after_call(pc) || self.is_deoptimised(blob, pc),
            BlobKind::Wrapper => self.after_call(pc),
            BlobKind::Stub => {
                pc == self.layout.call_stub_return
                    || self.after_call(pc)
                    || self.is_return_barrier(pc)
            }
        };
        returns.then_some(blob)
    }

    pub(super) fn is_deoptimised(&self, blob: Blob, pc: u64) -> bool {
        self.layout.deopt_handlers.iter().any(|at| self.resolve(blob.at, *at) == Some(pc))
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn after_call(&self, pc: u64) -> bool {
        let byte = |back: u64| self.memory.byte(pc.wrapping_sub(back)).unwrap_or(0);
        // A call of a register or of what memory holds has the opcode 0xff with 2 in the middle
        // of the byte behind it, then up to five bytes.
        let indirect = |length: u64| byte(length) == 0xff && byte(length - 1) >> 3 & 7 == 2;
        byte(5) == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(indirect)
    }

    #[cfg(target_arch = "aarch64")]
    pub(super) fn after_call(&self, pc: u64) -> bool {
        // bl; blr.
        self.memory.int(pc.wrapping_sub(4)).is_some_and(|word| {
            let word = word.cast_unsigned();
            word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_fc1f == 0xd63f_0000
        })
    }

    /// Where a virtual thread returns to when the rest of its stack is in the heap. The stub
    /// begins by taking its stack pointer from the thread, which no other code does.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn is_return_barrier(&self, pc: u64) -> bool {
        let byte = |at: u64| self.memory.byte(pc.wrapping_add(at)).unwrap_or(0);
        // mov rsp, [r15 + offset]
        byte(0) == 0x49 && byte(1) == 0x8b && matches!(byte(2), 0x67 | 0xa7)
    }

    #[cfg(target_arch = "aarch64")]
    pub(super) fn is_return_barrier(&self, pc: u64) -> bool {
        !self.after_call(pc)
    }

    /// Where HotSpot's thread notes the innermost continuation that it runs: where the return
    /// barrier takes its stack pointer from. No table tells.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn noted_by_barrier(&self, pc: u64) -> Option<u64> {
        let at = pc.wrapping_add(3);
        let offset = match self.memory.byte(pc.wrapping_add(2))? {
            0x67 => i64::from(self.memory.byte(at)?.cast_signed()),
            0xa7 => i64::from(self.memory.int(at)?),
            _ => return None,
        };
        u64::try_from(offset).ok()
    }

    /// Not known for this processor, so nothing is read from the heap.
    #[cfg(target_arch = "aarch64")]
    pub(super) fn noted_by_barrier(&self, _: u64) -> Option<u64> {
        None
    }
}
