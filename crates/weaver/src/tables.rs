//! The tables of a woven method that name offsets: exceptions, lines, variables, annotations.

use crate::body::Body;
use crate::plan::Refusal;
use crate::scan::Scan;
use tare_classfile::annotations::{CodeTarget, code_targets};
use tare_classfile::{Attribute, Attributes, ConstantPool, ExceptionEntry};

/// What a stack overflow is caught by.
const OVERFLOWS: [&[u8]; 4] = [
    b"java/lang/Throwable",
    b"java/lang/Error",
    b"java/lang/VirtualMachineError",
    b"java/lang/StackOverflowError",
];

/// Builds the exception table; leaves its rows in `out` and the new index of each old row in
/// `indexes`.
pub(crate) fn exceptions<'a>(
    body: &Body,
    scan: &Scan,
    class_of: impl Fn(u16) -> &'a [u8],
    out: &mut Vec<[u16; 4]>,
    indexes: &mut Vec<u16>,
) -> Result<(), Refusal> {
    out.clear();
    indexes.clear();
    let mut row = |start: u32, end: u32, handler: u32, catch_type: u16| {
        if start < end {
            out.push([start as u16, end as u16, handler as u16, catch_type]);
        }
        out.len()
    };
    // The innermost first: what a single call throws passes its probe before anything else.
    let mut len = 0;
    for c in &body.calls {
        len = row(c.start, c.end, c.stub, 0);
    }
    // A prologue at the end of the stack may overflow it. A handler that catches such errors goes
    // on with this one in place of its own: the program's `finally` runs.
    for &(pc, start) in &body.prologues {
        let takes = |e: &&ExceptionEntry| {
            u32::from(e.handler) == pc
                && (e.catch_type == 0 || OVERFLOWS.contains(&class_of(e.catch_type)))
        };
        if let Some(e) = scan.exceptions.iter().find(takes) {
            len = row(start, body.label(pc), body.label(pc), e.catch_type);
        }
    }
    for e in &scan.exceptions {
        indexes.push(len.min(usize::from(u16::MAX)) as u16);
        let (s, h, t) = (u32::from(e.start), u32::from(e.handler), u32::from(e.end));
        let (handler, label) = (body.handler(h), body.label(h));
        // The prologue of a handler belongs to the ranges that begin with it: one of them may
        // release a monitor. Only the range that leads to the prologue itself begins behind it.
        let start = if s == h { label } else { body.handler(s) };
        let end = body.handler(t);
        if handler < label && start < handler && handler < end {
            // The range holds its own handler; the prologue must not lead to itself.
            row(start, handler, handler, e.catch_type);
            len = row(label, end, handler, e.catch_type);
        } else {
            len = row(start, end, handler, e.catch_type);
        }
        // The handler around a call is covered by whatever covers the call.
        for c in body.calls.iter().filter(|c| (s..t).contains(&c.offset)) {
            len = row(c.stub, c.stub_end, handler, e.catch_type);
        }
    }
    for uninit in [false, true] {
        let Some(handler) = body.catch.get(usize::from(uninit)).copied().flatten() else {
            continue;
        };
        for c in body.covers.iter().filter(|c| c.uninit == uninit) {
            row(c.start, c.end, handler, 0);
        }
        for c in body.calls.iter().filter(|c| c.uninit == uninit) {
            row(c.stub, c.stub_end, handler, 0);
        }
    }
    if out.len() > usize::from(u16::MAX) {
        return Err(Refusal::TooManyExceptionEntries);
    }
    Ok(())
}

/// The line table that regions look at; empty when there is none.
pub(crate) fn line_rows<'a>(
    attributes: &Attributes<'a>,
    pool: &ConstantPool<'a>,
) -> Result<&'a [[u8; 4]], Refusal> {
    match attributes.find(pool, "LineNumberTable") {
        Some(a) => a.rows::<4>().map_err(Refusal::BadCode),
        None => Ok(&[]),
    }
}

/// Writes one attribute of `Code`, moved to the new offsets. Frames are written elsewhere.
pub(crate) fn attribute(
    a: &Attribute<'_>,
    name: &[u8],
    body: &Body,
    scan: &Scan,
    indexes: &[u16],
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let start = out.len();
    out.extend_from_slice(a.raw);
    let Some(data) = out.get_mut(start + 6..) else { return Ok(()) };
    let code_len = body.labels.len() as u32 - 1;
    let known = |offset: u32| offset <= code_len;
    match name {
        b"LineNumberTable" => {
            let rows = data.get_mut(2..).unwrap_or(&mut []);
            for row in rows.as_chunks_mut::<4>().0 {
                let old = get_u2(row, 0);
                if known(old) {
                    put_u2(row, 0, line_start(body, scan, old));
                }
            }
        }
        b"LocalVariableTable" | b"LocalVariableTypeTable" => {
            let rows = data.get_mut(2..).unwrap_or(&mut []);
            for row in rows.as_chunks_mut::<10>().0 {
                range(row, 0, body, code_len);
            }
        }
        b"CharacterRangeTable" => {
            let rows = data.get_mut(2..).unwrap_or(&mut []);
            for row in rows.as_chunks_mut::<14>().0 {
                // The end is inclusive: the last byte of an instruction.
                let (first, last) = (get_u2(row, 0), get_u2(row, 2));
                if known(first) && known(last + 1) {
                    put_u2(row, 0, body.label(first));
                    put_u2(row, 2, body.label(last + 1).saturating_sub(1));
                }
            }
        }
        b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
            code_targets(a.reader(), |target| match target {
                CodeTarget::Range { at, .. } => range(data, at, body, code_len),
                CodeTarget::Offset { at, offset } => {
                    if known(u32::from(offset)) {
                        put_u2(data, at, body.insn(u32::from(offset)));
                    }
                }
                CodeTarget::Catch { at, index } => {
                    if let Some(&new) = indexes.get(usize::from(index)) {
                        put_u2(data, at, u32::from(new));
                    }
                }
            })
            .map_err(Refusal::BadCode)?;
        }
        _ => {}
    }
    Ok(())
}

/// Where the line that started at `old` starts now. The entry code belongs to the first line,
/// unless a loop leads back to offset 0: a breakpoint there must be hit in every round.
fn line_start(body: &Body, scan: &Scan, old: u32) -> u32 {
    if old == 0 && !scan.has(0, crate::scan::flag::TARGET) { 0 } else { body.handler(old) }
}

/// Moves a start and a length. What is alive at the start of a method is so in the entry code too.
fn range(row: &mut [u8], at: usize, body: &Body, code_len: u32) {
    let (start, len) = (get_u2(row, at), get_u2(row, at + 2));
    if start + len > code_len {
        return;
    }
    let new = if start == 0 { 0 } else { body.label(start) };
    put_u2(row, at, new);
    put_u2(row, at + 2, body.label(start + len).saturating_sub(new));
}

fn get_u2(data: &[u8], at: usize) -> u32 {
    match data.get(at..).and_then(|d| d.first_chunk::<2>()) {
        Some(&two) => u32::from(u16::from_be_bytes(two)),
        None => 0,
    }
}

fn put_u2(data: &mut [u8], at: usize, value: u32) {
    if let Some(two) = data.get_mut(at..at + 2) {
        two.copy_from_slice(&(value as u16).to_be_bytes());
    }
}
