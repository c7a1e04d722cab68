//! What the rows of tables among the facts hold, and their fields.

use super::{Datum, FactRow, RowType, count};
use crate::values::Unit;
use std::str::FromStr;

/// How often a method was called while samples were taken.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// Class and name.
    pub method: String,
    pub calls: u64,
    /// The standard deviation of its times, in means.
    pub spread: f64,
}

/// What probes cost, in picoseconds, beside some work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeCost {
    /// `narrow` and `wide` work, `cold` calls, a call that is only `counted`, the `clock`, …
    pub work: String,
    pub cost: Cost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    One(i64),
    /// What the probes measured, and what they added to the caller.
    Around {
        inside: i64,
        outside: i64,
    },
    /// The same around a body of known length.
    AroundBody {
        body: i64,
        inside: i64,
        outside: i64,
    },
}

/// What probes cost between two events of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SequenceCost {
    /// Of the calibration's empty methods, or of the program's.
    pub calibrated: bool,
    /// Types of methods and transitions between them, by name: before, first, between, second,
    /// after.
    pub sequence: [String; 5],
    pub picos: u64,
}

/// A line as the agent tells it: `narrow 600 9700 9500`, a name and picoseconds.
impl FromStr for ProbeCost {
    type Err = NotACost;

    fn from_str(line: &str) -> Result<Self, NotACost> {
        let mut words = line.split_whitespace();
        let work = words.next().ok_or(NotACost)?.to_owned();
        let picos = words.map(|word| word.parse().map_err(|_| NotACost));
        let picos: Vec<i64> = picos.collect::<Result<_, _>>()?;
        let cost = match *picos.as_slice() {
            [one] => Cost::One(one),
            [inside, outside] => Cost::Around { inside, outside },
            [body, inside, outside] => Cost::AroundBody { body, inside, outside },
            _ => return Err(NotACost),
        };
        Ok(ProbeCost { work, cost })
    }
}

/// A line is no cost of probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotACost;

impl ProbeCost {
    /// The costs among the lines that the agent tells; others are for people.
    pub fn of_lines<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> Vec<ProbeCost> {
        lines.into_iter().filter_map(|line| line.as_ref().parse().ok()).collect()
    }
}

fn text(row: &FactRow, field: &str) -> Option<String> {
    row.iter().find_map(|(name, datum)| match datum {
        Datum::Text(text) if name == field => Some(text.clone()),
        _ => None,
    })
}

fn integer(row: &FactRow, field: &str) -> Option<i64> {
    row.iter().find_map(|(name, datum)| match datum {
        Datum::Integer(value, Unit::Count) if name == field => Some(*value),
        _ => None,
    })
}

fn row<const N: usize>(fields: [(&str, Datum); N]) -> FactRow {
    fields.into_iter().map(|(name, datum)| (name.to_owned(), datum)).collect()
}

fn of_count(value: i64) -> Datum {
    Datum::Integer(value, Unit::Count)
}

impl RowType for String {
    const TABLE: &'static str = "rows of `text`";

    fn to_row(&self) -> FactRow {
        row([("text", Datum::Text(self.clone()))])
    }

    fn from_row(row: &FactRow) -> Option<Self> {
        text(row, "text")
    }
}

impl RowType for Mark {
    const TABLE: &'static str = "rows of `method` (text), `calls` (count), `spread` (real)";

    fn to_row(&self) -> FactRow {
        row([
            ("method", Datum::Text(self.method.clone())),
            ("calls", of_count(count(self.calls))),
            ("spread", Datum::Real(self.spread)),
        ])
    }

    fn from_row(row: &FactRow) -> Option<Self> {
        let spread = row.iter().find_map(|(name, datum)| match datum {
            Datum::Real(value) if name == "spread" => Some(*value),
            _ => None,
        })?;
        let calls = u64::try_from(integer(row, "calls")?).ok()?;
        Some(Mark { method: text(row, "method")?, calls, spread })
    }
}

