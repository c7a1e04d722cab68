//! How far figures may be off that were estimated from calls drawn at random.

use crate::compensate::{TIME_VARIANCE, TOTAL_VARIANCE};
use crate::join::JOINED;
use tare_profile::{Profile, SeriesId, SeriesInfo, ValueKind};

/// Standard errors to either side that hold 95 of 100.
pub const NINETY_FIVE: f64 = 1.96;

/// Variances of times are in microseconds squared.
const NANOS: f64 = 1e3;

/// The series that tell how far times may be off because not all calls were timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Of what a context takes itself: a sum of contexts has the sum of their variances.
    pub own: SeriesId,
    /// Of what it takes with all that it called: so has a sum over all of those.
    pub total: SeriesId,
}

impl Drawn {
    /// Of a series of times, unless it is joined with samples, which have an interval of their own.
    pub fn of(profile: &Profile, times: SeriesId) -> Option<Self> {
        let info = profile.series(times).info();
        let is_time = matches!(info.kind, ValueKind::WallTime | ValueKind::CpuTime);
        if !is_time || info.name == JOINED {
            return None;
        }
        let find = |name: &str| {
            let fits = |other: &SeriesInfo| other.name == info.name && other.kind.name() == name;
            profile.all_series().find(|(_, series)| fits(series.info())).map(|(id, _)| id)
        };
        Some(Drawn { own: find(TIME_VARIANCE)?, total: find(TOTAL_VARIANCE)? })
    }

    /// The half width of the 95 % interval, in nanoseconds, given the sum of one of the series.
    #[must_use]
    pub fn half(variance: i64) -> i64 {
        (NINETY_FIVE * (variance.max(0) as f64).sqrt() * NANOS) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_by_probes_have_it() {
        let mut profile = Profile::new();
        let mut add = |name: &str, kind| profile.add_series(SeriesInfo::new(name, kind));
        let other = |name: &str| ValueKind::Other {
            name: name.to_owned(),
            unit: tare_profile::Unit::Count,
        };
        let times = add("exact", ValueKind::WallTime);
        let calls = add("exact", ValueKind::Invocations);
        let joined = add(JOINED, ValueKind::CpuTime);
        let own = add("exact", other(TIME_VARIANCE));
        let total = add("exact", other(TOTAL_VARIANCE));
        assert_eq!(Drawn::of(&profile, times), Some(Drawn { own, total }));
        assert_eq!(Drawn::of(&profile, calls), None);
        assert_eq!(Drawn::of(&profile, joined), None);
    }

    #[test]
    fn half_an_interval_is_in_nanoseconds() {
        assert_eq!(Drawn::half(10_000), 196_000);
        assert_eq!(Drawn::half(-1), 0);
    }
}
