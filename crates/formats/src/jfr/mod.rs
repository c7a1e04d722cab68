//! JDK Flight Recorder's files: the JDK's own, async-profiler's, and ours.
//!
//! A file is a row of chunks, each complete in itself: a header, events, constant pools that events
//! point into, and metadata that describes every type in it. So the reader knows few types by
//! heart: it asks the metadata where a field is, and passes over what it does not know.
//!
//! ```text
//! bytes ─► cursor ─► metadata (types) ─► pools (constants) ─► read (chunks, events) ─► track (series)
//! schema (the types that we write) ─► write
//! ```

mod constants;
mod cursor;
mod events;
mod hash;
mod locks;
mod metadata;
mod names;
mod of_jvm;
mod pools;
mod read;
mod schema;
mod survivors;
mod track;
mod write;

pub use read::read;
pub use write::write;

const FORMAT: &str = "JFR";
const MAGIC: &[u8] = b"FLR\0";
/// The setting of an event which says that its rows are those of series of ours once more, for
/// readers that know none of ours. Its value are their names, with commas between.
const DERIVED_FROM: &str = "tare.derivedFrom";
/// In place of a descriptor that is not known: the JDK's tools look for the parentheses of every
/// one.
const NO_DESCRIPTOR: &str = "()";
/// Bytes of a chunk's header.
const HEADER: usize = 68;

/// The number of the event that holds a chunk's metadata.
const METADATA_EVENT: i64 = 0;
/// The number of the events that hold constants.
const POOL_EVENT: i64 = 1;

pub fn looks_like(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}
