//! Net times of the nodes of a tree, and which of them have one.

use tare_arena::layout::Holds;
use tare_arena::{Node, Snapshot, Tree};

/// For each node the ticks that were its own, invocations under way included.
pub(super) fn net_ticks(snapshot: &Snapshot, tree: &Tree) -> Vec<i64> {
    let now = snapshot.clock.now.saturating_sub(tree.adjust);
    let gross = |node: Node| {
        // Only the thread itself could read its processor time of an invocation under way.
        let known = node.start != 0 && !snapshot.cpu_time;
        let under_way = if known { now.saturating_sub(node.start) } else { 0 };
        i64::try_from(node.total.saturating_add(under_way)).unwrap_or(i64::MAX)
    };
    let mut net = vec![0_i64; tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate() {
        let gross = gross(node);
        net[at] += gross;
        let caller = tree.caller_with_time(at);
        if caller != at {
            net[caller] -= gross;
        }
    }
    net
}

/// For each node the variance of its own time where only some calls were timed, in ticks squared: a
/// caller's is without what it called, so it is as uncertain as that is, too.
fn net_variance(tree: &Tree) -> Vec<f64> {
    let mut variance = vec![0.0; tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate() {
        let own = (node.error as f64).powi(2);
        variance[at] += own;
        let caller = tree.caller_with_time(at);
        if caller != at {
            variance[caller] += own;
        }
    }
    variance
}

/// How far the figures of a tree's nodes may be off, in the order of the recording's series.
pub(super) struct Doubts {
    /// Where calls of roots are drawn: of a node's calls.
    pub calls: Vec<u64>,
    /// Of its own time, in microseconds squared.
    pub own: Vec<u64>,
    /// By how much more uncertain its time is, with all that it called, than the times of what it
    /// called are by themselves: below zero where a caller's calls were timed more often than its
    /// callees'. So a sum over all that a node called is the variance of its own total time.
    pub total: Vec<i64>,
}

impl Doubts {
    /// None where every call is timed.
    pub(super) fn of(snapshot: &Snapshot, tree: &Tree) -> Option<Self> {
        let micros = |variance: f64| square_micros(snapshot, variance);
        let of_followed = |at: usize| tree.variances.get(at).copied().unwrap_or_default();
        let (calls, own): (_, Vec<u64>) = match snapshot.holds {
            Holds::SomeTimes => (Vec::new(), net_variance(tree).into_iter().map(micros).collect()),
            Holds::Followed => (
                tree.variances.iter().map(|variances| variances.calls as u64).collect(),
                tree.variances.iter().map(|variances| micros(variances.own)).collect(),
            ),
            _ => return None,
        };
        let mut total = vec![0_i64; tree.nodes.len()];
        for (at, node) in tree.nodes.iter().enumerate() {
            let gross = match snapshot.holds {
                Holds::SomeTimes => (node.error as f64).powi(2),
                _ => of_followed(at).total,
            };
            let gross = micros(gross).cast_signed();
            total[at] = total[at].saturating_add(gross);
            let caller = tree.caller_with_time(at);
            if caller != at {
                total[caller] = total[caller].saturating_sub(gross);
            }
        }
        Some(Doubts { calls, own, total })
    }

    /// Those of one node, with how many of its calls were timed where some are.
    pub(super) fn counted(&self, at: usize, node: &Node) -> [u64; 3] {
        let of = |all: &[u64]| all.get(at).copied().unwrap_or(0);
        let first = if self.calls.is_empty() { node.some_timed } else { of(&self.calls) };
        let total = self.total.get(at).copied().unwrap_or(0);
        [first, of(&self.own), total.cast_unsigned()]
    }
}

/// A variance in microseconds squared, which add up to no number that is too large.
fn square_micros(snapshot: &Snapshot, variance: f64) -> u64 {
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
