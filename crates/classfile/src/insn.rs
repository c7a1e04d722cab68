//! Instructions: where each one ends, what its operands are.
//!
//! Lengths and layouts come from the [opcode table](crate::opcode); this file only reads them off
//! the bytes.

use crate::error::{Error, ErrorKind, Result};
use crate::opcode::{self, Flow, Format, Opcode, op};

/// One instruction of a code array.
#[derive(Clone, Copy, Debug)]
pub struct Insn<'a> {
    /// Offset in the code array.
    pub offset: u32,
    /// The opcode; for a `wide` instruction, the opcode that it widens.
    pub opcode: u8,
    pub wide: bool,
    /// All its bytes, the `wide` prefix included.
    pub bytes: &'a [u8],
}

/// Length in bytes of the instruction at `pc`, checked against the end of `code`.
///
/// Errors carry `pc` as offset; the caller adds where the code stands in the file.
#[inline]
pub fn len_at(code: &[u8], pc: usize) -> Result<usize> {
    let Some(&opcode) = code.get(pc) else {
        return Err(Error::new(pc, ErrorKind::UnexpectedEnd));
    };
    let len = match opcode::fixed_len(opcode) {
        0 => variable_len(code, pc, opcode)?,
        fixed => fixed,
    };
    if len > code.len() - pc {
        return Err(Error::new(pc, ErrorKind::UnexpectedEnd));
    }
    Ok(len)
}

#[cold]
fn variable_len(code: &[u8], pc: usize, opcode: u8) -> Result<usize> {
    let fail = |kind| Err(Error::new(pc, kind));
    match opcode {
        op::WIDE => match code.get(pc + 1) {
            Some(&op::IINC) => Ok(6),
            Some(&o) if opcode::lookup(o).is_some_and(|o| o.format == Format::Local) => Ok(4),
            Some(&o) => fail(ErrorKind::BadWide(o)),
            None => fail(ErrorKind::UnexpectedEnd),
        },
        op::TABLESWITCH => {
            let at = switch_operands(pc);
            let (Some(low), Some(high)) = (i4_at(code, at + 4), i4_at(code, at + 8)) else {
                return fail(ErrorKind::UnexpectedEnd);
            };
            // At most 2^32 entries of four bytes: no overflow in 64 bits, and the caller compares
            // the result with what there is.
            let entries = i64::from(high) - i64::from(low) + 1;
            if entries <= 0 {
                return fail(ErrorKind::BadSwitch);
            }
            usize::try_from(entries * 4 + (at + 12 - pc) as i64)
                .or(Err(Error::new(pc, ErrorKind::BadSwitch)))
        }
        op::LOOKUPSWITCH => {
            let at = switch_operands(pc);
            let Some(pairs) = i4_at(code, at + 4) else {
                return fail(ErrorKind::UnexpectedEnd);
            };
            if pairs < 0 {
                return fail(ErrorKind::BadSwitch);
            }
            usize::try_from(i64::from(pairs) * 8 + (at + 8 - pc) as i64)
                .or(Err(Error::new(pc, ErrorKind::BadSwitch)))
        }
        _ => fail(ErrorKind::BadOpcode(opcode)),
    }
}

/// Where the operands of a switch at `pc` start: after padding to a multiple of four.
pub fn switch_operands(pc: usize) -> usize {
    (pc + 4) & !3
}

fn i4_at(code: &[u8], at: usize) -> Option<i32> {
    code.get(at..).and_then(|d| d.first_chunk::<4>()).map(|c| i32::from_be_bytes(*c))
}

/// The instructions of a code array in order; ends after the first fault.
#[derive(Clone, Debug)]
pub struct Insns<'a> {
    code: &'a [u8],
    pc: usize,
}

impl<'a> Insns<'a> {
    pub fn new(code: &'a [u8]) -> Self {
        Self { code, pc: 0 }
    }

    /// Starts at `pc`, where an instruction must start.
    pub fn from(code: &'a [u8], pc: usize) -> Self {
        Self { code, pc }
    }
}

