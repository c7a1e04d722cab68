//! Emits the woven code: the original instructions with probes between them.
//!
//! At every original instruction there are four places, in this order:
//!
//! 1. the prologue of a handler, which only an exception enters;
//! 2. the label, where jumps and tables that named the instruction now lead;
//! 3. the code before it, which everyone who comes to the instruction passes;
//! 4. the instruction, and the code after it, which only its normal end passes.
//!
//! Code before an instruction belongs to the same exception ranges as the instruction. A probe that
//! calls the runtime is therefore never outside of the range that releases a monitor. Prologues are
//! outside of the ranges that lead to them: a call there that overflows the stack does not come
//! back to itself forever. It goes on with the handler, if that one catches such errors.

mod jumps;
mod snippets;

use crate::asm::Asm;
use crate::plan::{MethodPlan, Refusal, Site};
use crate::probes::Kind;
use crate::regions::Crossing;
use crate::scan::{Scan, flag};
use crate::watched::Constructed;
use snippets::{Given, first};
use tare_classfile::insn::len_at;
use tare_classfile::opcode::{bits, bits_of};
use tare_classfile::writer::{PoolBuilder, PoolFull};

/// Why emission stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    Refused(Refusal),
    PoolFull,
}

impl From<Refusal> for Stop {
    fn from(r: Refusal) -> Self {
        Self::Refused(r)
    }
}

impl From<PoolFull> for Stop {
    fn from(_: PoolFull) -> Self {
        Self::PoolFull
    }
}

/// Where a frame of the woven code comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The original frame at this offset.
    Original(u32),
    /// The types after the jump at this offset, which had to be turned around.
    After(u32),
    /// The types before the call at this offset, with the exception as stack.
    Stub(u32),
    /// The catch-all handler.
    Catch { uninit: bool },
}

/// A call with a probe around it, and the handler for when it throws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSite {
    pub offset: u32,
    pub id: u32,
    pub start: u32,
    pub end: u32,
    pub stub: u32,
    pub stub_end: u32,
    pub uninit: bool,
}

/// A stretch of woven code that the catch-all handler covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cover {
    pub start: u32,
    pub end: u32,
    pub uninit: bool,
}

#[derive(Clone, Copy, Debug)]
struct Fixup {
    /// Offset of the original jump.
    offset: u32,
    /// Where the distance counts from, and where it is written.
    from: u32,
    at: u32,
    target: u32,
    short: bool,
}

/// The new locals of a method.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewLocals {
    /// Token of each frame probe.
    pub tokens: Vec<u16>,
    pub count: u16,
    /// Token of each region.
    pub regions: Vec<u16>,
    /// A copy of `this`, in a constructor that uses local 0 for something else before `super()`: a
    /// handler's frame can only say that `this` is not initialised by a local that holds it.
    pub this: Option<u16>,
    /// Token of the call probe; only valid around a call.
    pub call: u16,
    /// What `max_locals` becomes.
    pub end: u16,
}

/// What does not change while a body is emitted.
pub(crate) struct Input<'m, 'p> {
    pub code: &'m [u8],
    /// Class, name and descriptor.
    pub names: [&'m [u8]; 3],
    pub plan: &'m MethodPlan<'p>,
    /// The `Methodref` entries of the probes' calls.
    pub refs: &'m [u16],
    /// Calls to put probes around: `Methodref` entry and id.
    pub targets: &'m [(u16, u32)],
    /// Allocations that get a probe, in their order.
    pub sites: &'m [Site],
    /// Calls of constructors after which an object is handed over, in their order.
    pub constructed: &'m [Constructed],
    pub locals: &'m NewLocals,
    /// Lengths of blocks for the count and for activation; empty when there is none.
    pub weights: &'m [u32],
    pub ticks: &'m [u32],
    pub crossings: &'m [Crossing],
    /// Whether the woven method needs frames.
    pub frames: bool,
    /// Whether the catch-all handler is needed.
    pub catch: bool,
}

/// The woven code and all that later steps must know about it. Kept between methods.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub asm: Asm,
    /// The new offset of each original label, and of the end.
    pub labels: Vec<u32>,
    /// New offsets of instructions that have code before them, in order.
    moved: Vec<(u32, u32)>,
    /// Handlers that have a prologue, in order: original offset, start of the prologue.
    pub prologues: Vec<(u32, u32)>,
    pub frames: Vec<(u32, Source)>,
    pub covers: Vec<Cover>,
    pub calls: Vec<CallSite>,
    /// Catch-all handlers: for initialised and uninitialised `this`.
    pub catch: [Option<u32>; 2],
    pub entry_end: u32,
    fixups: Vec<Fixup>,
    /// How much of the original code was copied.
    copied: usize,
    pub inner_depth: u32,
    pub handler_depth: u32,
    pub entry_depth: u32,
}

