//! The walker on made-up stacks: memory is a map, the code cache has one heap with one method.

use super::frames::{Frame, Frames};
use super::hotspot::{At, Layout, MOST_HEAPS};
use super::memo::Memo;
use super::memory::Memory;
use super::methods::IdRules;
use super::native::{FramePointers, Place};
use super::walk::{LARGEST_FRAME, Registers, Walker};
use std::collections::HashMap;
use tare_arena::samples::{How, Special};

#[derive(Default)]
pub(super) struct Fake(pub(super) HashMap<u64, u8>);

impl Fake {
    pub(super) fn put(&mut self, at: u64, word: u64) {
        self.bytes(at, &word.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, at: u64, bytes: &[u8]) {
        self.0.extend((at..).zip(bytes.iter().copied()));
    }
}

impl Memory for Fake {
    fn word(&self, at: u64) -> Option<u64> {
        let byte = |index: u64| u64::from(self.0.get(&(at + index)).copied().unwrap_or(0));
        Some((0..8).fold(0, |word, index| word | byte(index) << (8 * index)))
    }
}

/// The code heap begins here; the method's blob behind a block's header of 16 bytes.
pub(super) const HEAP: u64 = 0x10_0000;
pub(super) const BLOB: u64 = HEAP + 16;
pub(super) const CODE: u64 = HEAP + 0x200;
pub(super) const INTERPRETER: u64 = HEAP + 0x400;
pub(super) const METHOD: u64 = 0x20_0000;
pub(super) const THREAD: u64 = 0x30_0000;
pub(super) const STACK: u64 = 0x40_0000;
pub(super) const TOP: u64 = STACK + 0x1000;
/// The method's id: a slot with its address.
pub(super) const KEY: u64 = 0xd000;
pub(super) const CONSTANT: u64 = 0xc000;
/// Where the method has the number with which it began.
pub(super) const ORIGINAL: u64 = 12;
/// Words of the method's frame.
pub(super) const FRAME: u64 = 4;

pub(super) fn layout() -> Layout {
    let mut heaps = [0; MOST_HEAPS];
    heaps[0] = 0x8000;
    Layout {
        heaps,
        heap_low: 0,
        heap_high: 8,
        heap_segments: 16,
        segment_shift: 7,
        block_used: 8,
        block_header: 16,
        blob_name: 0,
        blob_frame_size: 8,
        blob_frame_complete: 12,
        blob_code: At::Pointer(16),
        nmethod_method: 24,
        nmethod_orig_pc: 32,
        nmethod_compilation: None,
        deopt_handlers: [At::Absent; 2],
        scopes_pcs: At::Pointer(40),
        scopes_pcs_end: At::Pointer(48),
        scopes_data: At::Pointer(56),
        metadata: At::Pointer(64),
        unsigned5_base: 1,
        method_const: 0,
        method_code: None,
        const_pool: 0,
        const_idnum: 8,
        const_code_size: 10,
        const_size: 16,
        pool_holder: 0,
        klass_ids: 0,
        interpreter: (INTERPRETER, INTERPRETER + 0x100),
        call_stub_return: HEAP + 0x300,
        entry_wrapper: -1,
        wrapper_anchor: 0,
        thread_anchor: 0,
        anchor_sp: 0,
        anchor_pc: 8,
        anchor_fp: 16,
        thread_stack_base: 24,
        thread_state: 32,
        thread_os: 40,
        os_state: 0,
        os_id: 4,
        thread_owner_id: None,
    }
}

/// A method that calls itself at offset 0x20 of its code, and nothing else.
pub(super) fn memory() -> Fake {
    let mut m = Fake::default();
    m.put(0x8000, HEAP);
    m.put(0x8008, HEAP + 0x1000);
    m.put(0x8010, 0x9000);
    // All segments of the heap belong to the block at its beginning.
    for segment in 1..32 {
        m.bytes(0x9000 + segment, &[segment as u8]);
    }
    m.bytes(HEAP + 8, &[1]);
    m.put(BLOB, 0xa000);
    m.bytes(0xa000, b"nmethod\0");
    m.bytes(BLOB + 8, &(FRAME as u32).to_le_bytes());
    m.bytes(BLOB + 12, &8_u16.to_le_bytes());
    m.put(BLOB + 16, CODE);
    m.put(BLOB + 24, METHOD);
    // One description, at the call's return address: bytecode 9 of the method, inlined in 4.
    let (pcs, scopes, metadata) = (0xb000, 0xb100, 0xb200);
    m.put(BLOB + 40, pcs);
    m.put(BLOB + 48, pcs + 16);
    m.put(BLOB + 56, scopes);
    m.put(BLOB + 64, metadata);
    m.bytes(pcs, &0x25_u32.to_le_bytes());
    m.bytes(pcs + 4, &1_u32.to_le_bytes());
    // Numbers are stored plus one; a bytecode's index is stored plus one itself.
    m.bytes(scopes + 1, &[1 + 8, 1 + 1, 1 + 10]);
    m.bytes(scopes + 8, &[1, 1 + 1, 1 + 5]);
    m.put(metadata, METHOD);
    let (pool, holder, ids) = (0xc100, 0xc200, 0xc300);
    m.put(METHOD, CONSTANT);
    m.put(CONSTANT, pool);
    m.put(pool, holder);
    m.put(holder, ids);
    m.put(ids, 1);
    m.put(ids + 8, KEY);
    m.put(KEY, METHOD);
    m.bytes(CODE + 0x20, &[0xe8, 0, 0, 0, 0]);
    m
}

/// Memory of which a part is not there: to read it is a fault.
struct Mapped<'a>(&'a Fake, std::ops::Range<u64>);

