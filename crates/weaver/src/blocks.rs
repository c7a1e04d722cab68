//! Block analysis: where a stretch of code begins that is executed as a whole, and how long it is.
//!
//! Control flow always ends a block. Whether something else does is a choice: the default analysis
//! says no and counts a block as a whole even when an exception leaves it half way; the precise one
//! ends a block at whatever can throw (BC2). Others can be plugged in.

use crate::scan::{Scan, flag};
use std::sync::Arc;
use tare_classfile::opcode::{bits, bits_of, op};
use tare_classfile::pool::{ConstantPool, tag};
use tare_classfile::{Insn, insn};

/// Decides which instructions end a block, beyond those that change control flow.
pub trait BlockAnalysis: std::fmt::Debug + Send + Sync {
    fn ends_block(&self, insn: &Insn<'_>, pool: &ConstantPool<'_>) -> bool;
}

/// The analysis to use.
#[derive(Clone, Debug, Default)]
pub enum Blocks {
    /// Only control flow ends a block.
    #[default]
    Default,
    /// What can throw ends a block too.
    Precise,
    Custom(Arc<dyn BlockAnalysis>),
}

/// Whether an instruction can raise an exception, looking at the constant that it loads.
pub(crate) fn may_throw(opcode: u8, code: &[u8], pc: usize, pool: &ConstantPool<'_>) -> bool {
    if bits_of(opcode) & bits::MAY_THROW == 0 {
        return false;
    }
    // Loading a number needs no resolution; a string or a class does.
    let at = |i: usize| code.get(pc + i).copied().unwrap_or(0);
    let index = match opcode {
        op::LDC => u16::from(at(1)),
        op::LDC_W | op::LDC2_W => u16::from_be_bytes([at(1), at(2)]),
        _ => return true,
    };
    !matches!(pool.tag(index), Some(tag::INTEGER | tag::FLOAT | tag::LONG | tag::DOUBLE))
}

/// Fills `weights` with the length of each block at the offset where it begins, 0 elsewhere.
pub(crate) fn weigh(
    blocks: &Blocks,
    code: &[u8],
    scan: &Scan,
    pool: &ConstantPool<'_>,
    weights: &mut Vec<u16>,
) {
    weights.clear();
    weights.resize(code.len(), 0);
    let mut leader = 0;
    let mut begin = true;
    let mut pc = 0;
    while let (Some(&opcode), Ok(len)) = (code.get(pc), insn::len_at(code, pc)) {
        if begin || scan.has(pc, flag::TARGET | flag::HANDLER) {
            leader = pc;
        }
        if let Some(w) = weights.get_mut(leader) {
            *w = w.saturating_add(1);
        }
        let b = bits_of(opcode);
        begin = b & (bits::JUMP | bits::NO_FALL) != 0
            // `wide ret` hides its flow behind the prefix.
            || (opcode == op::WIDE && code.get(pc + 1) == Some(&op::RET))
            || match blocks {
                Blocks::Default => false,
                Blocks::Precise => may_throw(opcode, code, pc, pool),
                Blocks::Custom(c) => {
                    insn::insn_at(code, pc).is_ok_and(|insn| c.ends_block(&insn, pool))
                }
            };
        pc += len;
    }
}

/// Replaces block lengths by the length of the longest way from each check point to the next.
///
/// Check points are the entry, handlers, subroutines and loop heads. Every way that leads
/// backwards ends at one of them, so one pass from the end suffices.
pub(crate) fn longest_paths(code: &[u8], scan: &Scan, weights: &mut [u16], best: &mut Vec<u32>) {
    best.clear();
    best.resize(code.len() + 1, 0);
    let is_point =
        |pc: usize| pc == 0 || scan.has(pc, flag::HANDLER | flag::BACK | flag::SUBROUTINE);
    for &pc in scan.starts.iter().rev() {
        let pc = pc as usize;
        let Ok(i) = insn::insn_at(code, pc) else { return };
        let next = pc + i.bytes.len();
        let way = |target: i64, best: &[u32]| match usize::try_from(target) {
            Ok(t) if !is_point(t) => best.get(t).copied().unwrap_or(0),
            _ => 0,
        };
        let mut longest = 0;
        if bits_of(i.opcode) & bits::NO_FALL == 0 {
            longest = way(next as i64, best);
        }
        if let Some(t) = i.target() {
            longest = longest.max(way(t, best));
        }
        if let Some(s) = i.switch() {
            for t in s.targets() {
                longest = longest.max(way(t, best));
            }
        }
        if let Some(b) = best.get_mut(pc) {
            *b = longest.saturating_add(1);
        }
    }
    for (pc, w) in weights.iter_mut().enumerate() {
        *w = match best.get(pc) {
            Some(&b) if is_point(pc) && scan.has(pc, flag::START) => b.min(65535) as u16,
            _ => 0,
        };
    }
}