impl Body {
    fn clear(&mut self, len: usize) {
        self.asm.clear();
        self.labels.clear();
        self.labels.resize(len + 1, 0);
        self.moved.clear();
        self.prologues.clear();
        self.frames.clear();
        self.covers.clear();
        self.calls.clear();
        self.catch = [None, None];
        self.fixups.clear();
        self.copied = 0;
    }

    /// New offset of the label of an original offset.
    pub fn label(&self, offset: u32) -> u32 {
        self.labels.get(offset as usize).copied().unwrap_or(0)
    }

    /// New offset of an original instruction itself.
    pub fn insn(&self, offset: u32) -> u32 {
        match self.moved.binary_search_by_key(&offset, |m| m.0) {
            Ok(at) => self.moved.get(at).map_or(0, |m| m.1),
            Err(_) => self.label(offset),
        }
    }

    /// Where a handler of the exception table is entered.
    pub fn handler(&self, offset: u32) -> u32 {
        match self.prologues.binary_search_by_key(&offset, |p| p.0) {
            Ok(at) => self.prologues.get(at).map_or(0, |p| p.1),
            Err(_) => self.label(offset),
        }
    }

    /// Copies original code that was passed over, up to `pc`.
    #[inline]
    fn catch_up(&mut self, code: &[u8], pc: usize) {
        if let Some(part) = code.get(self.copied..pc) {
            self.asm.out.extend_from_slice(part);
        }
        self.copied = pc;
    }

    /// Emits everything, widening jumps until all of them reach.
    pub fn emit(
        &mut self,
        scan: &mut Scan,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
    ) -> Result<(), Stop> {
        // Each round widens at least one jump; in practice there are one or two rounds.
        for _ in 0..64 {
            self.clear(input.code.len());
            self.entry(input, pool)?;
            self.instructions(scan, input, pool)?;
            self.handlers(input, pool)?;
            if self.asm.out.len() > usize::from(u16::MAX) {
                return Err(Refusal::TooLarge.into());
            }
            if self.patch(scan) {
                return Ok(());
            }
        }
        Err(Refusal::JumpsDoNotSettle.into())
    }

