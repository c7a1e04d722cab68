//! Simulates the types on the stack and in the locals, as the JVM's verifier does.
//!
//! With a stack map one pass in order suffices, because every place that is jumped to has a frame.
//! Without one (class files before version 50) `constructor` lets the states flow along the edges.
//! The weaver needs types in constructors, for handlers around single calls and for jumps that get
//! longer. This does not verify: it stops with a refusal where types do not work out.

use crate::plan::Refusal;
use crate::scan::Scan;
use crate::types::{Names, Ty};
use std::borrow::Cow;
use tare_classfile::descriptor::MethodDescriptor;
use tare_classfile::insn::insn_at;
use tare_classfile::opcode::{bits, bits_of, op};
use tare_classfile::stackmap::FrameKind;
use tare_classfile::writer::PoolBuilder;
use tare_classfile::{ClassFile, Code, Constant, Frame, Frames, Insn, access};

/// Stack and locals before an instruction.
///
/// A wide value is one entry of the stack; in the locals it is followed by `Top`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub locals: Vec<Ty>,
    pub stack: Vec<Ty>,
    /// Whether `this` still waits for its initialisation.
    pub uninit: bool,
}

/// What the simulation of one method needs.
pub(crate) struct Context<'m, 'a> {
    pub class: &'m ClassFile<'a>,
    pub code: &'m Code<'a>,
    pub names: &'m mut Names<'a>,
    pub pool: &'m mut PoolBuilder<'a>,
}

/// The types that a method starts with, one entry per value.
pub(crate) fn initial_locals<'a>(
    class: &ClassFile<'a>,
    names: &mut Names<'a>,
    pool: &mut PoolBuilder<'a>,
    name: &[u8],
    descriptor: &'a [u8],
    access_flags: u16,
    out: &mut Vec<Ty>,
) -> Option<()> {
    out.clear();
    if access_flags & access::STATIC == 0 {
        let init = name == b"<init>" && class.name().ok() != Some(b"java/lang/Object");
        out.push(if init { Ty::UninitThis } else { Ty::Class(class.this_class) });
    }
    for p in MethodDescriptor::parse(descriptor)?.parameters() {
        out.push(names.field(pool, p)?);
    }
    Some(())
}

/// Spreads values over slots.
pub(crate) fn to_slots(values: &[Ty], max_locals: u16, out: &mut Vec<Ty>) -> Option<()> {
    out.clear();
    for &t in values {
        out.push(t);
        if t.is_wide() {
            out.push(Ty::Top);
        }
    }
    if out.len() > usize::from(max_locals) {
        return None;
    }
    out.resize(usize::from(max_locals), Ty::Top);
    Some(())
}

/// Applies a frame to the values of the frame before.
pub(crate) fn apply_frame(
    frame: &Frame<'_>,
    locals: &mut Vec<Ty>,
    stack: &mut Vec<Ty>,
) -> Option<()> {
    stack.clear();
    match frame.kind {
        FrameKind::Same => {}
        FrameKind::SameStack1(t) => stack.push(t.into()),
        FrameKind::Chop(n) => {
            let left = locals.len().checked_sub(usize::from(n))?;
            locals.truncate(left);
        }
        FrameKind::Append(types) => locals.extend(types.iter().map(Ty::from)),
        FrameKind::Full { locals: l, stack: s } => {
            locals.clear();
            locals.extend(l.iter().map(Ty::from));
            stack.extend(s.iter().map(Ty::from));
        }
    }
    Some(())
}

impl State {
    pub fn pop(&mut self) -> Option<Ty> {
        self.stack.pop()
    }

    /// Pops a value of one word.
    fn pop1(&mut self) -> Option<Ty> {
        self.stack.pop().filter(|t| !t.is_wide())
    }

    fn set_local(&mut self, local: u16, ty: Ty) -> Option<()> {
        let at = usize::from(local);
        // Half of a wide value is no value.
        if let Some(before) = at.checked_sub(1).and_then(|b| self.locals.get_mut(b))
            && before.is_wide()
        {
            *before = Ty::Top;
        }
        let old = std::mem::replace(self.locals.get_mut(at)?, ty);
        if ty.is_wide() {
            let second = self.locals.get_mut(at + 1)?;
            let second_was = std::mem::replace(second, Ty::Top);
            if second_was.is_wide() {
                *self.locals.get_mut(at + 2)? = Ty::Top;
            }
        } else if old.is_wide() {
            *self.locals.get_mut(at + 1)? = Ty::Top;
        }
        Some(())
    }

