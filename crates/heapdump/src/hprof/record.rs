//! Records inside a segment of a `.hprof` file: one after the other, headers only. Whoever asks
//! reads the body or passes over it.

use crate::classes::Type;
use crate::error::Result;
use crate::roots::RootKind;
use crate::window::Window;
use serde::{Deserialize, Serialize};

/// How ids are written: four bytes or eight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    Four,
    Eight,
}

impl Width {
    pub fn bytes(self) -> usize {
        match self {
            Width::Four => 4,
            Width::Eight => 8,
        }
    }

    #[inline]
    pub fn id(self, bytes: &[u8]) -> u64 {
        match self {
            Width::Four => u64::from(u4(bytes)),
            Width::Eight => u8_(bytes),
        }
    }
}

#[inline]
pub fn u2(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

#[inline]
pub fn u4(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[inline]
pub fn u8_(bytes: &[u8]) -> u64 {
    u64::from(u4(bytes)) << 32 | u64::from(u4(&bytes[4..]))
}

/// A value of so many bytes as bits.
pub fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

pub fn type_of(code: u8) -> Option<Type> {
    Some(match code {
        1 | 2 => Type::Reference,
        4 => Type::Boolean,
        5 => Type::Char,
        6 => Type::Float,
        7 => Type::Double,
        8 => Type::Byte,
        9 => Type::Short,
        10 => Type::Int,
        11 => Type::Long,
        _ => return None,
    })
}

pub enum Record {
    Root {
        object: u64,
        kind: RootKind,
        thread: u32,
        /// The number of the frame, or of the stack trace for a thread's object.
        frame: u32,
    },
    /// Its body is read by [`class`].
    Class,
    Instance {
        address: u64,
        class: u64,
        /// Of the body, in bytes.
        length: u32,
    },
    ObjectArray {
        address: u64,
        class: u64,
        length: u32,
    },
    PrimitiveArray {
        address: u64,
        kind: Type,
        length: u32,
        /// Whether the elements follow.
        has_body: bool,
    },
    /// Something without objects.
    Other,
}

/// What ends a walk over records.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Stop {
    /// The range ended between two records.
    End,
    /// It ended inside one.
    Cut,
    /// No record begins with this byte.
    Unknown(u8),
}

type Step<T> = std::result::Result<T, Stop>;

/// The header of the next record.
#[inline]
pub fn next(window: &mut Window<'_>, width: Width) -> Result<Step<Record>> {
    let Some(tag) = window.take(1)? else { return Ok(Err(Stop::End)) };
    let tag = tag[0];
    let id = width.bytes();
    macro_rules! take {
        ($count:expr) => {
            match window.take($count)? {
                Some(bytes) => bytes,
                None => return Ok(Err(Stop::Cut)),
            }
        };
    }
    Ok(Ok(match tag {
        0x21 => {
            let head = take!(2 * id + 8);
            let (address, class) = (width.id(head), width.id(&head[id + 4..]));
            Record::Instance { address, class, length: u4(&head[2 * id + 4..]) }
        }
        0x22 => {
            let head = take!(2 * id + 8);
            let (address, class) = (width.id(head), width.id(&head[id + 8..]));
            Record::ObjectArray { address, class, length: u4(&head[id + 4..]) }
        }
        0x23 | 0xc3 => {
            let head = take!(id + 9);
            let (address, length) = (width.id(head), u4(&head[id + 4..]));
            let Some(kind) = type_of(head[id + 8]).filter(|kind| *kind != Type::Reference) else {
                return Ok(Err(Stop::Unknown(tag)));
            };
            Record::PrimitiveArray { address, kind, length, has_body: tag == 0x23 }
        }
        0x20 => Record::Class,
        // Which heap of Android's the following objects are in.
        0xfe => {
            take!(4 + id);
            Record::Other
        }
        _ => {
            let Some((kind, extra)) = root_of(tag, id) else {
                return Ok(Err(Stop::Unknown(tag)));
            };
            let body = take!(id + extra);
            let object = width.id(body);
            let behind = &body[id..];
            let (thread, frame) = match (kind, extra) {
                // Ids of references in native code.
                (RootKind::JniGlobal, _) => (0, u32::MAX),
                (_, 8) => (u4(behind), u4(&behind[4..])),
                (_, 4) => (u4(behind), u32::MAX),
                _ => (0, u32::MAX),
            };
            Record::Root { object, kind, thread, frame }
        }
    }))
}

/// The kind of a root, and the bytes that follow its object.
fn root_of(tag: u8, id: usize) -> Option<(RootKind, usize)> {
    Some(match tag {
        0x01 => (RootKind::JniGlobal, id),
        0x02 => (RootKind::JniLocal, 8),
        0x03 => (RootKind::Local, 8),
        0x04 => (RootKind::NativeStack, 4),
        0x05 => (RootKind::SystemClass, 0),
        0x06 => (RootKind::ThreadBlock, 4),
        0x07 => (RootKind::Monitor, 0),
        0x08 => (RootKind::Thread, 8),
        // Android's.
        0x89 => (RootKind::Interned, 0),
        0x8e => (RootKind::Other, 8),
        0x90 => (RootKind::Unreachable, 0),
        0xff | 0x8a..=0x8d => (RootKind::Other, 0),
        _ => return None,
    })
}

/// Passes over the body of a record that is not a class; `false` if it is cut.
pub fn pass(window: &mut Window<'_>, width: Width, record: &Record) -> bool {
    window.skip(body_length(width, record))
}

pub fn body_length(width: Width, record: &Record) -> u64 {
    match *record {
        Record::Instance { length, .. } => u64::from(length),
        Record::ObjectArray { length, .. } => u64::from(length) * width.bytes() as u64,
        Record::PrimitiveArray { kind, length, has_body: true, .. } => {
            u64::from(length) * u64::from(kind.size(8))
        }
        _ => 0,
    }
}

/// A class as the file has it, with ids in place of names.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ClassRecord {
    pub address: u64,
    pub super_class: u64,
    pub loader: u64,
    /// Signers and the protection domain; 0 for none.
    pub owners: [u64; 2],
    /// Objects of the constant pool.
    pub pool: Vec<u64>,
    pub statics: Vec<(u64, Type, u64)>,
    pub fields: Vec<(u64, Type)>,
}

