//! Adding up rows as they come, where only the sums per context and thread are wanted.

use crate::handle::{ContextId, ThreadId};
use crate::index::Index;
use crate::series::{Row, Series, SeriesInfo, TimeAxis};

/// Makes a series with one row per context and thread out of any number of rows. The memory is that
/// of the result, however many samples go in. Times are lost.
#[derive(Clone, Debug)]
pub struct Merger {
    info: SeriesInfo,
    keys: Vec<(u32, u32)>,
    sums: Vec<i64>,
    index: Index,
}

impl Merger {
    pub fn new(info: SeriesInfo) -> Self {
        let info = info.with_time(TimeAxis::None);
        Merger { info, keys: Vec::new(), sums: Vec::new(), index: Index::of(0, |_, _| 0) }
    }

    /// # Panics
    /// If there would be more than 2³²−1 pairs of a context and a thread.
    pub fn add(&mut self, row: Row) {
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

    /// The number of pairs so far.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Rows in the order in which their pairs first came.
    pub fn finish(self) -> Series {
        let mut series = Series::new(self.info);
        for ((context, thread), sum) in self.keys.into_iter().zip(self.sums) {
            series.push(Row::new(ContextId::new(context), ThreadId::new(thread), sum));
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ValueKind;

    #[test]
    fn equal_pairs_add_up_and_nothing_is_lost() {
        let mut merger = Merger::new(SeriesInfo::new("cpu", ValueKind::Samples));
        let mut sum = 0;
        for n in 0..10_000_u32 {
            let (context, thread) = (ContextId::new(n * n % 100), ThreadId::new(n % 3));
            merger.add(Row::new(context, thread, i64::from(n)).at(u64::from(n)));
            sum += i64::from(n);
        }
        let pairs = merger.len();
        let series = merger.finish();
        assert_eq!((series.len(), series.total()), (pairs, sum));
        let mut keys: Vec<_> = series.rows().map(|row| (row.context, row.thread)).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), pairs);
        assert_eq!(series.info().time, TimeAxis::None);
    }
}
