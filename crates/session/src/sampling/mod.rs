//! A sampling session seen from outside: its stream drained, its samples made into a profile, its
//! account of what was asked, got, failed and lost.
//!
//! The agent's side, and what a sample is, is described in `tare-arena` (LAYOUT.md); the file that
//! a recording becomes is the recorder's business.

mod collect;
mod probes;

pub use collect::{Clock, Fitting};
pub use probes::{DEPTH as PROBE_DEPTH, ProbeSamples, Taken};

use crate::error::Result;
use crate::origins::Origins;
use crate::recorder::Source;
use collect::Collector;
use std::fs::File;
use std::time::Duration;
use tare_arena::samples::{Counter, Record, Special, Stream, Totals};
use tare_attach::Jvm;
use tare_profile::facts::keys;
use tare_profile::{LossKind, Profile, RunInfo};
use tare_protocol::SampleStatus;
use tare_symbols::{Ahead, Symbols};

/// How often the stream is drained: the JVM keeps what was not, in a ring.
pub const DRAIN: Duration = Duration::from_millis(50);

/// A session that is under way, or has just ended.
pub struct Sampling {
    stream: Stream,
    /// Drained, and not yet in the profile.
    records: Vec<Record>,
    collector: Collector<Symbols>,
    clock: Clock,
    /// What the stream's header said at the last look.
    pub totals: Totals,
    /// What the agent said of the session when it was last asked.
    pub status: SampleStatus,
    /// Set before the last look: nothing more will come.
    over: bool,
    /// The stream could not be read to its end.
    broken: Option<String>,
}

impl Sampling {
    /// `files` are the descriptors that came with the start of the session in this JVM; `kernel`,
    /// its names if somebody reads them already.
    pub fn new(
        files: [File; 2],
        jvm: &Jvm,
        status: SampleStatus,
        kernel: Option<Ahead>,
    ) -> Result<Self> {
        let stream = Stream::new(files)?;
        let totals = stream.totals()?;
        let clock = if status.wall { Clock::Wall } else { Clock::Cpu };
        let mut symbols = Symbols::of(jvm.pid).with_kernel(kernel);
        // A program may end before anybody asks for a name.
        symbols.open_all();
        let collector = Collector::new(clock, status.interval_ns, totals.started, symbols)
            .with_origins(Origins::of(jvm));
        let records = Vec::new();
        Ok(Sampling {
            stream,
            records,
            collector,
            clock,
            totals,
            status,
            over: false,
            broken: None,
        })
    }

    /// Shows only methods that fit, of a session that has just begun.
    #[must_use]
    pub fn showing(mut self, fitting: Fitting) -> Self {
        self.collector.show_only(fitting);
        self
    }

    /// Samples without any method that fits, of those that were looked at.
    pub fn outside(&self) -> u64 {
        self.collector.samples_outside
    }

    /// Takes what has come, so that there is room for more. Whether the session still goes on.
    pub fn drain(&mut self) -> bool {
        let records = &mut self.records;
        if let Err(error) = self.stream.drain(|record| records.push(record)) {
            self.broken.get_or_insert_with(|| error.to_string());
            return false;
        }
        match self.stream.totals() {
            Ok(totals) => self.totals = totals,
            Err(error) => {
                self.broken.get_or_insert_with(|| error.to_string());
            }
        }
        !self.totals.ended && self.broken.is_none()
    }

    /// Takes the last that has come, once the session or its JVM has ended.
    pub fn end(&mut self) {
        self.drain();
        let records = &mut self.records;
        if let Err(error) = self.stream.drain_rest(|record| records.push(record)) {
            self.broken.get_or_insert_with(|| error.to_string());
        }
        self.over = true;
    }

    pub fn samples(&self) -> u64 {
        self.totals.get(Counter::Samples)
    }

    /// Samples that were taken and could not be kept.
    pub fn lost(&self) -> u64 {
        LOST.iter().map(|counter| self.totals.get(*counter)).sum()
    }

