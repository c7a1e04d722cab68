//! A tree that is shown, with what pictures of it need beside it.

use crate::source::Problem;
use std::collections::HashMap;
use std::sync::OnceLock;
use tare_analysis::{Children, Label, LabelId, LabelKind, NodeId, Tree};
use tare_java_names::{Pattern, is_jdk};
use tare_profile::{MethodKind, Profile};

pub struct Graph {
    /// Which tree node numbers are of.
    pub key: String,
    pub tree: Tree,
    children: OnceLock<Children>,
    widths: OnceLock<Option<Vec<i64>>>,
    /// By label, a number that is the same in every run.
    names: OnceLock<Vec<u64>>,
    /// By label, the letter of its kind.
    kinds: Vec<u8>,
    /// It is of two profiles: the first metric is of the new one, the second of the old.
    pub is_of_both: bool,
}

impl Graph {
    pub fn new(key: String, tree: Tree, profile: &Profile) -> Self {
        let kinds = tree.labels().map(|(_, label)| kind(label, profile)).collect();
        let (children, widths, names) = Default::default();
        Graph { key, tree, children, widths, names, kinds, is_of_both: false }
    }

    /// Of two profiles: as wide as the larger of both, where new values are multiplied by `scale`.
    pub fn of_both(key: String, tree: Tree, profile: &Profile, scale: f64) -> Self {
        let larger = |node: NodeId| {
            let new = (tree.total(0, node) as f64 * scale).round() as i64;
            new.max(tree.total(1, node))
        };
        let widths = OnceLock::from(Some(widths(&tree, larger)));
        Graph { widths, is_of_both: true, ..Graph::new(key, tree, profile) }
    }

    pub fn children(&self) -> &Children {
        self.children.get_or_init(|| self.tree.children())
    }

    pub fn kind(&self, label: LabelId) -> char {
        char::from(self.kinds[label.index()])
    }

    /// Whether times without probes make some value negative.
    pub fn is_signed(&self) -> bool {
        self.widths().is_some()
    }

    /// How wide a node is: what it is worth, and never less than what is below it.
    pub fn width(&self, node: NodeId) -> i64 {
        match self.widths() {
            Some(widths) => widths[node.index()],
            None => self.tree.total(0, node),
        }
    }

    fn widths(&self) -> Option<&Vec<i64>> {
        let find = || {
            let tree = &self.tree;
            if tree.nodes().all(|node| tree.own(0, node) >= 0) {
                return None;
            }
            Some(widths(tree, |node| tree.total(0, node)))
        };
        self.widths.get_or_init(find).as_ref()
    }

    /// The nodes above one, the root first.
    pub fn above(&self, node: NodeId) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> =
            std::iter::successors(self.tree.parent(node), |at| self.tree.parent(*at)).collect();
        nodes.reverse();
        nodes
    }

    /// A name of a node that lasts: the same stack has it in every tree.
    pub fn path(&self, node: NodeId) -> String {
        let above = self.above(node);
        let names = self.names();
        let all = above.iter().chain([&node]).skip(1);
        let path = all.fold(0, |path, at| joined(path, names[self.tree.label_id(*at).index()]));
        format!("{path:016x}")
    }

    /// The node of such a name.
    pub fn find(&self, path: &str) -> Option<NodeId> {
        let wanted = u64::from_str_radix(path, 16).ok()?;
        if wanted == 0 {
            return Some(NodeId::ROOT);
        }
        let names = self.names();
        let mut paths = vec![0_u64; self.tree.len()];
        self.tree.nodes().skip(1).find(|node| {
            let parent = self.tree.parent(*node).unwrap_or(NodeId::ROOT);
            let name = names[self.tree.label_id(*node).index()];
            paths[node.index()] = joined(paths[parent.index()], name);
            paths[node.index()] == wanted
        })
    }

    fn names(&self) -> &[u64] {
        self.names.get_or_init(|| self.tree.labels().map(|(_, label)| name(&label.text)).collect())
    }

    /// The node that a request names, by number in this tree or by path.
    pub fn node(&self, asked: &Asked<'_>) -> Result<Option<NodeId>, Problem> {
        match asked {
            Asked::Root => Ok(Some(NodeId::ROOT)),
            Asked::Path(path) => Ok(self.find(path)),
            Asked::Number(_, tree) if *tree != self.key => {
                Err(Problem::new(409, "the figures have moved on; ask again by path"))
            }
            Asked::Number(number, _) => {
                let node = self.tree.node(*number);
                node.map(Some).ok_or_else(|| Problem::new(404, "there is no such node"))
            }
        }
    }

    /// By label, whether a search means it.
    pub fn hits(&self, text: &str) -> Vec<bool> {
        let search = Search::new(text);
        let labels = self.tree.labels();
        labels
            .map(|(_, label)| label.kind != LabelKind::Root && search.finds(&label.text))
            .collect()
    }

    pub fn label(&self, name: &str) -> Option<LabelId> {
        self.tree.labels().find(|(_, label)| label.text == name).map(|(id, _)| id)
    }

    /// Bytes in memory, about.
    pub fn size(&self) -> usize {
        self.tree.len() * (16 + 8 + 16 * self.tree.metrics()) + self.kinds.len() * 100
    }
}

/// The width of each node: its value, and never less than what is below it.
fn widths(tree: &Tree, value: impl Fn(NodeId) -> i64) -> Vec<i64> {
    let mut widths = vec![0_i64; tree.len()];
    for node in tree.nodes().rev() {
        let width = widths[node.index()].max(value(node));
        widths[node.index()] = width;
        if let Some(parent) = tree.parent(node) {
            let above = &mut widths[parent.index()];
            *above = above.saturating_add(width);
        }
    }
    widths
}

/// Which node a request is about.
pub enum Asked<'a> {
    Root,
    Number(usize, &'a str),
    Path(&'a str),
}

/// A text that is looked for in names.
pub struct Search {
    pattern: Pattern,
    /// In lower case.
    text: String,
}

impl Search {
    pub fn new(text: &str) -> Self {
        Search { pattern: Pattern::to_search(text), text: text.to_lowercase() }
    }

    pub fn finds(&self, name: &str) -> bool {
        self.pattern.is_found_in(name) || name.to_lowercase().contains(&self.text)
    }
}

/// A number for a text (FNV-1a).
fn name(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The path of a node, from that of its parent. Never zero, which is the root's.
fn joined(above: u64, name: u64) -> u64 {
    let mixed = (above.rotate_left(23) ^ name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).max(1)
}

fn kind(label: &Label, profile: &Profile) -> u8 {
    match label.kind {
        LabelKind::Root => b'a',
        LabelKind::Group => b'g',
        LabelKind::Folded => b'f',
        LabelKind::Method(MethodKind::Native) => b'n',
        LabelKind::Method(MethodKind::Kernel) => b'k',
        LabelKind::Method(MethodKind::Class) => b'c',
        LabelKind::Method(MethodKind::Special) => b's',
        LabelKind::Method(MethodKind::Java) => {
            let class = label.method.map(|method| profile.methods.get(method).class);
            let is_jdk = class.is_some_and(|class| is_jdk(profile.strings.get(class)));
            if is_jdk { b'd' } else { b'j' }
        }
    }
}

/// Labels of an answer, numbered as they come.
#[derive(Default)]
pub struct Numbered {
    numbers: HashMap<LabelId, usize>,
    pub list: Vec<LabelId>,
}

impl Numbered {
    pub fn number(&mut self, label: LabelId) -> usize {
        let Numbered { numbers, list } = self;
        *numbers.entry(label).or_insert_with(|| {
            list.push(label);
            list.len() - 1
        })
    }
}
