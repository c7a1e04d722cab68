//! The code of the probes: what is put at the entry, before and after instructions, at exits and
//! into handlers, and the call of a probe with its arguments. Where each goes is decided by the
//! walk over the original instructions, in the module above.

use super::{Body, CallSite, Input, Source, Stop};
use crate::plan::{Site, SiteKind};
use crate::probes::{Arg, CallId, Kind, Probes};
use crate::regions::Crossing;
use crate::scan::flag;
use crate::watched::Constructed;
use tare_classfile::insn::insn_at;
use tare_classfile::opcode::op;
use tare_classfile::writer::PoolBuilder;

impl Body {
    pub(super) fn entry(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
    ) -> Result<(), Stop> {
        let probes = input.plan.probes;
        if let Some(slot) = input.locals.this {
            self.asm.begin();
            self.asm.load(Kind::Reference, 0);
            self.asm.store(Kind::Reference, slot);
        }
        if let Some(entry) = probes.entry {
            self.asm.begin();
            self.call(input, pool, entry, Given::default())?;
        }
        for (i, frame) in probes.frames.iter().enumerate() {
            self.asm.begin();
            self.call(input, pool, frame.enter, Given::default())?;
            self.asm.store(frame.token.kind, local(&input.locals.tokens, i));
        }
        if probes.flush.is_some() {
            self.asm.begin();
            self.asm.zero(Kind::Int);
            self.asm.store(Kind::Int, input.locals.count);
        }
        if let Some((_, _, token)) = &probes.region {
            for &slot in &input.locals.regions {
                self.asm.begin();
                self.asm.zero(token.kind);
                self.asm.store(token.kind, slot);
            }
        }
        self.entry_end = self.asm.pos();
        self.entry_depth = std::mem::take(&mut self.asm.max_depth);
        Ok(())
    }

    /// What an exception handler does first: tell the frame probes that the method goes on.
    pub(super) fn prologue(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
        pc: u32,
        flags: u16,
    ) -> Result<(), Stop> {
        let probes = input.plan.probes;
        if probes.frames.iter().all(|f| f.caught.is_none()) {
            return Ok(());
        }
        let start = self.asm.pos();
        self.prologues.push((pc, start));
        if flags & flag::FRAME != 0 && input.frames {
            self.frames.push((start, Source::Original(pc)));
        }
        for (i, frame) in probes.frames.iter().enumerate() {
            if let Some(caught) = frame.caught {
                self.asm.begin();
                self.call(input, pool, caught, token(input, i))?;
            }
        }
        Ok(())
    }

    pub(super) fn crossing(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
        c: &Crossing,
    ) -> Result<(), Stop> {
        let Some((start, stop, token)) = &input.plan.probes.region else { return Ok(()) };
        let slot = local(&input.locals.regions, c.region);
        let site = input.plan.regions.get(c.region).map_or(0, |r| r.id);
        let given = Given { token: Some((token.kind, slot)), site, ..Given::default() };
        self.asm.begin();
        if c.start {
            self.call(input, pool, *start, given)?;
        } else {
            self.call(input, pool, *stop, given)?;
            self.asm.zero(token.kind);
        }
        self.asm.store(token.kind, slot);
        Ok(())
    }

    /// Flushes the count when it has passed the threshold. The jump leads to the end of the
    /// snippet, where the caller puts the frame of the loop head once more.
    pub(super) fn flush_if_full(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
    ) -> Result<(), Stop> {
        let threshold = input.plan.probes.set.count.as_ref().map_or(0, |c| c.threshold);
        self.asm.begin();
        self.asm.load(Kind::Int, input.locals.count);
        self.asm.int(pool, threshold.min(i32::MAX as u32) as i32)?;
        let jump = self.asm.pos();
        self.asm.with_u2(op::IF_ICMPLT, 0);
        self.asm.popped(2);
        self.flush(input, pool)?;
        self.asm.zero(Kind::Int);
        self.asm.store(Kind::Int, input.locals.count);
        let distance = (self.asm.pos() - jump) as u16;
        self.write_u2(jump + 1, distance);
        Ok(())
    }

    pub(super) fn flush(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
    ) -> Result<(), Stop> {
        match input.plan.probes.flush {
            Some(flush) => self.call(input, pool, flush, first(input)),
            None => Ok(()),
        }
    }

