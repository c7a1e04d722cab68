//! Adding up rows as they come, where only the sums per context and thread are wanted.

use crate::handle::{ContextId, ThreadId};
use crate::index::Index;
use crate::series::{Row, Series, SeriesInfo, TimeAxis};

/// Makes a series with one row per context and thread out of any number of rows. The memory is that
/// of the result, however many samples go in. Times are lost, and sums of zero leave no row.
///
/// While each thread's rows come in the order of their contexts, as they do out of a file that has
/// them summed up, they are the sums already. From then on, rows of a thread are first kept by a
/// hash; a thread that has many gets an array over all contexts, which is several times quicker.
#[derive(Clone, Debug)]
pub struct Merger {
    info: SeriesInfo,
    sorted: Option<Sorted>,
    keys: Vec<(u32, u32)>,
    sums: Vec<i64>,
    index: Index,
    /// By thread.
    per_thread: Vec<PerThread>,
    /// How many sums all arrays together hold.
    cells: usize,
}

#[derive(Clone, Debug, Default)]
struct PerThread {
    rows: usize,
    /// By context; empty until it is worth it.
    sums: Vec<i64>,
}

/// Sums, each pair of a context and a thread once.
#[derive(Clone, Debug)]
struct Sorted {
    series: Series,
    /// By thread, the first context that its next row may have.
    next: Vec<u32>,
}

impl Sorted {
    /// Whether the row could be added.
    fn take(&mut self, row: Row) -> bool {
        let thread = row.thread.index();
        if self.next.len() <= thread {
            self.next.resize(thread + 1, 0);
        }
        if row.context.raw() < self.next[thread] {
            return false;
        }
        if row.value != 0 {
            self.next[thread] = row.context.raw().saturating_add(1);
            self.series.push(Row { time: 0, ..row });
        }
        true
    }
}

/// All arrays together take 256 MiB at most; what is beyond is kept by the hash.
const MOST_CELLS: usize = 1 << 25;

impl Merger {
    pub fn new(info: SeriesInfo) -> Self {
        let info = info.with_time(TimeAxis::None);
        let sorted = Sorted { series: Series::new(info.clone()), next: Vec::new() };
        Merger {
            info,
            sorted: Some(sorted),
            keys: Vec::new(),
            sums: Vec::new(),
            index: Index::of(0, |_, _| 0),
            per_thread: Vec::new(),
            cells: 0,
        }
    }

    /// # Panics
    /// If there would be more than 2³²−1 pairs of a context and a thread.
    pub fn add(&mut self, row: Row) {
        if let Some(sorted) = &mut self.sorted {
            if sorted.take(row) {
                return;
            }
            let before = self.sorted.take();
            before.iter().flat_map(|all| all.series.rows()).for_each(|row| self.add_unsorted(row));
        }
        self.add_unsorted(row);
    }

    fn add_unsorted(&mut self, row: Row) {
        if self.per_thread.len() <= row.thread.index() {
            self.per_thread.resize_with(row.thread.index() + 1, PerThread::default);
        }
        let thread = &mut self.per_thread[row.thread.index()];
        let context = row.context.index();
        thread.rows += 1;
        if context >= thread.sums.len() && thread.rows > context / 8 {
            let length = (context + 1).next_power_of_two();
            let more = length - thread.sums.len();
            if self.cells + more <= MOST_CELLS {
                self.cells += more;
                thread.sums.resize(length, 0);
            }
        }
        match thread.sums.get_mut(context) {
            Some(sum) => *sum = sum.saturating_add(row.value),
            None => self.add_sparse(row),
        }
    }

