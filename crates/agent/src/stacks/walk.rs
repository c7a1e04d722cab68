//! From the registers of an interrupted thread to its frames: native ones, then Java's.
//!
//! The walker knows the shapes of HotSpot's frames on the stack (interpreted, compiled with inlined
//! scopes, stubs, entry frames) and finds what they belong to in the code cache, by the offsets in
//! [`Layout`]. It reads through [`Memory`], so its tests need only an array. It allocates nothing,
//! calls nothing, and moves only towards the root of the stack; every end but the true one is
//! named.

use super::chunk_layout::ChunkRules;
use super::code::{Blob, BlobKind, DEOPTIMIZATION};
use super::frames::{Frame, Frames};
use super::hotspot::Layout;
use super::memo::{Code, Memo};
use super::memory::{LOWEST, Memory};
use super::methods::{IdRules, Version};
use super::native::{NativeStep, Place};
use tare_arena::samples::{How, Special};

/// Where it was interrupted, with what the interpreter keeps in registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    pub place: Place,
    /// The current bytecode; at a method's entry the caller's stack pointer.
    pub bcp: u64,
    /// At a method's entry the method.
    pub method: u64,
    /// Where an exception was thrown, while a stub passes it on.
    pub thrown_at: u64,
}

/// Frames further apart than this are not frames of one stack.
pub(super) const LARGEST_FRAME: u64 = 1 << 20;

/// Words that compiled code pushes within a frame, at most.
const MOST_PUSHED: u64 = 96;

/// How far a caller is searched for when nothing tells where it is, in words.
const SEARCH: u64 = 256;

/// So many words further towards the root. What is read may be anything, so nothing here may
/// overflow with a panic.
pub(super) fn up(sp: u64, words: u64) -> u64 {
    sp.wrapping_add(words.wrapping_mul(8))
}

pub struct Walker<'a, M, N> {
    pub layout: &'a Layout,
    /// How ids and methods hang together.
    pub ids: IdRules,
    /// How to go on in the heap, where that is known.
    pub chunks: Option<ChunkRules>,
    pub memo: Memo,
    pub memory: &'a M,
    pub native: &'a N,
    /// The end of the thread's stack.
    pub top: u64,
    pub with_native: bool,
}

/// What comes after a frame.
pub(super) enum Next {
    At(Place),
    /// The root.
    Whole,
    Broken(Special),
}

