//! Methods: where time goes, what each allocates, and where threads wait for locks.

use super::{Callable, Detail, Seconds, Side, named, samples, share};
use crate::table::{Column, Row, Table, Value};
use std::collections::HashMap;
use tare_analysis::{Asides, Filter, LabelKind, Tree, hot_list, neighbours, set_aside_of_series};
use tare_profile::{MethodKind, Profile, SeriesId, ValueKind};

pub const COLUMNS: [Column; 8] = [
    Column { id: "own", title: "own %", key: 'o', width: 5, least: 0 },
    Column { id: "margin", title: "±", key: ' ', width: 4, least: 0 },
    Column { id: "total", title: "total %", key: 't', width: 7, least: 0 },
    Column { id: "allocated_per_second", title: "alloc", key: 'a', width: 9, least: 0 },
    Column { id: "blocked_per_second", title: "lock ms/s", key: 'l', width: 9, least: 90 },
    Column { id: "calls_per_second", title: "calls/s", key: 'c', width: 10, least: 100 },
    Column { id: "mean", title: "mean", key: 'm', width: 8, least: 100 },
    Column { id: "method", title: "method", key: 'n', width: 0, least: 0 },
];

/// A table, what can be woven of it, and what is beside one row.
pub struct Methods {
    pub table: Table,
    pub callables: HashMap<String, Callable>,
    pub detail: Detail,
    pub samples: u64,
    /// What was left out of waiting, for people.
    pub idle: Option<String>,
}

/// Half of an interval that holds the truth 19 times out of 20, by the number of samples.
fn margin(share: f64, samples: u64) -> f64 {
    let samples = samples.max(1) as f64;
    1.96 * (share.clamp(0.0, 1.0) * (1.0 - share.clamp(0.0, 1.0)) / samples).sqrt()
}

pub fn method_table(seconds: &Seconds<'_>, selected: Option<&str>) -> Methods {
    let nothing = |samples| Methods {
        table: Table::empty(&COLUMNS),
        callables: HashMap::new(),
        detail: Detail::default(),
        samples,
        idle: None,
    };
    let Some(metric) = samples(seconds.profile) else { return nothing(0) };
    let aside = set_aside_of_series(seconds.profile, metric, Asides { native: true, idle: true });
    let idle = aside.as_ref().and_then(|aside| aside.idle.as_ref());
    let profile = aside.as_ref().map_or(seconds.profile, |aside| &aside.profile);
    let count = profile.series(metric).len() as u64;
    let others = [("alloc", ValueKind::AllocatedBytes), ("lock", ValueKind::BlockedTime)];
    let others = others.map(|(name, kind)| named(profile, name, &kind));
    let metrics: Vec<SeriesId> =
        std::iter::once(metric).chain(others.into_iter().flatten()).collect();
    let place = |id: Option<SeriesId>| id.and_then(|id| metrics.iter().position(|m| *m == id));
    let [alloc, lock] = others.map(place);
    let Ok(tree) = Tree::build(profile, &metrics, &Filter::default()) else {
        return nothing(count);
    };
    let whole = tree.sum(0);
    // What was allocated stands below who allocated it, and so does the lock that was waited for.
    let mut below: HashMap<&str, [i64; 2]> = HashMap::new();
    for node in tree.nodes().skip(1) {
        let values = [alloc, lock].map(|metric| metric.map_or(0, |at| tree.own(at, node)));
        if values == [0, 0] {
            continue;
        }
        let mut at = node;
        while let Some(parent) = tree.parent(at).filter(|_| tree.label_of(at).is_class()) {
            at = parent;
        }
        let sums = below.entry(&tree.label_of(at).text).or_default();
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(value));
    }
    let mut table = Table::empty(&COLUMNS);
    let mut callables = HashMap::new();
    for hot in hot_list(&tree) {
        let label = tree.label(hot.label);
        let [bytes, blocked] = below.get(label.text.as_str()).copied().unwrap_or_default();
        let has_value = hot.own[0] != 0 || hot.total[0] != 0 || bytes != 0 || blocked != 0;
        if label.is_class() || !has_value {
            continue;
        }
        let (own, total) = (share(hot.own[0], whole), share(hot.total[0], whole));
        let rate = |sum: i64| sum as f64 / seconds.count();
        let known = |at: Option<usize>, value: Value| at.map_or(Value::Nothing, |_| value);
        table.rows.push(Row {
            key: label.text.clone(),
            values: vec![
                Value::Share(own),
                if hot.own[0] > 0 { Value::Share(margin(own, count)) } else { Value::Nothing },
                Value::Share(total),
                known(alloc, Value::BytesRate(rate(bytes))),
                known(lock, Value::TimeRate(rate(blocked))),
                Value::Nothing,
                Value::Nothing,
                Value::Text(label.text.clone()),
            ],
            tid: None,
        });
        if let (LabelKind::Method(MethodKind::Java), Some(method)) = (label.kind, label.method) {
            callables.insert(label.text.clone(), callable(profile, method));
        }
    }
    let detail = selected.map_or_else(Detail::default, |key| beside(&tree, key));
    let idle = idle.map(|idle| idle.told(whole));
    Methods { table, callables, detail, samples: count, idle }
}

fn callable(profile: &Profile, method: tare_profile::MethodId) -> Callable {
    let method = profile.methods.get(method);
    let text = |id| profile.strings.get(id).to_owned();
    Callable {
        class: text(method.class),
        name: text(method.name),
        descriptor: text(method.descriptor),
    }
}

fn beside(tree: &Tree, key: &str) -> Detail {
    let Some((label, _)) = tree.labels().find(|(_, label)| label.text == key) else {
        return Detail::default();
    };
    let found = neighbours(tree, label);
    let rows = |list: &[(tare_analysis::LabelId, i64)], nobody: &str| {
        let row = |(label, value): &(tare_analysis::LabelId, i64)| {
            let label = tree.label(*label);
            let text = if label.kind == LabelKind::Root { nobody } else { &label.text };
            (Some(share(*value, found.total)), text.to_owned())
        };
        list.iter().filter(|(_, value)| *value != 0).map(row).collect::<Vec<_>>()
    };
    let mut callees = rows(&found.callees, "");
    let own = (Some(share(found.own, found.total)), "(itself)".to_owned());
    let at = callees.partition_point(|(share, _)| *share > own.0);
    callees.insert(at, own);
    let callers = rows(&found.callers, "(nobody: a thread begins here)");
    Detail {
        left: Side { title: "called by".to_owned(), rows: callers },
        right: Side { title: "takes its time in".to_owned(), rows: callees },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_that_of_drawn_samples() {
        assert!((margin(0.5, 100) - 0.098).abs() < 1e-3);
        assert_eq!(margin(1.0, 100), 0.0);
        assert!(margin(0.5, 0) > 0.9);
    }
}
