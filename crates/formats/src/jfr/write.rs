//! A profile as JFR chunks: in each events first, then the constants that they name, then metadata.
//!
//! Times of our samples go into events of our own, which hold them to the nanosecond. What other
//! tools know are `jdk.ExecutionSample`s, and count: so there is one besides for every period of a
//! sample. A setting tells our reader that they are the same once more.

use super::schema::{
    self, ACTIVE_RECORDING, ACTIVE_SETTING, ALLOCATION_SAMPLE, CPU_TIME_SAMPLE, EXECUTION_SAMPLE,
    JVM_INFORMATION, NATIVE_METHOD_SAMPLE, OWN_VALUE,
};
use super::track::Track;
use super::{DERIVED_FROM, HEADER, MAGIC, locks};
use crate::error::WriteError;
use crate::jfr::constants::Constants;
use crate::sampled::{is_sampled_time, states_of};
use crate::select::estimate_name;
use std::io::Write;
use tare_profile::{Profile, Row, Series, SeriesId, SeriesInfo, Unit, ValueKind};

/// A sample of the JDK's counts as one, so a value of n takes n events. A series that would take
/// more than this goes into events of our own, which hold a value.
const MAX_SAMPLES: i64 = 20_000_000;

/// A chunk that has grown to this is written, and another begun: no more is held in memory.
const CHUNK: usize = 16 << 20;

/// Bytes of a chunk in the making.
#[derive(Default)]
pub struct Encoder(Vec<u8>);

