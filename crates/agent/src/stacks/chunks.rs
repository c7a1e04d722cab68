//! Frames of a virtual thread that are in the heap. Part of the walker; `walk` comes here from the
//! stub that a thread returns to when the rest of its frames is not on the stack.
//!
//! A virtual thread that is mounted again gets a frame or two on its carrier's stack. The others
//! stay in a chain of objects (`jdk.internal.vm.StackChunk`), the innermost first, and are copied
//! to the stack as the thread returns to them. A chunk has frames in the form that they have on a
//! stack, but for addresses in the stack: what an interpreted frame knows of itself and its caller
//! is told by distances. Behind the last chunk it goes on on the stack, with what the carrier
//! called to run the thread.
//!
//! The running thread is the only one that takes frames out of its chunks or puts some in, and does
//! neither while it is here. A collector may move a chunk meanwhile. So nothing is believed that
//! does not prove itself: an object by its class, a chunk by its bounds, a frame by the code that
//! it belongs to and by its place in the chunk, and at the end the chain by still being there.

use super::chunk_layout::ChunkRules;
use super::code::BlobKind;
use super::frames::Frames;
use super::memory::Memory;
use super::methods::Version;
use super::native::{NativeStep, Place};
use super::walk::{Next, Walker, interpreter, up};
use tare_arena::samples::{How, Special};

/// Continuations inside of each other, and chunks of one.
const MOST_ENTRIES: usize = 16;
const MOST_CHUNKS: usize = 256;

/// The return address and the frame pointer, in words, stand below each frame.
const BELOW: u64 = 2;

/// HotSpot's note on a continuation that runs (`ContinuationEntry`), which no table describes: the
/// next outer one, and the `Continuation`.
mod entry {
    pub const PARENT: u64 = 8;
    pub const CONTINUATION: u64 = 16;
}

/// The frames that a chunk holds.
#[derive(Clone, Copy)]
struct Chunk {
    first: u64,
    /// Where its first frame begins, and where the caller of its last one would.
    sp: u64,
    end: u64,
}

