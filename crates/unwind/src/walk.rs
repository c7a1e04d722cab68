//! Steps from frame to frame by the tables. Async-signal-safe; everything it reads of the stack
//! goes through a [`Memory`], so that its tests need only an array.

use crate::memory::Memory;
use crate::modules::Modules;
use crate::rule::{Base, Cfa, Place, Rule};

/// The registers of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    pub pc: u64,
    pub sp: u64,
    pub fp: u64,
    /// The link register of aarch64; nothing elsewhere.
    pub lr: u64,
    /// The frame was interrupted at `pc`, the innermost one or the one that a signal hit.
    /// Otherwise `pc` is a return address and lies behind the call.
    pub interrupted: bool,
}

impl Cursor {
    /// The address that belongs to the frame's instruction: a call may be the last of its function.
    pub fn lookup(&self) -> u64 {
        if self.interrupted { self.pc } else { self.pc.wrapping_sub(1) }
    }

    fn base(&self, base: Base) -> u64 {
        match base {
            Base::Sp => self.sp,
            Base::Fp => self.fp,
        }
    }
}

/// Why a walk went no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The address lies in no module: a Java frame, in a JVM, or nonsense.
    Outside,
    /// The outermost frame of the thread.
    Bottom,
    /// The module came without usable tables.
    NoTable,
    /// No function covers the address.
    NoRule,
    /// The function's frame is described in a way that is not supported.
    Unsupported,
    /// The stack could not be read.
    Unreadable,
    /// The step did not lead upwards.
    Stuck,
    /// There was no room for more frames.
    Full,
}

impl End {
    pub const ALL: [End; 8] = [
        End::Outside,
        End::Bottom,
        End::NoTable,
        End::NoRule,
        End::Unsupported,
        End::Unreadable,
        End::Stuck,
        End::Full,
    ];

    /// A name for reports, in a frame of its own where the walk failed.
    pub fn name(self) -> &'static str {
        match self {
            End::Outside => "outside of every module",
            End::Bottom => "bottom",
            End::NoTable => "no unwind table",
            End::NoRule => "no unwind rule",
            End::Unsupported => "unsupported unwind rule",
            End::Unreadable => "unreadable stack",
            End::Stuck => "unwinding does not advance",
            End::Full => "too many native frames",
        }
    }
}

/// The outcome of a walk.
pub struct Walked {
    /// How many addresses were written.
    pub frames: usize,
    pub end: End,
    /// The first frame that was not written ([`End::Outside`], [`End::Full`]), or the last one.
    pub cursor: Cursor,
}

/// Goes from a frame to its caller's.
pub fn step<M: Memory>(modules: &Modules, frame: Cursor, memory: &mut M) -> Result<Cursor, End> {
    let module = modules.find(frame.lookup()).ok_or(End::Outside)?;
    let table = module.table.as_ref().map_err(|_| End::NoTable)?;
    match table.find(frame.lookup()) {
        Some(rule) => apply(rule, frame, memory),
        None => out_of_leaf(modules, frame, memory).ok_or(End::NoRule),
    }
}

/// Leaves an interrupted function that no table describes as one that has pushed nothing.
///
/// HotSpot has a few such functions, written in assembler: `SpinPause`, `SafeFetch32`, the copying
/// of arrays. A thread that spins is interrupted there more often than anywhere else. The return
/// address is believed only if a function is there that a table describes.
fn out_of_leaf<M: Memory>(modules: &Modules, frame: Cursor, memory: &mut M) -> Option<Cursor> {
    if !frame.interrupted {
        return None;
    }
    let caller = apply(&LEAF, frame, memory).ok()?;
    let module = modules.find(caller.lookup())?;
    module.table.as_ref().ok()?.find(caller.lookup())?;
    Some(caller)
}

/// The caller's address is all that is on the stack; on aarch64 it is in the link register.
const LEAF: Rule = if cfg!(target_arch = "aarch64") {
    Rule { cfa: Cfa::At(Base::Sp, 0), fp: Place::Same, ra: Place::Same, signal: false }
} else {
    Rule { cfa: Cfa::At(Base::Sp, 8), fp: Place::Same, ra: Place::AtCfa(-8), signal: false }
};

