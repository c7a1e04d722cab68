//! The last minutes of a recording that has no end: rows older than that are let go, and what is left
//! becomes a file when somebody asks for it.

use crate::error::{Context, Result};
use crate::recorder::Source;
use crate::words;
use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};
use tare_analysis::OWN;
use tare_profile::{Profile, Row, RunInfo, SeriesId};
use tare_recording::Writer;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

pub struct LastMinutes {
    /// How long a row is kept.
    span: Duration,
    profile: Profile,
    rows: VecDeque<(SeriesId, Row)>,
    run: RunInfo,
    began: Instant,
    due: Instant,
}

impl LastMinutes {
    /// `began` is the zero of all times.
    pub fn begin(span: Duration, run: RunInfo, began: Instant) -> Self {
        let due = Instant::now() + INTERVAL;
        LastMinutes { span, profile: Profile::new(), rows: VecDeque::new(), run, began, due }
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
        self.profile.forget_rows();
        let oldest = now.saturating_sub(nanos(self.span));
        // Rows come nearly in order; one that is late goes a little later.
        while self.rows.front().is_some_and(|(_, row)| row.time < oldest) {
            self.rows.pop_front();
        }
        let mut run = RunInfo { duration: now, ..self.run.clone() };
        source.account(&mut run);
        self.profile.run = run;
        Ok(())
    }

    /// Writes what is kept; how many rows, and bytes of file.
    pub fn write<W: Write>(&self, out: W) -> Result<(usize, W)> {
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
        for (series, row) in &self.rows {
            profile.series_mut(*series).push(*row);
        }
        let now = profile.run.duration;
        let from = now.saturating_sub(nanos(self.span));
        profile.run.duration = now - from;
        // Sums over the whole session say nothing of what is kept.
        let whole =
            ["samples", "weight", OWN, "overruns", "sampled CPU time", "CPU time of the process"];
        profile.run.options.retain(|(key, _)| !whole.contains(&key.as_str()));
        let (samples, weight) =
            profile.all_series().next().map_or((0, 0), |(_, s)| (s.len(), s.total()));
        for (key, value) in [
            ("samples", samples.to_string()),
            ("weight", weight.to_string()),
            ("kept", words::time(self.span)),
        ] {
            profile.run.options.push((key.to_owned(), value));
        }
        let out = Writer::new(out).with_context(doing)?.finish(&profile).with_context(doing)?;
        Ok((self.rows.len(), out))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use tare_profile::{ContextId, SeriesInfo, ThreadId, TimeAxis, ValueKind};
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
            run.options.push(("engine".to_owned(), "test".to_owned()));
        }
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
        assert_eq!(last.write(File::create(&path).unwrap()).unwrap().0, 2);
        // A dump ends nothing.
        last.look(&mut ages).unwrap();
        assert_eq!(last.write(File::create(&path).unwrap()).unwrap().0, 2);
        let profile =
            Recording::open(&path).unwrap().load(&LoadOptions::default()).unwrap().profile;
        assert_eq!(profile.all_series().next().map(|(_, series)| series.total()), Some(2));
        assert_eq!(profile.run.duration, nanos(hour));
        std::fs::remove_file(&path).unwrap();
    }
}