/// The instruction at `pc`.
pub fn insn_at(code: &[u8], pc: usize) -> Result<Insn<'_>> {
    let len = len_at(code, pc)?;
    let bytes = code.get(pc..pc + len).unwrap_or(&[]);
    let (opcode, wide) = match bytes {
        [op::WIDE, o, ..] => (*o, true),
        [o, ..] => (*o, false),
        [] => return Err(Error::new(pc, ErrorKind::UnexpectedEnd)),
    };
    Ok(Insn { offset: pc as u32, opcode, wide, bytes })
}

impl<'a> Iterator for Insns<'a> {
    type Item = Result<Insn<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.pc >= self.code.len() {
            return None;
        }
        let insn = insn_at(self.code, self.pc);
        self.pc = match &insn {
            Ok(insn) => self.pc + insn.bytes.len(),
            Err(_) => self.code.len(),
        };
        Some(insn)
    }
}

impl<'a> Insn<'a> {
    /// Its row in the table. Instructions only come from [`insn_at`], which refuses other bytes;
    /// `nop` stands in so that this needs no panic.
    #[inline]
    pub fn info(&self) -> &'static Opcode {
        static NOP: Opcode = Opcode {
            mnemonic: "nop",
            format: Format::None,
            pop: "",
            push: "",
            may_throw: false,
            flow: Flow::Next,
        };
        opcode::lookup(self.opcode).unwrap_or(&NOP)
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn u2(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.byte(at), self.byte(at + 1)])
    }

    /// The local variable that it names, in its operand or in its opcode.
    pub fn local(&self) -> Option<u16> {
        match self.info().format {
            Format::Local | Format::Iinc if self.wide => Some(self.u2(2)),
            Format::Local | Format::Iinc => Some(u16::from(self.byte(1))),
            _ => match self.opcode {
                op::ILOAD_0..=op::ALOAD_3 => Some(u16::from((self.opcode - op::ILOAD_0) % 4)),
                op::ISTORE_0..=op::ASTORE_3 => Some(u16::from((self.opcode - op::ISTORE_0) % 4)),
                _ => None,
            },
        }
    }

    /// The constant-pool index in its operand.
    pub fn constant(&self) -> Option<u16> {
        match self.info().format {
            Format::Const1 => Some(u16::from(self.byte(1))),
            Format::Const2
            | Format::InvokeInterface
            | Format::InvokeDynamic
            | Format::MultiNewArray => Some(self.u2(1)),
            _ => None,
        }
    }

    /// The number in the operand of `bipush`, `sipush`, `iinc`, `newarray` or `multianewarray`.
    pub fn number(&self) -> Option<i32> {
        match self.info().format {
            Format::Byte => Some(i32::from(self.byte(1) as i8)),
            Format::Short => Some(i32::from(self.u2(1) as i16)),
            Format::Iinc if self.wide => Some(i32::from(self.u2(4) as i16)),
            Format::Iinc => Some(i32::from(self.byte(2) as i8)),
            Format::ArrayType => Some(i32::from(self.byte(1))),
            Format::MultiNewArray | Format::InvokeInterface => Some(i32::from(self.byte(3))),
            _ => None,
        }
    }

    /// The target of a jump (not of a switch). It may lie outside of the code.
    pub fn target(&self) -> Option<i64> {
        let distance = match self.info().format {
            Format::Branch2 => i64::from(self.u2(1) as i16),
            Format::Branch4 => i64::from(i4_at(self.bytes, 1).unwrap_or(0)),
            _ => return None,
        };
        Some(i64::from(self.offset) + distance)
    }

    /// The operands of a switch.
    pub fn switch(&self) -> Option<Switch<'a>> {
        let at = switch_operands(self.offset as usize) - self.offset as usize;
        let default = i4_at(self.bytes, at)?;
        let table = match self.info().format {
            Format::TableSwitch => {
                let low = i4_at(self.bytes, at + 4)?;
                SwitchTable::Table { low, distances: self.bytes.get(at + 12..)? }
            }
            Format::LookupSwitch => SwitchTable::Lookup { pairs: self.bytes.get(at + 8..)? },
            _ => return None,
        };
        Some(Switch { offset: self.offset, default, table })
    }
}

