//! `StackMapTable`: frames read one by one, and written in their shortest form.
//!
//! A frame is stored as a difference to the one before; this file decodes each difference and
//! finds the shortest one when writing. What the frames say about a method, and where they move
//! when code is inserted, is the weaver's business.

use crate::error::{Error, ErrorKind, Result};
use crate::reader::Reader;

/// A verification type as it stands in the table. `Long` and `Double` take two slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerificationType {
    Top,
    Integer,
    Float,
    Double,
    Long,
    Null,
    UninitializedThis,
    /// A `Class` entry.
    Object(u16),
    /// The offset of the `new` instruction that made the object.
    Uninitialized(u16),
}

impl VerificationType {
    pub fn is_wide(self) -> bool {
        matches!(self, Self::Long | Self::Double)
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        let at = r.offset();
        Ok(match r.u1()? {
            0 => Self::Top,
            1 => Self::Integer,
            2 => Self::Float,
            3 => Self::Double,
            4 => Self::Long,
            5 => Self::Null,
            6 => Self::UninitializedThis,
            7 => Self::Object(r.u2()?),
            8 => Self::Uninitialized(r.u2()?),
            t => return Err(Error::new(at, ErrorKind::BadVerificationTag(t))),
        })
    }

    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Top => out.push(0),
            Self::Integer => out.push(1),
            Self::Float => out.push(2),
            Self::Double => out.push(3),
            Self::Long => out.push(4),
            Self::Null => out.push(5),
            Self::UninitializedThis => out.push(6),
            Self::Object(class) => {
                out.push(7);
                out.extend_from_slice(&class.to_be_bytes());
            }
            Self::Uninitialized(offset) => {
                out.push(8);
                out.extend_from_slice(&offset.to_be_bytes());
            }
        }
    }
}

/// One frame of the table.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The instruction that it describes.
    pub offset: u32,
    /// The tag byte, for printing.
    pub tag: u8,
    pub kind: FrameKind<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum FrameKind<'a> {
    /// The locals of the frame before, an empty stack.
    Same,
    /// The locals of the frame before, one value on the stack.
    SameStack1(VerificationType),
    /// The last 1 to 3 locals are gone; the stack is empty.
    Chop(u8),
    /// 1 to 3 more locals; the stack is empty.
    Append(Types<'a>),
    Full {
        locals: Types<'a>,
        stack: Types<'a>,
    },
}

/// A list of verification types that was checked when its frame was read.
#[derive(Clone, Copy, Debug)]
pub struct Types<'a> {
    reader: Reader<'a>,
    count: u16,
}

impl<'a> Types<'a> {
    fn read(r: &mut Reader<'a>, count: u16) -> Result<Self> {
        let reader = *r;
        for _ in 0..count {
            VerificationType::read(r)?;
        }
        Ok(Self { reader, count })
    }

    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = VerificationType> + use<'a> {
        let mut r = self.reader;
        (0..self.count).map_while(move |_| VerificationType::read(&mut r).ok())
    }
}

/// Reads the frames in order.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    left: u16,
    /// Offset of the frame before, -1 before the first.
    previous: i64,
}

impl<'a> Frames<'a> {
    /// `reader` stands at the start of the attribute's content.
    pub fn parse(mut reader: Reader<'a>) -> Result<Self> {
        let left = reader.u2()?;
        Ok(Self { reader, left, previous: -1 })
    }

    /// How many frames are left.
    pub fn remaining(&self) -> u16 {
        self.left
    }

    /// The next frame; `None` at the end, where nothing may be left over.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'a>>> {
        let r = &mut self.reader;
        let Some(left) = self.left.checked_sub(1) else {
            r.finish()?;
            return Ok(None);
        };
        self.left = left;
        let at = r.offset();
        let tag = r.u1()?;
        let (delta, kind) = match tag {
            0..=63 => (u16::from(tag), FrameKind::Same),
            64..=127 => (u16::from(tag - 64), FrameKind::SameStack1(VerificationType::read(r)?)),
            247 => (r.u2()?, FrameKind::SameStack1(VerificationType::read(r)?)),
            248..=250 => (r.u2()?, FrameKind::Chop(251 - tag)),
            251 => (r.u2()?, FrameKind::Same),
            252..=254 => (r.u2()?, FrameKind::Append(Types::read(r, u16::from(tag - 251))?)),
            255 => {
                let delta = r.u2()?;
                let count = r.u2()?;
                let locals = Types::read(r, count)?;
                let count = r.u2()?;
                let stack = Types::read(r, count)?;
                (delta, FrameKind::Full { locals, stack })
            }
            _ => return Err(Error::new(at, ErrorKind::BadFrameTag(tag))),
        };
        let offset = self.previous + i64::from(delta) + 1;
        if offset > i64::from(u16::MAX) {
            return Err(Error::new(at, ErrorKind::BadCodeOffset(offset as u32)));
        }
        self.previous = offset;
        Ok(Some(Frame { offset: offset as u32, tag, kind }))
    }
}

