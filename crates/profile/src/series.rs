//! Series: one kind of value over contexts, threads and, if wanted, time.
//!
//! Values add up. A row says "so much more of it, there"; the value of a context is the sum of its
//! rows, and what was measured later is appended, never changed. So a recording can be written
//! while it grows.

use crate::handle::{ContextId, ThreadId};
use crate::merge::Merger;
use crate::packed::{BLOCK, Numbers, Packed};
use crate::values::{Estimate, ValueKind};
use std::ops::Range;

/// What the `time` of a row means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimeAxis {
    /// Nothing: the series has no times, and they are zero.
    #[default]
    None,
    /// The moment, in nanoseconds since the start of the run.
    Exact,
    /// The start of a stretch of that many nanoseconds, since the start of the run.
    Buckets { width: u64 },
}

/// What a series is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesInfo {
    /// The engine or event that it came from: `cpu`, `wall`, `exact`. With `kind` and `estimate` it
    /// tells the series of a profile apart.
    pub name: String,
    pub kind: ValueKind,
    pub estimate: Estimate,
    pub time: TimeAxis,
    /// For samples: how much of `period_kind` passes from one to the next, zero if not known. So
    /// `samples × period` estimates the whole.
    pub period: u64,
    /// Usually [`ValueKind::CpuTime`], [`ValueKind::WallTime`] or [`ValueKind::AllocatedBytes`].
    pub period_kind: Option<ValueKind>,
}

impl SeriesInfo {
    pub fn new(name: &str, kind: ValueKind) -> Self {
        SeriesInfo {
            name: name.to_owned(),
            kind,
            estimate: Estimate::default(),
            time: TimeAxis::default(),
            period: 0,
            period_kind: None,
        }
    }

    #[must_use]
    pub fn with_time(self, time: TimeAxis) -> Self {
        SeriesInfo { time, ..self }
    }

    #[must_use]
    pub fn with_estimate(self, estimate: Estimate) -> Self {
        SeriesInfo { estimate, ..self }
    }

    #[must_use]
    pub fn with_period(self, period: u64, kind: ValueKind) -> Self {
        SeriesInfo { period, period_kind: Some(kind), ..self }
    }
}

/// One row of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    pub context: ContextId,
    pub thread: ThreadId,
    pub time: u64,
    pub value: i64,
}

impl Row {
    /// A row without a time.
    pub const fn new(context: ContextId, thread: ThreadId, value: i64) -> Self {
        Row { context, thread, time: 0, value }
    }

    #[must_use]
    pub const fn at(self, time: u64) -> Self {
        Row { time, ..self }
    }
}

/// A series and its rows, in the order in which they came.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    info: SeriesInfo,
    /// How many rows were there before those that are held; see [`Series::forget_rows`].
    forgotten: u64,
    contexts: Packed,
    threads: Packed,
    times: Packed,
    values: Packed,
}

impl Series {
    pub fn new(info: SeriesInfo) -> Self {
        Series {
            info,
            forgotten: 0,
            contexts: Packed::new(),
            threads: Packed::new(),
            times: Packed::new(),
            values: Packed::new(),
        }
    }

    pub fn info(&self) -> &SeriesInfo {
        &self.info
    }

    /// The same rows as another series, for readers that learn late what they have.
    #[must_use]
    pub fn with_info(self, info: SeriesInfo) -> Self {
        Series { info, ..self }
    }

    pub fn push(&mut self, row: Row) {
        self.contexts.push(row.context.raw().into());
        self.threads.push(row.thread.raw().into());
        self.times.push(row.time.cast_signed());
        self.values.push(row.value);
    }

    /// The number of rows held.
    pub fn len(&self) -> usize {
        self.contexts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn rows(&self) -> Rows<'_> {
        self.rows_from(0)
    }

