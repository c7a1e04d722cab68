//! What a climb says while it goes on: methods by short names, and how well they are known.

use crate::words::{count, interval, plain, several};
use tare_analysis::climb::{Climb, ClimbMetric, MethodKey, Stability};

/// A method as people call it: the class without its package.
pub fn short(name: &str) -> &str {
    let method = name.rfind('.').unwrap_or(0);
    name[..method].rfind('.').map_or(name, |dot| &name[dot + 1..])
}

/// How well something is known.
pub(super) fn well(known: &Stability) -> String {
    let batches = several(known.batches, "batch");
    match known.half_width.is_finite() {
        true => format!("± {:.1} % by {batches}", known.half_width * 100.0),
        false => batches,
    }
}

/// A method in a sentence, when it is known.
pub(super) fn told(
    climb: &Climb,
    method: MethodKey,
    metric: ClimbMetric,
    known: &Stability,
) -> String {
    let name = short(climb.names.name(method));
    let Some(hook) = climb.measured(method) else { return name.to_owned() };
    let nanos = |value: Option<f64>| {
        value.map_or_else(|| "?".to_owned(), |value| interval(value.round() as u64))
    };
    let quantile = |share| nanos(hook.quantile(share).map(|n| n as f64));
    let callers = climb.payers(method, metric);
    let callers: Vec<String> = callers
        .iter()
        .take(3)
        .filter(|payer| payer.share() >= 0.01)
        .map(|payer| {
            let caller = payer.method.map_or("?", |caller| short(climb.names.name(caller)));
            let doubt = payer.sampled.filter(|_| payer.is_disputed());
            let doubt = doubt.map_or_else(String::new, |sampled| {
                format!(" (samples: {:.0} %)", sampled * 100.0)
            });
            format!("{caller} {:.0} %{doubt}", payer.share() * 100.0)
        })
        .collect();
    let paid = match callers.is_empty() {
        true => "nobody calls it".to_owned(),
        false => format!("paid by {}", callers.join(", ")),
    };
    let metric = match metric {
        ClimbMetric::Calls => ClimbMetric::Wall,
        metric => metric,
    };
    plain(&format!(
        "{name}: {} calls/s, {} {} a call (p50 {}, p99 {} wall), {}; {paid}",
        count(hook.calls_per_second().round() as u64),
        nanos(hook.mean(metric)),
        metric.name(),
        quantile(0.5),
        quantile(0.99),
        well(known),
    ))
    .into_owned()
}