/// Writes one frame in its shortest form.
///
/// `delta` is the encoded distance (offset minus previous offset minus one, or the offset itself
/// for the first frame). `T` is whatever the caller uses for types; `write` puts one of them out.
pub fn encode_frame<T: Copy + PartialEq, E>(
    out: &mut Vec<u8>,
    delta: u16,
    previous_locals: &[T],
    locals: &[T],
    stack: &[T],
    mut write: impl FnMut(T, &mut Vec<u8>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let common = previous_locals.iter().zip(locals).take_while(|(a, b)| a == b).count();
    let chopped = previous_locals.len() - common;
    let added = locals.get(common..).unwrap_or(&[]);
    match (chopped, added.len(), stack) {
        (0, 0, []) if delta < 64 => out.push(delta as u8),
        (0, 0, []) => {
            out.push(251);
            out.extend_from_slice(&delta.to_be_bytes());
        }
        (0, 0, &[value]) => {
            if delta < 64 {
                out.push(64 + delta as u8);
            } else {
                out.push(247);
                out.extend_from_slice(&delta.to_be_bytes());
            }
            write(value, out)?;
        }
        (1..=3, 0, []) => {
            out.push(251 - chopped as u8);
            out.extend_from_slice(&delta.to_be_bytes());
        }
        (0, 1..=3, []) => {
            out.push(251 + added.len() as u8);
            out.extend_from_slice(&delta.to_be_bytes());
            for &ty in added {
                write(ty, out)?;
            }
        }
        _ => {
            out.push(255);
            out.extend_from_slice(&delta.to_be_bytes());
            for list in [locals, stack] {
                out.extend_from_slice(&(list.len() as u16).to_be_bytes());
                for &ty in list {
                    write(ty, out)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Decodes into text, then encodes the same states again and compares with the input.
    fn check(bytes: &[u8], initial: &[VerificationType], expected: &str) {
        let mut frames = Frames::parse(Reader::new(bytes, 0)).unwrap();
        let mut locals = initial.to_vec();
        let mut out = bytes[..2].to_vec();
        let mut text = String::new();
        let mut previous = -1;
        while let Some(f) = frames.next_frame().unwrap() {
            let before = locals.clone();
            let mut stack = Vec::new();
            match f.kind {
                FrameKind::Same => {}
                FrameKind::SameStack1(t) => stack.push(t),
                FrameKind::Chop(n) => locals.truncate(locals.len() - usize::from(n)),
                FrameKind::Append(types) => locals.extend(types.iter()),
                FrameKind::Full { locals: l, stack: s } => {
                    locals = l.iter().collect();
                    stack = s.iter().collect();
                }
            }
            text += &format!("{} {:?} {:?}\n", f.offset, locals, stack);
            let delta = (i64::from(f.offset) - previous - 1) as u16;
            previous = i64::from(f.offset);
            encode_frame(&mut out, delta, &before, &locals, &stack, |t, out| {
                t.write(out);
                Ok::<(), Infallible>(())
            })
            .unwrap();
        }
        assert_eq!(text, expected);
        assert_eq!(out, bytes);
    }

    #[test]
    fn every_form() {
        use VerificationType::*;
        check(
            &[
                0, 9, 5, 64, 1, 251, 0, 100, 247, 0, 200, 7, 0, 9, 253, 0, 1, 4, 0, 250, 0, 2, 249,
                0, 3, 252, 0, 4, 8, 0, 7, 255, 0, 5, 0, 1, 6, 0, 2, 5, 3,
            ],
            &[Object(1), Float],
            "\
5 [Object(1), Float] []
6 [Object(1), Float] [Integer]
107 [Object(1), Float] []
308 [Object(1), Float] [Object(9)]
310 [Object(1), Float, Long, Top] []
313 [Object(1), Float, Long] []
317 [Object(1)] []
322 [Object(1), Uninitialized(7)] []
328 [UninitializedThis] [Null, Double]
",
        );
    }

    #[test]
    fn faults() {
        let error = |bytes: &[u8]| {
            let mut f = Frames::parse(Reader::new(bytes, 0))?;
            while f.next_frame()?.is_some() {}
            Ok::<(), Error>(())
        };
        let check = |bytes, expected: &str| {
            assert_eq!(error(bytes).unwrap_err().to_string(), expected);
        };
        check(&[0, 1, 128], "unknown stack-map frame tag 128 at byte 2");
        check(&[0, 1, 64, 9], "unknown verification type 9 at byte 3");
        check(&[0, 1, 255, 0, 0, 0xff, 0xff], "unexpected end at byte 7");
        check(&[0, 0, 1], "bytes after the end at byte 2");
    }
}
