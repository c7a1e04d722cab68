//! Reads call-frame information, the contents of `.eh_frame`: which functions it describes, and
//! what each says about its frames from which address on.
//!
//! Only the stack pointer, the frame pointer and the return address are followed. The bytes are
//! those of loaded modules, yet trusted no more than any file: every fault has a name, work is
//! bounded by their length, and nothing panics.

mod machine;

use crate::read::Bytes;
use crate::rule::{Rule, number};
use machine::Machine;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The bytes end in the middle of something.
    Truncated,
    /// A number of more than 64 bits.
    Number,
    /// A pointer in an encoding that is not used in `.eh_frame`, or not understood here.
    Encoding,
    /// An augmentation or a version that is not understood.
    Augmentation,
    /// A function that refers to no common entry, or to something else.
    Reference,
    /// An instruction that does not exist, or states restored that were not remembered.
    Instruction,
}

/// The bytes of a section, and where they are in the process that is described.
#[derive(Clone, Copy)]
pub struct Section<'a> {
    pub bytes: &'a [u8],
    pub address: u64,
}

/// A function's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    pub start: u64,
    pub end: u64,
    /// Where its entry is in the section.
    offset: usize,
}

/// What functions share.
#[derive(Clone, Copy)]
struct Common<'a> {
    code_unit: u64,
    data_unit: i64,
    pointers: u8,
    /// Functions carry augmentation data, to be skipped.
    sized: bool,
    signal: bool,
    instructions: Bytes<'a>,
}

enum Entry<'a> {
    Common(Common<'a>),
    Function { common: usize, body: Bytes<'a> },
}

/// Lists the functions of a section, in the order in which they stand there, at most `limit` of
/// them. Entries that cannot be read are left out and counted; an unreadable length ends the list.
pub fn functions(section: Section<'_>, limit: usize) -> (Vec<Function>, u64) {
    let mut found = Vec::new();
    let mut unreadable = 0;
    let mut at = 0;
    let mut last: Option<(usize, Common<'_>)> = None;
    while found.len() < limit {
        // The terminator, or a length that leads out of the section.
        let Ok(Some(raw)) = raw(section, at) else { break };
        let offset = std::mem::replace(&mut at, raw.next);
        match parse(raw) {
            Ok(Entry::Common(_)) => {}
            Ok(Entry::Function { common, body }) => {
                match function(section, offset, common, body, &mut last) {
                    // Linkers leave entries of length zero for functions that they dropped.
                    Ok(function) if function.start >= function.end => {}
                    Ok(function) => found.push(function),
                    Err(_) => unreadable += 1,
                }
            }
            Err(_) => unreadable += 1,
        }
    }
    (found, unreadable)
}

/// Tells `each` from which address on which rule holds, for one function, addresses ascending.
pub fn rows(
    section: Section<'_>,
    function: Function,
    mut each: impl FnMut(u64, Rule),
) -> Result<(), Fault> {
    let raw = raw(section, function.offset)?.ok_or(Fault::Reference)?;
    let Entry::Function { common, mut body } = parse(raw)? else {
        return Err(Fault::Reference);
    };
    let common = self::common(section, common)?;
    body.pointer(common.pointers)?;
    body.pointer(common.pointers & 0x0f)?;
    if common.sized {
        let length = body.uleb()?;
        body.take_long(length)?;
    }
    let mut machine = Machine::new(&common, function.start);
    machine.run(common.instructions, None, &mut |_, _| {})?;
    machine.begin_function();
    machine.run(body, Some(function.end), &mut each)?;
    machine.end_function(function.end, &mut each);
    Ok(())
}

/// An entry whose contents were not looked at yet.
struct Raw<'a> {
    body: Bytes<'a>,
    /// Where the body is in the section, and where the next entry is.
    at: usize,
    next: usize,
}

/// The entry at an offset; `None` at the terminator and at the end.
fn raw(section: Section<'_>, offset: usize) -> Result<Option<Raw<'_>>, Fault> {
    let Some(rest) = section.bytes.get(offset..).filter(|rest| !rest.is_empty()) else {
        return Ok(None);
    };
    let mut at = Bytes::new(rest, section.address.wrapping_add(offset as u64));
    let mut length = u64::from(at.u32()?);
    if length == 0 {
        return Ok(None);
    }
    if length == 0xffff_ffff {
        length = at.u64()?;
    }
    let body = at.take_long(length)?;
    let next = section.bytes.len() - at.rest().len();
    Ok(Some(Raw { body, at: next - body.rest().len(), next }))
}

fn parse(raw: Raw<'_>) -> Result<Entry<'_>, Fault> {
    let mut body = raw.body;
    let id = body.u32()?;
    if id == 0 {
        return read_common(body).map(Entry::Common);
    }
    // How far back the common entry is from here.
    let common = raw.at.checked_sub(id as usize).ok_or(Fault::Reference)?;
    Ok(Entry::Function { common, body })
}

fn common(section: Section<'_>, offset: usize) -> Result<Common<'_>, Fault> {
    match parse(raw(section, offset)?.ok_or(Fault::Reference)?)? {
        Entry::Common(common) => Ok(common),
        Entry::Function { .. } => Err(Fault::Reference),
    }
}

fn function<'a>(
    section: Section<'a>,
    offset: usize,
    common: usize,
    mut body: Bytes<'a>,
    last: &mut Option<(usize, Common<'a>)>,
) -> Result<Function, Fault> {
    // Neighbours mostly share theirs.
    let known = match *last {
        Some((at, known)) if at == common => known,
        _ => self::common(section, common)?,
    };
    *last = Some((common, known));
    let start = body.pointer(known.pointers)?;
    let length = body.pointer(known.pointers & 0x0f)?;
    let end = start.checked_add(length).ok_or(Fault::Number)?;
    Ok(Function { start, end, offset })
}

fn read_common(mut body: Bytes<'_>) -> Result<Common<'_>, Fault> {
    let version = body.u8()?;
    if version != 1 && version != 3 {
        return Err(Fault::Augmentation);
    }
    let augmentation = body.text()?;
    let code_unit = body.uleb()?;
    let data_unit = body.sleb()?;
    let ra = if version == 1 { u64::from(body.u8()?) } else { body.uleb()? };
    if ra != number::RA {
        return Err(Fault::Augmentation);
    }
    let mut common = Common {
        code_unit,
        data_unit,
        pointers: 0,
        sized: false,
        signal: false,
        instructions: body,
    };
    let Some((first, letters)) = augmentation.split_first() else { return Ok(common) };
    if *first != b'z' {
        return Err(Fault::Augmentation);
    }
    let length = body.uleb()?;
    let mut data = body.take_long(length)?;
    for letter in letters {
        match letter {
            b'R' => common.pointers = data.u8()?,
            // The handler of exceptions and its data's encoding concern nobody here.
            b'P' => {
                let encoding = data.u8()?;
                data.pointer(encoding & 0x7f)?;
            }
            b'L' => {
                data.u8()?;
            }
            b'S' => common.signal = true,
            // Pointer authentication and memory tagging of aarch64.
            b'B' | b'G' => {}
            _ => return Err(Fault::Augmentation),
        }
    }
    common.sized = true;
    common.instructions = body;
    Ok(common)
}
