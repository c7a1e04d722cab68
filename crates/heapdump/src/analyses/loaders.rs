//! Class loaders: what each has loaded, and whether it looks as if it should have gone.

use crate::classes::ClassId;
use crate::heap::Heap;
use crate::ids::Node;
use crate::levels::Sum;
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Debug)]
pub struct LoaderRow {
    /// `None` is the JVM's own.
    pub node: Option<Node>,
    pub name: String,
    pub classes: u64,
    /// Instances of its classes that are held.
    pub instances: Sum,
    /// What only the loader and its classes hold.
    pub retained: u64,
    /// Whether anything holds it. If not, it goes with the next collection that unloads classes.
    pub is_held: bool,
    /// Of those that are held: loaders of the same kind that have loaded a class of the same name,
    /// with this one. All but one of them may be left over from older versions of the same thing.
    pub copies: u64,
    /// A class that they have in common.
    pub common: Option<String>,
}

impl Heap {
    /// All loaders, those that retain most first.
    pub fn loader_rows(&self) -> Vec<LoaderRow> {
        let mut by_loader: BTreeMap<u64, Vec<ClassId>> = BTreeMap::new();
        for (id, class) in self.classes().iter().filter(|(_, class)| class.address != 0) {
            by_loader.entry(class.loader).or_default().push(id);
        }
        let mut sums = vec![Sum::default(); self.classes().len()];
        for node in self.nodes().filter(|node| self.tree.place(*node).is_some()) {
            sums[self.class_id(node) as usize].add(self.size(node));
        }
        let held = |loader: u64| {
            let node = self.find(loader).filter(|_| loader != 0);
            node.filter(|node| self.tree.place(*node).is_some())
        };
        // Loaders of one kind by a class that they have loaded.
        let mut common: HashMap<(ClassId, &str), u64> = HashMap::new();
        for (loader, ids) in &by_loader {
            let Some(node) = held(*loader) else { continue };
            for id in ids {
                let name = self.classes().get(*id).name.as_str();
                *common.entry((self.class_id(node), name)).or_default() += 1;
            }
        }
        let mut rows: Vec<LoaderRow> = by_loader
            .iter()
            .map(|(loader, ids)| {
                let node = self.find(*loader).filter(|_| *loader != 0);
                let mut instances = Sum::default();
                for id in ids {
                    instances.objects += sums[*id as usize].objects;
                    instances.bytes += sums[*id as usize].bytes;
                }
                let is_held = *loader == 0 || held(*loader).is_some();
                let copies = |id: &ClassId| {
                    let name = self.classes().get(*id).name.as_str();
                    let held = node.filter(|_| is_held);
                    let count = held.and_then(|node| common.get(&(self.class_id(node), name)));
                    (count.copied().unwrap_or(1), std::cmp::Reverse(name))
                };
                let most = ids.iter().map(copies).max();
                let (copies, name) = most.map_or((1, None), |(count, name)| (count, Some(name.0)));
                LoaderRow {
                    node,
                    name: self.loader_name(*loader),
                    classes: ids.len() as u64,
                    instances,
                    retained: node.map_or(0, |node| self.retained(node)),
                    is_held,
                    copies,
                    common: name.filter(|_| copies > 1).map(str::to_owned),
                }
            })
            .collect();
        rows.sort_by(|a, b| {
            (b.retained, b.classes, &a.name).cmp(&(a.retained, a.classes, &b.name))
        });
        rows
    }
}
