//! A column that costs nothing while all its values are the same.
//!
//! Most columns are: the value of a sample is 1, a merged tree has one thread, a tree has no times.

use std::ops::Range;

/// Values of one type, one per row.
#[derive(Clone, Debug, PartialEq)]
pub struct Column<T>(Content<T>);

#[derive(Clone, Debug, PartialEq)]
enum Content<T> {
    Same { value: T, rows: usize },
    Each(Vec<T>),
}

impl<T: Copy + PartialEq + Default> Default for Column<T> {
    fn default() -> Self {
        Column(Content::Same { value: T::default(), rows: 0 })
    }
}

impl<T: Copy + PartialEq + Default> Column<T> {
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub fn push(&mut self, value: T) {
        match &mut self.0 {
            Content::Each(values) => values.push(value),
            Content::Same { value: same, rows } if *rows == 0 || *same == value => {
                *same = value;
                *rows += 1;
            }
            Content::Same { value: same, rows } => {
                let mut values = Vec::with_capacity(*rows * 2);
                values.resize(*rows, *same);
                values.push(value);
                self.0 = Content::Each(values);
            }
        }
    }

    /// Appends `rows` equal values.
    pub fn push_same(&mut self, value: T, rows: usize) {
        match &mut self.0 {
            Content::Same { value: same, rows: known } if *known == 0 || *same == value => {
                *same = value;
                *known += rows;
            }
            Content::Each(values) => values.resize(values.len() + rows, value),
            Content::Same { .. } => {
                for _ in 0..rows {
                    self.push(value);
                }
            }
        }
    }

    pub fn len(&self) -> usize {
        match &self.0 {
            Content::Same { rows, .. } => *rows,
            Content::Each(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, row: usize) -> Option<T> {
        match &self.0 {
            Content::Same { value, rows } => (row < *rows).then_some(*value),
            Content::Each(values) => values.get(row).copied(),
        }
    }

    /// The one value of a column in which all are the same; `None` also for a column without rows.
    pub fn same(&self) -> Option<T> {
        match &self.0 {
            Content::Same { value, rows } => (*rows > 0).then_some(*value),
            Content::Each(_) => None,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len()).map(|row| match &self.0 {
            Content::Same { value, .. } => *value,
            Content::Each(values) => values[row],
        })
    }

    /// Some rows; those that are not there are left out.
    pub fn range(&self, rows: Range<usize>) -> impl Iterator<Item = T> + '_ {
        let (same, each) = match &self.0 {
            Content::Same { value, rows: known } => {
                (Some((*value, rows.end.min(*known).saturating_sub(rows.start))), None)
            }
            Content::Each(values) => {
                (None, values.get(rows.start.min(values.len())..rows.end.min(values.len())))
            }
        };
        let same = same.map(|(value, rows)| std::iter::repeat_n(value, rows));
        same.into_iter().flatten().chain(each.unwrap_or_default().iter().copied())
    }

    pub fn clear(&mut self) {
        self.0 = Content::Same { value: T::default(), rows: 0 };
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Content::Same { .. } => 0,
            Content::Each(values) => values.capacity() * size_of::<T>(),
        }
    }
}

impl<T: Copy + PartialEq + Default> Extend<T> for Column<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_take_no_memory_and_the_first_other_one_changes_that() {
        let mut column = Column::new();
        column.extend([7, 7, 7]);
        column.push_same(7, 2);
        assert_eq!((column.len(), column.same(), column.memory()), (5, Some(7), 0));
        assert_eq!(column.range(3..9).collect::<Vec<_>>(), [7, 7]);
        column.push(8);
        column.push_same(9, 2);
        assert_eq!(column.range(4..7).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(column.iter().collect::<Vec<_>>(), [7, 7, 7, 7, 7, 8, 9, 9]);
        assert_eq!((column.get(5), column.get(8), column.same()), (Some(8), None, None));
        assert!(column.memory() > 0);
    }

    #[test]
    fn a_run_of_another_value_after_equal_ones() {
        let mut column = Column::new();
        column.push_same(1, 2);
        column.push_same(2, 3);
        assert_eq!(column.iter().collect::<Vec<_>>(), [1, 1, 2, 2, 2]);
        column.clear();
        assert!(column.is_empty());
        column.push(5);
        assert_eq!(column.same(), Some(5));
    }
}
