//! Attributes as named byte ranges, and the simple tables among them.
//!
//! Nothing here decides which attributes are legal where; whoever looks for one does.

use crate::error::{Error, ErrorKind, Result};
use crate::pool::ConstantPool;
use crate::reader::Reader;

/// A list of attributes whose outline was checked when it was read.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    data: &'a [u8],
    offset: usize,
    count: u16,
}

#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    pub name_index: u16,
    /// The content, after name and length.
    pub data: &'a [u8],
    /// Offset of `data` in the class file.
    pub offset: usize,
    /// Name, length and content.
    pub raw: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// Reads count and outlines.
    pub(crate) fn parse(r: &mut Reader<'a>) -> Result<Self> {
        let count = r.u2()?;
        let start = r.position();
        let offset = r.offset();
        for _ in 0..count {
            r.skip(2)?;
            let len = r.u4()?;
            r.skip(len as usize)?;
        }
        Ok(Self { data: r.since(start), offset, count })
    }

    pub fn count(&self) -> u16 {
        self.count
    }

    pub fn iter(&self) -> AttributeIter<'a> {
        AttributeIter { reader: Reader::new(self.data, self.offset), left: self.count }
    }

    /// The first attribute of that name.
    pub fn find(&self, pool: &ConstantPool<'a>, name: &str) -> Option<Attribute<'a>> {
        self.iter().find(|a| pool.utf8(a.name_index).is_ok_and(|n| n == name.as_bytes()))
    }

    /// The only attribute of that name; an error when there are two.
    pub fn find_unique(
        &self,
        pool: &ConstantPool<'a>,
        name: &'static str,
    ) -> Result<Option<Attribute<'a>>> {
        let mut found = None;
        for a in self.iter() {
            if pool.utf8(a.name_index).is_ok_and(|n| n == name.as_bytes())
                && found.replace(a).is_some()
            {
                return Err(Error::new(a.offset, ErrorKind::DuplicateAttribute(name)));
            }
        }
        Ok(found)
    }
}

#[derive(Clone, Debug)]
pub struct AttributeIter<'a> {
    reader: Reader<'a>,
    left: u16,
}

impl<'a> Iterator for AttributeIter<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        self.left = self.left.checked_sub(1)?;
        let r = &mut self.reader;
        let start = r.position();
        let name_index = r.u2().ok()?;
        let len = r.u4().ok()?;
        let offset = r.offset();
        let data = r.bytes(len as usize).ok()?;
        Some(Attribute { name_index, data, offset, raw: r.since(start) })
    }
}

impl<'a> Attribute<'a> {
    pub fn reader(&self) -> Reader<'a> {
        Reader::new(self.data, self.offset)
    }

    /// The rows of a table attribute: a count, then rows of `N` bytes, then nothing.
    pub fn rows<const N: usize>(&self) -> Result<&'a [[u8; N]]> {
        let mut r = self.reader();
        let count = usize::from(r.u2()?);
        let rows = r.bytes(count * N)?;
        r.finish()?;
        Ok(rows.as_chunks::<N>().0)
    }
}

/// One row of a `LineNumberTable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineNumber {
    pub start: u16,
    pub line: u16,
}

impl LineNumber {
    pub fn from_row([a, b, c, d]: [u8; 4]) -> Self {
        Self { start: u16::from_be_bytes([a, b]), line: u16::from_be_bytes([c, d]) }
    }
}

/// One row of a `LocalVariableTable` or `LocalVariableTypeTable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalVariable {
    pub start: u16,
    pub len: u16,
    pub name: u16,
    /// Descriptor, or signature in a type table.
    pub ty: u16,
    pub local: u16,
}

impl LocalVariable {
    pub fn from_row(r: [u8; 10]) -> Self {
        let u2 = |a: u8, b: u8| u16::from_be_bytes([a, b]);
        Self {
            start: u2(r[0], r[1]),
            len: u2(r[2], r[3]),
            name: u2(r[4], r[5]),
            ty: u2(r[6], r[7]),
            local: u2(r[8], r[9]),
        }
    }
}
