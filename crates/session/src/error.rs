//! What can go wrong in a session, as a caller can tell it apart.
//!
//! The texts are sentences for people. What another process said in them is one harmless line.
//! Where one error led to another, [`std::error::Error::source`] has the cause, and the text is
//! only what was being done.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use tare_arena::ReadError as ArenaError;
use tare_arena::samples::StreamError;
use tare_arena::trace::TraceError;
use tare_protocol::WireError;
use tare_recording::{ReadError, WriteError};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for cannot be done; the text says why, and what to do about it.
    Refused(String),
    /// The agent said no, in its own words.
    Agent(String),
    /// The JVM closed the connection, as it does when it ends.
    Gone(Option<io::Error>),
    /// The agent did not answer in time; the text says what it is doing, if that is known.
    Silent(String),
    /// The other end said something that makes no sense, or is not to be believed.
    Confused(String),
    /// No recording of this JVM takes commands.
    NotRecorded {
        pid: u32,
    },
    Attach(tare_attach::Error),
    Wire(WireError),
    Trees(ArenaError),
    Trace(TraceError),
    Samples(StreamError),
    Io(io::Error),
    Read(ReadError),
    Write(WriteError),
    /// What was being done when the cause came up.
    While {
        doing: String,
        cause: Box<Error>,
    },
}

impl Error {
    /// The agent's answer is no answer to what was asked.
    pub(crate) fn another_question() -> Self {
        Error::Confused("the agent sent an unexpected answer".to_owned())
    }

    pub(crate) fn during(self, doing: impl Into<String>) -> Self {
        Error::While { doing: doing.into(), cause: Box::new(self) }
    }

    /// The first cause.
    pub fn root(&self) -> &Error {
        match self {
            Error::While { cause, .. } => cause.root(),
            error => error,
        }
    }
}

/// With `{:#}` the causes as well, in one line.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text(f)?;
        let mut cause = self.source().filter(|_| f.alternate());
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl Error {
    fn text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(text)
            | Error::Agent(text)
            | Error::Silent(text)
            | Error::Confused(text) => f.write_str(text),
            Error::Gone(None) => f.write_str("the JVM closed the connection; has it ended?"),
            Error::Gone(Some(e)) => write!(f, "the JVM closed the connection ({e}); has it ended?"),
            Error::NotRecorded { pid } => write!(
                f,
                "JVM {pid} is not being recorded by any `tare record` here; start with `tare record {pid}`"
            ),
            Error::Attach(e) => write!(f, "{e}"),
            Error::Wire(e) => write!(f, "{e}"),
            Error::Trees(e) => write!(f, "{e}"),
            Error::Trace(e) => write!(f, "{e}"),
            Error::Samples(e) => write!(f, "{e}"),
            Error::Io(e) => write!(f, "{e}"),
            Error::Read(e) => write!(f, "{e}"),
            Error::Write(e) => write!(f, "{e}"),
            Error::While { doing, .. } => f.write_str(doing),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::While { cause, .. } => Some(&**cause),
            // What these say is said already.
            Error::Attach(e) => e.source(),
            Error::Wire(e) => e.source(),
            Error::Trees(e) => e.source(),
            Error::Trace(e) => e.source(),
            Error::Samples(e) => e.source(),
            Error::Io(e) => e.source(),
            Error::Read(e) => e.source(),
            Error::Write(e) => e.source(),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($variant:ident: $error:ty),* $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::$variant(error)
            }
        })*
    };
}

from! {
    Attach: tare_attach::Error,
    Wire: WireError,
    Trees: ArenaError,
    Trace: TraceError,
    Samples: StreamError,
    Io: io::Error,
    Read: ReadError,
    Write: WriteError,
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Error::Io(error.into())
    }
}

/// Says what was being done when something went wrong.
pub trait Context<T> {
    fn context(self, doing: impl Into<String>) -> Result<T>;
    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T> {
        self.with_context(|| doing)
    }

    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|error| error.into().during(doing()))
    }
}

/// Nothing, where something is needed, is a refusal.
impl<T> Context<T> for Option<T> {
    fn context(self, doing: impl Into<String>) -> Result<T> {
        self.with_context(|| doing)
    }

    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T> {
        self.ok_or_else(|| Error::Refused(doing().into()))
    }
}

/// Returns [`Error::Refused`].
macro_rules! refuse {
    ($($text:tt)*) => { return Err($crate::Error::Refused(format!($($text)*))) };
}
pub(crate) use refuse;
