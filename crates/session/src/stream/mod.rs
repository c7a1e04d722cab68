//! The stream of a JVM seen from outside: drained, its samples and objects made into a profile, and
//! an account of what was asked, got, failed and lost.
//!
//! The agent's side, and what a record is, is described in `tare-arena` (LAYOUT.md); the file that
//! a recording becomes is the recorder's business.

mod accounts;
mod collect;
mod pauses;
mod probes;
mod untrusted;
mod watched;

pub use collect::{Clock, Fitting};
pub use pauses::Pauses;
pub use probes::{DEPTH as PROBE_DEPTH, ProbeSamples, Taken};
pub use untrusted::untrusted_profile;
pub use watched::Watched;

use crate::error::Result;
use crate::origins::Origins;
use crate::recorder::Source;
use crate::words;
use accounts::lose;
use collect::{Allocation, Classes, Collector, JniRefs, Locks, Samples};
use std::fs::File;
use std::time::Duration;
use tare_arena::samples::{Counter, Record, Special, Stream, Totals};
use tare_attach::Jvm;
use tare_profile::facts::keys;
use tare_profile::{LossKind, Profile, RunInfo};
use tare_protocol::{AllocStatus, ClassStatus, JniRefsStatus, LockStatus, SampleStatus, Status};
use tare_symbols::{Ahead, Symbols};

/// How often the stream is drained: the JVM keeps what was not, in a ring.
pub const DRAIN: Duration = Duration::from_millis(50);

/// What every stream tells, whatever its engines are.
const PAUSES: [&str; 4] = ["gc", "safepoint", "compilers", "uncommon-traps"];

/// What the agent said of its engines when it was last asked.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub samples: Option<SampleStatus>,
    pub alloc: Option<AllocStatus>,
    pub locks: Option<LockStatus>,
    pub classes: Option<ClassStatus>,
    pub jni_refs: Option<JniRefsStatus>,
}

impl Told {
    /// What is no longer on keeps its last word.
    pub fn update(&mut self, status: &Status) {
        self.samples = status.sampling().cloned().or(self.samples.take());
        self.alloc = status.alloc().cloned().or(self.alloc.take());
        self.locks = status.locks().cloned().or(self.locks.take());
        self.classes = status.classes().cloned().or(self.classes.take());
        self.jni_refs = status.jni_refs().cloned().or(self.jni_refs.take());
    }

    /// Each once: engines on one stream may say the same.
    pub fn notes(&self) -> Vec<String> {
        let samples = self.samples.iter().flat_map(|status| &status.notes);
        let alloc = self.alloc.iter().flat_map(|status| &status.notes);
        let locks = self.locks.iter().flat_map(|status| &status.notes);
        let classes = self.classes.iter().flat_map(|status| &status.notes);
        let refs = self.jni_refs.iter().flat_map(|status| &status.notes);
        let mut notes: Vec<String> = Vec::new();
        for note in samples.chain(alloc).chain(locks).chain(classes).chain(refs) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        notes
    }
}

/// The engines of a stream that is under way, or has just ended.
pub struct StreamSource {
    stream: Stream,
    /// Drained, and not yet in the profile.
    records: Vec<Record>,
    collector: Collector<Symbols>,
    clock: Option<Clock>,
    /// What the stream's header said at the last look.
    pub totals: Totals,
    pub told: Told,
    /// What began later than the recording.
    later: Vec<String>,
    /// Set before the last look: nothing more will come.
    over: bool,
    /// The stream could not be read to its end.
    broken: Option<String>,
}

impl StreamSource {
    /// `files` are the descriptors that came with the start of the first engine in this JVM, and
    /// `told` has what all of them were asked for; `kernel`, its names if somebody reads them
    /// already.
    pub fn new(files: [File; 2], jvm: &Jvm, told: Told, kernel: Option<Ahead>) -> Result<Self> {
        let stream = Stream::new(files)?;
        let totals = stream.totals()?;
        let clock = told.samples.as_ref().map(|s| if s.wall { Clock::Wall } else { Clock::Cpu });
        let interval = told.samples.as_ref().map_or(0, |status| status.interval_ns);
        let mut symbols = Symbols::of(jvm.pid).with_kernel(kernel);
        // A program may end before anybody asks for a name.
        symbols.open_all();
        let samples = clock.map(|clock| Samples::new(clock, interval));
        let alloc = told.alloc.as_ref().map(|a| Allocation::new(a.interval_bytes, a.live));
        let locks = told.locks.as_ref().map(|_| Locks::default());
        let classes = told.classes.as_ref().map(|_| Classes::default());
        let collector = Collector::new(samples, alloc, totals.started, symbols)
            .with_locks(locks)
            .with_classes(classes)
            .with_jni_refs(told.jni_refs.as_ref().map(|_| JniRefs::default()))
            .with_origins(Origins::of(jvm));
        let records = Vec::new();
        Ok(StreamSource {
            stream,
            records,
            collector,
            clock,
            totals,
            told,
            later: Vec::new(),
            over: false,
            broken: None,
        })
    }

