//! What the `counters` engine tells.

use crate::{Message, WireError};

/// What happened in the JVM since the counters were switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    pub threads_started: u64,
    pub threads_ended: u64,
    pub classes_prepared: u64,
    pub collections: u64,
    /// Time between the start and the end of collections, in nanoseconds.
    pub collection_ns: u64,
    pub methods_compiled: u64,
}

impl EventCounts {
    /// What came since an earlier look at the same counters.
    #[must_use]
    pub fn since(self, earlier: EventCounts) -> EventCounts {
        EventCounts {
            threads_started: self.threads_started.wrapping_sub(earlier.threads_started),
            threads_ended: self.threads_ended.wrapping_sub(earlier.threads_ended),
            classes_prepared: self.classes_prepared.wrapping_sub(earlier.classes_prepared),
            collections: self.collections.wrapping_sub(earlier.collections),
            collection_ns: self.collection_ns.wrapping_sub(earlier.collection_ns),
            methods_compiled: self.methods_compiled.wrapping_sub(earlier.methods_compiled),
        }
    }

    pub(crate) fn to_message(self) -> Message {
        Message::new("status")
            .with("threads-started", self.threads_started)
            .with("threads-ended", self.threads_ended)
            .with("classes-prepared", self.classes_prepared)
            .with("collections", self.collections)
            .with("collection-ns", self.collection_ns)
            .with("methods-compiled", self.methods_compiled)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(EventCounts {
            threads_started: m.parse("threads-started")?,
            threads_ended: m.parse("threads-ended")?,
            classes_prepared: m.parse("classes-prepared")?,
            collections: m.parse("collections")?,
            collection_ns: m.parse("collection-ns")?,
            methods_compiled: m.parse("methods-compiled")?,
        })
    }
}