impl Memory for Mapped<'_> {
    fn word(&self, at: u64) -> Option<u64> {
        assert!(!self.1.contains(&at), "a fault at {at:#x}");
        self.0.word(at)
    }
}

fn walk(m: &Fake, place: Place) -> (Vec<Frame>, Option<Special>) {
    walk_by(Some(ORIGINAL), m, place)
}

fn walk_by(original: Option<u64>, m: &Fake, place: Place) -> (Vec<Frame>, Option<Special>) {
    walk_with(&layout(), Memo::NONE, original, m, place)
}

fn walk_with(
    layout: &Layout,
    memo: Memo,
    original: Option<u64>,
    m: &impl Memory,
    place: Place,
) -> (Vec<Frame>, Option<Special>) {
    walk_seeing(true, layout, memo, original, m, place)
}

fn walk_seeing(
    with_native: bool,
    layout: &Layout,
    memo: Memo,
    original: Option<u64>,
    m: &impl Memory,
    place: Place,
) -> (Vec<Frame>, Option<Special>) {
    walk_into(64, with_native, layout, memo, original, m, place)
}

fn walk_into(
    room: usize,
    with_native: bool,
    layout: &Layout,
    memo: Memo,
    original: Option<u64>,
    m: &impl Memory,
    place: Place,
) -> (Vec<Frame>, Option<Special>) {
    let mut space = vec![Frame::native(0); room + 1];
    // SAFETY: room for as many frames and one more.
    let mut frames = unsafe { Frames::new(space.as_mut_ptr(), room) };
    let walker = Walker {
        layout,
        ids: IdRules { original, slots: true, plain: false },
        chunks: None,
        memo,
        memory: m,
        native: &FramePointers,
        top: TOP,
        with_native,
    };
    let registers = Registers { place, ..Registers::default() };
    let end = walker.walk(THREAD, &registers, &mut frames);
    (frames.as_slice().to_vec(), end)
}

/// Puts frames of the method on the stack, from `sp` on, the last of them called from outside.
fn recursion(m: &mut Fake, sp: u64, depth: u64) {
    for index in 0..depth {
        let above = sp + 8 * FRAME * (index + 1);
        let last = index + 1 == depth;
        m.put(above - 8, if last { layout().call_stub_return } else { CODE + 0x25 });
        m.put(above - 16, if last { sp + 8 * FRAME * depth + 64 } else { 0 });
    }
}

#[test]
fn compiled_frames_with_what_is_inlined() {
    let mut m = memory();
    recursion(&mut m, STACK, 3);
    let (frames, end) = walk(&m, Place { pc: CODE + 0x22, sp: STACK, fp: 0 });
    assert_eq!(end, None);
    let pair = [Frame::java(KEY, 9, How::Inlined), Frame::java(KEY, 4, How::Compiled)];
    assert_eq!(frames, [pair; 3].concat());
}

