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
use state::{Kind, State};
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

/// Buffers that live from method to method.
#[derive(Debug, Default)]
pub(crate) struct Check {
    /// The frames in order, as many as `used`.
    frames: Vec<(u32, State)>,
    used: usize,
    state: State,
}

/// Pairs of an instruction and a row of the exception table that are looked at, at most. No compiler
/// comes near; without a limit a hostile method could have four thousand millions of them.
const MOST_PAIRS: usize = 1 << 22;

impl Check {
    /// Refuses what a JVM would not accept.
    pub fn run(&mut self, woven: &Woven<'_, '_>) -> Result<(), Refusal> {
        self.read_frames(woven)?;
        let bad = |at: u32| move |what| Refusal::DoesNotVerify(at, what);
        let code = woven.code;
        let initial: Vec<Kind> = woven.initial.iter().map(|&ty| ty.into()).collect();
        self.state.stack.clear();
        self.state
            .set_locals(&initial, woven.max_locals)
            .ok_or("too many locals")
            .map_err(bad(0))?;
        let mut next_frame = 0;
        let mut reached = true;
        let mut changed = true;
        let mut pairs = 0;
        let mut pc = 0;
        while pc < code.len() {
            let at = pc as u32;
            let insn = insn_at(code, pc).map_err(Refusal::BadCode)?;
            pc += insn.bytes.len();
            match self.frames.get(next_frame).filter(|_| next_frame < self.used) {
                Some((offset, frame)) if *offset == at => {
                    if reached {
                        self.state.fits(frame).map_err(bad(at))?;
                    }
                    self.state.take(frame);
                    changed = true;
                    next_frame += 1;
                }
                Some((offset, _)) if *offset < at => {
                    return Err(bad(at)("a frame stands inside of an instruction"));
                }
                _ if !reached => return Err(bad(at)("no frame describes this code")),
                _ => {}
            }
            pairs += woven.exceptions.len();
            if pairs > MOST_PAIRS {
                return Err(bad(at)("there are too many handlers to look at"));
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
                self.jump(target).map_err(bad(at))?;
            }
            if let Some(switch) = insn.switch() {
                for target in switch.targets() {
                    self.jump(target).map_err(bad(at))?;
                }
            }
            reached = bits_of(insn.opcode) & bits::NO_FALL == 0;
        }
        if reached || next_frame < self.used {
            return Err(bad(pc as u32)("control or a frame leaves the code"));
        }
        Ok(())
    }

    fn read_frames(&mut self, woven: &Woven<'_, '_>) -> Result<(), Refusal> {
        self.used = 0;
        let mut frames = Frames::parse(Reader::new(woven.frames, 0)).map_err(Refusal::BadCode)?;
        let mut locals: Vec<Kind> = woven.initial.iter().map(|&ty| ty.into()).collect();
        while let Some(frame) = frames.next_frame().map_err(Refusal::BadCode)? {
            if self.used == self.frames.len() {
                self.frames.push((0, State::default()));
            }
            let Some((offset, state)) = self.frames.get_mut(self.used) else { break };
            self.used += 1;
            *offset = frame.offset;
            state.stack.clear();
            let mut fits = true;
            match frame.kind {
                FrameKind::Same => {}
                FrameKind::SameStack1(ty) => state.stack.push(ty.into()),
                FrameKind::Chop(n) => match locals.len().checked_sub(usize::from(n)) {
                    Some(left) => locals.truncate(left),
                    None => fits = false,
                },
                FrameKind::Append(types) => locals.extend(types.iter().map(Kind::from)),
                FrameKind::Full { locals: all, stack } => {
                    locals.clear();
                    locals.extend(all.iter().map(Kind::from));
                    state.stack.extend(stack.iter().map(Kind::from));
                }
            }
            if !fits || state.set_locals(&locals, woven.max_locals).is_none() {
                return Err(Refusal::DoesNotVerify(frame.offset, "a frame has too many locals"));
            }
        }
        Ok(())
    }

    fn frame(&self, offset: u32) -> Option<&State> {
        let frames = self.frames.get(..self.used)?;
        let at = frames.binary_search_by_key(&offset, |f| f.0).ok()?;
        frames.get(at).map(|f| &f.1)
    }

    fn jump(&self, target: i64) -> Result<(), &'static str> {
        let frame = u32::try_from(target).ok().and_then(|t| self.frame(t));
        self.state.fits(frame.ok_or("no frame where a jump leads")?)
    }

    /// Holds the locals against the handlers that cover an instruction. Where they are those of the
    /// instruction before, only handlers whose range begins here have not seen them.
    fn handlers(
        &self,
        woven: &Woven<'_, '_>,
        at: u32,
        uninit: bool,
        changed: bool,
    ) -> Result<(), &'static str> {
        for [start, end, handler, _] in woven.exceptions {
            let begins = u32::from(*start) == at;
            if !(begins || (changed && (u32::from(*start)..u32::from(*end)).contains(&at))) {
                continue;
            }
            let frame = self.frame(u32::from(*handler)).ok_or("a handler has no frame")?;
            if !matches!(frame.stack[..], [caught] if Kind::Object.fits(caught)) {
                return Err("the frame of a handler does not say that it has an exception");
            }
            self.state.locals_fit(frame, uninit)?;
        }
        Ok(())
    }
}
