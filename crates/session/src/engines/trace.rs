//! Every entry and exit of the chosen methods, as they come.

use super::exact::{monotonic, run_info};
use super::{Beginning, Begun, Engine, Finished, Running, Step};
use crate::client::Agent;
use crate::command_socket::{self, Command};
use crate::error::{Error, Result, refuse};
use crate::launch::Settings;
use crate::observer::{Happening, Observer};
use crate::origins::Origins;
use crate::patterns::{self, Patterns, Wanted};
use crate::recorder::Recorder;
use crate::stream::Pauses;
use crate::trace::{Limits, Trace};
use crate::weaving;
use std::fs::File;
use std::time::{Duration, Instant, SystemTime};
use tare_profile::facts::keys;
use tare_protocol::{EngineName, ExactPlan, ExactStatus, Measure};

/// How long to sleep when little comes: the rings hold much more than what comes meanwhile.
const SHORTEST: Duration = Duration::from_micros(500);
const LONGEST: Duration = Duration::from_millis(10);
/// What the agent allows: a thread that waits may hold what others need.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Between two questions to the agent, and two words on how it goes.
const SECOND: Duration = Duration::from_secs(1);

/// A trace up to this size is copied for whoever asks, in some tenths of a second.
const MOST_COPIED: u64 = 64 << 20;

/// What is woven, and how much is taken of it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// With rings of some size.
    pub weave: ExactPlan,
    /// Events per second; what comes quicker is dropped and counted.
    pub rate: Option<u64>,
    /// Events after which it ends.
    pub most: u64,
}

/// How much has come by now.
#[derive(Clone, Debug)]
pub struct Figures {
    /// That were woven.
    pub methods: u64,
    /// Entries and exits.
    pub events: u64,
    pub dropped: u64,
}

/// What came, and what it took.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub figures: Figures,
    pub threads: usize,
    /// The agent's last word.
    pub status: ExactStatus,
    /// Whether that was heard when all was over.
    pub told_all: bool,
    /// How long threads waited for room in their rings.
    pub waited: Option<Duration>,
}

/// A trace under way.
struct TraceRecording {
    trace: Trace,
    pauses: Pauses,
    recorder: Recorder,
    began: Instant,
    pause: Duration,
    asked: Instant,
    wanted: Wanted,
    /// The agent was asked once more when all was over.
    told_all: bool,
}

impl Engine for Plan {
    fn name(&self) -> String {
        "trace".to_owned()
    }

    fn settings(&self) -> Settings {
        Settings { exact: true, ..Settings::default() }
    }

    fn begin(&self, beginning: Beginning<'_>) -> Result<Begun> {
        let Beginning { agent, jvm, plan, place, observer } = beginning;
        let Measure::Trace(rings) = &self.weave.measure else {
            refuse!("the plan of a trace has no rings");
        };
        if Duration::from_millis(rings.wait) > LONGEST_WAIT {
            refuse!(
                "--wait is one second at most: a waiting thread may hold locks that others need"
            );
        }
        let origins = Origins::of(jvm);
        observer.happening(&Happening::LookingForClasses);
        let patterns = Patterns::from(&self.weave);
        let wanted = patterns::check(agent, &patterns, &plan.command, &origins, observer);
        observer.happening(&Happening::Nothing);
        let wanted = wanted?;
        let output = place().output;
        let started = SystemTime::now();
        let began = Instant::now();
        let zero = monotonic(began);
        let mut pauses = Pauses::begin(agent).since(zero);
        let woven = weaving::start(agent, self.weave.clone(), observer);
        if !matches!(woven, Ok(weaving::Begun::Woven(_))) {
            pauses.end(agent);
        }
        let memory = match woven? {
            weaving::Begun::Woven(memory) => memory,
            weaving::Begun::Stopped(far) => return Ok(Begun::Stopped(far)),
        };
        let mut run = run_info(jvm, &self.weave, started);
        run.facts.set(keys::WOVEN_AFTER, &began.elapsed());
        let recorder = Recorder::begin(output, run, began)?;
        let status = agent.status()?.exact().cloned().unwrap_or_default();
        let limits = Limits { rate: self.rate, most: self.most };
        let trace = Trace::new(memory, status, origins, limits, began, zero)?;
        Ok(Begun::Running(Box::new(TraceRecording {
            trace,
            pauses,
            recorder,
            began,
            pause: SHORTEST,
            asked: Instant::now(),
            wanted,
            told_all: false,
        })))
    }
}

