//! `tare record` without a mode: samples what threads do, by their processor clocks or, with `--wall`,
//! by the clock on the wall.

use super::patterns::{self, Wanted};
use super::{Files, Kept, Names, STEP, Session};
use crate::cli::{RecordArgs, ReportArgs};
use crate::commands::report;
use crate::figures::{headline, remark, remark_aside, roughly, several};
use crate::files::replace_by;
use crate::source;
use crate::term::{self, Doing, WARN};
use anyhow::{Context, Result};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_attach::Jvm;
use tare_profile::RunInfo;
use tare_protocol::{EngineChange, EngineName, EnginePlan, Request, SampleEngine, SamplePlan};
use tare_recording::{LoadOptions, Recording, Writer};
use tare_session::client::Agent;
use tare_session::desk::{self, Desk, Order};
use tare_session::exact;
use tare_session::keep::Keeper;
use tare_session::launch::Settings;
use tare_session::origins::Origins;
use tare_session::recorder::Recorder;
use tare_session::sampling::{DRAIN, Fitting, Sampling, interval};
use tare_symbols::Ahead;

/// The ring in the JVM that samples wait in until they are drained, twenty times a second.
const RING: u64 = 32 << 20;

/// A sampling recording under way.
pub struct SamplingSession {
    sampling: Sampling,
    store: Store,
    files: Files,
    /// Where a second terminal gives orders; without it the recording goes on all the same.
    desk: Option<Desk>,
    stopped: bool,
    by_thread: bool,
    quiet: bool,
    pid: u32,
    wanted: Wanted,
}

/// What becomes of the samples.
enum Store {
    /// All of them go into the file as they come.
    File(Box<Recorder>),
    /// Those of the last minutes are kept in memory.
    Memory(Box<Keeper>),
}

/// What a program that is started for it gets.
const SETTINGS: Settings = Settings {
    exact: false,
    fixed: false,
    flags: &["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"],
    word: Some(
        "started with -XX:+DebugNonSafepoints, so that compiled code tells its lines and inlined \
         methods everywhere",
    ),
};

impl Session for SamplingSession {
    fn settings(_: &RecordArgs) -> Settings {
        SETTINGS
    }

    fn begin(
        agent: &mut Agent,
        jvm: &Jvm,
        args: &RecordArgs,
        names: &Names,
        _stop: &AtomicBool,
    ) -> Result<Option<Self>> {
        let defaults = SamplePlan::default();
        let plan = SamplePlan {
            engine: args.engine,
            wall: args.wall,
            interval_ns: args.interval.map_or(defaults.interval_ns, nanos),
            depth: args.depth.unwrap_or(defaults.depth),
            native: !args.java_only,
            kernel: !args.java_only,
            memory: RING,
            yields: false,
        };
        if is_perf(plan.engine) && jvm.is_filtered() {
            errln!(
                "{WARN}tare: this JVM is under a filter of system calls (seccomp); if that does not \
                 permit perf_event_open, it may end the JVM now{WARN:#}"
            );
        }
        let wanted = patterns::check(agent, args, &Origins::of(jvm))?;
        let files = Files::take(args, jvm, names);
        // Others may hold us up here, so it comes before the JVM is touched.
        let desk = match Desk::open(jvm) {
            Ok(desk) => Some(desk),
            Err(error) => {
                errln!(
                    "{WARN}tare: no orders from a second terminal will reach this recording: \
                     {error:#}{WARN:#}"
                );
                None
            }
        };
        // While the agent takes all threads in, rather than beside the program that is then sampled.
        let with_kernel = plan.kernel && !plan.wall && plan.engine != Some(SampleEngine::Timer);
        let kernel = with_kernel.then(Ahead::begin);
        let starting = Doing::say("taking in the JVM's threads", args.quiet);
        let stream = agent.tell_for_files(&Request::Start(EnginePlan::Sampling(Box::new(plan))))?;
        drop(starting);
        // The agent's clock began after its preparations, just before it answered.
        let began = Instant::now();
        let started = SystemTime::now();
        let status = agent.status()?.sampling().cloned().unwrap_or_default();
        for note in status.notes.iter().filter(|_| !args.quiet) {
            remark_aside(&term::plain(note));
        }
        let fitting = Fitting { include: args.include.clone(), exclude: args.exclude.clone() };
        let sampling = Sampling::new(stream, jvm, status, kernel)?.showing(fitting);
        let run = run_info(jvm, args, started);
        let store = match args.keep {
            None => Store::File(Box::new(Recorder::begin(&files.recording, run, began)?)),
            Some(span) => Store::Memory(Box::new(Keeper::begin(span, run, began))),
        };
        let (by_thread, quiet) = (args.threads, args.quiet);
        let (stopped, pid) = (false, jvm.pid);
        Ok(Some(SamplingSession {
            sampling,
            store,
            files,
            desk,
            stopped,
            by_thread,
            quiet,
            pid,
            wanted,
        }))
    }

