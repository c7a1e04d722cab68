//! The walker on a made-up stack that goes on in made-up chunks. Memory is that of the other tests,
//! with two more code heaps: of the stub that a virtual thread returns to, and of the code that
//! entered it.

use super::chunk_layout::{ChunkRules, Header};
use super::frames::{Frame, Frames};
use super::hotspot::Layout;
use super::memo::Memo;
use super::memory::Memory;
use super::methods::IdRules;
use super::native::{FramePointers, Place};
use super::walk::{Registers, Walker};
use super::walk_tests::{
    BLOB, CODE, CONSTANT, FRAME, Fake, INTERPRETER, KEY, METHOD, ORIGINAL, STACK, THREAD, TOP,
    layout, memory,
};
use std::cell::Cell;
use tare_arena::samples::{How, Special};

const BARRIER: u64 = 0x11_0200;
const ENTER_BLOB: u64 = 0x12_0010;
const ENTER_METHOD: u64 = 0x21_0000;
const ENTER_KEY: u64 = 0xd100;
/// Words of the frame of the code that entered the virtual thread.
const ENTER_FRAME: u64 = 6;
/// Where a method has its code, and a thread its continuation.
const METHOD_CODE: u64 = 0x40;
const NOTED: u64 = 0x88;
/// HotSpot's note on the continuation, in the stack.
const ENTRY: u64 = STACK + 0x200;
const CONTINUATION: u64 = 0x50_0000;
const CHUNK: u64 = 0x51_0000;
const OUTER: u64 = 0x52_0000;
const CHUNK_CLASS: u32 = 77;

const RULES: ChunkRules = ChunkRules {
    tail: 24,
    parent: 16,
    size: 24,
    sp: 28,
    bottom: 32,
    frames: 40,
    enter: ENTER_KEY,
    class: CHUNK_CLASS as u64,
    header: Header::Narrow,
    narrow: Some((0x10_0000, 3)),
};

fn with_two_heaps() -> Layout {
    let mut layout = layout();
    layout.heaps[1] = 0x8100;
    layout.heaps[2] = 0x8200;
    layout.method_code = Some(METHOD_CODE);
    layout
}

/// A thread that returns from its one frame on the stack into a chunk.
fn mounted() -> Fake {
    let mut m = memory();
    for (at, heap, segments) in [(0x8100, 0x11_0000, 0x9100), (0x8200, 0x12_0000, 0x9200)] {
        m.put(at, heap);
        m.put(at + 8, heap + 0x1000);
        m.put(at + 16, segments);
        for segment in 1..32 {
            m.bytes(segments + segment, &[segment as u8]);
        }
        m.bytes(heap + 8, &[1]);
        m.put(heap + 16, at + 0x80);
        m.put(heap + 16 + 16, heap + 0x200);
    }
    m.bytes(0x8180, b"StubRout");
    m.bytes(0x8280, b"native n");
    // mov rsp, [r15 + NOTED]
    m.bytes(BARRIER, &[0x49, 0x8b, 0xa7]);
    m.bytes(BARRIER + 3, &(NOTED as u32).to_le_bytes());
    m.bytes(ENTER_BLOB + 8, &(ENTER_FRAME as u32).to_le_bytes());
    m.put(ENTER_BLOB + 24, ENTER_METHOD);
    // The second method of the same class.
    let constant = 0xc400;
    m.put(ENTER_METHOD, constant);
    m.put(ENTER_METHOD + METHOD_CODE, ENTER_BLOB);
    m.put(constant, 0xc100);
    m.bytes(constant + 8, &1_u16.to_le_bytes());
    m.put(0xc300, 2);
    m.put(0xc310, ENTER_KEY);
    m.put(ENTER_KEY, ENTER_METHOD);
    // The stack: a frame that returns to the barrier, the note, and what is below.
    m.put(STACK + 8 * FRAME - 8, BARRIER);
    m.put(THREAD + NOTED, ENTRY);
    m.put(ENTRY + 16, CONTINUATION);
    m.put(ENTRY + 8 * ENTER_FRAME - 8, layout().call_stub_return);
    m.put(ENTRY + 8 * ENTER_FRAME - 16, ENTRY + 8 * ENTER_FRAME + 64);
    m.bytes(CONTINUATION + 24, &(((CHUNK - 0x10_0000) >> 3) as u32).to_le_bytes());
    m
}

