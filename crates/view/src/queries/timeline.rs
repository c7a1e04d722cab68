//! The run along one axis: what was measured, and beside it what the JVM did.

mod more;
mod states;

use super::{Question, unit};
use crate::source::{Loaded, Problem};
use serde_json::{Value, json};
use states::States;
use std::cmp::Reverse;
use std::collections::HashMap;
use tare_profile::{
    EventKind, Profile, SeriesInfo, TimeAxis, ValueKind, collections, compiled, safepoints,
};

const CELLS: usize = 4000;
/// Bars of a lane; of more, the longest.
const BARS: usize = 2000;
/// Threads, the busiest, unless all are asked for; and of all.
const THREADS: usize = 20;
const ALL_THREADS: usize = 1000;

/// A part of the run in cells.
#[derive(Clone, Copy)]
struct Axis {
    from: u64,
    to: u64,
    cells: usize,
}

impl Axis {
    fn cell(&self) -> u64 {
        (self.to - self.from).div_ceil(self.cells as u64).max(1)
    }

    fn of(&self, time: u64) -> Option<usize> {
        let inside = (self.from..self.to).contains(&time);
        inside.then(|| (((time - self.from) / self.cell()) as usize).min(self.cells - 1))
    }

    fn add(&self, values: &mut [f64], time: u64, value: f64) {
        if let Some(cell) = self.of(time) {
            values[cell] += value;
        }
    }

    /// Adds what is spread evenly over a stretch of time.
    fn spread(&self, values: &mut [f64], time: u64, length: u64, value: f64) {
        let end = time.saturating_add(length.max(1));
        let (first, last) = (time.max(self.from), end.min(self.to));
        if first >= last {
            return;
        }
        let cell = self.cell();
        let per = value / (end - time) as f64;
        let mut at = first;
        while at < last {
            let number = (at - self.from) / cell;
            let next = (self.from + (number + 1) * cell).min(last);
            values[(number as usize).min(self.cells - 1)] += per * (next - at) as f64;
            at = next;
        }
    }

    /// Adds a value of a series. A thread that rests is sampled once for a long time, which is the
    /// time before the sample.
    fn put(&self, values: &mut [f64], info: &SeriesInfo, time: u64, value: f64) {
        match info.time {
            TimeAxis::None => {}
            TimeAxis::Buckets { width } => self.spread(values, time, width, value),
            TimeAxis::Exact if info.kind == ValueKind::WallTime => {
                let length = (value as u64).max(1);
                self.spread(values, time.saturating_sub(length), length, value);
            }
            TimeAxis::Exact => self.add(values, time, value),
        }
    }

    fn touches(&self, time: u64, duration: u64) -> bool {
        time < self.to && time.saturating_add(duration) >= self.from
    }
}

pub fn answer(question: &Question<'_>) -> Result<Value, Problem> {
    let loaded = question.cache.timed(question.source, question.epoch, &question.view)?;
    let profile = &loaded.profile;
    let axis = axis(question, profile, question.number("cells", 600, CELLS)?.max(1))?;
    let (metric, threads) = metric(&loaded, &axis);
    let info = profile.series(loaded.metrics[0]).info();
    let name = format!("{} {}", info.name, info.kind.name());
    let mut lanes = vec![area("metric", &name, unit(info), &metric)];
    lanes.extend(others(&loaded, &axis));
    let mut answer = json!({
        "epoch": question.epoch,
        "from": axis.from,
        "to": axis.to,
        "cells": axis.cells,
        "cell_ns": axis.cell(),
        "duration_ns": profile.run.duration,
        "lanes": lanes,
        "no_times": no_times(&loaded),
    });
    if let Some(wanted) = question.get("threads") {
        let most = if wanted == "all" { ALL_THREADS } else { THREADS };
        let mut threads: Vec<(u32, Vec<f64>)> = threads.into_iter().collect();
        let states = States::of(&loaded, &axis);
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        threads.sort_by_key(|(row, values)| (Reverse(sum(values) as i64), *row));
        let rows = threads.into_iter().take(most).filter_map(|(row, values)| {
            let (id, _) = profile.threads.iter().nth(row as usize)?;
            let name = profile.thread_name(id);
            let states = states.as_ref().map(|states| states.thread(row));
            Some(json!({ "row": row, "name": name, "value": sum(&values) as i64,
                         "values": rounded(&values), "states": states }))
        });
        answer["threads"] = rows.collect();
        answer["states"] = states.as_ref().map(|states| states.names.clone()).into();
    }
    Ok(answer)
}