impl RowType for ProbeCost {
    const TABLE: &'static str = "rows of `work` (text) and, in picoseconds (counts), `cost`, or \
                                 `inside` and `outside`, or these and `body`";

    fn to_row(&self) -> FactRow {
        let mut fields = row([("work", Datum::Text(self.work.clone()))]);
        let mut add = |name: &str, picos| fields.push((name.to_owned(), of_count(picos)));
        if let Cost::One(cost) = self.cost {
            add("cost", cost);
        }
        if let Cost::AroundBody { body, .. } = self.cost {
            add("body", body);
        }
        if let Cost::Around { inside, outside } | Cost::AroundBody { inside, outside, .. } =
            self.cost
        {
            add("inside", inside);
            add("outside", outside);
        }
        fields
    }

    fn from_row(row: &FactRow) -> Option<Self> {
        let [one, body, inside, outside] =
            ["cost", "body", "inside", "outside"].map(|field| integer(row, field));
        let cost = match (one, body, inside, outside) {
            (Some(one), None, None, None) => Cost::One(one),
            (None, None, Some(inside), Some(outside)) => Cost::Around { inside, outside },
            (None, Some(body), Some(inside), Some(outside)) => {
                Cost::AroundBody { body, inside, outside }
            }
            _ => return None,
        };
        Some(ProbeCost { work: text(row, "work")?, cost })
    }
}

const PLACES: [&str; 5] = ["before", "first", "between", "second", "after"];

impl RowType for SequenceCost {
    const TABLE: &'static str = "rows of `calibrated` (1 or 0), `before`, `first`, `between`, \
                                 `second`, `after` (texts), `cost` (count of picoseconds)";

    fn to_row(&self) -> FactRow {
        let mut fields = row([("calibrated", of_count(i64::from(self.calibrated)))]);
        let names = PLACES.iter().zip(&self.sequence);
        fields.extend(names.map(|(place, name)| ((*place).to_owned(), Datum::Text(name.clone()))));
        fields.push(("cost".to_owned(), of_count(count(self.picos))));
        fields
    }

    fn from_row(row: &FactRow) -> Option<Self> {
        let [before, first, between, second, after] = PLACES.map(|place| text(row, place));
        Some(SequenceCost {
            calibrated: integer(row, "calibrated")? != 0,
            sequence: [before?, first?, between?, second?, after?],
            picos: u64::try_from(integer(row, "cost")?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<R: RowType + PartialEq + std::fmt::Debug>(value: &R) {
        let row = value.to_row();
        assert_eq!(R::from_row(&row).as_ref(), Some(value));
        for (name, _) in &row {
            assert!(R::TABLE.contains(&format!("`{name}`")), "{name} is not in {:?}", R::TABLE);
        }
        // Whatever is missing, nothing is made up.
        for at in 0..row.len() {
            let mut less = row.clone();
            less.remove(at);
            assert!(R::from_row(&less).as_ref() != Some(value));
        }
    }

    #[test]
    fn rows_lead_back() {
        check(&"a note".to_owned());
        check(&Mark { method: "a.B.c".to_owned(), calls: 9, spread: 0.5 });
        for line in ["counted 1100", "cold 5 -6", "narrow 600 9700 9500"] {
            check(&line.parse::<ProbeCost>().unwrap());
        }
        let sequence = ["outside", "entry", "tier 4", "exit", "tier 4"].map(str::to_owned);
        check(&SequenceCost { calibrated: true, sequence, picos: 12_345 });
    }

    #[test]
    fn lines_for_people_are_no_costs() {
        let lines = ["", "clock", "clock fast", "clock 5000", "four 1 2 3 4"];
        let costs = ProbeCost::of_lines(lines);
        assert_eq!(costs, [ProbeCost { work: "clock".to_owned(), cost: Cost::One(5000) }]);
    }
}
