//! The figures of all contexts by thread and time, for millions of them: arrays in the order of
//! contexts, with no map from a context to its figures.

use std::collections::HashMap;
use std::ops::Range;
use tare_profile::{ContextId, Profile, Row, SeriesId, ThreadId};

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
    /// A group's number, then a context; each once, in order.
    keys: Vec<u64>,
    nodes: Vec<Node>,
}

/// The contexts of a group, in order.
#[derive(Clone, Copy)]
pub struct Nodes<'a> {
    keys: &'a [u64],
    nodes: &'a [Node],
}

impl<'a> Nodes<'a> {
    pub fn len(self) -> usize {
        self.keys.len()
    }

    pub fn iter(
        self,
    ) -> impl DoubleEndedIterator<Item = (ContextId, Node)> + ExactSizeIterator + 'a {
        let context = |key: &u64| ContextId::new(*key as u32);
        self.keys.iter().map(context).zip(self.nodes.iter().copied())
    }
}

impl Groups {
    /// Of times, calls, untimed calls and calls that made timed ones.
    pub fn of(profile: &Profile, series: [Option<SeriesId>; 4]) -> Groups {
        let places: [fn(&mut Node) -> &mut f64; 4] = [
            |node| &mut node.nanos,
            |node| &mut node.calls,
            |node| &mut node.untimed,
            |node| &mut node.calling,
        ];
        let rows = |id: Option<SeriesId>| id.into_iter().flat_map(|id| profile.series(id).rows());
        let mut numbers = Numbers::default();
        let mut keys: Vec<u64> = Vec::new();
        for id in series {
            let known = keys.len();
            let mut next = 0;
            for row in rows(id) {
                let key = numbers.key(row);
                if find(&keys[..known], &mut next, key).is_none() {
                    keys.push(key);
                }
            }
            if keys.len() > known {
                keys.sort_unstable();
                keys.dedup();
            }
        }
        let mut nodes = vec![Node::default(); keys.len()];
        for (id, place) in series.into_iter().zip(places) {
            let mut next = 0;
            for row in rows(id) {
                if let Some(found) = find(&keys, &mut next, numbers.key(row)) {
                    *place(&mut nodes[found]) += row.value as f64;
                }
            }
        }
        Groups { groups: numbers.groups, keys, nodes }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Group, Nodes<'_>)> {
        let mut start = 0;
        (0_u64..).zip(&self.groups).map(move |(number, group)| {
            let length = self.keys[start..].partition_point(|key| key >> 32 == number);
            let range: Range<usize> = start..start + length;
            start = range.end;
            (*group, Nodes { keys: &self.keys[range.clone()], nodes: &self.nodes[range] })
        })
    }
}

/// Where a key is. Rows mostly come in the order of the keys: so it is the next one, or not far
/// behind it.
fn find(keys: &[u64], next: &mut usize, key: u64) -> Option<usize> {
    let from = if keys.get(*next).is_some_and(|known| *known <= key) { *next } else { 0 };
    let rest = &keys[from..];
    let mut far = 1;
    while rest.get(far).is_some_and(|known| *known <= key) {
        far *= 2;
    }
    let near = &rest[far / 2..far.min(rest.len())];
    let found = from + far / 2 + near.binary_search(&key).ok()?;
    *next = found + 1;
    Some(found)
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
        u64::from(number) << 32 | u64::from(row.context.raw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{SeriesInfo, ValueKind};

    #[test]
    fn a_key_is_found_from_anywhere() {
        let keys: Vec<u64> = (0..100).map(|n| n * 3).collect();
        for from in 0..=keys.len() {
            for key in 0..310 {
                let mut next = from;
                let found = find(&keys, &mut next, key);
                assert_eq!(found, keys.binary_search(&key).ok(), "{key} from {from}");
            }
        }
        assert_eq!(find(&[], &mut 0, 1), None);
    }

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
