//! Samples of the stream as values of the profile: time by context and thread, and by state where
//! states are told.

use super::{Addresses, Collector};
use tare_arena::samples::{Sample, State};
use tare_profile::{Profile, Row, SeriesId, SeriesInfo, ThreadKind, TimeAxis, ValueKind};

/// Which clock the samples were taken by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    Cpu,
    Wall,
}

impl Clock {
    pub fn name(self) -> &'static str {
        match self {
            Clock::Cpu => "cpu",
            Clock::Wall => "wall",
        }
    }

    fn kind(self) -> ValueKind {
        match self {
            Clock::Cpu => ValueKind::CpuTime,
            Clock::Wall => ValueKind::WallTime,
        }
    }
}

/// What the stream has told of where threads were.
pub struct Samples {
    clock: Clock,
    /// Nanoseconds between two samples, as asked for.
    interval: u64,
    /// Samples whose stacks still wait for names.
    waiting: Vec<Sample>,
    series: Option<SeriesId>,
    /// The same values by state, where states are told.
    by_state: Vec<(State, SeriesId)>,
    /// Samples without any method that is to be shown.
    pub outside: u64,
    /// Samples of the JVM's own threads while they waited. By the wall clock they would be most of
    /// a profile, and nobody waits for them.
    pub skipped: u64,
}

impl Samples {
    pub fn new(clock: Clock, interval: u64) -> Self {
        Samples {
            clock,
            interval,
            waiting: Vec::new(),
            series: None,
            by_state: Vec::new(),
            outside: 0,
            skipped: 0,
        }
    }

    pub fn push(&mut self, sample: Sample) {
        self.waiting.push(sample);
    }

    fn info(&self, name: &str) -> SeriesInfo {
        SeriesInfo::new(name, self.clock.kind())
            .with_time(TimeAxis::Exact)
            .with_period(self.interval, self.clock.kind())
    }

    fn series(&mut self, profile: &mut Profile) -> SeriesId {
        let info = self.info(self.clock.name());
        *self.series.get_or_insert_with(|| profile.add_series(info))
    }

    fn state_series(&mut self, profile: &mut Profile, state: State) -> SeriesId {
        if let Some((_, series)) = self.by_state.iter().find(|(known, _)| *known == state) {
            return *series;
        }
        let name = state.name().replace(' ', "-");
        let series = profile.add_series(self.info(&name));
        self.by_state.push((state, series));
        series
    }
}

impl<A: Addresses> Collector<A> {
    /// Adds the samples whose stacks have all their names; with `last`, all of them.
    pub(super) fn add_samples(&mut self, profile: &mut Profile, last: bool) {
        let Some(mut samples) = self.samples.take() else { return };
        let series = samples.series(profile);
        for sample in std::mem::take(&mut samples.waiting) {
            let Some(place) = self.context(profile, sample.trace, last) else {
                samples.waiting.push(sample);
                continue;
            };
            let thread = self.thread_of(profile, sample.thread, sample.java_id, place.is_virtual);
            let active = matches!(sample.state, State::Running | State::Runnable);
            let of_jvm = profile.threads.get(thread).kind == ThreadKind::Vm;
            if samples.clock == Clock::Wall && of_jvm && !active {
                samples.skipped += 1;
                continue;
            }
            samples.outside += u64::from(place.is_outside);
            let value = i64::try_from(sample.weight).unwrap_or(i64::MAX);
            let time = sample.time.saturating_sub(self.zero);
            let row = Row::new(place.context, thread, value).at(time);
            profile.series_mut(series).push(row);
            if samples.clock == Clock::Wall {
                let series = samples.state_series(profile, sample.state);
                profile.series_mut(series).push(row);
            }
        }
        self.samples = Some(samples);
    }
}