    /// Replaces a type everywhere, as the call of a constructor does.
    fn replace(&mut self, from: Ty, to: Ty) {
        for t in self.locals.iter_mut().chain(&mut self.stack) {
            if *t == from {
                *t = to;
            }
        }
    }

    /// Executes one instruction; `None` when the types do not work out.
    pub fn step(&mut self, insn: &Insn<'_>, cx: &mut Context<'_, '_>) -> Option<()> {
        let row = insn.info();
        let by_table = !row.pop.contains('?') && !row.push.contains('?');
        if by_table {
            let mut popped = None;
            for &want in row.pop.as_bytes().iter().rev() {
                let got = self.pop()?;
                let fits = match want {
                    b'I' => got == Ty::Int,
                    b'J' => got == Ty::Long,
                    b'F' => got == Ty::Float,
                    b'D' => got == Ty::Double,
                    _ => got.is_reference(),
                };
                if !fits {
                    return None;
                }
                popped = Some(got);
            }
            match (row.push.as_bytes(), insn.local()) {
                (&[], Some(local)) => match popped {
                    // Stores have a local and a value; `ret` and `iinc` have no value.
                    Some(value) => self.set_local(local, value)?,
                    None => return self.locals.get(usize::from(local)).map(|_| ()),
                },
                (&[], None) => {}
                (&[b'L'], Some(local)) => {
                    let value = *self.locals.get(usize::from(local))?;
                    if !value.is_reference() {
                        return None;
                    }
                    self.stack.push(value);
                }
                (&[kind], _) => self.stack.push(match kind {
                    b'I' => Ty::Int,
                    b'J' => Ty::Long,
                    b'F' => Ty::Float,
                    b'D' => Ty::Double,
                    b'N' => Ty::Null,
                    b'R' => Ty::Return,
                    _ => return None,
                }),
                _ => return None,
            }
            return Some(());
        }
        self.special(insn, cx)
    }

