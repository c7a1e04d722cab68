//! The `.tare` file: a profile that outlives the run, written while it grows.
//!
//! A [`Writer`] appends what is new in a profile; after each append the file is whole but for its
//! end, so a crash of anything loses what came after the last one. A [`Recording`] opens a file by
//! its index, or, if there is none, by hopping over its blocks, and loads as much of it as is asked
//! for. Damage costs the damaged blocks and is told as a [`Warning`].
//!
//! FORMAT.md, beside this crate's sources, describes the bytes. This crate knows nothing of what is
//! measured or shown.

#![forbid(unsafe_code)]

mod block;
mod bytes;
mod chunk;
mod codes;
mod crc;
mod decode;
mod encode;
mod error;
mod follow;
mod load;
mod reader;
mod rows;
mod run;
mod upgrade;
mod writer;

pub use error::{ReadError, Warning, WriteError};
pub use follow::{Follower, Polled};
pub use load::{LoadOptions, Loaded};
pub use reader::{Recording, Summary};
pub use writer::Writer;

/// The version of the format that is written. Earlier ones are read.
pub const VERSION: u16 = 2;
