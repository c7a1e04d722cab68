//! Why an exact recording did not begin.

use crate::engines::EngineError;
use crate::jvm::Failure;
use std::{fmt, io};

/// Why a session did not begin.
#[derive(Debug)]
pub enum ExactError {
    AlreadyOn,
    Memory(io::Error),
    Runtime(&'static str),
    /// The JVM would not survive its own plans for its classes.
    Archive(&'static str),
    Jvmti(Failure),
    /// Who asked for it does not want it any more.
    Stopped,
}

impl fmt::Display for ExactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExactError::AlreadyOn => {
                write!(f, "an exact recording of this JVM is already under way; end that one first")
            }
            ExactError::Memory(e) => write!(f, "no memory for the trees: {e}"),
            ExactError::Runtime(what) | ExactError::Archive(what) => write!(f, "{what}"),
            ExactError::Jvmti(failure) => write!(f, "{failure}"),
            ExactError::Stopped => {
                write!(f, "stopped before all classes were woven; those that were are restored")
            }
        }
    }
}

impl From<ExactError> for EngineError {
    fn from(error: ExactError) -> Self {
        EngineError::Refused(error.to_string())
    }
}
