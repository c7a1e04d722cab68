//! Samples of what threads do, by their processor clocks or by the clock on the wall.

use super::{Beginning, Begun, Engine, Finished, Running, STEP, Step};
use crate::client::Agent;
use crate::command_socket::{self, Command};
use crate::error::{Context, Error, Result, refuse};
use crate::exact;
use crate::files::replace_by;
use crate::last_minutes::LastMinutes;
use crate::launch::Settings;
use crate::observer::{Happening, Note, Observer};
use crate::origins::Origins;
use crate::patterns::{self, Patterns, Wanted};
use crate::plan::Output;
use crate::recorder::{Recorded, Recorder, Sink};
use crate::sampling::{DRAIN, Fitting, Sampling, interval};
use crate::words::{plain, roughly};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_attach::Jvm;
use tare_profile::RunInfo;
use tare_protocol::{
    EngineChange, EngineName, EnginePlan, Pattern, Request, SampleEngine, SamplePlan,
};
use tare_recording::{LoadOptions, Recording, Writer};
use tare_symbols::Ahead;

/// The ring in the JVM that samples wait in until they are drained, twenty times a second.
const RING: u64 = 32 << 20;

/// What is sampled, and what is shown of it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What makes threads tell where they are; without it the best that works here.
    pub engine: Option<SampleEngine>,
    /// All threads by the clock on the wall, with what they wait for.
    pub wall: bool,
    /// Between two samples of a thread.
    pub interval: Option<Duration>,
    /// Frames that are taken of a stack at most.
    pub depth: Option<u32>,
    /// Without frames of the JVM, of native libraries and of the kernel.
    pub java_only: bool,
    /// Classes whose methods are shown; none means all.
    pub include: Vec<Pattern>,
    /// Classes whose methods are not.
    pub exclude: Vec<Pattern>,
    /// Only the last minutes are kept, in memory, until they are dumped or the recording ends.
    pub keep: Option<Duration>,
}

/// How many samples there are by now.
#[derive(Clone, Debug)]
pub struct Figures {
    pub samples: u64,
    pub lost: u64,
    pub paused: bool,
    /// Processor time of the process, in nanoseconds.
    pub cpu: u64,
    pub threads: u64,
    pub engine: Option<SampleEngine>,
    /// Nanoseconds between two samples of a thread.
    pub interval: u64,
}

/// What was sampled.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub samples: u64,
    /// Of those, without any method that is to be shown.
    pub outside: u64,
    pub elapsed: Duration,
}

/// A sampling recording under way.
struct SamplingRecording {
    sampling: Sampling,
    store: Store,
    drained: Instant,
    wanted: Wanted,
}

/// What becomes of the samples.
enum Store {
    /// All of them are written as they come.
    Recorder(Box<Recorder>),
    /// Those of the last minutes are kept in memory, and go there at the end.
    Memory(Box<LastMinutes>, Output),
}