impl Running for TraceRecording {
    fn step(&mut self, agent: &mut Agent, _: &mut dyn Observer) -> Result<Step> {
        if self.trace.is_full() {
            return Ok(Step::Over);
        }
        let before = self.trace.events;
        self.recorder.take(&mut [&mut self.trace, &mut self.pauses])?;
        let came = self.trace.events != before;
        if !self.trace.is_behind {
            self.pause = if came { SHORTEST } else { (self.pause * 2).min(LONGEST) };
            std::thread::sleep(self.pause);
        }
        if self.asked.elapsed() < SECOND {
            return Ok(Step::Going);
        }
        self.asked = Instant::now();
        if !self.hear(agent) {
            return Ok(Step::Over);
        }
        Ok(Step::Told(super::Figures::Trace(figures(&self.trace)), self.began.elapsed()))
    }

    fn command(&mut self, _: &mut Agent, command: Command) -> Result<String> {
        match command {
            Command::Dump(file) => self.dump(file),
            Command::Stop => Ok("stopped".to_owned()),
            Command::Pause | Command::Resume | Command::Interval(_) | Command::Threshold(_) => {
                refuse!(
                    "a trace cannot be paused and has no interval: it records every event until it ends"
                )
            }
        }
    }

    fn end(&mut self, agent: &mut Agent, observer: &mut dyn Observer) -> bool {
        self.told_all = self.hear(agent);
        let alive = weaving::stop(agent, EngineName::Exact, observer).is_ok();
        self.pauses.end(agent);
        alive
    }

    fn finish(self: Box<Self>, failed: Option<Error>) -> Result<Finished> {
        let TraceRecording { mut trace, mut pauses, recorder, wanted, told_all, .. } = *self;
        trace.over = true;
        let finished = recorder.finish(&mut [&mut trace, &mut pauses]);
        failed.map_or(Ok(()), Err)?;
        let recorded = finished?;
        let mut figures = figures(&trace);
        if !told_all {
            figures.methods = figures.methods.max(trace.methods()?);
        }
        let status = trace.status.clone();
        let is_empty = figures.events == 0 && figures.dropped == 0;
        let nothing = is_empty.then(|| wanted.but_nothing(figures.methods, status.refused.len()));
        let (threads, waited) = (trace.threads(), trace.waited());
        let outcome = Outcome { figures, threads, status, told_all, waited };
        let outcome = super::Outcome::Trace(Box::new(outcome));
        Ok(Finished { recorded: Some(recorded), nothing, outcome })
    }
}

fn figures(trace: &Trace) -> Figures {
    Figures { methods: trace.status.methods, events: trace.events, dropped: trace.dropped() }
}

impl TraceRecording {
    /// What the agent says of it now; whether it says anything.
    fn hear(&mut self, agent: &mut Agent) -> bool {
        let Ok(status) = agent.status() else { return false };
        let Some(exact) = status.exact() else { return false };
        self.trace.status = exact.clone();
        self.pauses.update(&status);
        true
    }

    /// Copies what the file has by now. Nobody drains the rings meanwhile, so a long one is
    /// refused; it can be read where it is.
    fn dump(&mut self, file: File) -> Result<String> {
        self.recorder.write_now(&mut [&mut self.trace, &mut self.pauses])?;
        let Some(recording) = self.recorder.path() else {
            refuse!(
                "this recording is sent elsewhere as it is made, so there is no file to dump from"
            )
        };
        let recording = std::path::absolute(recording)?;
        let mut from = File::open(&recording)?;
        if from.metadata()?.len() > MOST_COPIED {
            refuse!(
                "the trace is being written to {0}; `tare report '{0}'` reads it at any time",
                recording.display(),
            );
        }
        let size = std::io::copy(&mut from, &mut command_socket::emptied(file, &recording)?)?;
        Ok(format!("{} KiB", size.div_ceil(1024)))
    }
}
