//! A climb: samples find what is hot, hooks in a few methods at a time tell who calls it and what a
//! call takes, one level of callers after the other. Samples and what hooks told are one recording.
//!
//! Which methods get hooks is decided in [`crate::climb`].

use super::{Beginning, Begun, Engine, Finished, Running, STEP, Step};
use crate::client::Agent;
use crate::climb::{Aims, Climber, Hooks, Load, Progress, TRIAL, Turn};
use crate::command_socket::Command;
use crate::error::{Error, Result, refuse};
use crate::exact;
use crate::launch::Settings;
use crate::observer::{Happening, Note, Observer};
use crate::recorder::{Recorder, Source};
use crate::reference_methods::compiling;
use crate::stream::{DRAIN, Fitting, StreamSource, Told};
use crate::weaving;
use crate::words::plain;
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_analysis::climb::{Climb, ClimbMetric, MethodKey, Node, node_kind};
use tare_attach::Jvm;
use tare_profile::{Event, FieldValue, LossKind, Profile, RunInfo};
use tare_protocol::{
    EngineChange, EngineName, EnginePlan, HookPlan, HookStatus, Request, SamplePlan,
};

pub use crate::climb::{Doing, short};

const RING: u64 = 32 << 20;

/// Between two samples of a thread, while it is looked for what is hot.
const CPU_INTERVAL: Duration = Duration::from_millis(5);
/// The same while hooks tell: an interruption takes a hundredth of five milliseconds, which hooks
/// make better use of.
const CALM_INTERVAL: Duration = Duration::from_millis(20);
const WALL_INTERVAL: Duration = Duration::from_millis(20);

/// From one decision to the next.
const TURN: Duration = Duration::from_secs(1);

/// What hooks tell is on its way for so long.
const EARLY: Duration = Duration::from_millis(100);

/// A program that is started gets this time before samples count.
const WARM_UP: Duration = Duration::from_secs(3);

/// What is climbed for.
#[derive(Clone, Debug)]
pub struct Plan {
    pub metric: ClimbMetric,
    /// The hot methods to begin with, at most.
    pub top: usize,
    /// The share of all samples that makes a method hot.
    pub min_share: f64,
    /// What hooks may take of the program's processor time: 0.02 is two percent.
    pub overhead: f64,
    /// It goes on when it has come to the roots, since the load may change.
    pub again: bool,
}

impl Default for Plan {
    fn default() -> Self {
        let metric = ClimbMetric::default();
        Plan { metric, top: 3, min_share: 0.05, overhead: 0.02, again: false }
    }
}

/// How it goes.
#[derive(Clone, Debug)]
pub struct Figures {
    pub progress: Progress,
    pub samples: u64,
    /// Hooks that are set, and that were ever set.
    pub hooks: u64,
    pub ever: u64,
    /// What the climb took of the program's processor time, and what it may.
    pub cost: f64,
    pub overhead: f64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// It has come to the roots, at least once.
    pub complete: bool,
    pub samples: u64,
    pub ever: u64,
    pub most: u64,
    pub cost: f64,
    pub elapsed: Duration,
}

/// What goes into the recording: samples and what hooks told, by the stream, and what was decided.
struct ClimbSource {
    stream: StreamSource,
    climb: Climb,
    decided: Vec<Node>,
    status: Option<HookStatus>,
}

struct Climbing {
    source: ClimbSource,
    climber: Climber,
    recorder: Recorder,
    overhead: f64,
    drained: Instant,
    /// When it is decided again, at the latest.
    due: Instant,
    /// When new hooks are looked at for the first time.
    early: Option<Instant>,
    /// Processor time at the last look, of the program and of the JVM's compilers, and when that
    /// was.
    cpu: (u64, Duration, Instant),
    pid: u32,
    complete: bool,
    again: bool,
    /// From one sample to the next.
    interval: Duration,
    wall: bool,
}

impl Engine for Plan {
    fn name(&self) -> String {
        "climb".to_owned()
    }

    fn settings(&self) -> Settings {
        Settings {
            flags: &["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"],
            word: Some(
                "started with -XX:+DebugNonSafepoints, so that compiled code tells its inlined \
                 methods everywhere",
            ),
            ..Settings::default()
        }
    }

