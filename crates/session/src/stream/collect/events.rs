//! Events of the stream as events of the profile: each declared kind becomes a table with its
//! fields. Those of the engines for allocation, locks, classes and references are more than rows of
//! a table, and go to `allocation`, `locks`, `classes` and `jni_refs`.

use super::allocation::AllocationKind;
use super::classes::ClassRecordKind;
use super::jni_refs::JniRefsRecordKind;
use super::locks::LockRecordKind;
use super::{Addresses, Collector, Place};
use std::collections::HashMap;
use tare_arena::samples::{DeclaredKind, FieldKind, StreamEvent, Text};
use tare_profile::{
    ContextId, Event, EventKind, EventTableId, FieldType, FieldValue, Profile, StringId, ThreadId,
    Unit,
};

/// What the agent writes for a number that it does not know.
const UNKNOWN: u64 = u64::MAX;

/// What the stream has told of its events.
#[derive(Default)]
pub struct Events {
    kinds: HashMap<u32, Declared>,
    texts: HashMap<u32, Box<str>>,
    /// Events with a stack that still waits for names.
    waiting: Vec<StreamEvent>,
    /// Events whose kind nobody has declared.
    pub undeclared: u64,
    /// Kinds that nobody wants.
    pub left_out: &'static [&'static str],
}

enum Declared {
    Table {
        table: EventTableId,
        /// Where in an event the value of each field of the table is, and what it means.
        fields: Vec<(usize, FieldKind)>,
    },
    Allocation(AllocationKind),
    Locks(LockRecordKind),
    Classes(ClassRecordKind),
    JniRefs(JniRefsRecordKind),
    LeftOut,
}

impl Events {
    pub fn text(&mut self, text: Text) {
        self.texts.insert(text.id, text.text.into());
    }

    pub fn has_text(&self, id: u32) -> bool {
        self.texts.contains_key(&id)
    }

    pub fn text_of(&self, id: u32) -> Option<&str> {
        self.texts.get(&id).map(|text| &**text)
    }
}

fn field_type(kind: FieldKind) -> FieldType {
    match kind {
        FieldKind::Integer => FieldType::Integer(Unit::Count),
        FieldKind::Duration => FieldType::Integer(Unit::Nanoseconds),
        FieldKind::Bytes => FieldType::Integer(Unit::Bytes),
        FieldKind::Text => FieldType::Text,
        FieldKind::Trace => FieldType::Context,
        FieldKind::Thread => FieldType::Thread,
    }
}

impl<A: Addresses> Collector<A> {
    /// A kind that is declared. Fields of a type that this version does not know are left out.
    pub(super) fn declare(&mut self, profile: &mut Profile, kind: &DeclaredKind) {
        if self.events.left_out.contains(&kind.name.as_str()) {
            self.events.kinds.insert(kind.id, Declared::LeftOut);
            return;
        }
        if let Some(of_objects) = AllocationKind::of(kind) {
            self.events.kinds.insert(kind.id, Declared::Allocation(of_objects));
            return;
        }
        if let Some(of_locks) = LockRecordKind::of(kind) {
            self.events.kinds.insert(kind.id, Declared::Locks(of_locks));
            return;
        }
        if let Some(of_classes) = ClassRecordKind::of(kind) {
            self.events.kinds.insert(kind.id, Declared::Classes(of_classes));
            return;
        }
        if let Some(of_references) = JniRefsRecordKind::of(kind) {
            self.events.kinds.insert(kind.id, Declared::JniRefs(of_references));
            return;
        }
        let known = kind.fields.iter().enumerate();
        let known: Vec<(&str, usize, FieldKind)> =
            known.filter_map(|(at, (name, kind))| Some((name.as_str(), at, (*kind)?))).collect();
        let types: Vec<(&str, FieldType)> =
            known.iter().map(|(name, _, kind)| (*name, field_type(*kind))).collect();
        let table = profile.events_of(&EventKind::new(&kind.name, &types));
        let fields = known.into_iter().map(|(_, at, kind)| (at, kind)).collect();
        self.events.kinds.insert(kind.id, Declared::Table { table, fields });
    }

    pub(super) fn push_event(&mut self, event: StreamEvent) {
        match self.events.kinds.get(&event.head.kind) {
            Some(Declared::Table { .. }) => self.events.waiting.push(event),
            Some(Declared::Allocation(kind)) => {
                if let Some(allocation) = &mut self.allocation {
                    allocation.push(kind, &event);
                }
            }
            Some(Declared::Locks(kind)) => {
                if let Some(locks) = &mut self.locks {
                    locks.push(kind, &event);
                }
            }
            Some(Declared::Classes(kind)) => {
                if let Some(classes) = &mut self.classes {
                    classes.push(kind, &event);
                }
            }
            Some(Declared::JniRefs(kind)) => {
                if let Some(refs) = &mut self.jni_refs {
                    refs.push(kind, &event);
                }
            }
            Some(Declared::LeftOut) => {}
            None => self.events.undeclared += 1,
        }
    }

    /// Adds the events whose stacks have all their names; with `last`, all of them.
    pub(super) fn add_events(&mut self, profile: &mut Profile, last: bool) {
        for event in std::mem::take(&mut self.events.waiting) {
            if self.add_event(profile, &event, last).is_none() {
                self.events.waiting.push(event);
            }
        }
    }

    /// `None` while names are missing.
    fn add_event(&mut self, profile: &mut Profile, new: &StreamEvent, last: bool) -> Option<()> {
        let head = &new.head;
        let place = self.place(profile, head.trace.into(), last)?;
        let Declared::Table { table, fields } = self.events.kinds.get(&head.kind)? else {
            return Some(());
        };
        let (table, fields) = (*table, fields.clone());
        let mut values = Vec::with_capacity(fields.len());
        for (at, kind) in fields {
            let raw = new.values.get(at).copied().unwrap_or(0);
            values.push(self.value(profile, kind, raw, last)?);
        }
        let event = Event {
            time: head.time.saturating_sub(self.zero),
            duration: head.duration,
            thread: self.thread_of(profile, head.thread, head.java_id, place.is_virtual),
            context: place.context,
        };
        profile.events_mut(table).push(event, &values);
        Some(())
    }

    fn value(
        &mut self,
        profile: &mut Profile,
        kind: FieldKind,
        raw: u64,
        last: bool,
    ) -> Option<FieldValue> {
        let number = u32::try_from(raw).ok();
        Some(match kind {
            FieldKind::Integer | FieldKind::Duration | FieldKind::Bytes => match raw {
                UNKNOWN => FieldValue::Integer(-1),
                known => FieldValue::Integer(i64::try_from(known).unwrap_or(i64::MAX)),
            },
            FieldKind::Text => {
                let text = number.and_then(|id| self.events.text_of(id));
                FieldValue::Text(text.map_or(StringId::EMPTY, |text| profile.strings.intern(text)))
            }
            FieldKind::Thread => {
                let thread = number.and_then(|number| self.threads.get(&number));
                FieldValue::Thread(thread.copied().unwrap_or(ThreadId::UNKNOWN))
            }
            FieldKind::Trace => FieldValue::Context(self.place(profile, raw, last)?.context),
        })
    }

    /// Where a trace is in the profile, if there is one.
    fn place(&mut self, profile: &mut Profile, id: u64, last: bool) -> Option<Place> {
        match u32::try_from(id) {
            Ok(0) | Err(_) => Some(Place::of(ContextId::ROOT)),
            Ok(id) => self.context(profile, id, last),
        }
    }
}
