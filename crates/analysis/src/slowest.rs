//! The slowest calls of roots beside typical ones: which contexts make the difference.

use std::collections::{BTreeMap, HashMap};
use tare_profile::{ContextId, EventKind, EventTable, FieldValue, Profile, ThreadId};

/// What is known of one root's kept calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Slowest {
    /// The context of the root.
    pub root: ContextId,
    /// The slowest first.
    pub slow: Vec<KeptCall>,
    /// Drawn from all followed calls, each with the same chance.
    pub typical: Vec<KeptCall>,
    /// The largest difference first.
    pub contexts: Vec<Difference>,
}

/// A call that was kept whole, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeptCall {
    pub time: u64,
    pub took: u64,
    pub thread: ThreadId,
}

/// What a context took itself in a call, on average: nanoseconds, and calls of the context.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Difference {
    pub context: ContextId,
    /// In the slowest calls, and in the typical ones.
    pub own: [f64; 2],
    pub calls: [f64; 2],
}

impl Difference {
    #[must_use]
    pub fn more(&self) -> f64 {
        self.own[0] - self.own[1]
    }
}

/// The mean of what calls took, in nanoseconds.
#[must_use]
pub fn mean_of(calls: &[KeptCall]) -> f64 {
    calls.iter().map(|call| call.took as f64).sum::<f64>() / (calls.len() as f64).max(1.0)
}

impl Slowest {
    /// Of every root of which calls were kept, the one whose slowest calls took longest first.
    pub fn of(profile: &Profile) -> Vec<Self> {
        let table = |kind: EventKind| {
            profile
                .all_events()
                .map(|(_, table)| table)
                .find(|table| table.kind().name == kind.name)
        };
        let (Some(calls), Some(contexts)) =
            (table(EventKind::kept_call()), table(EventKind::kept_context()))
        else {
            return Vec::new();
        };
        let mut roots: BTreeMap<u32, Slowest> = BTreeMap::new();
        // By number: the root, and in which of both lists it is.
        let mut kept: HashMap<i64, (u32, [bool; 2])> = HashMap::new();
        for (row, event) in calls.events().enumerate() {
            let is = |name| integer(calls, row, name) != 0;
            let lists = [is("slow"), is("drawn")];
            // Whoever is called from elsewhere is a root of its own.
            let key = event.context.index() as u32;
            kept.insert(integer(calls, row, "number"), (key, lists));
            let root = roots.entry(key).or_insert_with(|| Slowest {
                root: event.context,
                slow: Vec::new(),
                typical: Vec::new(),
                contexts: Vec::new(),
            });
            let call = KeptCall { time: event.time, took: event.duration, thread: event.thread };
            root.slow.extend(Some(call).filter(|_| lists[0]));
            root.typical.extend(Some(call).filter(|_| lists[1]));
        }
        let mut sums: BTreeMap<(u32, ContextId), Difference> = BTreeMap::new();
        for (row, event) in contexts.events().enumerate() {
            let Some((root, lists)) = kept.get(&integer(contexts, row, "number")) else { continue };
            let context = event.context;
            let sum = sums.entry((*root, context)).or_insert(Difference {
                context,
                own: [0.0; 2],
                calls: [0.0; 2],
            });
            for list in (0..2).filter(|list| lists[*list]) {
                sum.own[list] += integer(contexts, row, "own") as f64;
                sum.calls[list] += integer(contexts, row, "calls") as f64;
            }
        }
        for ((root, _), mut sum) in sums {
            let Some(root) = roots.get_mut(&root) else { continue };
            for (list, calls) in [root.slow.len(), root.typical.len()].into_iter().enumerate() {
                sum.own[list] /= (calls as f64).max(1.0);
                sum.calls[list] /= (calls as f64).max(1.0);
            }
            root.contexts.push(sum);
        }
        let mut found: Vec<Slowest> = roots.into_values().collect();
        for root in &mut found {
            root.slow.sort_by_key(|call| std::cmp::Reverse(call.took));
            root.typical.sort_by_key(|call| std::cmp::Reverse(call.took));
            root.contexts.sort_by(|a, b| b.more().total_cmp(&a.more()));
        }
        found.sort_by(|a, b| mean_of(&b.slow).total_cmp(&mean_of(&a.slow)));
        found
    }
}

fn integer(table: &EventTable, row: usize, name: &str) -> i64 {
    let field = table.field_named(name).and_then(|field| table.field(row, field));
    match field {
        Some(FieldValue::Integer(value)) => value,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Event, Frame, Method};

    #[test]
    fn the_branch_that_only_slow_calls_take_comes_first() {
        let mut profile = Profile::new();
        let mut frame = |name: &str| {
            let name = profile.strings.intern(name);
            let method = profile.methods.intern(Method { name, ..Method::default() });
            profile.frames.intern(Frame::of(method))
        };
        let [root, usual, rare] = ["root", "usual", "rare"].map(&mut frame);
        let root = profile.contexts.stack([root]);
        let usual = profile.contexts.child(root, usual);
        let rare = profile.contexts.child(root, rare);
        // Three calls; the slowest took the other branch, and the others are typical.
        let all = [
            (0, 900, [1, 0], vec![(root, 10), (usual, 90), (rare, 800)]),
            (1, 100, [0, 1], vec![(root, 10), (usual, 90)]),
            (2, 120, [0, 1], vec![(root, 10), (usual, 110)]),
        ];
        for (number, took, [slow, drawn], contexts) in all {
            let calls = profile.events_of(&EventKind::kept_call());
            let event = Event { duration: took, context: root, ..Event::default() };
            let fields = [number, slow, drawn].map(FieldValue::Integer);
            profile.events_mut(calls).push(event, &fields);
            let table = profile.events_of(&EventKind::kept_context());
            for (context, own) in contexts {
                let event = Event { context, ..Event::default() };
                let fields = [number, 1, own].map(FieldValue::Integer);
                profile.events_mut(table).push(event, &fields);
            }
        }
        let found = Slowest::of(&profile);
        let [found] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((found.slow.len(), found.typical.len()), (1, 2));
        let order: Vec<ContextId> = found.contexts.iter().map(|one| one.context).collect();
        assert_eq!(order, [rare, root, usual]);
        assert_eq!((found.contexts[0].own, found.contexts[0].calls), ([800.0, 0.0], [1.0, 0.0]));
        assert_eq!(found.contexts[2].own, [90.0, 100.0]);
        assert!(Slowest::of(&Profile::new()).is_empty());
    }
}
