//! The rows of each series, collected while chunks are read, and added to the profile at the end:
//! only then is it known which series there are, and the most telling ones come first.

use super::locks::LOCK;
use tare_profile::{Estimate, Profile, Row, Series, SeriesInfo, TimeAxis, Unit, ValueKind};

/// Series of our own in one file. Their names stand in every event, so a damaged file could make up
/// as many as it has events.
const MAX_OWN_SERIES: usize = 64;

/// Events whose rows are a series, in the order in which the series stand in the profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Track {
    CpuTime,
    Execution,
    Wall,
    NativeMethod,
    AllocationSample,
    AllocationInTlab,
    AllocationOutsideTlab,
    Malloc,
    LiveObject,
    MonitorEnter,
    Park,
    MonitorWait,
    Sleep,
}

pub const TRACKS: [(Track, &str); 13] = [
    (Track::CpuTime, "jdk.CPUTimeSample"),
    (Track::Execution, "jdk.ExecutionSample"),
    (Track::Wall, "profiler.WallClockSample"),
    (Track::NativeMethod, "jdk.NativeMethodSample"),
    (Track::AllocationSample, "jdk.ObjectAllocationSample"),
    (Track::AllocationInTlab, "jdk.ObjectAllocationInNewTLAB"),
    (Track::AllocationOutsideTlab, "jdk.ObjectAllocationOutsideTLAB"),
    (Track::Malloc, "profiler.Malloc"),
    (Track::LiveObject, "profiler.LiveObject"),
    (Track::MonitorEnter, "jdk.JavaMonitorEnter"),
    (Track::Park, "jdk.ThreadPark"),
    (Track::MonitorWait, "jdk.JavaMonitorWait"),
    (Track::Sleep, "jdk.ThreadSleep"),
];

impl Track {
    pub fn named(event: &str) -> Option<Track> {
        TRACKS.iter().find(|(_, name)| *name == event).map(|(track, _)| *track)
    }

    pub fn kind(self) -> ValueKind {
        match self {
            Track::CpuTime | Track::Execution | Track::Wall | Track::NativeMethod => {
                ValueKind::Samples
            }
            Track::AllocationSample | Track::AllocationInTlab | Track::AllocationOutsideTlab => {
                ValueKind::AllocatedBytes
            }
            Track::Malloc => {
                ValueKind::Other { name: "malloc-bytes".to_owned(), unit: Unit::Bytes }
            }
            Track::LiveObject => ValueKind::LiveBytes,
            // Which series a park adds to depends on what it is for.
            Track::MonitorEnter | Track::Park | Track::MonitorWait | Track::Sleep => {
                ValueKind::BlockedTime
            }
        }
    }

    /// What passes between two samples, for the series that are samples.
    fn period_kind(self) -> Option<ValueKind> {
        match self {
            Track::CpuTime | Track::Execution => Some(ValueKind::CpuTime),
            Track::Wall | Track::NativeMethod => Some(ValueKind::WallTime),
            Track::AllocationSample => Some(ValueKind::AllocatedBytes),
            _ => None,
        }
    }
}

/// The series of a file of ours that no JDK's event could hold.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnSeries {
    pub name: String,
    pub kind: String,
    pub unit: String,
    pub estimate: String,
}

/// What is made of waits.
const WAITS: [ValueKind; 3] =
    [ValueKind::BlockedTime, ValueKind::Contentions, ValueKind::WaitingTime];

#[derive(Default)]
pub struct Tracks {
    rows: [Rows; TRACKS.len()],
    periods: [u64; TRACKS.len()],
    own: Vec<(OwnSeries, Rows)>,
    /// Of waits, by the kinds of [`WAITS`].
    waits: [Rows; WAITS.len()],
    /// Names of series of our own that are samples, a period of [`Track::Execution`] apart.
    sampled: Vec<String>,
}

impl Tracks {
    pub fn set_sampled(&mut self, names: Vec<String>) {
        self.sampled = names;
    }

    pub fn push(&mut self, track: Track, row: Row) {
        self.rows[track as usize].push(row);
    }

    /// A row of waits; others than the kinds of those are not taken.
    pub fn push_wait(&mut self, kind: &ValueKind, row: Row) {
        if let Some(place) = WAITS.iter().position(|wait| wait == kind) {
            self.waits[place].push(row);
        }
    }