/// Writes the addresses of a frame and its callers, innermost first, as long as they lie in
/// modules. Each address is the one to look up: inside the call, not behind it.
pub fn walk<M: Memory>(modules: &Modules, from: Cursor, memory: &mut M, out: &mut [u64]) -> Walked {
    let mut cursor = from;
    let mut frames = 0;
    let end = loop {
        if modules.find(cursor.lookup()).is_none() {
            break End::Outside;
        }
        let Some(slot) = out.get_mut(frames) else { break End::Full };
        *slot = cursor.lookup();
        frames += 1;
        match step(modules, cursor, memory) {
            Ok(caller) => cursor = caller,
            Err(end) => break end,
        }
    };
    Walked { frames, end, cursor }
}

fn apply<M: Memory>(rule: &Rule, frame: Cursor, memory: &mut M) -> Result<Cursor, End> {
    let cfa = match rule.cfa {
        Cfa::At(base, offset) => plus(frame.base(base), offset),
        Cfa::StoredAt(base, offset) => load(memory, plus(frame.base(base), offset))?,
        Cfa::Plt(from) => {
            let pushed = frame.pc & 15 >= u64::from(from);
            plus(frame.sp, if pushed { 16 } else { 8 })
        }
        Cfa::Unsupported => return Err(End::Unsupported),
    };
    // Signal frames may lie on a stack of their own, anywhere. Otherwise stacks grow downwards,
    // and only a leaf that was interrupted may own no stack at all (aarch64).
    let upwards = cfa > frame.sp || cfa == frame.sp && frame.interrupted;
    if !upwards && !rule.signal {
        return Err(End::Stuck);
    }
    let pc = match rule.ra {
        Place::AtCfa(offset) => load(memory, plus(cfa, offset))?,
        Place::At(base, offset) => load(memory, plus(frame.base(base), offset))?,
        Place::Same if cfg!(target_arch = "aarch64") && frame.interrupted => frame.lr,
        Place::Same | Place::Lost => return Err(End::Bottom),
        Place::Unsupported => return Err(End::Unsupported),
    };
    let pc = strip(pc);
    if pc == 0 {
        return Err(End::Bottom);
    }
    let fp = match rule.fp {
        Place::Same => frame.fp,
        Place::AtCfa(offset) => load(memory, plus(cfa, offset))?,
        Place::At(base, offset) => load(memory, plus(frame.base(base), offset))?,
        // A caller that needs it will find nothing to read at zero.
        Place::Lost | Place::Unsupported => 0,
    };
    Ok(Cursor { pc, sp: cfa, fp, lr: 0, interrupted: rule.signal })
}

fn load<M: Memory>(memory: &mut M, address: u64) -> Result<u64, End> {
    memory.load(address).ok_or(End::Unreadable)
}

fn plus(address: u64, offset: i32) -> u64 {
    address.wrapping_add_signed(i64::from(offset))
}

