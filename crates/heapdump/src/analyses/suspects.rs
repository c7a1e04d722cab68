//! Who holds the most: the few places in the program behind which most of the memory is.
//!
//! What dominates much is looked at from the roots on. A class is split into its static fields, a
//! thread into its thread locals and the variables of its frames, a loader into its classes. What
//! is the same in many threads is one suspect. Objects of one class that many places hold are one
//! suspect, too. From each, the way goes down to where the memory branches out into many small
//! parts, usually an array inside a collection.

mod split;

use crate::classes::{ClassId, IdMap};
use crate::dominators::Place;
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::Node;
use crate::levels::Sum;
use crate::path::Path;
use crate::roots::RootKind;
use serde::{Deserialize, Serialize};

/// What is asked most: the least share and the most suspects, for a first look and for a table. An
/// index keeps the answers.
pub const FEW: (f64, usize) = (0.02, 5);
pub const MANY: (f64, usize) = (0.01, 25);
pub(crate) const USUAL: [(f64, usize); 2] = [FEW, MANY];

/// The part of a program that holds memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Holder {
    Static {
        class: ClassId,
        field: String,
    },
    /// Several fields of a class, none of them much.
    Class(ClassId),
    /// By the static field that has the `ThreadLocal`, or its class.
    ThreadLocal(String),
    /// A variable of a method in Java, by the frame.
    Local(String),
    /// Something else of a thread.
    Thread,
    Loader(Node),
    JniGlobal,
    Other(RootKind),
    /// Objects of one class that have no holder in common.
    Many(ClassId),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Suspect {
    pub holder: Holder,
    /// What the holder holds; the largest first. Of many objects of a class the largest few.
    pub members: Vec<Node>,
    pub count: u64,
    /// The threads that it is in, if it is in threads.
    pub threads: Vec<Node>,
    pub retained: u64,
    /// Of all that is held.
    #[serde(skip)]
    pub share: f64,
    /// Where the memory of the largest member branches out, and the collection that this is in.
    pub point: Node,
    pub collection: Option<Node>,
    /// To the collection, or else to where the memory branches out.
    pub path: Option<Path>,
    /// The classes that take most of the memory.
    pub fill: Vec<(ClassId, Sum)>,
    /// Objects in it that a recording of allocation has sampled, with their numbers.
    pub samples: Vec<(Node, u64)>,
}

/// What is inside a suspect.
#[derive(Default)]
struct Filling {
    classes: Vec<(ClassId, Sum)>,
    samples: Vec<(Node, u64)>,
}

/// Members that are told of each.
const MOST_MEMBERS: usize = 100;

/// How many classes are told that fill it.
const MOST_FILL: usize = 3;

/// A holder with the places that it holds.
struct Found {
    holder: Holder,
    places: Vec<Place>,
    threads: Vec<Node>,
    retained: u64,
}

impl Heap {
    /// At most so many suspects, each with at least this share of all that is held.
    pub fn suspects(&self, least: f64, most: usize) -> Result<Vec<Suspect>> {
        let find = || self.find_suspects(least, most);
        match USUAL.iter().position(|usual| *usual == (least, most)) {
            Some(question) => self.answers.suspects(self, question, find),
            None => find(),
        }
    }

    fn find_suspects(&self, least: f64, most: usize) -> Result<Vec<Suspect>> {
        let total = self.tree.retained(0);
        let limit = ((total as f64 * least) as u64).max(1);
        let mut found = split::split(self, limit)?;
        found.retain(|found| found.retained >= limit);
        // Those that hold the same in the order of their places, in every run alike.
        found.sort_by_key(|found| {
            (std::cmp::Reverse(found.retained), found.places.first().copied())
        });
        found.truncate(most);
        let fills = self.fills(&found);
        let big = Big::new(self, limit / 16);
        found
            .into_iter()
            .zip(fills)
            .map(|(found, filling)| self.suspect(found, filling, &big, total))
            .collect()
    }

    fn suspect(
        &self,
        mut found: Found,
        filling: Filling,
        big: &Big,
        total: u64,
    ) -> Result<Suspect> {
        let count = found.places.len() as u64;
        found.places.sort_by_key(|place| std::cmp::Reverse(self.tree.retained(*place)));
        found.places.truncate(MOST_MEMBERS);
        let members: Vec<Node> = found.places.iter().map(|place| self.tree.node(*place)).collect();
        let (point, collection) = self.descend(found.places[0], big);
        let target = collection.unwrap_or(point);
        Ok(Suspect {
            holder: found.holder,
            members,
            count,
            threads: found.threads,
            retained: found.retained,
            share: share(found.retained, total),
            point,
            collection,
            path: self.path(target)?,
            fill: filling.classes,
            samples: filling.samples,
        })
    }