impl<M: Memory, N: NativeStep> Walker<'_, M, N> {
    /// The frames behind a return barrier, and where it goes on on the stack.
    pub(super) fn in_heap(&self, thread: u64, place: Place, frames: &mut Frames) -> Next {
        let broken = Next::Broken(Special::Continuation);
        let Some(rules) = self.chunks else { return broken };
        let before = frames.count();
        let found = || {
            let entry = self.entry_above(thread, place)?;
            Some((entry, self.tail(rules, entry)?))
        };
        let Some((entry, tail)) = found() else { return broken };
        let walked = self.chain(rules, tail, frames);
        if self.tail(rules, entry) != Some(tail) {
            // It was moved under our eyes.
            frames.truncate(before);
            return broken;
        }
        if frames.is_enough() {
            return Next::Broken(Special::Cut);
        }
        match walked.and_then(|()| self.entered_by(rules)) {
            Some(pc) => Next::At(Place { pc, sp: entry, fp: 0 }),
            None => broken,
        }
    }

    /// The note on the continuation whose frames are at a place: it lies in the stack, behind them.
    fn entry_above(&self, thread: u64, place: Place) -> Option<u64> {
        let noted = self.noted_by_barrier(place.pc)?;
        let mut entry = self.field(thread, noted).filter(|_| thread != 0)?;
        for _ in 0..MOST_ENTRIES {
            if !self.on_stack(entry) {
                return None;
            }
            if entry >= place.sp {
                return Some(entry);
            }
            entry = self.field(entry, entry::PARENT)?;
        }
        None
    }

    /// The innermost chunk of a continuation.
    fn tail(&self, rules: ChunkRules, entry: u64) -> Option<u64> {
        let continuation = self.field(entry, entry::CONTINUATION)?;
        let is_object = continuation != 0 && continuation.is_multiple_of(8);
        is_object.then(|| rules.reference(self.memory, continuation, rules.tail))?
    }

    /// All frames of a chain of chunks; `None` if some were not found.
    fn chain(&self, rules: ChunkRules, tail: u64, frames: &mut Frames) -> Option<()> {
        let mut object = tail;
        for _ in 0..MOST_CHUNKS {
            if object == 0 {
                return Some(());
            }
            let chunk = self.chunk(rules, object)?;
            if chunk.sp < chunk.end {
                self.frames_of(chunk, frames)?;
            }
            object = rules.reference(self.memory, object, rules.parent)?;
        }
        None
    }

    fn chunk(&self, rules: ChunkRules, object: u64) -> Option<Chunk> {
        if !rules.is_chunk(self.memory, object) {
            return None;
        }
        let words = |offset| self.int_field(object, offset).and_then(|n| u64::try_from(n).ok());
        let (size, sp, bottom) = (words(rules.size)?, words(rules.sp)?, words(rules.bottom)?);
        let first = object.wrapping_add(rules.frames);
        let is_one = sp <= bottom && bottom <= size;
        is_one.then(|| Chunk { first, sp: up(first, sp), end: up(first, bottom) })
    }

    /// The frames of one chunk, from the first to the last.
    fn frames_of(&self, chunk: Chunk, frames: &mut Frames) -> Option<()> {
        // Where the return address and the frame pointer lie below, and where the frame begins: the
        // caller of an interpreted frame may have been extended by arguments.
        let (mut sp, mut begins) = (chunk.sp, chunk.sp);
        while sp < chunk.end {
            let pc = self.inside(chunk, sp.wrapping_sub(8))?;
            let blob = self.returns_to(pc)?;
            let (next, next_begins) = match blob.kind {
                BlobKind::Interpreter => self.interpreted_in(chunk, sp, frames)?,
                BlobKind::Compiled => {
                    let method = self.field(blob.at, self.layout.nmethod_method)?;
                    let place = Place { pc, sp: begins, fp: 0 };
                    self.name_compiled(blob, method, place, false, frames)?;
                    let next = up(begins, u64::try_from(blob.frame_size).ok()?);
                    (next, next)
                }
                // What calls out of Java ends in no chunk, or is the first to leave it.
                BlobKind::Wrapper | BlobKind::Stub => return None,
            };
            if next <= sp || frames.is_enough() {
                return None;
            }
            (sp, begins) = (next, next_begins);
            if up(sp, BELOW) >= chunk.end {
                break;
            }
        }
        Some(())
    }

    /// An interpreted frame, and where its caller is; that is at the chunk's end for the last one.
    fn interpreted_in(&self, chunk: Chunk, sp: u64, frames: &mut Frames) -> Option<(u64, u64)> {
        let away = |from: u64, words: u64| from.wrapping_add(words.wrapping_mul(8));
        let link = sp.wrapping_sub(8 * BELOW);
        let fp = away(link, self.inside(chunk, link)?);
        let slot = |index: i64| self.inside(chunk, fp.wrapping_add_signed(8 * index));
        let method = slot(interpreter::METHOD)?;
        let version = self.version(method)?;
        let bci = self.bci(method, slot(interpreter::BCP)?)?;
        if version == Version::Old(None) && self.returns_to(slot(1)?).is_none() {
            return None;
        }
        frames.push(version.frame(bci, How::Interpreted));
        let is_last = up(away(fp, slot(interpreter::LOCALS)?), 1) >= chunk.end;
        let begins = away(fp, slot(interpreter::SENDER_SP)?);
        Some(if is_last { (chunk.end, chunk.end) } else { (up(fp, BELOW), begins) })
    }

    /// A word of a chunk.
    fn inside(&self, chunk: Chunk, at: u64) -> Option<u64> {
        let is_inside = at.is_multiple_of(8) && (chunk.first..chunk.end).contains(&at);
        is_inside.then(|| self.memory.word(at))?
    }

    /// An address in the code that a carrier called to run a virtual thread. It is the same for all
    /// of them, and has no frames but its own.
    fn entered_by(&self, rules: ChunkRules) -> Option<u64> {
        let method = self.memory.word(rules.enter)?;
        let code = self.field(method, self.layout.method_code?)?;
        let complete = self.short_field(code, self.layout.blob_frame_complete)?;
        let pc = self.resolve(code, self.layout.blob_code)?.wrapping_add(u64::from(complete));
        let blob = self.blob(pc)?;
        let is_it = blob.at == code
            && blob.kind == BlobKind::Wrapper
            && self.field(blob.at, self.layout.nmethod_method)? == method;
        is_it.then_some(pc)
    }
}