    /// False if the row was refused, because there would be too many series.
    pub fn push_own(&mut self, series: OwnSeries, row: Row) -> bool {
        match self.own.iter().position(|(known, _)| *known == series) {
            Some(known) => self.own[known].1.push(row),
            None if self.own.len() >= MAX_OWN_SERIES => return false,
            None => {
                let mut rows = Rows::default();
                rows.push(row);
                self.own.push((series, rows));
            }
        }
        true
    }

    /// Nanoseconds or bytes between two samples; the first word counts.
    pub fn set_period(&mut self, track: Track, period: u64) {
        let known = &mut self.periods[track as usize];
        if *known == 0 {
            *known = period;
        }
    }

    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        let mut rows = self.rows.iter().chain(&self.waits);
        self.own.is_empty() && rows.all(|rows| rows.0.is_empty())
    }

    pub fn into_profile(self, profile: &mut Profile) {
        for ((track, event), (rows, period)) in
            TRACKS.into_iter().zip(self.rows.into_iter().zip(self.periods))
        {
            // Files of ours have the objects beside the bytes, in values of our own.
            let objects = ValueKind::AllocatedObjects;
            let beside = self
                .own
                .iter()
                .find(|(own, _)| track == Track::AllocationSample && own.kind == objects.name());
            let name = beside.map_or(event, |(own, _)| &own.name);
            let mut info = SeriesInfo::new(name, track.kind()).with_time(TimeAxis::Exact);
            if let Some(kind) = track.period_kind().filter(|_| period > 0) {
                info = info.with_period(period, kind);
            }
            add(profile, info, rows);
        }
        for (kind, rows) in WAITS.into_iter().zip(self.waits) {
            // Files of ours have the whole, of which events are a part.
            let is_whole = |own: &OwnSeries| own.name == LOCK && own.kind == kind.name();
            if !self.own.iter().any(|(own, _)| is_whole(own)) {
                add(profile, SeriesInfo::new(LOCK, kind).with_time(TimeAxis::Exact), rows);
            }
        }
        for (series, rows) in self.own {
            let unit = match series.unit.as_str() {
                "nanoseconds" => Unit::Nanoseconds,
                "bytes" => Unit::Bytes,
                _ => Unit::Count,
            };
            let estimate = match series.estimate.as_str() {
                "compensated" => Estimate::Compensated,
                "lower" => Estimate::Lower,
                "upper" => Estimate::Upper,
                _ => Estimate::Measured,
            };
            let kind = ValueKind::from_name(&series.kind, unit);
            let mut info = SeriesInfo::new(&series.name, kind.clone());
            let period = self.periods[Track::Execution as usize];
            if period > 0 && self.sampled.contains(&series.name) {
                info = info.with_period(period, kind.clone());
            }
            let bytes = self.periods[Track::AllocationSample as usize];
            if bytes > 0 && kind == ValueKind::AllocatedObjects {
                info = info.with_period(bytes, ValueKind::AllocatedBytes);
            }
            add(profile, info.with_estimate(estimate).with_time(TimeAxis::Exact), rows);
        }
    }
}

fn add(profile: &mut Profile, info: SeriesInfo, rows: Rows) {
    if !rows.0.is_empty() {
        profile.add_made_series(rows.0.with_info(info));
    }
}

/// Rows of a series of which it is not yet known what it is.
struct Rows(Series);

impl Default for Rows {
    fn default() -> Self {
        Rows(Series::new(SeriesInfo::new("", ValueKind::Samples)))
    }
}

impl Rows {
    fn push(&mut self, row: Row) {
        self.0.push(row);
    }
}

/// Nanoseconds of `20 ms`, or a bare number of nanoseconds; bytes of `512 B`.
pub fn period(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    let factor = match unit.trim() {
        "" | "ns" | "B" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (row, (track, name)) in TRACKS.into_iter().enumerate() {
            assert_eq!((track as usize, Track::named(name)), (row, Some(track)));
        }
    }

    #[test]
    fn periods_have_units() {
        let check = |text, nanos| assert_eq!(period(text), nanos, "{text}");
        check("20 ms", Some(20_000_000));
        check("1000", Some(1000));
        check("500/s", None);
        check("everyChunk", None);
        check("0 ms", None);
        check("99999999999999999999 s", None);
    }
}
