//! Tables: columns with a name for scripts and a title for people, and rows of values that know how
//! they are written and how they are ordered.

use std::cmp::Ordering;

/// A value of a row. Numbers are in the smallest unit: bytes, nanoseconds, shares of one.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Value {
    /// Not known, or none.
    #[default]
    Nothing,
    /// 0.214 is 21.4 %.
    Share(f64),
    Count(f64),
    Bytes(f64),
    /// A second.
    BytesRate(f64),
    Time(f64),
    /// Nanoseconds a second, written in milliseconds.
    TimeRate(f64),
    Text(String),
}

impl Value {
    /// In so few letters that a column of eight has room.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Value::Nothing => "–".to_owned(),
            Value::Share(share) => format!("{:.1}", share * 100.0),
            Value::Count(count) => counted(*count),
            Value::Bytes(bytes) => scaled(*bytes, &BYTES),
            Value::BytesRate(bytes) if *bytes <= 0.0 => "–".to_owned(),
            Value::BytesRate(bytes) => format!("{}/s", scaled(*bytes, &BYTES)),
            Value::Time(nanos) => scaled(*nanos, &TIMES),
            Value::TimeRate(nanos) if *nanos <= 0.0 => "–".to_owned(),
            Value::TimeRate(nanos) if *nanos < 9.95e6 => format!("{:.1}", nanos / 1e6),
            Value::TimeRate(nanos) => counted((nanos / 1e6).round()),
            Value::Text(text) => text.clone(),
        }
    }

    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Nothing | Value::Text(_) => None,
            Value::Share(number)
            | Value::Count(number)
            | Value::Bytes(number)
            | Value::BytesRate(number)
            | Value::Time(number)
            | Value::TimeRate(number) => Some(*number),
        }
    }

    /// Texts by the alphabet, numbers with the largest first, and last what is not known.
    fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            _ => {
                let key = |value: &Value| value.number().unwrap_or(f64::NEG_INFINITY);
                key(other).total_cmp(&key(self))
            }
        }
    }

    /// The same kind of value, of something that has not happened.
    fn none(&self) -> Value {
        match self {
            Value::Text(text) => Value::Text(text.clone()),
            _ => Value::Nothing,
        }
    }
}

const BYTES: [(f64, &str); 4] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
const TIMES: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];

/// Three digits and a unit.
pub(crate) fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fits = units.iter().find(|(size, _)| value.abs() >= *size * 0.9995);
    let (size, name) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
    let number = value / size;
    let decimals = match number.abs() {
        _ if size == 1.0 => 0,
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    format!("{number:.decimals$} {name}")
}

pub(crate) fn bytes(value: f64) -> String {
    scaled(value, &BYTES)
}

pub(crate) fn time(nanos: f64) -> String {
    scaled(nanos, &TIMES)
}

/// A number with commas, or in millions where it would be long.
pub(crate) fn counted(count: f64) -> String {
    if count >= 1e8 {
        return format!("{:.0} M", count / 1e6);
    }
    if count > 0.0 && count < 9.95 && count.fract() != 0.0 {
        return format!("{count:.1}");
    }
    let digits = format!("{:.0}", count.abs());
    let mut out = if count <= -0.5 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A column. Of those whose `least` is more than the terminal has columns nothing is shown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Column {
    /// For scripts.
    pub id: &'static str,
    pub title: &'static str,
    /// The key that orders by it.
    pub key: char,
    /// Zero shares what is left with others like it.
    pub width: u16,
    pub least: u16,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row {
    /// What it is known by from one second to the next.
    pub key: String,
    /// By column.
    pub values: Vec<Value>,
    /// Of a thread: what the system calls it.
    pub tid: Option<u64>,
}

impl Row {
    /// What is searched by a filter.
    #[must_use]
    pub fn has(&self, lower: &str) -> bool {
        let texts = self.values.iter().filter_map(|value| match value {
            Value::Text(text) => Some(text),
            _ => None,
        });
        lower.is_empty() || texts.into_iter().any(|text| text.to_lowercase().contains(lower))
    }

    /// The row of something that was not seen any more.
    pub(crate) fn gone(&self) -> Row {
        let values = self.values.iter().map(Value::none).collect();
        Row { key: self.key.clone(), values, tid: None }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    pub columns: &'static [Column],
    pub rows: Vec<Row>,
}

impl Table {
    #[must_use]
    pub fn empty(columns: &'static [Column]) -> Self {
        Table { columns, rows: Vec::new() }
    }
}

/// Orders rows by a column; those that are equal there stay in their order.
pub fn sort(rows: &mut [Row], column: usize, reversed: bool) {
    let value = |row: &Row| row.values.get(column).cloned().unwrap_or_default();
    rows.sort_by(|a, b| {
        let order = value(a).order(&value(b));
        if reversed { order.reverse() } else { order }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short() {
        for (value, text) in [
            (Value::Nothing, "–"),
            (Value::Share(0.2144), "21.4"),
            (Value::Count(1_204_331.0), "1,204,331"),
            (Value::Count(0.25), "0.2"),
            (Value::Count(412_204_331.0), "412 M"),
            (Value::Bytes(999_999.0), "1.00 MB"),
            (Value::BytesRate(120_400_000.0), "120 MB/s"),
            (Value::BytesRate(0.0), "–"),
            (Value::Time(91.4), "91 ns"),
            (Value::Time(12_340_000.0), "12.3 ms"),
            (Value::TimeRate(3_400_000.0), "3.4"),
            (Value::TimeRate(1_234_000_000.0), "1,234"),
            (Value::Text("a".into()), "a"),
        ] {
            assert_eq!(value.shown(), text);
            assert!(text.chars().count() <= 9, "{text}");
        }
    }

    #[test]
    fn rows_are_ordered_by_numbers_and_names() {
        let row = |key: &str, value: Value| Row {
            key: key.to_owned(),
            values: vec![value, Value::Text(key.to_owned())],
            tid: None,
        };
        let mut rows = vec![
            row("b", Value::Nothing),
            row("c", Value::Count(1.0)),
            row("a", Value::Count(2.0)),
        ];
        let keys = |rows: &[Row]| rows.iter().map(|row| row.key.clone()).collect::<String>();
        sort(&mut rows, 0, false);
        assert_eq!(keys(&rows), "acb");
        sort(&mut rows, 1, false);
        assert_eq!(keys(&rows), "abc");
        sort(&mut rows, 1, true);
        assert_eq!(keys(&rows), "cba");
        assert!(rows[0].has("c") && !rows[0].has("x") && rows[0].has(""));
    }
}
