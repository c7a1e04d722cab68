//! When an estimate is good enough: enough batches, of which the mean is known well, and callers
//! whose shares do not depend on when one looks.

use super::hooks::{Caller, Hook, Interval};
use super::{ClimbMetric, hooks::Sums};
use std::collections::BTreeMap;

/// Batches that it takes at least, how well the mean is to be known, and how far the shares of both
/// halves may be apart, all callers together.
const BATCHES: usize = 30;
const HALF_WIDTH: f64 = 0.05;
const SHARES: f64 = 0.05;

/// Of a normal distribution, for 95 of 100.
const Z: f64 = 1.96;

/// How well a method is known.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Stability {
    pub batches: usize,
    /// Half the width of the interval that has the true mean in 95 of 100 cases, in means.
    pub half_width: f64,
    /// What the callers' shares of the first half and of the second differ by, in all.
    pub shift: f64,
}

impl Stability {
    pub fn is_stable(&self) -> bool {
        self.batches >= BATCHES && self.half_width <= HALF_WIDTH && self.shift <= SHARES
    }

    /// How many batches of those that it takes there are.
    pub fn wanted() -> usize {
        BATCHES
    }
}

pub fn stability(hook: &Hook, metric: ClimbMetric) -> Stability {
    let batches: Vec<&Interval> =
        hook.intervals.values().filter(|interval| interval.told > 0).collect();
    let values: Vec<f64> = batches.iter().filter_map(|batch| value(batch, metric)).collect();
    let (first, second) = batches.split_at(batches.len() / 2);
    let shares = |half: &[&Interval]| {
        let costs = hook.costs_of(metric, half.iter().copied());
        let total: f64 = costs.iter().map(|(.., cost)| cost).sum();
        costs
            .into_iter()
            .map(|(caller, _, cost)| (caller, if total > 0.0 { cost / total } else { 0.0 }))
            .collect::<BTreeMap<Caller, f64>>()
    };
    let (first, second) = (shares(first), shares(second));
    let of = |half: &BTreeMap<Caller, f64>, caller| half.get(caller).copied().unwrap_or(0.0);
    let callers = first.keys().chain(second.keys().filter(|caller| !first.contains_key(caller)));
    // Each point that one caller loses another gains.
    let shift = callers.map(|caller| (of(&first, caller) - of(&second, caller)).abs()).sum::<f64>();
    Stability { batches: values.len(), half_width: half_width(&values), shift: shift / 2.0 }
}

fn value(batch: &Interval, metric: ClimbMetric) -> Option<f64> {
    let Sums { ended, wall, cpu, with_cpu, .. } = batch.all();
    match metric {
        ClimbMetric::Calls => {
            (batch.duration > 0).then(|| batch.calls as f64 / batch.duration as f64)
        }
        ClimbMetric::Cpu => (with_cpu > 0).then(|| cpu as f64 / with_cpu as f64),
        ClimbMetric::Wall => (ended > 0).then(|| wall as f64 / ended as f64),
    }
}

/// As a part of the mean.
fn half_width(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.len() < 2 {
        return f64::INFINITY;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let deviation = (squares / (count - 1.0)).sqrt();
    match mean > 0.0 {
        true => Z * deviation / count.sqrt() / mean,
        false => 0.0,
    }
}
