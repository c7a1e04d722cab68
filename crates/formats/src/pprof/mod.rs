//! pprof: the protobuf of `go tool pprof` and of most continuous profilers, usually packed by gzip.
//!
//! It holds methods, lines, threads (as labels) and several values per stack; no moments and no
//! events. How kinds of values are called in it is told here, for both directions.

mod read;
mod write;

pub use read::{looks_like, read};
pub use write::write;

use crate::select::estimate_name;
use tare_profile::{Estimate, Profile, SeriesInfo, Unit, ValueKind};

const FORMAT: &str = "pprof";

/// Kinds that have a customary name in pprof. All others go by our own.
const CUSTOMARY: [(&str, ValueKind); 8] = [
    ("cpu", ValueKind::CpuTime),
    ("wall", ValueKind::WallTime),
    ("delay", ValueKind::BlockedTime),
    ("alloc_space", ValueKind::AllocatedBytes),
    ("alloc_objects", ValueKind::AllocatedObjects),
    ("inuse_space", ValueKind::LiveBytes),
    ("inuse_objects", ValueKind::LiveObjects),
    ("contentions", ValueKind::Contentions),
];

/// Units that pprof's writers use, and how many of ours they are.
const UNITS: [(&str, Unit, i64); 8] = [
    ("count", Unit::Count, 1),
    ("nanoseconds", Unit::Nanoseconds, 1),
    ("microseconds", Unit::Nanoseconds, 1_000),
    ("milliseconds", Unit::Nanoseconds, 1_000_000),
    ("seconds", Unit::Nanoseconds, 1_000_000_000),
    ("bytes", Unit::Bytes, 1),
    ("kilobytes", Unit::Bytes, 1 << 10),
    ("megabytes", Unit::Bytes, 1 << 20),
];

const ESTIMATES: [Estimate; 3] = [Estimate::Compensated, Estimate::Lower, Estimate::Upper];

fn unit_name(unit: Unit) -> &'static str {
    UNITS.iter().find(|known| known.1 == unit).map_or("count", |known| known.0)
}

fn kind_name(kind: &ValueKind) -> &str {
    CUSTOMARY.iter().find(|known| known.1 == *kind).map_or(kind.name(), |known| known.0)
}

/// What a series is called: its kind, and its engine where two series have one kind.
fn type_name(profile: &Profile, info: &SeriesInfo) -> String {
    let base = match estimate_name(info.estimate) {
        "" => kind_name(&info.kind).to_owned(),
        estimate => format!("{}-{estimate}", kind_name(&info.kind)),
    };
    let same = |other: &SeriesInfo| other.kind == info.kind && other.estimate == info.estimate;
    let alike = profile.all_series().filter(|(_, series)| same(series.info())).count();
    if alike > 1 { format!("{}:{base}", info.name) } else { base }
}

/// The opposite of [`type_name`], and the factor by which values are multiplied.
fn series_info(name: &str, unit: &str) -> (SeriesInfo, i64) {
    let known = UNITS.iter().find(|known| known.0 == unit);
    let (unit, factor) = known.map_or((Unit::Count, 1), |known| (known.1, known.2));
    let (engine, base) = match name.split_once(':') {
        Some((engine, base)) => (engine, base),
        // What Go and we call alike is of the same engines.
        None => match name.split_once('_') {
            Some(("alloc", _)) => ("alloc", name),
            Some(("inuse", _)) => ("live", name),
            _ => (name, name),
        },
    };
    let ending = |estimate: &Estimate| {
        let base = base.strip_suffix(estimate_name(*estimate))?.strip_suffix('-')?;
        Some((base, *estimate))
    };
    let (base, estimate) = ESTIMATES.iter().find_map(ending).unwrap_or((base, Estimate::Measured));
    let customary = CUSTOMARY.iter().find(|known| known.0 == base && known.1.unit() == unit);
    let kind = match customary {
        Some((_, kind)) => kind.clone(),
        None => ValueKind::from_name(base, unit),
    };
    (SeriesInfo::new(engine, kind).with_estimate(estimate), factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_series_lead_back() {
        let mut profile = Profile::new();
        let other = ValueKind::Other { name: "misses".to_owned(), unit: Unit::Count };
        let infos = [
            SeriesInfo::new("a", ValueKind::Samples),
            SeriesInfo::new("b", ValueKind::Samples),
            SeriesInfo::new("c", ValueKind::CpuTime).with_estimate(Estimate::Compensated),
            SeriesInfo::new("d", ValueKind::AllocatedBytes),
            SeriesInfo::new("e", other),
        ];
        infos.iter().for_each(|info| {
            profile.add_series(info.clone());
        });
        let names: Vec<_> = infos.iter().map(|info| type_name(&profile, info)).collect();
        assert_eq!(names, ["a:samples", "b:samples", "cpu-compensated", "alloc_space", "misses"]);
        for (name, info) in names.iter().zip(&infos) {
            let (found, factor) = series_info(name, unit_name(info.kind.unit()));
            assert_eq!((found.kind, found.estimate), (info.kind.clone(), info.estimate));
            assert_eq!(factor, 1);
        }
        assert_eq!(series_info("cpu", "milliseconds").1, 1_000_000);
        assert!(matches!(series_info("cpu", "count").0.kind, ValueKind::Other { .. }));
    }
}