    /// Takes what an engine tells that was started later on the same stream.
    pub fn takes_in(&mut self, status: &Status) {
        self.told.update(status);
        let since = words::time(self.elapsed());
        let (told, collector) = (&self.told, &mut self.collector);
        let mut begins = |what: &str| self.later.push(format!("{what} only since {since}"));
        if let (None, Some(alloc)) = (&collector.allocation, &told.alloc) {
            collector.allocation = Some(Allocation::new(alloc.interval_bytes, alloc.live));
            begins("allocation was sampled");
        }
        if collector.locks.is_none() && told.locks.is_some() {
            collector.locks = Some(Locks::default());
            begins("waits for locks were recorded");
        }
        if collector.classes.is_none() && told.classes.is_some() {
            collector.classes = Some(Classes::default());
            begins("classes were recorded");
        }
        if collector.jni_refs.is_none() && told.jni_refs.is_some() {
            collector.jni_refs = Some(JniRefs::default());
            begins("references of native code were recorded");
        }
    }

    /// Shows only methods that fit, of a session that has just begun.
    #[must_use]
    pub fn showing(mut self, fitting: Fitting) -> Self {
        self.collector.show_only(fitting);
        self
    }

    /// Leaves pauses out: the recording has them from elsewhere.
    #[must_use]
    pub fn without_pauses(mut self) -> Self {
        self.collector.leave_out(&PAUSES);
        self
    }

    /// Samples and sampled objects without any method that fits, of those that were looked at.
    pub fn outside(&self) -> u64 {
        self.collector.outside()
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

    /// Sampled objects, and the bytes that they stand for.
    pub fn allocated(&self) -> (u64, f64) {
        self.collector.allocation.as_ref().map_or((0, 0.0), |all| (all.samples, all.bytes))
    }

    /// Objects that are proven to live, of those that are watched.
    pub fn proven(&self) -> u64 {
        let live = self.collector.allocation.as_ref().and_then(|all| all.live.as_ref());
        live.map_or(0, |live| live.proven() as u64)
    }

    /// Waits for locks so far, if they are recorded.
    pub fn waits(&self) -> Option<&Locks> {
        self.collector.locks.as_ref()
    }

    /// Classes so far, if they are recorded.
    pub fn classes(&self) -> Option<&Classes> {
        self.collector.classes.as_ref()
    }

    /// References of native code so far, if they are recorded.
    pub fn jni_refs(&self) -> Option<&JniRefs> {
        self.collector.jni_refs.as_ref()
    }

    /// Whether only waits were recorded, and none came because there was none: that is an answer.
    pub fn saw_nobody_wait(&self) -> bool {
        let Told { samples, alloc, locks, classes, jni_refs } = &self.told;
        let is_other = samples.is_some() || alloc.is_some() || classes.is_some();
        let is_other = is_other || jni_refs.is_some();
        let only_locks = !is_other && locks.is_some();
        only_locks && self.lost() == 0 && self.lost_waits().is_none()
    }

    /// Whether classes or references were recorded and there was none: that is an answer, too.
    pub fn saw_none(&self) -> bool {
        let Told { classes, jni_refs, .. } = &self.told;
        let no_class = classes.as_ref().is_some_and(|classes| classes.loads == 0);
        let no_reference = jni_refs.as_ref().is_some_and(|refs| refs.made == 0);
        (no_class || no_reference) && self.lost() == 0 && self.broken.is_none()
    }

    /// Why waits are missing, if some may be that nobody has counted by time.
    pub fn lost_waits(&self) -> Option<String> {
        let told = self.told.locks.as_ref().and_then(accounts::lost_waits);
        self.broken.clone().or(told)
    }

    /// Samples and events that were taken and could not be kept.
    pub fn lost(&self) -> u64 {
        let lost = LOST.iter().map(|counter| self.totals.get(*counter)).sum::<u64>();
        lost + self.totals.get(Counter::LostEvents)
    }

    /// The time of the JVM that was sampled.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.totals.seen.saturating_sub(self.totals.started))
    }