    /// The time of the JVM that was sampled.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.totals.seen.saturating_sub(self.totals.started))
    }

    /// How far apart samples of a busy thread truly were.
    fn interval_got(&self) -> Option<u64> {
        self.totals.get(Counter::Weight).checked_div(self.samples())
    }
}

const LOST: [Counter; 3] = [Counter::LostRing, Counter::LostBuffer, Counter::LostThread];

impl Source for Sampling {
    fn look(&mut self, profile: &mut Profile, _now: u64) -> Result<()> {
        if !self.over {
            self.drain();
        }
        let records = std::mem::take(&mut self.records);
        self.collector.add(profile, records, self.over);
        Ok(())
    }

    fn account(&self, run: &mut RunInfo) {
        let totals = &self.totals;
        let time = |counter| Duration::from_nanos(totals.get(counter));
        let facts = &mut run.facts;
        let engine = self.status.engine.map_or("unknown".to_owned(), |e| e.to_string());
        facts.set(keys::ENGINE, &engine);
        facts.set(keys::INTERVAL, &Duration::from_nanos(totals.interval));
        facts.set(keys::SAMPLES, &self.samples());
        facts.set(keys::SAMPLED_TIME, &time(Counter::Weight));
        facts.set(keys::OVERRUNS, &totals.get(Counter::Overruns));
        facts.set(keys::THREADS_SAMPLED, &totals.get(Counter::ThreadsSeen));
        facts.set(keys::PROCESS_CPU_TIME, &Duration::from_nanos(totals.cpu));
        match self.clock {
            Clock::Cpu => {
                facts.set(keys::CLOCK, &"cpu".to_owned());
                facts.set(keys::SAMPLER_TIME, &time(Counter::Own));
                // An idle thread has one sample for a long time, which says nothing of the timers.
                let got = self.interval_got().map(Duration::from_nanos);
                facts.set_known(keys::INTERVAL_GOT, got);
            }
            Clock::Wall => {
                facts.set(keys::CLOCK, &"wall".to_owned());
                facts.set(keys::IDLE_SAMPLES, &totals.get(Counter::Unchanged));
            }
        }
        let outside = Some(self.outside()).filter(|outside| *outside > 0);
        facts.set_known(keys::UNMATCHED_SAMPLES, outside);
        facts.set(keys::NOTES, &self.status.notes);
        let mut lose = |kind, what: &str, count, reason: &str| {
            if count > 0 {
                run.lose(kind, what, count, reason);
            }
        };
        for special in Special::ALL {
            lose(LossKind::Failed, "stacks", totals.failures(*special), special.name());
        }
        for counter in LOST {
            let reason = counter.name().trim_start_matches("lost: ");
            lose(LossKind::Dropped, "samples", totals.get(counter), reason);
        }
        let events = totals.get(Counter::LostEvents);
        lose(LossKind::Dropped, "events", events, "the front end reads too slowly");
        let refused = totals.get(Counter::ThreadsRefused);
        lose(
            LossKind::Skipped,
            "threads",
            refused,
            "they could not be watched; a limit of the process, or they ended at once",
        );
        lose(
            LossKind::Failed,
            "methods",
            totals.get(Counter::Unproven),
            "what was read from a stack as a method is none that the JVM knows; it has no name",
        );
        lose(
            LossKind::Skipped,
            "samples",
            self.collector.skipped,
            "threads of the JVM itself that only wait are left out",
        );
        if let Some(error) = &self.broken {
            lose(LossKind::Damaged, "streams", 1, error);
        }
        self.collector.account(run);
    }
}

/// `10 ms`, `1.02 ms`, `100 µs`.
pub fn interval(nanos: u64) -> String {
    let (number, unit) = match nanos {
        0..1_000_000 => (nanos as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    let text = format!("{number:.2}");
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_short_to_read() {
        for (nanos, text) in [
            (10_000_000, "10 ms"),
            (1_020_000, "1.02 ms"),
            (100_000, "100 µs"),
            (4_000_123, "4 ms"),
            (2_000_000_000, "2 s"),
            (0, "0 µs"),
        ] {
            assert_eq!(interval(nanos), text);
        }
    }
}