impl Encoder {
    pub fn long(&mut self, value: i64) {
        let mut value = value as u64;
        for _ in 0..8 {
            if value < 0x80 {
                return self.0.push(value as u8);
            }
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn int(&mut self, value: i32) {
        self.long(i64::from(value as u32));
    }

    pub fn flag(&mut self, value: bool) {
        self.0.push(u8::from(value));
    }

    pub fn text(&mut self, text: &str) {
        // There is a shorter way to write an empty text, which not every reader knows.
        self.0.push(3);
        self.int(text.len() as i32);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub fn append(&mut self, other: &Encoder) {
        self.0.extend_from_slice(&other.0);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends an event, whose size stands before it in four bytes.
    fn event(&mut self, event: &Encoder) -> Result<(), WriteError> {
        let size = event.len() + 4;
        if size >= 1 << 28 {
            return Err(WriteError::TooLarge { format: super::FORMAT, what: "constants" });
        }
        let bytes = [size | 0x80, size >> 7 | 0x80, size >> 14 | 0x80, size >> 21 & 0x7f];
        self.0.extend(bytes.map(|byte| byte as u8));
        self.append(event);
        Ok(())
    }
}

pub fn write(profile: &Profile, default: SeriesId, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut allocation = false;
    let of_waits = locks::derived(profile);
    let targets: Vec<(&Series, Target)> = profile
        .all_series()
        .map(|(id, s)| (s, event_of(s, id == default, of_waits(s), &mut allocation)))
        .collect();
    let taken = targets.iter().any(|(_, target)| matches!(target, Target::Event(EXECUTION_SAMPLE)));
    let mut writer = Writer {
        profile,
        derived: if taken { None } else { derived(profile, default) },
        interval: targets.iter().find_map(|(series, target)| match target {
            Target::Event(ALLOCATION_SAMPLE) => Some(series.info().period).filter(|p| *p > 0),
            _ => None,
        }),
        duration: duration(profile),
        constants: Constants::new(profile),
        chunk: Encoder(vec![0; HEADER]),
        event: Encoder::default(),
        out,
    };
    writer.write_run()?;
    for (series, target) in targets {
        match target {
            Target::Event(event) => writer.write_samples(event, series)?,
            Target::Derived => {}
            Target::Own => writer.write_own(series)?,
        }
    }
    writer.write_derived()?;
    for (_, table) in profile.all_events() {
        match table.kind().name.as_str() {
            "lock" => writer.write_locks(table)?,
            "task" => writer.write_tasks(table)?,
            "survivor" => writer.write_survivors(table)?,
            _ => {}
        }
    }
    writer.write_collections()?;
    writer.write_safepoints()?;
    writer.write_comings()?;
    writer.finish_chunk()
}

fn write_header(profile: &Profile, duration: u64, chunk: &mut [u8], pools: usize, metadata: usize) {
    let size = chunk.len() as u64;
    chunk[..4].copy_from_slice(MAGIC);
    // Version 2.1.
    chunk[4..8].copy_from_slice(&[0, 2, 0, 1]);
    let started = profile.run.started.unwrap_or(0) as u64;
    let numbers = [size, pools as u64, metadata as u64, started, duration, 0, 1_000_000_000];
    for (place, number) in chunk[8..64].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    // A finished chunk, the last of its file, with compressed numbers.
    chunk[64..68].copy_from_slice(&[0, 0, 0, 3]);
}

/// The run's length, or the moment of the last event if that is later.
fn duration(profile: &Profile) -> u64 {
    let rows = profile.all_series().flat_map(|(_, series)| series.rows().map(|row| row.time));
    let events = profile.all_events().flat_map(|(_, table)| {
        table.events().map(|event| event.time.saturating_add(event.duration))
    });
    rows.chain(events).max().unwrap_or(0).saturating_add(1).max(profile.run.duration)
}

enum Target {
    Event(i64),
    /// Lock events bring it along.
    Derived,
    Own,
}

fn event_of(series: &Series, default: bool, of_waits: bool, allocation: &mut bool) -> Target {
    let SeriesInfo { name, kind, .. } = series.info();
    let measured = estimate_name(series.info().estimate).is_empty();
    let track = Track::named(name);
    let plain = || series.total() <= MAX_SAMPLES && series.rows().all(|row| row.value > 0);
    match kind {
        ValueKind::Samples if measured && plain() => match track {
            Some(Track::NativeMethod) => Target::Event(NATIVE_METHOD_SAMPLE),
            Some(Track::CpuTime) => Target::Event(CPU_TIME_SAMPLE),
            Some(Track::Execution) => Target::Event(EXECUTION_SAMPLE),
            _ if default => Target::Event(EXECUTION_SAMPLE),
            _ => Target::Own,
        },
        ValueKind::AllocatedBytes if measured && !*allocation => {
            *allocation = true;
            Target::Event(ALLOCATION_SAMPLE)
        }
        _ if of_waits => Target::Derived,
        _ => Target::Own,
    }
}

/// The samples of time that go into the JDK's events besides: the series, and its parts by the
/// states of threads, if there are some.
struct DerivedSamples {
    whole: SeriesId,
    parts: Vec<SeriesId>,
}

fn derived(profile: &Profile, default: SeriesId) -> Option<DerivedSamples> {
    let sampled = |id: &SeriesId| is_sampled_time(profile.series(*id));
    let others = profile.all_series().map(|(id, _)| id);
    let whole = std::iter::once(default).chain(others).find(sampled)?;
    let mut parts = states_of(profile, whole);
    if parts.is_empty() {
        parts.push(whole);
    }
    let series = profile.series(whole);
    let few = Periods::new(series.info().period).take(series.total()) <= MAX_SAMPLES;
    few.then_some(DerivedSamples { whole, parts })
}

/// Turns values into whole periods. What one value leaves over counts for the next: so all together
/// are as many as their sum is, to half a period, however small or odd each is.
struct Periods {
    period: i64,
    open: i64,
}

impl Periods {
    fn new(period: u64) -> Self {
        let period = i64::try_from(period).unwrap_or(i64::MAX).max(1);
        Periods { period, open: period / 2 }
    }

    fn take(&mut self, value: i64) -> i64 {
        self.open = self.open.saturating_add(value.max(0));
        let whole = self.open / self.period;
        self.open %= self.period;
        whole
    }
}

pub(super) struct Writer<'p, 'o> {
    pub(super) profile: &'p Profile,
    derived: Option<DerivedSamples>,
    /// Bytes from one sample of allocation to the next.
    interval: Option<u64>,
    pub(super) duration: u64,
    pub(super) constants: Constants<'p>,
    chunk: Encoder,
    /// The event in the making, to save an allocation for each.
    pub(super) event: Encoder,
    out: &'o mut dyn Write,
}

impl Writer<'_, '_> {
    pub(super) fn begin(&mut self, event: i64, time: u64) {
        self.event.clear();
        self.event.long(event);
        self.event.long(i64::try_from(time).unwrap_or(i64::MAX));
    }

    pub(super) fn end(&mut self) -> Result<(), WriteError> {
        self.end_many(1)
    }

    /// Appends the event so many times, and begins another chunk if this one is large enough.
    fn end_many(&mut self, count: i64) -> Result<(), WriteError> {
        for _ in 0..count {
            self.chunk.event(&self.event)?;
        }
        if self.chunk.len() + self.constants.len() > CHUNK {
            self.finish_chunk()?;
            self.write_run()?;
        }
        Ok(())
    }

    fn finish_chunk(&mut self) -> Result<(), WriteError> {
        let mut chunk = std::mem::replace(&mut self.chunk, Encoder(vec![0; HEADER]));
        let constants = std::mem::replace(&mut self.constants, Constants::new(self.profile));
        let pools = chunk.len();
        chunk.event(&constants.encode())?;
        let metadata = chunk.len();
        chunk.event(&schema::metadata())?;
        write_header(self.profile, self.duration, &mut chunk.0, pools, metadata);
        self.out.write_all(&chunk.0)?;
        Ok(())
    }

    fn write_run(&mut self) -> Result<(), WriteError> {
        let run = &self.profile.run;
        self.begin(ACTIVE_RECORDING, 0);
        self.event.long(i64::try_from(self.duration).unwrap_or(i64::MAX));
        self.event.long(1);
        self.event.text(if run.tool.is_empty() { "tare" } else { &run.tool });
        self.end()?;
        if let Some(derived) = &self.derived {
            let named = |id: SeriesId| self.profile.series(id).info().name.clone();
            let mut names = vec![named(derived.whole)];
            names.extend(
                derived.parts.iter().filter(|id| **id != derived.whole).map(|id| named(*id)),
            );
            let period = self.profile.series(derived.whole).info().period;
            let settings = [("period", format!("{period} ns")), (DERIVED_FROM, names.join(","))];
            for (name, value) in settings {
                self.write_setting(EXECUTION_SAMPLE, name, &value)?;
            }
        }
        if let Some(bytes) = self.interval {
            self.write_setting(ALLOCATION_SAMPLE, "period", &format!("{bytes} B"))?;
        }
        if run.jdk.is_empty() && run.vm.is_empty() && run.command_line.is_empty() {
            return Ok(());
        }
        self.begin(JVM_INFORMATION, 0);
        self.event.text(&run.vm);
        self.event.text(&run.jdk);
        // The JDK parts a command line before the main class.
        let main = run.command_line.iter().position(|word| *word == run.main_class);
        let (before, after) = run.command_line.split_at(main.unwrap_or(0));
        self.event.text(&before.get(1..).unwrap_or_default().join(" "));
        self.event.text(&run.flags.join(" "));
        self.event.text(&after.join(" "));
        self.event.long(i64::from(run.pid.unwrap_or(0)));
        self.end()
    }

    fn write_setting(&mut self, of: i64, name: &str, value: &str) -> Result<(), WriteError> {
        self.begin(ACTIVE_SETTING, 0);
        self.event.long(of);
        self.event.text(name);
        self.event.text(value);
        self.end()
    }

    fn write_samples(&mut self, event: i64, series: &Series) -> Result<(), WriteError> {
        let period = series.info().period;
        for Row { context, thread, time, value } in series.rows() {
            self.begin(event, time);
            let thread = self.constants.thread(thread);
            let mut count = value;
            match event {
                ALLOCATION_SAMPLE => {
                    let (class, context) = self.constants.split_class(context);
                    let stack = self.constants.stack(context);
                    [thread, stack, class, value].into_iter().for_each(|n| self.event.long(n));
                    count = 1;
                }
                CPU_TIME_SAMPLE => {
                    let stack = self.constants.stack(context);
                    self.event.long(stack);
                    self.event.long(thread);
                    self.event.flag(false);
                    self.event.long(i64::try_from(period).unwrap_or(0));
                    self.event.flag(false);
                }
                _ => {
                    let (stack, state) =
                        (self.constants.stack(context), self.constants.state("running"));
                    [thread, stack, state].into_iter().for_each(|n| self.event.long(n));
                }
            }
            self.end_many(count)?;
        }
        Ok(())
    }

    fn write_derived(&mut self) -> Result<(), WriteError> {
        let Some(DerivedSamples { parts, .. }) = &self.derived else { return Ok(()) };
        let profile = self.profile;
        let Some(first) = parts.first() else { return Ok(()) };
        let mut periods = Periods::new(profile.series(*first).info().period);
        for series in parts.clone().into_iter().map(|id| profile.series(id)) {
            let info = series.info();
            for Row { context, thread, time, value } in series.rows() {
                self.begin(EXECUTION_SAMPLE, time);
                let (thread, stack) =
                    (self.constants.thread(thread), self.constants.stack(context));
                let state = self.constants.state(&info.name);
                [thread, stack, state].into_iter().for_each(|n| self.event.long(n));
                self.end_many(periods.take(value))?;
            }
        }
        Ok(())
    }

    fn write_own(&mut self, series: &Series) -> Result<(), WriteError> {
        let info = series.info();
        let unit = match info.kind.unit() {
            Unit::Count => "count",
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
        };
        let estimate = estimate_name(info.estimate);
        for Row { context, thread, time, value } in series.rows() {
            self.begin(OWN_VALUE, time);
            let (thread, stack) = (self.constants.thread(thread), self.constants.stack(context));
            self.event.long(thread);
            self.event.long(stack);
            for text in [&info.name, info.kind.name(), unit, estimate] {
                self.event.text(text);
            }
            self.event.long(value);
            self.end()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cursor::Cursor;
    use super::*;

    #[test]
    fn periods_add_up_to_the_whole() {
        for values in [vec![14; 50], vec![3; 1000], vec![10, 20, 10], vec![7, 94, 1, 38], vec![]] {
            let mut periods = Periods::new(10);
            let events: i64 = values.iter().map(|value| periods.take(*value)).sum();
            let total: i64 = values.iter().sum();
            assert!((events * 10 - total).abs() <= 5, "{events} for {values:?}");
        }
        assert_eq!(Periods::new(10).take(-5), 0);
        assert_eq!(Periods::new(0).take(7), 7);
    }

    #[test]
    fn numbers_are_read_as_written() {
        let all = [0, 1, 127, 128, 16_383, 1 << 55, 1 << 56, i64::MAX, -1, i64::MIN];
        let mut encoder = Encoder::default();
        all.into_iter().for_each(|number| encoder.long(number));
        encoder.int(-1);
        let mut cursor = Cursor::new(&encoder.0, 0, true);
        for number in all {
            assert_eq!(cursor.long().unwrap(), number);
        }
        assert_eq!(cursor.int().unwrap(), -1);
    }
}
