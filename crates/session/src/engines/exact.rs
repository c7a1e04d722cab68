//! Every call, every bytecode or every passage of a region: weaves, counts, and puts the code back.

use super::stream::rewrite;
use super::{Beginning, Begun, Engine, Finished, Running, STEP, Step};
use crate::client::Agent;
use crate::command_socket::Command;
use crate::demotion::Steering;
use crate::error::{Error, Result, refuse};
use crate::exact::{self, Arena, Exact, Totals};
pub use crate::following::FIRST as FIRST_ONE_IN;
use crate::following::Following;
use crate::launch::Settings;
use crate::observer::{Happening, Note, Observer};
use crate::origins::Origins;
use crate::patterns::{self, Patterns, Wanted};
use crate::plan::Output;
use crate::recorder::{Recorder, Source};
use crate::rescuer::Rescuer;
use crate::roots;
pub use crate::roots::FindRoots;
use crate::steering::Beside;
use crate::stream::{Pauses, StreamSource, Watched};
use crate::thread_counters::ThreadCounters;
use crate::weaving;
use crate::window;
use crate::words::plain;
use std::fs::File;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_attach::Jvm;
use tare_profile::RunInfo;
use tare_profile::facts::{Facts, keys};
use tare_protocol::{
    AllocPlan, EngineChange, EngineName, EnginePlan, ExactPlan, ExactStatus, Measure, REGIONS_MAX,
    Request,
};

const HASH_CODES: [&str; 2] = ["-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=3"];

/// Into how many pieces a parallel stream parts its work depends on the number of processors, but
/// for this. Threads of the common pool are as many.
const CHECKED: &[&str] =
    &[HASH_CODES[0], HASH_CODES[1], "-Djava.util.concurrent.ForkJoinPool.common.parallelism=4"];

/// What is woven, and what is done beside.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub weave: ExactPlan,
    /// The JVM whose costs of bytecodes the plan has, in its own words.
    pub target: Option<String>,
    /// The share of the program's own time that probes may take: 0.2 for a fifth. Where calls of roots
    /// are drawn, it chooses how many are followed; elsewhere, which methods are timed.
    pub overhead: Option<f64>,
    /// Roots are looked for in the program, and a few of their calls followed, as this says, within
    /// the budget. A program without such methods is recorded as the plan says otherwise.
    pub find_roots: Option<FindRoots>,
    /// What such a look has found, in words.
    pub found: Vec<String>,
    /// For so long the program is sampled before anything is woven.
    pub window: Option<Duration>,
    /// Counts of the processor and the kernel for each thread, beside it.
    pub counters: bool,
    pub chance: Chance,
}

/// What a program that is started leaves to chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chance {
    #[default]
    AsItComes,
    /// Identity hash codes, the order of `Set.of` and `Map.of`, and the seeds of random numbers are
    /// the same in every run.
    Fixed,
    /// Also the number of pieces of parallel work, on whatever machine.
    FixedEverywhere,
}

/// How much was counted by now.
#[derive(Clone, Debug)]
pub struct Figures {
    /// That were woven.
    pub methods: u64,
    pub totals: Totals,
    /// Bytes that the trees take, and may take.
    pub used: u64,
    pub budget: u64,
    /// What the calls cost in probes at least, in nanoseconds.
    pub in_probes: f64,
    /// Where a budget chooses: one call of roots in so many is followed, and the share of probes so far.
    pub held: Option<Box<(u32, Option<f64>)>>,
    /// Watched objects that are proven to live.
    pub live: Option<u64>,
    /// How many regions are timed.
    pub regions: usize,
    /// Whether there is nothing else.
    pub regions_only: bool,
}

/// What was counted, and what it took.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub figures: Figures,
    /// The agent's last word.
    pub status: ExactStatus,
    /// Whether that was heard when all was over.
    pub told_all: bool,
    /// Passages of all regions.
    pub passages: u64,
    pub steering: Option<Steered>,
    pub following: Option<HeldByFollowing>,
    /// Below roots: how many methods were woven, and how many of them ran.
    pub woven_and_ran: Option<(usize, usize)>,
}

