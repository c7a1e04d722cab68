//! The figures of all contexts by thread and time, for millions of them: arrays in the order of
//! contexts, with no map from a context to its figures.

use std::collections::HashMap;
use tare_profile::{ContextId, Packed, Profile, Row, Rows, Series, SeriesId, ThreadId};

/// One context of one thread, at one time.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Node {
    pub nanos: f64,
    pub calls: f64,
    pub untimed: f64,
    /// Calls that made timed calls; where only some calls are timed, those that were.
    pub calling: f64,
}

pub type Group = (ThreadId, u64);

pub struct Groups {
    groups: Vec<Group>,
    /// Where the contexts of each group end.
    ends: Vec<usize>,
    /// By group, then by context; each once, in order.
    contexts: Packed,
    /// The figures of a node, in its order.
    figures: [Packed; FIGURES],
}

const FIGURES: usize = 4;

/// The contexts of a group, in order.
#[derive(Clone, Copy)]
pub struct Nodes<'a> {
    all: &'a Groups,
    start: usize,
    end: usize,
}

impl<'a> Nodes<'a> {
    pub fn len(self) -> usize {
        self.end - self.start
    }

    pub fn iter(self) -> Walk<'a> {
        Walk {
            nodes: self,
            block: usize::MAX,
            contexts: [0; BLOCK],
            figures: [[0; BLOCK]; FIGURES],
        }
    }
}

/// The contexts of a group from either end. They are unpacked by blocks, for there are millions.
pub struct Walk<'a> {
    /// What is left.
    nodes: Nodes<'a>,
    block: usize,
    contexts: [i64; BLOCK],
    figures: [[i64; BLOCK]; FIGURES],
}

const BLOCK: usize = 64;

impl Walk<'_> {
    fn get(&mut self, at: usize) -> (ContextId, Node) {
        if self.block != at / BLOCK {
            self.block = at / BLOCK;
            let all = self.nodes.all;
            let from = self.block * BLOCK;
            let fill = |numbers: &mut [i64; BLOCK], packed: &Packed| {
                (from..).zip(numbers).for_each(|(row, n)| *n = packed.get(row).unwrap_or(0));
            };
            fill(&mut self.contexts, &all.contexts);
            self.figures.iter_mut().zip(&all.figures).for_each(|(n, packed)| fill(n, packed));
        }
        let at = at % BLOCK;
        let [nanos, calls, untimed, calling] = self.figures.each_ref().map(|all| all[at] as f64);
        let context = ContextId::new(self.contexts[at] as u32);
        (context, Node { nanos, calls, untimed, calling })
    }
}

impl Iterator for Walk<'_> {
    type Item = (ContextId, Node);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.nodes.start;
        self.nodes.start += usize::from(at < self.nodes.end);
        (at < self.nodes.end).then(|| self.get(at))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.nodes.len(), Some(self.nodes.len()))
    }
}

impl DoubleEndedIterator for Walk<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.nodes.start == self.nodes.end {
            return None;
        }
        self.nodes.end -= 1;
        Some(self.get(self.nodes.end))
    }
}

impl Groups {
    /// Of times, calls, untimed calls and calls that made timed ones.
    pub fn of(profile: &Profile, series: [Option<SeriesId>; FIGURES]) -> Groups {
        let mut numbers = Numbers::default();
        let sorted = series.map(|id| id.map(|id| Sorted::of(profile.series(id), &mut numbers)));
        let mut sources = sorted.iter().map(|sorted| Source::of(sorted.as_ref(), &numbers));
        let mut sources: [Source<'_>; FIGURES] =
            std::array::from_fn(|_| sources.next().unwrap_or_else(|| Source::of(None, &numbers)));
        let mut groups = Groups {
            groups: numbers.groups.clone(),
            ends: Vec::new(),
            contexts: Packed::new(),
            figures: std::array::from_fn(|_| Packed::new()),
        };
        while let Some(key) = sources.iter().filter_map(|rows| Some(rows.head?.0)).min() {
            let (group, context) = ((key >> 32) as usize, key as u32);
            groups.ends.resize(group, groups.contexts.len());
            groups.contexts.push(context.into());
            for (rows, figures) in sources.iter_mut().zip(&mut groups.figures) {
                let mut sum = 0_i64;
                while let Some((_, value)) = rows.head.filter(|(of, _)| *of == key) {
                    sum = sum.saturating_add(value);
                    rows.advance();
                }
                figures.push(sum);
            }
        }
        groups.ends.resize(groups.groups.len(), groups.contexts.len());
        groups
    }

    pub fn iter(&self) -> impl Iterator<Item = (Group, Nodes<'_>)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        self.groups
            .iter()
            .zip(ranges)
            .map(move |(group, (start, end))| (*group, Nodes { all: self, start, end: *end }))
    }
}

/// The rows of a series by key, and what is needed to go through them in the order of keys. A
/// thread's rows mostly come in the order of contexts, so only the threads are put into order.
enum Sorted<'a> {
    /// Where runs of rows begin whose keys rise, and how long they are, in the order of their keys.
    Runs(&'a Series, Vec<Run>),
    /// All keys and values.
    Each(Vec<(u64, i64)>),
}

struct Run {
    start: usize,
    length: usize,
    first: u64,
    last: u64,
}

impl<'a> Sorted<'a> {
    fn of(series: &'a Series, numbers: &mut Numbers) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for (at, row) in series.rows().enumerate() {
            let key = numbers.key(row);
            match runs.last_mut() {
                Some(run) if run.last <= key => {
                    run.last = key;
                    run.length += 1;
                }
                _ => runs.push(Run { start: at, length: 1, first: key, last: key }),
            }
        }
        runs.sort_by_key(|run| run.first);
        if runs.is_sorted_by(|a, b| a.last <= b.first) {
            return Sorted::Runs(series, runs);
        }
        let mut each: Vec<(u64, i64)> =
            series.rows().map(|row| (numbers.key(row), row.value)).collect();
        each.sort_by_key(|(key, _)| *key);
        Sorted::Each(each)
    }
}