#[test]
fn what_an_address_stands_for_is_read_once_in_a_compilation() {
    const COMPILATION: u64 = 72;
    let layout = Layout { nmethod_compilation: Some(COMPILATION), ..layout() };
    let mut piece = vec![0_u64; Memo::BYTES / 8];
    // SAFETY: as many bytes, for this test alone.
    let memo = unsafe { Memo::new(piece.as_mut_ptr().cast()) };
    let mut m = memory();
    m.bytes(BLOB + COMPILATION, &7_u32.to_le_bytes());
    recursion(&mut m, STACK, 3);
    let walk = |m: &Fake| {
        let place = Place { pc: CODE + 0x22, sp: STACK, fp: 0 };
        walk_with(&layout, memo, Some(ORIGINAL), m, place).0
    };
    let pair = |bci| [Frame::java(KEY, bci, How::Inlined), Frame::java(KEY, 4, How::Compiled)];
    // One that has no room for all of them leaves nothing wrong behind.
    let place = Place { pc: CODE + 0x22, sp: STACK, fp: 0 };
    let (few, _) = walk_into(3, true, &layout, memo, Some(ORIGINAL), &m, place);
    assert_eq!(few.len(), 3);
    assert_eq!(walk(&m), [pair(9); 3].concat());
    // The note that it was read from says something else: only the leaf is read anew.
    m.bytes(0xb103, &[1 + 11]);
    assert_eq!(walk(&m), [pair(10), pair(9), pair(9)].concat());
    // Other code has come to the same place.
    m.bytes(BLOB + COMPILATION, &8_u32.to_le_bytes());
    assert_eq!(walk(&m), [pair(10); 3].concat());
}

#[test]
fn a_description_ends_where_an_interrupted_instruction_begins() {
    let mut m = memory();
    // A second one, up to 0x40: bytecode 4 of the method itself.
    m.put(BLOB + 48, 0xb000 + 32);
    m.bytes(0xb010, &0x40_u32.to_le_bytes());
    m.bytes(0xb014, &8_u32.to_le_bytes());
    recursion(&mut m, STACK, 2);
    // The same address is one that was returned to in the caller, whose call is before it.
    let (frames, _) = walk(&m, Place { pc: CODE + 0x25, sp: STACK, fp: 0 });
    let own = Frame::java(KEY, 4, How::Compiled);
    assert_eq!(frames, [own, Frame::java(KEY, 9, How::Inlined), own]);
}

#[test]
fn a_prologue_has_its_return_address_on_top() {
    let mut m = memory();
    // At the first instruction: nothing but the return address, then the caller's frame.
    m.put(STACK, CODE + 0x25);
    recursion(&mut m, STACK + 8, 2);
    let (frames, end) = walk(&m, Place { pc: CODE, sp: STACK, fp: 0 });
    assert_eq!((frames.len(), end), (5, None));
    assert_eq!(frames[0], Frame::java(KEY, 0, How::Compiled));
}

#[test]
fn words_pushed_for_a_moment_are_passed_over() {
    let mut m = memory();
    m.put(STACK, 0xffff_ffff);
    recursion(&mut m, STACK + 8, 2);
    let (frames, end) = walk(&m, Place { pc: CODE + 0x22, sp: STACK, fp: 0 });
    assert_eq!((frames.len(), end), (4, None));
}

#[test]
fn native_code_leads_to_the_frame_that_the_thread_has_noted() {
    let mut m = memory();
    let sp = STACK + 0x100;
    recursion(&mut m, sp, 1);
    m.put(THREAD, sp);
    m.put(THREAD + 8, CODE + 0x25);
    let (frames, end) = walk(&m, Place { pc: 0x7777_0000, sp: STACK, fp: 0 });
    assert_eq!(end, None);
    assert_eq!(frames[0], Frame::native(0x7777_0000));
    assert_eq!(frames.len(), 3);
}

