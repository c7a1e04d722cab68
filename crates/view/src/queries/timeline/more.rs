//! Lanes of what was recorded beside the metric: allocation, code regions and markers.

use super::{Axis, area, bars};
use crate::source::Loaded;
use serde_json::Value;
use std::collections::BTreeMap;
use tare_profile::{EventKind, EventTable, FieldValue, Profile, Series, TimeAxis, ValueKind};

/// Regions that have a lane each, those with the most time first.
const REGIONS: usize = 8;

/// What was allocated, unless that is the metric.
pub fn allocation(loaded: &Loaded, axis: &Axis) -> Option<Value> {
    let all = || loaded.profile.all_series().map(|(_, series)| series);
    let is_one = |series: &&Series| series.info().kind == ValueKind::AllocatedBytes;
    let shown = &loaded.profile.series(loaded.metrics[0]).info().kind;
    if matches!(shown, ValueKind::AllocatedBytes | ValueKind::AllocatedObjects) {
        return None;
    }
    let series = all().filter(is_one).find(|series| !series.is_empty())?;
    let mut values = vec![0.0; axis.cells];
    if series.info().time == TimeAxis::None {
        return None;
    }
    for row in series.rows() {
        axis.put(&mut values, series.info(), row.time, row.value as f64);
    }
    Some(area("allocation", "Allocation", "bytes", &values))
}

/// The time that threads spent in each region, spread over the time from look to look.
pub fn regions(profile: &Profile, axis: &Axis) -> Vec<Value> {
    let Some(table) = events(profile, &EventKind::region()) else { return Vec::new() };
    let number = |row: usize, name: &str| match table.field(row, table.field_named(name)?)? {
        FieldValue::Integer(value) => Some(value as f64),
        _ => None,
    };
    // All that one look found has one time.
    let (mut begin, mut end) = (0, 0);
    let mut found: BTreeMap<&str, (f64, Vec<f64>)> = BTreeMap::new();
    for (row, event) in table.events().enumerate() {
        let Some(name) = text(profile, table, row, "region") else { continue };
        if event.time != end {
            (begin, end) = (end, event.time);
        }
        let total = number(row, "total").unwrap_or(0.0);
        let (sum, values) = found.entry(name).or_insert_with(|| (0.0, vec![0.0; axis.cells]));
        *sum += total;
        axis.spread(values, begin, end.saturating_sub(begin), total);
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let lane = |(name, (_, values)): &(&str, (f64, Vec<f64>))| {
        area(&format!("region {name}"), &format!("Region {name}"), "ns", values)
    };
    found.iter().take(REGIONS).map(lane).collect()
}

/// What was told once, with its text.
pub fn markers(profile: &Profile, axis: &Axis) -> Option<Value> {
    let table = events(profile, &EventKind::marker())?;
    let marks = table.events().enumerate().filter(|(_, one)| axis.touches(one.time, one.duration));
    let marks = marks.map(|(row, one)| {
        let text = text(profile, table, row, "text").unwrap_or_default().to_owned();
        (one.time, one.duration, text.clone(), text)
    });
    Some(bars("markers", "Markers", marks.collect()))
}

fn events<'p>(profile: &'p Profile, kind: &EventKind) -> Option<&'p EventTable> {
    let mut tables = profile.all_events().map(|(_, table)| table);
    tables.find(|table| table.kind().name == kind.name && !table.is_empty())
}

fn text<'p>(profile: &'p Profile, table: &EventTable, row: usize, name: &str) -> Option<&'p str> {
    match table.field(row, table.field_named(name)?)? {
        FieldValue::Text(text) => Some(profile.strings.get(text)),
        _ => None,
    }
}
