//! Class files: a reader over borrowed bytes, a writer, and one table of opcodes.
//!
//! The reader checks the outline of a file once (constant pool, members, attribute lengths) and
//! hands out byte ranges; whoever needs the inside of an attribute asks for it by its own type.
//! What nobody asks for stays a range of bytes and is written back as it was, which is why an
//! unknown attribute or a class-file version from the future needs no special case.
//!
//! This crate knows nothing of profiling and nothing of what is inserted into methods: that is the
//! weaver's. It never panics, loops or allocates without bound, whatever the bytes.
#![forbid(unsafe_code)]

pub mod annotations;
pub mod attributes;
pub mod class;
pub mod code;
pub mod descriptor;
pub mod error;
pub mod insn;
pub mod kinds;
pub mod mutf8;
pub mod opcode;
pub mod pool;
pub mod print;
pub mod reader;
pub mod stackmap;
pub mod writer;

pub use attributes::{Attribute, Attributes};
pub use class::{ClassFile, Member};
pub use code::{Code, ExceptionEntry};
pub use error::{Error, ErrorKind, Result};
pub use insn::{Insn, Insns};
pub use pool::{Constant, ConstantPool};
pub use stackmap::{Frame, FrameKind, Frames, VerificationType};
pub use writer::PoolBuilder;

/// The newest class-file major version that this crate was written against (JDK 25).
///
/// A newer one is read all the same: only constant tags and opcodes that do not exist yet could
/// stop it, and those are reported where they stand.
pub const NEWEST_KNOWN_MAJOR: u16 = 69;

/// Access flags, as far as anyone here asks for them.
pub mod access {
    pub const PUBLIC: u16 = 0x0001;
    pub const PRIVATE: u16 = 0x0002;
    pub const STATIC: u16 = 0x0008;
    pub const FINAL: u16 = 0x0010;
    pub const SYNCHRONIZED: u16 = 0x0020;
    pub const NATIVE: u16 = 0x0100;
    pub const INTERFACE: u16 = 0x0200;
    pub const ABSTRACT: u16 = 0x0400;
    pub const SYNTHETIC: u16 = 0x1000;
    pub const MODULE: u16 = 0x8000;
}
