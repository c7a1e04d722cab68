//! Events: their kinds, the fields of each kind, and their rows.

use super::{Decoder, Refusal};
use crate::bytes::Malformed;
use crate::chunk::Chunk;
use crate::codes;
use std::ops::Range;
use tare_profile::{Event, EventKind, FieldInfo, FieldType, FieldValue};

impl Decoder<'_> {
    pub(super) fn event_kinds(&mut self, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        self.charge(chunk.rows, 100)?;
        for (row, name) in (chunk.first_row..).zip(chunk.texts("name")?) {
            let kind = EventKind { name: name.to_owned(), fields: Vec::new() };
            self.event_kinds.entry(row).or_insert(kind);
        }
        Ok(())
    }

    pub(super) fn event_fields(&mut self, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        self.charge(chunk.rows, 100)?;
        let (kinds, names) = (chunk.numbers("kind")?, chunk.texts("name")?);
        for (at, code) in chunk.numbers("type")?.into_iter().enumerate() {
            if self.event_tables.contains_key(&kinds[at]) {
                return Err(Refusal::Malformed(Malformed("its kind of event is complete")));
            }
            let Some(kind) = self.event_kinds.get_mut(&kinds[at]) else { continue };
            let name = names[at].to_owned();
            match codes::field_type(code) {
                Some(field) => kind.fields.push(FieldInfo { name, kind: field }),
                None => {
                    self.unknown_fields.insert((kind.name.clone(), name));
                }
            }
        }
        Ok(())
    }

    pub(super) fn open_event_tables(&mut self) {
        for (number, kind) in &self.event_kinds {
            let profile = &mut self.profile;
            self.event_tables.entry(*number).or_insert_with(|| profile.events_of(kind));
        }
    }

    pub(super) fn events(&mut self, number: u16, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        if !self.options.events {
            return Ok(());
        }
        self.open_event_tables();
        let Some(&table) = self.event_tables.get(&u64::from(number)) else {
            return Err(Refusal::Malformed(Malformed("its kind of event is lost")));
        };
        let fields = self.profile.events(table).kind().fields.clone();
        self.charge(chunk.rows, 24 + 8 * fields.len())?;
        let (times, durations) = (chunk.numbers("time")?, chunk.numbers("duration")?);
        self.latest = times.iter().fold(self.latest, |latest, time| latest.max(*time));
        let (threads, contexts) = (chunk.numbers("thread")?, chunk.numbers("context")?);
        let mut columns = Vec::new();
        for field in &fields {
            columns.push(self.field(field, chunk)?);
        }
        for at in 0..chunk.rows {
            let (time, duration) = (times[at], durations[at]);
            let lasts = self.options.lasting.then(|| time.saturating_add(duration));
            let in_time = |range: &Range<u64>| {
                range.contains(&time)
                    || lasts.is_some_and(|end| time < range.start && range.start < end)
            };
            if self.options.time.as_ref().is_none_or(in_time) {
                let (thread, context) = (self.thread(threads[at]), self.context(contexts[at]));
                let event = Event { time, duration, thread, context };
                let values: Vec<FieldValue> = columns.iter().map(|column| column[at]).collect();
                self.profile.events_mut(table).push(event, &values);
            }
        }
        Ok(())
    }

    fn field(&mut self, field: &FieldInfo, chunk: &Chunk<'_>) -> Result<Vec<FieldValue>, Refusal> {
        let name = format!("field:{}", field.name);
        Ok(match field.kind {
            FieldType::Integer(_) => {
                chunk.signed(&name)?.into_iter().map(FieldValue::Integer).collect()
            }
            FieldType::Real => chunk.reals(&name)?.into_iter().map(FieldValue::Real).collect(),
            FieldType::Text => {
                let rows = chunk.numbers(&name)?.into_iter();
                rows.map(|row| FieldValue::Text(self.text(row))).collect()
            }
            FieldType::Thread => {
                let rows = chunk.numbers(&name)?.into_iter();
                rows.map(|row| FieldValue::Thread(self.thread(row))).collect()
            }
            FieldType::Context => {
                let rows = chunk.numbers(&name)?.into_iter();
                rows.map(|row| FieldValue::Context(self.context(row))).collect()
            }
        })
    }
}