/// The operands of `tableswitch` or `lookupswitch`.
#[derive(Clone, Copy, Debug)]
pub struct Switch<'a> {
    offset: u32,
    default: i32,
    table: SwitchTable<'a>,
}

#[derive(Clone, Copy, Debug)]
enum SwitchTable<'a> {
    Table { low: i32, distances: &'a [u8] },
    Lookup { pairs: &'a [u8] },
}

impl<'a> Switch<'a> {
    pub fn default_target(&self) -> i64 {
        i64::from(self.offset) + i64::from(self.default)
    }

    /// Key and target of each case.
    pub fn cases(&self) -> impl Iterator<Item = (i32, i64)> + use<'a> {
        let offset = i64::from(self.offset);
        let (low, bytes, size) = match self.table {
            SwitchTable::Table { low, distances } => (low, distances, 4),
            SwitchTable::Lookup { pairs } => (0, pairs, 8),
        };
        bytes.chunks_exact(size).enumerate().map(move |(i, c)| {
            let key = if size == 8 { i4_at(c, 0).unwrap_or(0) } else { low.wrapping_add(i as i32) };
            (key, offset + i64::from(i4_at(c, size - 4).unwrap_or(0)))
        })
    }

    /// All targets, the default first.
    pub fn targets(&self) -> impl Iterator<Item = i64> + use<'a> {
        std::iter::once(self.default_target()).chain(self.cases().map(|(_, t)| t))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &[u8], expected: &str) {
        let mut text = String::new();
        for insn in Insns::new(code) {
            match insn {
                Ok(i) => {
                    text += &format!("{}:{}", i.offset, i.info().mnemonic);
                    if let Some(l) = i.local() {
                        text += &format!(" v{l}");
                    }
                    if let Some(c) = i.constant() {
                        text += &format!(" #{c}");
                    }
                    if let Some(n) = i.number() {
                        text += &format!(" {n}");
                    }
                    if let Some(t) = i.target() {
                        text += &format!(" ->{t}");
                    }
                    if let Some(s) = i.switch() {
                        for (k, t) in s.cases() {
                            text += &format!(" {k}->{t}");
                        }
                        text += &format!(" else->{}", s.default_target());
                    }
                    text += "; ";
                }
                Err(e) => text += &format!("{e}"),
            }
        }
        assert_eq!(text.trim_end(), expected);
    }

    #[test]
    fn operands() {
        check(
            &[0x1d, 0x36, 7, 0x10, 0xff, 0x11, 1, 0],
            "0:iload_3 v3; 1:istore v7; 3:bipush -1; 5:sipush 256;",
        );
        check(&[0xc4, 0x15, 1, 0, 0xc4, 0x84, 0, 1, 0xff, 0xfe], "0:iload v256; 4:iinc v1 -2;");
        check(&[0xa7, 0xff, 0xff, 0xc8, 0, 0, 0, 9], "0:goto ->-1; 3:goto_w ->12;");
        check(&[0xb9, 0, 5, 2, 0, 0x12, 9], "0:invokeinterface #5 2; 5:ldc #9;");
    }

    #[test]
    fn switches() {
        check(
            &[0, 0xaa, 0, 0, 0, 0, 0, 27, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 9],
            "0:nop; 1:tableswitch 3->8 4->10 else->28;",
        );
        check(
            &[0xab, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 4],
            "0:lookupswitch -1->4 else->20;",
        );
    }

    #[test]
    fn faults() {
        check(&[0x00, 0xca], "0:nop; unknown opcode 0xca at byte 1");
        check(&[0x11, 0], "unexpected end at byte 0");
        check(&[0xc4, 0x00, 0, 0], "opcode 0x00 has no wide form at byte 0");
        check(&[0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], "malformed switch at byte 0");
        check(
            &[0xaa, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff],
            "unexpected end at byte 0",
        );
        check(&[0xab, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0], "malformed switch at byte 0");
    }
}
