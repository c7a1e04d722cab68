//! How far times can be trusted where only some calls were timed.

use super::percent;
use crate::compensate::{TIME_VARIANCE, TIMED_CALLS};
use crate::drawn::{Drawn, NINETY_FIVE};
use tare_profile::facts::keys;
use tare_profile::{MethodId, Profile, Row, Series, SeriesId, ValueKind};

/// One sentence, of a recording in which some calls were timed.
pub(super) fn told(profile: &Profile, metric: SeriesId) -> Option<String> {
    let one_in = profile.run.facts.get(keys::TIMED_ONE_IN)?;
    let series = |fits: &dyn Fn(&ValueKind) -> bool| {
        profile.all_series().map(|(_, series)| series).find(|series| fits(&series.info().kind))
    };
    let timed = series(&|kind| kind.name() == TIMED_CALLS)?.total();
    let calls = series(&|kind| *kind == ValueKind::Invocations)?.total();
    let variance = series(&|kind| kind.name() == TIME_VARIANCE)?;
    let times = by_method(profile, profile.series(metric));
    let variances = by_method(profile, variance);
    // Of those that are estimates at all.
    let estimated =
        (0..).zip(times.iter().zip(&variances)).filter(|(_, (_, variance))| **variance > 0);
    let largest = estimated.max_by_key(|(_, (time, _))| **time);
    let mut text = format!(
        "{timed} of {calls} calls were timed: the first 64 of each context, then one in {one_in}, at \
         random, or all where they take 50 µs or more"
    );
    if let Some((method, (time, variance))) = largest.filter(|(_, (time, _))| **time > 0) {
        // Variances are in microseconds squared.
        let error = NINETY_FIVE * (*variance as f64).sqrt() * 1e3 / *time as f64;
        let method = profile.methods.get(MethodId::new(method));
        let name = |id| profile.strings.get(id);
        let (class, method) = (name(method.class), name(method.name));
        text += &format!("; {class}.{method} is known to ± {} by that", percent(error));
    }
    if Drawn::of(profile, metric).is_some() {
        text += " (± is what that leaves open, in 95 of 100 cases; --time-all times every call)";
    }
    Some(text)
}

/// One sentence, of a recording in which some calls of roots were followed.
pub(super) fn followed(profile: &Profile) -> Option<String> {
    let facts = &profile.run.facts;
    let one_in = facts.get(keys::FOLLOWED_ONE_IN)?;
    let (all, followed) = (facts.get(keys::ROOT_CALLS)?, facts.get(keys::FOLLOWED_CALLS)?);
    let chosen = match (facts.get(keys::FOLLOWED_LEAST), facts.get(keys::FOLLOWED_MOST)) {
        (Some(least), Some(most)) => {
            let budget = facts.get(keys::OVERHEAD_BUDGET).map_or_else(String::new, percent);
            let took = facts.get(keys::OVERHEAD).map_or_else(String::new, |took| {
                format!("; probes took {} of the program's own time", percent(took))
            });
            let range =
                if least < most { format!(", from {least} to {most}") } else { String::new() };
            format!(" at last (chosen for an overhead of {budget}{range}{took})")
        }
        _ => String::new(),
    };
    let calls =
        format!("1 in {one_in} calls of the roots was followed{chosen}: {followed} of {all}");
    Some(match followed {
        0 => format!("{calls}; nothing is known of what they call"),
        _ => format!(
            "{calls}; the roots' own calls and total times are exact, all below is an estimate, and \
             ± is what that leaves open, in 95 of 100 cases"
        ),
    })
}

fn by_method(profile: &Profile, series: &Series) -> Vec<i64> {
    let mut sums = vec![0_i64; profile.methods.len()];
    let method =
        |row: &Row| Some(profile.frames.get(profile.contexts.frame(row.context)?).method.index());
    for row in series.rows() {
        if let Some(at) = method(&row) {
            sums[at] = sums[at].saturating_add(row.value);
        }
    }
    sums
}