    /// Before a return: regions stop, the count goes out, the frame probes exit.
    pub(super) fn exit(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
    ) -> Result<(), Stop> {
        let probes = input.plan.probes;
        self.stop_regions(input, pool)?;
        if !probes.exit_takes_count {
            self.asm.begin();
            self.flush(input, pool)?;
        }
        for (i, frame) in probes.frames.iter().enumerate().rev() {
            self.asm.begin();
            self.call(input, pool, frame.exit, token(input, i))?;
        }
        Ok(())
    }

    fn stop_regions(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
    ) -> Result<(), Stop> {
        if let Some((_, stop, token)) = &input.plan.probes.region {
            for &slot in &input.locals.regions {
                self.asm.begin();
                let given = Given { token: Some((token.kind, slot)), ..Given::default() };
                self.call(input, pool, *stop, given)?;
            }
        }
        Ok(())
    }

    /// The id of the call at `pc` if it is one to put a probe around.
    pub(super) fn target(&self, input: &Input<'_, '_>, pc: usize) -> Option<u32> {
        let index = insn_at(input.code, pc).ok()?.constant()?;
        input.targets.iter().find(|t| t.0 == index).map(|t| t.1)
    }

    pub(super) fn before_call(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
        site: u32,
    ) -> Result<(), Stop> {
        if let Some((before, token)) = &input.plan.probes.call_before {
            self.asm.begin();
            self.call(input, pool, *before, Given { site, ..Given::default() })?;
            self.asm.store(token.kind, input.locals.call);
        }
        Ok(())
    }

    pub(super) fn after_call(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
        offset: u32,
        id: u32,
        start: u32,
        uninit: bool,
    ) -> Result<(), Stop> {
        let probes = input.plan.probes;
        let end = self.asm.pos();
        if probes.call_throw.is_some() {
            self.calls.push(CallSite { offset, id, start, end, stub: 0, stub_end: 0, uninit });
        }
        if let (Some(after), Some((_, token))) = (probes.call_after, &probes.call_before) {
            let token = Some((token.kind, input.locals.call));
            self.asm.begin();
            self.call(input, pool, after, Given { token, site: id, ..Given::default() })?;
        }
        Ok(())
    }

    pub(super) fn allocation(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
        site: &Site,
    ) -> Result<(), Stop> {
        let probes = input.plan.probes;
        let call = match site.kind {
            SiteKind::Object => probes.object,
            SiteKind::Array => probes.array,
            SiteKind::Clone => probes.clone,
            SiteKind::Capture => probes.capture,
            SiteKind::Concat => probes.concat,
            SiteKind::Made(at) => probes.makers.get(usize::from(at)).copied(),
        };
        let Some(call) = call else { return Ok(()) };
        let Site { id, operand, watched: levels, .. } = *site;
        let given = Given { site: id, class: operand, levels, ..first(input) };
        self.asm.begin();
        self.call(input, pool, call, given)?;
        let Some(watch) = probes.watch.filter(|_| site.watched != 0) else { return Ok(()) };
        let watch = match site.kind {
            // What `new` makes is no object yet.
            SiteKind::Object => None,
            SiteKind::Array => Some(watch.array),
            SiteKind::Clone => Some(watch.clone),
            SiteKind::Capture | SiteKind::Concat => Some(watch.one),
            SiteKind::Made(at) => probes.makers_watch.get(usize::from(at)).copied().flatten(),
        };
        match watch {
            Some(watch) => self.call(input, pool, watch, given),
            None => Ok(()),
        }
    }

    /// Hands over an object whose constructor has returned.
    pub(super) fn constructed(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
        call: &Constructed,
    ) -> Result<(), Stop> {
        let Some(watch) = input.plan.probes.watch else { return Ok(()) };
        self.asm.begin();
        self.call(input, pool, watch.object, Given { site: call.site, ..first(input) })
    }