/// How the share of probes was held.
#[derive(Clone, Debug)]
pub struct Steered {
    /// At last: of counting and of timing.
    pub overhead: Option<(f64, f64)>,
    /// How that is known.
    pub source: String,
    pub budget: f64,
    /// Methods that were counted and not timed.
    pub demoted: usize,
}

/// How the share of probes was held by how many calls of roots are followed.
#[derive(Clone, Debug)]
pub struct HeldByFollowing {
    /// On the whole, as a share of the program's own time, and how that is known.
    pub overhead: Option<f64>,
    pub source: String,
    pub budget: f64,
    /// One in so many at last, at the least and at the most.
    pub one_in: u32,
    pub range: (u32, u32),
}

/// An exact recording under way.
struct ExactRecording {
    exact: Exact,
    /// What was sampled before.
    sampled: Option<StreamSource>,
    pauses: Pauses,
    counters: Option<ThreadCounters>,
    /// Samples for the steering.
    beside: Beside,
    recorder: Recorder,
    began: Instant,
    /// Until the file is complete.
    rescuer: Option<Rescuer>,
    wanted: Wanted,
    /// The agent was asked once more when all was over.
    told_all: bool,
}

/// All that goes into the file of a recording; its recorder is not borrowed.
macro_rules! sources {
    ($recording:ident) => {{
        let sampled = $recording.sampled.as_mut().map(|sampled| sampled as &mut dyn Source);
        let counters = $recording.counters.as_mut().map(|counters| counters as &mut dyn Source);
        let always: [&mut dyn Source; 2] = [&mut $recording.exact, &mut $recording.pauses];
        always.into_iter().chain(sampled).chain(counters).collect::<Vec<_>>()
    }};
}

impl Engine for Plan {
    fn name(&self) -> String {
        let name = match () {
            () if self.weave.blocks().is_some() => "bytecodes",
            () if self.weave.is_regions_only() => "regions",
            () if self.weave.has_sites() => "alloc-exact",
            () => "exact",
        };
        name.to_owned()
    }

    fn settings(&self) -> Settings {
        let fixed = Settings {
            exact: true,
            fixed: true,
            held: false,
            flags: &HASH_CODES,
            word: Some(
                "identity hash codes, the order of Set.of and Map.of, and seeds of Random are the same \
                 in every run; --as-it-comes leaves them to chance",
            ),
        };
        match self.chance {
            Chance::AsItComes => Settings { exact: true, ..Settings::default() },
            Chance::Fixed => fixed,
            Chance::FixedEverywhere => Settings { flags: CHECKED, ..fixed },
        }
    }

