//! Chunks: some rows of one table, column by column, with the columns' names and types. What a
//! block holds once it is unpacked.
//!
//! A reader takes the columns that it knows, by name; it skips the others by their length, and
//! takes zeros and empty texts for those that are not there. That is how a newer file stays
//! readable.

use crate::bytes::{Bytes, Malformed, put_text, put_varint, unzigzag, varint_size, zigzag};

/// More rows than this are never in one chunk: it bounds what a few hostile bytes can unfold to.
pub const MAX_ROWS: u64 = 1 << 17;

const UNSIGNED: u8 = 1;
const SIGNED: u8 = 2;
const REAL: u8 = 3;
const TEXT: u8 = 4;

const EACH: u8 = 0;
const SAME: u8 = 1;
const DELTA: u8 = 2;

/// Makes the bytes of a chunk.
pub struct ChunkWriter {
    rows: usize,
    columns: u64,
    body: Vec<u8>,
    first_row: u64,
}

impl ChunkWriter {
    pub fn new(first_row: u64, rows: usize) -> Self {
        ChunkWriter { rows, columns: 0, body: Vec::new(), first_row }
    }

    #[must_use]
    pub fn numbers(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        let values: Vec<u64> = values.collect();
        self.integers(name, UNSIGNED, &values)
    }

    #[must_use]
    pub fn signed(self, name: &str, values: impl Iterator<Item = i64>) -> Self {
        let values: Vec<u64> = values.map(zigzag).collect();
        self.integers(name, SIGNED, &values)
    }

    fn integers(mut self, name: &str, kind: u8, values: &[u64]) -> Self {
        debug_assert_eq!(values.len(), self.rows);
        let deltas = || {
            let mut before = 0_u64;
            values.iter().map(move |value| {
                let delta = value.wrapping_sub(std::mem::replace(&mut before, *value));
                zigzag(delta as i64)
            })
        };
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            let mut data = Vec::new();
            values.first().into_iter().for_each(|value| put_varint(&mut data, *value));
            self.column(name, kind, SAME, &data);
            return self;
        }
        let sizes = values.iter().zip(deltas()).fold((0, 0), |(plain, small), (value, delta)| {
            (plain + varint_size(*value), small + varint_size(delta))
        });
        let mut data = Vec::with_capacity(sizes.0.min(sizes.1));
        let encoding = if sizes.1 < sizes.0 {
            deltas().for_each(|delta| put_varint(&mut data, delta));
            DELTA
        } else {
            values.iter().for_each(|value| put_varint(&mut data, *value));
            EACH
        };
        self.column(name, kind, encoding, &data);
        self
    }

    /// A column of which all rows have one value.
    #[must_use]
    pub fn same(mut self, name: &str, value: u64) -> Self {
        let mut data = Vec::new();
        put_varint(&mut data, value);
        self.column(name, UNSIGNED, SAME, &data);
        self
    }

    /// The same of a number with a sign.
    #[must_use]
    pub fn same_signed(mut self, name: &str, value: i64) -> Self {
        let mut data = Vec::new();
        put_varint(&mut data, zigzag(value));
        self.column(name, SIGNED, SAME, &data);
        self
    }

    #[must_use]
    pub fn reals(mut self, name: &str, values: impl Iterator<Item = f64>) -> Self {
        let data: Vec<u8> = values.flat_map(f64::to_le_bytes).collect();
        debug_assert_eq!(data.len(), self.rows * 8);
        self.column(name, REAL, EACH, &data);
        self
    }

    #[must_use]
    pub fn texts<'t>(mut self, name: &str, values: impl Iterator<Item = &'t str>) -> Self {
        let mut data = Vec::new();
        values.for_each(|text| put_text(&mut data, text));
        self.column(name, TEXT, EACH, &data);
        self
    }

    fn column(&mut self, name: &str, kind: u8, encoding: u8, data: &[u8]) {
        self.columns += 1;
        put_text(&mut self.body, name);
        self.body.extend_from_slice(&[kind, encoding]);
        put_varint(&mut self.body, data.len() as u64);
        self.body.extend_from_slice(data);
    }

    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.body.len() + 16);
        put_varint(&mut out, self.first_row);
        put_varint(&mut out, self.rows as u64);
        put_varint(&mut out, self.columns);
        out.extend_from_slice(&self.body);
        out
    }
}

/// A chunk being read. Columns are decoded when they are asked for.
pub struct Chunk<'a> {
    pub first_row: u64,
    pub rows: usize,
    columns: Vec<Column<'a>>,
}

struct Column<'a> {
    name: &'a str,
    kind: u8,
    encoding: u8,
    data: &'a [u8],
}

