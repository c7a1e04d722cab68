//! Code regions: how often each was passed, and how long that took, in all and by thread.

use std::collections::BTreeMap;
use tare_profile::{EventKind, EventTable, FieldValue, Profile, StringId, ThreadId};

/// A region with its figures.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    pub name: String,
    pub all: Passages,
    /// The thread with the most time first.
    pub threads: Vec<(ThreadId, Passages)>,
}

/// Times in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passages {
    pub count: i64,
    pub total: i64,
    pub min: i64,
    pub max: i64,
    /// How many took from so long to so long.
    pub times: BTreeMap<(i64, i64), i64>,
}

impl Passages {
    pub fn mean(&self) -> i64 {
        if self.count == 0 { 0 } else { self.total / self.count }
    }

    /// The time that this share of the passages did not exceed: the middle of the stretch in which
    /// it lies, which is as exact as the stretches are short.
    pub fn quantile(&self, share: f64) -> i64 {
        let all: i64 = self.times.values().sum();
        let rank = ((all as f64 * share).ceil() as i64).clamp(1, all.max(1));
        let mut passed = 0;
        for (&(from, to), count) in &self.times {
            passed += count;
            if passed >= rank {
                return (from + (to - from) / 2).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Those since `before`, which lie among these. The least and the most stay those of all.
    pub fn since(&self, before: &Passages) -> Passages {
        let mut since = self.clone();
        since.count -= before.count;
        since.total -= before.total;
        for (stretch, count) in &before.times {
            *since.times.entry(*stretch).or_default() -= count;
        }
        since
    }

    /// The standard deviation of their times, in means.
    pub fn spread(&self) -> f64 {
        let moment = |power: i32| {
            let each = self.times.iter();
            each.map(|(&(from, to), n)| *n as f64 * ((from + to) as f64 / 2.0).powi(power)).sum()
        };
        let [all, sum, squares]: [f64; 3] = [moment(0), moment(1), moment(2)];
        if sum > 0.0 { (squares * all / (sum * sum) - 1.0).max(0.0).sqrt() } else { 0.0 }
    }

    fn add(&mut self, other: &Passages) {
        if other.count > 0 {
            self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
            self.max = self.max.max(other.max);
        }
        self.count += other.count;
        self.total += other.total;
        for (stretch, count) in &other.times {
            *self.times.entry(*stretch).or_default() += count;
        }
    }
}

/// All regions of a profile, in the order of their names.
pub fn regions(profile: &Profile) -> Vec<Region> {
    let mut found: BTreeMap<&str, BTreeMap<ThreadId, Passages>> = BTreeMap::new();
    for (_, table) in profile.all_events() {
        let sums = table.kind() == &EventKind::region();
        if !sums && table.kind() != &EventKind::region_times() {
            continue;
        }
        for (row, event) in table.events().enumerate() {
            let Some(name) = text(table, row) else { continue };
            let number = |name| integer(table, row, name);
            let passages = if sums {
                let (count, total) = (number("count"), number("total"));
                let (min, max) = (number("min"), number("max"));
                Passages { count, total, min, max, ..Passages::default() }
            } else {
                let times = BTreeMap::from([((number("from"), number("to")), number("count"))]);
                Passages { times, ..Passages::default() }
            };
            let threads = found.entry(profile.strings.get(name)).or_default();
            threads.entry(event.thread).or_default().add(&passages);
        }
    }
    let region = |(name, threads): (&str, BTreeMap<ThreadId, Passages>)| {
        let mut all = Passages::default();
        threads.values().for_each(|passages| all.add(passages));
        let mut threads: Vec<_> = threads.into_iter().collect();
        threads.sort_by_key(|(thread, passages)| (-passages.total, *thread));
        Region { name: name.to_owned(), all, threads }
    };
    found.into_iter().map(region).collect()
}

fn text(table: &EventTable, row: usize) -> Option<StringId> {
    match table.field(row, table.field_named("region")?)? {
        FieldValue::Text(text) => Some(text),
        _ => None,
    }
}

fn integer(table: &EventTable, row: usize, name: &str) -> i64 {
    match table.field_named(name).and_then(|field| table.field(row, field)) {
        Some(FieldValue::Integer(value)) => value,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::Event;

    #[test]
    fn looks_and_threads_add_up() {
        let mut profile = Profile::new();
        let name = FieldValue::Text(profile.strings.intern("a.B:1-2"));
        let (sums, times) = (EventKind::region(), EventKind::region_times());
        let (sums, times) = (profile.events_of(&sums), profile.events_of(&times));
        let int = FieldValue::Integer;
        for (thread, count, total, min, max) in
            [(1, 90, 900, 9, 20), (1, 9, 900, 9, 110), (2, 1, 1000, 1000, 1000)]
        {
            let event = Event { thread: ThreadId::new(thread), ..Event::default() };
            let row = [name, int(count), int(total), int(min), int(max)];
            profile.events_mut(sums).push(event, &row);
            let (from, to) = (total / count / 10 * 10, total / count / 10 * 10 + 10);
            profile.events_mut(times).push(event, &[name, int(from), int(to), int(count)]);
        }
        let found = regions(&profile);
        assert_eq!(found.len(), 1);
        let all = &found[0].all;
        assert_eq!((all.count, all.total, all.min, all.max, all.mean()), (100, 2800, 9, 1000, 28));
        assert_eq!([0.5, 0.9, 0.99, 0.999].map(|q| all.quantile(q)), [15, 15, 105, 1000]);
        let threads: Vec<_> = found[0].threads.iter().map(|(t, p)| (t.raw(), p.count)).collect();
        assert_eq!(threads, [(1, 99), (2, 1)]);
        assert_eq!(Passages::default().quantile(0.5), 0);
    }
}