    fn instructions(
        &mut self,
        scan: &Scan,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
    ) -> Result<(), Stop> {
        let code = input.code;
        let probes = input.plan.probes;
        let mut stops = bits::JUMP;
        if !probes.frames.is_empty() || probes.flush.is_some() || probes.region.is_some() {
            stops |= bits::RETURN;
        }
        let flag_stops =
            flag::FRAME | flag::HANDLER | flag::REGION | flag::CALL | flag::INIT_CALL | flag::BACK;
        let mut crossings = input.crossings.iter().peekable();
        let mut sites = input.sites.iter().peekable();
        let mut constructed = input.constructed.iter().peekable();
        let uninit = scan.has(0, flag::UNINIT);
        let mut cover = Cover { start: self.asm.pos(), end: 0, uninit };
        for (at, &pc32) in scan.starts.iter().enumerate() {
            let pc = pc32 as usize;
            let opcode = code.get(pc).copied().unwrap_or(0);
            let b = bits_of(opcode);
            let flags = scan.flags.get(pc).copied().unwrap_or(0);
            let weight = input.weights.get(pc).copied().unwrap_or(0);
            let tick = input.ticks.get(pc).copied().unwrap_or(0);
            let uninit = flags & flag::UNINIT != 0;
            let site = sites.next_if(|site| site.offset == pc32);
            let whole = constructed.next_if(|call| call.offset == pc32);
            let passed = (pc - self.copied) as u32;
            if flags & flag_stops == 0
                && b & stops == 0
                && site.is_none()
                && whole.is_none()
                && weight | tick == 0
                && uninit == cover.uninit
            {
                if let Some(label) = self.labels.get_mut(pc) {
                    *label = self.asm.out.len() as u32 + passed;
                }
                continue;
            }
            self.catch_up(code, pc);
            if uninit != cover.uninit {
                // Before the prologue of a handler, which runs with the types of the handler.
                self.close(&mut cover, self.asm.pos());
                cover.uninit = uninit;
            }
            if flags & flag::HANDLER != 0 && flags & flag::RETHROW == 0 {
                self.prologue(input, pool, pc32, flags)?;
            }
            let label = self.asm.pos();
            if let Some(slot) = self.labels.get_mut(pc) {
                *slot = label;
            }
            if flags & flag::FRAME != 0 && input.frames {
                self.frames.push((label, Source::Original(pc32)));
            }
            while let Some(c) = crossings.next_if(|c| c.offset == pc32) {
                self.crossing(input, pool, c)?;
            }
            if weight != 0 {
                self.asm.add(input.locals.count, weight);
            }
            if flags & flag::BACK != 0 && flags & flag::RETHROW == 0 && probes.flushes_in_loops() {
                self.flush_if_full(input, pool)?;
                if flags & flag::FRAME != 0 && input.frames {
                    self.frames.push((self.asm.pos(), Source::Original(pc32)));
                }
            }
            if let (Some(check), 1..) = (probes.check, tick) {
                self.asm.begin();
                self.call(input, pool, check, Given { weight: tick, ..first(input) })?;
            }
            if flags & flag::INIT_ESCAPES != 0 && probes.flushes_before_init() {
                self.asm.begin();
                self.flush(input, pool)?;
                self.asm.zero(Kind::Int);
                self.asm.store(Kind::Int, input.locals.count);
            }
            let len = len_at(code, pc).map_err(Refusal::BadCode)?;
            let returns = b & bits::RETURN != 0;
            if returns {
                self.close(&mut cover, self.asm.pos());
                self.exit(input, pool)?;
            }
            let call_id = if flags & flag::CALL != 0 { self.target(input, pc) } else { None };
            if let Some(id) = call_id {
                self.before_call(input, pool, id)?;
            }
            if self.asm.pos() != label {
                self.moved.push((pc32, self.asm.pos()));
            }
            if flags & flag::INIT_CALL != 0 {
                self.close(&mut cover, self.asm.pos());
            }
            let start = self.asm.pos();
            if b & bits::JUMP != 0 {
                let next = scan.starts.get(at + 1).copied();
                let next_has_frame = next.is_some_and(|n| scan.has(n as usize, flag::FRAME));
                self.jump(scan, code, pc, !next_has_frame && input.frames)?;
                self.copied = pc + len;
            } else {
                self.catch_up(code, pc + len);
            }
            if returns || flags & flag::INIT_CALL != 0 {
                let uninit = uninit && flags & flag::INIT_CALL == 0;
                cover = Cover { start: self.asm.pos(), end: 0, uninit };
            }
            if let Some(id) = call_id {
                self.after_call(input, pool, pc32, id, start, uninit)?;
            }
            if let Some(site) = site {
                self.allocation(input, pool, site)?;
            }
            if let Some(call) = whole {
                self.constructed(input, pool, call)?;
            }
        }
        self.catch_up(code, code.len());
        let end = self.asm.pos();
        if let Some(label) = self.labels.last_mut() {
            *label = end;
        }
        self.close(&mut cover, end);
        self.inner_depth = std::mem::take(&mut self.asm.max_depth);
        Ok(())
    }

    fn close(&mut self, cover: &mut Cover, end: u32) {
        if cover.start < end {
            self.covers.push(Cover { end, ..*cover });
        }
        cover.start = end;
    }
}
