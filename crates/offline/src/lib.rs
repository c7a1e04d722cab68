//! The weaver on files: classes, jars and directories in, the same woven out.
//!
//! [`modes`] names the sets of probes that a person can ask for and says which static methods of a
//! runtime class they call. [`batch`] weaves class after class and keeps the totals; it touches no
//! files. [`files`] walks jars and directories. How a method is changed is the weaver's business.
#![forbid(unsafe_code)]

pub mod batch;
pub mod files;
pub mod modes;

pub use batch::{Batch, Row, Settings, Totals};
pub use files::{FileError, classes_of, weave_path};
pub use modes::{Mode, ModeError, Modes};

/// The runtime class that probes call unless another is named. It stands where woven classes of
/// every module and loader can link to it.
pub const DEFAULT_RUNTIME: &str = "java/lang/TareProbe";
