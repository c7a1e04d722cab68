//! Collections, the newest first.

use super::Side;
use crate::table::{Column, Row, Table, Value, bytes, time};
use tare_profile::Collection;

pub const COLUMNS: [Column; 8] = [
    Column { id: "ago", title: "ago", key: ' ', width: 7, least: 0 },
    Column { id: "pause", title: "pause", key: 'p', width: 8, least: 0 },
    Column { id: "reach", title: "reach", key: 'r', width: 8, least: 100 },
    Column { id: "before", title: "before", key: 'b', width: 8, least: 0 },
    Column { id: "after", title: "after", key: 'a', width: 8, least: 0 },
    Column { id: "promoted", title: "old +", key: 'o', width: 8, least: 90 },
    Column { id: "kind", title: "kind", key: 'k', width: 12, least: 0 },
    Column { id: "cause", title: "cause", key: 'c', width: 0, least: 0 },
];

/// A collection, and when it was by the clock of whoever looks.
pub struct Pause {
    pub at: u64,
    pub collection: Collection,
}

/// The newest first, and what is beside one of them.
pub fn pause_table<'a>(
    pauses: impl DoubleEndedIterator<Item = &'a Pause>,
    now: u64,
    selected: Option<&str>,
) -> (Table, super::Detail) {
    let mut table = Table::empty(&COLUMNS);
    let mut detail = super::Detail::default();
    for pause in pauses.rev() {
        let one = &pause.collection;
        let size = |bytes: Option<u64>| bytes.map_or(Value::Nothing, |b| Value::Bytes(b as f64));
        let key = format!("{}.{}", pause.at, one.number);
        if selected == Some(&key) {
            detail = beside(one);
        }
        table.rows.push(Row {
            key,
            values: vec![
                Value::Time(now.saturating_sub(pause.at) as f64),
                Value::Time(one.duration as f64),
                one.reach.map_or(Value::Nothing, |reach| Value::Time(reach as f64)),
                size(one.heap_before),
                size(one.heap_after),
                size(one.promoted),
                Value::Text(one.kind.clone()),
                Value::Text(one.cause.clone()),
            ],
            tid: None,
        });
    }
    (table, detail)
}

fn beside(one: &Collection) -> super::Detail {
    let kind = if one.kind.is_empty() { "a collection" } else { &one.kind };
    let mut left = vec![(None, format!("{kind} by {}", one.collector))];
    if !one.cause.is_empty() {
        left.push((None, format!("because of {}", one.cause)));
    }
    let mut right =
        vec![(None, format!("the program stood still for {}", time(one.duration as f64)))];
    if let Some(reach) = one.reach {
        right.push((None, format!("after {} until all threads were there", time(reach as f64))));
    }
    if let Some(freed) = one.freed() {
        right.push((None, format!("{} were freed", bytes(freed as f64))));
    }
    let title = format!("gc:{}", one.number);
    super::Detail {
        left: Side { title, rows: left },
        right: Side { title: "what it did".to_owned(), rows: right },
    }
}
