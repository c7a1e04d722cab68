//! `tare record --exact`: weaves, counts, and puts the code back.

use super::patterns::{self, Wanted};
use super::plan::{plan, skips_trivial};
use super::steer::Beside;
use super::weaving::{self, Begun};
use super::{CHANCE_FIXED, Files, Kept, Names, STEP, Session, WOVEN_AFTER, predict, window};
use crate::cli::RecordArgs;
use crate::commands::report;
use crate::figures::{headline, remark, remark_aside, roughly, several};
use crate::source;
use crate::target::Target;
use crate::term::{self, Doing};
use anyhow::Result;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_attach::Jvm;
use tare_profile::{Profile, RunInfo};
use tare_protocol::{COST_PS, ExactStatus};
use tare_session::client::Agent;
use tare_session::counters::Counters;
use tare_session::demotion::Steering;
use tare_session::exact::{self, Arena, Exact};
use tare_session::guard::Guard;
use tare_session::launch::Settings;
use tare_session::origins::Origins;
use tare_session::recorder::{Recorder, Source};
use tare_session::sampling::Sampling;

/// For recordings that are to be the same in every run: what the JVM leaves to chance comes from a
/// counter or a constant instead.
pub fn fixed() -> Settings {
    Settings {
        exact: true,
        fixed: true,
        flags: &HASH_CODES,
        word: Some(
            "identity hash codes, the order of Set.of and Map.of, and seeds of Random are the same \
             in every run; --as-it-comes leaves them to chance",
        ),
    }
}

/// The class that runs the pieces of parallel streams and other work that is forked, on whatever thread.
pub const FORK_JOIN: &str = "java.util.concurrent.ForkJoinTask";

const HASH_CODES: [&str; 2] = ["-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=3"];

/// Into how many pieces a parallel stream parts its work depends on the number of processors, but for this.
/// Threads of the common pool are as many.
const CHECKED: &[&str] =
    &[HASH_CODES[0], HASH_CODES[1], "-Djava.util.concurrent.ForkJoinPool.common.parallelism=4"];

/// An exact recording under way.
pub struct ExactSession {
    exact: Exact,
    /// What was sampled before.
    sampled: Option<Sampling>,
    counters: Option<Counters>,
    /// Samples for the steering.
    beside: Beside,
    recorder: Recorder,
    began: Instant,
    files: Files,
    /// Until the file is complete.
    guard: Option<Guard>,
    wanted: Wanted,
    /// The agent was asked once more when all was over.
    told_all: bool,
    quiet: bool,
}

impl Session for ExactSession {
    fn settings(args: &RecordArgs) -> Settings {
        let usual = Settings { exact: true, fixed: false, flags: &[], word: None };
        match () {
            () if args.for_check => Settings { flags: CHECKED, ..fixed() },
            () if args.bytecodes && !args.as_it_comes => fixed(),
            () => usual,
        }
    }