/// The body of a class.
pub fn class(window: &mut Window<'_>, width: Width) -> Result<Step<ClassRecord>> {
    let id = width.bytes();
    macro_rules! take {
        ($count:expr) => {
            match window.take($count)? {
                Some(bytes) => bytes,
                None => return Ok(Err(Stop::Cut)),
            }
        };
    }
    macro_rules! kind {
        ($code:expr) => {
            match type_of($code) {
                Some(kind) => kind,
                None => return Ok(Err(Stop::Unknown($code))),
            }
        };
    }
    let head = take!(7 * id + 8);
    let at = |place: usize| width.id(&head[4 + place * id..]);
    let mut class = ClassRecord {
        address: width.id(head),
        super_class: at(1),
        loader: at(2),
        owners: [at(3), at(4)],
        ..ClassRecord::default()
    };
    for _ in 0..u2(take!(2)) {
        let kind = kind!(take!(3)[2]);
        let value = bits(take!(kind.size(id as u32) as usize));
        if kind == Type::Reference && value != 0 {
            class.pool.push(value);
        }
    }
    for _ in 0..u2(take!(2)) {
        let head = take!(id + 1);
        let (name, kind) = (width.id(head), kind!(head[id]));
        class.statics.push((name, kind, bits(take!(kind.size(id as u32) as usize))));
    }
    for _ in 0..u2(take!(2)) {
        let head = take!(id + 1);
        class.fields.push((width.id(head), kind!(head[id])));
    }
    Ok(Ok(class))
}