    fn special(&mut self, insn: &Insn<'_>, cx: &mut Context<'_, '_>) -> Option<()> {
        let pool = &cx.class.pool;
        match insn.opcode {
            op::LDC | op::LDC_W | op::LDC2_W => {
                let index = insn.constant()?;
                let name: &'static [u8] = match pool.get(index).ok()? {
                    Constant::Integer(_) => return self.push(Ty::Int),
                    Constant::Float(_) => return self.push(Ty::Float),
                    Constant::Long(_) => return self.push(Ty::Long),
                    Constant::Double(_) => return self.push(Ty::Double),
                    Constant::String { .. } => b"java/lang/String",
                    Constant::Class { .. } => b"java/lang/Class",
                    Constant::MethodHandle { .. } => b"java/lang/invoke/MethodHandle",
                    Constant::MethodType { .. } => b"java/lang/invoke/MethodType",
                    Constant::Dynamic { .. } => {
                        let (_, descriptor) = pool.dynamic(index).ok()?;
                        let ty = cx.names.field(cx.pool, descriptor)?;
                        return self.push(ty);
                    }
                    _ => return None,
                };
                let ty = cx.names.class(cx.pool, Cow::Borrowed(name));
                self.push(ty)
            }
            op::AALOAD => {
                self.pop()?;
                let array = self.pop()?;
                // The entry may be one that was added for another method's frames.
                let name = match array {
                    Ty::Class(index) => cx.pool.class_name(index)?,
                    Ty::Named(id) => cx.names.get(id),
                    Ty::Null => return self.push(Ty::Null),
                    _ => return None,
                };
                let element = Cow::Owned(element_name(name)?.to_vec());
                let ty = cx.names.class(cx.pool, element);
                self.push(ty)
            }
            op::POP..=op::SWAP => self.shuffle(insn.opcode),
            op::GETSTATIC | op::GETFIELD | op::PUTSTATIC | op::PUTFIELD => {
                let member = pool.member(insn.constant()?).ok()?;
                let ty = cx.names.field(cx.pool, member.descriptor)?;
                if matches!(insn.opcode, op::PUTSTATIC | op::PUTFIELD) {
                    self.pop()?;
                }
                if matches!(insn.opcode, op::GETFIELD | op::PUTFIELD) {
                    self.pop1()?;
                }
                if matches!(insn.opcode, op::GETSTATIC | op::GETFIELD) {
                    self.push(ty)?;
                }
                Some(())
            }
            op::INVOKEVIRTUAL..=op::INVOKEDYNAMIC => self.invoke(insn, cx),
            op::NEW => {
                let ty = Ty::Uninit(insn.offset as u16);
                // An object from an earlier round that was never initialised is lost.
                self.replace(ty, Ty::Top);
                self.push(ty)
            }
            op::NEWARRAY => {
                self.pop()?;
                let name: &'static [u8] = match insn.number()? {
                    4 => b"[Z",
                    5 => b"[C",
                    6 => b"[F",
                    7 => b"[D",
                    8 => b"[B",
                    9 => b"[S",
                    10 => b"[I",
                    11 => b"[J",
                    _ => return None,
                };
                let ty = cx.names.class(cx.pool, Cow::Borrowed(name));
                self.push(ty)
            }
            op::ANEWARRAY => {
                self.pop()?;
                let element = pool.class_name(insn.constant()?).ok()?;
                let name = match element.first() {
                    Some(b'[') => [b"[", element].concat(),
                    _ => [b"[L", element, b";"].concat(),
                };
                let ty = cx.names.class(cx.pool, Cow::Owned(name));
                self.push(ty)
            }
            op::CHECKCAST => {
                self.pop1()?;
                self.push(Ty::Class(insn.constant()?))
            }
            op::MULTIANEWARRAY => {
                for _ in 0..insn.number()? {
                    self.pop1()?;
                }
                self.push(Ty::Class(insn.constant()?))
            }
            _ => None,
        }
    }

    fn push(&mut self, ty: Ty) -> Option<()> {
        self.stack.push(ty);
        Some(())
    }

    fn invoke(&mut self, insn: &Insn<'_>, cx: &mut Context<'_, '_>) -> Option<()> {
        let pool = &cx.class.pool;
        let index = insn.constant()?;
        let (name, descriptor) = if insn.opcode == op::INVOKEDYNAMIC {
            pool.dynamic(index).ok()?
        } else {
            let m = pool.member(index).ok()?;
            (m.name, m.descriptor)
        };
        let d = MethodDescriptor::parse(descriptor)?;
        for _ in d.parameters() {
            self.pop()?;
        }
        if !matches!(insn.opcode, op::INVOKESTATIC | op::INVOKEDYNAMIC) {
            let receiver = self.pop1()?;
            if name == b"<init>" {
                let ready = match receiver {
                    Ty::UninitThis => {
                        self.uninit = false;
                        Ty::Class(cx.class.this_class)
                    }
                    Ty::Uninit(at) => {
                        let made = insn_at(cx.code.code, usize::from(at)).ok()?;
                        Ty::Class(made.constant().filter(|_| made.opcode == op::NEW)?)
                    }
                    _ => return None,
                };
                self.replace(receiver, ready);
            }
        }
        match d.returns {
            b"V" => Some(()),
            returns => {
                let ty = cx.names.field(cx.pool, returns)?;
                self.push(ty)
            }
        }
    }

    /// The instructions that move stack words; values are one or two words wide.
    fn shuffle(&mut self, opcode: u8) -> Option<()> {
        // Copies the top `take` words below another `skip` words.
        let (take, skip) = match opcode {
            op::POP => return self.pop_words(1).map(|_| ()),
            op::POP2 => return self.pop_words(2).map(|_| ()),
            op::SWAP => {
                let (a, b) = (self.pop1()?, self.pop1()?);
                self.stack.extend([a, b]);
                return Some(());
            }
            op::DUP => (1, 0),
            op::DUP_X1 => (1, 1),
            op::DUP_X2 => (1, 2),
            op::DUP2 => (2, 0),
            op::DUP2_X1 => (2, 1),
            op::DUP2_X2 => (2, 2),
            _ => return None,
        };
        let top = self.pop_words(take)?;
        let below = self.pop_words(skip)?;
        for part in [top, below, top] {
            self.stack.extend(part.into_iter().flatten());
        }
        Some(())
    }

    /// Pops up to two words: at most two values, in their order on the stack.
    fn pop_words(&mut self, words: u32) -> Option<[Option<Ty>; 2]> {
        match words {
            0 => Some([None, None]),
            1 => Some([Some(self.pop1()?), None]),
            _ => {
                let top = self.pop()?;
                if top.is_wide() {
                    return Some([Some(top), None]);
                }
                Some([Some(self.pop1()?), Some(top)])
            }
        }
    }

    /// Merges another way to the same place into this state; whether anything changed.
    pub fn merge(&mut self, other: &State, at: u32) -> Result<bool, Refusal> {
        if self.stack.len() != other.stack.len() || self.locals.len() != other.locals.len() {
            return Err(Refusal::BadTypes(at));
        }
        let mut changed = false;
        let theirs = other.locals.iter().chain(&other.stack);
        for (mine, theirs) in self.locals.iter_mut().chain(&mut self.stack).zip(theirs) {
            let both = match (*mine, *theirs) {
                (a, b) if a == b => a,
                (Ty::Null, b) if is_object(b) => b,
                (a, Ty::Null) if is_object(a) => a,
                (a, b) if is_object(a) && is_object(b) => OBJECT,
                _ => Ty::Top,
            };
            changed |= both != *mine;
            *mine = both;
        }
        Ok(changed)
    }
}

