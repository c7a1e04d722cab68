//! Facts of a run: what it came to and how it was measured, as values with names and types, which
//! analyses compute with. `keys` has the name and type of each, `tables` what rows of tables hold.
//!
//! What the user asked for, in words for people, is [`RunInfo::options`](crate::RunInfo::options).

pub mod keys;
mod tables;

pub use tables::{Cost, Mark, ProbeCost, SequenceCost};

use crate::values::Unit;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

/// The facts of a run, by the names of their keys. A reader keeps also those whose keys it does not
/// know.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Facts(BTreeMap<String, Fact>);

/// The value of a fact.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    One(Datum),
    /// A table; without rows it is the same as no fact.
    Rows(Vec<FactRow>),
}

/// A row of a table: its fields by name. A field that is not known is not there.
pub type FactRow = Vec<(String, Datum)>;

#[derive(Clone, PartialEq, Debug)]
pub enum Datum {
    Integer(i64, Unit),
    Real(f64),
    Text(String),
}

/// The name of a fact, and by its type what it holds.
pub struct Key<T> {
    name: &'static str,
    holds: PhantomData<fn() -> T>,
}

// Derived, they would ask the same of `T`.
impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> Key<T> {
    const fn new(name: &'static str) -> Self {
        Key { name, holds: PhantomData }
    }

    pub fn name(self) -> &'static str {
        self.name
    }
}

/// What a fact can hold.
pub trait FactType: Sized {
    /// As FORMAT.md calls it.
    const TYPE: &'static str;
    fn to_fact(&self) -> Fact;
    /// `None` if it is a fact of another type.
    fn from_fact(fact: &Fact) -> Option<Self>;
}

/// What a row of a table can hold.
pub trait RowType: Sized {
    /// As FORMAT.md calls a table of them.
    const TABLE: &'static str;
    fn to_row(&self) -> FactRow;
    /// `None` if a field is missing that all of them have.
    fn from_row(row: &FactRow) -> Option<Self>;
}

impl Facts {
    pub fn get<T: FactType>(&self, key: Key<T>) -> Option<T> {
        self.0.get(key.name).and_then(T::from_fact)
    }

    /// A table is empty where there is none.
    pub fn rows<R: RowType>(&self, key: Key<Vec<R>>) -> Vec<R> {
        self.get(key).unwrap_or_default()
    }

    pub fn set<T: FactType>(&mut self, key: Key<T>, value: &T) {
        self.insert(key.name, value.to_fact());
    }

    /// Sets what is known, and leaves the rest as it is.
    pub fn set_known<T: FactType>(&mut self, key: Key<T>, value: Option<T>) {
        if let Some(value) = value {
            self.set(key, &value);
        }
    }

    pub fn remove<T>(&mut self, key: Key<T>) {
        self.0.remove(key.name);
    }

    pub fn has<T>(&self, key: Key<T>) -> bool {
        self.0.contains_key(key.name)
    }

    /// Any fact under any name, for readers of files.
    pub fn insert(&mut self, name: &str, fact: Fact) {
        if fact == Fact::Rows(Vec::new()) {
            self.0.remove(name);
        } else {
            self.0.insert(name.to_owned(), fact);
        }
    }

    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.0.iter().map(|(name, fact)| (name.as_str(), fact))
    }
}