    fn begin(&self, mut beginning: Beginning<'_>) -> Result<Begun> {
        if let Some(how) = self.find_roots {
            let plan = roots::with_roots(self, how, &mut beginning)?;
            return plan.map_or(Ok(Begun::Stopped(None)), |plan| plan.begin(beginning));
        }
        let Beginning { agent, jvm, plan, place, observer } = beginning;
        if self.weave.regions().len() > REGIONS_MAX {
            refuse!("one recording can time at most {REGIONS_MAX} regions");
        }
        let origins = Origins::of(jvm);
        observer.happening(&Happening::LookingForClasses);
        let patterns = Patterns::from(&self.weave);
        let wanted = patterns::check(agent, &patterns, &plan.command, &origins, observer);
        observer.happening(&Happening::Nothing);
        let wanted = wanted?;
        let output = place().output;
        let mut pauses = Pauses::begin(agent);
        let window =
            self.window.map(|length| window::sample(agent, jvm, &self.weave, length, observer));
        let window = window.transpose()?;
        let began = window.as_ref().map_or_else(Instant::now, |window| window.began);
        let started = SystemTime::now() - began.elapsed();
        // Before the first object can be handed over.
        let watched = (!self.weave.watched().is_empty()).then(|| watch(agent)).transpose()?;
        let woven = weaving::start(agent, self.weave.clone(), observer);
        if !matches!(woven, Ok(weaving::Begun::Woven(_))) {
            if watched.is_some() {
                // The first error is the one that is told.
                let _ = agent.tell(&Request::Stop(EngineName::Alloc));
            }
            pauses.end(agent);
        }
        let memory = match woven? {
            weaving::Begun::Woven(memory) => memory,
            weaving::Begun::Stopped(far) => return Ok(Begun::Stopped(far)),
        };
        // The file comes after the start, which may fail, and leaves an older one alone then.
        let mut run = run_info(jvm, &self.weave, started);
        self.describe(&mut run, !plan.command.is_empty());
        run.facts.set(keys::WOVEN_AFTER, &began.elapsed());
        window.iter().for_each(|window| window.account(&mut run.facts));
        let path = match &output {
            Output::File(path) => Some(path.clone()),
            Output::Writer(_) | Output::Link(_) => None,
        };
        let recorder = Recorder::begin(output, run, began)?;
        // A program may end before the first look.
        let status = agent.status()?;
        if plan.command.is_empty() {
            status.exact().into_iter().for_each(|exact| patterns::say_unseen(exact, observer));
        }
        // A machine that has no room for one more process has other worries.
        let rescuer = path.and_then(|path| Rescuer::set(jvm, &path, &memory, &status).ok());
        let mut exact =
            Exact::new(Arena::new(memory), status.exact().cloned().unwrap_or_default(), origins);
        match (self.overhead, self.weave.follow()) {
            (Some(budget), Some(follow)) => {
                exact.choose_with(Following::new(budget, follow.one_in), jvm.pid);
            }
            (budget, _) => exact.steering = budget.map(Steering::new),
        }
        if let Some(stream) = watched {
            let told = status.alloc().cloned().unwrap_or_default();
            let watched = Watched::new(stream, monotonic(began), told)?;
            for note in watched.notes() {
                observer.note(Note::Aside(plain(note).into_owned()));
            }
            exact.watched = Some(watched);
        }
        let beside = Beside::begin(agent, &mut exact);
        let counters = self.counters.then(|| ThreadCounters::begin(jvm.pid));
        let sampled = window.map(|window| window.sampling.without_pauses());
        let mut pauses = pauses.since(monotonic(began));
        pauses.update(&status);
        Ok(Begun::Running(Box::new(ExactRecording {
            exact,
            sampled,
            pauses,
            counters,
            beside,
            recorder,
            began,
            rescuer,
            wanted,
            told_all: false,
        })))
    }
}

impl Running for ExactRecording {
    fn step(&mut self, agent: &mut Agent, observer: &mut dyn Observer) -> Result<Step> {
        std::thread::sleep(STEP);
        self.beside.drain();
        self.exact.watched.iter_mut().for_each(Watched::drain);
        self.pauses.drain();
        self.beside.steer(agent, &mut self.exact, observer);
        if !self.recorder.is_due() {
            return Ok(Step::Going);
        }
        // The agent notes the time when it is asked; calls under way are counted up to it.
        if !self.hear(agent) {
            return Ok(Step::Over);
        }
        self.append()?;
        if let Some(one_in) = self.exact.take_one_in() {
            // Whoever has gone is noticed at the next turn.
            let _ = agent.tell(&Request::Change(EngineChange::Follow { one_in }));
        }
        Ok(Step::Told(super::Figures::Exact(self.figures()), self.began.elapsed()))
    }

