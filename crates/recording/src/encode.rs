//! From tables to chunks: the columns of each table, by name. FORMAT.md lists them; `decode` is the
//! way back. What is known of the run as a whole is in `run`.

use crate::bytes::MAX_TEXT;
use crate::chunk::ChunkWriter;
use crate::codes;
use std::ops::Range;
use tare_profile::{
    Column, ContextId, EventTable, FieldColumn, FrameId, MethodId, Profile, Row, Series, StringId,
    Thread,
};

/// Texts are cut at this length; no name is that long, and a block must hold any text.
pub fn clip(text: &str) -> &str {
    clip_at(text, MAX_TEXT)
}

pub fn clip_at(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// How many texts from a row on fit into one block.
pub fn strings_that_fit(profile: &Profile, from: usize, most: usize) -> usize {
    let mut size = 0;
    let texts = (from..profile.strings.len()).take(most).take_while(|row| {
        size += profile.strings.get(StringId::new(*row as u32)).len().min(MAX_TEXT) + 5;
        size <= 4 * MAX_TEXT
    });
    texts.count().max(1)
}

pub fn strings(profile: &Profile, rows: Range<usize>) -> Vec<u8> {
    ChunkWriter::new(rows.start as u64, rows.len())
        .texts("text", rows.map(|row| clip(profile.strings.get(StringId::new(row as u32)))))
        .finish()
}

pub fn methods(profile: &Profile, rows: Range<usize>) -> Vec<u8> {
    let all = || rows.clone().map(|row| profile.methods.get(MethodId::new(row as u32)));
    let text = |id: StringId| u64::from(id.raw());
    ChunkWriter::new(rows.start as u64, rows.len())
        .numbers("kind", all().map(|method| codes::of_method_kind(method.kind)))
        .numbers("class", all().map(|method| text(method.class)))
        .numbers("name", all().map(|method| text(method.name)))
        .numbers("descriptor", all().map(|method| text(method.descriptor)))
        .numbers("file", all().map(|method| text(method.file)))
        .numbers("line", all().map(|method| codes::of_option(method.line.map(u64::from))))
        .numbers("loader", all().map(|method| text(method.loader)))
        .numbers("module", all().map(|method| text(method.module)))
        .finish()
}

pub fn frames(profile: &Profile, rows: Range<usize>) -> Vec<u8> {
    let all = || rows.clone().map(|row| profile.frames.get(FrameId::new(row as u32)));
    ChunkWriter::new(rows.start as u64, rows.len())
        .numbers("method", all().map(|frame| u64::from(frame.method.raw())))
        .numbers("bci", all().map(|frame| codes::of_option(frame.bci.map(u64::from))))
        .numbers("line", all().map(|frame| codes::of_option(frame.line.map(u64::from))))
        .numbers("execution", all().map(|frame| codes::of_execution(frame.execution)))
        .finish()
}

pub fn contexts(profile: &Profile, rows: Range<usize>) -> Vec<u8> {
    let all = || rows.clone().map(|row| ContextId::new(row as u32));
    let contexts = &profile.contexts;
    ChunkWriter::new(rows.start as u64, rows.len())
        .numbers("parent", all().filter_map(|id| contexts.parent(id)).map(|id| id.raw().into()))
        .numbers("frame", all().filter_map(|id| contexts.frame(id)).map(|id| id.raw().into()))
        .finish()
}

pub fn threads(rows: &[(usize, &Thread)]) -> Vec<u8> {
    let all = || rows.iter().map(|(_, thread)| *thread);
    ChunkWriter::new(0, rows.len())
        .numbers("row", rows.iter().map(|(row, _)| *row as u64))
        .numbers("kind", all().map(|thread| codes::of_thread_kind(thread.kind)))
        .numbers("name", all().map(|thread| u64::from(thread.name.raw())))
        .numbers("java-id", all().map(|thread| codes::of_option(thread.java_id)))
        .numbers("os-id", all().map(|thread| codes::of_option(thread.os_id)))
        .numbers("started", all().map(|thread| codes::of_option(thread.started)))
        .numbers("ended", all().map(|thread| codes::of_option(thread.ended)))
        .finish()
}

pub fn series(row: usize, series: &Series) -> Vec<u8> {
    let info = series.info();
    let period_kind = info.period_kind.as_ref();
    let period_unit = period_kind.map_or(0, |kind| codes::of_unit(kind.unit()));
    ChunkWriter::new(row as u64, 1)
        .texts("name", [clip(&info.name)].into_iter())
        .texts("kind", [clip(info.kind.name())].into_iter())
        .numbers("unit", [codes::of_unit(info.kind.unit())].into_iter())
        .numbers("estimate", [codes::of_estimate(info.estimate)].into_iter())
        .numbers("time", [codes::of_time_axis(info.time)].into_iter())
        .numbers("period", [info.period].into_iter())
        .texts("period-kind", [period_kind.map_or("", |kind| clip(kind.name()))].into_iter())
        .numbers("period-unit", [period_unit].into_iter())
        .finish()
}

pub fn values(series: &Series, rows: Range<usize>) -> Vec<u8> {
    let first_row = series.first_row() + rows.start as u64;
    let rows: Vec<Row> = series.rows_in(rows).collect();
    let all = || rows.iter();
    ChunkWriter::new(first_row, rows.len())
        .numbers("context", all().map(|row| row.context.raw().into()))
        .numbers("thread", all().map(|row| row.thread.raw().into()))
        .numbers("time", all().map(|row| row.time))
        .signed("value", all().map(|row| row.value))
        .finish()
}

pub fn event_kind(row: usize, table: &EventTable) -> Vec<u8> {
    ChunkWriter::new(row as u64, 1).texts("name", [clip(&table.kind().name)].into_iter()).finish()
}

pub fn event_fields(kind: usize, table: &EventTable) -> Vec<u8> {
    let fields = &table.kind().fields;
    ChunkWriter::new(0, fields.len())
        .numbers("kind", fields.iter().map(|_| kind as u64))
        .texts("name", fields.iter().map(|field| clip(&field.name)))
        .numbers("type", fields.iter().map(|field| codes::of_field_type(field.kind)))
        .finish()
}

pub fn events(table: &EventTable, rows: Range<usize>) -> Vec<u8> {
    let chunk = ChunkWriter::new(table.first_row() + rows.start as u64, rows.len());
    let chunk = numbers(chunk, "time", table.times(), &rows);
    let chunk = numbers(chunk, "duration", table.durations(), &rows);
    let chunk = numbers(chunk, "thread", table.threads(), &rows);
    let mut chunk = numbers(chunk, "context", table.contexts(), &rows);
    for (field, column) in table.kind().fields.iter().zip(table.fields()) {
        let name = format!("field:{}", clip(&field.name));
        let rows = rows.clone();
        chunk = match column {
            FieldColumn::Integer(column) => match column.same() {
                Some(value) => chunk.same_signed(&name, value),
                None => chunk.signed(&name, column.range(rows)),
            },
            FieldColumn::Real(column) => chunk.reals(&name, rows.filter_map(|row| column.get(row))),
            FieldColumn::Text(column)
            | FieldColumn::Thread(column)
            | FieldColumn::Context(column) => numbers(chunk, &name, column, &rows),
        };
    }
    chunk.finish()
}

/// Some rows of a column of numbers. Where all are the same, they need not be looked at.
fn numbers<T: Copy + PartialEq + Default + Into<u64>>(
    chunk: ChunkWriter,
    name: &str,
    column: &Column<T>,
    rows: &Range<usize>,
) -> ChunkWriter {
    match column.same() {
        Some(value) => chunk.same(name, value.into()),
        None => chunk.numbers(name, column.range(rows.clone()).map(Into::into)),
    }
}