    fn add_sparse(&mut self, row: Row) {
        let key = (row.context.raw(), row.thread.raw());
        let keys = &mut self.keys;
        let code = self.index.hash_numbers(u64::from(key.0), u64::from(key.1));
        if let Some(at) = self.index.find(code, |at| keys[at as usize] == key) {
            let sum = &mut self.sums[at as usize];
            *sum = sum.saturating_add(row.value);
            return;
        }
        let at = u32::try_from(keys.len()).ok().filter(|&at| at < u32::MAX);
        let at = at.expect("more than 2³²−1 pairs of a context and a thread");
        keys.push(key);
        self.sums.push(row.value);
        self.index.insert(code, at, |index, at| {
            let (context, thread) = keys[at as usize];
            index.hash_numbers(u64::from(context), u64::from(thread))
        });
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let sparse = self.keys.capacity() * 8 + self.sums.capacity() * 8 + self.index.memory();
        let sorted = |all: &Sorted| all.series.memory() + all.next.capacity() * 4;
        self.sorted.as_ref().map_or(0, sorted)
            + sparse
            + self.cells * 8
            + self.per_thread.capacity() * size_of::<PerThread>()
    }

    /// The series, each pair of a context and a thread once.
    pub fn finish(mut self) -> Series {
        if let Some(sorted) = self.sorted {
            return sorted.series;
        }
        let mut series = Series::new(self.info);
        // A thread that got its array late has its first rows in the hash.
        for ((context, thread), sum) in self.keys.into_iter().zip(self.sums) {
            let dense = &mut self.per_thread[thread as usize].sums;
            match dense.get_mut(context as usize) {
                Some(place) => *place = place.saturating_add(sum),
                None if sum != 0 => {
                    series.push(Row::new(ContextId::new(context), ThreadId::new(thread), sum));
                }
                None => {}
            }
        }
        for (thread, PerThread { sums, .. }) in (0..).zip(self.per_thread) {
            for (context, sum) in (0..).zip(sums).filter(|(_, sum)| *sum != 0) {
                series.push(Row::new(ContextId::new(context), ThreadId::new(thread), sum));
            }
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ValueKind;
    use std::collections::BTreeMap;

    #[test]
    fn equal_pairs_add_up_and_nothing_is_lost() {
        // Few contexts soon get arrays; many stay in the hash; one thread has both.
        for contexts in [3, 100, 100_000] {
            let mut merger = Merger::new(SeriesInfo::new("cpu", ValueKind::Samples));
            let mut sums = BTreeMap::new();
            for n in 0..20_000_u64 {
                let context = ContextId::new((n * n * 7919 % contexts) as u32);
                let thread = ThreadId::new((n % 3 + n / 15_000) as u32);
                let value = n as i64 % 7 - 3;
                merger.add(Row::new(context, thread, value).at(n));
                *sums.entry((context, thread)).or_insert(0) += value;
            }
            sums.retain(|_, sum| *sum != 0);
            let series = merger.finish();
            let merged: BTreeMap<_, _> =
                series.rows().map(|row| ((row.context, row.thread), row.value)).collect();
            assert_eq!(series.len(), merged.len(), "each pair once");
            assert_eq!(merged, sums);
            assert_eq!(series.info().time, TimeAxis::None);
        }
    }

    #[test]
    fn sums_in_order_are_taken_as_they_are_until_one_comes_again() {
        let row = |context, thread, value| {
            Row::new(ContextId::new(context), ThreadId::new(thread), value).at(9)
        };
        let mut merger = Merger::new(SeriesInfo::new("exact", ValueKind::Invocations));
        let rows = [row(7, 1, 3), row(2, 0, 5), row(8, 1, 0), row(8, 1, -4), row(3, 0, 6)];
        rows.into_iter().for_each(|row| merger.add(row));
        let sums = |merger: &Merger| {
            let series = merger.clone().finish();
            let all = series.rows().map(|row| (row.context.raw(), row.thread.raw(), row.value));
            assert!(series.rows().all(|row| row.time == 0));
            all.collect::<Vec<_>>()
        };
        assert_eq!(sums(&merger), [(7, 1, 3), (2, 0, 5), (8, 1, -4), (3, 0, 6)]);
        merger.add(row(7, 1, 10));
        let mut again = sums(&merger);
        again.sort_unstable();
        assert_eq!(again, [(2, 0, 5), (3, 0, 6), (7, 1, 13), (8, 1, -4)]);
    }
}
