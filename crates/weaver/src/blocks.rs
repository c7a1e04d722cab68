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

/// The longest block, which no class file reaches in bytecodes: its cost must leave room for
/// others.
const HEAVIEST: u32 = 1 << 24;

/// Fills `weights` with the length of each block, or what it costs, at the offset where it begins,
/// 0 elsewhere.
pub(crate) fn weigh(
    blocks: &Blocks,
    costs: Option<&[u32; 256]>,
    code: &[u8],
    scan: &Scan,
    pool: &ConstantPool<'_>,
    weights: &mut Vec<u32>,
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
            let cost = costs.and_then(|costs| costs.get(usize::from(opcode)));
            *w = w.saturating_add(cost.copied().unwrap_or(1)).min(HEAVIEST);
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
pub(crate) fn longest_paths(code: &[u8], scan: &Scan, weights: &mut [u32], best: &mut Vec<u32>) {
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
            Some(&b) if is_point(pc) && scan.has(pc, flag::START) => b,
            _ => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled;
    use crate::scan::Scan;
    use tare_classfile::{ClassFile, Code};

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % n as u64) as usize
        }
    }

    /// Calls `visit` with each method of the class files of the tests.
    fn each_method(mut visit: impl FnMut(&ClassFile<'_>, &Code<'_>, &Scan)) -> u32 {
        let mut methods = 0;
        for dir in ["8", "17", "25"].into_iter().filter_map(compiled::shapes) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let bytes = std::fs::read(entry.unwrap().path()).unwrap();
                let class = ClassFile::parse(&bytes).unwrap();
                for m in &class.methods {
                    let Some(code) = m.attributes.find(&class.pool, "Code") else { continue };
                    let code = Code::parse(&code).unwrap();
                    let mut scan = Scan::default();
                    scan.code(&code).unwrap();
                    visit(&class, &code, &scan);
                    methods += 1;
                }
            }
        }
        methods
    }

    /// Where control may go from an instruction that ends normally.
    fn successors(insn: &Insn<'_>) -> Vec<usize> {
        let mut out: Vec<usize> = insn.target().into_iter().map(|t| t as usize).collect();
        out.extend(insn.switch().iter().flat_map(|s| s.targets()).map(|t| t as usize));
        if bits_of(insn.opcode) & bits::NO_FALL == 0 {
            out.push(insn.offset as usize + insn.bytes.len());
        }
        out
    }

    /// Walks at random from instruction to instruction, knowing nothing of blocks, and compares the
    /// number of steps with what the counters say. Exceptions are only thrown where `throws` says.
    fn walk(
        code: &Code<'_>,
        scan: &Scan,
        weights: &[u32],
        r: &mut Random,
        throws: impl Fn(&Insn<'_>) -> bool,
    ) {
        let (mut pc, mut steps, mut counted) = (0, 0u32, 0u32);
        loop {
            steps += 1;
            counted += weights[pc];
            let insn = insn::insn_at(code.code, pc).unwrap();
            let mut next = successors(&insn);
            let explicit = insn.opcode == op::ATHROW;
            if explicit || (throws(&insn) && r.below(4) == 0) {
                let covering = scan.exceptions.iter();
                let covering = covering.filter(|e| (e.start..e.end).contains(&(pc as u16)));
                next = covering.map(|e| usize::from(e.handler)).collect();
            }
            // Long walks end where a block ends, as a method does.
            let at_end = next.iter().all(|&n| weights.get(n).is_some_and(|&w| w > 0));
            if next.is_empty() || (steps > 500 && at_end) {
                assert_eq!(steps, counted, "walk to {pc}");
                return;
            }
            pc = next[r.below(next.len())];
        }
    }

    #[test]
    fn counters_agree_with_steps() {
        let mut r = Random(0x9e37_79b9_7f4a_7c15);
        let mut weights = Vec::new();
        let methods = each_method(|class, code, scan| {
            for _ in 0..20 {
                weigh(&Blocks::Default, None, code.code, scan, &class.pool, &mut weights);
                walk(code, scan, &weights, &mut r, |_| false);
                weigh(&Blocks::Precise, None, code.code, scan, &class.pool, &mut weights);
                walk(code, scan, &weights, &mut r, |i| {
                    may_throw(i.opcode, code.code, i.offset as usize, &class.pool)
                });
            }
        });
        assert!(methods > 80);
    }

    #[test]
    fn longest_paths_bound_every_walk() {
        let mut r = Random(0x2545_f491_4f6c_dd1d);
        let (mut weights, mut best) = (Vec::new(), Vec::new());
        each_method(|class, code, scan| {
            weigh(&Blocks::Default, None, code.code, scan, &class.pool, &mut weights);
            longest_paths(code.code, scan, &mut weights, &mut best);
            for _ in 0..50 {
                let (mut pc, mut left) = (0, 0i32);
                for _ in 0..500 {
                    if weights[pc] > 0 {
                        left = i32::try_from(weights[pc]).unwrap();
                    }
                    left -= 1;
                    assert!(left >= 0, "more steps than announced at {pc}");
                    let insn = insn::insn_at(code.code, pc).unwrap();
                    let mut next = successors(&insn);
                    if insn.opcode == op::ATHROW || r.below(8) == 0 {
                        let covering = scan.exceptions.iter();
                        let covering = covering.filter(|e| (e.start..e.end).contains(&(pc as u16)));
                        next.extend(covering.map(|e| usize::from(e.handler)));
                    }
                    if next.is_empty() {
                        break;
                    }
                    pc = next[r.below(next.len())];
                }
            }
        });
    }

    /// With costs a block weighs what its instructions cost together; with ones, their number.
    #[test]
    fn blocks_cost_what_their_instructions_do() {
        let (mut lengths, mut ones, mut costly) = (Vec::new(), Vec::new(), Vec::new());
        let mut costs = [1; 256];
        each_method(|class, code, scan| {
            weigh(&Blocks::Default, None, code.code, scan, &class.pool, &mut lengths);
            costs = [1; 256];
            weigh(&Blocks::Default, Some(&costs), code.code, scan, &class.pool, &mut ones);
            assert_eq!(lengths, ones);
            costs = [0; 256];
            costs[usize::from(op::ALOAD_0)] = 7;
            weigh(&Blocks::Default, Some(&costs), code.code, scan, &class.pool, &mut costly);
            let loads = scan.starts.iter().filter(|&&s| code.code[s as usize] == op::ALOAD_0);
            assert_eq!(costly.iter().sum::<u32>(), 7 * loads.count() as u32);
        });
    }

    #[derive(Debug)]
    struct EveryInstruction;

    impl BlockAnalysis for EveryInstruction {
        fn ends_block(&self, _: &Insn<'_>, _: &ConstantPool<'_>) -> bool {
            true
        }
    }

    #[test]
    fn an_analysis_can_be_plugged_in() {
        let mut weights = Vec::new();
        each_method(|class, code, scan| {
            let custom = Blocks::Custom(Arc::new(EveryInstruction));
            weigh(&custom, None, code.code, scan, &class.pool, &mut weights);
            assert!(scan.starts.iter().all(|&s| weights[s as usize] == 1));
        });
    }
}
