//! Collections that waste memory: empty ones with room, and those that use little of theirs.

use super::visit::Look;
use crate::classes::{ClassId, Type};
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::Node;
use crate::known::{Known, Size};
use crate::levels::{Level, Sum};
use crate::source::Decoder;
use std::collections::HashMap;

#[derive(Clone, Debug, Default)]
pub struct CollectionRow {
    pub class: ClassId,
    /// All that are held.
    pub all: Sum,
    /// Without entries: how many, and the bytes that they and their arrays take.
    pub empty: Sum,
    /// With an array of which less than a quarter is used, and the bytes that are not.
    pub sparse: Sum,
}

impl CollectionRow {
    pub fn wasted(&self) -> u64 {
        self.empty.bytes + self.sparse.bytes
    }
}

/// Of the classes of a dump those that are collections, with where their fields are.
#[derive(Clone, Copy)]
struct Shape {
    size: (u32, Type),
    /// Where a part of the count may be besides.
    cells: Option<u32>,
    array: Option<u32>,
}

struct Counting<'a> {
    heap: &'a Heap,
    shapes: &'a HashMap<ClassId, Shape>,
    decoder: Decoder,
    rows: HashMap<ClassId, CollectionRow>,
}

impl Look for Counting<'_> {
    fn instance(&mut self, node: Node, class: ClassId, bytes: &[u8]) {
        let Some(shape) = self.shapes.get(&class) else { return };
        if self.heap.level(node) != Level::Strong {
            return;
        }
        let row =
            self.rows.entry(class).or_insert_with(|| CollectionRow { class, ..Default::default() });
        let own = self.heap.size(node);
        row.all.add(own);
        // A count that threads have apart from each other is large.
        if shape.cells.is_some_and(|cells| self.decoder.reference(bytes, cells) != 0) {
            return;
        }
        let size = self.decoder.value(bytes, shape.size.0, shape.size.1);
        let array = shape.array.map(|offset| self.decoder.reference(bytes, offset));
        let array = array.and_then(|address| self.heap.find(address).filter(|_| address != 0));
        // An array that several share, as the one of new lists, is not this one's.
        let array = array.filter(|array| self.heap.dominator(*array) == Some(node));
        match (size, array) {
            (0, array) => row.empty.add(own + array.map_or(0, |array| self.heap.size(array))),
            (size, Some(array)) => {
                let capacity = self.heap.capacity(array);
                if size.saturating_mul(4) < capacity {
                    let reference = u64::from(self.heap.source.layout().reference);
                    row.sparse.add((capacity - size) * reference);
                }
            }
            _ => {}
        }
    }
}

impl Heap {
    /// Classes of collections, those that waste most first.
    pub fn collection_rows(&self) -> Result<Vec<CollectionRow>> {
        let shapes: HashMap<ClassId, Shape> = self
            .classes()
            .iter()
            .filter_map(|(id, _)| Some((id, self.shape(id, self.known(id)?)?)))
            .collect();
        let decoder = self.source.decoder();
        let make = || Counting { heap: self, shapes: &shapes, decoder, rows: HashMap::new() };
        let mut rows: HashMap<ClassId, CollectionRow> = HashMap::new();
        for part in self.look(false, make)? {
            for (class, part) in part.rows {
                let row = rows
                    .entry(class)
                    .or_insert_with(|| CollectionRow { class, ..Default::default() });
                for (sum, part) in [
                    (&mut row.all, part.all),
                    (&mut row.empty, part.empty),
                    (&mut row.sparse, part.sparse),
                ] {
                    sum.objects += part.objects;
                    sum.bytes += part.bytes;
                }
            }
        }
        let mut rows: Vec<CollectionRow> = rows.into_values().collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.wasted()), row.class));
        Ok(rows)
    }

    fn shape(&self, id: ClassId, known: &Known) -> Option<Shape> {
        let (size, cells) = match known.size {
            Size::Field(size) => (size, None),
            Size::Cells(size, cells) => (size, Some(cells)),
            Size::Behind(_) | Size::Between(..) => return None,
        };
        let offset = |name| self.classes().field(id, name).map(|field| field.offset);
        let size = self.classes().field(id, size)?;
        Some(Shape {
            size: (size.offset, size.field.kind),
            cells: cells.and_then(offset),
            array: known.array.and_then(offset),
        })
    }
}
