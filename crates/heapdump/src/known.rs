//! Collections of the JDK: how many entries one has, and the array behind it.

use crate::classes::ClassId;
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::Node;
use crate::values::{Inside, Value};

/// How a collection of the JDK is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub class: &'static str,
    /// The field with the number of entries; or with the collection behind it, if there is no
    /// array.
    pub size: Size,
    /// The field with the array.
    pub array: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Field(&'static str),
    /// The sum of a field and of cells, by which threads count apart from each other.
    Cells(&'static str, &'static str),
    /// It is a view of another one.
    Behind(&'static str),
    /// From the first field, modulo the array, to the second.
    Between(&'static str, &'static str),
}

const fn with(class: &'static str, size: &'static str, array: &'static str) -> Known {
    Known { class, size: Size::Field(size), array: Some(array) }
}

const fn behind(class: &'static str, field: &'static str) -> Known {
    Known { class, size: Size::Behind(field), array: None }
}

const fn linked(class: &'static str) -> Known {
    Known { class, size: Size::Field("size"), array: None }
}

const KNOWN: [Known; 17] = [
    with("java.util.ArrayList", "size", "elementData"),
    with("java.util.HashMap", "size", "table"),
    Known {
        class: "java.util.concurrent.ConcurrentHashMap",
        size: Size::Cells("baseCount", "counterCells"),
        array: Some("table"),
    },
    behind("java.util.HashSet", "map"),
    with("java.util.Vector", "elementCount", "elementData"),
    with("java.util.Hashtable", "count", "table"),
    with("java.util.IdentityHashMap", "size", "table"),
    with("java.util.WeakHashMap", "size", "table"),
    with("java.util.PriorityQueue", "size", "queue"),
    with("java.util.EnumMap", "size", "vals"),
    with("java.lang.ThreadLocal$ThreadLocalMap", "size", "table"),
    Known {
        class: "java.util.ArrayDeque",
        size: Size::Between("head", "tail"),
        array: Some("elements"),
    },
    linked("java.util.LinkedList"),
    linked("java.util.TreeMap"),
    behind("java.util.TreeSet", "m"),
    behind("java.util.concurrent.ConcurrentHashMap$KeySetView", "map"),
    behind("java.util.Collections$SetFromMap", "m"),
];

impl Heap {
    /// How a class is built, if it is a collection of the JDK or extends one.
    pub fn known(&self, id: ClassId) -> Option<&'static Known> {
        let classes = self.classes();
        classes.lineage(id).find_map(|class| {
            let class = classes.get(class);
            // Others may have classes of such names, too.
            let is_jdk = class.loader == 0;
            KNOWN.iter().find(|known| is_jdk && known.class == class.name)
        })
    }

    /// The number of entries of a collection; `None` if it is none that is known.
    pub fn entries(&self, node: Node) -> Result<Option<u64>> {
        let mut node = node;
        // A view of a map, which may be a view itself.
        for _ in 0..4 {
            let Some(known) = self.known(self.class_id(node)) else { return Ok(None) };
            match known.size {
                Size::Field(field) => {
                    let count = self.field(node, field)?.and_then(|value| value.int());
                    return Ok(count.and_then(|count| u64::try_from(count).ok()));
                }
                Size::Cells(base, cells) => {
                    let base = self.field(node, base)?.and_then(|value| value.int()).unwrap_or(0);
                    let cells = self.field(node, cells)?.and_then(|value| value.node());
                    let cells = cells.map_or(Ok(0), |cells| self.sum_of_cells(cells))?;
                    return Ok(u64::try_from(base.saturating_add(cells)).ok());
                }
                Size::Behind(field) => {
                    match self.field(node, field)?.and_then(|value| value.node()) {
                        Some(inner) => node = inner,
                        None => return Ok(None),
                    }
                }
                Size::Between(head, tail) => {
                    let int = |name| Ok(self.field(node, name)?.and_then(|value| value.int()));
                    let (Some(head), Some(tail)) = (int(head)?, int(tail)?) else {
                        return Ok(None);
                    };
                    let array = known.array.map(|array| self.field(node, array)).transpose()?;
                    let array = array.flatten().and_then(|value| value.node());
                    let capacity = array.map_or(0, |array| self.capacity(array)) as i64;
                    return Ok(u64::try_from((tail - head).rem_euclid(capacity.max(1))).ok());
                }
            }
        }
        Ok(None)
    }

    fn sum_of_cells(&self, cells: Node) -> Result<i64> {
        const MOST: u32 = 1024;
        let Inside::Elements(_, cells) = self.inside(cells, 0, MOST)? else { return Ok(0) };
        let mut sum = 0_i64;
        for cell in cells.iter().filter_map(Value::node) {
            let value = self.field(cell, "value")?.and_then(|value| value.int());
            sum = sum.saturating_add(value.unwrap_or(0));
        }
        Ok(sum)
    }

    /// The most references that fit into an array of this size: its length, or one more.
    pub fn capacity(&self, array: Node) -> u64 {
        let layout = self.source.layout();
        let room = self.size(array).saturating_sub(layout.array_header.into());
        room / u64::from(layout.reference)
    }
}
