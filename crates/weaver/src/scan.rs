//! One pass over a method's code: where instructions start, what jumps where, what handlers there
//! are. It checks every offset, so that whoever comes after may rely on them.

use crate::plan::Refusal;
use tare_classfile::error::ErrorKind;
use tare_classfile::insn::{insn_at, len_at};
use tare_classfile::opcode::{bits, bits_of, op};
use tare_classfile::stackmap::Frames;
use tare_classfile::{Code, Error, ExceptionEntry, Insns};

/// Facts about one offset of the code.
pub(crate) mod flag {
    /// An instruction starts here.
    pub const START: u16 = 1;
    /// A jump or a switch leads here.
    pub const TARGET: u16 = 1 << 1;
    /// A jump from here or from further down leads here, or an exception may lead back here.
    pub const BACK: u16 = 1 << 2;
    /// An exception handler starts here.
    pub const HANDLER: u16 = 1 << 3;
    /// The stack map has a frame here.
    pub const FRAME: u16 = 1 << 4;
    /// A subroutine starts here.
    pub const SUBROUTINE: u16 = 1 << 5;
    /// `this` is not initialised before this instruction.
    pub const UNINIT: u16 = 1 << 6;
    /// This call initialises `this`.
    pub const INIT_CALL: u16 = 1 << 7;
    /// The jump here does not reach in its short form.
    pub const WIDE: u16 = 1 << 8;
    /// A handler that does nothing but release and rethrow.
    pub const RETHROW: u16 = 1 << 9;
    /// A region begins or ends here.
    pub const REGION: u16 = 1 << 10;
    /// A call that gets a call probe.
    pub const CALL: u16 = 1 << 11;
    /// This call initialises `this` and may throw: no handler can cover it.
    pub const INIT_ESCAPES: u16 = 1 << 12;
}

#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Flags of each offset, and one more for the end of the code.
    pub flags: Vec<u16>,
    /// Offsets of all instructions.
    pub starts: Vec<u32>,
    pub exceptions: Vec<ExceptionEntry>,
    /// For each offset the first instruction from there on that can throw; empty until asked for.
    next_throw: Vec<u32>,
    pub has_subroutines: bool,
    pub has_jumps: bool,
    pub has_back: bool,
    pub may_throw: bool,
}

impl Scan {
    #[inline]
    pub fn has(&self, pc: usize, flags: u16) -> bool {
        self.flags.get(pc).is_some_and(|f| f & flags != 0)
    }

    #[inline]
    pub fn set(&mut self, pc: usize, flags: u16) {
        if let Some(f) = self.flags.get_mut(pc) {
            *f |= flags;
        }
    }

    pub fn code(&mut self, code: &Code<'_>) -> Result<(), Refusal> {
        let bytes = code.code;
        self.flags.clear();
        self.flags.resize(bytes.len() + 1, 0);
        self.starts.clear();
        self.has_subroutines = false;
        self.has_jumps = false;
        self.has_back = false;
        self.may_throw = false;
        let bad = |e: Error| Refusal::BadCode(code.in_file(e));
        let mut pc = 0;
        while let Some(&opcode) = bytes.get(pc) {
            let len = len_at(bytes, pc).map_err(bad)?;
            self.starts.push(pc as u32);
            self.set(pc, flag::START);
            let b = bits_of(opcode);
            if b & (bits::JUMP | bits::MAY_THROW | bits::SPECIAL | bits::NO_FALL) != 0 {
                // A return can only throw when monitors are wrong, and is never covered.
                self.may_throw |= b & bits::MAY_THROW != 0 && b & bits::RETURN == 0;
                if b & bits::JUMP != 0 {
                    self.jump(bytes, pc).map_err(bad)?;
                } else if opcode == op::RET
                    || (opcode == op::WIDE && bytes.get(pc + 1) == Some(&op::RET))
                {
                    self.has_subroutines = true;
                }
            }
            pc += len;
        }
        self.exceptions(code).map_err(bad)?;
        // Targets were noted before it was known where instructions start.
        let stray = |&f: &u16| f & flag::START == 0 && f & (flag::TARGET | flag::HANDLER) != 0;
        if let Some(at) = self.flags.iter().position(stray) {
            return Err(bad(Error::new(at, ErrorKind::BadCodeOffset(at as u32))));
        }
        Ok(())
    }

