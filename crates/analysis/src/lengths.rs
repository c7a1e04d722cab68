//! How long single calls took, where some calls of roots were followed: percentiles by context and by
//! method, as the recording has them. They are of the whole recording, whatever a report leaves out.

use std::collections::HashMap;
use tare_profile::{ContextId, EventKind, EventTable, FieldValue, MethodId, Profile};

/// In nanoseconds: half of so many calls took no longer than `p50`, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lengths {
    pub calls: i64,
    pub p50: i64,
    pub p90: i64,
    pub p99: i64,
}

/// All that a recording has.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct CallLengths {
    pub by_context: Vec<(ContextId, Lengths)>,
    pub by_method: HashMap<MethodId, Lengths>,
}

impl CallLengths {
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let rows = |kind: EventKind| {
            let tables = profile.all_events().map(|(_, table)| table);
            let table = tables.into_iter().find(|table| table.kind().name == kind.name);
            table.map(read).unwrap_or_default()
        };
        let method = |(context, lengths)| {
            let frame = profile.contexts.frame(context)?;
            Some((profile.frames.get(frame).method, lengths))
        };
        CallLengths {
            by_context: rows(EventKind::call_lengths()),
            by_method: rows(EventKind::method_lengths()).into_iter().filter_map(method).collect(),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_context.is_empty()
    }
}

fn read(table: &EventTable) -> Vec<(ContextId, Lengths)> {
    let events = table.events().enumerate();
    let of_event = |(row, event): (usize, tare_profile::Event)| {
        let field = |name| match table.field(row, table.field_named(name)?)? {
            FieldValue::Integer(value) => Some(value),
            _ => None,
        };
        let [calls, p50, p90, p99] =
            ["calls", "p50", "p90", "p99"].map(|name| field(name).unwrap_or(0));
        (event.context, Lengths { calls, p50, p90, p99 })
    };
    events.map(of_event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Event, Frame, Method};

    #[test]
    fn contexts_and_methods_are_read_back() {
        let mut profile = Profile::new();
        let name = profile.strings.intern("handle");
        let method = profile.methods.intern(Method { name, ..Method::default() });
        let frame = profile.frames.intern(Frame::of(method));
        let context = profile.contexts.stack([frame]);
        let fields = [7, 10, 20, 30].map(FieldValue::Integer);
        for kind in [EventKind::call_lengths(), EventKind::method_lengths()] {
            let table = profile.events_of(&kind);
            profile.events_mut(table).push(Event { context, ..Event::default() }, &fields);
        }
        let lengths = Lengths { calls: 7, p50: 10, p90: 20, p99: 30 };
        let all = CallLengths::of(&profile);
        assert_eq!(all.by_context, [(context, lengths)]);
        assert_eq!(all.by_method.get(&method), Some(&lengths));
        assert!(CallLengths::of(&Profile::new()).is_empty());
    }
}
