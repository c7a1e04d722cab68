//! The last minutes of a recording that has no end: values and events older than that are let go,
//! and what is left becomes a file when somebody asks for it.
//!
//! What lives is a sum over all times. Its older values are added up, as if all of it had come when
//! the last minutes began.

use crate::error::{Context, Result};
use crate::recorder::Source;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::time::{Duration, Instant};
use tare_profile::facts::keys;
use tare_profile::{
    ContextId, Event, EventTableId, FieldValue, Profile, Row, RunInfo, SeriesId, ThreadId,
    ValueKind,
};
use tare_recording::Writer;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

pub struct LastMinutes {
    /// How long a row is kept.
    span: Duration,
    profile: Profile,
    rows: VecDeque<(SeriesId, Row)>,
    /// The sums of values of what lives that are no longer kept. What is gone again is not there.
    lived: BTreeMap<(SeriesId, ContextId, ThreadId), i64>,
    /// Whatever lasted into the time that is kept.
    events: VecDeque<(EventTableId, Event, Box<[FieldValue]>)>,
    run: RunInfo,
    began: Instant,
    due: Instant,
}

impl LastMinutes {
    /// `began` is the zero of all times.
    pub fn begin(span: Duration, run: RunInfo, began: Instant) -> Self {
        let due = Instant::now() + INTERVAL;
        LastMinutes {
            span,
            profile: Profile::new(),
            rows: VecDeque::new(),
            lived: BTreeMap::new(),
            events: VecDeque::new(),
            run,
            began,
            due,
        }
    }

    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Takes what is new, and lets go of what is too old.
    pub fn look(&mut self, source: &mut dyn Source) -> Result<()> {
        let now = nanos(self.began.elapsed());
        self.due = Instant::now() + INTERVAL;
        source.look(&mut self.profile, now)?;
        let new = self.profile.all_series().flat_map(|(id, s)| s.rows().map(move |row| (id, row)));
        self.rows.extend(new);
        let new = self.profile.all_events().flat_map(|(id, table)| {
            let fields =
                |row| table.fields().iter().filter_map(move |field| field.get(row)).collect();
            table.events().enumerate().map(move |(row, event)| (id, event, fields(row)))
        });
        self.events.extend(new);
        self.profile.forget_rows();
        let oldest = now.saturating_sub(nanos(self.span));
        // Rows come nearly in order; one that is late goes a little later.
        while let Some((series, row)) = self.rows.front().copied().filter(|(_, r)| r.time < oldest)
        {
            self.rows.pop_front();
            self.let_go(series, row);
        }
        let is_over = |event: &Event| event.time.saturating_add(event.duration) < oldest;
        while self.events.front().is_some_and(|(_, event, _)| is_over(event)) {
            self.events.pop_front();
        }
        let mut run = RunInfo { duration: now, ..self.run.clone() };
        source.account(&mut run);
        self.profile.run = run;
        Ok(())
    }

    fn let_go(&mut self, series: SeriesId, row: Row) {
        let kind = &self.profile.series(series).info().kind;
        if !matches!(kind, ValueKind::LiveBytes | ValueKind::LiveObjects) {
            return;
        }
        let place = (series, row.context, row.thread);
        let sum = self.lived.entry(place).or_default();
        *sum = sum.saturating_add(row.value);
        if *sum == 0 {
            self.lived.remove(&place);
        }
    }