/// A chunk of so many words, of which those from `sp` on are frames.
fn chunk(m: &mut Fake, at: u64, parent: u64, (size, sp, bottom): (u32, u32, u32)) -> u64 {
    m.bytes(at + 8, &CHUNK_CLASS.to_le_bytes());
    let parent = if parent == 0 { 0 } else { (parent - 0x10_0000) >> 3 };
    m.bytes(at + 16, &(parent as u32).to_le_bytes());
    m.bytes(at + 24, &size.to_le_bytes());
    m.bytes(at + 28, &sp.to_le_bytes());
    m.bytes(at + 32, &bottom.to_le_bytes());
    at + 40 + 8 * u64::from(sp)
}

/// Compiled frames from `sp` on, the first of which is called from what lies before.
fn compiled(m: &mut Fake, sp: u64, count: u64) -> u64 {
    (0..count).for_each(|index| m.put(sp + 8 * FRAME * index - 8, CODE + 0x25));
    sp + 8 * FRAME * count
}

fn walk(m: &impl Memory) -> (Vec<Frame>, Option<Special>) {
    walk_by(Some(RULES), 64, m)
}

/// Memory in which a continuation has another chunk once it was looked at.
struct Moves(Fake, Cell<bool>);

impl Memory for Moves {
    fn word(&self, at: u64) -> Option<u64> {
        let moved = at == CONTINUATION + 24 && self.1.replace(true);
        self.0.word(at).map(|word| word + u64::from(moved))
    }
}

fn walk_by(
    chunks: Option<ChunkRules>,
    most: usize,
    m: &impl Memory,
) -> (Vec<Frame>, Option<Special>) {
    let mut space = vec![Frame::native(0); most + 1];
    // SAFETY: room for so many frames and one more.
    let mut frames = unsafe { Frames::new(space.as_mut_ptr(), most) };
    let walker = Walker {
        layout: &with_two_heaps(),
        ids: IdRules { original: Some(ORIGINAL), slots: true, plain: false },
        chunks,
        memo: Memo::NONE,
        memory: m,
        native: &FramePointers,
        top: TOP,
        with_native: true,
    };
    let place = Place { pc: CODE + 0x22, sp: STACK, fp: 0 };
    let registers = Registers { place, ..Registers::default() };
    let end = walker.walk(THREAD, &registers, &mut frames);
    (frames.as_slice().to_vec(), end)
}

/// The frames of so many calls of the compiled method.
fn calls(count: usize) -> Vec<Frame> {
    let pair = [Frame::java(KEY, 9, How::Inlined), Frame::java(KEY, 4, How::Compiled)];
    vec![pair; count].concat()
}

fn entered() -> Frame {
    Frame::java(ENTER_KEY, -1, How::Native)
}

#[test]
fn compiled_frames_of_several_chunks() {
    let mut m = mounted();
    let first = chunk(&mut m, CHUNK, OUTER, (20, 2, 10));
    compiled(&mut m, first, 2);
    let first = chunk(&mut m, OUTER, 0, (30, 4, 16));
    compiled(&mut m, first, 3);
    assert_eq!(walk(&m), ([calls(6), vec![entered()]].concat(), None));
    // A chunk whose frames are all on the stack.
    chunk(&mut m, CHUNK, OUTER, (20, 10, 10));
    assert_eq!(walk(&m), ([calls(4), vec![entered()]].concat(), None));
}

