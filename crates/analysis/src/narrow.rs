//! What a filter lets through, as a profile again: with its threads, times, lines and events, for
//! everybody who wants more than a tree.

use crate::filter::{AnalysisError, Filter, Grouping};
use crate::labels::{Label, LabelKind};
use crate::select::Selection;
use crate::tree::{LabelId, NodeId, Tree};
use std::collections::HashMap;
use tare_profile::{
    ContextId, Contexts, Event, EventTable, Frame, FrameId, LossKind, Method, MethodKind, Profile,
    Row, Series, SeriesId,
};

/// The profile after a filter. Series, threads and names keep their handles; contexts do not, if
/// the filter changes stacks. `metric` decides what is small.
///
/// A series without times has nothing to give to a range of time. If it is `metric` that is an
/// error; another one is empty afterwards, and the losses say so.
pub fn narrow(
    profile: Profile,
    metric: SeriesId,
    filter: &Filter,
) -> Result<Profile, AnalysisError> {
    if *filter == Filter::default() {
        return Ok(profile);
    }
    let selection = Selection::new(&profile, filter)?;
    let mut rows: Vec<Vec<Row>> = Vec::new();
    let mut without_times = Vec::new();
    for (id, series) in profile.all_series() {
        match selection.rows(&profile, id, filter) {
            Ok(passing) => rows.push(passing.collect()),
            Err(AnalysisError::NoTimes { series }) if id != metric => {
                without_times.push(series);
                rows.push(Vec::new());
            }
            Err(error) => return Err(error),
        }
        debug_assert_eq!(rows.len(), id.index() + 1, "{:?}", series.info());
    }
    let events = |table: &EventTable| -> Vec<(usize, Event)> {
        let all = (0..).zip(table.events());
        all.filter(|(_, event)| selection.has_event(event, filter)).collect()
    };
    let events: Vec<Vec<(usize, Event)>> =
        profile.all_events().map(|(_, table)| events(table)).collect();

    let mut out = Profile::new();
    out.strings = profile.strings.clone();
    out.methods = profile.methods.clone();
    out.frames = profile.frames.clone();
    out.threads = profile.threads.clone();
    out.run = profile.run.clone();
    let moved = filter.changes_stacks().then(|| {
        let mut values = sums(&profile, &rows, metric);
        let mut counts = vec![0; profile.contexts.len()];
        events.iter().flatten().for_each(|(_, event)| counts[event.context.index()] += 1);
        values.push(counts);
        reshape(&profile, &selection, &values, filter, &mut out)
    });
    if moved.is_none() {
        out.contexts = profile.contexts.clone();
    }
    let place = |context: ContextId| moved.as_ref().map_or(context, |moved| moved[context.index()]);
    for ((_, series), rows) in profile.all_series().zip(rows) {
        let mut kept = Series::new(series.info().clone());
        rows.into_iter().for_each(|row| kept.push(Row { context: place(row.context), ..row }));
        out.add_made_series(kept);
    }
    // A filter chooses events by where they were. The stacks that their fields name are not asked.
    let mut contexts = std::mem::take(&mut out.contexts);
    let mut whole: HashMap<ContextId, ContextId> = HashMap::new();
    let mut place_of_field = |context: ContextId| match moved.is_some() {
        true => *whole.entry(context).or_insert_with(|| {
            let frames: Vec<FrameId> = profile.contexts.frames(context).collect();
            contexts.stack(frames.into_iter().rev())
        }),
        false => context,
    };
    for ((_, table), events) in profile.all_events().zip(events) {
        let id = out.events_of(table.kind());
        for (row, _) in events {
            let (event, values) = table.moved_row(row, place, &mut place_of_field);
            out.events_mut(id).push(event, &values);
        }
    }
    out.contexts = contexts;
    for series in without_times {
        let reason = "they were recorded without times, and a range of time was asked for";
        out.run.lose(LossKind::Skipped, &format!("{series} values"), 1, reason);
    }
    Ok(out)
}

/// Values per context, those of `metric` first.
fn sums(profile: &Profile, rows: &[Vec<Row>], metric: SeriesId) -> Vec<Vec<i64>> {
    let others = (0..rows.len()).filter(|number| *number != metric.index());
    std::iter::once(metric.index())
        .chain(others)
        .map(|number| {
            let mut sums = vec![0_i64; profile.contexts.len()];
            for row in &rows[number] {
                let sum = &mut sums[row.context.index()];
                *sum = sum.saturating_add(row.value);
            }
            sums
        })
        .collect()
}

/// Makes the contexts of the filtered profile; for each old one its new.
///
/// A tree says which contexts join. It is a tree of labels, though, and the frames of one method
/// may stand at several lines, so that a node may have several contexts.
fn reshape(
    profile: &Profile,
    selection: &Selection,
    values: &[Vec<i64>],
    filter: &Filter,
    out: &mut Profile,
) -> Vec<ContextId> {
    let (tree, node_of) = Tree::with_places(profile, selection, values, filter);
    let mut frames: HashMap<LabelId, FrameId> = HashMap::new();
    let mut contexts = vec![ContextId::ROOT; profile.contexts.len()];
    let mut made = Contexts::default();
    // By new context, its node.
    let mut nodes = vec![NodeId::ROOT];
    for (id, parent, frame) in profile.contexts.iter() {
        let node = NodeId(node_of[id.index()]);
        if node == NodeId::ROOT {
            continue;
        }
        // Its own node if it joins something above it, or else that node's parent.
        let above = up_to(&tree, &made, &nodes, contexts[parent.index()], node);
        if nodes[above.index()] == node {
            contexts[id.index()] = above;
            continue;
        }
        debug_assert_eq!(Some(nodes[above.index()]), tree.parent(node));
        let label = tree.label_id(node);
        let plain = filter.group == Grouping::Method
            && matches!(tree.label(label).kind, LabelKind::Method(_));
        let frame = match plain {
            true => frame,
            false => *frames.entry(label).or_insert_with(|| frame_of(tree.label(label), out)),
        };
        let context = made.child(above, frame);
        if context.index() == nodes.len() {
            nodes.push(node);
        }
        contexts[id.index()] = context;
    }
    out.contexts = made;
    contexts
}

/// From a context towards the root, the first that is of a node or of that node's parent.
fn up_to(
    tree: &Tree,
    made: &Contexts,
    nodes: &[NodeId],
    from: ContextId,
    node: NodeId,
) -> ContextId {
    let parent = tree.parent(node).unwrap_or(NodeId::ROOT);
    let mut at = from;
    while nodes[at.index()] != node && nodes[at.index()] != parent {
        let Some(above) = made.parent(at) else { break };
        at = above;
    }
    at
}

/// A label as a frame: lines stay what they are, groups stand as classes, the rest as accounts.
fn frame_of(label: &Label, out: &mut Profile) -> FrameId {
    let method = match (label.kind, label.method) {
        (LabelKind::Method(_), Some(method)) => method,
        (LabelKind::Group, _) => {
            let class = out.strings.intern(&label.text);
            out.methods.intern(Method { kind: MethodKind::Class, class, ..Method::default() })
        }
        _ => return out.special(&label.text),
    };
    out.frames.intern(Frame { line: label.line, ..Frame::of(method) })
}