/// By row of threads, their values in cells of the whole run.
pub fn by_thread(question: &Question<'_>, cells: usize) -> Result<HashMap<u32, Vec<i64>>, Problem> {
    let loaded = question.cache.timed(question.source, question.epoch, &question.view)?;
    let axis = axis(question, &loaded.profile, cells)?;
    let (_, threads) = metric(&loaded, &axis);
    Ok(threads.into_iter().map(|(row, values)| (row, rounded(&values))).collect())
}

fn axis(question: &Question<'_>, profile: &Profile, cells: usize) -> Result<Axis, Problem> {
    let time = |key: &str, otherwise: u64| match question.get(key) {
        None => Ok(otherwise),
        Some(text) => text
            .parse::<u64>()
            .map_err(|_| Problem::new(400, format!("{key} is a number of nanoseconds"))),
    };
    // A recording that was cut off knows its length by its rows alone.
    let last = profile.all_series().flat_map(|(_, series)| series.rows().map(|row| row.time)).max();
    let end = profile.run.duration.max(last.unwrap_or(0).saturating_add(1));
    let (from, to) = (time("from", 0)?, time("to", end)?);
    if from >= to {
        return Err(Problem::new(400, "the part that is asked for ends before it begins"));
    }
    Ok(Axis { from, to, cells })
}

/// Values of the metric in cells, of all threads and of each.
fn metric(loaded: &Loaded, axis: &Axis) -> (Vec<f64>, HashMap<u32, Vec<f64>>) {
    let series = loaded.profile.series(loaded.metrics[0]);
    let mut all = vec![0.0; axis.cells];
    let mut threads: HashMap<u32, Vec<f64>> = HashMap::new();
    if series.info().time == TimeAxis::None {
        return (all, threads);
    }
    for row in series.rows() {
        let of_thread = threads.entry(row.thread.raw()).or_insert_with(|| vec![0.0; axis.cells]);
        for values in [&mut all, of_thread] {
            axis.put(values, series.info(), row.time, row.value as f64);
        }
    }
    (all, threads)
}

fn no_times(loaded: &Loaded) -> Option<String> {
    let info = loaded.profile.series(loaded.metrics[0]).info();
    (info.time == TimeAxis::None).then(|| {
        let (name, kind) = (&info.name, info.kind.name());
        format!("the {name} {kind} values were recorded without times")
    })
}

fn rounded(values: &[f64]) -> Vec<i64> {
    values.iter().map(|value| value.round() as i64).collect()
}

/// What else happened, as far as it was recorded.
fn others(loaded: &Loaded, axis: &Axis) -> Vec<Value> {
    let profile = &loaded.profile;
    let mut lanes: Vec<Value> = more::allocation(loaded, axis).into_iter().collect();
    let collections = collections(profile);
    let seen = collections.iter().filter(|one| axis.touches(one.time, one.duration));
    let of_gc = seen.clone().map(|one| {
        let text = format!("gc:{} {} {}", one.number, one.collector, one.cause);
        (one.time, one.duration, one.kind.clone(), text.trim().to_owned())
    });
    if !collections.is_empty() {
        lanes.push(bars("gc", "Collections", of_gc.collect()));
    }
    let points: Vec<Value> =
        seen.filter_map(|one| Some(json!([one.end(), one.heap_after?]))).take(CELLS).collect();
    if !points.is_empty() {
        let name = "Heap after collections";
        lanes.push(json!({ "id": "heap", "name": name, "kind": "steps", "unit": "bytes",
                           "points": points }));
    }
    let safepoints = safepoints(profile);
    let of_safepoints = safepoints.iter().filter(|one| axis.touches(one.time, one.duration));
    let of_safepoints = of_safepoints.map(|one| {
        let text = format!("safepoint:{} {}", one.number, one.reason);
        (one.time, one.duration, one.reason.clone(), text)
    });
    if !safepoints.is_empty() {
        lanes.push(bars("safepoints", "Safepoints", of_safepoints.collect()));
    }
    if let Some(values) = durations(profile, axis, &EventKind::lock()) {
        lanes.push(area("locks", "Waiting for locks and others", "ns", &values));
    }
    if let Some(values) = counts(profile, axis, &EventKind::class_load()) {
        lanes.push(area("classes", "Classes loaded", "count", &values));
    }
    let compiled = compiled(profile);
    if !compiled.is_empty() {
        let mut values = vec![0.0; axis.cells];
        for one in &compiled {
            axis.spread(&mut values, one.time, one.duration, one.work as f64);
        }
        lanes.push(area("compilers", "Compilers at work", "ns", &values));
    }
    lanes.extend(more::regions(profile, axis));
    lanes.extend(more::markers(profile, axis));
    lanes
}

