//! The records of a `.hprof` file: names, stacks, and where segments with objects are.

use super::record::{Width, u4, u8_};
use crate::classes::IdMap;
use crate::error::{HeapError, Result};
use crate::input::{Input, ReadAt};
use crate::window::Window;

/// Headers and names are near each other, segments are passed over.
const PORTION: usize = 64 << 10;

/// More than any program has; each costs memory.
const MOST_NAMES: usize = 1 << 26;
const MOST_FRAMES: usize = 1 << 24;

/// The longest line of a header.
const LONGEST_VERSION: usize = 32;

pub struct Top {
    pub width: Width,
    pub taken: u64,
    /// Where the texts are, by id.
    pub names: IdMap<(u64, u32)>,
    /// Ids of names by the address of the class, and by its serial number.
    pub class_names: IdMap<u64>,
    pub class_serials: IdMap<u64>,
    pub frames: IdMap<Frame>,
    /// Frames by the serial number of the stack trace.
    pub traces: IdMap<Vec<u64>>,
    pub segments: Vec<Segment>,
}

pub struct Frame {
    pub method: u64,
    pub source: u64,
    pub class_serial: u32,
    pub line: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub begin: u64,
    pub end: u64,
    /// Its length was not known when it was written, so that it ends where something else begins.
    pub is_open: bool,
}

const TEXT: u8 = 0x01;
const LOAD_CLASS: u8 = 0x02;
const FRAME: u8 = 0x04;
const TRACE: u8 = 0x05;
const DUMP: u8 = 0x0c;
const SEGMENT: u8 = 0x1c;
pub const END: u8 = 0x2c;

/// Bytes of a record's header: tag, time, length.
const HEADER: u64 = 9;

fn is_known(tag: u8) -> bool {
    matches!(tag, 0x01..=0x07 | 0x0a..=0x0e | SEGMENT | END)
}

pub fn read(input: &Input, notes: &mut Vec<String>) -> Result<Top> {
    let (width, taken, begin) = header(input)?;
    let mut top = Top {
        width,
        taken,
        names: IdMap::default(),
        class_names: IdMap::default(),
        class_serials: IdMap::default(),
        frames: IdMap::default(),
        traces: IdMap::default(),
        segments: Vec::new(),
    };
    let length = input.length();
    let mut window = Window::new(input, PORTION);
    window.go(begin, length);
    let mut has_end = false;
    loop {
        let offset = window.offset();
        let Some(head) = window.take(HEADER as usize)? else {
            if window.left() > 0 {
                notes.push(format!("it is cut off in a header at byte {offset}"));
            }
            break;
        };
        let (tag, size) = (head[0], u64::from(u4(&head[5..])));
        if !is_known(tag) {
            let rest = (length - offset) >> 20;
            notes.push(format!(
                "it is damaged at byte {offset}: there is no record of kind {tag:#04x}; the {rest} \
                 MiB from there on are left out"
            ));
            break;
        }
        let body = offset + HEADER;
        if tag == DUMP || tag == SEGMENT {
            let segment = extent(input, body, size)?;
            if segment.end < body + size {
                let missing = (body + size - segment.end).div_ceil(1 << 20);
                notes.push(format!(
                    "it is cut off: at least {missing} MiB with objects are missing at its end"
                ));
            }
            top.segments.push(segment);
            window.go(segment.end, length);
            continue;
        }
        has_end |= tag == END;
        if !record(&mut window, &mut top, tag, size)? {
            notes.push(format!("it is cut off in a record at byte {offset}"));
            break;
        }
        window.go(body + size, length);
    }
    let ends_apart = top.segments.iter().any(|segment| segment.is_open) || has_end;
    let needs_end = notes.is_empty() && !top.segments.is_empty();
    if needs_end && !ends_apart && has_segments(input, &top)? {
        notes.push("its end is missing; objects may be missing, too".to_owned());
    }
    if top.segments.is_empty() {
        let reason = "it has no objects; it may have been cut off".to_owned();
        return Err(HeapError::Damaged { offset: length, reason });
    }
    Ok(top)
}

/// Whether it is written in segments, which are followed by a record that says that all are there.
fn has_segments(input: &Input, top: &Top) -> Result<bool> {
    let mut tag = [0];
    let begin = top.segments[0].begin - HEADER;
    Ok(input.read_at(begin, &mut tag)? == 1 && tag[0] == SEGMENT)
}