#[test]
fn a_register_that_holds_no_frame_pointer_is_not_followed() {
    let mut m = memory();
    let sp = STACK + 0x100;
    recursion(&mut m, sp, 2);
    let seen = |m: &Fake, native, fp| {
        // Nothing is mapped at the beginning of memory, nor above the stack.
        let low = Mapped(m, 0x1000..0x8000);
        let high = Mapped(m, TOP..u64::MAX);
        let place = Place { pc: 0x7777_0000, sp: STACK, fp };
        let low = walk_seeing(native, &layout(), Memo::NONE, Some(ORIGINAL), &low, place);
        let high = walk_seeing(native, &layout(), Memo::NONE, Some(ORIGINAL), &high, place);
        assert_eq!(low, high);
        low
    };
    let pair = [Frame::java(KEY, 9, How::Inlined), Frame::java(KEY, 4, How::Compiled)];
    let java = [pair; 2].concat();
    let outside = [Frame::native(0x7777_0000)];
    for fp in [0x1224, 0x1228, STACK - 8, STACK + 4, TOP + LARGEST_FRAME, u64::MAX - 7] {
        // In the JVM or a native method, with a note of the last Java frame.
        m.put(THREAD, sp);
        m.put(THREAD + 8, CODE + 0x25);
        assert_eq!(seen(&m, false, fp), (java.clone(), None), "{fp:#x}");
        assert_eq!(seen(&m, true, fp), ([&outside[..], &java].concat(), None), "{fp:#x}");
        // Without: native code that compiled code calls, which is found on the stack.
        m.put(THREAD, 0);
        m.bytes(THREAD + 32, &8_u32.to_le_bytes());
        m.put(sp - 8, CODE + 0x25);
        assert_eq!(seen(&m, false, fp), (java.clone(), None), "{fp:#x}");
        m.bytes(THREAD + 32, &0_u32.to_le_bytes());
    }
}

/// Makes the method an old version: its own number is beyond the ids. It began with another number.
fn make_old(m: &mut Fake, original: u16) {
    m.bytes(CONSTANT + 8, &5_u16.to_le_bytes());
    m.bytes(CONSTANT + ORIGINAL, &original.to_le_bytes());
}

/// An interpreted frame of the method, at bytecode 3 of 10, called from outside; its place.
fn interpreted(m: &mut Fake) -> Place {
    let fp = STACK + 0x80;
    m.bytes(CONSTANT + 10, &10_u16.to_le_bytes());
    m.put(fp + 8, layout().call_stub_return);
    m.bytes(layout().call_stub_return - 5, &[0xe8, 0, 0, 0, 0]);
    m.put(fp, fp + 0x80);
    m.put(fp - 8, fp + 16);
    m.put(fp - 24, METHOD);
    let bcp = CONSTANT + layout().const_size + 3;
    m.put(fp - 64, bcp);
    m.put(fp - 72, bcp);
    Place { pc: INTERPRETER + 8, sp: STACK, fp }
}

#[test]
fn an_old_version_has_the_name_of_the_present_one_and_no_line() {
    let mut m = memory();
    let place = interpreted(&mut m);
    assert_eq!(walk(&m, place), (vec![Frame::java(KEY, 3, How::Interpreted)], None));
    make_old(&mut m, 0);
    assert_eq!(walk(&m, place), (vec![Frame::java(KEY, -1, How::Interpreted)], None));
    recursion(&mut m, STACK, 3);
    let (frames, end) = walk(&m, Place { pc: CODE + 0x22, sp: STACK, fp: 0 });
    let pair = [Frame::java(KEY, -1, How::Inlined), Frame::java(KEY, -1, How::Compiled)];
    assert_eq!((frames, end), ([pair; 3].concat(), None));
}

#[test]
fn an_old_version_without_a_name_does_not_end_a_stack() {
    // Either the present version has no id, or it is not known which it is.
    for (original, at) in [(4, Some(ORIGINAL)), (0, None)] {
        let mut m = memory();
        make_old(&mut m, original);
        let nameless = Frame::special(Special::OldMethod);
        let place = interpreted(&mut m);
        assert_eq!(walk_by(at, &m, place), (vec![nameless], None));
        recursion(&mut m, STACK, 3);
        let (frames, end) = walk_by(at, &m, Place { pc: CODE + 0x22, sp: STACK, fp: 0 });
        assert_eq!((frames, end), (vec![nameless; 6], None));
    }
}

