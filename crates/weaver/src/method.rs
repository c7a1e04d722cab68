//! Weaves one method: scan, analyse, emit, and write its attributes again.

use crate::blocks;
use crate::body::{Body, Input, NewLocals, Stop};
use crate::check::{Check, Woven};
use crate::constructor;
use crate::frames::{Extra, FrameWriter};
use crate::plan::{MethodOutcome, MethodPlan, Options, Refusal, Site};
use crate::probes::{Kind, Placement, Probes, Token};
use crate::regions::{Crossing, crossings};
use crate::scan::{Scan, flag, rethrows};
use crate::simulate::{Context, initial_locals};
use crate::sites;
use crate::tables;
use crate::types::{Names, Ty};
use crate::watched::{self, Constructed};
use tare_classfile::insn::insn_at;
use tare_classfile::opcode::{bits, bits_of, op};
use tare_classfile::writer::PoolBuilder;
use tare_classfile::{Attribute, ClassFile, Code, Constant, Frames, Member};

/// HotSpot compiles no method whose code is longer than this.
const HUGE_METHOD_LIMIT: usize = 8000;

/// What the probes of a plan are in the constant pool of one class.
#[derive(Debug)]
pub(crate) struct ClassProbes {
    pub refs: Vec<u16>,
    pub targets: Vec<(u16, u32)>,
}

impl ClassProbes {
    /// Appends what the probes need. All of it, so that the order does not depend on the methods.
    pub fn new(
        probes: &Probes,
        class: &ClassFile<'_>,
        pool: &mut PoolBuilder<'_>,
    ) -> Result<Self, Stop> {
        let mut refs = Vec::with_capacity(probes.calls.len());
        for c in &probes.calls {
            let (owner, name) = (c.owner.as_bytes(), c.name.as_bytes());
            refs.push(pool.method(owner, name, c.descriptor.as_bytes(), c.interface)?);
        }
        let mut targets = Vec::new();
        if probes.call_before.is_some() {
            for (index, constant) in class.pool.iter() {
                if !matches!(constant, Constant::Method { .. } | Constant::InterfaceMethod { .. }) {
                    continue;
                }
                let Ok(m) = class.pool.member(index) else { continue };
                let wanted = probes.set.call.iter().flat_map(|c| &c.targets).find(|t| {
                    t.0.as_bytes() == m.owner
                        && t.1.as_bytes() == m.name
                        && t.2.as_bytes() == m.descriptor
                });
                if let Some(t) = wanted
                    && m.name != b"<init>"
                {
                    targets.push((index, t.3));
                }
            }
        }
        Ok(Self { refs, targets })
    }
}

/// Buffers that live from method to method.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    scan: Scan,
    body: Body,
    weights: Vec<u32>,
    ticks: Vec<u32>,
    best: Vec<u32>,
    crossings: Vec<Crossing>,
    sites: Vec<Site>,
    constructed: Vec<Constructed>,
    initial: Vec<Ty>,
    frames: FrameWriter,
    rows: Vec<[u16; 4]>,
    indexes: Vec<u16>,
    check: Check,
}

/// The attributes of one method and what they say.
pub(crate) struct Method<'m, 'a> {
    pub class: &'m ClassFile<'a>,
    pub member: &'m Member<'a>,
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
    pub code_attribute: Attribute<'a>,
    pub code: Code<'a>,
}

