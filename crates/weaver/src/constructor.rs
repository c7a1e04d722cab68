//! Constructors: where `this` is not initialised, and which calls initialise it.
//!
//! It follows the flow of the types and not the order of the code: a compiler may put code that
//! runs before `super()` behind code that runs after it.

use crate::plan::Refusal;
use crate::scan::{Scan, flag};
use crate::simulate::{Context, OBJECT, State, apply_frame, to_slots, with_frames};
use crate::types::Ty;
use tare_classfile::descriptor::MethodDescriptor;
use tare_classfile::insn::insn_at;
use tare_classfile::opcode::{bits, bits_of, op};
use tare_classfile::{Frames, Insn};

/// The last frame that says that `this` is not initialised. Frames are differences, so that it may
/// stand in none of them: the locals of the frame before, or of the entry, are what they begin
/// with.
fn last_uninit_frame(initial: &[Ty], frames: Option<Frames<'_>>) -> Result<Option<u32>, Refusal> {
    let Some(mut frames) = frames else { return Ok(None) };
    let (mut locals, mut stack) = (initial.to_vec(), Vec::new());
    let mut last = None;
    while let Some(frame) = frames.next_frame().map_err(Refusal::BadCode)? {
        let bad = Refusal::BadTypes(frame.offset);
        apply_frame(&frame, &mut locals, &mut stack).ok_or(bad)?;
        if locals.contains(&Ty::UninitThis) {
            last = Some(frame.offset);
        }
    }
    Ok(last)
}

/// Marks, in a constructor, where `this` is not initialised and which calls initialise it. Returns
/// whether local 0 holds `this` wherever it is not initialised.
///
/// A constructor in which no call initialises it can only throw, and stays uninitialised all the
/// way.
pub(crate) fn mark(
    cx: &mut Context<'_, '_>,
    scan: &mut Scan,
    initial: &[Ty],
    frames: Option<Frames<'_>>,
    use_frames: bool,
) -> Result<bool, Refusal> {
    let mut marks: Vec<(u32, u16)> = Vec::new();
    let mut in_local_0 = true;
    let last = if use_frames { last_uninit_frame(initial, frames.clone())? } else { None };
    let pool = &cx.class.pool;
    let mut visit = |insn: &Insn<'_>, state: &State| {
        if !state.uninit {
            // Only a frame could bring back an uninitialised `this`.
            return Ok(last.is_some_and(|last| insn.offset < last));
        }
        in_local_0 &= state.locals.first() == Some(&Ty::UninitThis);
        let mut flags = flag::UNINIT;
        if insn.opcode == op::INVOKESPECIAL
            && let Some(Ok(m)) = insn.constant().map(|c| pool.member(c))
            && m.name == b"<init>"
        {
            let below = MethodDescriptor::parse(m.descriptor).map_or(0, |d| d.parameters().count());
            let at = state.stack.len().checked_sub(below + 1);
            if at.and_then(|at| state.stack.get(at)) == Some(&Ty::UninitThis) {
                flags |= flag::INIT_CALL;
                if m.owner != b"java/lang/Object" {
                    flags |= flag::INIT_ESCAPES;
                }
            }
        }
        marks.push((insn.offset, flags));
        Ok(true)
    };
    if use_frames {
        with_frames(cx, scan, initial, frames, &mut visit)?;
    } else {
        by_flow(cx, scan, initial, &mut visit)?;
    }
    for (pc, flags) in marks {
        scan.set(pc as usize, flags);
    }
    Ok(in_local_0)
}

/// How many locals the states of one constructor may keep. Old compilers' are far from it.
const MOST_KEPT: usize = 1 << 22;

/// Visits a constructor without a stack map, as far as `this` is not initialised: states flow until
/// nothing changes, then `visit` sees each instruction that was reached once, in order.
fn by_flow(
    cx: &mut Context<'_, '_>,
    scan: &Scan,
    initial: &[Ty],
    mut visit: impl FnMut(&Insn<'_>, &State) -> Result<bool, Refusal>,
) -> Result<(), Refusal> {
    let code = cx.code.code;
    let mut first = State { uninit: initial.contains(&Ty::UninitThis), ..State::default() };
    to_slots(initial, cx.code.max_locals, &mut first.locals).ok_or(Refusal::BadTypes(0))?;
    let mut states: Vec<Option<State>> = vec![None; code.len() + 1];
    // Where subroutines may return to: after each jsr. Which one a `ret` means is not tracked.
    let returns: Vec<u32> = scan
        .starts
        .windows(2)
        .filter(|w| matches!(code.get(w[0] as usize), Some(&(op::JSR | op::JSR_W))))
        .map(|w| w[1])
        .collect();
    let mut work = vec![0u32];
    if let Some(slot) = states.first_mut() {
        *slot = Some(first);
    }
    // A state keeps all locals; how many of them are kept is bounded, for hostile code.
    let mut room = MOST_KEPT / (1 + usize::from(cx.code.max_locals));
    let mut flow_to =
        |states: &mut Vec<Option<State>>, work: &mut Vec<u32>, to: i64, state: &State| {
            let Some(slot) = usize::try_from(to).ok().and_then(|t| states.get_mut(t)) else {
                return Err(Refusal::BadTypes(0));
            };
            let changed = match slot {
                Some(known) => known.merge(state, to as u32)?,
                None => {
                    room = room.checked_sub(1).ok_or(Refusal::BadTypes(to as u32))?;
                    *slot = Some(state.clone());
                    true
                }
            };
            if changed {
                work.push(to as u32);
            }
            Ok(())
        };
    // Each state can only lose information, and there is little of it; this bounds hostile code.
    let mut budget = 200_000u32 + 64 * scan.starts.len() as u32;
    while let Some(pc) = work.pop() {
        budget = budget.checked_sub(1).ok_or(Refusal::BadTypes(pc))?;
        let Some(Some(mut state)) = states.get(pc as usize).cloned() else { continue };
        let insn = insn_at(code, pc as usize).map_err(Refusal::BadCode)?;
        for e in
            scan.exceptions.iter().filter(|e| (u32::from(e.start)..u32::from(e.end)).contains(&pc))
        {
            let mut caught = state.clone();
            caught.stack.clear();
            caught.stack.push(OBJECT);
            flow_to(&mut states, &mut work, i64::from(e.handler), &caught)?;
        }
        state.step(&insn, cx).ok_or(Refusal::BadTypes(pc))?;
        // What happens to an initialised object is of no interest here, and leaving it out spares
        // us the subroutines of `finally`, whose types depend on where they were called from.
        if !state.uninit {
            continue;
        }
        let next = i64::from(pc) + insn.bytes.len() as i64;
        if let Some(target) = insn.target() {
            flow_to(&mut states, &mut work, target, &state)?;
        }
        if let Some(switch) = insn.switch() {
            for target in switch.targets() {
                flow_to(&mut states, &mut work, target, &state)?;
            }
        }
        match insn.opcode {
            op::RET => {
                for &to in &returns {
                    flow_to(&mut states, &mut work, i64::from(to), &state)?;
                }
            }
            // The way on from a jsr is through its subroutine.
            op::JSR | op::JSR_W => {}
            o if bits_of(o) & bits::NO_FALL == 0 => {
                flow_to(&mut states, &mut work, next, &state)?;
            }
            _ => {}
        }
    }
    for &pc in &scan.starts {
        if let Some(Some(state)) = states.get(pc as usize) {
            let insn = insn_at(code, pc as usize).map_err(Refusal::BadCode)?;
            if !visit(&insn, state)? {
                break;
            }
        }
    }
    Ok(())
}