    fn begin(&self, beginning: Beginning<'_>) -> Result<Begun> {
        let Beginning { agent, jvm, place, observer, plan } = beginning;
        let output = place().output;
        let wall = self.metric == ClimbMetric::Wall;
        let interval = if wall { WALL_INTERVAL } else { CPU_INTERVAL };
        let sampling = SamplePlan {
            wall,
            interval_ns: nanos(interval),
            native: false,
            kernel: false,
            memory: RING,
            ..SamplePlan::default()
        };
        observer.happening(&Happening::TakingInThreads);
        let start = Request::Start(EnginePlan::Sampling(Box::new(sampling)));
        let started = agent.tell_for_files(&start);
        observer.happening(&Happening::Nothing);
        let stream = started?;
        let (began, started) = (Instant::now(), SystemTime::now());
        let hooks = HookPlan { overhead_ppm: ppm(self.overhead), memory: RING };
        if let Err(error) = agent.tell(&Request::Start(EnginePlan::Hooks(hooks))) {
            let _ = agent.tell(&Request::Stop(EngineName::Sampling));
            return Err(error);
        }
        let mut told = Told::default();
        let status = agent.status()?;
        told.update(&status);
        for note in told.notes() {
            observer.note(Note::Aside(plain(&note).into_owned()));
        }
        // The hooks' own runtime belongs to nobody's stack.
        let exclude = "java.lang.TareHooks*".parse().into_iter().collect();
        let fitting = Fitting { include: Vec::new(), exclude };
        let stream = StreamSource::new(stream, jvm, told, None)?.showing(fitting);
        let recorder = Recorder::begin(output, run_info(jvm, self, started), began)?;
        let source = ClimbSource {
            stream,
            climb: Climb::default(),
            decided: Vec::new(),
            status: status.hooks().cloned(),
        };
        let aims = Aims {
            metric: self.metric,
            top: self.top.max(1),
            min_share: self.min_share,
            overhead: self.overhead,
            again: self.again,
            warm_up: if plan.command.is_empty() { Duration::ZERO } else { WARM_UP },
        };
        let word = "sampling, to find what is hot";
        observer.note(Note::Aside(word.to_owned()));
        Ok(Begun::Running(Box::new(Climbing {
            source,
            climber: Climber::new(aims),
            recorder,
            overhead: self.overhead,
            drained: Instant::now(),
            due: Instant::now() + TURN,
            early: None,
            cpu: (0, compiling(jvm.pid), Instant::now()),
            pid: jvm.pid,
            complete: false,
            again: self.again,
            interval,
            wall,
        })))
    }
}

