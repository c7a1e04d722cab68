//! Values that no longer fall below zero, for formats that have no place for such ones.
//!
//! Compensation takes what probes cost from every context, and where a context did less than its
//! probes seemed to take, the rest is below zero. Leaving such values out would make the whole
//! larger than it is, by a different amount in each format. So they are paid for by what stands
//! next to them: what a caller took with all that it called stays what it is wherever it is above
//! zero, and so does the total.

use tare_profile::{ContextId, Contexts, Merger, Row, Series, ThreadId};

/// A share of `whole` for each of some parts in turn, which add up to it exactly.
#[derive(Clone, Copy, Default)]
struct Sharing {
    whole: i64,
    /// The sum of all parts that will be asked for.
    parts: i64,
    seen: i64,
    given: i64,
}

impl Sharing {
    fn next(&mut self, part: i64) -> i64 {
        self.seen = self.seen.saturating_add(part.max(0));
        if self.parts == 0 {
            return 0;
        }
        let until = i128::from(self.whole) * i128::from(self.seen) / i128::from(self.parts);
        let share = i64::try_from(until).unwrap_or(i64::MAX) - self.given;
        self.given += share;
        share
    }
}

/// A node of one thread's tree.
#[derive(Clone, Copy, Default)]
struct Node {
    used: bool,
    own: i64,
    total: i64,
    sharing: Sharing,
}

/// The same series without values below zero; `None` if it has none. Its rows are sums, without
/// times.
pub fn settled(contexts: &Contexts, series: &Series) -> Option<Series> {
    if series.rows().all(|row| row.value >= 0) {
        return None;
    }
    let mut merger = Merger::new(series.info().clone());
    series.rows().for_each(|row| merger.add(row));
    let sums = merger.finish();
    let mut rows: Vec<(ThreadId, ContextId, i64)> =
        sums.rows().map(|row| (row.thread, row.context, row.value)).collect();
    rows.sort_unstable();
    let sum = |rows: &[(ThreadId, ContextId, i64)]| {
        rows.iter().fold(0_i64, |sum, (.., value)| sum.saturating_add(*value))
    };
    let of_threads = || rows.chunk_by(|a, b| a.0 == b.0);
    let positive = of_threads().fold(0_i64, |all, rows| all.saturating_add(sum(rows).max(0)));
    let mut threads = Sharing { whole: sum(&rows).max(0), parts: positive, ..Sharing::default() };
    let mut nodes = vec![Node::default(); contexts.len()];
    let mut out = Series::new(sums.info().clone());
    for rows in of_threads() {
        let whole = threads.next(sum(rows));
        settle_thread(contexts, rows, whole, &mut nodes, &mut out);
    }
    Some(out)
}

/// Adds the rows of one thread, which come to `whole` together. `nodes` is empty before and after.
fn settle_thread(
    contexts: &Contexts,
    rows: &[(ThreadId, ContextId, i64)],
    whole: i64,
    nodes: &mut [Node],
    out: &mut Series,
) {
    let mut used = Vec::new();
    for (_, context, value) in rows {
        nodes[context.index()].own = *value;
        let mut at = Some(*context);
        while let Some(context) = at.filter(|context| !nodes[context.index()].used) {
            nodes[context.index()].used = true;
            used.push(context);
            at = contexts.parent(context);
        }
    }
    // Parents stand before their children: totals are one sweep backwards, shares one forwards.
    used.sort_unstable();
    for context in used.iter().rev() {
        let node = &mut nodes[context.index()];
        node.total = node.total.saturating_add(node.own);
        node.sharing.parts = node.sharing.parts.saturating_add(node.own.max(0));
        let total = node.total;
        if let Some(parent) = contexts.parent(*context) {
            let parent = &mut nodes[parent.index()];
            parent.total = parent.total.saturating_add(total);
            parent.sharing.parts = parent.sharing.parts.saturating_add(total.max(0));
        }
    }
    for context in &used {
        let node = nodes[context.index()];
        let share = match contexts.parent(*context) {
            Some(parent) => nodes[parent.index()].sharing.next(node.total),
            None => whole,
        };
        let node = &mut nodes[context.index()];
        node.sharing.whole = share;
        let own = node.sharing.next(node.own);
        if own > 0 {
            out.push(Row::new(*context, rows[0].0, own));
        }
    }
    used.iter().for_each(|context| nodes[context.index()] = Node::default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{FrameId, SeriesInfo, ValueKind};

    fn series(rows: &[(ContextId, u32, i64)]) -> Series {
        let mut series = Series::new(SeriesInfo::new("exact", ValueKind::WallTime));
        for (context, thread, value) in rows {
            series.push(Row::new(*context, ThreadId::new(*thread), *value));
        }
        series
    }

    fn values(series: &Series) -> Vec<(ContextId, i64)> {
        series.rows().map(|row| (row.context, row.value)).collect()
    }

    #[test]
    fn a_caller_keeps_what_it_took_with_all_that_it_called() {
        let mut contexts = Contexts::default();
        let [a, b, c, d] = {
            let a = contexts.child(ContextId::ROOT, FrameId::new(0));
            let b = contexts.child(a, FrameId::new(1));
            [a, b, contexts.child(b, FrameId::new(2)), contexts.child(a, FrameId::new(3))]
        };
        // b with c is 6 and stays 6: its callee pays. d is below zero, and its siblings pay.
        let settled =
            settled(&contexts, &series(&[(a, 1, 10), (b, 1, -4), (c, 1, 10), (d, 1, -8)]));
        let settled = settled.unwrap();
        assert_eq!(settled.total(), 8);
        assert_eq!(values(&settled), [(a, 5), (c, 3)]);
    }

    #[test]
    fn totals_stay_whatever_the_values_are() {
        let mut contexts = Contexts::default();
        let mut all = vec![ContextId::ROOT];
        let mut seed = 7_u64;
        let mut dice = |bound: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % bound
        };
        for _ in 0..300 {
            let parent = all[dice(all.len())];
            all.push(contexts.child(parent, FrameId::new(dice(9) as u32)));
        }
        for _ in 0..50 {
            let rows: Vec<_> = (0..400)
                .map(|_| (all[dice(all.len())], dice(4) as u32, dice(1_000_000) as i64 - 200_000))
                .collect();
            let before = series(&rows);
            let after = settled(&contexts, &before).unwrap();
            assert_eq!(after.total(), before.total());
            assert!(after.rows().all(|row| row.value > 0));
            assert!(settled(&contexts, &after).is_none());
        }
    }

    #[test]
    fn less_than_nothing_is_nothing() {
        let contexts = Contexts::default();
        let rows = [(ContextId::ROOT, 1, -5), (ContextId::ROOT, 2, 3)];
        assert!(settled(&contexts, &series(&rows)).unwrap().is_empty());
    }
}