    /// The rows from one on.
    pub fn rows_from(&self, row: usize) -> Rows<'_> {
        let (block, at) = Packed::place(row);
        let mut rows = Rows { series: self, block, at: 0, known: 0, numbers: [[0; BLOCK]; 4] };
        rows.unpack();
        rows.at = at.min(rows.known);
        rows
    }

    /// Some rows; those that are not there are left out.
    pub fn rows_in(&self, rows: Range<usize>) -> impl Iterator<Item = Row> + '_ {
        self.rows_from(rows.start).take(rows.len())
    }

    pub fn row(&self, row: usize) -> Option<Row> {
        Some(Row {
            context: ContextId::new(self.contexts.get(row)? as u32),
            thread: ThreadId::new(self.threads.get(row)? as u32),
            time: self.times.get(row)?.cast_unsigned(),
            value: self.values.get(row)?,
        })
    }

    /// The sum of all values held.
    pub fn total(&self) -> i64 {
        self.values.iter().fold(0, i64::saturating_add)
    }

    /// The number of the first row held, counted from the beginning of the run.
    pub fn first_row(&self) -> u64 {
        self.forgotten
    }

    /// Lets go of the rows, which somebody else keeps by now. Rows keep their numbers.
    pub fn forget_rows(&mut self) {
        self.forgotten += self.len() as u64;
        self.clear();
    }

    /// Adds the rows held up, one for each context and thread, all at one time. Sums stay as they
    /// were; that there were more rows, and when, is lost.
    pub fn sum_up(&mut self, time: u64) {
        let mut merger = Merger::new(self.info.clone());
        self.rows().for_each(|row| merger.add(row));
        self.clear();
        let is_timed = self.info.time != TimeAxis::None;
        merger.finish().rows().for_each(|row| self.push(if is_timed { row.at(time) } else { row }));
    }

    fn clear(&mut self) {
        self.contexts.clear();
        self.threads.clear();
        self.times.clear();
        self.values.clear();
    }

    /// The largest handles in the rows; `None` without rows.
    pub(crate) fn largest_handles(&self) -> Option<(u32, u32)> {
        Some((self.contexts.iter().max()? as u32, self.threads.iter().max()? as u32))
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let handles = self.contexts.memory() + self.threads.memory();
        handles + self.times.memory() + self.values.memory()
    }
}

/// Rows of a series, one after the other; of millions of them a block at a time is unpacked.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    series: &'a Series,
    block: usize,
    at: usize,
    known: usize,
    /// Contexts, threads, times, values.
    numbers: [Numbers; 4],
}

impl Rows<'_> {
    fn unpack(&mut self) {
        let Series { contexts, threads, times, values, .. } = self.series;
        for (column, numbers) in
            [contexts, threads, times, values].into_iter().zip(&mut self.numbers)
        {
            self.known = column.unpack(self.block, numbers);
        }
    }
}

impl Iterator for Rows<'_> {
    type Item = Row;

    #[inline]
    fn next(&mut self) -> Option<Row> {
        if self.at == self.known {
            // Only the last block has fewer.
            if self.known < BLOCK {
                return None;
            }
            self.block += 1;
            self.at = 0;
            self.unpack();
            if self.known == 0 {
                return None;
            }
        }
        let [context, thread, time, value] = self.numbers.each_ref().map(|all| all[self.at]);
        self.at += 1;
        Some(Row {
            context: ContextId::new(context as u32),
            thread: ThreadId::new(thread as u32),
            time: time.cast_unsigned(),
            value,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.series.len().saturating_sub(self.block * BLOCK + self.at);
        (left, Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_went_in() {
        let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
        let mut series = Series::new(info);
        let rows: Vec<Row> = (0..100_u32)
            .map(|n| {
                let context = ContextId::new(n / 3);
                Row::new(context, ThreadId::new(n % 4), i64::from(n)).at(u64::from(n) * 1000)
            })
            .collect();
        rows.iter().for_each(|row| series.push(*row));
        assert_eq!(series.rows().collect::<Vec<_>>(), rows);
        for from in [0, 1, 63, 64, 65, 99, 100, 128, 200] {
            let rest = rows.get(from..).unwrap_or_default();
            assert_eq!(series.rows_from(from).collect::<Vec<_>>(), rest, "from {from}");
            assert_eq!(series.rows_from(from).size_hint().0, rest.len());
        }
        assert_eq!(series.row(99), Some(rows[99]));
        assert_eq!((series.row(100), series.total()), (None, 4950));
    }

    #[test]
    fn plain_samples_cost_little() {
        let mut series = Series::new(SeriesInfo::new("cpu", ValueKind::Samples));
        for n in 0..1024 {
            series.push(Row::new(ContextId::new(n), ThreadId::UNKNOWN, 1));
        }
        assert_eq!(series.total(), 1024);
        assert!(series.memory() <= 1024 * 4 * 2, "{}", series.memory());
    }

    #[test]
    fn what_is_summed_up_keeps_its_sums_and_the_number_of_its_first_row() {
        let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
        let mut series = Series::new(info);
        series.push(Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 7).at(1));
        series.forget_rows();
        for n in 0..10_u32 {
            series.push(Row::new(ContextId::new(n % 2), ThreadId::UNKNOWN, 3).at(n.into()));
        }
        series.sum_up(99);
        let rows: Vec<(i64, u64)> = series.rows().map(|row| (row.value, row.time)).collect();
        assert_eq!(rows, [(15, 99), (15, 99)]);
        assert_eq!((series.first_row(), series.total()), (1, 30));
    }

    #[test]
    fn forgotten_rows_keep_their_numbers() {
        let mut series = Series::new(SeriesInfo::new("cpu", ValueKind::Samples));
        series.push(Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 1));
        series.forget_rows();
        series.push(Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 5));
        assert_eq!((series.first_row(), series.len(), series.total()), (1, 1, 5));
    }
}
