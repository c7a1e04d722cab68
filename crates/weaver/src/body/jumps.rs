//! Jumps and switches: written with room for their distances, which are filled in once every
//! label is known; jumps that do not reach are marked, and the code is emitted again.

use super::{Body, Fixup, Source, Stop};
use crate::plan::Refusal;
use crate::scan::{Scan, flag};
use tare_classfile::insn::{insn_at, switch_operands};
use tare_classfile::opcode::op;

impl Body {
    pub(super) fn jump(
        &mut self,
        scan: &Scan,
        code: &[u8],
        pc: usize,
        frame: bool,
    ) -> Result<(), Stop> {
        let insn = insn_at(code, pc).map_err(Refusal::BadCode)?;
        let offset = insn.offset;
        let from = self.asm.pos();
        if let Some(switch) = insn.switch() {
            let old = switch_operands(pc);
            let new = switch_operands(from as usize);
            self.asm.op(insn.opcode);
            self.asm.out.resize(new, 0);
            self.asm.out.extend_from_slice(code.get(old..pc + insn.bytes.len()).unwrap_or(&[]));
            let fixup = |at: usize, target: i64| Fixup {
                offset,
                from,
                at: at as u32,
                target: target as u32,
                short: false,
            };
            self.fixups.push(fixup(new, switch.default_target()));
            let (first, step) =
                if insn.opcode == op::TABLESWITCH { (new + 12, 4) } else { (new + 12, 8) };
            for (i, (_, target)) in switch.cases().enumerate() {
                self.fixups.push(fixup(first + i * step, target));
            }
            return Ok(());
        }
        let target = insn.target().unwrap_or(0) as u32;
        let widen = scan.has(pc, flag::WIDE);
        match insn.opcode {
            op::GOTO_W | op::JSR_W => self.asm.op(insn.opcode),
            op::GOTO if widen => self.asm.op(op::GOTO_W),
            op::JSR if widen => self.asm.op(op::JSR_W),
            o if widen => {
                // Jump over a long jump on the opposite condition.
                self.asm.with_u2(negate(o), 8);
                self.asm.op(op::GOTO_W);
                if frame {
                    self.frames.push((from + 8, Source::After(offset)));
                }
                self.fixups.push(Fixup {
                    offset,
                    from: from + 3,
                    at: from + 4,
                    target,
                    short: false,
                });
                self.asm.out.extend_from_slice(&[0; 4]);
                return Ok(());
            }
            o => {
                self.asm.with_u2(o, 0);
                self.fixups.push(Fixup { offset, from, at: from + 1, target, short: true });
                return Ok(());
            }
        }
        self.fixups.push(Fixup { offset, from, at: from + 1, target, short: false });
        self.asm.out.extend_from_slice(&[0; 4]);
        Ok(())
    }

    /// Fills in the distances. False when some jump must be widened, which is noted.
    pub(super) fn patch(&mut self, scan: &mut Scan) -> bool {
        let mut fits = true;
        for i in 0..self.fixups.len() {
            let Some(&f) = self.fixups.get(i) else { break };
            let distance = i64::from(self.label(f.target)) - i64::from(f.from);
            if !f.short {
                if let Some(to) = self.asm.out.get_mut(f.at as usize..f.at as usize + 4) {
                    to.copy_from_slice(&(distance as i32).to_be_bytes());
                }
            } else if let Ok(d) = i16::try_from(distance) {
                self.write_u2(f.at, d as u16);
            } else {
                scan.set(f.offset as usize, flag::WIDE);
                fits = false;
            }
        }
        fits
    }

    pub(super) fn write_u2(&mut self, at: u32, value: u16) {
        if let Some(to) = self.asm.out.get_mut(at as usize..at as usize + 2) {
            to.copy_from_slice(&value.to_be_bytes());
        }
    }
}

/// The opposite of a conditional jump.
fn negate(opcode: u8) -> u8 {
    match opcode {
        op::IFNULL => op::IFNONNULL,
        op::IFNONNULL => op::IFNULL,
        // The other conditions stand in pairs that begin at an odd number.
        o => ((o + 1) ^ 1) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_classfile::opcode::lookup;

    #[test]
    fn conditions_negate() {
        let name = |o: u8| lookup(o).unwrap().mnemonic;
        let all: Vec<String> = (op::IFEQ..=op::IF_ACMPNE)
            .chain([op::IFNULL, op::IFNONNULL])
            .map(|o| format!("{} {}", name(o), name(negate(o))))
            .collect();
        assert_eq!(
            all.join(", "),
            "ifeq ifne, ifne ifeq, iflt ifge, ifge iflt, ifgt ifle, ifle ifgt, \
             if_icmpeq if_icmpne, if_icmpne if_icmpeq, if_icmplt if_icmpge, if_icmpge if_icmplt, \
             if_icmpgt if_icmple, if_icmple if_icmpgt, if_acmpeq if_acmpne, if_acmpne if_acmpeq, \
             ifnull ifnonnull, ifnonnull ifnull"
        );
    }
}
