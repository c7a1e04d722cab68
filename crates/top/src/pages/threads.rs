//! Threads: which are busy, what each allocates, where it waits, and what it mostly does.

use super::{Detail, Seconds, Side, named, samples, share};
use crate::table::{Column, Row, Table, Value};
use std::collections::HashMap;
use tare_analysis::{Asides, Filter, by_thread, set_aside_of_series};
use tare_profile::{
    EventKind, FieldValue, Profile, SeriesId, ThreadId, ThreadKind, ValueKind, Wait,
};

pub const COLUMNS: [Column; 6] = [
    Column { id: "busy", title: "cpu %", key: 'o', width: 6, least: 0 },
    Column { id: "allocated_per_second", title: "alloc", key: 'a', width: 9, least: 0 },
    Column { id: "blocked_per_second", title: "lock ms/s", key: 'l', width: 9, least: 0 },
    Column { id: "state", title: "now", key: ' ', width: 7, least: 0 },
    Column { id: "thread", title: "thread", key: 'n', width: 0, least: 0 },
    Column { id: "mostly_in", title: "mostly in", key: 'm', width: 0, least: 0 },
];

pub fn thread_table(seconds: &Seconds<'_>, selected: Option<&str>) -> (Table, Detail) {
    let mut table = Table::empty(&COLUMNS);
    let Some(metric) = samples(seconds.profile) else { return (table, Detail::default()) };
    let aside = set_aside_of_series(seconds.profile, metric, Asides { native: true, idle: true });
    let profile = aside.as_ref().map_or(seconds.profile, |aside| &aside.profile);
    let shares = by_thread(profile, metric, &Filter::default()).unwrap_or_default();
    let busy: HashMap<ThreadId, (f64, Option<String>)> = shares
        .into_iter()
        .map(|share| {
            let top = share.top.map(|(label, _)| label.text);
            (share.thread, (share.value as f64 / 1e9 / seconds.count(), top))
        })
        .collect();
    let sums = |name, kind| named(profile, name, &kind).map(|id| by_row(profile, id));
    let alloc = sums("alloc", ValueKind::AllocatedBytes);
    let lock = sums("lock", ValueKind::BlockedTime);
    let rate = |sums: &Option<HashMap<ThreadId, i64>>, id: ThreadId| {
        let sums = sums.as_ref()?;
        Some(sums.get(&id).copied().unwrap_or(0) as f64 / seconds.count())
    };
    for (id, thread) in profile.threads.iter().skip(1) {
        let known = busy.get(&id);
        let (bytes, blocked) = (rate(&alloc, id), rate(&lock, id));
        let did = known.is_some() || bytes.unwrap_or(0.0) + blocked.unwrap_or(0.0) > 0.0;
        let is_gone = thread.ended.is_some() || thread.kind == ThreadKind::Virtual;
        if is_gone && !did {
            continue;
        }
        let top = known.and_then(|(_, top)| top.clone()).unwrap_or_default();
        table.rows.push(Row {
            key: key(id),
            values: vec![
                Value::Share(known.map_or(0.0, |(share, _)| *share)),
                bytes.map_or(Value::Nothing, Value::BytesRate),
                blocked.map_or(Value::Nothing, Value::TimeRate),
                Value::Text(if thread.ended.is_some() { "ended".into() } else { String::new() }),
                Value::Text(profile.thread_name(id)),
                Value::Text(top),
            ],
            tid: thread.os_id.filter(|_| thread.ended.is_none()),
        });
    }
    let thread = selected
        .and_then(|wanted| profile.threads.iter().map(|(id, _)| id).find(|id| key(*id) == wanted));
    let detail =
        thread.map_or_else(Detail::default, |id| beside([profile, seconds.profile], metric, id));
    (table, detail)
}

/// Threads may have one name.
fn key(id: ThreadId) -> String {
    format!("#{}", id.raw())
}

fn by_row(profile: &Profile, series: SeriesId) -> HashMap<ThreadId, i64> {
    let mut sums: HashMap<ThreadId, i64> = HashMap::new();
    for row in profile.series(series).rows() {
        let sum = sums.entry(row.thread).or_default();
        *sum = sum.saturating_add(row.value);
    }
    sums
}

/// The profile with what people want to see of samples, and the one with events.
fn beside([profile, whole]: [&Profile; 2], metric: SeriesId, id: ThreadId) -> Detail {
    let mut methods: HashMap<String, i64> = HashMap::new();
    for row in profile.series(metric).rows().filter(|row| row.thread == id) {
        let name = profile.innermost_name(row.context).unwrap_or_else(|| "[unknown]".to_owned());
        let sum = methods.entry(name).or_default();
        *sum = sum.saturating_add(row.value);
    }
    let mut waits: HashMap<String, i64> = HashMap::new();
    let locks = EventKind::lock().name;
    for (_, table) in whole.all_events().filter(|(_, table)| table.kind().name == locks) {
        let (class, operation) = (table.field_named("class"), table.field_named("operation"));
        for (row, event) in table.events().enumerate().filter(|(_, event)| event.thread == id) {
            let text = |field: Option<usize>| match field.and_then(|at| table.field(row, at)) {
                Some(FieldValue::Text(text)) => whole.strings.get(text),
                _ => "",
            };
            let wait = Wait::from_name(text(operation));
            if wait.is_some_and(Wait::is_contention) {
                let sum = waits.entry(text(class).to_owned()).or_default();
                *sum = sum.saturating_add(event.duration.cast_signed());
            }
        }
    }
    Detail {
        left: Side { title: "takes its time in".to_owned(), rows: largest(methods) },
        right: Side { title: "waits for locks of".to_owned(), rows: largest(waits) },
    }
}

/// Names with their shares of all, the largest first.
pub(super) fn largest(sums: HashMap<String, i64>) -> Vec<(Option<f64>, String)> {
    let whole = sums.values().fold(0_i64, |sum, value| sum.saturating_add(*value));
    let mut list: Vec<(String, i64)> = sums.into_iter().collect();
    list.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    list.into_iter().map(|(name, value)| (Some(share(value, whole)), name)).collect()
}
