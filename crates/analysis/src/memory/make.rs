//! Reads series and events into the parts of a [`Memory`]: one for each context.

use super::growth::{POINTS, Sweeps};
use super::origin::Origins;
use super::{Amount, Chosen, Memory, Part, SiteBy};
use crate::filter::{AnalysisError, Filter};
use crate::select::Selection;
use std::collections::HashMap;
use tare_java_names::TypePattern;
use tare_profile::facts::keys;
use tare_profile::{ContextId, EventKind, EventTable, FieldValue, Profile, Series, SeriesId};

pub(super) struct Maker<'a> {
    profile: &'a Profile,
    filter: &'a Filter,
    selection: &'a Selection,
    origins: Origins<'a>,
    /// Classes whose objects were followed; none means all.
    followed: Vec<TypePattern>,
    parts: HashMap<ContextId, Part>,
    sweeps: Sweeps,
}

impl<'a> Maker<'a> {
    pub fn new(profile: &'a Profile, filter: &'a Filter, selection: &'a Selection) -> Self {
        let followed = profile.run.facts.get(keys::LIVE_CLASSES).unwrap_or_default();
        Maker {
            profile,
            filter,
            selection,
            origins: Origins::new(profile),
            followed: followed.iter().filter_map(|text| text.parse().ok()).collect(),
            parts: HashMap::new(),
            sweeps: Sweeps::default(),
        }
    }

    fn part(&mut self, context: ContextId) -> &mut Part {
        let (origins, followed) = (&mut self.origins, &self.followed);
        self.parts.entry(context).or_insert_with(|| {
            let origin = origins.of(context);
            let is = |pattern: &TypePattern| pattern.fits(origin.declared_class());
            let followed = followed.is_empty() || followed.iter().any(is);
            Part::new(origin, followed)
        })
    }

    /// The interval at which a series was sampled, if it was.
    fn interval(&self, series: &Series) -> Option<u64> {
        let fact = self.profile.run.facts.get(keys::ALLOCATION_INTERVAL).map(|bytes| bytes.0);
        let info = series.info();
        let sampled = info.name != "exact";
        Some(info.period).filter(|period| *period > 0).or(fact).filter(|_| sampled)
    }

    pub fn allocated(&mut self, chosen: &Chosen) -> Result<(), AnalysisError> {
        let [bytes, objects] = chosen.allocated;
        if let Some(id) = bytes {
            let interval = self.interval(self.profile.series(id));
            for row in self.selection.rows(self.profile, id, self.filter)? {
                let part = self.part(row.context);
                part.allocated.bytes = part.allocated.bytes.saturating_add(row.value);
                part.samples += 1;
                if let Some(interval) = interval {
                    let size = size_of(row.value, interval);
                    part.variance += variance(row.value, size, interval);
                    part.sizes.push((size as u64, row.value));
                }
            }
        }
        if let Some(id) = objects {
            for row in self.selection.rows(self.profile, id, self.filter)? {
                let part = self.part(row.context);
                part.allocated.objects = part.allocated.objects.saturating_add(row.value);
            }
        }
        for part in self.parts.values_mut().filter(|part| part.sizes.is_empty()) {
            if let Some(size) = part.allocated.bytes.checked_div(part.allocated.objects) {
                part.sizes.push((size.max(0).unsigned_abs(), part.allocated.bytes));
            }
        }
        Ok(())
    }

    pub fn live(&mut self, chosen: &Chosen) -> Result<(), AnalysisError> {
        let [bytes, objects] = chosen.live;
        if let Some(id) = bytes {
            let interval = self.interval(self.profile.series(id));
            let rows: Vec<_> = self.selection.rows(self.profile, id, self.filter)?.collect();
            self.sweeps = Sweeps::of(rows.iter().map(|row| row.time));
            for row in rows {
                let point = self.sweeps.point(row.time);
                let part = self.part(row.context);
                part.live.bytes = part.live.bytes.saturating_add(row.value);
                part.live_samples += row.value.signum();
                if let Some(interval) = interval {
                    let weight = row.value.saturating_abs();
                    let one = variance(weight, size_of(weight, interval), interval);
                    part.live_variance += one * row.value.signum() as f64;
                }
                if let Some(point) = point {
                    part.steps.resize(POINTS, 0);
                    part.steps[point] = part.steps[point].saturating_add(row.value);
                }
            }
        }
        if let Some(id) = objects {
            for row in self.selection.rows(self.profile, id, self.filter)? {
                let part = self.part(row.context);
                part.live.objects = part.live.objects.saturating_add(row.value);
            }
        }
        Ok(())
    }