/// A lane of amounts in cells.
fn area(id: &str, name: &str, unit: &str, values: &[f64]) -> Value {
    json!({ "id": id, "name": name, "kind": "area", "unit": unit, "per": "cell",
            "values": rounded(values) })
}

/// A lane of things that happened: when, for how long, of which kind, and in words.
fn bars(id: &str, name: &str, mut bars: Vec<(u64, u64, String, String)>) -> Value {
    bars.sort_by_key(|bar| Reverse(bar.1));
    bars.truncate(BARS);
    bars.sort_by_key(|bar| bar.0);
    let bar = |(time, duration, name, text): (u64, u64, String, String)| json!({ "t": time, "d": duration, "name": name, "text": text });
    let bars: Value = bars.into_iter().map(bar).collect();
    json!({ "id": id, "name": name, "kind": "bars", "bars": bars })
}

/// Durations of a kind of event in cells; `None` if there are none.
fn durations(profile: &Profile, axis: &Axis, kind: &EventKind) -> Option<Vec<f64>> {
    let (_, table) = profile.all_events().find(|(_, table)| table.kind().name == kind.name)?;
    let mut values = vec![0.0; axis.cells];
    for event in table.events() {
        axis.spread(&mut values, event.time, event.duration, event.duration as f64);
    }
    Some(values).filter(|_| !table.is_empty())
}

fn counts(profile: &Profile, axis: &Axis, kind: &EventKind) -> Option<Vec<f64>> {
    let (_, table) = profile.all_events().find(|(_, table)| table.kind().name == kind.name)?;
    let mut values = vec![0.0; axis.cells];
    for event in table.events() {
        axis.add(&mut values, event.time, 1.0);
    }
    Some(values).filter(|_| !table.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_rested_is_shown_for_the_time_before_its_sample() {
        let axis = Axis { from: 0, to: 100, cells: 10 };
        let put = |kind: ValueKind| {
            let mut values = vec![0.0; 10];
            let info = SeriesInfo::new("samples", kind).with_time(TimeAxis::Exact);
            axis.put(&mut values, &info, 80, 40.0);
            rounded(&values)
        };
        assert_eq!(put(ValueKind::WallTime), [0, 0, 0, 0, 10, 10, 10, 10, 0, 0]);
        // Its processor time may have been any.
        assert_eq!(put(ValueKind::CpuTime), [0, 0, 0, 0, 0, 0, 0, 0, 40, 0]);
    }

    #[test]
    fn what_lasts_is_spread_over_its_cells() {
        let axis = Axis { from: 100, to: 200, cells: 10 };
        let mut values = vec![0.0; 10];
        axis.spread(&mut values, 95, 10, 10.0);
        axis.spread(&mut values, 115, 10, 20.0);
        axis.spread(&mut values, 195, 100, 100.0);
        axis.spread(&mut values, 300, 5, 1.0);
        assert_eq!(rounded(&values), [5, 10, 10, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(
            (axis.of(99), axis.of(100), axis.of(199), axis.of(200)),
            (None, Some(0), Some(9), None)
        );
    }
}
