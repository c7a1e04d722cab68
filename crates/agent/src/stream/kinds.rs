//! Kinds of events and texts of a stream: declared by engines, numbered by the stream, so that
//! engines that share it do not meet.

use super::Stream;
use std::sync::atomic::{AtomicU32, Ordering::*};
use tare_arena::samples::{DeclaredKind, FieldKind, Text};

/// The numbers that were given out last.
#[derive(Default)]
pub struct Numbers {
    kind: AtomicU32,
    text: AtomicU32,
}

impl Stream {
    /// The number of a new kind of event, which is sent. `None` when there is no room for it.
    pub fn declare(&self, name: &str, fields: &[(&str, FieldKind)]) -> Option<u32> {
        let id = self.numbers.kind.fetch_add(1, Relaxed) + 1;
        let kind = DeclaredKind::new(id, name, fields);
        self.ring.append_bytes(&kind.encode()).then_some(id)
    }

    /// The id of a new text, which is sent. `None` when there is no room for it. For any thread of
    /// the JVM, but no signal handler.
    pub fn text(&self, text: String) -> Option<u32> {
        let id = self.numbers.text.fetch_add(1, Relaxed) + 1;
        self.ring.append_bytes(&Text { id, text }.encode()).then_some(id)
    }
}
