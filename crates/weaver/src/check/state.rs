//! What one instruction does to the kinds of values on the stack and in the locals.

use crate::types::Ty;
use tare_classfile::Insn;
use tare_classfile::descriptor::MethodDescriptor;
use tare_classfile::opcode::op;
use tare_classfile::pool::tag;
use tare_classfile::stackmap::VerificationType;
use tare_classfile::writer::PoolBuilder;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Top,
    Int,
    Float,
    Long,
    Double,
    Null,
    /// An initialised object of whichever class.
    Object,
    UninitThis,
    Uninit(u16),
}

impl Kind {
    fn is_wide(self) -> bool {
        matches!(self, Self::Long | Self::Double)
    }

    fn is_reference(self) -> bool {
        !matches!(self, Self::Top | Self::Int | Self::Float | Self::Long | Self::Double)
    }

    fn is_initialised(self) -> bool {
        matches!(self, Self::Null | Self::Object)
    }

    /// Whether a value of this kind may be where a frame says `to`.
    pub fn fits(self, to: Self) -> bool {
        self == to || to == Self::Top || (self == Self::Null && to == Self::Object)
    }

    /// Of a field type.
    fn of(descriptor: &[u8]) -> Option<Self> {
        Some(match descriptor.first()? {
            b'B' | b'C' | b'S' | b'Z' | b'I' => Self::Int,
            b'F' => Self::Float,
            b'J' => Self::Long,
            b'D' => Self::Double,
            b'L' | b'[' => Self::Object,
            _ => return None,
        })
    }
}

impl From<Ty> for Kind {
    fn from(ty: Ty) -> Self {
        match ty {
            Ty::Top | Ty::Return => Self::Top,
            Ty::Int => Self::Int,
            Ty::Float => Self::Float,
            Ty::Long => Self::Long,
            Ty::Double => Self::Double,
            Ty::Null => Self::Null,
            Ty::UninitThis => Self::UninitThis,
            Ty::Uninit(at) => Self::Uninit(at),
            Ty::Class(_) | Ty::Named(_) => Self::Object,
        }
    }
}

impl From<VerificationType> for Kind {
    fn from(ty: VerificationType) -> Self {
        Ty::from(ty).into()
    }
}

/// Locals by slot (the second half of a wide value is `Top`), stack by value.
#[derive(Debug, Default)]
pub(super) struct State {
    pub locals: Vec<Kind>,
    pub stack: Vec<Kind>,
    /// HotSpot's `flagThisUninit`: of a frame, that a local holds an uninitialised `this`; of code,
    /// that no constructor of it was called since.
    pub uninit: bool,
}

impl State {
    /// As a method begins.
    pub fn begin(&mut self, values: &[Kind], max_locals: u16) -> Option<()> {
        self.stack.clear();
        self.locals.clear();
        self.uninit = values.contains(&Kind::UninitThis);
        spread(values, max_locals, &mut self.locals)
    }

    /// As a frame says.
    pub fn become_frame(&mut self, locals: &[Kind], stack: &[Kind], uninit: bool) {
        self.locals.clear();
        self.locals.extend_from_slice(locals);
        self.stack.clear();
        self.stack.extend_from_slice(stack);
        self.uninit = uninit;
    }

    fn pop(&mut self) -> Option<Kind> {
        self.stack.pop()
    }

    /// Pops a value of one word.
    fn pop1(&mut self) -> Option<Kind> {
        self.stack.pop().filter(|k| !k.is_wide())
    }

    fn push(&mut self, kind: Kind) -> Option<()> {
        self.stack.push(kind);
        Some(())
    }

    fn store(&mut self, local: usize, kind: Kind) -> Option<()> {
        // Half of a wide value is no value.
        if let Some(before) = local.checked_sub(1).and_then(|b| self.locals.get_mut(b))
            && before.is_wide()
        {
            *before = Kind::Top;
        }
        *self.locals.get_mut(local)? = kind;
        if kind.is_wide() {
            *self.locals.get_mut(local + 1)? = Kind::Top;
        }
        Some(())
    }

    fn replace(&mut self, from: Kind, to: Kind) {
        for kind in self.locals.iter_mut().chain(&mut self.stack) {
            if *kind == from {
                *kind = to;
            }
        }
    }

