//! What can be wrong with the bytes of a class file, and where.

use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

/// A fault at a byte offset of the class file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Offset from the start of the class file.
    pub offset: usize,
    pub kind: ErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The bytes end inside an item.
    UnexpectedEnd,
    /// An item is longer than what is left for it.
    LengthTooLarge,
    BadMagic(u32),
    BadConstantTag(u8),
    /// A constant-pool index that names no entry.
    BadConstantIndex(u16),
    /// A constant-pool entry of another kind than its user needs.
    WrongConstant {
        index: u16,
        expected: &'static str,
    },
    /// Bytes after the end of the class, or of an attribute.
    TrailingBytes,
    /// An attribute that must occur at most once occurs twice.
    DuplicateAttribute(&'static str),
    EmptyCode,
    BadOpcode(u8),
    /// A `wide` prefix before an instruction that has no wide form.
    BadWide(u8),
    /// A switch whose bounds or pairs make no sense.
    BadSwitch,
    /// A jump, a table entry or a frame names an offset where no instruction starts.
    BadCodeOffset(u32),
    BadFrameTag(u8),
    BadVerificationTag(u8),
    /// A `chop` frame removes more locals than there are.
    FrameUnderflow,
    BadDescriptor,
    BadModifiedUtf8,
    BadAnnotationTarget(u8),
    BadElementTag(u8),
    /// Annotations nested deeper than anyone needs.
    TooDeep,
}

impl Error {
    pub fn new(offset: usize, kind: ErrorKind) -> Self {
        Self { offset, kind }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.offset)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnexpectedEnd => write!(f, "unexpected end"),
            Self::LengthTooLarge => write!(f, "a length larger than what is left"),
            Self::BadMagic(m) => write!(f, "not a class file (magic {m:#010x})"),
            Self::BadConstantTag(t) => write!(f, "unknown constant-pool tag {t}"),
            Self::BadConstantIndex(i) => write!(f, "no constant-pool entry {i}"),
            Self::WrongConstant { index, expected } => {
                write!(f, "constant-pool entry {index} is not a {expected}")
            }
            Self::TrailingBytes => write!(f, "bytes after the end"),
            Self::DuplicateAttribute(n) => write!(f, "second {n} attribute"),
            Self::EmptyCode => write!(f, "a method without instructions"),
            Self::BadOpcode(o) => write!(f, "unknown opcode {o:#04x}"),
            Self::BadWide(o) => write!(f, "opcode {o:#04x} has no wide form"),
            Self::BadSwitch => write!(f, "malformed switch"),
            Self::BadCodeOffset(o) => write!(f, "no instruction starts at offset {o}"),
            Self::BadFrameTag(t) => write!(f, "unknown stack-map frame tag {t}"),
            Self::BadVerificationTag(t) => write!(f, "unknown verification type {t}"),
            Self::FrameUnderflow => write!(f, "a frame removes more locals than there are"),
            Self::BadDescriptor => write!(f, "malformed descriptor"),
            Self::BadModifiedUtf8 => write!(f, "malformed modified UTF-8"),
            Self::BadAnnotationTarget(t) => write!(f, "unknown annotation target {t:#04x}"),
            Self::BadElementTag(t) => write!(f, "unknown annotation element {t}"),
            Self::TooDeep => write!(f, "annotations nested too deep"),
        }
    }
}

impl std::error::Error for Error {}
