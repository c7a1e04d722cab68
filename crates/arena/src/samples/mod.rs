//! The stream of a session: samples, events, traces, methods and threads, in one ring.
//!
//! The JVM's threads write from their signal handlers, the agent adds names, and one front end
//! drains: it keeps what it has read, so the JVM holds no more than the ring. A trace is sent
//! once (or again under a new id, when the agent forgot it) and samples refer to it by id.
//!
//! [`Stream`] is the reading side. It works on a descriptor by plain reads, at any moment, also
//! after the JVM was killed, and trusts nothing that it reads.

mod events;
pub mod layout;
mod records;
mod stream;

pub use events::{BORN_OLD, DeclaredKind, EventHead, FieldKind, StreamEvent, Text};
pub use layout::{Counter, How, Special, State};
pub use records::{
    Frame, LineEntry, Record, Sample, SampleMethod, SampleThread, ThreadType, Trace,
};
pub use stream::{Stream, StreamError, Totals};
