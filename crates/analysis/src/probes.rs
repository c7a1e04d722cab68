//! What of a trace's times was its probes: told by the recorder, which subtracted as events came,
//! or found afterwards in the calls of the file, whose sequences are then all known before the
//! first is judged.

use crate::method_type::MethodType;
use crate::sequences::{Calls, PARTS, Sequence, Sequences, Transition};
use std::collections::HashMap;
use tare_profile::facts::keys;
use tare_profile::{ContextId, EventKind, EventTable, FieldValue, Profile, StringId, ThreadId};

/// The series with what the recorder found.
pub const PROBE_TIME: &str = "probe-time";

/// Where a delta belongs.
type Place = (ThreadId, ContextId);

/// A call that has ended, until its caller does: only then the type of the one around it is known.
#[derive(Clone, Copy)]
struct Ended {
    context: ContextId,
    start: u64,
    end: u64,
    kind: MethodType,
    how: Transition,
    /// From its entry to its first callee's, with the callee's type; or to its exit.
    first: (u64, Option<MethodType>),
    /// From its last callee's exit to its own, with how and from what type.
    last: Option<(u64, Transition, MethodType)>,
    /// It was held up for our sake, so that its deltas say nothing.
    is_disturbed: bool,
}

/// One stretch of a context's own time.
struct Delta {
    place: Place,
    sequence: Sequence,
    nanos: u64,
    is_disturbed: bool,
}

/// Nanoseconds of probes in each context, out of the calls that were loaded; `None` without any.
pub fn probes_of_calls(profile: &Profile) -> Option<HashMap<Place, i64>> {
    let table = profile.all_events().find(|(_, table)| table.kind().name == EventKind::call().name);
    let table = table.map(|(_, table)| table).filter(|table| !table.is_empty())?;
    let facts = &profile.run.facts;
    let mut sequences = Sequences::new(Calls::of(&facts.rows(keys::CALIBRATION), 1.0));
    sequences.take_calibrated(&facts.rows(keys::SEQUENCES), 1.0);
    each_delta(profile, table, |delta| {
        if !delta.is_disturbed {
            sequences.see(delta.sequence, u32::try_from(delta.nanos).unwrap_or(u32::MAX - 1));
        }
    });
    let mut found: HashMap<Place, i64> = HashMap::new();
    each_delta(profile, table, |delta| {
        *found.entry(delta.place).or_default() += i64::from(sequences.cost(delta.sequence));
    });
    found.values_mut().for_each(|parts| *parts /= i64::from(PARTS));
    Some(found)
}

/// Calls stand in the order of their ends, so what a call has called stands before it.
fn each_delta(profile: &Profile, table: &EventTable, mut take: impl FnMut(Delta)) {
    let fields = Fields::of(profile, table);
    let mut threads: HashMap<ThreadId, Vec<Ended>> = HashMap::new();
    for (row, event) in table.events().enumerate() {
        let ended = threads.entry(event.thread).or_default();
        let caller = |context| profile.contexts.parent(context).unwrap_or(ContextId::ROOT);
        let own = ended
            .iter()
            .rposition(|call| caller(call.context) != event.context || call.start < event.time);
        let callees: Vec<Ended> = ended.drain(own.map_or(0, |own| own + 1)..).collect();
        let mut call = Ended {
            context: event.context,
            start: event.time,
            end: event.time.saturating_add(event.duration),
            kind: fields.kind(row),
            how: fields.how(row),
            first: (event.duration, None),
            last: None,
            is_disturbed: fields.is_disturbed(row),
        };
        if let (Some(first), Some(last)) = (callees.first(), callees.last()) {
            call.first = (first.start.saturating_sub(call.start), Some(first.kind));
            call.last = Some((call.end.saturating_sub(last.end), last.how, last.kind));
        }
        let disturbed = call.is_disturbed;
        let mut delta = |context, sequence, nanos, is_disturbed| {
            take(Delta { place: (event.thread, context), sequence, nanos, is_disturbed });
        };
        for pair in callees.windows(2) {
            let sequence = Sequence {
                before: pair[0].kind,
                first: pair[0].how,
                between: call.kind,
                second: Transition::Entry,
                after: pair[1].kind,
            };
            let nanos = pair[1].start.saturating_sub(pair[0].end);
            delta(call.context, sequence, nanos, disturbed);
        }
        let mut tell = |callee: &Ended, around: MethodType| {
            for (sequence, nanos) in callee.ends(around) {
                delta(callee.context, sequence, nanos, callee.is_disturbed);
            }
        };
        callees.iter().for_each(|callee| tell(callee, call.kind));
        if caller(event.context) == ContextId::ROOT {
            tell(&call, MethodType::OUTSIDE);
        } else {
            ended.push(call);
        }
    }
}

