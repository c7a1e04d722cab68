//! Source-line regions: which edges of the control flow enter or leave a range of lines.
//!
//! A start goes to each instruction inside that can be reached from outside, a stop to each one
//! outside that can be reached from inside. Both may be passed without crossing the border (a jump
//! within the region can share its target), so the runtime ignores what is started or stopped
//! already; its token tells.

use crate::plan::{Refusal, RegionPlan};
use crate::scan::{Scan, flag};
use tare_classfile::attributes::LineNumber;
use tare_classfile::insn::insn_at;
use tare_classfile::opcode::{bits, bits_of, op};

/// A start or stop before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crossing {
    pub offset: u32,
    /// Index of the region in the method's plan.
    pub region: usize,
    pub start: bool,
}

/// Finds all crossings, in order, and flags their instructions.
pub(crate) fn crossings(
    code: &[u8],
    scan: &mut Scan,
    lines: &[[u8; 4]],
    regions: &[RegionPlan],
    out: &mut Vec<Crossing>,
) -> Result<(), Refusal> {
    out.clear();
    if regions.is_empty() {
        return Ok(());
    }
    let mut table: Vec<LineNumber> = lines.iter().map(|&r| LineNumber::from_row(r)).collect();
    table.sort_by_key(|l| l.start);
    for (index, region) in regions.iter().enumerate() {
        let inside = inside(scan, code.len(), &table, region);
        if !inside.contains(&true) {
            return Err(Refusal::NoSuchLines(region.id));
        }
        let is_in = |pc: usize| inside.get(pc).copied().unwrap_or(false);
        let mut edge = |from_inside: bool, to: usize| {
            let to_inside = is_in(to);
            if from_inside != to_inside {
                out.push(Crossing { offset: to as u32, region: index, start: to_inside });
            }
        };
        edge(false, 0);
        for &pc in &scan.starts {
            let insn = insn_at(code, pc as usize).map_err(Refusal::BadCode)?;
            let here = is_in(pc as usize);
            if bits_of(insn.opcode) & bits::NO_FALL == 0 {
                edge(here, pc as usize + insn.bytes.len());
            }
            if let Some(target) = insn.target() {
                edge(here, target as usize);
            }
            if let Some(switch) = insn.switch() {
                switch.targets().for_each(|t| edge(here, t as usize));
            }
            if insn.opcode == op::RET {
                // It may go to behind any jsr: note both ways, the runtime ignores the wrong one.
                for w in scan.starts.windows(2) {
                    if matches!(code.get(w[0] as usize), Some(&(op::JSR | op::JSR_W))) {
                        edge(here, w[1] as usize);
                    }
                }
            }
        }
        for e in &scan.exceptions {
            for pc in e.start..e.end {
                if scan.has(usize::from(pc), flag::START) {
                    edge(is_in(usize::from(pc)), usize::from(e.handler));
                }
            }
        }
    }
    out.retain(|c| (c.offset as usize) < code.len());
    out.sort_unstable();
    out.dedup();
    for c in out.iter() {
        scan.set(c.offset as usize, flag::REGION);
    }
    Ok(())
}

fn inside(scan: &Scan, len: usize, table: &[LineNumber], region: &RegionPlan) -> Vec<bool> {
    let mut inside = vec![false; len];
    let mut rows = table.iter().peekable();
    let mut line = None;
    for &pc in &scan.starts {
        while let Some(row) = rows.next_if(|r| u32::from(r.start) <= pc) {
            line = Some(row.line);
        }
        if let Some(slot) = inside.get_mut(pc as usize) {
            let of_lines = |l| (region.first..=region.last).contains(&l);
            *slot = region.first == 0 || line.is_some_and(of_lines);
        }
    }
    inside
}
