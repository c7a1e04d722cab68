//! What grew from one dump to the next: by class, and by the way from a root, told by names of
//! fields, so that it is the same in both although no address is.

use super::suspects::Big;
use crate::dominators::Place;
use crate::error::Result;
use crate::heap::Heap;
use crate::levels::{Level, Sum};
use crate::path::By;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use tare_java_names::stable;

#[derive(Clone, Debug)]
pub struct ClassChange {
    pub name: String,
    pub old: Sum,
    pub new: Sum,
}

#[derive(Clone, Debug)]
pub struct PathChange {
    /// From the root: `static com.acme.Registry.sessions`, `java.util.HashMap`, …
    pub way: Vec<String>,
    pub old: u64,
    pub new: u64,
}

/// Ways are told as far as they hold this part of the larger heap.
const PART: u64 = 1000;

/// And no further than so many steps.
const DEEPEST: usize = 12;

/// Classes whose objects changed, the largest growth first.
pub fn classes(old: &Heap, new: &Heap) -> Vec<ClassChange> {
    let mut sums: HashMap<String, (Sum, Sum)> = HashMap::new();
    for (heap, is_new) in [(old, false), (new, true)] {
        let mut by_class = vec![Sum::default(); heap.classes().len()];
        for node in heap.nodes().filter(|node| heap.level(*node) == Level::Strong) {
            by_class[heap.class_id(node) as usize].add(heap.size(node));
        }
        for ((_, class), sum) in heap.classes().iter().zip(by_class) {
            let entry = sums.entry(stable(&class.name)).or_default();
            let side = if is_new { &mut entry.1 } else { &mut entry.0 };
            side.objects += sum.objects;
            side.bytes += sum.bytes;
        }
    }
    let mut rows: Vec<ClassChange> = sums
        .into_iter()
        .filter(|(_, (old, new))| old != new)
        .map(|(name, (old, new))| ClassChange { name, old, new })
        .collect();
    let growth = |row: &ClassChange| row.new.bytes as i64 - row.old.bytes as i64;
    rows.sort_by(|a, b| growth(b).cmp(&growth(a)).then_with(|| a.name.cmp(&b.name)));
    rows
}

/// What is behind each way from a root, for comparing it with a later one.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// All that is held.
    pub total: u64,
    sizes: HashMap<Vec<String>, u64>,
}

impl Ways {
    pub fn new(heap: &Heap) -> Result<Ways> {
        let total = heap.tree.retained(0);
        Ok(Ways { total, sizes: sizes(heap, (total / PART).max(1))? })
    }
}

/// Ways behind which memory changed, the largest growth first. A way that only leads to where the
/// growth is, is left out.
pub fn paths(old: &Ways, new: &Ways) -> Vec<PathChange> {
    let least = (old.total.max(new.total) / PART).max(1);
    let mut ways: BTreeMap<&[String], (u64, u64)> = BTreeMap::new();
    old.sizes.iter().for_each(|(way, bytes)| ways.entry(way).or_default().0 = *bytes);
    new.sizes.iter().for_each(|(way, bytes)| ways.entry(way).or_default().1 = *bytes);
    let growth = |(old, new): (u64, u64)| new as i64 - old as i64;
    let is_told = |way: &[String], own: i64| {
        // A step further has nearly all of it.
        let longer = ways.range::<[String], _>((Bound::Excluded(way), Bound::Unbounded));
        let longer = longer.take_while(|(next, _)| next.starts_with(way));
        let mut next = longer.filter(|(next, _)| next.len() == way.len() + 1);
        !next.any(|(_, sizes)| growth(*sizes).abs() * 10 >= own.abs() * 8)
    };
    let mut rows: Vec<PathChange> = ways
        .iter()
        .filter(|(way, sizes)| {
            let own = growth(**sizes);
            own.unsigned_abs() >= least && is_told(way, own)
        })
        .map(|(way, (old, new))| PathChange { way: trimmed(way), old: *old, new: *new })
        .collect();
    rows.sort_by_key(|row| (row.old as i64 - row.new as i64, row.way.clone()));
    rows
}

/// A way without what is inside a collection at its end: its array, and entries of that.
fn trimmed(way: &[String]) -> Vec<String> {
    let is_inside = |step: &&String| {
        let class = step.rsplit(": ").next().unwrap_or(step);
        class.starts_with("java.") && (class.ends_with("[]") || class.contains('$'))
    };
    let inside = way.iter().skip(1).rev().take_while(is_inside).count();
    way[..way.len() - inside].to_vec()
}

/// What each way holds, as far as it holds much.
fn sizes(heap: &Heap, least: u64) -> Result<HashMap<Vec<String>, u64>> {
    let big = Big::new(heap, least);
    let mut sizes = HashMap::new();
    let mut waiting: Vec<(Place, Vec<String>)> = vec![(0, Vec::new())];
    while let Some((above, way)) = waiting.pop() {
        for place in big.children(above) {
            // A chain of objects of one class is one step.
            let class = |place| heap.class_id(heap.tree.node(place));
            if above != 0 && class(above) == class(place) {
                continue;
            }
            let mut way = way.clone();
            way.push(step(heap, above, place)?);
            *sizes.entry(way.clone()).or_default() += heap.tree.retained(place);
            if way.len() < DEEPEST {
                waiting.push((place, way));
            }
        }
    }
    Ok(sizes)
}

fn step(heap: &Heap, above: Place, place: Place) -> Result<String> {
    let node = heap.tree.node(place);
    if let Some(class) = heap.as_class(node) {
        return Ok(format!("class {}", stable(&heap.classes().get(class).name)));
    }
    let class = stable(&heap.class(node).name);
    if above == 0 {
        return Ok(class);
    }
    Ok(match heap.how(heap.tree.node(above), node)? {
        By::Field(name) => format!(".{name}: {class}"),
        By::Static(name) => format!("static {name}: {class}"),
        By::Element(_) => format!("[]: {class}"),
        By::Local(Some(frame)) => format!("variable in {frame}: {class}"),
        _ => class,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(total: u64, list: &[(&str, u64)]) -> Ways {
        let way = |text: &str| text.split(" / ").map(str::to_owned).collect();
        Ways { total, sizes: list.iter().map(|(text, bytes)| (way(text), *bytes)).collect() }
    }

    #[test]
    fn growth_is_told_where_it_is_and_not_on_the_way_there() {
        let map = "class A / static map: java.util.HashMap";
        let table = "class A / static map: java.util.HashMap / .table: java.util.HashMap$Node[]";
        let old = ways(10_000, &[("class A", 5000), (map, 4900), (table, 4800), ("a.B", 900)]);
        let new = ways(20_000, &[("class A", 9000), (map, 8900), (table, 8800), ("a.B", 910)]);
        let rows = paths(&old, &new);
        let told: Vec<(String, u64, u64)> =
            rows.iter().map(|row| (row.way.join(" / "), row.old, row.new)).collect();
        assert_eq!(told, [(map.to_owned(), 4800, 8800)]);
        assert!(paths(&new, &new).is_empty());
    }
}
