//! Which of a profile's series to show, by default or by a name that a user gives.

use crate::join::JOINED;
use crate::target::TARGET_TIME;
use tare_profile::{Estimate, Profile, Series, SeriesId, ValueKind};

/// What a report shows when nothing else is asked: the most telling series, and beside it the
/// invocations of the same engine, if it counted them.
pub fn default_metrics(profile: &Profile) -> Vec<SeriesId> {
    let ranked = profile.all_series().filter(|(_, series)| !series.is_empty());
    let first = ranked.min_by_key(|(id, series)| (rank(series), *id));
    first.map_or_else(Vec::new, |(id, _)| with_invocations(profile, id))
}

/// What engines of their own are called that other engines tell, too.
const OTHERS_TELL: [(&str, ValueKind); 2] =
    [("alloc", ValueKind::AllocatedBytes), ("live", ValueKind::LiveBytes)];

/// The series that a text names, by its engine (`cpu`), its kind (`allocated-bytes`) or both
/// (`exact:invocations`); among several the most telling.
pub fn find_metric(profile: &Profile, text: &str) -> Option<Vec<SeriesId>> {
    let fits = |series: &Series| {
        let (name, kind) = (series.info().name.as_str(), series.info().kind.name());
        match text.split_once(':') {
            Some((wanted_name, wanted_kind)) => name == wanted_name && kind == wanted_kind,
            None => name == text || kind == text,
        }
    };
    let first = |fits: &dyn Fn(&Series) -> bool| {
        let found = profile.all_series().filter(|(_, series)| fits(series));
        found.min_by_key(|(id, series)| (series.is_empty(), rank(series), *id)).map(|(id, _)| id)
    };
    let of_others = || {
        let (_, kind) = OTHERS_TELL.iter().find(|(engine, _)| *engine == text)?;
        first(&|series| series.info().kind == *kind)
    };
    first(&fits).or_else(of_others).map(|id| with_invocations(profile, id))
}

fn with_invocations(profile: &Profile, id: SeriesId) -> Vec<SeriesId> {
    let info = profile.series(id).info();
    let same = profile.all_series().find(|(other, series)| {
        let counts = series.info().kind == ValueKind::Invocations && !series.is_empty();
        let of_same = series.info().name == info.name
            || (info.name == JOINED && series.info().name == "exact");
        counts && *other != id && of_same
    });
    let timed = info.kind != ValueKind::Samples;
    std::iter::once(id).chain(same.filter(|_| timed).map(|(other, _)| other)).collect()
}

fn rank(series: &Series) -> (u8, u8) {
    let kind = match series.info().kind {
        ValueKind::CpuTime => 0,
        ValueKind::Samples => 1,
        ValueKind::WallTime => 2,
        ValueKind::Bytecodes => 3,
        ValueKind::Other { ref name, .. } if name == TARGET_TIME => 3,
        ValueKind::AllocatedBytes => 4,
        ValueKind::BlockedTime => 5,
        ValueKind::LiveBytes => 6,
        ValueKind::Invocations => 7,
        ValueKind::AllocatedObjects | ValueKind::LiveObjects | ValueKind::Contentions => 8,
        ValueKind::WaitingTime => 9,
        ValueKind::ClassLoadTime => 10,
        ValueKind::ClassLoads => 11,
        ValueKind::Other { .. } => 12,
    };
    let estimate = match series.info().estimate {
        Estimate::Compensated => 0,
        Estimate::Measured => 1,
        Estimate::Lower | Estimate::Upper => 2,
    };
    // A bound is no answer to "how much", whatever it bounds.
    (kind + if estimate == 2 { 20 } else { 0 }, estimate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{ContextId, Row, SeriesInfo, ThreadId};

    #[test]
    fn the_most_telling_series_comes_first() {
        let mut profile = Profile::new();
        let mut add = |info: SeriesInfo| {
            let id = profile.add_series(info);
            profile.series_mut(id).push(Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 1));
            id
        };
        let exact =
            |estimate| SeriesInfo::new("exact", ValueKind::WallTime).with_estimate(estimate);
        let lower = add(exact(Estimate::Lower));
        let raw = add(exact(Estimate::Measured));
        let net = add(exact(Estimate::Compensated));
        let calls = add(SeriesInfo::new("exact", ValueKind::Invocations));
        let bytes = add(SeriesInfo::new("alloc", ValueKind::AllocatedBytes));
        profile.add_series(SeriesInfo::new("cpu", ValueKind::CpuTime));
        assert_eq!(default_metrics(&profile), [net, calls], "an empty series says nothing");
        assert_eq!(find_metric(&profile, "alloc"), Some(vec![bytes]));
        assert_eq!(find_metric(&profile, "live"), None);
        let live = profile.add_series(SeriesInfo::new("exact", ValueKind::LiveBytes));
        assert_eq!(find_metric(&profile, "live"), Some(vec![live, calls]), "whoever tells it");
        assert_eq!(find_metric(&profile, "wall-time"), Some(vec![net, calls]));
        assert_eq!(find_metric(&profile, "exact:invocations"), Some(vec![calls]));
        assert_eq!(find_metric(&profile, "nothing"), None);
        assert!(![lower, raw].contains(&default_metrics(&profile)[0]));
    }
}