    /// From a place down, as long as one child has most of the memory; with the last collection on
    /// the way.
    fn descend(&self, from: Place, big: &Big) -> (Node, Option<Node>) {
        const MOST: f64 = 0.7;
        let mut here = from;
        let mut seen = Vec::new();
        let mut collection = None;
        loop {
            let node = self.tree.node(here);
            let class = self.class_id(node);
            // A chain of objects of one class is itself where the memory is.
            if seen.contains(&class) {
                break;
            }
            seen.push(class);
            if self.known(class).is_some() {
                collection = Some(node);
            }
            let wanted = (self.tree.retained(here) as f64 * MOST) as u64;
            let next = big.children(here).max_by_key(|child| self.tree.retained(*child));
            match next.filter(|next| self.tree.retained(*next) >= wanted) {
                Some(next) if !seen.contains(&self.class_id(self.tree.node(next))) => here = next,
                _ => break,
            }
        }
        (self.tree.node(here), collection)
    }

    /// The classes that take most of what each suspect holds.
    fn fills(&self, found: &[Found]) -> Vec<Filling> {
        // 0 is nobody's; a place is of whom its dominator is of.
        let mut owner: Vec<u8> = vec![0; self.tree.reached() + 1];
        for (number, found) in (1..).zip(found) {
            found.places.iter().for_each(|place| owner[*place as usize] = number);
        }
        let mut sums: Vec<IdMap<Sum>> = vec![IdMap::default(); found.len()];
        for place in 1..=self.tree.reached() as Place {
            if owner[place as usize] == 0 {
                owner[place as usize] = owner[self.tree.dominator(place) as usize];
            }
            let of = usize::from(owner[place as usize]);
            if of > 0 {
                let node = self.tree.node(place);
                let class = u64::from(self.class_id(node));
                sums[of - 1].entry(class).or_default().add(self.size(node));
            }
        }
        let largest = |sums: IdMap<Sum>| {
            let mut fill: Vec<(ClassId, Sum)> =
                sums.into_iter().map(|(class, sum)| (class as ClassId, sum)).collect();
            fill.sort_by_key(|(class, sum)| (std::cmp::Reverse(sum.bytes), *class));
            fill.truncate(MOST_FILL);
            let most = fill.first().map_or(0, |(_, sum)| sum.bytes);
            fill.retain(|(_, sum)| sum.bytes * 100 >= most);
            fill
        };
        let classes = sums.into_iter().map(largest);
        let mut fillings: Vec<Filling> =
            classes.map(|classes| Filling { classes, samples: Vec::new() }).collect();
        for (node, number) in self.samples() {
            let of = self.tree.place(node).map_or(0, |place| owner[place as usize]);
            if let Some(filling) = usize::from(of).checked_sub(1).map(|of| &mut fillings[of]) {
                filling.samples.push((node, number));
            }
        }
        fillings
    }
}

impl Suspect {
    /// All objects that it names.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Node> {
        let loader = match self.holder {
            Holder::Loader(node) => Some(node),
            _ => None,
        };
        let steps = self.path.iter().flat_map(|path| &path.steps).map(|step| step.node);
        let samples = self.samples.iter().map(|(node, _)| *node);
        let lists = self.members.iter().chain(&self.threads).copied();
        let others = [Some(self.point), self.collection, loader].into_iter().flatten();
        lists.chain(others).chain(steps).chain(samples)
    }

    /// All classes that it names.
    pub(crate) fn classes(&self) -> impl Iterator<Item = ClassId> {
        let holder = match self.holder {
            Holder::Static { class, .. } | Holder::Class(class) | Holder::Many(class) => {
                Some(class)
            }
            _ => None,
        };
        holder.into_iter().chain(self.fill.iter().map(|(class, _)| *class))
    }
}

/// Of all that is held.
pub(crate) fn share(retained: u64, total: u64) -> f64 {
    retained as f64 / total.max(1) as f64
}

/// Places that retain much, by what dominates them.
pub(super) struct Big(Vec<(Place, Place)>);

impl Big {
    pub(super) fn new(heap: &Heap, least: u64) -> Big {
        let tree = &heap.tree;
        let places = 1..=tree.reached() as Place;
        let big = places.filter(|place| tree.retained(*place) >= least);
        let mut list: Vec<(Place, Place)> =
            big.map(|place| (tree.dominator(place), place)).collect();
        list.sort_unstable();
        Big(list)
    }

    pub(super) fn children(&self, of: Place) -> impl Iterator<Item = Place> {
        let begin = self.0.partition_point(|(above, _)| *above < of);
        let children = self.0[begin..].iter().take_while(move |(above, _)| *above == of);
        children.map(|(_, place)| *place)
    }
}