/// Some object, when two ways disagree: an id that no table has means `java/lang/Object`.
pub(crate) const OBJECT: Ty = Ty::Named(u32::MAX);

fn is_object(t: Ty) -> bool {
    matches!(t, Ty::Class(_) | Ty::Named(_))
}

fn element_name(array: &[u8]) -> Option<&[u8]> {
    match array {
        // An object that lost its exact type in a merge still has elements.
        b"java/lang/Object" => Some(array),
        [b'[', b'L', name @ .., b';'] => Some(name),
        [b'[', rest @ ..] if rest.starts_with(b"[") => Some(rest),
        _ => None,
    }
}

fn next_frame<'a>(frames: &mut Option<Frames<'a>>) -> Result<Option<Frame<'a>>, Refusal> {
    match frames {
        Some(f) => f.next_frame().map_err(Refusal::BadCode),
        None => Ok(None),
    }
}

/// Runs over a method that has a stack map (or needs none), calling `visit` with the state before
/// each instruction; `visit` returns whether to go on.
pub(crate) fn with_frames(
    cx: &mut Context<'_, '_>,
    scan: &Scan,
    initial: &[Ty],
    frames: Option<Frames<'_>>,
    mut visit: impl FnMut(&Insn<'_>, &State) -> Result<bool, Refusal>,
) -> Result<(), Refusal> {
    let bad = |at: u32| Refusal::BadTypes(at);
    let mut state = State { uninit: initial.contains(&Ty::UninitThis), ..State::default() };
    to_slots(initial, cx.code.max_locals, &mut state.locals).ok_or(bad(0))?;
    let mut values = initial.to_vec();
    let mut frames = frames;
    let mut frame = next_frame(&mut frames)?;
    let mut known = true;
    for &pc in &scan.starts {
        let insn = insn_at(cx.code.code, pc as usize).map_err(Refusal::BadCode)?;
        if let Some(f) = frame.filter(|f| f.offset == pc) {
            apply_frame(&f, &mut values, &mut state.stack).ok_or(bad(pc))?;
            to_slots(&values, cx.code.max_locals, &mut state.locals).ok_or(bad(pc))?;
            state.uninit = values.contains(&Ty::UninitThis);
            frame = next_frame(&mut frames)?;
        } else if !known {
            return Err(Refusal::NoFrame(pc));
        }
        if !visit(&insn, &state)? {
            return Ok(());
        }
        state.step(&insn, cx).ok_or(bad(pc))?;
        known = bits_of(insn.opcode) & bits::NO_FALL == 0;
    }
    Ok(())
}
