//! Contexts merged by what a reader sees of a frame: most formats show a method's name, not its
//! line, overload or compilation tier.

use std::collections::HashMap;
use tare_java_names::stable;
use tare_profile::{
    ContextId, Contexts, FrameId, Merger, MethodKind, Profile, Row, Series, ThreadId,
};

/// What is shown of a method. Two methods of the same name and kind are one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Label {
    pub text: String,
    pub kind: MethodKind,
}

/// All labels, each once.
#[derive(Default)]
pub struct Labels {
    pub rows: Vec<Label>,
    index: HashMap<Label, u32>,
    stable: bool,
}

impl Labels {
    /// Labels without the numbers that a JVM makes up anew in every run, so that two runs meet.
    pub fn of_two_runs() -> Self {
        Labels { stable: true, ..Labels::default() }
    }

    pub fn intern(&mut self, label: Label) -> u32 {
        *self.index.entry(label).or_insert_with_key(|label| {
            self.rows.push(label.clone());
            self.rows.len() as u32 - 1
        })
    }

    /// The label of every frame of a profile, by the frame's number.
    pub fn of_frames(&mut self, profile: &Profile) -> Vec<u32> {
        let methods: Vec<u32> = profile
            .methods
            .iter()
            .map(|(id, method)| {
                let name = profile.method_name(id);
                let text = if self.stable { stable(&name) } else { name };
                self.intern(Label { text, kind: method.kind })
            })
            .collect();
        profile.frames.iter().map(|(_, frame)| methods[frame.method.index()]).collect()
    }
}

/// A tree of labels. The frames of [`Merged::nodes`] are numbers of labels.
#[derive(Default)]
pub struct Merged {
    pub nodes: Contexts,
}

impl Merged {
    /// Merges the contexts of a profile in, of which `used` are wanted, and says for each where it
    /// went. Those that are not wanted go to the root.
    pub fn add(&mut self, profile: &Profile, labels: &[u32], used: &[bool]) -> Vec<ContextId> {
        let mut node_of = vec![ContextId::ROOT; profile.contexts.len()];
        for (id, parent, frame) in profile.contexts.iter() {
            if used[id.index()] {
                let label = FrameId::new(labels[frame.index()]);
                node_of[id.index()] = self.nodes.child(node_of[parent.index()], label);
            }
        }
        node_of
    }
}

/// Which contexts have a row in one of the series, or are on the way to one that has.
pub fn used<'a>(profile: &Profile, series: impl IntoIterator<Item = &'a Series>) -> Vec<bool> {
    let mut used = vec![false; profile.contexts.len()];
    for row in series.into_iter().flat_map(Series::rows) {
        used[row.context.index()] = true;
    }
    for (id, parent, _) in profile.contexts.iter().rev() {
        if used[id.index()] {
            used[parent.index()] = true;
        }
    }
    used
}

/// The sum of the rows of each thread and node, in that order, without zeros.
pub fn sums(series: &Series, node_of: &[ContextId]) -> Vec<(ThreadId, ContextId, i64)> {
    let mut merger = Merger::new(series.info().clone());
    for row in series.rows() {
        merger.add(Row { context: node_of[row.context.index()], ..row });
    }
    let sums = merger.finish();
    let mut sums: Vec<_> = sums.rows().map(|row| (row.thread, row.context, row.value)).collect();
    sums.sort_unstable();
    sums
}

/// The labels of a node, outermost first.
pub fn path(nodes: &Contexts, node: ContextId, into: &mut Vec<u32>) {
    into.clear();
    into.extend(nodes.frames(node).map(FrameId::raw));
    into.reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_runs_meet() {
        for (name, expected) in [
            ("a.B$$Lambda/0x00007f12.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda$14/0x7f.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda$14.run", "a.B$$Lambda.run"),
            (
                "java.lang.invoke.LambdaForm$MH.0x00ab.invoke",
                "java.lang.invoke.LambdaForm$MH.invoke",
            ),
            ("a.B.run", "a.B.run"),
        ] {
            assert_eq!(stable(name), expected);
        }
    }
}
