//! What can go wrong with a foreign file, with the place in it and what to do.

use std::fmt;
use std::io;

/// Why a foreign file could not be read at all. What could be read only in part comes back as a
/// profile whose `run.losses` name the rest.
#[derive(Debug)]
pub enum ReadError {
    Io(io::Error),
    /// A device or a pipe, which may have no end.
    NotAFile,
    /// More bytes than are read.
    TooLarge {
        size: u64,
        limit: u64,
    },
    /// No format of ours begins like that.
    Unknown,
    /// The file breaks its format's rules at an offset, in bytes of the unpacked file.
    Malformed {
        format: &'static str,
        offset: u64,
        problem: String,
    },
    /// A version of the format that came after this program.
    Version {
        format: &'static str,
        found: String,
    },
    /// Unpacked, it would be larger than any honest file of its size.
    Bomb {
        limit: u64,
    },
}

impl ReadError {
    pub(crate) fn malformed(format: &'static str, offset: usize, problem: &str) -> Self {
        ReadError::Malformed { format, offset: offset as u64, problem: problem.to_owned() }
    }

    /// What is wrong and where, for the losses of a file of which the rest was read.
    pub(crate) fn reason(&self) -> String {
        match self {
            ReadError::Malformed { offset, problem, .. } => format!("{problem} at byte {offset}"),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "{error}"),
            ReadError::NotAFile => write!(
                f,
                "it is no file but a device or a pipe, which may have no end; write what comes of it \
                 into a file first"
            ),
            ReadError::TooLarge { size, limit } => write!(
                f,
                "it has {} MB, and no more than {} MB are read; take a part of it, of JFR by `jfr \
                 disassemble`",
                size >> 20,
                limit >> 20
            ),
            ReadError::Unknown => write!(
                f,
                "this is no recording that can be read here; JFR (.jfr), pprof (.pb.gz) and \
                 collapsed stacks (text, one `a;b;c 12` per line) can"
            ),
            ReadError::Malformed { format, offset, problem } => write!(
                f,
                "not a readable {format} file: {problem} at byte {offset}; copy it again, or \
                 record anew"
            ),
            ReadError::Version { format, found } => write!(
                f,
                "{format} of version {found} is not known here; convert it to pprof or collapsed \
                 stacks with the tool that wrote it"
            ),
            ReadError::Bomb { limit } => write!(
                f,
                "it unpacks to more than {} MB, which no honest file of its size does; if it is \
                 one, unpack it with gunzip first",
                limit >> 20
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

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

/// Why a profile could not be written.
#[derive(Debug)]
pub enum WriteError {
    Io(io::Error),
    /// No series holds a value.
    Empty,
    /// The format is made of moments, and the profile holds none.
    NoTimes {
        format: &'static str,
    },
    /// The numbers of the format are too small for this profile.
    TooLarge {
        format: &'static str,
        what: &'static str,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Io(error) => write!(f, "{error}"),
            WriteError::Empty => {
                write!(f, "the recording holds no values, so there is nothing to export")
            }
            WriteError::NoTimes { format } => write!(
                f,
                "{format} shows when things happened, and this recording holds no times, or only \
                 by the second; an .html flame graph needs none"
            ),
            WriteError::TooLarge { format, what } => write!(
                f,
                "{format} cannot hold so many {what}; choose another format, or a part of the \
                 recording"
            ),
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

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        WriteError::Io(error)
    }
}