    /// The handlers behind the original code: around single calls, and around everything.
    pub(super) fn handlers(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
    ) -> Result<(), Stop> {
        let probes = input.plan.probes;
        if let (Some(throw), Some((_, token))) = (probes.call_throw, &probes.call_before) {
            for i in 0..self.calls.len() {
                let Some(&site) = self.calls.get(i) else { break };
                let stub = self.asm.pos();
                if input.frames {
                    self.frames.push((stub, Source::Stub(site.offset)));
                }
                self.asm.begin();
                let token = Some((token.kind, input.locals.call));
                self.call(input, pool, throw, Given { token, site: site.id, ..Given::default() })?;
                self.asm.op(op::ATHROW);
                let stub_end = self.asm.pos();
                if let Some(site) = self.calls.get_mut(i) {
                    (site.stub, site.stub_end) = (stub, stub_end);
                }
            }
        }
        if input.catch {
            for uninit in [false, true] {
                if !self.covers.iter().any(|c| c.uninit == uninit) {
                    continue;
                }
                let start = self.asm.pos();
                if let Some(slot) = self.catch.get_mut(usize::from(uninit)) {
                    *slot = Some(start);
                }
                if input.frames {
                    self.frames.push((start, Source::Catch { uninit }));
                }
                self.stop_regions(input, pool)?;
                if !probes.throw_takes_count {
                    self.asm.begin();
                    self.flush(input, pool)?;
                }
                for (i, frame) in probes.frames.iter().enumerate().rev() {
                    if let Some(throw) = frame.exit_throw {
                        self.asm.begin();
                        self.call(input, pool, throw, token(input, i))?;
                    }
                }
                self.asm.op(op::ATHROW);
            }
        }
        self.handler_depth = 1 + std::mem::take(&mut self.asm.max_depth);
        Ok(())
    }

    /// Calls a probe with its arguments.
    pub(super) fn call(
        &mut self,
        input: &Input<'_, '_>,
        pool: &mut PoolBuilder<'_>,
        id: CallId,
        given: Given,
    ) -> Result<(), Stop> {
        let probes: &Probes = input.plan.probes;
        let Some(call) = probes.calls.get(id) else { return Ok(()) };
        let mut words = 0;
        for arg in &call.args {
            match arg {
                Arg::MethodId => self.asm.int(pool, input.plan.id as i32)?,
                Arg::MethodName => {
                    let [class, name, descriptor] = input.names;
                    let text = [class, b".", name, descriptor].concat();
                    self.asm.constant(pool.string(&text)?);
                }
                Arg::Weight => self.asm.int(pool, given.weight as i32)?,
                Arg::Site => self.asm.int(pool, given.site as i32)?,
                Arg::Levels => self.asm.int(pool, given.levels.cast_signed())?,
                Arg::Count => self.asm.load(Kind::Int, input.locals.count),
                Arg::Parameter(slot) => self.asm.load(Kind::Reference, *slot),
                Arg::Class => {
                    self.asm.with_u2(op::LDC_W, given.class);
                    self.asm.pushed(1);
                }
                Arg::Object | Arg::Exception => {
                    self.asm.op(op::DUP);
                    self.asm.pushed(1);
                }
                Arg::Token => {
                    if let Some((kind, slot)) = given.token {
                        self.asm.load(kind, slot);
                        words += u32::from(kind.slots()) - 1;
                    }
                }
            }
            words += 1;
        }
        self.asm.with_u2(op::INVOKESTATIC, input.refs.get(id).copied().unwrap_or(0));
        self.asm.popped(words);
        let returns = call.descriptor.as_bytes().iter().rposition(|&b| b == b')');
        let returns = returns.and_then(|at| call.descriptor.as_bytes().get(at + 1..));
        self.asm.pushed(returns.and_then(Kind::of).map_or(0, |k| u32::from(k.slots())));
        Ok(())
    }
}

/// Values that a call may be given beside the method's id and count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    pub(super) token: Option<(Kind, u16)>,
    pub(super) weight: u32,
    pub(super) site: u32,
    /// The `Class` entry of what was made.
    pub(super) class: u16,
    pub(super) levels: u32,
}

fn local(slots: &[u16], at: usize) -> u16 {
    slots.get(at).copied().unwrap_or(0)
}

/// The token of one frame probe.
fn token(input: &Input<'_, '_>, at: usize) -> Given {
    let kind = input.plan.probes.frames.get(at).map(|f| f.token.kind);
    Given { token: kind.map(|k| (k, local(&input.locals.tokens, at))), ..Given::default() }
}

/// The token of the first frame probe, for the probes that have none of their own.
pub(super) fn first(input: &Input<'_, '_>) -> Given {
    token(input, 0)
}