    /// How far apart samples of a busy thread truly were.
    fn interval_got(&self) -> Option<u64> {
        self.totals.get(Counter::Weight).checked_div(self.samples())
    }

    fn account_samples(&self, clock: Clock, run: &mut RunInfo) {
        let totals = &self.totals;
        let time = |counter| Duration::from_nanos(totals.get(counter));
        let facts = &mut run.facts;
        let trigger = self.told.samples.as_ref().and_then(|status| status.trigger);
        let trigger = trigger.map_or("unknown".to_owned(), |trigger| trigger.to_string());
        facts.set(keys::ENGINE, &trigger);
        facts.set(keys::CLOCK, &clock.name().to_owned());
        facts.set(keys::INTERVAL, &Duration::from_nanos(totals.interval));
        facts.set(keys::SAMPLES, &self.samples());
        facts.set(keys::SAMPLED_TIME, &time(Counter::Weight));
        facts.set(keys::OVERRUNS, &totals.get(Counter::Overruns));
        facts.set(keys::THREADS_SAMPLED, &totals.get(Counter::ThreadsSeen));
        match clock {
            Clock::Cpu => {
                facts.set(keys::SAMPLER_TIME, &time(Counter::Own));
                // An idle thread has one sample for a long time, which says nothing of the timers.
                let got = self.interval_got().map(Duration::from_nanos);
                facts.set_known(keys::INTERVAL_GOT, got);
            }
            Clock::Wall => facts.set(keys::IDLE_SAMPLES, &totals.get(Counter::Unchanged)),
        }
        for special in Special::ALL {
            lose(run, LossKind::Failed, "stacks", totals.failures(*special), special.name());
        }
        for counter in LOST {
            let reason = counter.name().trim_start_matches("lost: ");
            lose(run, LossKind::Dropped, "samples", totals.get(counter), reason);
        }
        lose(
            run,
            LossKind::Skipped,
            "threads",
            totals.get(Counter::ThreadsRefused),
            "they could not be watched; a limit of the process, or they ended at once",
        );
        lose(
            run,
            LossKind::Skipped,
            "samples",
            self.collector.samples.as_ref().map_or(0, |samples| samples.skipped),
            "threads of the JVM itself that only wait are left out",
        );
    }
}

const LOST: [Counter; 3] = [Counter::LostRing, Counter::LostBuffer, Counter::LostThread];

impl Source for StreamSource {
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
        let facts = &mut run.facts;
        facts.set(keys::PROCESS_CPU_TIME, &Duration::from_nanos(totals.cpu));
        let outside = Some(self.outside()).filter(|outside| *outside > 0);
        facts.set_known(keys::UNMATCHED_SAMPLES, outside);
        facts.set(keys::NOTES, &[self.told.notes(), self.later.clone()].concat());
        if let Some(clock) = self.clock {
            self.account_samples(clock, run);
        }
        if let Some(allocation) = &self.collector.allocation {
            accounts::of_allocation(allocation, self.told.alloc.as_ref(), run);
        }
        if let Some((locks, status)) = self.collector.locks.as_ref().zip(self.told.locks.as_ref()) {
            accounts::of_locks(locks, status, run);
        }
        let classes = self.collector.classes.as_ref().zip(self.told.classes.as_ref());
        if let Some((classes, status)) = classes {
            accounts::of_classes(classes, status, run);
        }
        let refs = self.collector.jni_refs.as_ref().zip(self.told.jni_refs.as_ref());
        if let Some((refs, status)) = refs {
            accounts::of_jni_refs(refs, status, run);
        }
        let events = totals.get(Counter::LostEvents);
        lose(run, LossKind::Dropped, "events", events, "the front end reads too slowly");
        lose(
            run,
            LossKind::Failed,
            "methods",
            totals.get(Counter::Unproven),
            "what was read from a stack as a method is none that the JVM knows; it has no name",
        );
        if let Some(error) = &self.broken {
            lose(run, LossKind::Damaged, "streams", 1, error);
        }
        self.collector.account(run);
    }

    fn complete(&self, profile: &mut Profile) {
        let live = self.collector.allocation.as_ref().and_then(|all| all.live.as_ref());
        live.iter().for_each(|live| live.add_survivors(profile));
    }
}