    /// What the tables of survivors and of deaths add: ages, and how much survived in all.
    pub fn events(&mut self) {
        let profile = self.profile;
        let ever = Filter { time: None, ..self.filter.clone() };
        let end = self.filter.time.as_ref().map_or(u64::MAX, |time| time.end);
        // The table of survivors is of the end of the run.
        let to_the_end = end >= profile.run.duration;
        for (_, table) in profile.all_events() {
            let number = |row: usize, name: &str| number(table, row, name);
            if table.kind().name == EventKind::survivor().name && to_the_end {
                for (row, event) in table.events().enumerate() {
                    if self.selection.has_event(&event, &ever) {
                        let age = number(row, "collections").max(0.0) as u64;
                        let objects = number(row, "objects");
                        self.part(event.context).ages.push((age, objects));
                    }
                }
            }
            if table.kind().name == EventKind::death().name {
                for (row, event) in table.events().enumerate() {
                    if event.time < end && self.selection.has_event(&event, &ever) {
                        let part = self.part(event.context);
                        part.survived = part.survived.saturating_add(number(row, "bytes") as i64);
                    }
                }
            }
        }
        for part in self.parts.values_mut() {
            part.survived = part.survived.saturating_add(part.live.bytes.max(0));
        }
    }

    pub fn finish(self, chosen: &Chosen, by: SiteBy) -> Memory {
        let facts = &self.profile.run.facts;
        let run = self.profile.run.duration;
        let duration = self.filter.time.as_ref().map_or(run, |time| {
            let end = if run > 0 { time.end.min(run) } else { time.end };
            end.saturating_sub(time.start)
        });
        let series = |id: Option<SeriesId>| id.map(|id| self.profile.series(id));
        let interval = series(chosen.allocated[0]).and_then(|series| self.interval(series));
        let last_interval = facts.get(keys::ALLOCATION_INTERVAL).map(|bytes| bytes.0);
        let exact = series(chosen.allocated[0].or(chosen.live[0]));
        let exact = exact.is_some_and(|series| series.info().name == "exact");
        let parts: Vec<Part> = self.parts.into_values().collect();
        let sum = |of: &dyn Fn(&Part) -> i64| {
            parts.iter().fold(0_i64, |sum, part| sum.saturating_add(of(part)))
        };
        let whole = |number: Option<u64>| i64::try_from(number.unwrap_or(0)).unwrap_or(i64::MAX);
        let mut memory = Memory {
            exact,
            interval,
            last_interval: last_interval
                .filter(|last| interval.is_some_and(|first| first != *last)),
            samples: parts.iter().map(|part| part.samples).sum(),
            allocated: Amount {
                bytes: sum(&|part| part.allocated.bytes),
                objects: sum(&|part| part.allocated.objects),
            },
            tracked: chosen.live[0].is_some(),
            followed: self.followed.iter().map(ToString::to_string).collect(),
            live: Amount {
                bytes: sum(&|part| part.live.bytes),
                objects: sum(&|part| part.live.objects),
            },
            collections: facts.get(keys::COLLECTIONS),
            unproven: Amount {
                bytes: whole(facts.get(keys::LIVE_UNPROVEN_BYTES).map(|bytes| bytes.0)),
                objects: whole(facts.get(keys::LIVE_UNPROVEN_OBJECTS)),
            },
            duration,
            growth: None,
            sites: Vec::new(),
            parts,
            sweeps: self.sweeps,
        };
        let mut steps = vec![0_i64; POINTS];
        for part in &memory.parts {
            steps.iter_mut().zip(&part.steps).for_each(|(sum, step)| *sum += step);
        }
        memory.growth = memory.sweeps.growth(&steps);
        memory.sites = memory.grouped(by);
        memory
    }
}

fn number(table: &EventTable, row: usize, name: &str) -> f64 {
    match table.field_named(name).and_then(|field| table.field(row, field)) {
        Some(FieldValue::Integer(value)) => value as f64,
        Some(FieldValue::Real(value)) => value,
        _ => 0.0,
    }
}

/// The size of the object that a sample of this weight met: weight = size / (1 − e^(−size/I)).
fn size_of(weight: i64, interval: u64) -> f64 {
    let (weight, interval) = (weight as f64, interval as f64);
    if weight <= interval {
        // Of small ones the weight tells nothing.
        return 0.0;
    }
    let weighs = |size: f64| size / -(-size / interval).exp_m1();
    let (mut low, mut high) = (0.0, weight);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if weighs(middle) < weight { low = middle } else { high = middle }
    }
    high
}

/// What a sample adds to the variance of a sum: those that cannot be missed add nothing.
fn variance(weight: i64, size: f64, interval: u64) -> f64 {
    (weight as f64).powi(2) * (-size / interval as f64).exp()
}