    fn watch(&mut self, agent: &mut Agent, over: &dyn Fn() -> bool) -> Result<()> {
        let mut progress = Progress::new(self.quiet);
        if progress.terminal && matches!(self.store, Store::Memory(_)) {
            let pid = self.pid;
            remark_aside(&format!(
                "the last minutes are kept; `tare dump {pid}` writes them, Ctrl-C ends"
            ));
        }
        let mut drained = Instant::now();
        while !over() && !self.stopped && !agent.has_gone() {
            std::thread::sleep(STEP);
            if drained.elapsed() >= DRAIN {
                drained = Instant::now();
                if !self.sampling.drain() {
                    break;
                }
            }
            self.take_orders(agent);
            if self.is_due() {
                // What the agent says of itself is not worth losing samples for.
                if let Ok(Some(status)) = agent.status().map(|status| status.sampling().cloned()) {
                    self.sampling.status = status;
                }
                self.look()?;
                progress.show(&self.sampling);
            }
        }
        Ok(())
    }

    fn end(&mut self, agent: &mut Agent) -> bool {
        if let Ok(Some(status)) = agent.status().map(|status| status.sampling().cloned()) {
            self.sampling.status = status;
        }
        let alive = agent.tell(&Request::Stop(EngineName::Sampling)).is_ok();
        self.sampling.end();
        alive
    }