    fn command(&mut self, agent: &mut Agent, command: Command) -> Result<String> {
        match command {
            Command::Dump(file) => {
                self.hear(agent);
                self.append()?;
                let size = rewrite(self.recorder.path(), file, &self.exact)?;
                Ok(format!("{} KiB", size.div_ceil(1024)))
            }
            Command::Stop => Ok("stopped".to_owned()),
            Command::Pause | Command::Resume => refuse!(
                "an exact recording cannot be paused: it counts every call from its beginning to its \
                 end; stop it, and begin another"
            ),
            Command::Interval(_) | Command::Threshold(_) => {
                refuse!("an exact recording has no sampling interval: it counts every call")
            }
        }
    }

    fn end(&mut self, agent: &mut Agent, observer: &mut dyn Observer) -> bool {
        self.told_all = self.hear(agent);
        self.beside.stop(agent);
        if let Some(watched) = &mut self.exact.watched {
            // A JVM that has ended has told what it could.
            let _ = agent.tell(&Request::Stop(EngineName::Alloc));
            watched.end();
        }
        let alive = weaving::stop(agent, EngineName::Exact, observer).is_ok();
        self.pauses.end(agent);
        alive
    }

    fn finish(self: Box<Self>, failed: Option<Error>) -> Result<Finished> {
        let mut this = *self;
        let finished = this.recorder.finish(&mut sources!(this));
        drop(this.rescuer);
        failed.map_or(Ok(()), Err)?;
        let recorded = finished?;
        let (exact, told_all) = (&this.exact, this.told_all);
        let status = exact.status.clone();
        let mut figures = figures(exact);
        if !told_all {
            // A JVM that has ended cannot be asked any more; the log of names is as it was left.
            figures.methods = figures.methods.max(exact.woven_and_ran()?.0 as u64);
        }
        let sampled = this.sampled.as_ref().is_some_and(|sampled| sampled.samples() > 0);
        let passages = exact.passages();
        let is_empty = figures.totals.calls == 0 && !sampled && passages == 0;
        let nothing =
            is_empty.then(|| this.wanted.but_nothing(figures.methods, status.refused.len()));
        let woven_and_ran = status.subgraph.is_some().then(|| exact.woven_and_ran()).transpose()?;
        let steering = exact.steering.as_ref().map(|steering| Steered {
            overhead: steering.overhead().map(|overhead| (overhead.counting, overhead.timing)),
            source: steering.source(),
            budget: steering.budget(),
            demoted: steering.ever_demoted().count(),
        });
        let following = exact.following().map(|following| HeldByFollowing {
            overhead: following.overhead(),
            source: following.source(),
            budget: following.budget(),
            one_in: following.one_in(),
            range: following.range(),
        });
        let outcome =
            Outcome { figures, status, told_all, passages, steering, following, woven_and_ran };
        let outcome = super::Outcome::Exact(Box::new(outcome));
        Ok(Finished { recorded: Some(recorded), nothing, outcome })
    }
}

impl ExactRecording {
    /// What the agent says of the recording now; whether it says anything.
    fn hear(&mut self, agent: &mut Agent) -> bool {
        let Ok(status) = agent.status() else { return false };
        let Some(exact) = status.exact() else { return false };
        self.exact.status = exact.clone();
        self.pauses.update(&status);
        if let (Some(watched), Some(alloc)) = (&mut self.exact.watched, status.alloc()) {
            watched.update(alloc);
        }
        true
    }

    fn append(&mut self) -> Result<()> {
        self.recorder.append(&mut sources!(self))
    }

    fn figures(&self) -> Figures {
        figures(&self.exact)
    }
}

fn figures(exact: &Exact) -> Figures {
    let status = &exact.status;
    Figures {
        methods: status.methods,
        totals: exact.totals(),
        used: status.used,
        budget: status.budget,
        in_probes: exact.in_probes(),
        held: exact.following().map(|by| Box::new((by.one_in(), by.overhead()))),
        live: exact.watched.as_ref().map(Watched::proven),
        regions: status.regions.len(),
        regions_only: exact.has_regions_only(),
    }
}

