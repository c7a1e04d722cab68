//! What each group of classes retains: the sum over its objects that are not below another one of
//! the group.
//!
//! Whether an object is below one of its group is told by its *way*: the groups of all that
//! dominate it, each once, in the order in which they are met from the JVM down. Objects of a kind
//! are held in the same way, so there are few ways, each of which has a number, and a step from one
//! to the next is looked up. A heap in which there are many takes a walk over its whole tree.

use crate::classes::IdMap;
use crate::dominators::Place;
use crate::heap::Heap;

/// Ways, and steps between them, that are worth their memory; and steps up that are worth their
/// time.
const MOST_WAYS: usize = 1 << 18;
const MOST_STEPS: usize = 1 << 20;
const MOST_LOOKS: usize = 1 << 28;

impl Heap {
    /// By group, from the group of each class.
    pub(super) fn retained_by(&self, groups: &[u32], count: usize) -> Vec<u64> {
        let by_ways = self.retained_by_ways(groups, count, MOST_WAYS);
        by_ways.unwrap_or_else(|| self.retained_by_walk(groups, count))
    }

    #[inline]
    fn group(&self, groups: &[u32], place: Place) -> u32 {
        groups[self.class_id(self.tree.node(place)) as usize]
    }

    /// `None` if there are too many ways.
    fn retained_by_ways(&self, groups: &[u32], count: usize, most: usize) -> Option<Vec<u64>> {
        let reached = self.tree.reached();
        let mut ways = Ways::new(most);
        let mut way: Vec<u32> = vec![0; reached + 1];
        let mut retained = vec![0; count];
        for place in 1..=reached as Place {
            let above = way[self.tree.dominator(place) as usize];
            let group = self.group(groups, place);
            let own = ways.step(above, group)?;
            way[place as usize] = own;
            if own != above {
                retained[group as usize] += self.tree.retained(place);
            }
        }
        Some(retained)
    }

    /// With a walk from the JVM down and up again.
    fn retained_by_walk(&self, groups: &[u32], count: usize) -> Vec<u64> {
        let tree = &self.tree;
        let reached = tree.reached();
        let mut first: Vec<Place> = vec![0; reached + 1];
        let mut next: Vec<Place> = vec![0; reached + 1];
        for place in (1..=reached as Place).rev() {
            let above = tree.dominator(place) as usize;
            next[place as usize] = first[above];
            first[above] = place;
        }
        let mut retained = vec![0; count];
        let mut inside = vec![0_u32; count];
        let group = |place: Place| self.group(groups, place) as usize;
        let mut here = first[0];
        while here != 0 {
            let own = group(here);
            if inside[own] == 0 {
                retained[own] += tree.retained(here);
            }
            inside[own] += 1;
            if first[here as usize] != 0 {
                here = first[here as usize];
                continue;
            }
            // Up until there is a way to the side.
            loop {
                inside[group(here)] -= 1;
                let side = next[here as usize];
                if side != 0 {
                    here = side;
                    break;
                }
                here = tree.dominator(here);
                if here == 0 {
                    break;
                }
            }
        }
        retained
    }
}

/// The last groups of ways, each with the way before it; the first is empty.
struct Ways {
    all: Vec<(u32, u32)>,
    steps: IdMap<u32>,
    /// The same for steps that were just taken: what is looked for, and where it leads.
    recent: Vec<(u64, u32)>,
    looks: usize,
    most: usize,
}

impl Ways {
    const RECENT: usize = 1 << 12;

    fn new(most: usize) -> Ways {
        let recent = vec![(u64::MAX, 0); Ways::RECENT];
        Ways { all: vec![(0, u32::MAX)], steps: IdMap::default(), recent, looks: 0, most }
    }

    /// The way that a group makes of another, which is the same if it is on it; `None` if there are
    /// too many.
    #[inline]
    fn step(&mut self, from: u32, group: u32) -> Option<u32> {
        let key = u64::from(from) << 32 | u64::from(group);
        let place = (from.wrapping_mul(0x9e37_79b9) ^ group) as usize % Ways::RECENT;
        let (known, to) = self.recent[place];
        if known == key {
            return Some(to);
        }
        let to = self.look(key, from, group)?;
        self.recent[place] = (key, to);
        Some(to)
    }

