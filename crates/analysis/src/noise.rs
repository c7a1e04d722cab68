//! How much of a difference between two profiles may be chance.
//!
//! Samples are drawn: a run that does the same brings other numbers. How far they scatter is told
//! by the run itself: it is cut into parts of equally many samples, and what a method has in one
//! part differs from what it has in the next by chance, but for the few parts where the program
//! changes what it does. So samples that come in bursts count for as little as they tell, and how
//! much of the machine a program got at what time does not matter. docs/internals/compare.md has
//! the rest.

use crate::join::JoinedSums;
use crate::memory::{is_level, is_memory};
use crate::target::TARGET_TIME;
use tare_profile::facts::keys;
use tare_profile::{Profile, Row, Series, SeriesId, TimeAxis, ValueKind};

/// The engine that counts; if it takes samples instead, a fact of the run says so.
const EXACT: &str = "exact";

/// Into how many parts a run is cut.
pub(crate) const PARTS: usize = 64;

/// As few parts still tell something.
const FEWEST: usize = 16;

/// Without times nobody sees bursts; then samples are taken to come in fours.
const BURST: f64 = 4.0;

/// Among all differences that are told, one is wrongly taken for more than chance as seldom as
/// this.
const WRONG: f64 = 0.01;

/// What figures would differ by if a program that does the same were recorded once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noise {
    /// Not by the measuring: every call, bytecode or object was counted.
    None,
    /// As samples do, which is estimated.
    Samples,
    /// One recording of each does not tell.
    Unknown,
}

impl Noise {
    /// Of the figures of a series.
    pub fn of(profile: &Profile, series: SeriesId) -> Self {
        let info = profile.series(series).info();
        let exact = info.name == EXACT;
        match info.kind {
            _ if unit(profile, series).is_some() => Noise::Samples,
            _ if !exact && info.time == TimeAxis::Exact => Noise::Samples,
            // All waits are told, but another run has others.
            ValueKind::BlockedTime | ValueKind::WaitingTime | ValueKind::Contentions if !exact => {
                Noise::Samples
            }
            ValueKind::Invocations
            | ValueKind::Bytecodes
            | ValueKind::AllocatedBytes
            | ValueKind::AllocatedObjects
                if exact =>
            {
                Noise::None
            }
            // Costs that are added up for each bytecode.
            ValueKind::Other { ref name, .. } if exact && name == TARGET_TIME => Noise::None,
            _ => Noise::Unknown,
        }
    }

    /// Of what two such figures differ by.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Noise::Samples, _) | (_, Noise::Samples) => Noise::Samples,
            (Noise::None, Noise::None) => Noise::None,
            _ => Noise::Unknown,
        }
    }

    /// A name for scripts.
    pub fn name(self) -> &'static str {
        match self {
            Noise::None => "none",
            Noise::Samples => "samples",
            Noise::Unknown => "unknown",
        }
    }
}

/// What one sample stands for, if all stand for the same. Bytecodes may be sampled, too, whenever a
/// thread has executed so many, and joined times are samples that were scaled.
fn unit(profile: &Profile, series: SeriesId) -> Option<i64> {
    let info = profile.series(series).info();
    if let Some(joined) = JoinedSums::of(profile, series) {
        return Some(joined.scaled_sample(profile));
    }
    match info.kind {
        ValueKind::Samples => Some(1),
        ValueKind::Bytecodes if info.name == EXACT => {
            let every = profile.run.facts.get(keys::BYTECODES_PER_SAMPLE);
            every.and_then(|every| i64::try_from(every).ok())
        }
        // Samples of large objects stand for more than others.
        ref kind if is_memory(kind) => None,
        ref kind if info.period > 0 && info.period_kind.as_ref() == Some(kind) => {
            i64::try_from(info.period).ok()
        }
        _ => None,
    }
}

/// A profile in which a series is also there part by part, for a tree of all of them.
pub(crate) struct Parted {
    pub profile: Profile,
    /// The series, its samples in units, and its parts.
    pub series: Vec<SeriesId>,
    spread: Spread,
}

/// How a series of parts is read.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    unit: f64,
    has_times: bool,
    /// The standard deviation of what all samples were multiplied with, as a share.
    scale: f64,
}