/// Goes through the rows of a series in the order of their keys.
struct Source<'a> {
    sorted: Option<&'a Sorted<'a>>,
    numbers: &'a Numbers,
    /// How many runs were begun, or rows taken.
    at: usize,
    /// Of the run that is being gone through, and how many are left in it.
    rows: Option<(Rows<'a>, usize)>,
    /// All of a run are mostly of one group: its number is looked up once.
    known: Option<(Group, u32)>,
    /// The key and the value that are next.
    head: Option<(u64, i64)>,
}

impl<'a> Source<'a> {
    fn of(sorted: Option<&'a Sorted<'a>>, numbers: &'a Numbers) -> Self {
        let mut source = Source { sorted, numbers, at: 0, rows: None, known: None, head: None };
        source.advance();
        source
    }

    fn advance(&mut self) {
        self.head = match self.sorted {
            Some(Sorted::Each(each)) => {
                self.at += 1;
                each.get(self.at - 1).copied()
            }
            Some(Sorted::Runs(series, runs)) => loop {
                if let Some((rows, left @ 1..)) = &mut self.rows
                    && let Some(row) = rows.next()
                {
                    *left -= 1;
                    break Some((self.numbers.known_key(row, &mut self.known), row.value));
                }
                let Some(run) = runs.get(self.at) else { break None };
                self.at += 1;
                self.rows = Some((series.rows_from(run.start), run.length));
            },
            None => None,
        };
    }
}

/// Gives groups numbers, in the order in which they are met.
#[derive(Default)]
struct Numbers {
    groups: Vec<Group>,
    known: HashMap<Group, u32>,
    last: Option<(Group, u32)>,
}

impl Numbers {
    fn key(&mut self, row: Row) -> u64 {
        let group = (row.thread, row.time);
        let number = match self.last {
            Some((last, number)) if last == group => number,
            _ => *self.known.entry(group).or_insert_with(|| {
                self.groups.push(group);
                self.groups.len() as u32 - 1
            }),
        };
        self.last = Some((group, number));
        key(number, row)
    }

    /// The key of a row that was numbered before.
    fn known_key(&self, row: Row, last: &mut Option<(Group, u32)>) -> u64 {
        let group = (row.thread, row.time);
        let number = match *last {
            Some((last, number)) if last == group => number,
            _ => self.known.get(&group).copied().unwrap_or(0),
        };
        *last = Some((group, number));
        key(number, row)
    }
}

fn key(group: u32, row: Row) -> u64 {
    u64::from(group) << 32 | u64::from(row.context.raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{SeriesInfo, ValueKind};

    /// Rows that come in any order, and some twice.
    #[test]
    fn figures_are_summed_by_thread_time_and_context() {
        let mut profile = Profile::new();
        let mut add = |kind, rows: &[(u32, u32, u64, i64)]| {
            let id = profile.add_series(SeriesInfo::new("exact", kind));
            for (context, thread, time, value) in rows {
                let row = Row::new(ContextId::new(*context), ThreadId::new(*thread), *value);
                profile.series_mut(id).push(row.at(*time));
            }
            Some(id)
        };
        let times = add(ValueKind::WallTime, &[(3, 1, 0, 10), (1, 1, 0, 5), (3, 1, 0, 2)]);
        let calls = add(ValueKind::Invocations, &[(1, 1, 0, 1), (2, 2, 0, 4), (3, 1, 7, 6)]);
        let groups = Groups::of(&profile, [times, calls, None, calls]);
        let told: Vec<_> = groups
            .iter()
            .map(|((thread, time), nodes)| {
                let of_node = |(context, node): (ContextId, Node)| {
                    (context.raw(), node.nanos, node.calls, node.untimed, node.calling)
                };
                (thread.raw(), time, nodes.iter().map(of_node).collect::<Vec<_>>())
            })
            .collect();
        let expected = [
            (1, 0, vec![(1, 5.0, 1.0, 0.0, 1.0), (3, 12.0, 0.0, 0.0, 0.0)]),
            (2, 0, vec![(2, 0.0, 4.0, 0.0, 4.0)]),
            (1, 7, vec![(3, 0.0, 6.0, 0.0, 6.0)]),
        ];
        assert_eq!(told, expected);
        let none = Groups::of(&profile, [None; 4]);
        assert_eq!(none.iter().count(), 0);
    }
}