    #[cold]
    fn look(&mut self, key: u64, from: u32, group: u32) -> Option<u32> {
        if let Some(to) = self.steps.get(&key) {
            return Some(*to);
        }
        let mut at = from;
        while at != 0 && self.all[at as usize].1 != group {
            at = self.all[at as usize].0;
            self.looks += 1;
        }
        let to = if at == 0 { self.all.len() as u32 } else { from };
        if at == 0 {
            self.all.push((from, group));
        }
        self.steps.insert(key, to);
        let is_little = self.all.len() <= self.most
            && self.steps.len() <= MOST_STEPS
            && self.looks <= MOST_LOOKS;
        is_little.then_some(to)
    }
}

#[cfg(test)]
mod tests {
    use crate::classes::Type;
    use crate::heap::{Heap, Options};
    use crate::hprof::{ClassOut, Width, Writer};
    use crate::input::Input;
    use crate::progress::Silent;
    use crate::roots::RootKind;

    const CLASSES: u64 = 7;

    /// Objects of some classes with two references each, the next ones or any.
    fn heap(count: u64, mut seed: u64) -> Heap {
        let mut below = |limit: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (seed >> 33) % limit
        };
        let mut writer = Writer::new(Vec::new(), Width::Eight, 1).unwrap();
        writer.text(100, "left").unwrap();
        writer.text(101, "right").unwrap();
        for class in 1..=CLASSES {
            writer.text(class, &format!("com/acme/C{class}")).unwrap();
            writer.load_class(class as u32, class * 0x100, class).unwrap();
            let fields = [(100, Type::Reference), (101, Type::Reference)];
            let class = ClassOut { address: class * 0x100, fields: &fields, ..ClassOut::default() };
            writer.class(&class).unwrap();
        }
        let address = |node: u64| 0x10_0000 + node * 32;
        for node in 0..count {
            let class = (1 + below(CLASSES)) * 0x100;
            let next = [node + 1 + below(3), if below(5) == 0 { below(count) } else { node + 2 }];
            let body = next.map(|to| if to < count { address(to) } else { 0 }.to_be_bytes());
            writer.instance(address(node), class, body.as_flattened()).unwrap();
        }
        writer.root(RootKind::JniGlobal, address(0), 0, 0).unwrap();
        let dump = Input::of_bytes(writer.finish().unwrap());
        Heap::of_input(dump, &Options::default(), &Silent).unwrap()
    }

    /// By the definition: an object counts if no dominator of it is of its group.
    fn expected(heap: &Heap, groups: &[u32], count: usize) -> Vec<u64> {
        let group = |node| groups[heap.class_id(node) as usize];
        let mut retained = vec![0; count];
        for node in heap.nodes().filter(|node| heap.tree.place(*node).is_some()) {
            let mut above = std::iter::successors(heap.dominator(node), |on| heap.dominator(*on));
            if above.all(|above| group(above) != group(node)) {
                retained[group(node) as usize] += heap.retained(node);
            }
        }
        retained
    }

    #[test]
    fn ways_and_the_walk_agree_with_the_definition() {
        for seed in 0..40 {
            let heap = heap(20 + seed * 7, seed);
            let by_class: Vec<u32> = (0..heap.classes().len() as u32).collect();
            let by_two: Vec<u32> = by_class.iter().map(|class| class % 2).collect();
            for groups in [by_class, by_two] {
                let count = heap.classes().len();
                let expected = expected(&heap, &groups, count);
                assert!(expected.iter().sum::<u64>() > 0);
                let by_ways = heap.retained_by_ways(&groups, count, usize::MAX);
                assert_eq!(by_ways.as_ref(), Some(&expected), "{seed}");
                assert_eq!(heap.retained_by_walk(&groups, count), expected, "{seed}");
                assert_eq!(heap.retained_by_ways(&groups, count, 1), None, "{seed}");
            }
        }
    }
}