impl<'a> Method<'_, 'a> {
    /// Appends the woven `method_info` to `out`, or leaves it alone and says why.
    pub fn weave(
        &self,
        plan: &MethodPlan<'_>,
        class_probes: &ClassProbes,
        options: &Options,
        pool: &mut PoolBuilder<'a>,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<MethodOutcome, Stop> {
        let Self { class, code, .. } = self;
        let probes = plan.probes;
        let Scratch { scan, body, weights, ticks, best, crossings: cross, initial, sites, .. } =
            scratch;
        let constructed = &mut scratch.constructed;
        if self.name == b"finalize" && self.descriptor == b"()V" && code.code == [op::RETURN] {
            return Err(Refusal::EmptyFinalizer.into());
        }
        scan.code(code)?;
        let stack_map = code.attributes.find_unique(&class.pool, "StackMapTable");
        let stack_map = stack_map.map_err(Refusal::BadCode)?;
        if scan.has_subroutines && class.major > 50 {
            return Err(Refusal::SubroutineInModernClass.into());
        }
        // Version 50 may do without frames: then the JVM falls back to the old verifier. From 51
        // on, code that needs frames and has none was never to be verified: JDK 17 drops those of
        // the boot loader's classes. Types are inferred in both cases, and no frames are written.
        let has_joins = scan.has_jumps || !scan.exceptions.is_empty();
        let use_frames =
            class.major >= 50 && !scan.has_subroutines && (stack_map.is_some() || !has_joins);
        let stack_map = stack_map.filter(|_| use_frames);
        let frames = match &stack_map {
            Some(a) => Some(Frames::parse(a.reader()).map_err(Refusal::BadCode)?),
            None => None,
        };
        if let Some(frames) = &frames {
            scan.frames(frames.clone())?;
        }

        let mut names = Names::default();
        initial_locals(
            class,
            &mut names,
            pool,
            self.name,
            self.descriptor,
            self.member.access_flags,
            initial,
        )
        .ok_or(Refusal::BadTypes(0))?;
        let constructor = initial.first() == Some(&Ty::UninitThis);
        let mut in_local_0 = true;
        if constructor {
            let mut cx = Context { class, code, names: &mut names, pool };
            in_local_0 = constructor::mark(&mut cx, scan, initial, frames.clone(), use_frames)?;
        }

        weights.clear();
        if let Some(count) = &probes.set.count {
            blocks::weigh(
                &count.blocks,
                count.costs.as_deref(),
                code.code,
                scan,
                &class.pool,
                weights,
            );
        }
        ticks.clear();
        if let Some(a) = &probes.set.activation {
            blocks::weigh(&a.blocks, None, code.code, scan, &class.pool, ticks);
            if a.placement == Placement::LongestPath {
                blocks::longest_paths(code.code, scan, ticks, best);
            }
            delay_rethrow_ticks(code.code, scan, ticks);
        }
        sites::find(code.code, class, probes, plan.first_site, sites);
        constructed.clear();
        let mut unwatched = watched::count(sites);
        if unwatched > 0 && use_frames {
            let mut cx = Context { class, code, names: &mut names, pool };
            let frames = frames.clone();
            unwatched = watched::find(&mut cx, scan, initial, frames, sites, constructed);
        }
        let calls = mark_calls(code.code, scan, &class_probes.targets);
        let lines = if plan.regions.is_empty() {
            &[]
        } else {
            tables::line_rows(&code.attributes, &class.pool)?
        };
        let regions = if probes.region.is_some() { plan.regions.as_slice() } else { &[] };
        crossings(code.code, scan, lines, regions, cross)?;

        let wants_catch = probes.flush.is_some()
            || !regions.is_empty()
            || probes.frames.iter().any(|f| f.exit_throw.is_some());
        // Without instructions that throw, only a loop could be interrupted.
        let catch = wants_catch && (scan.may_throw || scan.has_back);
        let handlers = catch || (calls && probes.call_throw.is_some());
        let copy_this = handlers && use_frames && !in_local_0;
        let (locals, extra) = new_locals(plan, code.max_locals, copy_this, &mut names, pool)?;
        let input = Input {
            code: code.code,
            names: [self.class.name().map_err(Refusal::BadCode)?, self.name, self.descriptor],
            plan,
            refs: &class_probes.refs,
            targets: &class_probes.targets,
            sites,
            constructed,
            locals: &locals,
            weights,
            ticks,
            crossings: cross,
            frames: use_frames,
            catch,
        };
        body.emit(scan, &input, pool)?;
        let old_len = code.code.len();
        let new_len = body.asm.out.len();
        if body.asm.out == code.code {
            return Ok(MethodOutcome::NothingToDo);
        }
        if new_len > HUGE_METHOD_LIMIT && old_len <= HUGE_METHOD_LIMIT && !options.allow_huge {
            return Err(Refusal::Huge.into());
        }
        let writer = &mut scratch.frames;
        if use_frames {
            let mut cx = Context { class, code, names: &mut names, pool };
            writer.snapshots(&mut cx, body, scan, initial, frames.clone())?;
            writer.write(body, scan, &names, pool, initial, &extra, code.max_locals, frames)?;
        }
        let class_of = |index| class.pool.class_name(index).unwrap_or_default();
        tables::exceptions(body, scan, class_of, &mut scratch.rows, &mut scratch.indexes)?;
        let stack_map = use_frames && !body.frames.is_empty();
        if constructor && use_frames {
            // What is wrong here, the JVM would find when it is too late: the class is lost.
            scratch.check.run(&Woven {
                code: &body.asm.out,
                max_stack: max_stack(code, body)?,
                max_locals: locals.end,
                exceptions: &scratch.rows,
                frames: if stack_map { &writer.out } else { &[0, 0] },
                initial,
                pool,
            })?;
        }
        let start = out.len();
        let written = self.write(scratch, &locals, stack_map, pool, out);
        if let Err(stop) = written {
            out.truncate(start);
            return Err(stop);
        }
        Ok(MethodOutcome::Woven {
            old_len: old_len as u32,
            new_len: new_len as u32,
            sites: std::mem::take(&mut scratch.sites),
            call_sites: scratch.body.calls.len() as u32,
            unwatched,
        })
    }

    /// Writes the method with its new `Code` attribute.
    fn write(
        &self,
        scratch: &Scratch,
        locals: &NewLocals,
        stack_map: bool,
        pool: &mut PoolBuilder<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let u2 = |out: &mut Vec<u8>, v: u16| out.extend_from_slice(&v.to_be_bytes());
        let u4 = |out: &mut Vec<u8>, v: usize| out.extend_from_slice(&(v as u32).to_be_bytes());
        // Flags, name, descriptor and the number of attributes stay.
        out.extend_from_slice(self.member.raw.get(..8).unwrap_or(&[]));
        for a in self.member.attributes.iter() {
            if a.offset != self.code_attribute.offset {
                out.extend_from_slice(a.raw);
                continue;
            }
            u2(out, a.name_index);
            let length_at = out.len();
            u4(out, 0);
            let Self { code, class, .. } = self;
            let body = &scratch.body;
            u2(out, max_stack(code, body)?);
            u2(out, locals.end);
            u4(out, body.asm.out.len());
            out.extend_from_slice(&body.asm.out);
            u2(out, scratch.rows.len() as u16);
            for row in &scratch.rows {
                row.iter().for_each(|&v| u2(out, v));
            }
            let count_at = out.len();
            u2(out, 0);
            let mut count = 0u32;
            let mut frames_left = stack_map;
            for a in code.attributes.iter() {
                let name = class.pool.utf8(a.name_index).map_err(Refusal::BadCode)?;
                match name {
                    b"StackMapTable" if !frames_left => continue,
                    b"StackMapTable" => {
                        frames_left = false;
                        u2(out, a.name_index);
                        u4(out, scratch.frames.out.len());
                        out.extend_from_slice(&scratch.frames.out);
                    }
                    // The frames of Java ME, which no other JVM reads; they would be wrong now.
                    b"StackMap" => continue,
                    _ => tables::attribute(&a, name, body, &scratch.scan, &scratch.indexes, out)?,
                }
                count += 1;
            }
            if frames_left {
                u2(out, pool.utf8(b"StackMapTable")?);
                u4(out, scratch.frames.out.len());
                out.extend_from_slice(&scratch.frames.out);
                count += 1;
            }
            let count = u16::try_from(count).or(Err(Refusal::TableOverflow))?;
            let length = (out.len() - length_at - 4) as u32;
            if let Some(to) = out.get_mut(count_at..count_at + 2) {
                to.copy_from_slice(&count.to_be_bytes());
            }
            if let Some(to) = out.get_mut(length_at..length_at + 4) {
                to.copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }
}

/// How deep the stack of the woven code can get.
fn max_stack(code: &Code<'_>, body: &Body) -> Result<u16, Refusal> {
    let depth = (u32::from(code.max_stack) + body.inner_depth)
        .max(body.entry_depth)
        .max(body.handler_depth);
    u16::try_from(depth).or(Err(Refusal::TooDeepStack))
}

/// Gives out the slots behind the method's own.
fn new_locals(
    plan: &MethodPlan<'_>,
    max_locals: u16,
    copy_this: bool,
    names: &mut Names<'_>,
    pool: &mut PoolBuilder<'_>,
) -> Result<(NewLocals, Extra), Refusal> {
    let probes = plan.probes;
    let mut locals = NewLocals::default();
    let mut extra = Extra::default();
    let mut next = u32::from(max_locals);
    let mut take = |kind: Kind| {
        let slot = next;
        next += u32::from(kind.slots());
        slot as u16
    };
    let mut ty = |token: &Token| match token.kind {
        Kind::Int => Ty::Int,
        Kind::Long => Ty::Long,
        Kind::Float => Ty::Float,
        Kind::Double => Ty::Double,
        Kind::Reference => names.class(pool, token.class.clone().into()),
    };
    for f in &probes.frames {
        locals.tokens.push(take(f.token.kind));
        extra.lasting.push(ty(&f.token));
    }
    if probes.flush.is_some() {
        locals.count = take(Kind::Int);
        extra.lasting.push(Ty::Int);
    }
    if let Some((_, _, token)) = &probes.region {
        for _ in &plan.regions {
            locals.regions.push(take(token.kind));
            extra.lasting.push(ty(token));
        }
    }
    if copy_this {
        locals.this = Some(take(Kind::Reference));
        extra.this = true;
    }
    if let Some((_, token)) = &probes.call_before {
        locals.call = take(token.kind);
        extra.call = Some(ty(token));
    }
    locals.end = u16::try_from(next).or(Err(Refusal::TooManyLocals))?;
    Ok((locals, extra))
}

/// A handler that protects itself must not call anything before it throws; its check goes there.
fn delay_rethrow_ticks(code: &[u8], scan: &Scan, ticks: &mut [u32]) {
    for e in &scan.exceptions {
        let handler = usize::from(e.handler);
        if !scan.has(handler, flag::RETHROW) {
            continue;
        }
        if let Some(at) = rethrows(code, handler)
            && let Some(weight) = ticks.get_mut(handler).map(std::mem::take)
            && let Some(later) = ticks.get_mut(at)
        {
            *later = later.saturating_add(weight);
        }
    }
}

/// Flags the calls that get a probe; whether there are any.
fn mark_calls(code: &[u8], scan: &mut Scan, targets: &[(u16, u32)]) -> bool {
    let mut any = false;
    if targets.is_empty() {
        return any;
    }
    for at in 0..scan.starts.len() {
        let Some(&pc) = scan.starts.get(at) else { break };
        let opcode = code.get(pc as usize).copied().unwrap_or(0);
        if bits_of(opcode) & bits::INVOKE != 0
            && let Ok(insn) = insn_at(code, pc as usize)
            && targets.iter().any(|t| Some(t.0) == insn.constant())
        {
            scan.set(pc as usize, flag::CALL);
            any = true;
        }
    }
    any
}
