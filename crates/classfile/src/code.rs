//! The `Code` attribute: limits, instructions, exception table, attributes of its own.

use crate::attributes::{Attribute, Attributes};
use crate::error::{Error, ErrorKind, Result};
use crate::insn::Insns;
use crate::reader::Reader;

#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    pub max_stack: u16,
    pub max_locals: u16,
    pub code: &'a [u8],
    /// Offset of `code` in the class file.
    pub code_offset: usize,
    exceptions: &'a [u8],
    pub attributes: Attributes<'a>,
}

/// One row of the exception table: `start` inclusive, `end` exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionEntry {
    pub start: u16,
    pub end: u16,
    pub handler: u16,
    /// A `Class` entry, or 0 for any exception.
    pub catch_type: u16,
}

impl<'a> Code<'a> {
    pub fn parse(attribute: &Attribute<'a>) -> Result<Self> {
        let mut r: Reader<'a> = attribute.reader();
        let max_stack = r.u2()?;
        let max_locals = r.u2()?;
        let len = r.u4()? as usize;
        let code_offset = r.offset();
        // The length field has four bytes, but offsets into code have two.
        if len > usize::from(u16::MAX) {
            return r.fail(ErrorKind::LengthTooLarge);
        }
        let code = r.bytes(len)?;
        if code.is_empty() {
            return Err(Error::new(code_offset, ErrorKind::EmptyCode));
        }
        let count = usize::from(r.u2()?);
        let exceptions = r.bytes(8 * count)?;
        let attributes = Attributes::parse(&mut r)?;
        r.finish()?;
        Ok(Self { max_stack, max_locals, code, code_offset, exceptions, attributes })
    }

    pub fn exceptions(&self) -> impl ExactSizeIterator<Item = ExceptionEntry> + use<'a> {
        self.exceptions.as_chunks::<8>().0.iter().map(|&[a, b, c, d, e, f, g, h]| ExceptionEntry {
            start: u16::from_be_bytes([a, b]),
            end: u16::from_be_bytes([c, d]),
            handler: u16::from_be_bytes([e, f]),
            catch_type: u16::from_be_bytes([g, h]),
        })
    }

    pub fn insns(&self) -> Insns<'a> {
        Insns::new(self.code)
    }

    /// Turns an error that carries an offset in the code into one with an offset in the file.
    pub fn in_file(&self, error: Error) -> Error {
        Error::new(self.code_offset + error.offset, error.kind)
    }
}