    fn jump(&mut self, code: &[u8], pc: usize) -> Result<(), Error> {
        let insn = insn_at(code, pc)?;
        self.has_jumps = true;
        if let Some(target) = insn.target() {
            self.target(pc, target, code.len())?;
            if matches!(insn.opcode, op::JSR | op::JSR_W) {
                self.has_subroutines = true;
                self.set(target as usize, flag::SUBROUTINE);
            }
        } else if let Some(switch) = insn.switch() {
            for target in switch.targets() {
                self.target(pc, target, code.len())?;
            }
        }
        Ok(())
    }

    fn target(&mut self, pc: usize, target: i64, len: usize) -> Result<(), Error> {
        match usize::try_from(target) {
            Ok(t) if t < len => {
                let mut flags = flag::TARGET;
                if t <= pc {
                    flags |= flag::BACK;
                    self.has_back = true;
                }
                self.set(t, flags);
                Ok(())
            }
            _ => Err(Error::new(pc, ErrorKind::BadCodeOffset(target as u32))),
        }
    }

    /// Whether an instruction of a range can throw. A compiler lets the handler of a `finally`
    /// cover its own first store, which cannot: taking that for a loop would put a branch where C1
    /// does not expect one, and it would give the method up.
    fn throws_within(&mut self, code: &[u8], from: usize, to: usize) -> bool {
        if self.next_throw.is_empty() {
            // Filled once, for the first handler that asks: there may be as many as instructions.
            self.next_throw.resize(code.len(), u32::MAX);
            let mut next = u32::MAX;
            for (pc, opcode) in code.iter().enumerate().rev() {
                if self.has(pc, flag::START) && bits_of(*opcode) & bits::MAY_THROW != 0 {
                    next = pc as u32;
                }
                if let Some(place) = self.next_throw.get_mut(pc) {
                    *place = next;
                }
            }
        }
        self.next_throw.get(from).is_some_and(|&next| (next as usize) < to)
    }

    fn exceptions(&mut self, code: &Code<'_>) -> Result<(), Error> {
        self.next_throw.clear();
        self.exceptions.clear();
        self.exceptions.extend(code.exceptions());
        let len = code.code.len();
        for e in std::mem::take(&mut self.exceptions) {
            let (start, end, handler) =
                (usize::from(e.start), usize::from(e.end), usize::from(e.handler));
            let fits = start < end && (end == len || self.has(end, flag::START));
            if !fits || !self.has(start, flag::START) || !self.has(handler, flag::START) {
                return Err(Error::new(handler, ErrorKind::BadCodeOffset(u32::from(e.start))));
            }
            self.set(handler, flag::HANDLER);
            if rethrows(code.code, handler).is_some() {
                self.set(handler, flag::RETHROW);
            } else if handler < end && self.throws_within(code.code, start.max(handler), end) {
                self.set(handler, flag::BACK);
                self.has_back = true;
            }
            self.exceptions.push(e);
        }
        Ok(())
    }

    /// Notes where the frames stand.
    pub fn frames(&mut self, mut frames: Frames<'_>) -> Result<(), Refusal> {
        while let Some(frame) = frames.next_frame().map_err(Refusal::BadCode)? {
            if !self.has(frame.offset as usize, flag::START) {
                let kind = ErrorKind::BadCodeOffset(frame.offset);
                return Err(Refusal::BadCode(Error::new(0, kind)));
            }
            self.set(frame.offset as usize, flag::FRAME);
        }
        Ok(())
    }
}

/// Whether a handler only moves values, releases monitors and throws again, as the one of a
/// `synchronized` block does; returns where it throws.
///
/// Such a handler calls nothing, so there is nothing to reset for it. It also protects itself: a
/// call that overflowed the stack inside of it would come back to it forever.
pub(crate) fn rethrows(code: &[u8], handler: usize) -> Option<usize> {
    for insn in Insns::from(code, handler).take(16) {
        let insn = insn.ok()?;
        match insn.opcode {
            op::ATHROW => return Some(insn.offset as usize),
            op::MONITOREXIT
            | op::NOP
            | op::POP
            | op::DUP
            | op::SWAP
            | op::ILOAD..=op::ALOAD_3
            | op::ISTORE..=op::ASTORE_3 => {}
            _ => return None,
        }
    }
    None
}