impl<M: Memory, N: NativeStep> Walker<'_, M, N> {
    /// Walks from where a thread was interrupted to the root. `thread` is HotSpot's thread, zero
    /// for a native one. `None` when the stack is whole.
    pub fn walk(&self, thread: u64, registers: &Registers, frames: &mut Frames) -> Option<Special> {
        let mut place = registers.place;
        let mut anchor = self.anchor(thread);
        let mut leaf = true;
        // Where nobody wants to see native frames, the thread's own note leads past them.
        let is_hidden = !self.with_native && self.heap_of(place.pc).is_none();
        if is_hidden && let Some(noted) = anchor.take_if(|noted| noted.sp >= place.sp) {
            (place, leaf) = (noted, false);
        }
        let mut in_java = false;
        loop {
            let next = if let Some(heap) = self.heap_of(place.pc) {
                // While it is not in Java code, a thread keeps a note of its last Java frame,
                // which is surer than anything found by walking.
                if let Some(noted) = anchor.take().filter(|noted| noted.sp >= place.sp)
                    && noted != place
                {
                    place = noted;
                    leaf = false;
                    continue;
                }
                let next = self.java(heap, thread, place, leaf, registers, frames);
                in_java |= frames.last_is_java();
                next
            } else if in_java {
                // Java is called from native code by entry frames only, which lead past it.
                Next::Broken(Special::NotWalkableJava)
            } else {
                match self.native(place, leaf, frames) {
                    Some(next) => Next::At(next),
                    None => match anchor.take() {
                        Some(noted) if noted.sp >= place.sp => Next::At(noted),
                        _ => self.after_native(thread, registers.place),
                    },
                }
            };
            match next {
                Next::At(next) => place = next,
                Next::Whole => return None,
                Next::Broken(why) => return Some(why),
            }
            if frames.is_enough() {
                return Some(Special::Cut);
            }
            leaf = false;
        }
    }

    pub(super) fn field(&self, base: u64, offset: u64) -> Option<u64> {
        self.memory.word(base.wrapping_add(offset))
    }

    pub(super) fn int_field(&self, base: u64, offset: u64) -> Option<i32> {
        self.memory.int(base.wrapping_add(offset))
    }

    pub(super) fn short_field(&self, base: u64, offset: u64) -> Option<u16> {
        self.memory.short(base.wrapping_add(offset))
    }

    pub(super) fn byte_field(&self, base: u64, offset: u64) -> Option<u8> {
        self.memory.byte(base.wrapping_add(offset))
    }

    /// The last Java frame, as noted by a thread that left Java code.
    fn anchor(&self, thread: u64) -> Option<Place> {
        if thread == 0 {
            return None;
        }
        self.anchor_at(thread.wrapping_add(self.layout.thread_anchor))
    }

    fn anchor_at(&self, at: u64) -> Option<Place> {
        let l = self.layout;
        let sp = self.memory.word(at.wrapping_add(l.anchor_sp)).filter(|sp| self.on_stack(*sp))?;
        let fp = self.memory.word(at.wrapping_add(l.anchor_fp))?;
        let pc = match self.memory.word(at.wrapping_add(l.anchor_pc))? {
            // The note may leave it out: it is where the call below returns to.
            0 => self.memory.word(sp.wrapping_sub(8))?,
            pc => pc,
        };
        Some(Place { pc, sp, fp })
    }

    pub(super) fn on_stack(&self, sp: u64) -> bool {
        sp != 0 && sp.is_multiple_of(8) && sp < self.top
    }

    /// Whether `next` is nearer to the root, by no more than a frame can be.
    fn towards_root(&self, place: Place, next: Place) -> bool {
        next.sp > place.sp && next.sp - place.sp <= LARGEST_FRAME && self.on_stack(next.sp)
    }

    fn native(&self, place: Place, leaf: bool, frames: &mut Frames) -> Option<Place> {
        if self.with_native && place.pc >= LOWEST {
            frames.push(Frame::native(place.pc));
        }
        let next = self.native.step(self.memory, place, leaf)?;
        (self.towards_root(place, next) && next.pc >= LOWEST).then_some(next)
    }

    /// Native frames ended without a note of Java ones. For a thread in Java code that called a
    /// helper of the JVM, the caller is looked for on the stack; for others this is the root.
    fn after_native(&self, thread: u64, start: Place) -> Next {
        if thread == 0 {
            return Next::Whole;
        }
        match self.memory.int(thread.wrapping_add(self.layout.thread_state)) {
            Some(IN_JAVA | IN_JAVA_TRANS) => {
                self.search(start.sp).map_or(Next::Broken(Special::UnknownJava), Next::At)
            }
            Some(_) => Next::Whole,
            None => Next::Broken(Special::UnknownState),
        }
    }

    /// The nearest word on the stack that is a return address into compiled code.
    fn search(&self, sp: u64) -> Option<Place> {
        let start = sp & !7;
        (0..SEARCH).map(|index| up(start, index)).take_while(|at| up(*at, 1) < self.top).find_map(
            |at| {
                let pc = self.memory.word(at)?;
                let fp = self.memory.word(at.wrapping_sub(8))?;
                let found = Place { pc, sp: up(at, 1), fp };
                self.leads_on(found).then_some(found)
            },
        )
    }

    fn java(
        &self,
        heap: u64,
        thread: u64,
        place: Place,
        leaf: bool,
        registers: &Registers,
        frames: &mut Frames,
    ) -> Next {
        if place.pc == self.layout.call_stub_return {
            return self.entry(place);
        }
        let Some(blob) = self.blob_in(heap, place.pc) else {
            return Next::Broken(Special::UnknownJava);
        };
        let next = match blob.kind {
            BlobKind::Interpreter => self.interpreted(place, leaf, registers, frames),
            BlobKind::Compiled | BlobKind::Wrapper => self.compiled(blob, place, leaf, frames),
            BlobKind::Stub if !leaf && self.is_return_barrier(place.pc) => {
                return self.in_heap(thread, place, frames);
            }
            BlobKind::Stub => self.stub(blob, place, leaf, registers),
        };
        match next {
            Some(next) if self.towards_root(place, next) => Next::At(next),
            // A stub that has no frame any more goes on where it was called, with the same stack.
            Some(next) if next.sp == place.sp && leaf && blob.kind == BlobKind::Stub => {
                Next::At(next)
            }
            Some(_) => Next::Broken(Special::NotWalkableJava),
            None if blob.kind == BlobKind::Stub => Next::Broken(self.why_in_stub(blob)),
            None => Next::Broken(Special::UnknownJava),
        }
    }

    fn why_in_stub(&self, blob: Blob) -> Special {
        let name = self.field(blob.at, self.layout.blob_name);
        if name.and_then(|name| self.memory.word(name)) == Some(DEOPTIMIZATION) {
            return Special::Deoptimised;
        }
        Special::UnknownJava
    }

    /// Java was called from native code, which had noted its own last Java frame.
    fn entry(&self, place: Place) -> Next {
        let at = place.fp.wrapping_add_signed(self.layout.entry_wrapper * 8);
        let Some(wrapper) = self.memory.word(at) else {
            return Next::Broken(Special::NotWalkableJava);
        };
        let anchor = wrapper.wrapping_add(self.layout.wrapper_anchor);
        match self.memory.word(anchor.wrapping_add(self.layout.anchor_sp)) {
            Some(0) => Next::Whole,
            Some(_) => match self.anchor_at(anchor) {
                Some(next) if next.sp > place.sp => Next::At(next),
                _ => Next::Broken(Special::NotWalkableJava),
            },
            None => Next::Broken(Special::NotWalkableJava),
        }
    }

    fn interpreted(
        &self,
        place: Place,
        leaf: bool,
        registers: &Registers,
        frames: &mut Frames,
    ) -> Option<Place> {
        let fp = place.fp;
        let framed = self.on_stack(fp) && fp > place.sp;
        let slot = |index: i64| self.memory.word(fp.wrapping_add_signed(8 * index));
        if framed
            && let Some(method) = slot(interpreter::METHOD)
            && let Some(version) = self.version(method)
        {
            let saved = slot(interpreter::BCP)?;
            let own = self.bci(method, registers.bcp).filter(|_| leaf);
            let bci = own.or_else(|| self.bci(method, saved));
            let next = Place { pc: slot(1)?, sp: slot(interpreter::SENDER_SP)?, fp: slot(0)? };
            // An id proves that it is a method. Without its own one, it has to be one that is being
            // executed, and to have a caller.
            let proven = matches!(version, Version::Known(_))
                || (bci.is_some() && self.returns_to(next.pc).is_some());
            if proven {
                frames.push(version.frame(bci.unwrap_or(-1), How::Interpreted));
                return Some(next);
            }
        }
        // The frame is not made yet: the method is still in its register, as is where the
        // caller's stack ends.
        if !leaf {
            return None;
        }
        let version = self.version(registers.method).filter(|v| *v != Version::Old(None))?;
        frames.push(version.frame(0, How::Interpreted));
        let pops = |words: u64| {
            let pc = self.memory.word(up(place.sp, words - 1))?;
            let fp = if words > 1 { self.memory.word(place.sp)? } else { fp };
            self.returns_to(pc).map(|_| Place { pc, sp: up(place.sp, words), fp })
        };
        let mut next = pops(1).or_else(|| pops(2))?;
        if registers.bcp >= next.sp && self.on_stack(registers.bcp) {
            next.sp = registers.bcp;
        }
        Some(next)
    }

    fn compiled(&self, blob: Blob, place: Place, leaf: bool, frames: &mut Frames) -> Option<Place> {
        let l = self.layout;
        // Called by Java code, it has exactly its frame.
        let exact = frames.last_is_java();
        let method = self.field(blob.at, l.nmethod_method)?;
        let complete = i64::from(self.short_field(blob.at, l.blob_frame_complete)? as i16);
        let unframed = complete < 0 || place.pc < blob.code.wrapping_add_signed(complete);
        if leaf && unframed {
            frames.push(self.version(method)?.frame(0, how(blob)));
            return self.unframed(blob, place);
        }
        self.name_compiled(blob, method, place, leaf, frames)?;
        if leaf && let Some(next) = self.epilogue(place) {
            return Some(next);
        }
        if exact {
            return self.framed(blob, place);
        }
        // Within its frame, code may have pushed a few words for a moment; and a slow path many,
        // to save registers while it calls the JVM.
        let pushed = (0..MOST_PUSHED).find_map(|words| {
            let next = self.framed(blob, Place { sp: up(place.sp, words), ..place })?;
            self.returns_to(next.pc).map(|_| next)
        });
        pushed.or_else(|| self.framed(blob, place))
    }

    /// The method of a compiled frame, and those that are inlined where it is.
    pub(super) fn name_compiled(
        &self,
        blob: Blob,
        method: u64,
        place: Place,
        leaf: bool,
        frames: &mut Frames,
    ) -> Option<()> {
        let l = self.layout;
        let how = how(blob);
        let code = l.nmethod_compilation.filter(|_| !leaf);
        let code = code.and_then(|offset| self.int_field(blob.at, offset));
        let code = code.map(|compilation| Code { at: blob.at, compilation });
        if !code.is_some_and(|code| self.memo.recall(place.pc, code, frames)) {
            let before = frames.count();
            let mut pc = place.pc;
            // A frame that was deoptimised returns to a handler; its true place is in the frame.
            if !leaf && self.is_deoptimised(blob, pc) {
                let offset = self.int_field(blob.at, l.nmethod_orig_pc)?;
                pc = self.memory.word(place.sp.wrapping_add_signed(i64::from(offset)))?;
            }
            if self.scopes(blob, pc, leaf, how, frames).is_none() {
                frames.push(self.version(method)?.frame(-1, how));
            } else if let Some(code) = code.filter(|_| pc == place.pc && !frames.is_full()) {
                self.memo.keep(pc, code, frames.as_slice().get(before..).unwrap_or(&[]));
            }
        }
        Some(())
    }

    /// The caller of a frame of known size.
    fn framed(&self, blob: Blob, place: Place) -> Option<Place> {
        let size = u64::try_from(blob.frame_size).ok()?;
        let sp = up(place.sp, size);
        let fp = if size >= 2 { self.memory.word(sp.wrapping_sub(16))? } else { place.fp };
        if size == 0 {
            return Some(Place { pc: self.memory.word(sp)?, sp: up(sp, 1), fp });
        }
        Some(Place { pc: self.memory.word(sp.wrapping_sub(8))?, sp, fp })
    }

    /// Before the frame is made: the return address is on top, or below the saved frame pointer.
    #[cfg(target_arch = "x86_64")]
    fn unframed(&self, blob: Blob, place: Place) -> Option<Place> {
        let first = self.memory.word(place.sp)?;
        if self.returns_to(first).is_some() {
            return Some(Place { pc: first, sp: up(place.sp, 1), ..place });
        }
        let second = self.memory.word(up(place.sp, 1))?;
        if self.returns_to(second).is_some() {
            return Some(Place { pc: second, sp: up(place.sp, 2), fp: first });
        }
        self.framed(blob, place)
    }

    /// After the frame is gone, in the last instructions of compiled code.
    #[cfg(target_arch = "x86_64")]
    fn epilogue(&self, place: Place) -> Option<Place> {
        let byte = |at: u64| self.memory.byte(place.pc.wrapping_add(at)).unwrap_or(0);
        let popped = match (byte(0), byte(1), byte(2)) {
            // ret
            (0xc3, ..) => true,
            // cmp rsp, [r15 + poll]: the poll at a return, right after pop rbp.
            (0x49, 0x3b, 0x67 | 0xa7) => byte(u64::MAX) == 0x5d,
            // ja to the slow path of the poll, before ret.
            (0x0f, 0x87, _) => byte(6) == 0xc3,
            _ => false,
        };
        let word = |index: u64| self.memory.word(up(place.sp, index));
        if popped {
            let pc = word(0)?;
            self.returns_to(pc)?;
            return Some(Place { pc, sp: up(place.sp, 1), ..place });
        }
        // pop rbp
        if byte(0) == 0x5d {
            let pc = word(1)?;
            self.returns_to(pc)?;
            return Some(Place { pc, sp: up(place.sp, 2), fp: word(0)? });
        }
        None
    }

    #[cfg(target_arch = "aarch64")]
    fn unframed(&self, blob: Blob, place: Place) -> Option<Place> {
        self.framed(blob, place)
    }

    #[cfg(target_arch = "aarch64")]
    fn epilogue(&self, _: Place) -> Option<Place> {
        None
    }

    /// A stub has a frame of known size, or a frame pointer, or none: then its return address
    /// is on top.
    fn stub(&self, blob: Blob, place: Place, leaf: bool, registers: &Registers) -> Option<Place> {
        if blob.frame_size > 0 {
            let next = self.framed(blob, place)?;
            // A stub at a safepoint returns to the instruction that was interrupted, which is
            // not behind a call; so what its frame says is believed once the frame is there.
            let made = self.heap_of(next.pc).is_some() && !leaf;
            if made || self.returns_to(next.pc).is_some() {
                return Some(next);
            }
        }
        // The JVM calls stubs from its own code, too.
        let returns =
            |pc| self.returns_to(pc).is_some() || (self.native.knows(pc) && self.after_call(pc));
        if leaf {
            let first = self.memory.word(place.sp)?;
            if returns(first) {
                return Some(Place { pc: first, sp: up(place.sp, 1), ..place });
            }
            if let Some(second) = self.memory.word(up(place.sp, 1))
                && returns(second)
            {
                return Some(Place { pc: second, sp: up(place.sp, 2), fp: first });
            }
        }
        if self.on_stack(place.fp) && place.fp >= place.sp {
            // Below the saved frame pointer, or below one more word: the barrier at the entry of
            // compiled code leaves a mark there.
            for words in [1, 2] {
                let pc = self.memory.word(up(place.fp, words))?;
                if returns(pc) {
                    let fp = self.memory.word(place.fp)?;
                    return Some(Place { pc, sp: up(place.fp, words + 1), fp });
                }
            }
        }
        if !leaf {
            return None;
        }
        let thrower = Place { pc: registers.thrown_at, ..place };
        if self.leads_on(thrower) { Some(thrower) } else { self.search(place.sp) }
    }

    /// Whether a place is in compiled code whose frame is here: its caller is where it should be.
    fn leads_on(&self, place: Place) -> bool {
        self.returns_to(place.pc)
            .filter(|blob| blob.kind == BlobKind::Compiled)
            .and_then(|blob| self.framed(blob, place))
            .is_some_and(|next| self.on_stack(next.sp) && self.returns_to(next.pc).is_some())
    }
}

fn how(blob: Blob) -> How {
    if blob.kind == BlobKind::Wrapper { How::Native } else { How::Compiled }
}

const IN_JAVA: i32 = 8;
const IN_JAVA_TRANS: i32 = 9;

/// Slots of an interpreted frame, in words from the frame pointer.
pub(super) mod interpreter {
    pub const SENDER_SP: i64 = -1;
    pub const METHOD: i64 = -3;
    #[cfg(target_arch = "x86_64")]
    pub const LOCALS: i64 = -7;
    #[cfg(target_arch = "aarch64")]
    pub const LOCALS: i64 = -8;
    #[cfg(target_arch = "x86_64")]
    pub const BCP: i64 = -8;
    #[cfg(target_arch = "aarch64")]
    pub const BCP: i64 = -9;
}