#[test]
fn interpreted_frames_are_told_by_distances() {
    let mut m = mounted();
    m.bytes(CONSTANT + 10, &10_u16.to_le_bytes());
    let first = chunk(&mut m, CHUNK, 0, (60, 2, 60));
    // A compiled frame, called by an interpreted one, called by a compiled one that is three words
    // longer for it.
    let sp = compiled(&mut m, first, 1);
    let fp = sp + 8 * 12;
    m.put(sp - 8, INTERPRETER + 8);
    m.put(sp - 16, (fp - (sp - 16)) / 8);
    m.put(fp - 8, 2 + 3);
    m.put(fp - 24, METHOD);
    m.put(fp - 56, 3);
    m.put(fp - 64, CONSTANT + layout().const_size + 3);
    m.put(fp + 8, CODE + 0x25);
    let next = fp + 16 + 24 + 8 * FRAME;
    m.put(next - 8, INTERPRETER + 8);
    // The last one, interpreted: its locals end with the chunk.
    let last = next + 8 * 12;
    m.put(next - 16, (last - (next - 16)) / 8);
    m.put(last - 24, METHOD);
    m.put(last - 64, CONSTANT + layout().const_size + 5);
    let end = CHUNK + 40 + 8 * 60;
    m.put(last - 56, (end - last) / 8 - 1);
    let interpreted = |bci| vec![Frame::java(KEY, bci, How::Interpreted)];
    let all = [calls(2), interpreted(3), calls(1), interpreted(5), vec![entered()]].concat();
    assert_eq!(walk(&m), (all, None));
}

#[test]
fn what_does_not_prove_itself_ends_the_stack() {
    let ended = |count| (calls(count), Some(Special::Continuation));
    let whole = || {
        let mut m = mounted();
        let first = chunk(&mut m, CHUNK, 0, (20, 2, 14));
        compiled(&mut m, first, 3);
        (m, first)
    };
    assert_eq!(walk(&whole().0), ([calls(4), vec![entered()]].concat(), None));
    assert_eq!(walk_by(None, 64, &whole().0), ended(1), "nothing is known of chunks");
    // Another class; bounds that are none; a continuation that is none, or is not above.
    let (mut m, _) = whole();
    m.bytes(CHUNK + 8, &[1]);
    assert_eq!(walk(&m), ended(1));
    for bounds in [(20, 15, 14), (13, 2, 14), (20, u32::MAX, 14)] {
        let (mut m, _) = whole();
        chunk(&mut m, CHUNK, 0, bounds);
        assert_eq!(walk(&m), ended(1), "{bounds:?}");
    }
    for entry in [0, STACK, TOP, ENTRY + 4] {
        let (mut m, _) = whole();
        m.put(THREAD + NOTED, entry);
        assert_eq!(walk(&m), ended(1), "{entry:x}");
    }
    // A frame that is called from nowhere, in the middle.
    let (mut m, first) = whole();
    m.put(first + 8 * FRAME - 8, CODE + 0x22);
    assert_eq!(walk(&m), ended(2));
    // A frame without a size would be the same for ever.
    let (mut m, _) = whole();
    m.bytes(BLOB + 8, &0_u32.to_le_bytes());
    m.put(STACK, BARRIER);
    assert_eq!(walk(&m).1, Some(Special::Continuation));
    let moves = Moves(whole().0, Cell::new(false));
    assert_eq!(walk(&moves), ended(1), "it was moved under our eyes");
    // Nobody has entered it by the code that is known.
    let (mut m, _) = whole();
    m.put(ENTER_METHOD + METHOD_CODE, BLOB);
    assert_eq!(walk(&m), ended(4));
}

#[test]
fn an_outer_continuation_is_found_behind_an_inner_one() {
    let mut m = mounted();
    let first = chunk(&mut m, CHUNK, 0, (20, 2, 6));
    compiled(&mut m, first, 1);
    let inner = STACK + 8;
    m.put(THREAD + NOTED, inner);
    m.put(inner + 8, ENTRY);
    assert_eq!(walk(&m), ([calls(2), vec![entered()]].concat(), None));
}

#[test]
fn chains_and_stacks_are_bounded() {
    let mut m = mounted();
    // A chunk that is its own caller.
    let first = chunk(&mut m, CHUNK, CHUNK, (20, 2, 6));
    compiled(&mut m, first, 1);
    let (frames, end) = walk(&m);
    assert_eq!((frames.len(), end), (64, Some(Special::Cut)));
    chunk(&mut m, CHUNK, CHUNK, (20, 6, 6));
    assert_eq!(walk(&m), (calls(1), Some(Special::Continuation)));
}