impl<'a> Chunk<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(bytes);
        let first_row = bytes.varint()?;
        let rows = bytes.varint()?;
        if rows > MAX_ROWS || first_row.checked_add(rows).is_none() {
            return Err(Malformed("it claims too many rows"));
        }
        let count = bytes.varint()?;
        let mut columns = Vec::new();
        for _ in 0..count {
            let name = bytes.text()?;
            let (kind, encoding) = (bytes.byte()?, bytes.byte()?);
            let length = bytes.varint()?;
            columns.push(Column { name, kind, encoding, data: bytes.take(length)? });
        }
        Ok(Chunk { first_row, rows: rows as usize, columns })
    }

    fn column(&self, name: &str) -> Option<&Column<'a>> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The column of that name, or zeros if there is none.
    pub fn numbers(&self, name: &str) -> Result<Vec<u64>, Malformed> {
        self.integers(name, UNSIGNED)
    }

    pub fn signed(&self, name: &str) -> Result<Vec<i64>, Malformed> {
        Ok(self.integers(name, SIGNED)?.into_iter().map(unzigzag).collect())
    }

    fn integers(&self, name: &str, kind: u8) -> Result<Vec<u64>, Malformed> {
        let Some(column) = self.column(name) else { return Ok(vec![0; self.rows]) };
        if column.kind != kind {
            return Err(Malformed("a column has another type than it should"));
        }
        let mut bytes = Bytes(column.data);
        match column.encoding {
            SAME if self.rows == 0 => Ok(Vec::new()),
            SAME => Ok(vec![bytes.varint()?; self.rows]),
            EACH => {
                let mut values = Vec::with_capacity(self.rows);
                for _ in 0..self.rows {
                    values.push(bytes.varint()?);
                }
                Ok(values)
            }
            DELTA => {
                let mut values = Vec::with_capacity(self.rows);
                let mut value = 0_u64;
                for _ in 0..self.rows {
                    value = value.wrapping_add(unzigzag(bytes.varint()?) as u64);
                    values.push(value);
                }
                Ok(values)
            }
            _ => Err(Malformed("a column has an unknown encoding")),
        }
    }

    pub fn reals(&self, name: &str) -> Result<Vec<f64>, Malformed> {
        let Some(column) = self.column(name) else { return Ok(vec![0.0; self.rows]) };
        let (values, rest) = column.data.as_chunks::<8>();
        let fits = values.len() == self.rows && rest.is_empty();
        if column.kind != REAL || column.encoding != EACH || !fits {
            return Err(Malformed("a column has another type than it should"));
        }
        Ok(values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
    }

    pub fn texts(&self, name: &str) -> Result<Vec<&'a str>, Malformed> {
        let Some(column) = self.column(name) else { return Ok(vec![""; self.rows]) };
        if column.kind != TEXT || column.encoding != EACH {
            return Err(Malformed("a column has another type than it should"));
        }
        let mut bytes = Bytes(column.data);
        (0..self.rows).map(|_| bytes.text()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[u64]) {
        let signed = values.iter().map(|value| unzigzag(*value));
        let bytes = ChunkWriter::new(7, values.len())
            .numbers("a", values.iter().copied())
            .signed("b", signed.clone())
            .finish();
        let chunk = Chunk::parse(&bytes).unwrap();
        assert_eq!((chunk.first_row, chunk.rows), (7, values.len()));
        assert_eq!(chunk.numbers("a").unwrap(), values);
        assert_eq!(chunk.signed("b").unwrap(), signed.collect::<Vec<_>>());
    }

    #[test]
    fn numbers_come_back_whatever_the_encoding() {
        check(&[]);
        check(&[5]);
        check(&[5, 5, 5]);
        check(&[0, u64::MAX, 1, u64::MAX / 2]);
        check(&(1_000_000..1_001_000).collect::<Vec<_>>());
    }

    #[test]
    fn equal_and_rising_numbers_are_small() {
        let size = |values: &[u64]| {
            ChunkWriter::new(0, values.len()).numbers("a", values.iter().copied()).finish().len()
        };
        assert!(size(&[77; 100_000]) < 20);
        assert!(size(&(1 << 40..(1 << 40) + 1000).collect::<Vec<_>>()) < 1020);
    }

    #[test]
    fn absent_columns_are_zero_and_unknown_ones_are_skipped() {
        let bytes = ChunkWriter::new(0, 2)
            .texts("new", ["x", "y"].into_iter())
            .reals("r", [0.5, -1.0].into_iter())
            .finish();
        let chunk = Chunk::parse(&bytes).unwrap();
        assert_eq!(chunk.numbers("old").unwrap(), [0, 0]);
        assert_eq!(chunk.texts("old").unwrap(), ["", ""]);
        assert_eq!(chunk.texts("new").unwrap(), ["x", "y"]);
        assert_eq!(chunk.reals("r").unwrap(), [0.5, -1.0]);
        assert!(chunk.numbers("new").is_err(), "a text is no number");
    }

    #[test]
    fn hostile_counts_are_refused() {
        let chunk = |numbers: &[u64]| {
            let mut out = Vec::new();
            numbers.iter().for_each(|number| put_varint(&mut out, *number));
            Chunk::parse(&out).map(|_| ())
        };
        assert!(chunk(&[0, MAX_ROWS + 1, 0]).is_err());
        assert!(chunk(&[u64::MAX, 1, 0]).is_err());
        assert!(chunk(&[0, 1, u64::MAX]).is_err());
        assert!(chunk(&[0, 1, 0]).is_ok());
    }
}
