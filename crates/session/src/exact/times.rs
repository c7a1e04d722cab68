//! Net times of the nodes of a tree, and which of them have one.

use tare_arena::{Node, Snapshot, Tree};

/// For each node the ticks that were its own, invocations under way included.
pub(super) fn net_ticks(snapshot: &Snapshot, tree: &Tree) -> Vec<i64> {
    let gross: Vec<i64> = tree
        .nodes
        .iter()
        .map(|node| {
            // Only the thread itself could read its processor time of an invocation under way.
            let known = node.start != 0 && !snapshot.cpu_time;
            let now = snapshot.clock.now.saturating_sub(tree.adjust);
            let under_way = if known { now.saturating_sub(node.start) } else { 0 };
            i64::try_from(node.total.saturating_add(under_way)).unwrap_or(i64::MAX)
        })
        .collect();
    let mut net = gross.clone();
    for (at, node) in tree.nodes.iter().enumerate() {
        let caller = in_time_of(tree, node);
        if caller != at {
            net[caller] -= gross[at];
        }
    }
    net
}

/// For each node the variance of its own time where only some calls were timed, in ticks squared: a
/// caller's is without what it called, so it is as uncertain as that is, too.
pub(super) fn net_variance(tree: &Tree) -> Vec<f64> {
    let mut variance = vec![0.0; tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate() {
        let own = (node.error as f64).powi(2);
        variance[at] += own;
        let caller = in_time_of(tree, node);
        if caller != at {
            variance[caller] += own;
        }
    }
    variance
}

/// For each node by how much more uncertain its time is, with all that it called, than the times of
/// what it called are by themselves: below zero where a caller's calls were timed more often than
/// its callees'. So a sum over all that a node called is the variance of its own total time. In
/// microseconds squared.
pub(super) fn total_variance(snapshot: &Snapshot, tree: &Tree) -> Vec<i64> {
    let of = |node: &Node| square_micros(snapshot, (node.error as f64).powi(2)).cast_signed();
    let mut variance: Vec<i64> = tree.nodes.iter().map(of).collect();
    for (at, node) in tree.nodes.iter().enumerate() {
        let caller = in_time_of(tree, node);
        if caller != at {
            variance[caller] = variance[caller].saturating_sub(of(node));
        }
    }
    variance
}

/// A variance in microseconds squared, which add up to no number that is too large.
pub(super) fn square_micros(snapshot: &Snapshot, variance: f64) -> u64 {
    let deviation = nanos(snapshot, variance.sqrt() as i64) as f64 / 1_000.0;
    (deviation * deviation) as u64
}

/// The place of a method in a table by id; what is no method has the first.
pub(super) fn of_method<T: Clone + Default>(table: &mut Vec<T>, method: i32) -> &mut T {
    let id = usize::try_from(method).unwrap_or(0);
    if table.len() <= id {
        table.resize(id + 1, T::default());
    }
    &mut table[id]
}

/// The node in whose time the calls of another are. What has no time of its own is in its caller's,
/// and what it calls is not; what stands for the begin of a thread or task is no code, and has no
/// caller.
pub(super) fn in_time_of(tree: &Tree, node: &Node) -> usize {
    let mut caller = node.parent as usize;
    while !has_time(&tree.nodes[caller]) && tree.nodes[caller].parent as usize != caller {
        caller = tree.nodes[caller].parent as usize;
    }
    caller
}

/// Whether a node of a timed session is timed: its first call has begun, or has ended.
pub(super) fn has_time(node: &Node) -> bool {
    node.total != 0 || node.start != 0
}

/// A difference of ticks in nanoseconds. It is the differences that are turned: the clock's rate
/// gets better known as time goes by, and what did not change must not seem to.
pub(super) fn nanos(snapshot: &Snapshot, ticks: i64) -> i64 {
    if snapshot.cpu_time {
        // In nanoseconds already.
        return ticks;
    }
    let nanos = i64::try_from(snapshot.clock.nanos(ticks.unsigned_abs())).unwrap_or(i64::MAX);
    nanos * ticks.signum()
}
