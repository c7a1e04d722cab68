//! From ids of the file to classes with names, and roots with threads.

use super::record::ClassRecord;
use super::scan::RootRecord;
use super::top::{self, Top};
use crate::classes::source_name;
use crate::classes::{Class, ClassId, Classes, Field, IdMap, Kind, StaticField, Type};
use crate::error::Result;
use crate::input::Input;
use crate::roots::{Root, RootKind, Thread};
use std::collections::HashMap;
use tare_java_names::is_hidden;

pub fn classes(input: &Input, top: &Top, records: &[ClassRecord]) -> Result<Classes> {
    let mut names = Names { input, top, known: IdMap::default() };
    let mut numbers: IdMap<ClassId> = IdMap::default();
    for (id, record) in (1..).zip(records) {
        numbers.entry(record.address).or_insert(id);
    }
    let unknown = "(a class that the dump does not have)".to_owned();
    let mut all = Vec::with_capacity(records.len() + 1);
    all.push(Class::new(unknown, 0, Kind::Instance));
    for record in records {
        let internal = match top.class_names.get(&record.address) {
            Some(id) => top::text(input, top, *id)?,
            None => format!("(unnamed)@{:x}", record.address),
        };
        let name = source_name(&internal);
        let kind = match internal.as_bytes() {
            [b'[', one] => {
                Type::of_descriptor(*one).map_or(Kind::ObjectArray, Kind::PrimitiveArray)
            }
            [b'[', ..] => Kind::ObjectArray,
            _ => Kind::Instance,
        };
        let mut class = Class::new(name, record.address, kind);
        class.is_hidden = is_hidden(&internal);
        class.super_class = numbers.get(&record.super_class).copied();
        class.loader = record.loader;
        for (id, kind, value) in &record.statics {
            class.statics.push(StaticField { name: names.get(*id)?, kind: *kind, value: *value });
        }
        let mut offset = 0;
        for (id, kind) in &record.fields {
            class.fields.push(Field { name: names.get(*id)?, kind: *kind, offset });
            offset += kind.size(top.width.bytes() as u32);
        }
        class.body = offset;
        all.push(class);
    }
    let mut classes = Classes::new(all);
    classes.find_strengths();
    classes.find_references();
    Ok(classes)
}

struct Names<'a> {
    input: &'a Input,
    top: &'a Top,
    known: IdMap<Box<str>>,
}

impl Names<'_> {
    fn get(&mut self, id: u64) -> Result<Box<str>> {
        if let Some(name) = self.known.get(&id) {
            return Ok(name.clone());
        }
        let name = top::text(self.input, self.top, id)?.into_boxed_str();
        self.known.insert(id, name.clone());
        Ok(name)
    }
}

/// Roots, with threads by their numbers in the list of threads.
pub fn roots(input: &Input, top: &Top, records: &[RootRecord]) -> Result<(Vec<Root>, Vec<Thread>)> {
    let mut threads = Vec::new();
    let mut by_serial: HashMap<u32, u32> = HashMap::new();
    for record in records.iter().filter(|record| record.kind == RootKind::Thread) {
        let mut thread = Thread { object: record.object, ..Thread::default() };
        if let Some(frames) = top.traces.get(&u64::from(record.frame)) {
            for frame in frames {
                thread.frames.push(frame_text(input, top, *frame)?);
            }
        }
        by_serial.entry(record.thread).or_insert(threads.len() as u32);
        threads.push(thread);
    }
    let roots = records
        .iter()
        .filter(|record| record.kind != RootKind::Unreachable && record.object != 0)
        .map(|record| {
            let thread = by_serial.get(&record.thread).copied();
            let has_thread = record.kind.is_of_stack() || record.kind == RootKind::Thread;
            let frame = (record.kind != RootKind::Thread).then_some(record.frame);
            Root {
                object: record.object,
                kind: record.kind,
                thread: thread.filter(|_| has_thread),
                frame: frame.filter(|frame| *frame != u32::MAX && has_thread),
            }
        })
        .collect();
    Ok((roots, threads))
}

fn frame_text(input: &Input, top: &Top, id: u64) -> Result<String> {
    let Some(frame) = top.frames.get(&id) else { return Ok("(unknown)".to_owned()) };
    let class = match top.class_serials.get(&u64::from(frame.class_serial)) {
        Some(name) => source_name(&top::text(input, top, *name)?),
        None => "(unknown)".to_owned(),
    };
    let method = top::text(input, top, frame.method)?;
    let source = top::text(input, top, frame.source)?;
    let place = match (frame.line, source.as_str()) {
        (-3, _) => "native".to_owned(),
        (line @ 1.., source) if !source.is_empty() => format!("{source}:{line}"),
        (_, "") => String::new(),
        (_, source) => source.to_owned(),
    };
    Ok(if place.is_empty() {
        format!("{class}.{method}")
    } else {
        format!("{class}.{method}({place})")
    })
}
