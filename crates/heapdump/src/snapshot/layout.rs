//! How to read an object's bytes: which class it is of, and how long it is.

use super::{Class, ClassKind, Head};

/// Where things are in objects of one snapshot.
#[derive(Clone, Debug)]
pub struct Layout {
    head: Head,
}

impl Layout {
    #[must_use]
    pub fn of(head: &Head) -> Self {
        Layout { head: head.clone() }
    }

    /// The bytes of an object that have to be there before its size can be told.
    #[must_use]
    pub fn least(&self) -> usize {
        let known = [
            self.head.klass_offset + 8,
            self.head.array_length_offset + 4,
            self.head.mirror_size_offset + 4,
            self.head.stack_chunk_size_offset + 4,
        ];
        known.into_iter().max().unwrap_or(0) as usize
    }

    /// The address of an object's class; `None` when the bytes do not reach that far.
    #[must_use]
    pub fn klass(&self, object: &[u8]) -> Option<u64> {
        if let Some(compact) = self.head.compact_headers {
            let number = word(object, 0)?.checked_shr(compact.klass_shift)?;
            let number = u32::try_from(number).ok()?;
            return Some(self.head.narrow_klass?.address(number));
        }
        let at = self.head.klass_offset as usize;
        match self.head.narrow_klass {
            Some(narrow) => Some(narrow.address(int(object, at)?)),
            None => word(object, at),
        }
    }

    /// The length of an array.
    #[must_use]
    pub fn array_length(&self, object: &[u8]) -> Option<u32> {
        int(object, self.head.array_length_offset as usize).filter(|n| i32::try_from(*n).is_ok())
    }

    /// The bytes that an object takes, with what aligns the next one. `None` when the bytes do not
    /// reach that far, or cannot be of an object of this class.
    #[must_use]
    pub fn size_of(&self, class: &Class, object: &[u8]) -> Option<u64> {
        let size = match class.kind {
            ClassKind::Instance { .. } if class.is_mirror_class => {
                8 * u64::from(int(object, self.head.mirror_size_offset as usize)?)
            }
            ClassKind::Instance { size } if class.is_stack_chunk => {
                let words = u64::from(int(object, self.head.stack_chunk_size_offset as usize)?);
                let bits = if self.head.narrow_oop.is_some() { 2 * words } else { words };
                u64::from(size) + 8 * words + 8 * bits.div_ceil(64)
            }
            ClassKind::Instance { size } => u64::from(size),
            ClassKind::ObjectArray { first, element }
            | ClassKind::PrimitiveArray { first, element, .. } => {
                u64::from(first) + u64::from(element) * u64::from(self.array_length(object)?)
            }
        };
        let alignment = u64::from(self.head.object_alignment.max(8));
        Some(size.next_multiple_of(alignment)).filter(|size| *size > 0)
    }

    /// The reference at an offset of an object; zero is null.
    #[must_use]
    pub fn reference(&self, object: &[u8], offset: usize) -> Option<u64> {
        match self.head.narrow_oop {
            Some(narrow) => match int(object, offset)? {
                0 => Some(0),
                number => Some(narrow.address(number)),
            },
            None => word(object, offset),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
