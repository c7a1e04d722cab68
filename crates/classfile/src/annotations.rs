//! Annotations: walking over them, and finding the code offsets inside type annotations.
//!
//! Annotation contents matter to nobody here except for their types, their lengths, and the few
//! targets that name places in code. Those have a fixed size, so a rewrite patches them where they
//! stand.

use crate::class::{ClassFile, Member};
use crate::error::{Error, ErrorKind, Result};
use crate::reader::Reader;

/// Deeper nesting than any compiler produces; a bound against hostile files.
const MAX_DEPTH: u32 = 64;

/// A place in the content of a type-annotation attribute that refers to code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeTarget {
    /// A live range of a local variable: start and length, two bytes each, at `at`.
    Range { at: usize, start: u16, len: u16 },
    /// The offset of an instruction, two bytes at `at`.
    Offset { at: usize, offset: u16 },
    /// An index into the exception table, two bytes at `at`.
    Catch { at: usize, index: u16 },
}

/// Calls `visit` for every reference to code in a `Runtime(In)VisibleTypeAnnotations` attribute.
pub fn code_targets(mut r: Reader<'_>, mut visit: impl FnMut(CodeTarget)) -> Result<()> {
    let count = r.u2()?;
    for _ in 0..count {
        let at = r.offset();
        let target = r.u1()?;
        match target {
            0x00 | 0x01 | 0x16 => r.skip(1)?,
            0x10 | 0x17 | 0x11 | 0x12 => r.skip(2)?,
            0x13..=0x15 => {}
            0x40 | 0x41 => {
                for _ in 0..r.u2()? {
                    let at = r.position();
                    visit(CodeTarget::Range { at, start: r.u2()?, len: r.u2()? });
                    r.skip(2)?;
                }
            }
            0x42 => {
                let at = r.position();
                visit(CodeTarget::Catch { at, index: r.u2()? });
            }
            0x43..=0x4b => {
                let at = r.position();
                visit(CodeTarget::Offset { at, offset: r.u2()? });
                if target >= 0x47 {
                    r.skip(1)?;
                }
            }
            _ => return Err(Error::new(at, ErrorKind::BadAnnotationTarget(target))),
        }
        let path = usize::from(r.u1()?);
        r.skip(2 * path)?;
        skip_annotation(&mut r, 0)?;
    }
    r.finish()
}

/// Calls `visit` with the constant-pool index of each annotation's type in a
/// `Runtime(In)VisibleAnnotations` attribute.
pub fn types(mut r: Reader<'_>, mut visit: impl FnMut(u16)) -> Result<()> {
    for _ in 0..r.u2()? {
        let mut ahead = r;
        visit(ahead.u2()?);
        skip_annotation(&mut r, 0)?;
    }
    r.finish()
}

/// The methods, by position, that bear an annotation of one of these types, as `La/B;`.
pub fn marked_methods(class: &ClassFile<'_>, marks: &[&str]) -> Vec<usize> {
    let is_marked = |member: &Member<'_>| {
        let list = member.attributes.find(&class.pool, "RuntimeVisibleAnnotations");
        let mut found = false;
        if let Some(list) = list {
            let _ = types(list.reader(), |index| {
                let name = class.pool.utf8(index).unwrap_or_default();
                found |= marks.iter().any(|mark| mark.as_bytes() == name);
            });
        }
        found
    };
    let methods = class.methods.iter().enumerate();
    methods.filter(|(_, member)| is_marked(member)).map(|(index, _)| index).collect()
}

/// Skips one annotation: type, pairs of names and values.
pub fn skip_annotation(r: &mut Reader<'_>, depth: u32) -> Result<()> {
    r.skip(2)?;
    for _ in 0..r.u2()? {
        r.skip(2)?;
        skip_element(r, depth)?;
    }
    Ok(())
}

/// Skips one element value.
pub fn skip_element(r: &mut Reader<'_>, depth: u32) -> Result<()> {
    if depth > MAX_DEPTH {
        return r.fail(ErrorKind::TooDeep);
    }
    let at = r.offset();
    match r.u1()? {
        b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => r.skip(2),
        b'e' => r.skip(4),
        b'@' => skip_annotation(r, depth + 1),
        b'[' => {
            for _ in 0..r.u2()? {
                skip_element(r, depth + 1)?;
            }
            Ok(())
        }
        t => Err(Error::new(at, ErrorKind::BadElementTag(t))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &str) {
        let mut text = String::new();
        let result = code_targets(Reader::new(bytes, 0), |t| text += &format!("{t:?} "));
        if let Err(e) = result {
            text += &e.to_string();
        }
        assert_eq!(text.trim_end(), expected);
    }

    #[test]
    fn targets() {
        check(
            &[0, 1, 0x40, 0, 1, 0, 5, 0, 6, 0, 1, 0, 0, 9, 0, 0],
            "Range { at: 5, start: 5, len: 6 }",
        );
        check(&[0, 1, 0x42, 0, 3, 0, 0, 9, 0, 0], "Catch { at: 3, index: 3 }");
        check(
            &[0, 1, 0x47, 0, 8, 0, 1, 3, 0, 0, 9, 0, 1, 0, 2, b'[', 0, 1, b's', 0, 4],
            "Offset { at: 3, offset: 8 }",
        );
        check(&[0, 1, 0x99], "unknown annotation target 0x99 at byte 2");
    }

    #[test]
    fn types_of_annotations() {
        let bytes = [0, 2, 0, 9, 0, 1, 0, 2, b'[', 0, 1, b's', 0, 4, 0, 7, 0, 0];
        let mut found = Vec::new();
        types(Reader::new(&bytes, 0), |index| found.push(index)).unwrap();
        assert_eq!(found, [9, 7]);
        assert!(types(Reader::new(&bytes[..12], 0), |_| {}).is_err());
    }

    #[test]
    fn nesting_is_bounded() {
        let mut bytes = vec![0, 1, 0x13, 0, 0, 9, 0, 1, 0, 2];
        for _ in 0..100_000 {
            bytes.extend([b'[', 0, 1]);
        }
        let error = code_targets(Reader::new(&bytes, 0), |_| {}).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooDeep);
    }
}
