//! Series that are samples of time, and the states that a sampler of all threads tells apart.

use tare_profile::{Estimate, Profile, Series, SeriesId, ValueKind};

/// The series of a sampler that meets waiting threads, too. Beside it there is one for each state.
const WHOLE: &str = "wall";

/// Whether the rows of a series are samples, whose values are the time that each stands for.
pub fn is_sampled_time(series: &Series) -> bool {
    let info = series.info();
    matches!(info.kind, ValueKind::CpuTime | ValueKind::WallTime)
        && info.estimate == Estimate::Measured
        && info.period > 0
        && info.period_kind.as_ref() == Some(&info.kind)
}

/// The series that are parts of another, by the state of the sampled thread: together they hold its
/// values once more. None if they are not the whole of it.
pub fn states_of(profile: &Profile, whole: SeriesId) -> Vec<SeriesId> {
    let series = profile.series(whole);
    if series.info().name != WHOLE || !is_sampled_time(series) {
        return Vec::new();
    }
    let alike = |other: &Series| {
        let mut info = other.info().clone();
        info.name.clone_from(&series.info().name);
        info == *series.info() && !other.is_empty()
    };
    let others = profile.all_series().filter(|(id, other)| *id != whole && alike(other));
    let (ids, totals): (Vec<SeriesId>, Vec<i64>) =
        others.map(|(id, other)| (id, other.total())).unzip();
    let sum = totals.into_iter().fold(0_i64, i64::saturating_add);
    if sum == series.total() { ids } else { Vec::new() }
}