#[test]
fn what_may_be_an_old_version_must_be_executing_and_have_a_caller() {
    let broken = (vec![], Some(Special::UnknownJava));
    for (original, at) in [(0, Some(ORIGINAL)), (4, Some(ORIGINAL)), (0, None)] {
        let mut m = memory();
        make_old(&mut m, original);
        let place = interpreted(&mut m);
        let mut elsewhere = Fake(m.0.clone());
        elsewhere.put(place.fp - 64, 0);
        elsewhere.put(place.fp - 72, 0);
        assert_eq!(walk_by(at, &elsewhere, place), broken);
        m.put(place.fp + 8, 0x1234);
        assert_eq!(walk_by(at, &m, place), broken);
    }
    // The number with which it began: not old, and yet it has no id.
    let mut m = memory();
    make_old(&mut m, 5);
    let place = interpreted(&mut m);
    assert_eq!(walk(&m, place), broken);
}

#[test]
fn an_id_that_does_not_lead_back_is_none() {
    let place = |m: &mut Fake| interpreted(m);
    let broken = (vec![], Some(Special::UnknownJava));
    // A slot of another method, of another class, of none; an array that is none; an odd address.
    let (other, constant, pool) = (0xe000, 0xe100, 0xe200);
    for (class, number) in [(0xc200, 7), (0xdddd, 0)] {
        let mut m = memory();
        let place = place(&mut m);
        m.put(KEY, other);
        m.put(other, constant);
        m.put(constant, pool);
        m.put(pool, class);
        m.bytes(constant + 8, &[number]);
        assert_eq!(walk(&m, place), broken);
    }
    for id in [0, 0xdead, METHOD, KEY + 4] {
        let mut m = memory();
        let place = place(&mut m);
        m.put(0xc308, id);
        assert_eq!(walk(&m, place), broken, "{id:#x}");
    }
    // The present version of a method whose code did not change: the same number in the same class.
    let mut m = memory();
    let place = place(&mut m);
    m.put(KEY, other);
    m.put(other, constant);
    m.put(constant, pool);
    m.put(pool, 0xc200);
    assert_eq!(walk(&m, place), (vec![Frame::java(KEY, 3, How::Interpreted)], None));
}

#[test]
fn nonsense_ends_in_a_named_frame_and_never_loops() {
    let mut m = memory();
    // The caller would be below the callee.
    m.put(STACK + 8 * FRAME - 8, 0x1234);
    m.bytes(THREAD + 32, &8_u32.to_le_bytes());
    let (_, end) = walk(&m, Place { pc: CODE + 0x25, sp: STACK, fp: STACK });
    assert!(matches!(end, Some(Special::NotWalkableJava)), "{end:?}");
    let (frames, end) = walk(&m, Place { pc: HEAP + 0xf00, sp: STACK, fp: 0 });
    assert!(end.is_some(), "{frames:?}");
    // A stack of nothing but return addresses is walked up to its end.
    for at in (STACK..TOP).step_by(8) {
        m.put(at, CODE + 0x25);
    }
    let (frames, end) = walk(&m, Place { pc: CODE + 0x25, sp: STACK, fp: 0 });
    assert_eq!((frames.len(), end), (64, Some(Special::Cut)));
    let (_, end) = walk(&m, Place { pc: CODE + 0x25, sp: TOP - 64, fp: 0 });
    assert_eq!(end, Some(Special::NotWalkableJava));
}

#[test]
fn random_memory_never_panics() {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..300 {
        let mut m = memory();
        for at in (STACK..STACK + 0x200).step_by(8) {
            let word = match random() % 4 {
                0 => random(),
                1 => STACK + random() % 0x400,
                2 => CODE + 0x25,
                _ => HEAP + random() % 0x1000,
            };
            m.put(at, word);
        }
        m.put(BLOB + 8 * (random() % 9), random());
        let fp = STACK + random() % 0x200;
        walk(&m, Place { pc: HEAP + random() % 0x1000, sp: STACK + random() % 64, fp });
    }
}