fn integer(fact: &Fact, unit: Unit) -> Option<u64> {
    match fact {
        Fact::One(Datum::Integer(value, of)) if *of == unit => u64::try_from(*value).ok(),
        _ => None,
    }
}

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl FactType for u64 {
    const TYPE: &'static str = "count";

    fn to_fact(&self) -> Fact {
        Fact::One(Datum::Integer(count(*self), Unit::Count))
    }

    fn from_fact(fact: &Fact) -> Option<Self> {
        integer(fact, Unit::Count)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Bytes(pub u64);

impl FactType for Bytes {
    const TYPE: &'static str = "bytes";

    fn to_fact(&self) -> Fact {
        Fact::One(Datum::Integer(count(self.0), Unit::Bytes))
    }

    fn from_fact(fact: &Fact) -> Option<Self> {
        integer(fact, Unit::Bytes).map(Bytes)
    }
}

impl FactType for bool {
    const TYPE: &'static str = "1 or 0";

    fn to_fact(&self) -> Fact {
        u64::from(*self).to_fact()
    }

    fn from_fact(fact: &Fact) -> Option<Self> {
        integer(fact, Unit::Count).map(|value| value != 0)
    }
}

impl FactType for Duration {
    const TYPE: &'static str = "nanoseconds";

    fn to_fact(&self) -> Fact {
        let nanos = i64::try_from(self.as_nanos()).unwrap_or(i64::MAX);
        Fact::One(Datum::Integer(nanos, Unit::Nanoseconds))
    }

    fn from_fact(fact: &Fact) -> Option<Self> {
        integer(fact, Unit::Nanoseconds).map(Duration::from_nanos)
    }
}

impl FactType for f64 {
    const TYPE: &'static str = "real";

    fn to_fact(&self) -> Fact {
        Fact::One(Datum::Real(*self))
    }

    fn from_fact(fact: &Fact) -> Option<Self> {
        match fact {
            Fact::One(Datum::Real(value)) => Some(*value),
            _ => None,
        }
    }
}

impl FactType for String {
    const TYPE: &'static str = "text";

    fn to_fact(&self) -> Fact {
        Fact::One(Datum::Text(self.clone()))
    }

    fn from_fact(fact: &Fact) -> Option<Self> {
        match fact {
            Fact::One(Datum::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }
}

/// Rows that a later version may have written otherwise are left out.
impl<R: RowType> FactType for Vec<R> {
    const TYPE: &'static str = R::TABLE;

    fn to_fact(&self) -> Fact {
        Fact::Rows(self.iter().map(R::to_row).collect())
    }

    fn from_fact(fact: &Fact) -> Option<Self> {
        match fact {
            Fact::Rows(rows) => Some(rows.iter().filter_map(R::from_row).collect()),
            Fact::One(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_keep_their_types() {
        let mut facts = Facts::default();
        facts.set(keys::SAMPLES, &7);
        facts.set(keys::CHANCE_FIXED, &true);
        facts.set(keys::SAMPLED_TIME, &Duration::from_millis(70));
        facts.set(keys::OVERHEAD, &0.25);
        facts.set(keys::ENGINE, &"timer".to_owned());
        facts.set(keys::NOTES, &vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(facts.get(keys::SAMPLES), Some(7));
        assert_eq!(facts.get(keys::CHANCE_FIXED), Some(true));
        assert_eq!(facts.get(keys::SAMPLED_TIME), Some(Duration::from_millis(70)));
        assert_eq!(facts.get(keys::OVERHEAD), Some(0.25));
        assert_eq!(facts.get(keys::ENGINE).as_deref(), Some("timer"));
        assert_eq!(facts.rows(keys::NOTES), ["a", "b"]);
        assert_eq!((facts.get(keys::OVERRUNS), facts.iter().count()), (None, 6));
        facts.remove(keys::SAMPLES);
        facts.set(keys::NOTES, &Vec::new());
        assert!(!facts.has(keys::SAMPLES) && !facts.has(keys::NOTES));
    }

    #[test]
    fn a_fact_of_another_type_is_none() {
        let mut facts = Facts::default();
        facts.insert(keys::SAMPLES.name(), Fact::One(Datum::Text("7".to_owned())));
        facts.insert(keys::SAMPLED_TIME.name(), Fact::One(Datum::Integer(7, Unit::Count)));
        facts.insert(keys::OVERRUNS.name(), Fact::One(Datum::Integer(-7, Unit::Count)));
        facts.insert(keys::NOTES.name(), Fact::One(Datum::Real(7.0)));
        assert_eq!((facts.get(keys::SAMPLES), facts.get(keys::SAMPLED_TIME)), (None, None));
        assert_eq!((facts.get(keys::OVERRUNS), facts.get(keys::NOTES)), (None, None));
    }

    #[test]
    fn no_two_keys_have_one_name() {
        let mut names: Vec<&str> = keys::ALL.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), keys::ALL.len());
    }
}
