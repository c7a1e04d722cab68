//! A dump that is ready to be asked: its objects, who holds them, and what they retain.

use crate::classes::{Class, ClassId, Classes, Strength, UNKNOWN};
use crate::conventions::Conventions;
use crate::dominators::{Place, Tree};
use crate::error::{HeapError, Result};
use crate::graph::{Graph, Losses, UNIT};
use crate::hprof::Hprof;
use crate::ids::{Ids, Node};
use crate::image::Image;
use crate::index::{Answers, Column, Shelf};
use crate::input::{self, Input};
use crate::levels::{Level, Levels, Sum};
use crate::needs;
use crate::progress::Progress;
use crate::roots::{Root, Thread};
use crate::source::{About, Source};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Options {
    /// Referents of these kinds of reference and stronger ones count as held.
    pub keep: Strength,
    pub conventions: Conventions,
    /// Where packed dumps are unpacked.
    pub temporary: PathBuf,
    /// Bytes of memory that computing a dump may take. One that needs more is refused before.
    pub memory: u64,
}

impl Default for Options {
    fn default() -> Options {
        let temporary = std::env::temp_dir();
        let (keep, conventions) = (Strength::Strong, Conventions::Ours);
        Options { keep, conventions, temporary, memory: u64::MAX }
    }
}

pub struct Heap {
    pub(crate) source: Box<dyn Source>,
    pub(crate) ids: Ids,
    pub(crate) class: Column<ClassId>,
    pub(crate) size: Column<u32>,
    pub(crate) tree: Tree,
    pub(crate) levels: Levels,
    pub(crate) losses: Losses,
    /// Roots by node, each by its number in the source.
    pub(crate) roots: Vec<(Node, u32)>,
    /// Where it comes from, if it was computed before.
    pub(crate) index: Option<Arc<Shelf>>,
    pub(crate) answers: Answers,
}

