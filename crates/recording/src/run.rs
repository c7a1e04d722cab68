//! What is known of a run as a whole, both ways: the tables of the run, of its losses and of its
//! facts.

use crate::block::MAX_CONTENT;
use crate::bytes::{MAX_TEXT, Malformed};
use crate::chunk::{Chunk, ChunkWriter};
use crate::codes;
use crate::encode::{clip, clip_at};
use tare_profile::facts::{Datum, FactRow};
use tare_profile::{Fact, Facts, FieldType, Loss, LossKind, RunInfo};

pub fn encode_run(run: &RunInfo) -> Vec<u8> {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let mut one = |key, text: &str| {
        if !text.is_empty() {
            rows.push((key, text.to_owned()));
        }
    };
    one("tool", &run.tool);
    one("main-class", &run.main_class);
    one("jdk", &run.jdk);
    one("vm", &run.vm);
    one("host", &run.host);
    one("os", &run.os);
    rows.extend(run.command_line.iter().map(|argument| ("argument", argument.clone())));
    rows.extend(run.flags.iter().map(|flag| ("flag", flag.clone())));
    rows.extend(run.options.iter().map(|(name, value)| ("option", format!("{name}={value}"))));
    rows.extend(run.pid.map(|pid| ("pid", pid.to_string())));
    rows.extend(run.cpus.map(|cpus| ("cpus", cpus.to_string())));
    rows.extend(run.started.map(|time| ("started", time.to_string())));
    rows.push(("duration", run.duration.to_string()));
    // A command line can be long, but a run's facts must fit into one block.
    rows.truncate(1000);
    let room = MAX_TEXT / rows.len().max(1);
    ChunkWriter::new(0, rows.len())
        .texts("key", rows.iter().map(|(key, _)| *key))
        .texts("value", rows.iter().map(|(_, value)| clip_at(value, room)))
        .finish()
}

pub fn encode_losses(first_row: usize, losses: &[Loss]) -> Vec<u8> {
    ChunkWriter::new(first_row as u64, losses.len())
        .texts("kind", losses.iter().map(|loss| loss.kind.name()))
        .texts("name", losses.iter().map(|loss| clip(&loss.name)))
        .numbers("count", losses.iter().map(|loss| loss.count))
        .texts("reason", losses.iter().map(|loss| clip(&loss.reason)))
        .finish()
}

pub fn decode_run(chunk: &Chunk<'_>, into: &mut RunInfo) -> Result<(), Malformed> {
    let (keys, values) = (chunk.texts("key")?, chunk.texts("value")?);
    let (losses, facts) = (std::mem::take(&mut into.losses), std::mem::take(&mut into.facts));
    let mut run = RunInfo { losses, facts, ..RunInfo::default() };
    for (key, value) in keys.into_iter().zip(values) {
        let text = || value.to_owned();
        match key {
            "tool" => run.tool = text(),
            "main-class" => run.main_class = text(),
            "jdk" => run.jdk = text(),
            "vm" => run.vm = text(),
            "host" => run.host = text(),
            "os" => run.os = text(),
            "argument" => run.command_line.push(text()),
            "flag" => run.flags.push(text()),
            "option" => {
                let (name, value) = value.split_once('=').unwrap_or((value, ""));
                run.options.push((name.to_owned(), value.to_owned()));
            }
            "pid" => run.pid = value.parse().ok(),
            "cpus" => run.cpus = value.parse().ok(),
            "started" => run.started = value.parse().ok(),
            "duration" => run.duration = value.parse().unwrap_or(0),
            // A later version knows more about a run.
            _ => {}
        }
    }
    *into = run;
    Ok(())
}

pub fn decode_losses(chunk: &Chunk<'_>, into: &mut Vec<Loss>) -> Result<(), Malformed> {
    let (kinds, names) = (chunk.texts("kind")?, chunk.texts("name")?);
    let (counts, reasons) = (chunk.numbers("count")?, chunk.texts("reason")?);
    if chunk.first_row == 0 {
        into.clear();
    }
    for (at, kind) in kinds.into_iter().enumerate() {
        // A kind of a later version: that something is missing is what matters.
        let kind = LossKind::from_name(kind).unwrap_or(LossKind::Failed);
        let (name, reason) = (names[at].to_owned(), reasons[at].to_owned());
        into.push(Loss { kind, name, count: counts[at], reason });
    }
    Ok(())
}

/// Facts have no more values than this, those in rows of tables included: they must fit into a
/// block.
const MOST_VALUES: usize = 1 << 15;

