//! What the agent tells by its stream: samples of what threads do, by their processor clocks or by
//! the wall clock; sampled objects, and which of them live; waits for locks; classes; or several of
//! them in one recording.

mod changes;
mod figures;
mod store;

pub use figures::{
    AllocFigures, ClassFigures, Figures, JniRefsFigures, LockFigures, Outcome, SampleFigures,
};
pub(super) use store::rewrite;

use super::{Beginning, Begun, Engine, Finished, Part, Running, STEP, Step};
use crate::client::Agent;
use crate::command_socket::Command;
use crate::error::{Context, Error, Result, refuse};
use crate::exact;
use crate::launch::Settings;
use crate::observer::{Happening, Note, Observer};
use crate::origins::Origins;
use crate::patterns::{self, Patterns, Wanted};
use crate::stream::{DRAIN, Fitting, StreamSource, Told};
use crate::words::{self, plain, roughly};
use figures::figures;
use std::fs::File;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::Store;
use tare_attach::Jvm;
use tare_profile::RunInfo;
use tare_profile::facts::keys;
use tare_protocol::{
    AllocPlan, ClassPlan, EngineName, EnginePlan, JniRefsPlan, LockPlan, Pattern, Request,
    SamplePlan, SampleTrigger,
};
use tare_symbols::Ahead;

/// The ring in the JVM that samples wait in until they are drained, twenty times a second.
const RING: u64 = 32 << 20;

/// What is sampled, and what is shown of it. Without any engine there is nothing to record.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Where threads are.
    pub samples: Option<Samples>,
    /// What they allocate.
    pub alloc: Option<Alloc>,
    /// What they wait for.
    pub locks: Option<Locks>,
    /// Which classes they load.
    pub classes: bool,
    /// Which references native code makes.
    pub jni_refs: bool,
    /// Frames that are taken of a stack at most.
    pub depth: Option<u32>,
    /// Classes whose methods are shown; none means all.
    pub include: Vec<Pattern>,
    /// Classes whose methods are not.
    pub exclude: Vec<Pattern>,
    /// Only the last minutes are kept, in memory, until they are dumped or the recording ends.
    pub keep: Option<Duration>,
}

/// Samples of threads.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// What makes threads tell where they are; without it the best that works here.
    pub trigger: Option<SampleTrigger>,
    /// All threads by the wall clock, with what they wait for.
    pub wall: bool,
    /// Between two samples of a thread.
    pub interval: Option<Duration>,
    /// Without frames of the JVM, of native libraries and of the kernel.
    pub java_only: bool,
    /// All that is recorded ends as soon as another front end wants to record something of the kind.
    pub yields: bool,
}

/// Sampled objects.
#[derive(Clone, Debug)]
pub struct Alloc {
    /// Bytes that are allocated between two of them, on average.
    pub interval: Option<u64>,
    /// Whether they are watched, to tell which of them live.
    pub live: bool,
}

/// Waits for locks.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    /// Waits of this length and longer ones are told one by one.
    pub threshold: Option<Duration>,
    /// Classes of the JDK are woven, for what cannot be seen otherwise: tasks in the queues of
    /// executors.
    pub weave: bool,
}

/// A recording of the stream under way.
struct StreamRecording {
    source: StreamSource,
    /// In the order in which they were started.
    engines: Vec<EngineName>,
    /// Those of them that rest.
    paused: Vec<EngineName>,
    /// How deep stacks are taken, for what is started later.
    depth: Option<u32>,
    store: Store,
    drained: Instant,
    wanted: Wanted,
}

