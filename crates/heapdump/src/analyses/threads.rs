//! What threads hold: by the variables of their frames, and else.

use crate::heap::Heap;
use crate::ids::Node;
use crate::roots::RootKind;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct ThreadRow {
    /// Its object, if the dump has it.
    pub node: Option<Node>,
    pub name: String,
    pub is_virtual: bool,
    /// All that only it holds.
    pub retained: u64,
    /// What of that its variables hold.
    pub locals: u64,
    /// From the innermost frame; those behind what is known have no text.
    pub frames: Vec<FrameRow>,
}

#[derive(Clone, Debug)]
pub struct FrameRow {
    pub text: String,
    /// Objects in its variables, with what each retains if nothing else holds it; the largest
    /// first.
    pub locals: Vec<(Node, Option<u64>)>,
}

impl Heap {
    /// All threads, those that retain most first.
    pub fn thread_rows(&self) -> Vec<ThreadRow> {
        let threads = self.threads();
        let mut locals: Vec<BTreeMap<u32, Vec<Node>>> = vec![BTreeMap::new(); threads.len()];
        for root in self.source.roots().iter().filter(|root| root.kind.is_of_stack()) {
            let of = root.thread.and_then(|thread| locals.get_mut(thread as usize));
            if let (Some(of), Some(node)) = (of, self.find(root.object)) {
                let frame = if root.kind == RootKind::Local { root.frame } else { None };
                of.entry(frame.unwrap_or(u32::MAX)).or_default().push(node);
            }
        }
        let mut rows: Vec<ThreadRow> = threads
            .iter()
            .zip(locals)
            .map(|(thread, locals)| {
                let node = self.find(thread.object);
                let name = thread.name.clone();
                let name = name.or_else(|| self.thread_name(node?).ok().flatten());
                let mut frames: Vec<FrameRow> = thread
                    .frames
                    .iter()
                    .map(|text| FrameRow { text: text.clone(), locals: Vec::new() })
                    .collect();
                let mut sum = 0;
                for (frame, mut nodes) in locals {
                    nodes.sort_unstable();
                    nodes.dedup();
                    // What others hold, too, is not the thread's.
                    let own = |local: Node| node.is_some() && self.dominator(local) == node;
                    let mut found: Vec<(Node, Option<u64>)> = nodes
                        .into_iter()
                        .map(|local| (local, own(local).then(|| self.retained(local))))
                        .collect();
                    found.sort_by_key(|(node, retained)| (std::cmp::Reverse(*retained), *node));
                    sum += found.iter().filter_map(|(_, retained)| *retained).sum::<u64>();
                    match frames.get_mut(frame as usize) {
                        Some(row) => row.locals.extend(found),
                        None => {
                            let text = "(native code)".to_owned();
                            frames.push(FrameRow { text, locals: found });
                        }
                    }
                }
                ThreadRow {
                    node,
                    name: name.unwrap_or_else(|| "(unnamed)".to_owned()),
                    is_virtual: thread.is_virtual,
                    retained: node.map_or(0, |node| self.retained(node)),
                    locals: sum,
                    frames,
                }
            })
            .collect();
        rows.sort_by(|a, b| b.retained.cmp(&a.retained).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}
