//! A last look at a woven constructor, before a JVM sees it: do types and frames hold?
//!
//! It reads what was written, the code, its exception table and its stack map, and goes over them
//! as the verifier of HotSpot does: one pass in order, each jump and each handler against the frame
//! where it leads. It knows nothing of probes and of how the code came about, and shares nothing
//! with `simulate`, so that a fault there is found here. Classes are not told apart: for that
//! others would have to be loaded, and weaving changes no class of a value.
//!
//! Only constructors are checked: elsewhere woven handlers promise nothing about the method's own
//! values. And only where there is a stack map: the old verifier infers types by itself.

mod state;
#[cfg(test)]
mod tests;

use crate::plan::Refusal;
use crate::types::Ty;
use state::{Kind, State, all_fit, spread};
use tare_classfile::Frames;
use tare_classfile::insn::insn_at;
use tare_classfile::opcode::{bits, bits_of, op};
use tare_classfile::reader::Reader;
use tare_classfile::stackmap::FrameKind;
use tare_classfile::writer::PoolBuilder;

/// A woven method as it will stand in the class file.
pub(crate) struct Woven<'w, 'a> {
    pub code: &'w [u8],
    pub max_stack: u16,
    pub max_locals: u16,
    /// Start, end, handler and type.
    pub exceptions: &'w [[u16; 4]],
    /// The content of the `StackMapTable`.
    pub frames: &'w [u8],
    /// The types that the method begins with.
    pub initial: &'w [Ty],
    pub pool: &'w PoolBuilder<'a>,
}

/// A frame of the woven code.
#[derive(Clone, Copy, Debug)]
struct Frame {
    offset: u32,
    /// Where its locals begin in [`Check::kinds`], one per slot of the method; its stack follows.
    at: usize,
    stack: usize,
    uninit: bool,
}

/// Buffers that live from method to method.
#[derive(Debug, Default)]
pub(crate) struct Check {
    frames: Vec<Frame>,
    /// What the frames say.
    kinds: Vec<Kind>,
    /// The rows of the exception table by their start, and those that cover the instruction.
    rows: Vec<u16>,
    active: Vec<u16>,
    state: State,
    /// How many more kinds may be looked at.
    left: usize,
}

/// How many kinds of values are kept for one method, and looked at, at most. What compilers make is
/// far from both; without a limit a hostile method could have thousands of millions of them.
const MOST_KEPT: usize = 1 << 22;
const MOST_LOOKS: usize = 1 << 24;

/// How many are kept from method to method.
const KEPT_ON: usize = 1 << 14;

const TOO_LARGE: &str = "it is too large to be looked at";

impl Check {
    /// Refuses what a JVM would not accept.
    pub fn run(&mut self, woven: &Woven<'_, '_>) -> Result<(), Refusal> {
        self.left = MOST_LOOKS;
        let outcome = match self.read_frames(woven) {
            Ok(()) => self.code(woven),
            Err(refusal) => Err(refusal),
        };
        self.kinds.clear();
        self.kinds.shrink_to(KEPT_ON);
        outcome
    }

    fn code(&mut self, woven: &Woven<'_, '_>) -> Result<(), Refusal> {
        let bad = |at: u32| move |what| Refusal::DoesNotVerify(at, what);
        let code = woven.code;
        let initial: Vec<Kind> = woven.initial.iter().map(|&ty| ty.into()).collect();
        self.state.begin(&initial, woven.max_locals).ok_or("too many locals").map_err(bad(0))?;
        self.rows.clear();
        self.rows.extend(0..woven.exceptions.len() as u16);
        self.rows.sort_by_key(|&row| start(woven, row));
        self.active.clear();
        let (mut next_frame, mut next_row) = (0, 0);
        let mut reached = true;
        let mut changed = true;
        let mut pc = 0;
        while pc < code.len() {
            let at = pc as u32;
            let insn = insn_at(code, pc).map_err(Refusal::BadCode)?;
            pc += insn.bytes.len();
            match self.frames.get(next_frame) {
                Some(&frame) if frame.offset == at => {
                    if reached {
                        self.fits(frame, woven).map_err(bad(at))?;
                    }
                    let (locals, stack) = kinds_of(&self.kinds, frame, woven);
                    self.state.become_frame(locals, stack, frame.uninit);
                    changed = true;
                    next_frame += 1;
                }
                Some(frame) if frame.offset < at => {
                    return Err(bad(at)("a frame stands inside of an instruction"));
                }
                _ if !reached => return Err(bad(at)("no frame describes this code")),
                _ => {}
            }
            self.active.retain(|&row| end(woven, row) > at);
            while let Some(&row) = self.rows.get(next_row).filter(|&&r| start(woven, r) <= at) {
                self.active.push(row);
                next_row += 1;
            }
            let was_uninit = self.state.uninit;
            self.handlers(woven, at, was_uninit, changed).map_err(bad(at))?;
            let is_return = bits_of(insn.opcode) & bits::RETURN != 0;
            if is_return && was_uninit {
                return Err(bad(at)("it returns before this is initialised"));
            }
            let stepped = self.state.step(&insn, woven.pool);
            stepped.ok_or("a value of another type than it needs").map_err(bad(at))?;
            if self.state.depth() > usize::from(woven.max_stack) {
                return Err(bad(at)("the stack is deeper than it says"));
            }
            // A handler that covers the call of a constructor must bear both: the object as it was
            // before and as it is after, but HotSpot never takes `this` for initialised there.
            let initialises = insn.opcode == op::INVOKESPECIAL;
            if initialises {
                self.handlers(woven, at, was_uninit, true).map_err(bad(at))?;
            }
            changed = initialises || insn.local().is_some();
            if let Some(target) = insn.target() {
                self.jump(target, woven).map_err(bad(at))?;
            }
            if let Some(switch) = insn.switch() {
                for target in switch.targets() {
                    self.jump(target, woven).map_err(bad(at))?;
                }
            }
            reached = bits_of(insn.opcode) & bits::NO_FALL == 0;
        }
        if reached || next_frame < self.frames.len() {
            return Err(bad(pc as u32)("control or a frame leaves the code"));
        }
        Ok(())
    }

