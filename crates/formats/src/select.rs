//! Which series of a profile goes into a format that holds one, and how series are called.

use crate::error::WriteError;
use tare_profile::{Estimate, Profile, Series, SeriesId, SeriesInfo, ValueKind};

/// What a user calls a series: `cpu:samples`, or `exact:wall-time:compensated`.
pub fn series_name(info: &SeriesInfo) -> String {
    let name = format!("{}:{}", info.name, info.kind.name());
    match estimate_name(info.estimate) {
        "" => name,
        estimate => format!("{name}:{estimate}"),
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
}