/// Without the signature that aarch64 may keep in the upper bits of a return address.
fn strip(pc: u64) -> u64 {
    if cfg!(target_arch = "aarch64") { pc & 0x0000_ffff_ffff_ffff } else { pc }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A stack that is a map; what is not in it is not mapped.
    struct Stack(BTreeMap<u64, u64>);

    impl Memory for Stack {
        fn load(&mut self, address: u64) -> Option<u64> {
            self.0.get(&address).copied()
        }
    }

    fn frame(sp: u64, fp: u64) -> Cursor {
        Cursor { pc: 0x40_0123, sp, fp, lr: 0, interrupted: true }
    }

    fn check(rule: Rule, from: Cursor, stack: &[(u64, u64)]) -> Result<(u64, u64, u64), End> {
        let mut stack = Stack(stack.iter().copied().collect());
        apply(&rule, from, &mut stack).map(|c| (c.pc, c.sp, c.fp))
    }

    const CALL: Rule = Rule {
        cfa: Cfa::At(Base::Sp, 16),
        fp: Place::AtCfa(-16),
        ra: Place::AtCfa(-8),
        signal: false,
    };

    #[test]
    fn registers_come_from_where_the_rule_says() {
        let stack = [(0x1000, 77), (0x1008, 0x40_0200)];
        assert_eq!(check(CALL, frame(0x1000, 5), &stack), Ok((0x40_0200, 0x1010, 77)));
        let same = Rule { fp: Place::Same, ..CALL };
        assert_eq!(check(same, frame(0x1000, 5), &stack), Ok((0x40_0200, 0x1010, 5)));
        let by_fp = Rule { cfa: Cfa::At(Base::Fp, 16), ..CALL };
        assert_eq!(check(by_fp, frame(0x0f00, 0x1000), &stack), Ok((0x40_0200, 0x1010, 77)));
        // A realigned stack keeps its caller's address below the frame pointer.
        let realigned = Rule { cfa: Cfa::StoredAt(Base::Fp, -8), fp: Place::Same, ..CALL };
        let stack = [(0x1000, 0x1200), (0x11f8, 0x40_0300)];
        assert_eq!(
            check(realigned, frame(0x0f00, 0x1008), &stack),
            Ok((0x40_0300, 0x1200, 0x1008))
        );
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn an_entry_of_the_linkage_table_pushes_once() {
        let rule = Rule { cfa: Cfa::Plt(11), fp: Place::Same, ..CALL };
        let stack = [(0x1000, 0x40_0200), (0x1008, 0x40_0300)];
        let at = |pc| Cursor { pc, ..frame(0x1000, 5) };
        assert_eq!(check(rule, at(0x40_000a), &stack), Ok((0x40_0200, 0x1008, 5)));
        assert_eq!(check(rule, at(0x40_000b), &stack), Ok((0x40_0300, 0x1010, 5)));
    }

    #[test]
    fn every_impossibility_has_its_end() {
        let stack = [(0x1000, 77), (0x1008, 0x40_0200), (0x0ff8, 1)];
        let from = frame(0x1000, 0x0f00);
        for (rule, expected) in [
            (Rule { ra: Place::Lost, ..CALL }, End::Bottom),
            (Rule { cfa: Cfa::Unsupported, ..CALL }, End::Unsupported),
            (Rule { ra: Place::Unsupported, ..CALL }, End::Unsupported),
            (Rule { cfa: Cfa::At(Base::Sp, 0x100), ..CALL }, End::Unreadable),
            (Rule { cfa: Cfa::At(Base::Sp, -8), ..CALL }, End::Stuck),
            (Rule { cfa: Cfa::At(Base::Fp, 16), ..CALL }, End::Stuck),
        ] {
            assert_eq!(check(rule, from, &stack), Err(expected), "{rule:?}");
        }
        assert_eq!(check(CALL, from, &[(0x1000, 1), (0x1008, 0)]), Err(End::Bottom), "address 0");
        let lost = Rule { fp: Place::Lost, ..CALL };
        assert_eq!(check(lost, from, &stack), Ok((0x40_0200, 0x1010, 0)));
    }

    #[test]
    fn a_signal_frame_may_lead_anywhere_and_its_caller_was_interrupted() {
        let rule = Rule {
            cfa: Cfa::StoredAt(Base::Sp, 160),
            fp: Place::At(Base::Sp, 120),
            ra: Place::At(Base::Sp, 168),
            signal: true,
        };
        let stack = [(0x9000 + 160, 0x1000), (0x9000 + 120, 9), (0x9000 + 168, 0x40_0000)];
        let mut memory = Stack(stack.into_iter().collect());
        let from = Cursor { interrupted: false, ..frame(0x9000, 5) };
        let caller = apply(&rule, from, &mut memory).unwrap();
        let expected = Cursor { pc: 0x40_0000, sp: 0x1000, fp: 9, lr: 0, interrupted: true };
        assert_eq!(caller, expected);
        assert_eq!((from.lookup(), caller.lookup()), (from.pc - 1, 0x40_0000));
    }
}