    fn read_frames(&mut self, woven: &Woven<'_, '_>) -> Result<(), Refusal> {
        self.frames.clear();
        self.kinds.clear();
        let mut frames = Frames::parse(Reader::new(woven.frames, 0)).map_err(Refusal::BadCode)?;
        let mut locals: Vec<Kind> = woven.initial.iter().map(|&ty| ty.into()).collect();
        while let Some(frame) = frames.next_frame().map_err(Refusal::BadCode)? {
            let bad = |what| Refusal::DoesNotVerify(frame.offset, what);
            let mut one = None;
            let mut more = None;
            match frame.kind {
                FrameKind::Same => {}
                FrameKind::SameStack1(ty) => one = Some(Kind::from(ty)),
                FrameKind::Chop(n) => {
                    let left = locals.len().checked_sub(usize::from(n));
                    locals.truncate(left.ok_or(bad("a frame drops locals that are not there"))?);
                }
                FrameKind::Append(types) => locals.extend(types.iter().map(Kind::from)),
                FrameKind::Full { locals: all, stack } => {
                    locals.clear();
                    locals.extend(all.iter().map(Kind::from));
                    more = Some(stack);
                }
            }
            let at = self.kinds.len();
            spread(&locals, woven.max_locals, &mut self.kinds)
                .ok_or(bad("a frame has too many locals"))?;
            let stack = self.kinds.len();
            self.kinds.extend(one);
            self.kinds.extend(more.iter().flat_map(|types| types.iter()).map(Kind::from));
            if self.kinds.len() > MOST_KEPT {
                return Err(bad(TOO_LARGE));
            }
            self.frames.push(Frame {
                offset: frame.offset,
                at,
                stack: self.kinds.len() - stack,
                uninit: locals.contains(&Kind::UninitThis),
            });
        }
        Ok(())
    }

    fn frame(&self, offset: u32) -> Option<Frame> {
        let at = self.frames.binary_search_by_key(&offset, |f| f.offset).ok()?;
        self.frames.get(at).copied()
    }

    /// Whether the state may become what a frame says.
    fn fits(&mut self, frame: Frame, woven: &Woven<'_, '_>) -> Result<(), &'static str> {
        let (_, stack) = kinds_of(&self.kinds, frame, woven);
        if self.state.stack.len() != stack.len() || !all_fit(&self.state.stack, stack) {
            return Err("the stack is not what the frame says");
        }
        self.locals_fit(frame, woven, self.state.uninit)
    }

    fn locals_fit(
        &mut self,
        frame: Frame,
        woven: &Woven<'_, '_>,
        uninit: bool,
    ) -> Result<(), &'static str> {
        if uninit && !frame.uninit {
            return Err("the frame does not say that this is not initialised");
        }
        let looks = 1 + usize::from(woven.max_locals);
        self.left = self.left.checked_sub(looks).ok_or(TOO_LARGE)?;
        let (locals, _) = kinds_of(&self.kinds, frame, woven);
        let fit = all_fit(&self.state.locals, locals);
        fit.then_some(()).ok_or("a local is not what the frame says")
    }

    fn jump(&mut self, target: i64, woven: &Woven<'_, '_>) -> Result<(), &'static str> {
        let frame = u32::try_from(target).ok().and_then(|t| self.frame(t));
        self.fits(frame.ok_or("no frame where a jump leads")?, woven)
    }

    /// Holds the locals against the handlers that cover an instruction. Where they are those of the
    /// instruction before, only handlers whose range begins here have not seen them.
    fn handlers(
        &mut self,
        woven: &Woven<'_, '_>,
        at: u32,
        uninit: bool,
        changed: bool,
    ) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(self.active.len()).ok_or(TOO_LARGE)?;
        for index in 0..self.active.len() {
            let Some(&row) = self.active.get(index) else { break };
            if !changed && start(woven, row) != at {
                continue;
            }
            let handler = woven.exceptions.get(usize::from(row)).map_or(0, |r| u32::from(r[2]));
            let frame = self.frame(handler).ok_or("a handler has no frame")?;
            if !matches!(kinds_of(&self.kinds, frame, woven).1, [caught] if Kind::Object.fits(*caught))
            {
                return Err("the frame of a handler does not say that it has an exception");
            }
            self.locals_fit(frame, woven, uninit)?;
        }
        Ok(())
    }
}

/// The locals and the stack of a frame.
fn kinds_of<'k>(
    kinds: &'k [Kind],
    frame: Frame,
    woven: &Woven<'_, '_>,
) -> (&'k [Kind], &'k [Kind]) {
    let stack = frame.at + usize::from(woven.max_locals);
    let part = |from: usize, to: usize| kinds.get(from..to).unwrap_or(&[]);
    (part(frame.at, stack), part(stack, stack + frame.stack))
}

fn start(woven: &Woven<'_, '_>, row: u16) -> u32 {
    woven.exceptions.get(usize::from(row)).map_or(0, |r| u32::from(r[0]))
}

fn end(woven: &Woven<'_, '_>, row: u16) -> u32 {
    woven.exceptions.get(usize::from(row)).map_or(0, |r| u32::from(r[1]))
}