/// Has the agent watch what woven code will hand over; its stream.
fn watch(agent: &mut Agent) -> Result<[File; 2]> {
    let plan = AllocPlan { woven: true, ..AllocPlan::default() };
    agent.tell_for_files(&Request::Start(EnginePlan::Alloc(Box::new(plan))))
}

/// A moment of the past by the monotonic clock, in nanoseconds.
pub(super) fn monotonic(moment: Instant) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now = Duration::try_from(now).unwrap_or_default();
    u64::try_from(now.saturating_sub(moment.elapsed()).as_nanos()).unwrap_or(u64::MAX)
}

impl Plan {
    /// Notes in a run what is not in the plan for the agent.
    fn describe(&self, run: &mut RunInfo, launched: bool) {
        let found = self.found.iter().map(|found| ("roots-found".to_owned(), found.clone()));
        run.options.extend(found);
        if launched && self.settings().fixed {
            run.facts.set(keys::CHANCE_FIXED, &true);
        }
        run.facts.set_known(keys::TARGET, self.target.clone());
    }
}

/// What is known of a run before anything is counted.
pub(super) fn run_info(jvm: &Jvm, plan: &ExactPlan, started: SystemTime) -> RunInfo {
    let mode = match () {
        () if plan.is_trace() => "trace",
        () if plan.blocks().is_some() => "bytecodes",
        () if plan.has_sites() => "alloc",
        () if !plan.is_timed() => "count",
        () if plan.is_cpu_time() => "cpu-time",
        () => "time",
    };
    let mut options = vec![("kind", "exact".to_owned()), ("mode", mode.to_owned())];
    let mut facts = Facts::default();
    for (key, patterns) in [("include", &plan.include), ("exclude", &plan.exclude)] {
        options.extend(patterns.iter().map(|pattern| (key, pattern.to_string())));
    }
    for (key, methods) in [("root", plan.root_methods()), ("count-only", plan.count_only())] {
        options.extend(methods.iter().map(|method| (key, method.to_string())));
    }
    if plan.times_all() {
        options.push(("time-all", "yes".to_owned()));
    }
    if let Some(some) = plan.some_times() {
        options.push(("time-one-in", some.one_in.to_string()));
        options.push(("time-seed", some.seed.to_string()));
        facts.set(keys::TIMED_ONE_IN, &u64::from(some.one_in));
    }
    if let Some(follow) = plan.follow() {
        options.push(("follow", format!("1/{}", follow.one_in)));
        options.push(("follow-seed", follow.seed.to_string()));
        options.push(("slowest", follow.kept.to_string()));
        facts.set(keys::FOLLOWED_ONE_IN, &u64::from(follow.one_in));
    }
    options.extend(plan.regions().iter().map(|region| ("region", region.to_string())));
    options.extend(plan.blocks().map(|blocks| ("blocks", blocks.to_string())));
    if let Measure::Samples(samples) = &plan.measure {
        options.push(("every", samples.every.to_string()));
        facts.set(keys::BYTECODES_PER_SAMPLE, &u64::from(samples.every));
        options.extend(samples.random.map(|seed| ("random", seed.to_string())));
    }
    options.extend(plan.roots().map(|roots| ("scheme", roots.scheme().to_string())));
    if plan.follows_threads() {
        options.push(("follow-threads", "yes".to_owned()));
    }
    if plan.has_sites() {
        facts.set(keys::ALLOCATION_EXACT, &true);
    }
    if !plan.watched().is_empty() {
        let classes = plan.watched().iter().map(ToString::to_string).collect();
        facts.set::<Vec<String>>(keys::LIVE_CLASSES, &classes);
    }
    if plan.skip_trivial {
        facts.set(keys::SKIPS_TRIVIAL, &true);
    }
    let since_1970 = started.duration_since(UNIX_EPOCH).ok();
    RunInfo {
        options: options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        facts,
        started: since_1970.and_then(|d| i64::try_from(d.as_nanos()).ok()),
        ..exact::run_info(jvm)
    }
}