/// A value of a fact as a row of the file.
struct Cell<'f> {
    key: &'f str,
    row: u64,
    field: &'f str,
    datum: &'f Datum,
}

fn cells(facts: &Facts) -> Vec<Cell<'_>> {
    let ones = facts.iter().filter_map(|(key, fact)| match fact {
        Fact::One(datum) => Some(Cell { key, row: 0, field: "", datum }),
        Fact::Rows(_) => None,
    });
    let tables = facts.iter().flat_map(|(key, fact)| {
        let rows = match fact {
            Fact::One(_) => &[][..],
            Fact::Rows(rows) => rows,
        };
        (0..).zip(rows).flat_map(move |(row, fields)| {
            fields.iter().map(move |(field, datum)| Cell { key, row, field, datum })
        })
    });
    // Should a table be too long, it costs none of the single values.
    ones.chain(tables).take(MOST_VALUES).collect()
}

/// How many rows of the file facts take.
pub fn fact_rows(facts: &Facts) -> usize {
    cells(facts).len()
}

pub fn encode_facts(facts: &Facts) -> Vec<u8> {
    let cells = cells(facts);
    let room = MAX_TEXT.min(MAX_CONTENT / 8 / cells.len().max(1));
    let kind = |cell: &Cell<'_>| match cell.datum {
        Datum::Integer(_, unit) => FieldType::Integer(*unit),
        Datum::Real(_) => FieldType::Real,
        Datum::Text(_) => FieldType::Text,
    };
    let integer = |cell: &Cell<'_>| match cell.datum {
        Datum::Integer(value, _) => *value,
        Datum::Real(_) | Datum::Text(_) => 0,
    };
    let real = |cell: &Cell<'_>| match cell.datum {
        Datum::Real(value) => *value,
        Datum::Integer(..) | Datum::Text(_) => 0.0,
    };
    fn text<'f>(cell: &Cell<'f>) -> &'f str {
        match cell.datum {
            Datum::Text(text) => text,
            Datum::Integer(..) | Datum::Real(_) => "",
        }
    }
    ChunkWriter::new(0, cells.len())
        .texts("key", cells.iter().map(|cell| clip_at(cell.key, room)))
        .numbers("row", cells.iter().map(|cell| cell.row))
        .texts("field", cells.iter().map(|cell| clip_at(cell.field, room)))
        .numbers("type", cells.iter().map(|cell| codes::of_field_type(kind(cell))))
        .signed("integer", cells.iter().map(integer))
        .reals("real", cells.iter().map(real))
        .texts("text", cells.iter().map(|cell| clip_at(text(cell), room)))
        .finish()
}

pub fn decode_facts(chunk: &Chunk<'_>, into: &mut Facts) -> Result<(), Malformed> {
    let (keys, fields) = (chunk.texts("key")?, chunk.texts("field")?);
    let (rows, types) = (chunk.numbers("row")?, chunk.numbers("type")?);
    let (integers, reals) = (chunk.signed("integer")?, chunk.reals("real")?);
    let texts = chunk.texts("text")?;
    *into = Facts::default();
    let datum = |at: usize| match codes::field_type(types[at]) {
        Some(FieldType::Integer(unit)) => Some(Datum::Integer(integers[at], unit)),
        Some(FieldType::Real) => Some(Datum::Real(reals[at])),
        Some(FieldType::Text) => Some(Datum::Text(texts[at].to_owned())),
        // Of a later version.
        Some(FieldType::Thread | FieldType::Context) | None => None,
    };
    let mut table: Option<(&str, Vec<(u64, FactRow)>)> = None;
    let close = |table: Option<(&str, Vec<(u64, FactRow)>)>, into: &mut Facts| {
        if let Some((key, rows)) = table {
            into.insert(key, Fact::Rows(rows.into_iter().map(|(_, row)| row).collect()));
        }
    };
    for at in 0..chunk.rows {
        let Some(datum) = datum(at) else { continue };
        if fields[at].is_empty() {
            into.insert(keys[at], Fact::One(datum));
            continue;
        }
        if table.as_ref().is_none_or(|(key, _)| *key != keys[at]) {
            close(table.replace((keys[at], Vec::new())), into);
        }
        let Some((_, of_table)) = &mut table else { continue };
        let value = (fields[at].to_owned(), datum);
        match of_table.last_mut() {
            Some((row, values)) if *row == rows[at] => values.push(value),
            _ => of_table.push((rows[at], vec![value])),
        }
    }
    close(table, into);
    Ok(())
}
