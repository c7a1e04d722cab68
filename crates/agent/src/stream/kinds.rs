//! Kinds of events and texts of a ring: declared by who appends, numbered by the ring, so that
//! engines that share it do not meet.

use super::{Ring, Stream};
use std::sync::atomic::{AtomicU32, Ordering::*};
use tare_arena::samples::{DeclaredKind, FieldKind, Text};

/// The numbers that were given out last.
#[derive(Default)]
pub struct Numbers {
    kind: AtomicU32,
    text: AtomicU32,
}

impl Ring {
    /// The number of a new kind of event, which is sent. `None` when there is no room for it.
    pub fn declare(&self, name: &str, fields: &[(&str, FieldKind)]) -> Option<u32> {
        let id = self.numbers.kind.fetch_add(1, Relaxed) + 1;
        let kind = DeclaredKind::new(id, name, fields);
        self.append_bytes(&kind.encode()).then_some(id)
    }

    /// The id of a new text, which is sent. `None` when there is no room for it. For any thread of
    /// the JVM, but no signal handler.
    pub fn text(&self, text: String) -> Option<u32> {
        let id = self.numbers.text.fetch_add(1, Relaxed) + 1;
        self.append_bytes(&Text { id, text }.encode()).then_some(id)
    }
}

impl Stream {
    /// As [`Ring::declare`].
    pub fn declare(&self, name: &str, fields: &[(&str, FieldKind)]) -> Option<u32> {
        self.ring.declare(name, fields)
    }

    /// As [`Ring::text`].
    pub fn text(&self, text: String) -> Option<u32> {
        self.ring.text(text)
    }
}
