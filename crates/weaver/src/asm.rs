//! Emits the few instructions that probes are made of, and keeps track of the stack they need.

use crate::probes::Kind;
use tare_classfile::opcode::op;
use tare_classfile::writer::{PoolBuilder, PoolFull};

/// Appends instructions to a code array.
#[derive(Debug, Default)]
pub(crate) struct Asm {
    pub out: Vec<u8>,
    /// Stack words above what was there when the snippet began.
    depth: u32,
    /// The most that any snippet needed.
    pub max_depth: u32,
}

impl Asm {
    pub fn clear(&mut self) {
        self.out.clear();
        self.depth = 0;
        self.max_depth = 0;
    }

    pub fn pos(&self) -> u32 {
        self.out.len() as u32
    }

    /// Begins a snippet with nothing of its own on the stack.
    pub fn begin(&mut self) {
        self.depth = 0;
    }

    pub fn pushed(&mut self, words: u32) {
        self.depth += words;
        self.max_depth = self.max_depth.max(self.depth);
    }

    pub fn popped(&mut self, words: u32) {
        self.depth = self.depth.saturating_sub(words);
    }

    pub fn op(&mut self, opcode: u8) {
        self.out.push(opcode);
    }

    fn u2(&mut self, value: u16) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    /// Load or store of a local, by the base opcodes of the two forms.
    fn local(&mut self, long_form: u8, short_form: u8, local: u16) {
        match local {
            0..=3 => self.op(short_form + local as u8),
            4..=255 => self.out.extend_from_slice(&[long_form, local as u8]),
            _ => {
                self.out.extend_from_slice(&[op::WIDE, long_form]);
                self.u2(local);
            }
        }
    }

    pub fn load(&mut self, kind: Kind, local: u16) {
        let (long, short) = match kind {
            Kind::Int => (op::ILOAD, op::ILOAD_0),
            Kind::Long => (op::LLOAD, op::LLOAD_0),
            Kind::Float => (op::FLOAD, op::FLOAD_0),
            Kind::Double => (op::DLOAD, op::DLOAD_0),
            Kind::Reference => (op::ALOAD, op::ALOAD_0),
        };
        self.local(long, short, local);
        self.pushed(u32::from(kind.slots()));
    }

    pub fn store(&mut self, kind: Kind, local: u16) {
        let (long, short) = match kind {
            Kind::Int => (op::ISTORE, op::ISTORE_0),
            Kind::Long => (op::LSTORE, op::LSTORE_0),
            Kind::Float => (op::FSTORE, op::FSTORE_0),
            Kind::Double => (op::DSTORE, op::DSTORE_0),
            Kind::Reference => (op::ASTORE, op::ASTORE_0),
        };
        self.local(long, short, local);
        self.popped(u32::from(kind.slots()));
    }

    /// Zero or null.
    pub fn zero(&mut self, kind: Kind) {
        self.op(match kind {
            Kind::Int => op::ICONST_0,
            Kind::Long => op::LCONST_0,
            Kind::Float => op::FCONST_0,
            Kind::Double => op::DCONST_0,
            Kind::Reference => op::ACONST_NULL,
        });
        self.pushed(u32::from(kind.slots()));
    }

    pub fn int(&mut self, pool: &mut PoolBuilder<'_>, value: i32) -> Result<(), PoolFull> {
        match value {
            -1..=5 => self.op((i32::from(op::ICONST_0) + value) as u8),
            -128..=127 => self.out.extend_from_slice(&[op::BIPUSH, value as u8]),
            -32768..=32767 => {
                self.op(op::SIPUSH);
                self.u2(value as u16);
            }
            _ => {
                self.constant(pool.integer(value)?);
                return Ok(());
            }
        }
        self.pushed(1);
        Ok(())
    }

    /// Pushes a constant of one word.
    pub fn constant(&mut self, index: u16) {
        if let Ok(small) = u8::try_from(index) {
            self.out.extend_from_slice(&[op::LDC, small]);
        } else {
            self.op(op::LDC_W);
            self.u2(index);
        }
        self.pushed(1);
    }

    /// Adds to an `int` local.
    pub fn add(&mut self, local: u16, amount: u32) {
        let mut left = amount;
        while left > 0 {
            let step = left.min(32767);
            if local <= 255 && step <= 127 {
                self.out.extend_from_slice(&[op::IINC, local as u8, step as u8]);
            } else {
                self.out.extend_from_slice(&[op::WIDE, op::IINC]);
                self.u2(local);
                self.u2(step as u16);
            }
            left -= step;
        }
    }

    pub fn with_u2(&mut self, opcode: u8, operand: u16) {
        self.op(opcode);
        self.u2(operand);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_classfile::Insns;

    fn check(emit: impl FnOnce(&mut Asm), expected: &str, depth: u32) {
        let mut asm = Asm::default();
        emit(&mut asm);
        let text: Vec<String> = Insns::new(&asm.out)
            .map(|i| {
                let i = i.unwrap();
                let n = i.number().map_or(String::new(), |n| format!(" {n}"));
                let l = match i.bytes.len() {
                    1 => String::new(),
                    _ => i.local().map_or(String::new(), |l| format!(" v{l}")),
                };
                format!("{}{l}{n}", i.info().mnemonic)
            })
            .collect();
        assert_eq!(text.join("; "), expected);
        assert_eq!(asm.max_depth, depth);
    }

    #[test]
    fn locals_in_three_widths() {
        check(|a| a.load(Kind::Long, 3), "lload_3", 2);
        check(|a| a.load(Kind::Long, 255), "lload v255", 2);
        check(|a| a.load(Kind::Long, 256), "lload v256", 2);
        check(|a| a.store(Kind::Reference, 1), "astore_1", 0);
        check(|a| a.add(255, 127), "iinc v255 127", 0);
        check(|a| a.add(256, 1), "iinc v256 1", 0);
        check(|a| a.add(4, 128), "iinc v4 128", 0);
        check(|a| a.add(4, 40000), "iinc v4 32767; iinc v4 7233", 0);
    }
}
