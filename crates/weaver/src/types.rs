//! Verification types during simulation.
//!
//! They can name a class that the constant pool has no entry for yet; an entry is only made when
//! such a type is written into a frame.

use std::borrow::Cow;
use tare_classfile::VerificationType;
use tare_classfile::descriptor::class_constant_name;
use tare_classfile::writer::PoolBuilder;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Top,
    Int,
    Float,
    Long,
    Double,
    Null,
    UninitThis,
    /// Made by the `new` at this offset of the original code.
    Uninit(u16),
    /// A `Class` entry.
    Class(u16),
    /// A name in [`Names`].
    Named(u32),
    /// The return address of a subroutine.
    Return,
}

impl Ty {
    pub fn is_wide(self) -> bool {
        matches!(self, Self::Long | Self::Double)
    }

    pub fn is_reference(self) -> bool {
        !matches!(self, Self::Top | Self::Int | Self::Float | Self::Long | Self::Double)
    }
}

impl From<VerificationType> for Ty {
    fn from(t: VerificationType) -> Self {
        match t {
            VerificationType::Top => Self::Top,
            VerificationType::Integer => Self::Int,
            VerificationType::Float => Self::Float,
            VerificationType::Double => Self::Double,
            VerificationType::Long => Self::Long,
            VerificationType::Null => Self::Null,
            VerificationType::UninitializedThis => Self::UninitThis,
            VerificationType::Object(class) => Self::Class(class),
            VerificationType::Uninitialized(offset) => Self::Uninit(offset),
        }
    }
}

/// Class names that types refer to, for one method.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    names: Vec<Cow<'a, [u8]>>,
}

impl<'a> Names<'a> {
    pub fn get(&self, id: u32) -> &[u8] {
        self.names.get(id as usize).map_or(b"java/lang/Object", |n| n)
    }

    /// A type by the name that a `Class` constant would use.
    pub fn class(&mut self, pool: &mut PoolBuilder<'_>, name: Cow<'a, [u8]>) -> Ty {
        if let Some(index) = pool.find_class(&name) {
            return Ty::Class(index);
        }
        let known = self.names.iter().position(|n| *n == name);
        let id = known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        Ty::Named(id as u32)
    }

    /// The type of a field type's value; `None` for `V`.
    pub fn field(&mut self, pool: &mut PoolBuilder<'_>, descriptor: &'a [u8]) -> Option<Ty> {
        Some(match descriptor.first()? {
            b'B' | b'C' | b'S' | b'Z' | b'I' => Ty::Int,
            b'F' => Ty::Float,
            b'J' => Ty::Long,
            b'D' => Ty::Double,
            b'L' | b'[' => self.class(pool, Cow::Borrowed(class_constant_name(descriptor))),
            _ => return None,
        })
    }
}
