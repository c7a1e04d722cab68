//! The weaver on files: classes, jars and directories in, the same woven out.
//!
//! [`modes`] names the sets of probes that a person can ask for and says which static methods of a
//! runtime class they call. [`batch`] weaves class after class and keeps the totals; it touches no
//! files. [`files`] walks jars and directories, `staging` keeps results apart until they are whole.
//! [`portable`] is the runtime for programs that run without an agent; their modules and manifests
//! are changed so that it is found. How a method is changed is the weaver's business.
#![forbid(unsafe_code)]

pub mod batch;
pub mod files;
mod kernels;
mod manifest;
pub mod modes;
mod module;
pub mod portable;
mod staging;

pub use batch::{Batch, Row, Settings, Totals, Wanted};
pub use files::{FileError, classes_of, weave_aside, weave_path};
pub use kernels::Mix;
pub use modes::{Mode, ModeError, Modes};
pub use staging::Staging;
pub use tare_weaver::Blocks;

/// The runtime class that probes call unless another is named. It stands where woven classes of
/// every module and loader can link to it.
pub const DEFAULT_RUNTIME: &str = "java/lang/TareProbe";
