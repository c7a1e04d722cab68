//! What a dump is to the graph: classes, roots, threads, and objects that can be walked over in
//! parts, or looked up one by one. How a file stores them is the business of `hprof` and
//! `snapshot`.

use crate::classes::{ClassId, Classes, Type};
use crate::error::Result;
use crate::layout::Layout;
use crate::roots::{Root, Thread};
use crate::snapshot::Sample;

pub trait Source: Send + Sync {
    fn classes(&self) -> &Classes;
    fn roots(&self) -> &[Root];
    fn threads(&self) -> &[Thread];
    fn layout(&self) -> Layout;
    fn decoder(&self) -> Decoder;
    fn about(&self) -> About;

    /// What opening the file with an index must know beside it, as JSON.
    fn state(&self) -> std::result::Result<Vec<u8>, serde_json::Error>;
    /// Whether it is a snapshot of ours.
    fn is_snapshot(&self) -> bool;

    /// Objects that a recording of allocation has sampled.
    fn samples(&self) -> &[Sample] {
        &[]
    }

    /// For each part of the dump, the most references in it, with one more for each object.
    fn parts(&self) -> Vec<Part>;

    /// Walks over the objects of a part.
    fn walk(&self, part: usize, visitor: &mut dyn Visitor) -> Result<()>;

    /// One object, with no more than so many elements or bytes of an array, from one of them on.
    fn object(&self, address: u64, skip: u32, limit: u32) -> Result<Option<Object>>;
}

/// What is known of the whole.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Milliseconds since 1970; 0 if unknown.
    pub taken: u64,
    /// `HotSpot 17.0.9 on pid 4711`, or where it comes from; empty if unknown.
    pub origin: String,
    /// What is missing, in sentences.
    pub notes: Vec<String>,
    /// Whether values of primitive fields and arrays were left out.
    pub is_redacted: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub most_edges: u64,
    pub objects: u64,
    /// Of the file, for progress.
    pub bytes: u64,
}

/// Is shown objects, in any order. Those of several parts are shown by several threads.
pub trait Visitor {
    /// Whether it wants what is in arrays of primitive values.
    fn wants_values(&self) -> bool {
        false
    }

    /// The object of a class, with what it refers to.
    fn class(&mut self, address: u64, class: ClassId, references: &[u64]);

    fn instance(&mut self, address: u64, class: ClassId, bytes: &[u8]);

    /// An array of references; its elements follow in portions, and then its end.
    fn array(&mut self, address: u64, class: ClassId, length: u32);
    fn elements(&mut self, elements: &[u64]);
    fn array_end(&mut self);

    /// The bytes are all of it, the beginning of a large one, or none if they are not wanted.
    fn values(&mut self, address: u64, kind: Type, length: u32, bytes: &[u8]);
}

/// The bytes of a primitive array that a visitor sees.
pub const MOST_VALUES: usize = 1 << 20;

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoder {
    /// Big endian, with references of so many bytes.
    Big(u32),
    /// As in the memory of a JVM on x86 and ARM.
    Little,
    /// The same with compressed references.
    Narrow { base: u64, shift: u32 },
}

impl Decoder {
    /// The value of a type at a place; 0 if the bytes end before it.
    #[inline]
    pub fn value(self, bytes: &[u8], offset: u32, kind: Type) -> u64 {
        if kind == Type::Reference {
            return self.reference(bytes, offset);
        }
        let begin = offset as usize;
        let Some(bytes) = bytes.get(begin..begin + kind.size(0) as usize) else { return 0 };
        let join = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
        match self {
            Decoder::Big(_) => bytes.iter().fold(0, join),
            _ => bytes.iter().rev().fold(0, join),
        }
    }

    #[inline]
    pub fn reference(self, bytes: &[u8], offset: u32) -> u64 {
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let eight = rest.first_chunk::<8>();
        let four = rest.first_chunk::<4>();
        match self {
            Decoder::Big(8) => eight.map_or(0, |b| u64::from_be_bytes(*b)),
            Decoder::Big(_) => four.map_or(0, |b| u64::from(u32::from_be_bytes(*b))),
            Decoder::Little => eight.map_or(0, |b| u64::from_le_bytes(*b)),
            Decoder::Narrow { base, shift } => match four.map_or(0, |b| u32::from_le_bytes(*b)) {
                0 => 0,
                narrow => base.wrapping_add(u64::from(narrow) << shift),
            },
        }
    }
}

/// An object that was looked up.
#[derive(Clone, Debug)]
pub enum Object {
    /// The object of this class.
    Class(ClassId),
    Instance {
        class: ClassId,
        bytes: Vec<u8>,
    },
    Array {
        class: ClassId,
        length: u32,
        elements: Vec<u64>,
    },
    Values {
        kind: Type,
        length: u32,
        bytes: Vec<u8>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_either_order() {
        let bytes = [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 1];
        assert_eq!(Decoder::Big(8).value(&bytes, 0, Type::Short), 0x1234);
        assert_eq!(Decoder::Little.value(&bytes, 0, Type::Int), 0x7856_3412);
        assert_eq!(Decoder::Big(4).reference(&bytes, 4), 1);
        assert_eq!(Decoder::Big(8).reference(&bytes, 0), 0x1234_5678_0000_0001);
        let narrow = Decoder::Narrow { base: 0x100, shift: 3 };
        assert_eq!(narrow.reference(&[2, 0, 0, 0], 0), 0x110);
        assert_eq!(narrow.reference(&[0, 0, 0, 0], 0), 0);
        assert_eq!(narrow.reference(&[2, 0, 0], 0), 0);
        assert_eq!(Decoder::Big(8).value(&bytes, u32::MAX, Type::Int), 0);
    }
}