    /// Writes what is kept, and what `source` tells at an end; how many values and events are kept.
    pub fn write<W: Write>(&self, out: W, source: &dyn Source) -> Result<(usize, W)> {
        let doing = || "cannot write what is kept";
        // A new one, not a clone: its rows are counted from its own beginning.
        let mut profile = Profile::new();
        profile.run = self.profile.run.clone();
        profile.strings = self.profile.strings.clone();
        profile.methods = self.profile.methods.clone();
        profile.frames = self.profile.frames.clone();
        profile.contexts = self.profile.contexts.clone();
        profile.threads = self.profile.threads.clone();
        for (_, series) in self.profile.all_series() {
            profile.add_series(series.info().clone());
        }
        let now = profile.run.duration;
        let from = now.saturating_sub(nanos(self.span));
        for (&(series, context, thread), value) in &self.lived {
            profile.series_mut(series).push(Row::new(context, thread, *value).at(from));
        }
        for (series, row) in &self.rows {
            profile.series_mut(*series).push(*row);
        }
        for (_, table) in self.profile.all_events() {
            profile.events_of(table.kind());
        }
        for (table, event, fields) in &self.events {
            profile.events_mut(*table).push(*event, fields);
        }
        source.complete(&mut profile);
        profile.run.duration = now - from;
        let count = |is: fn(&ValueKind) -> bool| {
            let of_kind = profile.all_series().find(|(_, series)| is(&series.info().kind));
            of_kind.map(|(_, series)| (series.len() as u64, series.total()))
        };
        let samples = count(|kind| matches!(kind, ValueKind::CpuTime | ValueKind::WallTime));
        let objects = count(|kind| *kind == ValueKind::AllocatedObjects);
        // Sums over the whole session say nothing of what is kept.
        let facts = &mut profile.run.facts;
        facts.remove(keys::SAMPLER_TIME);
        facts.remove(keys::OVERRUNS);
        facts.remove(keys::PROCESS_CPU_TIME);
        if let Some((samples, weight)) = samples {
            let time = Duration::from_nanos(u64::try_from(weight).unwrap_or(0));
            facts.set(keys::SAMPLES, &samples);
            facts.set(keys::SAMPLED_TIME, &time);
        }
        facts.set_known(keys::ALLOCATION_SAMPLES, objects.map(|(samples, _)| samples));
        facts.set(keys::KEPT, &self.span);
        let out = Writer::new(out).with_context(doing)?.finish(&profile).with_context(doing)?;
        Ok((self.rows.len() + self.events.len(), out))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use tare_profile::{
        ContextId, EventKind, FieldType, SeriesInfo, ThreadId, TimeAxis, ValueKind,
    };
    use tare_recording::{LoadOptions, Recording};

    /// Gives one row at each look, as old as it says.
    struct Ages(Vec<u64>);

    impl Source for Ages {
        fn look(&mut self, profile: &mut Profile, now: u64) -> Result<()> {
            if profile.all_series().next().is_none() {
                let info = SeriesInfo::new("cpu", ValueKind::CpuTime).with_time(TimeAxis::Exact);
                profile.add_series(info);
            }
            if let Some(age) = self.0.pop() {
                let row = Row::new(ContextId::ROOT, ThreadId::UNKNOWN, 1).at(now - age);
                profile.series_mut(SeriesId::new(0)).push(row);
            }
            Ok(())
        }

        fn account(&self, run: &mut RunInfo) {
            run.facts.set(keys::ENGINE, &"test".to_owned());
        }
    }

    /// Waits for a lock that end at each look, as long ago and after as long as they say.
    struct Waits(Vec<(u64, u64)>);

    impl Source for Waits {
        fn look(&mut self, profile: &mut Profile, now: u64) -> Result<()> {
            let kind = EventKind::new("lock", &[("holder", FieldType::Context)]);
            // A kind without events stands before it, so that tables have to keep their numbers.
            profile.events_of(&EventKind::marker());
            let table = profile.events_of(&kind);
            let Some((age, duration)) = self.0.pop() else { return Ok(()) };
            let frame = profile.special(&format!("[held for {duration}]"));
            let holder = FieldValue::Context(profile.contexts.stack([frame]));
            let event = Event { time: now - age - duration, duration, ..Event::default() };
            profile.events_mut(table).push(event, &[holder]);
            Ok(())
        }

        fn account(&self, _run: &mut RunInfo) {}
    }

    #[test]
    fn events_are_kept_as_long_as_values() {
        let hour = Duration::from_secs(3600);
        let began = Instant::now().checked_sub(3 * hour).unwrap();
        let mut last = LastMinutes::begin(hour, RunInfo::default(), began);
        let (short, long) = (nanos(hour / 100), nanos(hour));
        // Over before what is kept; begun before it; within it.
        let waits = [(nanos(hour * 3 / 2), short), (nanos(hour / 2), long), (0, short)];
        let mut waits = Waits(waits.into_iter().rev().collect());
        for _ in 0..3 {
            last.look(&mut waits).unwrap();
        }
        let path = std::env::temp_dir().join(format!("tare-kept-{}.tare", std::process::id()));
        assert_eq!(last.write(File::create(&path).unwrap(), &waits).unwrap().0, 2);
        let profile =
            Recording::open(&path).unwrap().load(&LoadOptions::default()).unwrap().profile;
        let (_, table) = profile.all_events().find(|(_, table)| !table.is_empty()).unwrap();
        let holders: Vec<_> = (0..table.len())
            .filter_map(|row| match table.field(row, 0)? {
                FieldValue::Context(holder) => profile.innermost_name(holder),
                _ => None,
            })
            .collect();
        assert_eq!(holders, [long, short].map(|length| format!("[held for {length}]")));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn only_the_last_minutes_are_kept() {
        let hour = Duration::from_secs(3600);
        let began = Instant::now().checked_sub(2 * hour).unwrap();
        let mut last = LastMinutes::begin(hour, RunInfo::default(), began);
        let mut ages = Ages([0, nanos(hour / 2), nanos(hour * 3 / 2)].into());
        for _ in 0..3 {
            last.look(&mut ages).unwrap();
        }
        let path = std::env::temp_dir().join(format!("tare-keep-{}.tare", std::process::id()));
        assert_eq!(last.write(File::create(&path).unwrap(), &ages).unwrap().0, 2);
        // A dump ends nothing.
        last.look(&mut ages).unwrap();
        assert_eq!(last.write(File::create(&path).unwrap(), &ages).unwrap().0, 2);
        let profile =
            Recording::open(&path).unwrap().load(&LoadOptions::default()).unwrap().profile;
        assert_eq!(profile.all_series().next().map(|(_, series)| series.total()), Some(2));
        assert_eq!(profile.run.duration, nanos(hour));
        std::fs::remove_file(&path).unwrap();
    }
    /// Objects that come to live and go, so long ago, in a context each.
    struct Lives(Vec<(u64, u32, i64)>);

    impl Source for Lives {
        fn look(&mut self, profile: &mut Profile, now: u64) -> Result<()> {
            if profile.all_series().next().is_none() {
                for kind in [ValueKind::AllocatedObjects, ValueKind::LiveObjects] {
                    profile.add_series(SeriesInfo::new("x", kind).with_time(TimeAxis::Exact));
                }
                for n in 1..=3 {
                    let frame = profile.special(&format!("[{n}]"));
                    profile.contexts.stack([frame]);
                }
            }
            if let Some((age, context, value)) = self.0.pop() {
                let row = Row::new(ContextId::new(context), ThreadId::UNKNOWN, value).at(now - age);
                profile.series_mut(SeriesId::new(0)).push(row);
                profile.series_mut(SeriesId::new(1)).push(row);
            }
            Ok(())
        }

        fn account(&self, _run: &mut RunInfo) {}

        fn complete(&self, profile: &mut Profile) {
            let table = profile.events_of(&EventKind::gap());
            profile.events_mut(table).push(Event::default(), &[FieldValue::Integer(7)]);
        }
    }

    #[test]
    fn what_lives_is_kept_as_a_sum_however_old_it_is() {
        let hour = Duration::from_secs(3600);
        let began = Instant::now().checked_sub(9 * hour).unwrap();
        let mut last = LastMinutes::begin(hour, RunInfo::default(), began);
        let long_ago = |hours: u32| nanos(hour * hours);
        let changes = [
            (long_ago(8), 1, 5),
            (long_ago(7), 1, 3),
            (long_ago(6), 2, 4),
            (long_ago(5), 2, -4),
            (long_ago(4), 3, 6),
            (long_ago(0), 3, -6),
            (long_ago(0), 1, -3),
        ];
        let mut lives = Lives(changes.into_iter().rev().collect());
        for _ in 0..changes.len() {
            last.look(&mut lives).unwrap();
        }
        assert_eq!(last.lived.len(), 2, "what came and went is not kept");
        let path = std::env::temp_dir().join(format!("tare-lived-{}.tare", std::process::id()));
        last.write(File::create(&path).unwrap(), &lives).unwrap();
        let profile =
            Recording::open(&path).unwrap().load(&LoadOptions::default()).unwrap().profile;
        let [allocated, live] = [0, 1].map(|n| profile.series(SeriesId::new(n)));
        assert_eq!((allocated.len(), allocated.total()), (2, -9), "older values are let go");
        let from = profile.run.duration.max(live.row(0).unwrap().time);
        let rows: Vec<(u32, i64)> = live.rows().map(|row| (row.context.raw(), row.value)).collect();
        assert_eq!(rows, [(1, 8), (3, 6), (3, -6), (1, -3)]);
        assert!(live.rows().take(2).all(|row| row.time == from), "when the last minutes begin");
        let added = profile.all_events().find(|(_, table)| !table.is_empty()).map(|(_, t)| t.len());
        assert_eq!(added, Some(1), "what is told at an end");
        std::fs::remove_file(&path).unwrap();
    }
}