fn ppm(share: f64) -> u32 {
    (share * 1e6).round().clamp(1.0, 1e6) as u32
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Source for ClimbSource {
    fn look(&mut self, profile: &mut Profile, now: u64) -> Result<()> {
        self.stream.look(profile, now)?;
        for node in std::mem::take(&mut self.decided) {
            let text = self.climb.names.text(node.method).to_owned();
            let mut intern = |text: &str| FieldValue::Text(profile.strings.intern(text));
            let level = FieldValue::Integer(node.level.into());
            let values = [intern(&text), intern(node.state.name()), intern(&node.why), level];
            let table = profile.events_of(&node_kind());
            profile.events_mut(table).push(Event { time: now, ..Event::default() }, &values);
        }
        self.climb.add(profile);
        Ok(())
    }

    fn account(&self, run: &mut RunInfo) {
        self.stream.account(run);
        for lost in self.status.iter().flat_map(|status| &status.lost) {
            let Some((count, why)) = lost.split_once(' ') else { continue };
            run.lose(LossKind::Failed, "hooked calls", count.parse().unwrap_or(0), why);
        }
    }

    fn complete(&self, profile: &mut Profile) {
        self.stream.complete(profile);
    }
}

impl Climbing {
    /// What the agent says of itself; nothing is lost if it says nothing.
    fn ask(&mut self, agent: &mut Agent) {
        if let Ok(status) = agent.status() {
            self.source.stream.told.update(&status);
            self.source.status = status.hooks().cloned().or(self.source.status.take());
        }
    }

    /// Sets hooks, and hears which there are.
    fn hook(
        &mut self,
        agent: &mut Agent,
        hooks: &Hooks,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let wire = |methods: &[MethodKey]| -> Vec<String> {
            methods.iter().map(|method| self.source.climb.names.wire(*method)).collect()
        };
        let (telling, waiting) = (wire(&hooks.telling), wire(&hooks.waiting));
        let of = |status: &HookStatus| (status.batches, status.pause_ns);
        let before = self.source.status.as_ref().map(of).unwrap_or_default();
        if hooks.anew {
            let waiting = [&telling[..], &waiting].concat();
            let silent = EngineChange::Hooks { methods: Vec::new(), waiting };
            weaving::change(agent, silent, observer)?;
        }
        let names = [&telling[..], &waiting].concat();
        let change = EngineChange::Hooks { methods: telling, waiting };
        weaving::change(agent, change, observer)?;
        observer.happening(&Happening::Nothing);
        if observer.wants_end() {
            return Ok(());
        }
        self.ask(agent);
        let Some(status) = &self.source.status else { return Ok(()) };
        let mut refused = HashMap::new();
        for (method, name) in hooks.telling.iter().chain(&hooks.waiting).zip(&names) {
            let why = status.refused.iter().find_map(|text| text.strip_prefix(name.as_str()));
            if let Some(why) = why {
                refused.insert(*method, why.trim().to_owned());
            }
        }
        let (batches, pause) = of(status);
        let pause = pause.saturating_sub(before.1);
        let is_batch = batches > before.0;
        self.climber.hooked(&mut self.source.climb, hooks, &refused, is_batch, pause);
        self.early = Some(Instant::now() + TRIAL + EARLY);
        Ok(())
    }

    /// Samples are as frequent as they must be.
    fn pace(&mut self, agent: &mut Agent) -> Result<()> {
        let wanted = match (self.wall, self.climber.is_sampling()) {
            (true, _) => WALL_INTERVAL,
            (false, true) => CPU_INTERVAL,
            (false, false) => CALM_INTERVAL,
        };
        if wanted != self.interval {
            let interval_ns = Some(nanos(wanted));
            let change = EngineChange::Sampling { interval_ns, paused: None };
            agent.tell(&Request::Change(change))?;
            self.interval = wanted;
        }
        Ok(())
    }

    /// Methods whose hooks went since the last change.
    fn taken(&mut self) -> Vec<MethodKey> {
        let Some(status) = &mut self.source.status else { return Vec::new() };
        let taken = std::mem::take(&mut status.taken);
        let names = &self.source.climb.names;
        let is_one = |method: &MethodKey| taken.contains(&names.wire(*method));
        self.climber.woven().iter().copied().filter(is_one).collect()
    }

    /// What the JVM has done since the last time.
    fn load(&mut self) -> Load {
        let (cpu, pass_ps) = match &self.source.status {
            Some(status) => (status.cpu_ns, status.pass_ps),
            None => (0, 0),
        };
        let now = (cpu, compiling(self.pid), Instant::now());
        let before = std::mem::replace(&mut self.cpu, now);
        let passed = before.2.elapsed().as_secs_f64().max(1e-3);
        Load {
            cpu: cpu.saturating_sub(before.0) as f64 / passed,
            pass_ns: pass_ps as f64 / 1e3,
            compiling: now.1.saturating_sub(before.1).as_secs_f64() / passed,
        }
    }

    fn take_decisions(&mut self, observer: &mut dyn Observer) {
        self.source.decided.extend(self.climber.decided());
        for note in self.climber.notes() {
            observer.note(Note::Aside(plain(&note).into_owned()));
        }
    }

    fn figures(&self) -> Figures {
        let status = self.source.status.as_ref();
        Figures {
            progress: self.climber.progress(&self.source.climb),
            samples: self.source.stream.samples(),
            hooks: status.map_or(0, |status| (status.hooks.len() + status.waiting.len()) as u64),
            ever: status.map_or(0, |status| status.ever),
            cost: cost(status),
            overhead: self.overhead,
        }
    }
}

/// What the climb took of the program's processor time.
fn cost(status: Option<&HookStatus>) -> f64 {
    let known = status.filter(|status| status.cpu_ns > 0);
    known.map_or(0.0, |status| status.spent_ns as f64 / status.cpu_ns as f64)
}

impl Running for Climbing {
    fn step(&mut self, agent: &mut Agent, observer: &mut dyn Observer) -> Result<Step> {
        std::thread::sleep(STEP);
        if self.drained.elapsed() >= DRAIN {
            self.drained = Instant::now();
            if !self.source.stream.drain() {
                return Ok(Step::Over);
            }
        }
        // Hooks that cost too much are not to stay for as long as a second.
        let is_early = self.early.is_some_and(|early| Instant::now() >= early);
        // Whoever asks for reports all the time has the recorder look, and must not hold us up.
        let is_due = self.recorder.is_due() || self.due <= Instant::now();
        if !is_due && !is_early {
            return Ok(Step::Going);
        }
        self.early = self.early.filter(|_| !is_early);
        self.due = Instant::now() + TURN;
        self.ask(agent);
        self.recorder.append(&mut [&mut self.source])?;
        let load = self.load();
        let taken = self.taken();
        let turn = match self.climber.taken(&mut self.source.climb, &taken) {
            Turn::Wait => self.climber.turn(&mut self.source.climb, load),
            turn => turn,
        };
        self.take_decisions(observer);
        match turn {
            Turn::Wait => {}
            Turn::Hook(hooks) => {
                self.complete |= self.climber.is_at_the_roots();
                self.hook(agent, &hooks, observer)?;
                self.take_decisions(observer);
            }
            Turn::Done => {
                self.complete = true;
                return Ok(Step::Over);
            }
        }
        self.pace(agent)?;
        Ok(Step::Told(super::Figures::Climb(self.figures()), self.source.stream.elapsed()))
    }

    fn command(&mut self, agent: &mut Agent, command: Command) -> Result<String> {
        match command {
            Command::Dump(file) => {
                self.ask(agent);
                self.recorder.append(&mut [&mut self.source])?;
                let path = self.recorder.path();
                let size = super::stream::rewrite(path, file, &self.source)?;
                Ok(format!("{} KiB", size.div_ceil(1024)))
            }
            Command::Stop => Ok("stopped".to_owned()),
            _ => refuse!("a climb can be dumped and stopped, and nothing else"),
        }
    }

    fn end(&mut self, agent: &mut Agent, observer: &mut dyn Observer) -> bool {
        self.ask(agent);
        let hooks = weaving::stop(agent, EngineName::Hooks, observer);
        observer.happening(&Happening::Nothing);
        let alive = hooks.is_ok() & agent.tell(&Request::Stop(EngineName::Sampling)).is_ok();
        self.source.stream.end();
        if !self.complete || self.again {
            self.climber.leave(&mut self.source.climb);
        }
        self.take_decisions(observer);
        alive
    }

    fn finish(self: Box<Self>, failed: Option<Error>) -> Result<Finished> {
        let Climbing { mut source, recorder, complete, .. } = *self;
        let finished = recorder.finish(&mut [&mut source]);
        failed.map_or(Ok(()), Err)?;
        let recorded = finished?;
        let samples = source.stream.samples();
        let nothing = (samples == 0).then(|| {
            "nothing was recorded: no thread used a processor for as much as 5 ms; climb for longer, or \
             while the program works"
                .to_owned()
        });
        let status = source.status.as_ref();
        let outcome = Outcome {
            complete,
            samples,
            ever: status.map_or(0, |status| status.ever),
            most: source.climb.most(),
            cost: cost(status),
            elapsed: source.stream.elapsed(),
        };
        let outcome = super::Outcome::Climb(Box::new(outcome));
        Ok(Finished { recorded: Some(recorded), nothing, outcome })
    }
}

fn run_info(jvm: &Jvm, plan: &Plan, started: SystemTime) -> RunInfo {
    let options = [
        ("kind", "sampling".to_owned()),
        ("mode", "climb".to_owned()),
        ("metric", plan.metric.name().to_owned()),
        ("overhead", format!("{}", plan.overhead)),
    ];
    let since_1970 = started.duration_since(UNIX_EPOCH).ok();
    RunInfo {
        options: options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        started: since_1970.and_then(|d| i64::try_from(d.as_nanos()).ok()),
        ..exact::run_info(jvm)
    }
}