impl Engine for Plan {
    fn name(&self) -> String {
        let clock = self.samples.as_ref().map(|samples| if samples.wall { "wall" } else { "cpu" });
        let parts = [
            clock,
            self.alloc.as_ref().map(|_| "alloc"),
            self.locks.as_ref().map(|_| "lock"),
            self.classes.then_some("classes"),
            self.jni_refs.then_some("jni-refs"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("-")
    }

    fn settings(&self) -> Settings {
        // Allocations and waits are safepoints, which have this in any case.
        // The first classes of a program are what its start-up is about.
        let held = self.classes;
        if self.samples.is_none() {
            return Settings { held, ..Settings::default() };
        }
        Settings {
            held,
            flags: &["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"],
            word: Some(
                "started with -XX:+DebugNonSafepoints, so that compiled code tells its lines and \
                 inlined methods everywhere",
            ),
            ..Settings::default()
        }
    }

    fn begin(&self, beginning: Beginning<'_>) -> Result<Begun> {
        let Beginning { agent, jvm, plan, place, observer } = beginning;
        let plans = self.wire();
        if plans.is_empty() {
            refuse!(
                "nothing is to be recorded: neither samples nor allocation nor locks nor classes"
            );
        }
        let trigger = self.samples.as_ref().and_then(|samples| samples.trigger);
        if is_perf(trigger) && jvm.is_filtered() {
            observer.note(Note::Alarm(
                "this JVM is under a filter of system calls (seccomp); if that does not permit \
                 perf_event_open, it may end the JVM now"
                    .to_owned(),
            ));
        }
        let patterns =
            Patterns { include: &self.include, exclude: &self.exclude, ..Patterns::default() };
        let wanted = patterns::check(agent, &patterns, &plan.command, &Origins::of(jvm), observer)?;
        let output = place().output;
        // While the agent takes all threads in, rather than beside the program that is then
        // sampled.
        let with_kernel = self.samples.as_ref().is_some_and(|samples| {
            !samples.java_only && !samples.wall && samples.trigger != Some(SampleTrigger::Timer)
        });
        let kernel = with_kernel.then(Ahead::begin);
        let engines: Vec<EngineName> = plans.iter().map(EnginePlan::engine).collect();
        observer.happening(&Happening::TakingInThreads);
        let started = start(agent, plans);
        observer.happening(&Happening::Nothing);
        let stream = started?;
        // The agent's clock began after its preparations, just before it answered.
        let began = Instant::now();
        let started = SystemTime::now();
        let mut told = Told::default();
        told.update(&agent.status()?);
        for note in told.notes() {
            observer.note(Note::Aside(plain(&note).into_owned()));
        }
        let fitting = Fitting { include: self.include.clone(), exclude: self.exclude.clone() };
        let source = StreamSource::new(stream, jvm, told, kernel)?.showing(fitting);
        let mut run = run_info(jvm, self, started);
        if self.classes && !plan.command.is_empty() {
            run.facts.set(keys::CLASSES_FROM_START, &true);
        }
        let store = Store::begin(output, self.keep, run, began)?;
        let drained = Instant::now();
        let (paused, depth) = (Vec::new(), self.depth);
        let recording = StreamRecording { source, engines, paused, depth, store, drained, wanted };
        Ok(Begun::Running(Box::new(recording)))
    }
}

impl Plan {
    /// What the agent is asked for, in the order in which it can be had on one stream.
    fn wire(&self) -> Vec<EnginePlan> {
        let samples = self.samples.as_ref().map(|samples| {
            let defaults = SamplePlan::default();
            EnginePlan::Sampling(Box::new(SamplePlan {
                trigger: samples.trigger,
                wall: samples.wall,
                interval_ns: samples.interval.map_or(defaults.interval_ns, nanos),
                depth: self.depth.unwrap_or(defaults.depth),
                native: !samples.java_only,
                kernel: !samples.java_only,
                memory: RING,
                yields: samples.yields,
            }))
        });
        let alloc = self.alloc.as_ref().map(|alloc| {
            let defaults = AllocPlan::default();
            EnginePlan::Alloc(Box::new(AllocPlan {
                interval_bytes: alloc.interval.unwrap_or(defaults.interval_bytes),
                live: alloc.live,
                depth: self.depth.unwrap_or(defaults.depth),
                memory: RING,
                ..defaults
            }))
        });
        let locks = self.locks.as_ref().map(|locks| {
            let defaults = LockPlan::default();
            EnginePlan::Locks(Box::new(LockPlan {
                threshold_ns: locks.threshold.map_or(defaults.threshold_ns, nanos),
                depth: self.depth.unwrap_or(defaults.depth),
                weave: locks.weave,
                memory: RING,
            }))
        });
        let classes = self.classes.then(|| {
            let depth = self.depth.unwrap_or(ClassPlan::default().depth);
            EnginePlan::Classes(Box::new(ClassPlan { depth, memory: RING }))
        });
        let jni_refs = self.jni_refs.then(|| {
            let depth = self.depth.unwrap_or(JniRefsPlan::default().depth);
            EnginePlan::JniRefs(Box::new(JniRefsPlan { depth, memory: RING }))
        });
        samples.into_iter().chain(alloc).chain(locks).chain(classes).chain(jni_refs).collect()
    }
}

/// Starts all of them or none. The first opens the stream, which is theirs together.
fn start(agent: &mut Agent, plans: Vec<EnginePlan>) -> Result<[File; 2]> {
    let mut plans = plans.into_iter();
    let first = plans.next().context("nothing is to be started")?;
    let mut started = vec![first.engine()];
    let stream = agent.tell_for_files(&Request::Start(first))?;
    for plan in plans {
        let engine = plan.engine();
        if let Err(error) = agent.tell(&Request::Start(plan)) {
            stop(agent, &started);
            return Err(error);
        }
        started.push(engine);
    }
    Ok(stream)
}

/// Stops them, the last one first. Whether the JVM still lives.
fn stop(agent: &mut Agent, engines: &[EngineName]) -> bool {
    let mut alive = true;
    for engine in engines.iter().rev() {
        alive &= agent.tell(&Request::Stop(*engine)).is_ok();
    }
    alive
}

impl Running for StreamRecording {
    fn step(&mut self, agent: &mut Agent, _: &mut dyn Observer) -> Result<Step> {
        std::thread::sleep(STEP);
        if self.drained.elapsed() >= DRAIN {
            self.drained = Instant::now();
            if !self.source.drain() {
                return Ok(Step::Over);
            }
        }
        if !self.store.is_due() {
            return Ok(Step::Going);
        }
        // What the agent says of itself is not worth losing the rest for.
        if let Ok(status) = agent.status() {
            self.source.told.update(&status);
        }
        self.store.look(&mut self.source)?;
        Ok(Step::Told(super::Figures::Stream(figures(&self.source)), self.source.elapsed()))
    }

    fn command(&mut self, agent: &mut Agent, command: Command) -> Result<String> {
        match command {
            Command::Dump(file) => self.store.dump(&mut self.source, file),
            Command::Pause => self.pause_all(agent, true).map(|()| "paused".to_owned()),
            Command::Resume => self.pause_all(agent, false).map(|()| "goes on".to_owned()),
            Command::Interval(interval) => self.change_interval(agent, interval),
            Command::Threshold(nanos) => self.change_threshold(agent, nanos),
            Command::Stop => Ok("stopped".to_owned()),
        }
    }

    fn switch(&mut self, agent: &mut Agent, part: Part, on: bool) -> Result<()> {
        self.switch_part(agent, part, on)
    }

    fn parts(&self) -> Vec<(Part, bool)> {
        self.all_parts()
    }

    fn end(&mut self, agent: &mut Agent, _: &mut dyn Observer) -> bool {
        if let Ok(status) = agent.status() {
            self.source.told.update(&status);
        }
        let alive = stop(agent, &self.engines);
        self.source.end();
        alive
    }

    fn finish(self: Box<Self>, failed: Option<Error>) -> Result<Finished> {
        let StreamRecording { mut source, store, wanted, .. } = *self;
        let recorded = store.finish(&mut source, failed)?;
        let Figures { samples, alloc, locks, classes, jni_refs, .. } = figures(&source);
        let samples = samples.map(|samples| samples.samples);
        let all = samples.unwrap_or(0) + alloc.as_ref().map_or(0, |alloc| alloc.samples);
        let all = all + locks.as_ref().map_or(0, |locks| locks.told);
        let all = all + classes.as_ref().map_or(0, |classes| classes.loads);
        let all = all + jni_refs.as_ref().map_or(0, |refs| refs.made);
        let is_short = locks.as_ref().is_some_and(|locks| locks.contentions + locks.waiting > 0);
        let outside = source.outside();
        let nothing = match all {
            0 if is_short || source.saw_nobody_wait() || source.saw_none() => None,
            0 => Some(nothing(&source)),
            all if outside >= all => Some(wanted.but_no_sample(all)),
            _ => None,
        };
        let elapsed = source.elapsed();
        let outcome = Outcome { samples, alloc, locks, classes, jni_refs, outside, elapsed };
        let outcome = super::Outcome::Stream(Box::new(outcome));
        Ok(Finished { recorded: Some(recorded), nothing, outcome })
    }
}

/// Why there is no sample, and what to do about it.
fn nothing(source: &StreamSource) -> String {
    let lost = source.lost();
    let samples = source.told.samples.as_ref();
    let alloc = source.told.alloc.as_ref();
    let why = match (samples, alloc) {
        _ if lost > 0 => format!("{} could not be kept", roughly(lost, "sample")),
        (None, None) => {
            let why = source.lost_waits().unwrap_or_else(|| "nobody knows why".to_owned());
            format!("no wait could be kept ({why}); record again, for a shorter time")
        }
        (None, Some(alloc)) => format!(
            "no allocation was sampled, at {} from one sample to the next; record for longer, while \
             the program allocates, or with a smaller --interval-bytes",
            words::bytes(alloc.interval_bytes),
        ),
        (Some(samples), _) if samples.wall => {
            "no thread said where it is; record for longer, or try `--engine safepoint`, which \
                       asks the JVM instead"
                .to_owned()
        }
        _ => format!(
            "no thread used as much as {} of a processor; record for longer, with a shorter --interval, or \
             with --wall, which samples waiting threads, too",
            words::interval(source.totals.interval),
        ),
    };
    format!("nothing was recorded: {why}")
}

fn is_perf(trigger: Option<SampleTrigger>) -> bool {
    matches!(trigger, Some(SampleTrigger::PerfClock | SampleTrigger::PerfCycles))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn run_info(jvm: &Jvm, plan: &Plan, started: SystemTime) -> RunInfo {
    let mut options = vec![("kind", "sampling".to_owned()), ("mode", plan.name())];
    for (key, patterns) in [("include", &plan.include), ("exclude", &plan.exclude)] {
        options.extend(patterns.iter().map(|pattern| (key, pattern.to_string())));
    }
    let since_1970 = started.duration_since(UNIX_EPOCH).ok();
    RunInfo {
        options: options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        started: since_1970.and_then(|d| i64::try_from(d.as_nanos()).ok()),
        ..exact::run_info(jvm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_a_name_and_an_order_for_each_combination() {
        let samples = |wall| Some(Samples { wall, ..Samples::default() });
        let alloc = || Some(Alloc { interval: Some(65_536), live: false });
        let [sampling, allocation, waits] =
            [EngineName::Sampling, EngineName::Alloc, EngineName::Locks];
        for (samples, alloc, locks, name, engines) in [
            (samples(false), None, false, "cpu", &[sampling][..]),
            (samples(true), None, false, "wall", &[sampling]),
            (None, alloc(), false, "alloc", &[allocation]),
            (None, None, true, "lock", &[waits]),
            (samples(false), alloc(), false, "cpu-alloc", &[sampling, allocation]),
            (samples(true), alloc(), false, "wall-alloc", &[sampling, allocation]),
            (samples(false), None, true, "cpu-lock", &[sampling, waits]),
            (samples(true), None, true, "wall-lock", &[sampling, waits]),
            (None, alloc(), true, "alloc-lock", &[allocation, waits]),
            (samples(true), alloc(), true, "wall-alloc-lock", &[sampling, allocation, waits]),
        ] {
            let classes = locks && samples.is_none();
            let name = if classes { format!("{name}-classes") } else { name.to_owned() };
            let more = classes.then_some(EngineName::Classes);
            let engines: Vec<EngineName> = engines.iter().copied().chain(more).collect();
            let locks =
                locks.then(|| Locks { threshold: Some(Duration::from_micros(7)), weave: true });
            let plan = Plan { samples, alloc, locks, classes, depth: Some(99), ..Plan::default() };
            assert_eq!(plan.name(), name);
            let wire = plan.wire();
            assert_eq!(wire.iter().map(EnginePlan::engine).collect::<Vec<_>>(), engines, "{name}");
            for plan in wire {
                match plan {
                    EnginePlan::Sampling(plan) => assert_eq!(plan.depth, 99),
                    EnginePlan::Alloc(plan) => {
                        assert_eq!(
                            (plan.depth, plan.interval_bytes, plan.live),
                            (99, 65_536, false)
                        );
                    }
                    EnginePlan::Locks(plan) => {
                        assert_eq!((plan.depth, plan.threshold_ns), (99, 7_000));
                    }
                    EnginePlan::Classes(plan) => assert_eq!(plan.depth, 99),
                    other => panic!("{other:?} writes to no stream"),
                }
            }
            // What happens at safepoints has its debug information, which the JVM keeps there anyhow.
            assert_eq!(plan.settings().flags.is_empty(), plan.samples.is_none());
        }
    }
}
