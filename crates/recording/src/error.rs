//! What can go wrong with a recording, and what a reader tells about one that it could not read
//! whole.

use std::fmt;
use std::io;

/// Why nothing could be read.
#[derive(Debug)]
pub enum ReadError {
    Io(io::Error),
    /// There is neither a header nor a single whole block.
    NotARecording,
    /// Written by a later version, in a way that this one cannot understand.
    TooNew {
        version: u16,
    },
}

/// Why a recording could not be written on.
#[derive(Debug)]
pub enum WriteError {
    Io(io::Error),
    /// An earlier write failed; what was written before it is readable.
    FailedBefore,
    /// More series or kinds of events than the format can number.
    TooMany {
        what: &'static str,
    },
}

/// Something about a recording that its user should know. None of them prevents reading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Warning {
    /// The file has no end: it is still being written, or its writer was stopped.
    NoEnd,
    /// The beginning of the file is damaged.
    DamagedHeader,
    /// Bytes in which no whole block was found.
    Skipped { offset: u64, bytes: u64 },
    /// A block whose content could not be read, and why.
    DamagedBlock { offset: u64, reason: &'static str },
    /// Rows that refer to others that are lost; they are accounted as `[unknown: damaged]`.
    Orphans { table: &'static str, rows: u64 },
    /// The file has more than may be held in memory; the rest was left out.
    TooLarge { limit: u64 },
    /// Blocks of a kind that this version does not know.
    Unknown { blocks: u64 },
    /// A field of events whose type this version does not know; the rest of the events is there.
    UnknownField { event: String, field: String },
}

impl Warning {
    /// Whether something is lost, and not only unfinished or of a later version.
    pub(crate) fn is_damage(&self) -> bool {
        !matches!(self, Warning::NoEnd | Warning::Unknown { .. } | Warning::UnknownField { .. })
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        WriteError::Io(error)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "it could not be read: {error}"),
            ReadError::NotARecording => write!(f, "it is not a recording of Tare"),
            ReadError::TooNew { version } => write!(
                f,
                "it is in version {version} of the format, and this tare knows versions up to {}; \
                 use a newer tare",
                crate::VERSION
            ),
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Io(error) => write!(f, "the recording could not be written: {error}"),
            WriteError::FailedBefore => write!(f, "writing the recording failed before"),
            WriteError::TooMany { what } => write!(f, "a recording holds 65,536 {what} at most"),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::NoEnd => write!(
                f,
                "the recording has no end: it is still being written, or its writer was stopped; \
                 what came after the last look, usually less than a second, is missing"
            ),
            Warning::DamagedHeader => write!(f, "the beginning of the file is damaged"),
            Warning::Skipped { offset, bytes } => {
                write!(f, "{bytes} bytes at offset {offset} are damaged and were skipped")
            }
            Warning::DamagedBlock { offset, reason } => {
                write!(f, "the block at offset {offset} was skipped: {reason}")
            }
            Warning::Orphans { table, rows } => write!(
                f,
                "{rows} rows of {table} refer to others that are lost, and are shown as [unknown: damaged]"
            ),
            Warning::TooLarge { limit } => write!(
                f,
                "the recording needs more than {} MB of memory; the rest was left out",
                limit / 1_000_000
            ),
            Warning::Unknown { blocks } => write!(
                f,
                "{blocks} blocks are of a kind that this tare does not know; a newer one shows more"
            ),
            Warning::UnknownField { event, field } => write!(
                f,
                "the field {field:?} of {event:?} events is of a type that this tare does not know, \
                 and was skipped; a newer one shows it"
            ),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Io(error) => Some(error),
            _ => None,
        }
    }
}
