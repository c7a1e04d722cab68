//! Objects and bytes by class, by loader or by package, with what each group retains.

mod retained;

use crate::classes::ClassId;
use crate::heap::Heap;
use crate::levels::{Level, Sum};
use std::collections::HashMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    Class,
    /// The object of the loader by its address; 0 is the JVM's own.
    Loader,
    Package,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    /// If rows are classes.
    pub class: Option<ClassId>,
    /// If rows are loaders.
    pub loader: Option<u64>,
    /// What is held strongly.
    pub held: Sum,
    /// All of them, also garbage.
    pub all: Sum,
    /// Bytes that would be free without all objects of the row.
    pub retained: u64,
}

impl Heap {
    /// Rows by what they retain, the largest first.
    pub fn histogram(&self, by: By) -> Vec<Row> {
        match by {
            By::Class => self.answers.classes(self, || self.count_by(by)),
            _ => self.count_by(by),
        }
    }

    fn count_by(&self, by: By) -> Vec<Row> {
        let (groups, mut rows) = self.groups(by);
        for node in self.nodes() {
            let group = groups[self.class_id(node) as usize] as usize;
            let size = self.size(node);
            rows[group].all.add(size);
            if self.level(node) == Level::Strong {
                rows[group].held.add(size);
            }
        }
        let retained = self.retained_by(&groups, rows.len());
        for (row, retained) in rows.iter_mut().zip(retained) {
            row.retained = retained;
        }
        rows.retain(|row| row.all.objects > 0);
        rows.sort_by(|a, b| {
            (b.retained, b.held.bytes, &a.name).cmp(&(a.retained, a.held.bytes, &b.name))
        });
        rows
    }

    /// The group of each class, and an empty row for each group.
    fn groups(&self, by: By) -> (Vec<u32>, Vec<Row>) {
        let mut rows = Vec::new();
        let mut known: HashMap<(String, u64), u32> = HashMap::new();
        let of = |(id, class): (ClassId, &crate::classes::Class)| {
            let (name, number) = match by {
                // Classes of the same name from different loaders are different ones.
                By::Class => (class.name.clone(), u64::from(id)),
                By::Loader => (self.loader_name(class.loader), class.loader),
                By::Package if class.package().is_empty() => {
                    let is_primitive =
                        class.name.trim_end_matches("[]").chars().all(|c| c.is_lowercase());
                    let name = if class.is_array() && is_primitive {
                        "(primitive arrays)"
                    } else {
                        "(no package)"
                    };
                    (name.to_owned(), 0)
                }
                By::Package => (class.package().to_owned(), 0),
            };
            *known.entry((name.clone(), number)).or_insert_with(|| {
                rows.push(Row {
                    name,
                    class: (by == By::Class).then_some(id),
                    loader: (by == By::Loader).then_some(number),
                    held: Sum::default(),
                    all: Sum::default(),
                    retained: 0,
                });
                rows.len() as u32 - 1
            })
        };
        let groups = self.classes().iter().map(of).collect();
        (groups, rows)
    }

    /// The class of a loader and its address, or what the JVM's own is called.
    pub fn loader_name(&self, loader: u64) -> String {
        match (loader, self.find(loader)) {
            (0, _) => "(the JVM's own loader)".to_owned(),
            (_, Some(node)) => format!("{}@{loader:x}", self.class(node).name),
            (_, None) => format!("(a loader that the dump does not have)@{loader:x}"),
        }
    }
}
