//! The constant pool, read.
//!
//! Entries stay bytes; the pool keeps only where each one starts. Adding entries is the
//! [writer](crate::writer)'s job.

use crate::error::{Error, ErrorKind, Result};
use crate::reader::Reader;

/// Constant-pool tags (JVMS table 4.4-A).
pub mod tag {
    pub const UTF8: u8 = 1;
    pub const INTEGER: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const LONG: u8 = 5;
    pub const DOUBLE: u8 = 6;
    pub const CLASS: u8 = 7;
    pub const STRING: u8 = 8;
    pub const FIELDREF: u8 = 9;
    pub const METHODREF: u8 = 10;
    pub const INTERFACE_METHODREF: u8 = 11;
    pub const NAME_AND_TYPE: u8 = 12;
    pub const METHOD_HANDLE: u8 = 15;
    pub const METHOD_TYPE: u8 = 16;
    pub const DYNAMIC: u8 = 17;
    pub const INVOKE_DYNAMIC: u8 = 18;
    pub const MODULE: u8 = 19;
    pub const PACKAGE: u8 = 20;
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant<'a> {
    Utf8(&'a [u8]),
    Integer(i32),
    Float(f32),
    Long(i64),
    Double(f64),
    Class { name: u16 },
    String { utf8: u16 },
    Field { class: u16, name_and_type: u16 },
    Method { class: u16, name_and_type: u16 },
    InterfaceMethod { class: u16, name_and_type: u16 },
    NameAndType { name: u16, descriptor: u16 },
    MethodHandle { kind: u8, reference: u16 },
    MethodType { descriptor: u16 },
    Dynamic { bootstrap: u16, name_and_type: u16 },
    InvokeDynamic { bootstrap: u16, name_and_type: u16 },
    Module { name: u16 },
    Package { name: u16 },
}

/// A field or method that an instruction names, resolved to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRef<'a> {
    /// Internal name of the class, or an array descriptor.
    pub owner: &'a [u8],
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
}

#[derive(Clone, Debug)]
pub struct ConstantPool<'a> {
    file: &'a [u8],
    /// Offset of each entry's tag in `file`; 0 where there is no entry.
    offsets: Vec<u32>,
    /// Where the entries start and end in `file`.
    start: usize,
    end: usize,
}

