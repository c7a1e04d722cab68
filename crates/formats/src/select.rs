//! Which series of a profile goes into a format that holds one, and how series are called.

use crate::error::WriteError;
use tare_profile::{Estimate, Profile, Series, SeriesId, SeriesInfo, ValueKind};

/// What a user calls a series: `cpu/samples`, or `exact/wall-time/compensated`.
pub fn series_name(info: &SeriesInfo) -> String {
    let name = format!("{}/{}", info.name, info.kind.name());
    match estimate_name(info.estimate) {
        "" => name,
        estimate => format!("{name}/{estimate}"),
    }
}

pub(crate) fn estimate_name(estimate: Estimate) -> &'static str {
    match estimate {
        Estimate::Measured => "",
        Estimate::Compensated => "compensated",
        Estimate::Lower => "lower",
        Estimate::Upper => "upper",
    }
}

/// The series that people mean when they name none: where time went, or else what comes nearest.
pub fn default_series(profile: &Profile) -> Result<SeriesId, WriteError> {
    let filled = profile.all_series().filter(|(_, series)| !series.is_empty());
    let best = filled.min_by_key(|(id, series)| (rank(series), *id));
    best.map(|(id, _)| id).ok_or(WriteError::Empty)
}

fn rank(series: &Series) -> (u8, u8) {
    let kind = match series.info().kind {
        ValueKind::CpuTime | ValueKind::Samples => 0,
        ValueKind::WallTime => 1,
        ValueKind::Bytecodes => 2,
        ValueKind::AllocatedBytes => 3,
        ValueKind::LiveBytes => 4,
        ValueKind::BlockedTime => 5,
        ValueKind::Invocations => 6,
        _ => 7,
    };
    let estimate = match series.info().estimate {
        Estimate::Compensated => 0,
        Estimate::Measured => 1,
        Estimate::Lower | Estimate::Upper => 2,
    };
    (kind, estimate)
}

/// The series of a name, of an engine or of a kind, if it is only one.
pub fn find_series(profile: &Profile, wanted: &str) -> Result<SeriesId, WriteError> {
    let known = |ids: &[SeriesId]| {
        ids.iter().map(|id| series_name(profile.series(*id).info())).collect::<Vec<_>>()
    };
    let matching = |test: &dyn Fn(&SeriesInfo) -> bool| {
        let all = profile.all_series().filter(|(_, series)| test(series.info()));
        all.map(|(id, _)| id).collect::<Vec<_>>()
    };
    let exact = matching(&|info| series_name(info) == wanted);
    let found = match exact.is_empty() {
        true => matching(&|info| info.name == wanted || info.kind.name() == wanted),
        false => exact,
    };
    let wanted = wanted.to_owned();
    match found[..] {
        [one] => Ok(one),
        [] => Err(WriteError::NoSeries { wanted, known: known(&matching(&|_| true)) }),
        _ => Err(WriteError::Ambiguous { wanted, known: known(&found) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{ContextId, Row, ThreadId};

    fn profile() -> Profile {
        let mut profile = Profile::new();
        let infos = [
            SeriesInfo::new("alloc", ValueKind::AllocatedBytes),
            SeriesInfo::new("exact", ValueKind::WallTime),
            SeriesInfo::new("exact", ValueKind::WallTime).with_estimate(Estimate::Compensated),
            SeriesInfo::new("cpu", ValueKind::Samples),
        ];
        for info in infos {
            let id = profile.add_series(info);
            if profile.series(id).info().name != "cpu" {
                profile.series_mut(id).push(Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 1));
            }
        }
        profile
    }

    #[test]
    fn time_comes_before_bytes_and_empty_series_do_not_count() {
        let mut profile = profile();
        assert_eq!(default_series(&profile).unwrap(), SeriesId::new(2));
        let row = Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 1);
        profile.series_mut(SeriesId::new(3)).push(row);
        assert_eq!(default_series(&profile).unwrap(), SeriesId::new(3));
        assert!(matches!(default_series(&Profile::new()), Err(WriteError::Empty)));
    }

    #[test]
    fn series_are_found_by_any_name_that_only_one_has() {
        let profile = profile();
        let find = |text| find_series(&profile, text).map(SeriesId::raw);
        assert_eq!(find("cpu").unwrap(), 3);
        assert_eq!(find("allocated-bytes").unwrap(), 0);
        assert_eq!(find("exact/wall-time").unwrap(), 1);
        assert_eq!(find("exact/wall-time/compensated").unwrap(), 2);
        let message = find("exact").unwrap_err().to_string();
        assert!(message.contains("exact/wall-time, exact/wall-time/compensated"), "{message}");
        let message = find("wall").unwrap_err().to_string();
        assert!(message.contains("there is alloc/allocated-bytes, "), "{message}");
    }
}