    /// What an instruction does to the types; `None` when it cannot.
    pub fn step(&mut self, insn: &Insn<'_>, pool: &PoolBuilder<'_>) -> Option<()> {
        let row = insn.info();
        match insn.opcode {
            op::LDC | op::LDC_W | op::LDC2_W => {
                let index = insn.constant()?;
                self.push(match pool.tag(index)? {
                    tag::INTEGER => Kind::Int,
                    tag::FLOAT => Kind::Float,
                    tag::LONG => Kind::Long,
                    tag::DOUBLE => Kind::Double,
                    tag::DYNAMIC => Kind::of(pool.name_and_type(index)?.1)?,
                    _ => Kind::Object,
                })
            }
            op::POP..=op::SWAP => self.shuffle(insn.opcode),
            op::GETSTATIC..=op::PUTFIELD => {
                let kind = Kind::of(pool.name_and_type(insn.constant()?)?.1)?;
                if matches!(insn.opcode, op::PUTSTATIC | op::PUTFIELD) {
                    self.pop().filter(|k| k.fits(kind))?;
                }
                if matches!(insn.opcode, op::GETFIELD | op::PUTFIELD) {
                    self.pop().filter(|k| k.is_reference())?;
                }
                match insn.opcode {
                    op::GETSTATIC | op::GETFIELD => self.push(kind),
                    _ => Some(()),
                }
            }
            op::INVOKEVIRTUAL..=op::INVOKEDYNAMIC => self.invoke(insn, pool),
            op::NEW => {
                let made = Kind::Uninit(insn.offset as u16);
                // One of an earlier round that was never initialised is lost.
                self.replace(made, Kind::Top);
                self.push(made)
            }
            op::AALOAD => {
                self.pop().filter(|k| *k == Kind::Int)?;
                self.pop().filter(|k| k.is_initialised())?;
                self.push(Kind::Object)
            }
            op::NEWARRAY | op::ANEWARRAY => {
                self.pop().filter(|k| *k == Kind::Int)?;
                self.push(Kind::Object)
            }
            op::CHECKCAST => {
                self.pop().filter(|k| k.is_initialised())?;
                self.push(Kind::Object)
            }
            op::MULTIANEWARRAY => {
                for _ in 0..insn.number()? {
                    self.pop().filter(|k| *k == Kind::Int)?;
                }
                self.push(Kind::Object)
            }
            _ => {
                let mut value = None;
                for &want in row.pop.as_bytes().iter().rev() {
                    let got = self.pop()?;
                    if !letter(want).map_or(got.is_reference(), |kind| got == kind) {
                        return None;
                    }
                    value = Some(got);
                }
                let local = insn.local().map(usize::from);
                match (row.push.as_bytes(), local, value) {
                    (&[], Some(local), Some(value)) => self.store(local, value),
                    // `iinc`
                    (&[], Some(local), None) => self.held(local, Kind::Int),
                    (&[], None, _) => Some(()),
                    (b"L", Some(local), _) => {
                        let value = *self.locals.get(local)?;
                        self.push(value).filter(|()| value.is_reference())
                    }
                    (b"N", ..) => self.push(Kind::Null),
                    (&[pushed], local, _) => {
                        let kind = letter(pushed)?;
                        if let Some(local) = local {
                            self.held(local, kind)?;
                        }
                        self.push(kind)
                    }
                    _ => None,
                }
            }
        }
    }

    /// Whether a local holds a value of a kind.
    fn held(&self, local: usize, kind: Kind) -> Option<()> {
        (self.locals.get(local) == Some(&kind)).then_some(())
    }

    fn invoke(&mut self, insn: &Insn<'_>, pool: &PoolBuilder<'_>) -> Option<()> {
        let (name, descriptor) = pool.name_and_type(insn.constant()?)?;
        let descriptor = MethodDescriptor::parse(descriptor)?;
        let parameters = descriptor.parameters().count();
        let first = self.stack.len().checked_sub(parameters)?;
        for (given, wanted) in self.stack.get(first..)?.iter().zip(descriptor.parameters()) {
            if !given.fits(Kind::of(wanted)?) {
                return None;
            }
        }
        self.stack.truncate(first);
        if !matches!(insn.opcode, op::INVOKESTATIC | op::INVOKEDYNAMIC) {
            let receiver = self.pop()?;
            if name == b"<init>" {
                if !matches!(receiver, Kind::UninitThis | Kind::Uninit(_)) {
                    return None;
                }
                self.replace(receiver, Kind::Object);
                self.uninit &= receiver != Kind::UninitThis;
            } else if !receiver.is_initialised() {
                return None;
            }
        }
        match descriptor.returns {
            b"V" => Some(()),
            returns => self.push(Kind::of(returns)?),
        }
    }

    /// The instructions that move stack words.
    fn shuffle(&mut self, opcode: u8) -> Option<()> {
        if opcode == op::SWAP {
            let (top, below) = (self.pop1()?, self.pop1()?);
            self.stack.extend([top, below]);
            return Some(());
        }
        let (take, skip, copy) = match opcode {
            op::POP => (1, 0, false),
            op::POP2 => (2, 0, false),
            op::DUP => (1, 0, true),
            op::DUP_X1 => (1, 1, true),
            op::DUP_X2 => (1, 2, true),
            op::DUP2 => (2, 0, true),
            op::DUP2_X1 => (2, 1, true),
            op::DUP2_X2 => (2, 2, true),
            _ => return None,
        };
        let from = self.words_below(self.stack.len(), take)?;
        let to = self.words_below(from, skip)?;
        if copy {
            let top: Vec<Kind> = self.stack.get(from..)?.to_vec();
            self.stack.splice(to..to, top);
        } else {
            self.stack.truncate(from);
        }
        Some(())
    }

    /// The index that is `words` below `end`, between two values.
    fn words_below(&self, end: usize, words: u32) -> Option<usize> {
        let (mut at, mut left) = (end, words);
        while left > 0 {
            at = at.checked_sub(1)?;
            left = left.checked_sub(if self.stack.get(at)?.is_wide() { 2 } else { 1 })?;
        }
        Some(at)
    }

    pub fn depth(&self) -> usize {
        self.stack.iter().map(|k| 1 + usize::from(k.is_wide())).sum()
    }
}

/// Appends the values of a frame by slots, as many as the method has.
pub(super) fn spread(values: &[Kind], max_locals: u16, out: &mut Vec<Kind>) -> Option<()> {
    let end = out.len() + usize::from(max_locals);
    for &value in values {
        out.push(value);
        if value.is_wide() {
            out.push(Kind::Top);
        }
    }
    if out.len() > end {
        return None;
    }
    out.resize(end, Kind::Top);
    Some(())
}

/// Whether values may be where a frame says what is there.
pub(super) fn all_fit(values: &[Kind], frame: &[Kind]) -> bool {
    values.iter().zip(frame).all(|(value, to)| value.fits(*to))
}

/// A letter of the opcode table; `None` for those that mean some reference.
fn letter(letter: u8) -> Option<Kind> {
    Some(match letter {
        b'I' => Kind::Int,
        b'J' => Kind::Long,
        b'F' => Kind::Float,
        b'D' => Kind::Double,
        _ => return None,
    })
}