impl<'a> ConstantPool<'a> {
    /// Reads a pool that stands alone: its count, then its entries.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        Self::parse(bytes, &mut Reader::new(bytes, 0))
    }

    /// Reads the pool; `r` stands at its count and must read `file` from its first byte.
    pub(crate) fn parse(file: &'a [u8], r: &mut Reader<'a>) -> Result<Self> {
        let count = r.u2()?;
        if count == 0 {
            return r.fail(ErrorKind::BadConstantIndex(0));
        }
        let start = r.position();
        // Each entry takes at least three bytes, so a short file cannot make us reserve much.
        let mut offsets = Vec::with_capacity(usize::from(count).min(r.remaining() / 3 + 2));
        offsets.push(0);
        while offsets.len() < usize::from(count) {
            let at = r.offset();
            offsets.push(at as u32);
            let t = r.u1()?;
            let len = match t {
                tag::UTF8 => usize::from(r.u2()?),
                tag::INTEGER | tag::FLOAT => 4,
                tag::LONG | tag::DOUBLE => {
                    // It takes two indexes; entries that are added would be off by one without.
                    if offsets.len() == usize::from(count) {
                        return Err(Error::new(at, ErrorKind::BadConstantIndex(count)));
                    }
                    offsets.push(0);
                    8
                }
                tag::CLASS | tag::STRING | tag::METHOD_TYPE | tag::MODULE | tag::PACKAGE => 2,
                tag::FIELDREF
                | tag::METHODREF
                | tag::INTERFACE_METHODREF
                | tag::NAME_AND_TYPE
                | tag::DYNAMIC
                | tag::INVOKE_DYNAMIC => 4,
                tag::METHOD_HANDLE => 3,
                _ => return Err(Error::new(at, ErrorKind::BadConstantTag(t))),
            };
            r.skip(len)?;
        }
        Ok(Self { file, offsets, start, end: r.position() })
    }

    /// The `constant_pool_count` of the file: one more than the highest index.
    pub fn count(&self) -> u16 {
        self.offsets.len().min(usize::from(u16::MAX)) as u16
    }

    /// The entries as they stand in the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.file.get(self.start..self.end).unwrap_or(&[])
    }

    /// Offset in the file of each entry's tag; 0 where there is no entry.
    pub(crate) fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    fn offset_of(&self, index: u16) -> Option<usize> {
        match self.offsets.get(usize::from(index)) {
            Some(&o) if o != 0 => Some(o as usize),
            _ => None,
        }
    }

    /// The tag of an entry, `None` where there is none.
    #[inline]
    pub fn tag(&self, index: u16) -> Option<u8> {
        self.offset_of(index).and_then(|o| self.file.get(o).copied())
    }

    pub fn get(&self, index: u16) -> Result<Constant<'a>> {
        let Some(at) = self.offset_of(index) else {
            return Err(Error::new(self.start, ErrorKind::BadConstantIndex(index)));
        };
        let mut r = Reader::new(self.file.get(at..).unwrap_or(&[]), at);
        Ok(match r.u1()? {
            tag::UTF8 => {
                let len = usize::from(r.u2()?);
                Constant::Utf8(r.bytes(len)?)
            }
            tag::INTEGER => Constant::Integer(r.i4()?),
            tag::FLOAT => Constant::Float(f32::from_bits(r.u4()?)),
            tag::LONG => Constant::Long(r.u8()? as i64),
            tag::DOUBLE => Constant::Double(f64::from_bits(r.u8()?)),
            tag::CLASS => Constant::Class { name: r.u2()? },
            tag::STRING => Constant::String { utf8: r.u2()? },
            tag::FIELDREF => Constant::Field { class: r.u2()?, name_and_type: r.u2()? },
            tag::METHODREF => Constant::Method { class: r.u2()?, name_and_type: r.u2()? },
            tag::INTERFACE_METHODREF => {
                Constant::InterfaceMethod { class: r.u2()?, name_and_type: r.u2()? }
            }
            tag::NAME_AND_TYPE => Constant::NameAndType { name: r.u2()?, descriptor: r.u2()? },
            tag::METHOD_HANDLE => Constant::MethodHandle { kind: r.u1()?, reference: r.u2()? },
            tag::METHOD_TYPE => Constant::MethodType { descriptor: r.u2()? },
            tag::DYNAMIC => Constant::Dynamic { bootstrap: r.u2()?, name_and_type: r.u2()? },
            tag::INVOKE_DYNAMIC => {
                Constant::InvokeDynamic { bootstrap: r.u2()?, name_and_type: r.u2()? }
            }
            tag::MODULE => Constant::Module { name: r.u2()? },
            tag::PACKAGE => Constant::Package { name: r.u2()? },
            t => return Err(Error::new(at, ErrorKind::BadConstantTag(t))),
        })
    }

    fn wrong<T>(&self, index: u16, expected: &'static str) -> Result<T> {
        let at = self.offset_of(index).unwrap_or(self.start);
        Err(Error::new(at, ErrorKind::WrongConstant { index, expected }))
    }

    /// The raw (modified UTF-8) bytes of a `Utf8` entry.
    #[inline]
    pub fn utf8(&self, index: u16) -> Result<&'a [u8]> {
        if let Some(at) = self.offset_of(index)
            && let Some(&[tag::UTF8, hi, lo]) =
                self.file.get(at..).and_then(|d| d.first_chunk::<3>())
        {
            let len = usize::from(u16::from_be_bytes([hi, lo]));
            if let Some(bytes) = self.file.get(at + 3..at + 3 + len) {
                return Ok(bytes);
            }
        }
        self.wrong(index, "Utf8")
    }

    /// The internal name of a `Class` entry.
    pub fn class_name(&self, index: u16) -> Result<&'a [u8]> {
        match self.get(index)? {
            Constant::Class { name } => self.utf8(name),
            _ => self.wrong(index, "Class"),
        }
    }

    /// The name of a `Module` entry.
    pub fn module_name(&self, index: u16) -> Result<&'a [u8]> {
        match self.get(index)? {
            Constant::Module { name } => self.utf8(name),
            _ => self.wrong(index, "Module"),
        }
    }

    /// Name and descriptor of a `NameAndType` entry.
    pub fn name_and_type(&self, index: u16) -> Result<(&'a [u8], &'a [u8])> {
        match self.get(index)? {
            Constant::NameAndType { name, descriptor } => {
                Ok((self.utf8(name)?, self.utf8(descriptor)?))
            }
            _ => self.wrong(index, "NameAndType"),
        }
    }

    /// Owner, name and descriptor of a field, method or interface-method entry.
    pub fn member(&self, index: u16) -> Result<MemberRef<'a>> {
        match self.get(index)? {
            Constant::Field { class, name_and_type }
            | Constant::Method { class, name_and_type }
            | Constant::InterfaceMethod { class, name_and_type } => {
                let owner = self.class_name(class)?;
                let (name, descriptor) = self.name_and_type(name_and_type)?;
                Ok(MemberRef { owner, name, descriptor })
            }
            _ => self.wrong(index, "member reference"),
        }
    }

    /// Name and descriptor of a `Dynamic` or `InvokeDynamic` entry.
    pub fn dynamic(&self, index: u16) -> Result<(&'a [u8], &'a [u8])> {
        match self.get(index)? {
            Constant::Dynamic { name_and_type, .. }
            | Constant::InvokeDynamic { name_and_type, .. } => self.name_and_type(name_and_type),
            _ => self.wrong(index, "dynamic constant"),
        }
    }

    /// All entries, with their indexes.
    pub fn iter(&self) -> impl Iterator<Item = (u16, Constant<'a>)> + '_ {
        (1..self.count()).filter_map(move |i| self.get(i).ok().map(|c| (i, c)))
    }
}

#[cfg(test)]
mod tests {
    use crate::{ClassFile, ErrorKind};

    /// JVMs refuse such a class, and what is added behind the constant would be another entry.
    #[test]
    fn a_long_constant_needs_room_for_its_second_index() {
        let pool = |count: u8| {
            let mut bytes = b"\xca\xfe\xba\xbe\0\0\0\x3d\0".to_vec();
            bytes.extend([count, 5, 0, 0, 0, 0, 0, 0, 0, 1]);
            ClassFile::parse(&bytes).expect_err("it ends early").kind
        };
        assert_eq!(pool(2), ErrorKind::BadConstantIndex(2));
        assert_eq!(pool(3), ErrorKind::UnexpectedEnd);
    }
}
