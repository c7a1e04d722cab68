//! Classes that were loaded, the newest first.

use super::{Detail, Side};
use crate::table::{Column, Row, Table, Value};
use std::collections::HashMap;
use tare_profile::{EventKind, EventTable, FieldValue, Profile};

pub const COLUMNS: [Column; 5] = [
    Column { id: "ago", title: "ago", key: ' ', width: 7, least: 0 },
    Column { id: "cost", title: "cost", key: 'c', width: 8, least: 0 },
    Column { id: "loader", title: "loader", key: 'l', width: 16, least: 100 },
    Column { id: "class", title: "class", key: 'n', width: 0, least: 0 },
    Column { id: "needed_by", title: "needed by", key: 'b', width: 0, least: 0 },
];

/// A class that was loaded.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    pub at: u64,
    pub number: u64,
    pub class: String,
    pub loader: String,
    pub source: String,
    pub cause: String,
    /// Nanoseconds that the JVM was busy with it so far.
    pub cost: u64,
}

fn tables<'p>(profile: &'p Profile, kind: &EventKind) -> impl Iterator<Item = &'p EventTable> {
    let name = kind.name.clone();
    profile.all_events().map(|(_, table)| table).filter(move |table| table.kind().name == name)
}

fn integer(table: &EventTable, row: usize, name: &str) -> u64 {
    match table.field_named(name).and_then(|field| table.field(row, field)) {
        Some(FieldValue::Integer(value)) => u64::try_from(value).unwrap_or(0),
        _ => 0,
    }
}

fn text(profile: &Profile, table: &EventTable, row: usize, name: &str) -> String {
    match table.field_named(name).and_then(|field| table.field(row, field)) {
        Some(FieldValue::Text(text)) => profile.strings.get(text).to_owned(),
        _ => String::new(),
    }
}

/// What new rows tell: classes that were loaded, how many were unloaded, and what classes cost by
/// their numbers. `moved` is what a time of the recording is by the clock of whoever looks.
pub fn loads(profile: &Profile, moved: impl Fn(u64) -> u64) -> (Vec<Load>, u64, HashMap<u64, u64>) {
    let mut found = Vec::new();
    for table in tables(profile, &EventKind::class_load()) {
        for (row, event) in table.events().enumerate() {
            found.push(Load {
                at: moved(event.time),
                number: integer(table, row, "number"),
                class: text(profile, table, row, "class"),
                loader: text(profile, table, row, "loader"),
                source: text(profile, table, row, "source"),
                cause: profile.innermost_name(event.context).unwrap_or_default(),
                cost: 0,
            });
        }
    }
    let unloads = tables(profile, &EventKind::class_unload()).map(|table| table.len() as u64).sum();
    let mut costs: HashMap<u64, u64> = HashMap::new();
    for table in tables(profile, &EventKind::class_cost()) {
        for row in 0..table.len() {
            let cost: u64 = ["search", "define", "link", "verify"]
                .map(|of| integer(table, row, of))
                .iter()
                .sum();
            *costs.entry(integer(table, row, "number")).or_default() += cost;
        }
    }
    (found, unloads, costs)
}

pub fn load_table<'a>(
    loads: impl DoubleEndedIterator<Item = &'a Load>,
    now: u64,
    selected: Option<&str>,
) -> (Table, Detail) {
    let mut table = Table::empty(&COLUMNS);
    let mut detail = Detail::default();
    for load in loads.rev() {
        let key = format!("{}.{}", load.number, load.class);
        if selected == Some(&key) {
            detail = beside(load);
        }
        table.rows.push(Row {
            key,
            values: vec![
                Value::Time(now.saturating_sub(load.at) as f64),
                if load.cost > 0 { Value::Time(load.cost as f64) } else { Value::Nothing },
                Value::Text(load.loader.clone()),
                Value::Text(load.class.clone()),
                Value::Text(load.cause.clone()),
            ],
            tid: None,
        });
    }
    (table, detail)
}

fn beside(load: &Load) -> Detail {
    let known = |text: &str| if text.is_empty() { "not known".to_owned() } else { text.to_owned() };
    Detail {
        left: Side {
            title: "class".to_owned(),
            rows: vec![
                (None, load.class.clone()),
                (None, format!("loaded by {}", known(&load.loader))),
                (None, format!("from {}", known(&load.source))),
            ],
        },
        right: Side { title: "needed by".to_owned(), rows: vec![(None, known(&load.cause))] },
    }
}
