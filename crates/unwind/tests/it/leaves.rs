//! A function in assembler that no table describes, as HotSpot has some: `SpinPause` and others.

use std::arch::global_asm;
use tare_unwind::{Budget, Cursor, End, Memory, Modules, step};

global_asm!(
    ".balign 64",
    ".globl tare_test_undescribed_leaf",
    "tare_test_undescribed_leaf:",
    "pause",
    "ret",
    ".balign 64"
);

unsafe extern "C" {
    fn tare_test_undescribed_leaf();
}

/// A stack of one word.
struct Word(u64, u64);

impl Memory for Word {
    fn load(&mut self, address: u64) -> Option<u64> {
        (address == self.0).then_some(self.1)
    }
}

#[inline(never)]
fn caller() {
    // SAFETY: it pauses and returns.
    unsafe { tare_test_undescribed_leaf() };
}

#[test]
fn an_undescribed_leaf_is_left_for_a_described_caller_only() {
    caller();
    let modules = Modules::read(std::process::id() as i32, None, Budget::default());
    let leaf = tare_test_undescribed_leaf as *const () as u64;
    let inside_caller = caller as *const () as u64 + 5;
    let at = Cursor { pc: leaf + 2, sp: 0x1000, fp: 7, lr: 0, interrupted: true };
    let leave = |from: Cursor, on_stack: u64| {
        step(&modules, from, &mut Word(0x1000, on_stack)).map(|c| (c.pc, c.sp, c.fp, c.interrupted))
    };
    assert_eq!(leave(at, inside_caller), Ok((inside_caller, 0x1008, 7, false)));

    // What stands there may be anything: a number, or code that is not described either.
    for other in [0, 42, 0x1000, leaf + 3] {
        assert_eq!(leave(at, other), Err(End::NoRule), "{other:#x}");
    }
    // Who called has pushed a return address at least, and is no leaf.
    assert_eq!(leave(Cursor { interrupted: false, ..at }, inside_caller), Err(End::NoRule));
    let elsewhere = Cursor { sp: 0x2000, ..at };
    assert_eq!(leave(elsewhere, inside_caller), Err(End::NoRule), "an unreadable stack");
}