    fn keep(self, watched: Result<()>) -> Result<Kept> {
        let SamplingSession { mut sampling, store, files, desk, by_thread, quiet, wanted, .. } =
            self;
        let size = match store {
            Store::File(recorder) => {
                let finished = recorder.finish(&mut [&mut sampling]);
                watched?;
                finished?.size
            }
            Store::Memory(mut keeper) => {
                keeper.look(&mut sampling)?;
                let doing = || format!("cannot write {}", files.recording.display());
                replace_by(&files.recording, |file| Ok(keeper.dump(file)?)).with_context(doing)?.1
            }
        };
        let outside = sampling.outside();
        let kept = match sampling.samples() {
            0 => Kept::Nothing(nothing(&sampling)),
            all if outside >= all => Kept::Nothing(wanted.but_no_sample(all)),
            _ => Kept::Something,
        };
        if quiet {
            files.complete(size)?;
            desk.into_iter().for_each(Desk::complete);
            return Ok(kept);
        }
        let profile = source::load(&files.recording, None)?;
        let (path, size) = files.complete(size)?;
        desk.into_iter().for_each(Desk::complete);
        let what = format!(
            "{} in {}; {} KiB",
            roughly(sampling.samples(), "sample"),
            term::time(sampling.elapsed()),
            size.div_ceil(1024),
        );
        headline(&path, &what);
        if outside > 0 {
            let outside = roughly(outside, "sample");
            remark(&format!("{outside} without any method that fits --include and --exclude"));
        }
        let page = ReportArgs { threads: by_thread, ..ReportArgs::plain(&path) };
        term::printed(report::whole(&profile, &page))?;
        Ok(kept)
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

impl SamplingSession {
    fn is_due(&self) -> bool {
        match &self.store {
            Store::File(recorder) => recorder.is_due(),
            Store::Memory(keeper) => keeper.is_due(),
        }
    }

    /// Takes the samples of the last second.
    fn look(&mut self) -> Result<()> {
        match &mut self.store {
            Store::File(recorder) => recorder.append(&mut [&mut self.sampling])?,
            Store::Memory(keeper) => keeper.look(&mut self.sampling)?,
        }
        Ok(())
    }

    fn take_orders(&mut self, agent: &mut Agent) {
        let Some(desk) = self.desk.take() else { return };
        desk.serve(|order| self.carry_out(agent, order));
        self.desk = Some(desk);
    }

    fn carry_out(&mut self, agent: &mut Agent, order: Order) -> Result<String> {
        let mut change = |interval_ns, paused| {
            agent.tell(&Request::Change(EngineChange::Sampling { interval_ns, paused }))
        };
        match order {
            Order::Dump(file) => self.dump(file),
            Order::Stop => {
                self.stopped = true;
                // Whoever reads it may be somewhere else.
                let path = std::path::absolute(self.files.result())?;
                Ok(format!("stopped; the recording is in {}", path.display()))
            }
            Order::Pause => Ok(change(None, Some(true)).map(|()| "paused".to_owned())?),
            Order::Resume => Ok(change(None, Some(false)).map(|()| "goes on".to_owned())?),
            Order::Interval(nanos) => {
                change(Some(nanos), None)?;
                Ok(format!("samples every {} from now on", interval(nanos)))
            }
        }
    }

    /// Writes what there is so far, or what is kept.
    fn dump(&mut self, file: File) -> Result<String> {
        self.look()?;
        let file = desk::emptied(file, &self.files.recording)?;
        let size = match &self.store {
            Store::Memory(keeper) => keeper.dump(file)?.1,
            Store::File(_) => rewrite(&self.files.recording, file)?,
        };
        Ok(format!("{} KiB", size.div_ceil(1024)))
    }
}

/// Makes a whole file of one that still grows; its size.
fn rewrite(growing: &Path, file: File) -> Result<u64> {
    let doing = || "cannot write the dump";
    let profile = Recording::open(growing)?.load(&LoadOptions::default())?.profile;
    let file = Writer::new(file).with_context(doing)?.finish(&profile).with_context(doing)?;
    Ok(file.metadata().with_context(doing)?.len())
}

/// A line on the terminal, if there is one, that says how the recording goes.
struct Progress {
    terminal: bool,
    samples: u64,
    cpu: u64,
    at: Duration,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        let terminal = term::shows_progress(quiet);
        Progress { terminal, samples: 0, cpu: 0, at: Duration::ZERO }
    }

    fn show(&mut self, sampling: &Sampling) {
        if !self.terminal {
            return;
        }
        let (samples, cpu, at) = (sampling.samples(), sampling.totals.cpu, sampling.elapsed());
        let since = at.saturating_sub(self.at).as_secs_f64().max(1e-9);
        let rate = samples.saturating_sub(self.samples) as f64 / since;
        let cpus = cpu.saturating_sub(self.cpu) as f64 / 1e9 / since;
        (self.samples, self.cpu, self.at) = (samples, cpu, at);
        term::progress(&line(sampling, at, rate as u64, cpus));
    }
}

/// What matters most comes first: the end of it is lost where the terminal is narrow.
fn line(sampling: &Sampling, at: Duration, rate: u64, cpus: f64) -> String {
    let status = &sampling.status;
    let lost = match sampling.lost() {
        0 => String::new(),
        lost => format!("  {} lost", term::count(lost)),
    };
    let paused = if status.paused { "  paused" } else { "" };
    format!(
        "{:>4.0} s{paused}  {}, {}/s{lost}  {cpus:.2} CPUs  {}  {}, {}",
        at.as_secs_f64(),
        roughly(sampling.samples(), "sample"),
        term::count(rate),
        several(status.threads, "thread"),
        status.engine.map_or("?".to_owned(), |engine| engine.to_string()),
        interval(sampling.totals.interval),
    )
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal {
            term::progress("");
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn run_info(jvm: &Jvm, args: &RecordArgs, started: SystemTime) -> RunInfo {
    let mode = if args.wall { "wall" } else { "cpu" };
    let mut options = vec![("kind", "sampling".to_owned()), ("mode", mode.to_owned())];
    for (key, patterns) in [("include", &args.include), ("exclude", &args.exclude)] {
        options.extend(patterns.iter().map(|pattern| (key, pattern.to_string())));
    }
    let since_1970 = started.duration_since(UNIX_EPOCH).ok();
    RunInfo {
        options: options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        started: since_1970.and_then(|d| i64::try_from(d.as_nanos()).ok()),
        ..exact::run_info(jvm)
    }
}
