//! Walks over all objects of a heap that want only some of it.

use crate::classes::{ClassId, Type};
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::Node;
use crate::par;
use crate::source::Visitor;

/// What is done with an instance, or with the values of an array.
pub trait Look: Send {
    fn instance(&mut self, _node: Node, _class: ClassId, _bytes: &[u8]) {}

    /// The bytes are those of the whole array, if it is not very large.
    fn values(&mut self, _node: Node, _kind: Type, _length: u32, _bytes: &[u8]) {}
}

struct Looking<'a, L> {
    heap: &'a Heap,
    look: L,
    wants_values: bool,
}

impl<L: Look> Visitor for Looking<'_, L> {
    fn wants_values(&self) -> bool {
        self.wants_values
    }

    fn class(&mut self, _: u64, _: ClassId, _: &[u64]) {}

    fn instance(&mut self, address: u64, class: ClassId, bytes: &[u8]) {
        if let Some(node) = self.heap.find(address) {
            self.look.instance(node, class, bytes);
        }
    }

    fn array(&mut self, _: u64, _: ClassId, _: u32) {}
    fn elements(&mut self, _: &[u64]) {}
    fn array_end(&mut self) {}

    fn values(&mut self, address: u64, kind: Type, length: u32, bytes: &[u8]) {
        if let Some(node) = self.heap.find(address).filter(|_| self.wants_values) {
            self.look.values(node, kind, length, bytes);
        }
    }
}

impl Heap {
    /// Looks at all objects, on all processors; what came of each part.
    pub(super) fn look<L: Look>(
        &self,
        wants_values: bool,
        make: impl Fn() -> L + Sync,
    ) -> Result<Vec<L>> {
        let outcomes = par::each(self.source.parts().len(), |at| {
            let mut looking = Looking { heap: self, look: make(), wants_values };
            self.source.walk(at, &mut looking)?;
            Ok(looking.look)
        });
        outcomes.into_iter().collect()
    }
}
