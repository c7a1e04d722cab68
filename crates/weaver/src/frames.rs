//! Writes the stack map of a woven method.
//!
//! Every original frame gets the new locals behind its own, padded to where they start; the frames
//! that probes and handlers need are added in between.

use crate::body::{Body, Source, Stop};
use crate::plan::Refusal;
use crate::scan::Scan;
use crate::simulate::{Context, State, apply_frame, with_frames};
use crate::types::{Names, Ty};
use tare_classfile::stackmap::encode_frame;
use tare_classfile::writer::PoolBuilder;
use tare_classfile::{Frame, Frames, VerificationType};

/// The new locals as frames see them, in the order of their slots.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    /// Always valid after the entry code.
    pub lasting: Vec<Ty>,
    /// Whether there is a copy of `this`, which is of use as long as that is not initialised.
    pub this: bool,
    /// Only valid around a call that has a probe.
    pub call: Option<Ty>,
}

#[derive(Debug, Default)]
pub(crate) struct FrameWriter {
    previous: Vec<Ty>,
    locals: Vec<Ty>,
    values: Vec<Ty>,
    stack: Vec<Ty>,
    /// The stack of the original frame that `values` belongs to.
    frame_stack: Vec<Ty>,
    snapshots: Vec<(u32, State)>,
    pub out: Vec<u8>,
}

impl FrameWriter {
    /// Simulates the method to learn the types at places that have no frame of their own.
    pub fn snapshots(
        &mut self,
        cx: &mut Context<'_, '_>,
        body: &Body,
        scan: &Scan,
        initial: &[Ty],
        frames: Option<Frames<'_>>,
    ) -> Result<(), Refusal> {
        self.snapshots.clear();
        let mut wanted: Vec<u32> = body
            .frames
            .iter()
            .filter_map(|(_, source)| match *source {
                Source::Stub(offset) => Some(offset),
                Source::After(offset) => Some(next_start(scan, offset)),
                _ => None,
            })
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let Some(&last) = wanted.last() else { return Ok(()) };
        let snapshots = &mut self.snapshots;
        with_frames(cx, scan, initial, frames, |insn, state| {
            if wanted.binary_search(&insn.offset).is_ok() {
                snapshots.push((insn.offset, state.clone()));
            }
            Ok(insn.offset < last)
        })
    }

