//! Numbers in objects of their own: how many there are, and how many different ones.

use super::visit::Look;
use crate::classes::{ClassId, Type};
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::Node;
use crate::levels::{Level, Sum};
use crate::source::Decoder;
use crate::values::is_boxed;
use std::collections::HashMap;

#[derive(Clone, Debug)]
pub struct BoxedRow {
    pub class: ClassId,
    pub all: Sum,
    /// Different values among them.
    pub values: u64,
}

struct Boxes<'a> {
    heap: &'a Heap,
    fields: &'a HashMap<ClassId, (u32, Type)>,
    decoder: Decoder,
    found: HashMap<ClassId, Vec<u64>>,
}

impl Look for Boxes<'_> {
    fn instance(&mut self, node: Node, class: ClassId, bytes: &[u8]) {
        if let Some((offset, kind)) = self.fields.get(&class)
            && self.heap.level(node) == Level::Strong
        {
            let value = self.decoder.value(bytes, *offset, *kind);
            self.found.entry(class).or_default().push(value);
        }
    }
}

impl Heap {
    /// By class, those that take most first.
    pub fn boxed_rows(&self) -> Result<Vec<BoxedRow>> {
        let fields: HashMap<ClassId, (u32, Type)> = self
            .classes()
            .iter()
            .filter(|(_, class)| class.loader == 0 && is_boxed(&class.name))
            .filter_map(|(id, _)| {
                let value = self.classes().field(id, "value")?;
                Some((id, (value.offset, value.field.kind)))
            })
            .collect();
        let decoder = self.source.decoder();
        let make = || Boxes { heap: self, fields: &fields, decoder, found: HashMap::new() };
        let mut found: HashMap<ClassId, Vec<u64>> = HashMap::new();
        for part in self.look(false, make)? {
            for (class, values) in part.found {
                found.entry(class).or_default().extend(values);
            }
        }
        let row = |(class, mut values): (ClassId, Vec<u64>)| {
            let objects = values.len() as u64;
            let bytes = objects * u64::from(self.classes().get(class).size);
            values.sort_unstable();
            values.dedup();
            BoxedRow { class, all: Sum { objects, bytes }, values: values.len() as u64 }
        };
        let mut rows: Vec<BoxedRow> = found.into_iter().map(row).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.all.bytes), row.class));
        Ok(rows)
    }
}