impl Engine for Plan {
    fn name(&self) -> &'static str {
        if self.wall { "wall" } else { "cpu" }
    }

    fn settings(&self) -> Settings {
        Settings {
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
        let defaults = SamplePlan::default();
        let wire = SamplePlan {
            engine: self.engine,
            wall: self.wall,
            interval_ns: self.interval.map_or(defaults.interval_ns, nanos),
            depth: self.depth.unwrap_or(defaults.depth),
            native: !self.java_only,
            kernel: !self.java_only,
            memory: RING,
            yields: false,
        };
        if is_perf(wire.engine) && jvm.is_filtered() {
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
        let with_kernel = wire.kernel && !wire.wall && wire.engine != Some(SampleEngine::Timer);
        let kernel = with_kernel.then(Ahead::begin);
        observer.happening(&Happening::TakingInThreads);
        let started = agent.tell_for_files(&Request::Start(EnginePlan::Sampling(Box::new(wire))));
        observer.happening(&Happening::Nothing);
        let stream = started?;
        // The agent's clock began after its preparations, just before it answered.
        let began = Instant::now();
        let started = SystemTime::now();
        let status = agent.status()?.sampling().cloned().unwrap_or_default();
        for note in &status.notes {
            observer.note(Note::Aside(plain(note).into_owned()));
        }
        let fitting = Fitting { include: self.include.clone(), exclude: self.exclude.clone() };
        let sampling = Sampling::new(stream, jvm, status, kernel)?.showing(fitting);
        let run = run_info(jvm, self, started);
        let store = match self.keep {
            None => Store::Recorder(Box::new(Recorder::begin(output, run, began)?)),
            Some(span) => Store::Memory(Box::new(LastMinutes::begin(span, run, began)), output),
        };
        Ok(Begun::Running(Box::new(SamplingRecording {
            sampling,
            store,
            drained: Instant::now(),
            wanted,
        })))
    }
}

impl Running for SamplingRecording {
    fn step(&mut self, agent: &mut Agent, _: &mut dyn Observer) -> Result<Step> {
        std::thread::sleep(STEP);
        if self.drained.elapsed() >= DRAIN {
            self.drained = Instant::now();
            if !self.sampling.drain() {
                return Ok(Step::Over);
            }
        }
        if !self.is_due() {
            return Ok(Step::Going);
        }
        // What the agent says of itself is not worth losing samples for.
        if let Ok(Some(status)) = agent.status().map(|status| status.sampling().cloned()) {
            self.sampling.status = status;
        }
        self.look()?;
        Ok(Step::Told(super::Figures::Samples(self.figures()), self.sampling.elapsed()))
    }

    fn command(&mut self, agent: &mut Agent, command: Command) -> Result<String> {
        let mut change = |interval_ns, paused| {
            agent.tell(&Request::Change(EngineChange::Sampling { interval_ns, paused }))
        };
        match command {
            Command::Dump(file) => self.dump(file),
            Command::Pause => change(None, Some(true)).map(|()| "paused".to_owned()),
            Command::Resume => change(None, Some(false)).map(|()| "goes on".to_owned()),
            Command::Interval(nanos) => {
                change(Some(nanos), None)?;
                Ok(format!("samples every {} from now on", interval(nanos)))
            }
            Command::Stop => Ok("stopped".to_owned()),
        }
    }

    fn end(&mut self, agent: &mut Agent, _: &mut dyn Observer) -> bool {
        if let Ok(Some(status)) = agent.status().map(|status| status.sampling().cloned()) {
            self.sampling.status = status;
        }
        let alive = agent.tell(&Request::Stop(EngineName::Sampling)).is_ok();
        self.sampling.end();
        alive
    }

    fn finish(self: Box<Self>, failed: Option<Error>) -> Result<Finished> {
        let SamplingRecording { mut sampling, store, wanted, .. } = *self;
        let recorded = match store {
            Store::Recorder(recorder) => {
                let finished = recorder.finish(&mut [&mut sampling]);
                failed.map_or(Ok(()), Err)?;
                finished?
            }
            Store::Memory(mut last, output) => {
                last.look(&mut sampling)?;
                keep(&last, output)?
            }
        };
        let (samples, outside) = (sampling.samples(), sampling.outside());
        let nothing = match samples {
            0 => Some(nothing(&sampling)),
            all if outside >= all => Some(wanted.but_no_sample(all)),
            _ => None,
        };
        let outcome = Outcome { samples, outside, elapsed: sampling.elapsed() };
        let outcome = super::Outcome::Samples(Box::new(outcome));
        Ok(Finished { recorded: Some(recorded), nothing, outcome })
    }
}

/// Why there is no sample, and what to do about it.
fn nothing(sampling: &Sampling) -> String {
    let (lost, wall) = (sampling.lost(), sampling.status.wall);
    let why = match () {
        () if lost > 0 => format!("{} could not be kept", roughly(lost, "sample")),
        () if wall => {
            "no thread said where it is; record for longer, or try `--engine safepoint`, which \
                       asks the JVM instead"
                .to_owned()
        }
        () => format!(
            "no thread used as much as {} of a processor; record for longer, with a shorter --interval, or \
             with --wall, which samples waiting threads, too",
            interval(sampling.totals.interval),
        ),
    };
    format!("nothing was recorded: {why}")
}

fn is_perf(engine: Option<SampleEngine>) -> bool {
    matches!(engine, Some(SampleEngine::PerfClock | SampleEngine::PerfCycles))
}

impl SamplingRecording {
    fn is_due(&self) -> bool {
        match &self.store {
            Store::Recorder(recorder) => recorder.is_due(),
            Store::Memory(last, _) => last.is_due(),
        }
    }

    /// Takes the samples of the last second.
    fn look(&mut self) -> Result<()> {
        match &mut self.store {
            Store::Recorder(recorder) => recorder.append(&mut [&mut self.sampling]),
            Store::Memory(last, _) => last.look(&mut self.sampling),
        }
    }

    fn figures(&self) -> Figures {
        let (sampling, status) = (&self.sampling, &self.sampling.status);
        Figures {
            samples: sampling.samples(),
            lost: sampling.lost(),
            paused: status.paused,
            cpu: sampling.totals.cpu,
            threads: status.threads,
            engine: status.engine,
            interval: sampling.totals.interval,
        }
    }

    /// Writes what there is so far, or what is kept.
    fn dump(&mut self, file: File) -> Result<String> {
        self.look()?;
        let size = match &self.store {
            Store::Memory(last, output) => {
                let growing = match output {
                    Output::File(path) => path,
                    Output::Writer(_) => Path::new(""),
                };
                let (_, file) = last.write(command_socket::emptied(file, growing)?)?;
                file.metadata()?.len()
            }
            Store::Recorder(recorder) => rewrite(recorder.path(), file)?,
        };
        Ok(format!("{} KiB", size.div_ceil(1024)))
    }
}

/// Writes the last minutes to where they were wanted.
fn keep(last: &LastMinutes, output: Output) -> Result<Recorded> {
    let (path, size) = match output {
        Output::File(path) => {
            let doing = || format!("cannot write {}", path.display());
            let size = replace_by(&path, |file| {
                let (_, file) = last.write(file)?;
                Ok(file.metadata()?.len())
            })
            .with_context(doing)?;
            (Some(path), size)
        }
        Output::Writer(out) => (None, last.write(Sink::new(out))?.1.size),
    };
    Ok(Recorded { path, size, stretched: None })
}

/// Makes a whole file of one that still grows; its size.
pub(super) fn rewrite(growing: Option<&Path>, file: File) -> Result<u64> {
    let Some(growing) = growing else {
        refuse!("this recording goes elsewhere as it is made, and has nothing to dump")
    };
    let file = command_socket::emptied(file, growing)?;
    let doing = || "cannot write the dump";
    let profile = Recording::open(growing)?.load(&LoadOptions::default())?.profile;
    let file = Writer::new(file).with_context(doing)?.finish(&profile).with_context(doing)?;
    Ok(file.metadata().with_context(doing)?.len())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn run_info(jvm: &Jvm, plan: &Plan, started: SystemTime) -> RunInfo {
    let mode = if plan.wall { "wall" } else { "cpu" };
    let mut options = vec![("kind", "sampling".to_owned()), ("mode", mode.to_owned())];
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