    /// Leaves the content of the attribute in `out`.
    #[expect(clippy::too_many_arguments, reason = "one call, and all of it is needed")]
    pub fn write(
        &mut self,
        body: &Body,
        scan: &Scan,
        names: &Names<'_>,
        pool: &mut PoolBuilder<'_>,
        initial: &[Ty],
        extra: &Extra,
        max_locals: u16,
        mut frames: Option<Frames<'_>>,
    ) -> Result<(), Stop> {
        self.out.clear();
        self.out.extend_from_slice(&[0, 0]);
        self.previous.clear();
        self.previous.extend_from_slice(initial);
        self.values.clear();
        self.values.extend_from_slice(initial);
        let mut current: Option<Frame<'_>> = None;
        let mut before: Option<u32> = None;
        let mut count = 0u32;
        for &(pos, source) in &body.frames {
            if before == Some(pos) {
                continue;
            }
            self.locals.clear();
            let uninit;
            match source {
                Source::Original(offset) => {
                    while current.is_none_or(|f| f.offset != offset) {
                        let next = match &mut frames {
                            Some(f) => f.next_frame().map_err(Refusal::BadCode)?,
                            None => None,
                        };
                        let next = next.ok_or(Refusal::NoFrame(offset))?;
                        apply_frame(&next, &mut self.values, &mut self.frame_stack)
                            .ok_or(Refusal::BadTypes(offset))?;
                        current = Some(next);
                    }
                    self.locals.extend_from_slice(&self.values);
                    self.stack.clear();
                    self.stack.extend_from_slice(&self.frame_stack);
                    uninit = self.values.contains(&Ty::UninitThis);
                }
                Source::After(offset) => {
                    let offset = next_start(scan, offset);
                    let state = find(&self.snapshots, offset)?;
                    to_values(&state.locals, &mut self.locals);
                    self.stack.clear();
                    self.stack.extend_from_slice(&state.stack);
                    uninit = state.uninit;
                }
                Source::Stub(offset) => {
                    let state = find(&self.snapshots, offset)?;
                    to_values(&state.locals, &mut self.locals);
                    uninit = state.uninit;
                    self.stack.clear();
                    self.stack.push(throwable(pool)?);
                }
                Source::Catch { uninit: of_uninit } => {
                    uninit = of_uninit;
                    if uninit && !extra.this {
                        self.locals.push(Ty::UninitThis);
                    }
                    self.stack.clear();
                    self.stack.push(throwable(pool)?);
                }
            }
            let slots: usize = self.locals.iter().map(|t| 1 + usize::from(t.is_wide())).sum();
            let Some(pad) = usize::from(max_locals).checked_sub(slots) else {
                return Err(Refusal::BadTypes(pos).into());
            };
            self.locals.extend(std::iter::repeat_n(Ty::Top, pad));
            self.locals.extend_from_slice(&extra.lasting);
            if extra.this {
                self.locals.push(if uninit { Ty::UninitThis } else { Ty::Top });
            }
            if matches!(source, Source::Stub(_)) {
                self.locals.extend(extra.call);
            }
            let delta = before.map_or(pos, |b| pos - b - 1);
            before = Some(pos);
            count += 1;
            encode_frame(
                &mut self.out,
                delta as u16,
                &self.previous,
                &self.locals,
                &self.stack,
                |ty, out| {
                    let ty = match ty {
                        Ty::Top | Ty::Return => VerificationType::Top,
                        Ty::Int => VerificationType::Integer,
                        Ty::Float => VerificationType::Float,
                        Ty::Long => VerificationType::Long,
                        Ty::Double => VerificationType::Double,
                        Ty::Null => VerificationType::Null,
                        Ty::UninitThis => VerificationType::UninitializedThis,
                        Ty::Uninit(offset) => {
                            VerificationType::Uninitialized(body.insn(u32::from(offset)) as u16)
                        }
                        Ty::Class(index) => VerificationType::Object(index),
                        Ty::Named(id) => VerificationType::Object(pool.class(names.get(id))?),
                    };
                    ty.write(out);
                    Ok::<(), Stop>(())
                },
            )?;
            std::mem::swap(&mut self.previous, &mut self.locals);
        }
        let count = u16::try_from(count).or(Err(Refusal::TableOverflow))?;
        if let Some(to) = self.out.get_mut(..2) {
            to.copy_from_slice(&count.to_be_bytes());
        }
        Ok(())
    }
}

fn throwable(pool: &mut PoolBuilder<'_>) -> Result<Ty, Stop> {
    Ok(Ty::Class(pool.class(b"java/lang/Throwable")?))
}

fn find(snapshots: &[(u32, State)], offset: u32) -> Result<&State, Refusal> {
    let at = snapshots.binary_search_by_key(&offset, |s| s.0).or(Err(Refusal::NoFrame(offset)))?;
    snapshots.get(at).map(|s| &s.1).ok_or(Refusal::NoFrame(offset))
}

/// From slots to values: drops the second half of wide ones.
fn to_values(slots: &[Ty], out: &mut Vec<Ty>) {
    let mut slots = slots.iter();
    while let Some(&t) = slots.next() {
        out.push(t);
        if t.is_wide() {
            slots.next();
        }
    }
}

/// The instruction after the one at `offset`.
fn next_start(scan: &Scan, offset: u32) -> u32 {
    let at = scan.starts.partition_point(|&s| s <= offset);
    scan.starts.get(at).copied().unwrap_or(offset)
}
