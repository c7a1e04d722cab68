//! Why an object is still there: the shortest chain of strong references from a root, with the
//! names of fields.

use crate::dominators::Place;
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::Node;
use crate::roots::{Root, RootKind};
use crate::source::Object;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Path {
    /// Why the JVM holds the first of the steps.
    #[serde(skip)]
    pub root: String,
    pub kind: Option<RootKind>,
    /// From the root to the object.
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    pub node: Node,
    /// How the step before refers to it; empty for the first.
    pub by: By,
}

/// How an object refers to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum By {
    /// It is the first.
    Root,
    Field(String),
    Static(String),
    Element(u32),
    /// The loader of a class, the class of an object.
    Loader,
    Class,
    /// A variable of a thread, by the frame it is in.
    Local(Option<String>),
    /// Something of the JVM that has no name.
    Hidden,
}

impl By {
    /// As after the name of what refers: `.field`, `[3]`.
    pub fn text(&self) -> String {
        match self {
            By::Root => String::new(),
            By::Field(name) => format!(".{name}"),
            By::Static(name) => format!(" static {name}"),
            By::Element(at) => format!("[{at}]"),
            By::Loader => " <its loader>".to_owned(),
            By::Class => " <its class>".to_owned(),
            By::Local(Some(frame)) => format!(" <local of {frame}>"),
            By::Local(None) => " <local>".to_owned(),
            By::Hidden => " <inside the JVM>".to_owned(),
        }
    }
}

/// Why the JVM holds something, in words. What has no kind is a thread that only its variables
/// made known.
pub(crate) fn root_text(kind: Option<RootKind>) -> String {
    kind.map_or("thread", RootKind::name).to_owned()
}

/// Elements of an array that are looked through at once.
const PORTION: u32 = 64 << 10;

impl Heap {
    /// The shortest chain of strong references from a root; `None` if there is none.
    pub fn path(&self, node: Node) -> Result<Option<Path>> {
        let Some(target) = self.tree.place(node) else { return Ok(None) };
        // Memory is only taken for places that are met.
        let mut towards: Vec<Place> = vec![0; self.tree.reached() + 1];
        let mut waiting = VecDeque::from([target]);
        towards[target as usize] = target;
        // Lists of an index that somebody has forged may overlap.
        let mut left = self.tree.references();
        let first = loop {
            let Some(here) = waiting.pop_front() else { return Ok(None) };
            let mut is_root = false;
            for from in self.tree.referrers(here) {
                let Some(less) = left.checked_sub(1) else { return Ok(None) };
                left = less;
                if from == 0 {
                    is_root = true;
                } else if towards[from as usize] == 0 {
                    towards[from as usize] = here;
                    waiting.push_back(from);
                }
            }
            if is_root {
                break here;
            }
        };
        let mut places = vec![first];
        let mut here = first;
        while here != target {
            here = towards[here as usize];
            places.push(here);
        }
        self.named_path(&places).map(Some)
    }

    fn named_path(&self, places: &[Place]) -> Result<Path> {
        let nodes: Vec<Node> = places.iter().map(|place| self.tree.node(*place)).collect();
        let mut steps = vec![Step { node: nodes[0], by: By::Root }];
        for pair in nodes.windows(2) {
            steps.push(Step { node: pair[1], by: self.how(pair[0], pair[1])? });
        }
        let kind = self.roots(nodes[0]).map(|root| root.kind).min();
        Ok(Path { root: root_text(kind), kind, steps })
    }

    /// How one object refers to another.
    pub fn how(&self, from: Node, to: Node) -> Result<By> {
        let wanted = self.address(to);
        let named = match self.source.object(self.address(from), 0, PORTION)? {
            None => None,
            Some(Object::Class(id)) => {
                let class = self.classes().get(id);
                let field = class.statics.iter().find(|field| field.value == wanted);
                let field = field.map(|field| By::Static(field.name.to_string()));
                field.or((class.loader == wanted).then_some(By::Loader))
            }
            Some(Object::Instance { class, bytes }) => {
                let decoder = self.source.decoder();
                let mut fields = self.classes().fields(class).filter(|placed| {
                    placed.field.kind == crate::classes::Type::Reference
                        && decoder.reference(&bytes, placed.offset) == wanted
                });
                let field = fields.next().map(|placed| By::Field(placed.field.name.to_string()));
                field.or((self.classes().get(class).address == wanted).then_some(By::Class))
            }
            Some(Object::Array { class, length, elements }) => {
                let found = elements.iter().position(|element| *element == wanted);
                match found {
                    Some(at) => Some(By::Element(at as u32)),
                    None if self.classes().get(class).address == wanted => Some(By::Class),
                    None => self.element_behind(from, wanted, length)?,
                }
            }
            Some(Object::Values { .. }) => None,
        };
        Ok(named.or_else(|| self.local(from, to)).unwrap_or(By::Hidden))
    }

    /// The position of an element behind the first portion of a large array.
    fn element_behind(&self, from: Node, wanted: u64, length: u32) -> Result<Option<By>> {
        let mut begin = PORTION;
        while begin < length {
            let Some(Object::Array { elements, .. }) =
                self.source.object(self.address(from), begin, PORTION)?
            else {
                return Ok(None);
            };
            if let Some(at) = elements.iter().position(|element| *element == wanted) {
                return Ok(Some(By::Element(begin + at as u32)));
            }
            begin = begin.saturating_add(PORTION);
        }
        Ok(None)
    }

    /// A variable of a thread, with its frame.
    fn local(&self, thread: Node, node: Node) -> Option<By> {
        let address = self.address(thread);
        let threads = self.threads();
        let of = |root: &&Root| {
            let number = root.thread.filter(|_| root.kind.is_of_stack());
            let thread = number.and_then(|number| threads.get(number as usize));
            thread.is_some_and(|thread| thread.object == address)
        };
        let root = self.roots(node).find(of)?;
        Some(By::Local(self.frame(root).map(str::to_owned)))
    }

    /// The frame that a root is in.
    pub fn frame(&self, root: &Root) -> Option<&str> {
        let thread = self.threads().get(root.thread? as usize)?;
        thread.frames.get(root.frame? as usize).map(String::as_str)
    }
}