impl Parted {
    pub fn new(profile: &Profile, id: SeriesId) -> Self {
        let series = profile.series(id);
        let mut rows: Vec<Row> = series.rows().collect();
        rows.sort_by_key(|row| row.time);
        // A row of a stretch of time is the sum of many samples, whose order nobody knows.
        // What lives comes and goes; how much lived at which time says nothing of chance.
        let level = is_level(&series.info().kind);
        let has_times = !level
            && series.info().time == TimeAxis::Exact
            && rows.first().map(|row| row.time) != rows.last().map(|row| row.time);
        let fixed = unit(profile, id);
        let scale = JoinedSums::of(profile, id).map_or(0.0, |joined| joined.deviation());
        let largest = || rows.iter().map(|row| row.value).max().unwrap_or(1);
        let unit = fixed.unwrap_or_else(largest).max(1);
        let whole = rows.iter().map(|row| i128::from(row.value.max(0))).sum::<i128>().max(1);
        let mut made: Vec<Series> =
            (0..=PARTS).map(|_| Series::new(series.info().clone())).collect();
        let mut before = 0_i128;
        for row in rows {
            // A sample of twice the weight scatters four times as much.
            let weight = match fixed {
                Some(_) => row.value,
                // What is gone takes the chance away that came with it.
                None => (row.value as f64 * row.value.abs() as f64 / unit as f64) as i64,
            };
            made[0].push(Row { value: weight, ..row });
            if has_times {
                let part = (before * PARTS as i128 / whole).clamp(0, PARTS as i128 - 1);
                made[1 + part as usize].push(row);
            }
            before += i128::from(row.value.max(0));
        }
        let mut profile = profile.clone();
        let made = made.into_iter().map(|series| profile.add_made_series(series));
        let series = std::iter::once(id).chain(made).collect();
        Parted { profile, series, spread: Spread { unit: unit as f64, has_times, scale } }
    }

    pub fn spread(&self) -> Spread {
        self.spread
    }
}

impl Spread {
    /// How many samples a sum is made of, by its weight in units.
    pub fn samples(self, values: &[i64]) -> f64 {
        values.get(1).map_or(0.0, |weight| *weight as f64 / self.unit)
    }

    /// The variance of a sum of samples: of its weight in units, and of its parts. With the parts
    /// of the whole, that of its share of the whole, in values.
    pub fn variance(self, values: &[i64], whole: Option<&[i64]>) -> f64 {
        let [value, weight, parts @ ..] = values else { return 0.0 };
        let sum = whole.map_or(0, |whole| whole[0]);
        let share = if sum > 0 { *value as f64 / sum as f64 } else { 0.0 };
        let drawn = *weight as f64 * self.unit * (1.0 - share).max(0.0);
        if !self.has_times {
            // A share of the whole has the same scale as the whole.
            let scaled = if whole.is_some() { 0.0 } else { self.scale * *value as f64 };
            return BURST * drawn + scaled * scaled;
        }
        let of_whole = |part: usize| whole.map_or(0.0, |whole| share * whole[2 + part] as f64);
        let rest = |(part, value): (usize, &i64)| *value as f64 - of_whole(part);
        let mut rests: Vec<f64> = parts.iter().enumerate().map(rest).collect();
        let mut found = drawn;
        // Bursts that reach from one part into the next make steps too small; longer parts see
        // them.
        while rests.len() >= FEWEST {
            let steps = rests.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>();
            let seen = steps / 2.0 * rests.len() as f64 / (rests.len() - 1) as f64;
            found = found.max(seen);
            rests = rests.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        found
    }
}

/// With fewer samples than this in both profiles together, nothing is more than chance, however few
/// things are compared; so they are none that is.
pub(crate) const TOO_FEW: f64 = 8.0;

/// How many standard deviations a difference must have to be more than chance, if it is the largest
/// of so many. That deviations are themselves estimated is made up for by taking the largest of
/// several estimates.
pub(crate) fn deviations(comparisons: usize) -> f64 {
    let tail = WRONG / 2.0 / comparisons.max(1) as f64;
    // Above 2 the tail of the normal distribution is hardly less than this.
    let bound = |z: f64| (-z * z / 2.0).exp() / (z * (2.0 * std::f64::consts::PI).sqrt());
    let (mut low, mut high) = (1.0, 40.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if bound(middle) > tail { low = middle } else { high = middle }
    }
    high
}