    fn begin(
        agent: &mut Agent,
        jvm: &Jvm,
        args: &RecordArgs,
        names: &Names,
        stop: &AtomicBool,
    ) -> Result<Option<Self>> {
        let plan = plan(args)?;
        if let Some(sample) = &args.sample {
            let profile = source::load(sample, None)?;
            let sentence = predict::sentence(&profile, sample, args)?;
            if !args.quiet {
                remark_aside(&sentence);
            }
        }
        let origins = Origins::of(jvm);
        let looking = Doing::say("looking for the classes that are asked for", args.quiet);
        let wanted = patterns::check(agent, args, &origins)?;
        drop(looking);
        let files = Files::take(args, jvm, names);
        let window = args.cpu.then(|| window::sample(agent, jvm, args, stop)).transpose()?;
        let began = window.as_ref().map_or_else(Instant::now, |window| window.began);
        let started = SystemTime::now() - began.elapsed();
        let Begun::Woven(memory) = weaving::start(agent, plan, stop, args.quiet)? else {
            return Ok(None);
        };
        // The file comes after the start, which may fail, and leaves an older one alone then.
        let mut run = run_info(jvm, args, started);
        run.options.push((WOVEN_AFTER.to_owned(), began.elapsed().as_nanos().to_string()));
        run.options.extend(window.iter().flat_map(|window| window.options()));
        let recorder = Recorder::begin(&files.recording, run, began)?;
        // A program may end before the first look.
        let status = agent.status()?;
        status.exact().into_iter().for_each(|exact| patterns::say_unseen(exact, args));
        // A machine that has no room for one more process has other worries.
        let guard = Guard::set(jvm, &files.recording, &memory, &status).ok();
        let mut exact =
            Exact::new(Arena::new(memory), status.exact().cloned().unwrap_or_default(), origins);
        exact.steering = args.overhead.map(Steering::new);
        let beside = Beside::begin(agent, &mut exact);
        let counters = args.counters.then(|| Counters::begin(jvm.pid));
        let quiet = args.quiet;
        let sampled = window.map(|window| window.sampling);
        Ok(Some(ExactSession {
            exact,
            sampled,
            counters,
            beside,
            recorder,
            began,
            files,
            guard,
            wanted,
            told_all: false,
            quiet,
        }))
    }

    fn watch(&mut self, agent: &mut Agent, over: &dyn Fn() -> bool) -> Result<()> {
        let mut progress = Progress::new(self.began, self.quiet);
        while !over() && !agent.has_gone() {
            std::thread::sleep(STEP);
            self.beside.drain();
            self.beside.steer(agent, &mut self.exact, over, self.quiet);
            if self.recorder.is_due() {
                // The agent notes the time when it is asked; calls under way are counted up to it.
                let Ok(Some(status)) = agent.status().map(|status| status.exact().cloned()) else {
                    break;
                };
                self.exact.status = status;
                let (sampled, counters) = (self.sampled.as_mut(), self.counters.as_mut());
                self.recorder.append(&mut sources(&mut self.exact, sampled, counters))?;
                progress.show(&self.exact);
            }
        }
        Ok(())
    }

    fn end(&mut self, agent: &mut Agent) -> bool {
        if let Ok(status) = agent.status()
            && let Some(status) = status.exact().cloned()
        {
            self.exact.status = status;
            self.told_all = true;
        }
        self.beside.stop(agent);
        weaving::stop(agent, self.quiet).is_ok()
    }

    fn keep(self, watched: Result<()>) -> Result<Kept> {
        let ExactSession {
            mut exact,
            mut sampled,
            mut counters,
            recorder,
            files,
            guard,
            wanted,
            told_all,
            quiet,
            ..
        } = self;
        let finished =
            recorder.finish(&mut sources(&mut exact, sampled.as_mut(), counters.as_mut()));
        drop(guard);
        watched?;
        let recorded = finished?;
        let (totals, status) = (exact.totals(), &exact.status);
        // A JVM that has ended cannot be asked any more; the log of names is as it was left.
        let methods = match told_all {
            true => status.methods,
            false => status.methods.max(exact.woven_and_ran()?.0 as u64),
        };
        let sampled = sampled.as_ref().is_some_and(|sampled| sampled.samples() > 0);
        let is_empty = totals.calls == 0 && !sampled;
        // A large recording is not read again for nothing.
        let must_look = !quiet || (is_empty && !status.regions.is_empty());
        let profile = must_look.then(|| source::load(&recorded.path, None)).transpose()?;
        let passages = profile.as_ref().map_or(0, passages);
        let kept = match is_empty && passages == 0 {
            true => Kept::Nothing(wanted.but_nothing(methods, status.refused.len())),
            false => Kept::Something,
        };
        let (path, size) = files.complete(recorded.size)?;
        let Some(profile) = profile.filter(|_| !quiet) else { return Ok(kept) };
        let bytecodes = match totals.bytecodes {
            0 => String::new(),
            n if status.costs => {
                format!(
                    " and {} on the target, which is too low (see the report)",
                    term::time(Duration::from_nanos(n * COST_PS / 1000))
                )
            }
            n => format!(" and {}", roughly(n, "bytecode")),
        };
        let recorded_here = if exact.has_regions_only() {
            let regions = several(status.regions.len(), "region");
            format!("{} of {regions}", roughly(passages, "passage"))
        } else {
            format!(
                "{}{bytecodes} in {} of {}",
                roughly(totals.calls, if totals.samples { "sample" } else { "call" }),
                roughly(totals.contexts as u64, "context"),
                several(totals.trees, "thread"),
            )
        };
        let woven = several(methods, "method");
        let size = size.div_ceil(1024);
        headline(&path, &format!("{recorded_here}, {woven} woven; {size} KiB"));
        if !totals.samples && !exact.has_regions_only() && totals.calls > 0 {
            let in_probes = exact.in_probes();
            remark(&format!(
                "a call costs {:.1} ns or more in probes, {:.2} s in all",
                in_probes / (totals.calls as f64).max(1.0),
                in_probes / 1e9,
            ));
        }
        if told_all {
            say_weaving(status);
        }
        if let Some(steering) = &exact.steering {
            say_overhead(steering);
        }
        if let Some(longest) = recorded.stretched {
            remark(&format!(
                "the trees were large: up to {longest:.1?} passed between two looks at them"
            ));
        }
        say_subgraph(&exact)?;
        term::printed(report::page(&profile, &path))?;
        Ok(kept)
    }
}

