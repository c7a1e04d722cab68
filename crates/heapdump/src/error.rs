//! What can be wrong with a dump, so that a caller can tell the cases apart.

use std::fmt;
use std::io;

#[derive(Debug)]
pub enum HeapError {
    /// The file cannot be read.
    Io { doing: &'static str, error: io::Error },
    /// It is something else.
    NotADump { reason: String },
    /// It is a dump, but one from which nothing can be told.
    Damaged { offset: u64, reason: String },
    /// It is a snapshot of ours that cannot be used.
    Broken { reason: String },
    /// It is larger than what is supported, or than what was allowed.
    TooLarge { what: String },
    /// Computing it takes more memory than was allowed.
    Memory { objects: u64, needed: u64, allowed: u64 },
    /// What was asked for is not in it.
    NotFound { what: String },
    /// A line of a query that is none.
    Query { reason: String },
}

pub type Result<T> = std::result::Result<T, HeapError>;

impl HeapError {
    pub fn io(doing: &'static str) -> impl FnOnce(io::Error) -> HeapError {
        move |error| HeapError::Io { doing, error }
    }

    pub fn damaged(offset: u64, reason: impl Into<String>) -> HeapError {
        HeapError::Damaged { offset, reason: reason.into() }
    }
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeapError::Io { doing, error } => write!(f, "{doing}: {error}"),
            HeapError::NotADump { reason } => write!(f, "it is no heap dump: {reason}"),
            HeapError::Damaged { offset, reason } => {
                write!(f, "it is damaged at byte {offset}: {reason}")
            }
            HeapError::Broken { reason } => write!(f, "{reason}"),
            HeapError::TooLarge { what } => write!(f, "{what}"),
            HeapError::Memory { objects, needed, allowed } => {
                let (needed, allowed) = (needed.div_ceil(1 << 20), allowed >> 20);
                write!(
                    f,
                    "it has {objects} objects, for which up to {needed} MiB of memory are needed, \
                     and there are {allowed} MiB"
                )
            }
            HeapError::NotFound { what } => write!(f, "{what}"),
            HeapError::Query { reason } => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for HeapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            HeapError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