impl Ended {
    /// Its first and its last stretch, called by a method of this type.
    fn ends(&self, around: MethodType) -> impl Iterator<Item = (Sequence, u64)> {
        let (nanos, inner) = self.first;
        let first = Sequence {
            before: around,
            first: Transition::Entry,
            between: self.kind,
            second: if inner.is_some() { Transition::Entry } else { self.how },
            after: inner.unwrap_or(around),
        };
        let last = self.last.map(|(nanos, how, inner)| {
            let sequence = Sequence {
                before: inner,
                first: how,
                between: self.kind,
                second: self.how,
                after: around,
            };
            (sequence, nanos)
        });
        std::iter::once((first, nanos)).chain(last)
    }
}

/// The fields of calls that matter here.
struct Fields<'t> {
    table: &'t EventTable,
    kind: Option<usize>,
    exit: Option<usize>,
    held: Option<usize>,
    types: HashMap<StringId, MethodType>,
    thrown: Option<StringId>,
}

impl<'t> Fields<'t> {
    fn of(profile: &Profile, table: &'t EventTable) -> Self {
        let name = |kind: MethodType| profile.strings.find(&kind.name()).map(|id| (id, kind));
        Fields {
            table,
            kind: table.field_named("type"),
            exit: table.field_named("exit"),
            held: table.field_named("held"),
            types: MethodType::all().filter_map(name).collect(),
            thrown: profile.strings.find("exception"),
        }
    }

    fn text(&self, row: usize, field: Option<usize>) -> Option<StringId> {
        match field.and_then(|field| self.table.field(row, field)) {
            Some(FieldValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn kind(&self, row: usize) -> MethodType {
        let known = self.text(row, self.kind).and_then(|text| self.types.get(&text));
        known.copied().unwrap_or_default()
    }

    fn how(&self, row: usize) -> Transition {
        let text = self.text(row, self.exit);
        if text.is_some() && text == self.thrown { Transition::Thrown } else { Transition::Exit }
    }

    fn is_disturbed(&self, row: usize) -> bool {
        let held = self.held.and_then(|field| self.table.field(row, field));
        matches!(held, Some(FieldValue::Integer(1..)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::Event;
    use tare_profile::facts::SequenceCost;

    /// `a` calls `b` twice, which does nothing the first time and calls `c` the second time.
    #[test]
    fn deltas_are_put_together_from_calls() {
        let mut profile = Profile::new();
        let [a, b, c] = ["a", "b", "c"].map(|name| profile.special(name));
        let a = profile.contexts.stack([a]);
        let b = profile.contexts.child(a, b);
        let c = profile.contexts.child(b, c);
        let [exit, thrown, kind] =
            ["return", "exception", "tier 4"].map(|text| profile.strings.intern(text));
        let calls = profile.events_of(&EventKind::call());
        for (context, time, end, how) in
            [(b, 120, 130, exit), (c, 160, 175, thrown), (b, 150, 180, exit), (a, 100, 200, exit)]
        {
            let event = Event { time, duration: end - time, thread: ThreadId::UNKNOWN, context };
            let fields = [FieldValue::Text(how), FieldValue::Text(kind), FieldValue::Integer(0)];
            profile.events_mut(calls).push(event, &fields);
        }
        let table = profile.all_events().next().unwrap().1;
        let mut deltas = Vec::new();
        each_delta(&profile, table, |delta| {
            let Sequence { before, first, second, after, .. } = delta.sequence;
            let outside = [before, after].contains(&MethodType::OUTSIDE);
            deltas.push((delta.place.1, first, second, delta.nanos, outside));
        });
        use Transition::{Entry, Exit, Thrown};
        assert_eq!(
            deltas,
            [
                (c, Entry, Thrown, 15, false),
                (a, Exit, Entry, 20, false),
                (b, Entry, Exit, 10, false),
                (b, Entry, Entry, 10, false),
                (b, Thrown, Exit, 5, false),
                (a, Entry, Entry, 20, true),
                (a, Exit, Exit, 20, true),
            ]
        );
        // All own time is in one delta or another.
        assert_eq!(deltas.iter().map(|delta| delta.3).sum::<u64>(), 100);
        // Four calls teach nothing, but the calibration has: from entry to exit 8 ns, to entry 3.
        let cost = |calibrated, names: [&str; 5], picos| SequenceCost {
            calibrated,
            sequence: names.map(str::to_owned),
            picos,
        };
        let table = vec![
            cost(true, ["tier 4", "entry", "tier 4", "exit", "tier 4"], 8000),
            cost(true, ["static tier 4", "exit", "tier 4", "entry", "tier 4"], 3000),
            cost(false, ["tier 4", "entry", "tier 4", "exit", "tier 4"], 1),
        ];
        profile.run.facts.set(keys::SEQUENCES, &table);
        let found = probes_of_calls(&profile).unwrap();
        let of = |context| found[&(ThreadId::UNKNOWN, context)];
        assert_eq!([of(a), of(b), of(c)], [3, 8, 8]);
        assert!(probes_of_calls(&Profile::new()).is_none());
    }
}