/// The width of ids, the time, and where records begin.
fn header(input: &Input) -> Result<(Width, u64, u64)> {
    let mut bytes = [0; LONGEST_VERSION + 12];
    let count = input.read_at(0, &mut bytes)?;
    let bytes = &bytes[..count];
    let not = |reason: String| HeapError::NotADump { reason };
    let end = bytes.iter().take(LONGEST_VERSION).position(|byte| *byte == 0);
    let version = end.and_then(|end| std::str::from_utf8(&bytes[..end]).ok());
    let (Some(end), Some(version)) = (end, version) else {
        let reason = "it begins neither as a .hprof file nor as a snapshot of ours";
        return Err(not(reason.to_owned()));
    };
    let Some(number) = version.strip_prefix("JAVA PROFILE ") else {
        return Err(not("it begins neither as a .hprof file nor as a snapshot of ours".to_owned()));
    };
    if !["1.0.1", "1.0.2", "1.0.3"].contains(&number) {
        let reason = format!("its version is {number:?}; 1.0.1, 1.0.2 and 1.0.3 can be read");
        return Err(not(reason));
    }
    let Some(rest) = bytes.get(end + 1..end + 13) else {
        return Err(HeapError::damaged(count as u64, "it ends in its header"));
    };
    let width = match u4(rest) {
        4 => Width::Four,
        8 => Width::Eight,
        other => {
            let reason = format!("its ids have {other} bytes; 4 and 8 can be read");
            return Err(HeapError::damaged(end as u64 + 1, reason));
        }
    };
    Ok((width, u8_(&rest[4..]), end as u64 + 13))
}

/// Where a segment ends. Its length has 32 bits, so the length of a larger one lacks a multiple of
/// 4 GiB, and it is 0 if it was not known. The first end behind which another record begins is
/// taken.
fn extent(input: &Input, begin: u64, size: u64) -> Result<Segment> {
    let length = input.length();
    let mut end = begin + size;
    if end >= length {
        return Ok(Segment { begin, end: length, is_open: false });
    }
    // A segment without anything in it is one only if a record follows.
    while end < length {
        if begins_record(input, end)? {
            return Ok(Segment { begin, end, is_open: false });
        }
        end += 1 << 32;
    }
    let is_exact = end == length;
    Ok(Segment { begin, end: length, is_open: !is_exact })
}

/// Whether a record can begin here: its kind is known, and it fits.
fn begins_record(input: &Input, offset: u64) -> Result<bool> {
    let mut head = [0; HEADER as usize];
    let count = input.read_at(offset, &mut head)?;
    if count < head.len() {
        return Ok(count > 0 && is_known(head[0]));
    }
    let (tag, size) = (head[0], u64::from(u4(&head[5..])));
    let fits = offset + HEADER + size <= input.length() || tag == DUMP || tag == SEGMENT;
    Ok(is_known(tag) && fits && (tag != END || size == 0))
}

/// Reads one of the records that matter; `false` if it is cut.
fn record(window: &mut Window<'_>, top: &mut Top, tag: u8, size: u64) -> Result<bool> {
    let (width, id) = (top.width, top.width.bytes());
    let offset = window.offset();
    let least = match tag {
        TEXT => id,
        LOAD_CLASS => 2 * id + 8,
        FRAME => 4 * id + 8,
        TRACE => 12,
        _ => 0,
    };
    if size < least as u64 {
        return Err(HeapError::damaged(offset, "a record is shorter than its kind allows"));
    }
    let Some(body) = window.take(least)? else { return Ok(false) };
    match tag {
        TEXT => {
            let length = (size - id as u64) as u32;
            let name = width.id(body);
            top.names.insert(name, (offset + id as u64, length));
        }
        LOAD_CLASS => {
            let (serial, class, name) = (u4(body), width.id(&body[4..]), width.id(&body[8 + id..]));
            top.class_names.insert(class, name);
            top.class_serials.insert(u64::from(serial), name);
        }
        FRAME => {
            let (frame, at) = (width.id(body), |place: usize| width.id(&body[place * id..]));
            let (method, source) = (at(1), at(3));
            let tail = &body[4 * id..];
            let (class_serial, line) = (u4(tail), u4(&tail[4..]) as i32);
            top.frames.insert(frame, Frame { method, source, class_serial, line });
        }
        TRACE => {
            let (serial, count) = (u4(body), u4(&body[8..]));
            if u64::from(count) * id as u64 > size - 12 {
                return Err(HeapError::damaged(offset, "a stack is longer than its record"));
            }
            let Some(frames) = window.take(count as usize * id)? else { return Ok(false) };
            let frames = frames.chunks_exact(id).map(|frame| width.id(frame)).collect();
            top.traces.insert(u64::from(serial), frames);
        }
        _ => {}
    }
    if top.names.len() > MOST_NAMES || top.frames.len() > MOST_FRAMES {
        let what = "it has more names or frames than any program".to_owned();
        return Err(HeapError::TooLarge { what });
    }
    Ok(offset + size <= window.offset() + window.left())
}

/// A text of the file, made readable; empty if it is not there.
pub fn text(input: &Input, top: &Top, id: u64) -> Result<String> {
    /// No name in a class file is longer.
    const LONGEST: u32 = 65_535;
    let Some((offset, length)) = top.names.get(&id) else { return Ok(String::new()) };
    let mut bytes = vec![0; (*length).min(LONGEST) as usize];
    let count = input.read_at(*offset, &mut bytes)?;
    bytes.truncate(count);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
