//! From what dominates much to who in the program holds it.

use super::{Big, Found, Holder};
use crate::classes::{ClassId, Kind};
use crate::dominators::Place;
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::{Bits, Node};
use crate::path::By;
use crate::roots::RootKind;
use std::collections::HashMap;

/// Parts this much smaller than a suspect are added up if they are alike.
const FINER: u64 = 64;

/// Deeper ways through loaders and classes are cycles.
const DEEPEST: usize = 8;

pub fn split(heap: &Heap, limit: u64) -> Result<Vec<Found>> {
    let big = Big::new(heap, (limit / FINER).max(1));
    let mut splitter = Splitter { heap, big, limit, found: HashMap::new(), split: Vec::new() };
    for place in splitter.children(0) {
        splitter.top(place, 0)?;
    }
    splitter.many();
    Ok(splitter.found.into_values().collect())
}

struct Splitter<'a> {
    heap: &'a Heap,
    big: Big,
    limit: u64,
    found: HashMap<Holder, Found>,
    /// Top places that have a holder of their own kind.
    split: Vec<Place>,
}

impl Splitter<'_> {
    fn add(&mut self, holder: Holder, place: Place, thread: Option<Node>) {
        let retained = self.heap.tree.retained(place);
        let found = self.found.entry(holder.clone()).or_insert_with(|| Found {
            holder,
            places: Vec::new(),
            threads: Vec::new(),
            retained: 0,
        });
        found.places.push(place);
        found.retained += retained;
        if let Some(thread) = thread.filter(|thread| !found.threads.contains(thread)) {
            found.threads.push(thread);
        }
    }

    fn children(&self, of: Place) -> Vec<Place> {
        self.big.children(of).collect()
    }

    /// What the JVM holds itself, or a loader.
    fn top(&mut self, place: Place, depth: usize) -> Result<()> {
        let heap = self.heap;
        let node = heap.tree.node(place);
        if let Some(class) = heap.as_class(node) {
            self.split.push(place);
            return self.class(place, class);
        }
        if is_a(heap, node, "java.lang.Thread") {
            self.split.push(place);
            return self.thread(place);
        }
        if is_a(heap, node, "java.lang.ClassLoader") && depth < DEEPEST {
            self.split.push(place);
            return self.loader(place, depth);
        }
        if heap.tree.retained(place) >= self.limit {
            let kind = heap.roots(node).map(|root| root.kind).min();
            let holder = match kind {
                Some(RootKind::JniGlobal) => Holder::JniGlobal,
                Some(kind) => Holder::Other(kind),
                // Several hold it, so that nobody dominates it.
                None => return Ok(()),
            };
            self.split.push(place);
            self.add(holder, place, None);
        }
        Ok(())
    }

    fn class(&mut self, place: Place, class: ClassId) -> Result<()> {
        let mut rest = true;
        for child in self.children(place) {
            if self.heap.tree.retained(child) >= self.limit {
                let how = self.heap.how(self.heap.tree.node(place), self.heap.tree.node(child))?;
                let holder = match how {
                    By::Static(field) => Holder::Static { class, field },
                    _ => Holder::Class(class),
                };
                self.add(holder, child, None);
                rest = false;
            }
        }
        if rest {
            self.add(Holder::Class(class), place, None);
        }
        Ok(())
    }

    fn thread(&mut self, place: Place) -> Result<()> {
        let heap = self.heap;
        let thread = heap.tree.node(place);
        let mut rest = true;
        for child in self.children(place) {
            let node = heap.tree.node(child);
            rest = false;
            if heap.class(node).name == "java.lang.ThreadLocal$ThreadLocalMap" {
                self.thread_locals(child, thread)?;
                continue;
            }
            let holder = match heap.how(thread, node)? {
                By::Local(Some(frame)) => Holder::Local(frame),
                By::Local(None) => Holder::Local("a native method".to_owned()),
                _ => Holder::Thread,
            };
            self.add(holder, child, Some(thread));
        }
        if rest {
            self.add(Holder::Thread, place, Some(thread));
        }
        Ok(())
    }

    /// A map, its table, an entry, a value.
    fn thread_locals(&mut self, map: Place, thread: Node) -> Result<()> {
        for table in self.children(map) {
            for entry in self.children(table) {
                let node = self.heap.tree.node(entry);
                let key = self.heap.field(node, "referent")?.and_then(|value| value.node());
                let name = match key {
                    Some(key) => self.thread_local(key)?,
                    None => "a ThreadLocal that is gone".to_owned(),
                };
                self.add(Holder::ThreadLocal(name), entry, Some(thread));
            }
        }
        Ok(())
    }

    /// The static field that has it, if one has, or its class.
    fn thread_local(&self, key: Node) -> Result<String> {
        let heap = self.heap;
        for from in heap.referrers(key).into_iter().take(20) {
            let Some(class) = heap.as_class(from) else { continue };
            if let By::Static(field) = heap.how(from, key)? {
                return Ok(format!("{}.{field}", heap.classes().get(class).name));
            }
        }
        Ok(heap.class(key).name.clone())
    }

    fn loader(&mut self, place: Place, depth: usize) -> Result<()> {
        let mut rest = true;
        for child in self.children(place) {
            let node = self.heap.tree.node(child);
            let is_large = self.heap.tree.retained(child) >= self.limit;
            if is_large && self.heap.as_class(node).is_some() {
                self.top(child, depth + 1)?;
                rest = false;
            }
        }
        if rest {
            let node = self.heap.tree.node(place);
            self.add(Holder::Loader(node), place, None);
        }
        Ok(())
    }

    /// Objects of one class that are held by several, each of them perhaps small.
    fn many(&mut self) {
        let heap = self.heap;
        let mut is_split = Bits::new(heap.tree.reached() + 1);
        self.split.iter().for_each(|place| _ = is_split.set(*place));
        let tops = || {
            let all = 1..=heap.tree.reached() as Place;
            all.filter(|place| heap.tree.dominator(*place) == 0 && !is_split.has(*place))
        };
        let mut sums: HashMap<ClassId, u64> = HashMap::new();
        for place in tops() {
            let class = heap.class_id(heap.tree.node(place));
            *sums.entry(class).or_default() += heap.tree.retained(place);
        }
        // What is only a part of others is no answer: whoever has it is.
        let is_part = |class: ClassId| {
            let class = heap.classes().get(class);
            matches!(class.kind, Kind::PrimitiveArray(_))
                || ["java.lang.Class", "java.lang.String"].contains(&class.name.as_str())
        };
        sums.retain(|class, sum| *sum >= self.limit && !is_part(*class));
        for place in tops() {
            let class = heap.class_id(heap.tree.node(place));
            if sums.contains_key(&class) {
                self.add(Holder::Many(class), place, None);
            }
        }
    }
}

fn is_a(heap: &Heap, node: Node, name: &str) -> bool {
    let ancestor = heap.classes().named(name);
    ancestor.is_some_and(|ancestor| heap.classes().is_a(heap.class_id(node), ancestor))
}