/// Of all regions.
fn passages(profile: &Profile) -> u64 {
    let regions = tare_analysis::regions(profile);
    regions.iter().map(|region| region.all.count).sum::<i64>().cast_unsigned()
}

fn sources<'a>(
    exact: &'a mut Exact,
    sampled: Option<&'a mut Sampling>,
    counters: Option<&'a mut Counters>,
) -> Vec<&'a mut dyn Source> {
    let sampled = sampled.map(|sampled| sampled as &mut dyn Source);
    let counters = counters.map(|counters| counters as &mut dyn Source);
    std::iter::once(exact as &mut dyn Source).chain(sampled).chain(counters).collect()
}

/// A line on the terminal, if there is one, that says how the recording goes.
struct Progress {
    terminal: bool,
    began: Instant,
    calls: u64,
    /// Nanoseconds.
    in_probes: f64,
    at: Instant,
}

impl Progress {
    fn new(began: Instant, quiet: bool) -> Self {
        let terminal = term::shows_progress(quiet);
        Progress { terminal, began, calls: 0, in_probes: 0.0, at: began }
    }

    fn show(&mut self, exact: &Exact) {
        if !self.terminal {
            return;
        }
        let (totals, status) = (exact.totals(), &exact.status);
        let since = self.at.elapsed().as_secs_f64().max(1e-9);
        let rate = totals.calls.saturating_sub(self.calls) as f64 / since;
        let in_probes = exact.in_probes();
        let share = (in_probes - self.in_probes) / since / 1e9;
        (self.calls, self.in_probes, self.at) = (totals.calls, in_probes, Instant::now());
        let (time, methods) = (self.began.elapsed().as_secs_f64(), status.methods);
        if exact.has_regions_only() {
            let regions = several(status.regions.len(), "region");
            let methods = several(methods, "method");
            term::progress(&format!("{time:>6.1} s  {regions} in {methods}"));
            return;
        }
        term::progress(&format!(
            "{time:>5.1} s  {}  {}/s  {}  {}/{} MiB  probes ≥ {:.0} %",
            several(methods, "method"),
            roughly(rate as u64, if totals.samples { "sample" } else { "call" }),
            roughly(totals.contexts as u64, "context"),
            status.used >> 20,
            status.budget >> 20,
            share * 100.0,
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal {
            term::progress("");
        }
    }
}

/// What probes took, and how that is known.
fn say_overhead(steering: &Steering) {
    let now = steering.overhead().map_or_else(String::new, |overhead| {
        let [counting, timing] = [overhead.counting, overhead.timing].map(|share| share * 100.0);
        format!(
            "{:.0} % of the program's own time at last ({counting:.0} % counting, {timing:.0} % timing, \
             by {}), ",
            overhead.all() * 100.0,
            steering.source(),
        )
    });
    remark(&format!(
        "probes took {now}{:.0} % were allowed; {} counted and not timed",
        steering.budget() * 100.0,
        several(steering.ever_demoted().count(), "method"),
    ));
}

/// What changing the classes took.
pub fn say_weaving(status: &ExactStatus) {
    remark(&format!(
        "weaving took {:.0} ms; {}, {:.0} ms in all, {:.0} ms the longest",
        status.weaving_ns as f64 / 1e6,
        several(status.pauses, "pause"),
        status.pause_ns as f64 / 1e6,
        status.longest_pause_ns as f64 / 1e6,
    ));
}

/// What the search for what the roots reach has found, and what it cost.
fn say_subgraph(exact: &Exact) -> Result<()> {
    let Some(subgraph) = &exact.status.subgraph else { return Ok(()) };
    let (woven, ran) = exact.woven_and_ran()?;
    remark(&format!(
        "{} can be reached as far as is known, {woven} woven, {} of them never ran below a root",
        several(subgraph.reachable, "method"),
        woven.saturating_sub(ran),
    ));
    remark(&format!(
        "{} for what a method calls to be woven, {:.0} ms in all, {:.0} ms the longest; no time has \
         them in it",
        several(subgraph.waits, "wait"),
        subgraph.wait_ns as f64 / 1e6,
        subgraph.longest_wait_ns as f64 / 1e6,
    ));
    let missed = subgraph.hurried + subgraph.gave_up + subgraph.late;
    if missed > 0 {
        remark(&format!(
            "first calls may be missing in {}: {} loading classes and could not wait, for {} it took \
             too long, {} into use outside",
            several(missed, "place"),
            match subgraph.hurried {
                1 => "1 thread was".to_owned(),
                n => format!("{n} threads were"),
            },
            subgraph.gave_up,
            several(subgraph.late, "class") + " came",
        ));
    }
    Ok(())
}

pub fn run_info(jvm: &Jvm, args: &RecordArgs, started: SystemTime) -> RunInfo {
    let mode = match (args.count, args.bytecodes, args.cpu_time) {
        _ if args.trace => "trace",
        (true, ..) => "count",
        (_, true, _) => "bytecodes",
        (_, _, true) => "cpu-time",
        _ => "time",
    };
    let mut options = vec![("kind", "exact".to_owned()), ("mode", mode.to_owned())];
    for (key, patterns) in [("include", &args.include), ("exclude", &args.exclude)] {
        options.extend(patterns.iter().map(|pattern| (key, pattern.to_string())));
    }
    for (key, methods) in [("root", &args.root), ("count-only", &args.count_only)] {
        options.extend(methods.iter().map(|method| (key, method.to_string())));
    }
    if args.time_all {
        options.push(("time-all", "yes".to_owned()));
    }
    options.extend(args.region.iter().map(|region| ("region", region.to_string())));
    if !args.command.is_empty() && ExactSession::settings(args).fixed {
        options.push((CHANCE_FIXED, "yes".to_owned()));
    }
    if args.bytecodes {
        options.push(("blocks", args.blocks.to_string()));
    }
    if let Some(target) = args.target.as_deref().and_then(|path| Target::read(path).ok()) {
        options.push(("target", target.jvm));
    }
    options.extend(args.every.map(|every| ("every", every.to_string())));
    options.extend(args.random.map(|seed| ("random", seed.to_string())));
    if !args.root.is_empty() {
        options.push(("scheme", args.scheme.to_string()));
    }
    if args.follow_threads {
        options.push(("follow-threads", "yes".to_owned()));
    }
    if skips_trivial(args) {
        options.push(("skip-trivial", "yes".to_owned()));
    }
    let since_1970 = started.duration_since(UNIX_EPOCH).ok();
    RunInfo {
        options: options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        started: since_1970.and_then(|d| i64::try_from(d.as_nanos()).ok()),
        ..exact::run_info(jvm)
    }
}