impl Heap {
    /// Opens a snapshot of ours or a `.hprof` file.
    pub fn open(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Heap> {
        Heap::of_file(input::open(path)?, options, progress)
    }

    /// The same of a file that is open; what it is, its beginning tells.
    pub fn of_file(file: File, options: &Options, progress: &dyn Progress) -> Result<Heap> {
        if Image::is_one(&file) {
            let (mut source, addresses) = Image::open(file, progress)?;
            source.add_lasting_classes(options.conventions)?;
            let ids = Ids::new(&addresses)?;
            drop(addresses);
            return Heap::build(Box::new(source), ids, options, progress);
        }
        let unpacking = |done, all| progress.tell("unpacking", done, all);
        let input = Input::of_file(file, &options.temporary, &unpacking)?;
        Heap::of_input(input, options, progress)
    }

    /// A `.hprof` file.
    pub fn of_input(input: Input, options: &Options, progress: &dyn Progress) -> Result<Heap> {
        let (mut source, addresses) = Hprof::open(input, progress)?;
        source.add_lasting_classes(options.conventions)?;
        let ids = Ids::new(&addresses)?;
        drop(addresses);
        Heap::build(Box::new(source), ids, options, progress)
    }

    pub(crate) fn build(
        source: Box<dyn Source>,
        ids: Ids,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Heap> {
        if ids.is_empty() {
            let reason = "it has no objects; it may have been cut off".to_owned();
            return Err(HeapError::NotADump { reason });
        }
        needs::check(&ids, &source.parts(), options.memory)?;
        let mut graph = Graph::build(&*source, &ids, options.keep, progress)?;
        let (tree, levels) = Tree::new(&mut graph, progress);
        let numbered = (0..).zip(source.roots());
        let mut roots: Vec<(Node, u32)> =
            numbered.filter_map(|(number, root)| Some((ids.find(root.object)?, number))).collect();
        roots.sort_unstable();
        let Graph { class, size, losses, .. } = graph;
        let (class, size) = (class.into(), size.into());
        let (index, answers) = (None, Answers::default());
        Ok(Heap { source, ids, class, size, tree, levels, losses, roots, index, answers })
    }

    /// Whether it comes from an index, and whether that has turned out to be damaged so far.
    pub fn index(&self) -> Option<bool> {
        self.index.as_ref().map(|index| index.is_damaged())
    }

    pub(crate) fn count(&self) -> usize {
        self.class.len()
    }

    pub fn about(&self) -> About {
        self.source.about()
    }

    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// All objects, also those that nothing holds.
    pub fn objects(&self) -> u64 {
        self.class.len() as u64
    }

    pub fn nodes(&self) -> impl Iterator<Item = Node> + use<> {
        0..self.class.len() as Node
    }

    pub fn sum(&self, level: Level) -> Sum {
        self.levels.sum(level)
    }

    pub fn classes(&self) -> &Classes {
        self.source.classes()
    }

    pub fn threads(&self) -> &[Thread] {
        self.source.threads()
    }

    /// Objects that a recording of allocation has sampled, with the numbers by which it knows them.
    pub fn samples(&self) -> impl Iterator<Item = (Node, u64)> {
        let samples = self.source.samples().iter();
        samples.filter_map(|sample| Some((self.find(sample.object)?, sample.number)))
    }

    pub fn address(&self, node: Node) -> u64 {
        self.ids.address(node)
    }

    pub fn find(&self, address: u64) -> Option<Node> {
        self.ids.find(address)
    }

    pub fn class_id(&self, node: Node) -> ClassId {
        // An index may claim anything.
        Some(self.class.get(node as usize))
            .filter(|id| (*id as usize) < self.classes().len())
            .unwrap_or(UNKNOWN)
    }

    pub fn class(&self, node: Node) -> &Class {
        self.classes().get(self.class_id(node))
    }

    /// Bytes of the object itself.
    pub fn size(&self, node: Node) -> u64 {
        u64::from(self.size.get(node as usize)) * UNIT
    }

    /// Bytes that would be free without it: its own, and those of what it alone holds. Of what
    /// nothing holds strongly, its own.
    pub fn retained(&self, node: Node) -> u64 {
        self.tree.place(node).map_or_else(|| self.size(node), |place| self.tree.retained(place))
    }

    pub fn level(&self, node: Node) -> Level {
        self.levels.of(node)
    }

    /// The closest object through which all ways from the roots go; `None` if there is none.
    pub fn dominator(&self, node: Node) -> Option<Node> {
        let place = self.tree.dominator(self.tree.place(node)?);
        (place != 0).then(|| self.tree.node(place))
    }

    /// The objects that another one dominates directly, or the JVM; the largest first.
    pub fn dominated(&self, node: Option<Node>) -> Vec<Node> {
        let above = match node {
            None => 0,
            Some(node) => match self.tree.place(node) {
                Some(place) => place,
                None => return Vec::new(),
            },
        };
        let places = above + 1..self.tree.reached() as Place + 1;
        let mut found: Vec<Place> =
            places.filter(|place| self.tree.dominator(*place) == above).collect();
        found.sort_by_key(|place| std::cmp::Reverse(self.tree.retained(*place)));
        found.into_iter().map(|place| self.tree.node(place)).collect()
    }

    /// Who refers to an object strongly. References to roots are not kept.
    pub fn referrers(&self, node: Node) -> Vec<Node> {
        let Some(place) = self.tree.place(node) else { return Vec::new() };
        let places = self.tree.referrers(place).filter(|place| *place != 0);
        places.map(|place| self.tree.node(place)).collect()
    }

    /// Why the JVM itself holds an object.
    pub fn roots(&self, node: Node) -> impl Iterator<Item = &Root> {
        let begin = self.roots.partition_point(|(other, _)| *other < node);
        let of = self.roots[begin..].iter().take_while(move |(other, _)| *other == node);
        of.map(|(_, number)| &self.source.roots()[*number as usize])
    }

    /// Whether the JVM holds an object itself, and not by a variable of a thread that is known.
    pub fn is_root(&self, node: Node) -> bool {
        self.tree.place(node).is_some_and(|place| self.tree.referrers(place).any(|p| p == 0))
    }
}
