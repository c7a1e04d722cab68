//! `tare record --exact`: weaves, waits, restores, and leaves a recording.
//!
//! Whatever ends it (Ctrl-C, the time given, the end of the JVM, even its `kill -9`), the trees lie
//! in memory that we hold too, so what was recorded is kept; and if we are killed ourselves, what the
//! recorder has written until then.

use crate::cli::RecordArgs;
use crate::client::Agent;
use crate::commands::{detach, export, report, status};
use crate::exact::{self, Arena, Exact};
use crate::launch::{self, Guest};
use crate::recorder::Recorder;
use crate::source;
use crate::term::{self, BOLD, DIM, WARN};
use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_attach::Jvm;
use tare_formats::Format;
use tare_profile::RunInfo;
use tare_protocol::{ExactPlan, Request};

/// How long a wish to end may go unheard.
const STEP: Duration = Duration::from_millis(20);

pub fn run(args: RecordArgs) -> ExitCode {
    let outcome = check_output(args.output.as_deref()).and_then(|()| match &args.jvm {
        Some(who) => attached(who, &args).map(|()| ExitCode::SUCCESS),
        None => launched(args),
    });
    outcome.unwrap_or_else(|e| crate::fail(&e))
}

/// A name that cannot be written is said before anything is recorded.
fn check_output(output: Option<&Path>) -> Result<()> {
    let Some(path) = output else { return Ok(()) };
    let ours = path.extension().is_none_or(|ending| ending == "tare");
    if !ours && Format::of_path(path).is_none() {
        bail!(
            "the ending of {} names no format: .tare for a recording, .html for a flame graph, or \
             what `tare export --help` lists",
            path.display()
        );
    }
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        bail!("there is no directory {} for the recording", directory.display());
    }
    Ok(())
}

/// Records a JVM that runs already.
fn attached(who: &str, args: &RecordArgs) -> Result<()> {
    let jvm = tare_attach::find(who)?;
    let patience = args.patience.timeout;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let was_there = jvm.has_agent();
    let mut agent = status::enter_quietly(&jvm, patience)?;
    let mut session = Session::begin(&mut agent, &jvm, args, &Names::default())?;
    let until = args.duration.map(|duration| Instant::now() + duration);
    let over =
        || stop.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until);
    let watched = session.watch(&mut agent, over);
    let alive = session.end(&mut agent);
    let kept = session.keep(watched);
    if alive && !was_there {
        agent.tell(&Request::Detach)?;
        detach::wait_for_threads(&jvm, patience)?;
    }
    kept
}

/// Starts a program and records each of its JVMs, from before its `main` to its end.
fn launched(args: RecordArgs) -> Result<ExitCode> {
    let command = args.command.clone();
    let attend = {
        let names = Names::default();
        move |guest: Guest| {
            let what = guest.to_string();
            if let Err(e) = record_guest(guest, &args, &names) {
                anstream::eprintln!("{WARN}tare: {what}: {e:#}{WARN:#}");
            }
        }
    };
    let launched = launch::launch(&command, true, attend)?;
    if launched.guests == 0 {
        launched.warn_of_no_guest();
    }
    Ok(launch::exit_code(launched.status))
}

fn record_guest(guest: Guest, args: &RecordArgs, names: &Names) -> Result<()> {
    let what = guest.to_string();
    let jvm = tare_attach::inspect(guest.pid)?;
    let mut agent = status::enter_quietly(&jvm, args.patience.timeout)?;
    let mut session = Session::begin(&mut agent, &jvm, args, names)?;
    anstream::eprintln!("{DIM}tare: recording {what}{DIM:#}");
    let running = guest.let_go();
    let until = args.duration.map(|duration| Instant::now() + duration);
    let watched = session.watch(&mut agent, || until.is_some_and(|until| Instant::now() >= until));
    session.end(&mut agent);
    session.keep(watched)?;
    running.wait();
    Ok(())
}

/// The names of files that recordings of this command have taken: a command may start many JVMs, and
/// none may overwrite what another one wrote.
#[derive(Default)]
struct Names(Mutex<HashSet<PathBuf>>);

impl Names {
    /// The name that was asked for, or, if it is taken, the same with the pid before its ending.
    fn take(&self, output: Option<&Path>, jvm: &Jvm) -> PathBuf {
        let wanted = match output {
            Some(path) => path.to_owned(),
            None => PathBuf::from(format!("{}-{}.tare", short_name(jvm.name()), jvm.pid)),
        };
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.insert(wanted.clone()) {
            return wanted;
        }
        let name = wanted.file_name().unwrap_or_default().to_string_lossy();
        let (stem, ending) = name.split_once('.').unwrap_or((&name, "tare"));
        wanted.with_file_name(format!("{stem}-{}.{ending}", jvm.pid))
    }
}

/// One recording under way.
struct Session {
    exact: Exact,
    recorder: Recorder,
    began: Instant,
    /// Where the result goes and its format, if that is not the recording itself.
    export: Option<(PathBuf, Format, bool)>,
}

impl Session {
    fn begin(agent: &mut Agent, jvm: &Jvm, args: &RecordArgs, names: &Names) -> Result<Self> {
        let plan = ExactPlan {
            timed: !args.count,
            include: args.include.clone(),
            exclude: args.exclude.clone(),
            roots: args.root.clone(),
            scheme: args.scheme,
            skip_trivial: skips_trivial(args),
            count_only: args.count_only.clone(),
            cpu_time: args.cpu_time,
            depth: args.depth.unwrap_or(0),
            memory: args.memory,
            allow_huge: args.allow_huge,
        };
        let output = names.take(args.output.as_deref(), jvm);
        let export = Format::of_path(&output).map(|(format, gzip)| (output.clone(), format, gzip));
        let path = if export.is_some() { beside(&output) } else { output };
        let began = Instant::now();
        let started = SystemTime::now();
        let files = agent.tell_for_files(&Request::ExactStart(Box::new(plan)))?;
        // The file comes after the start, which may fail, and leaves an older one alone then.
        let recorder = Recorder::begin(&path, run_info(jvm, args, started), began)?;
        // A program may end before the first look.
        let status = agent.status()?.exact.unwrap_or_default();
        Ok(Session { exact: Exact::new(Arena::new(files), status), recorder, began, export })
    }

    /// Looks at the recording, with a line of progress on a terminal, until `over` or until the
    /// JVM has gone. An error means that no more can be written.
    fn watch(&mut self, agent: &mut Agent, over: impl Fn() -> bool) -> Result<()> {
        let mut progress = Progress::new(self.began);
        while !over() && !agent.has_gone() {
            std::thread::sleep(STEP);
            if self.recorder.is_due() {
                // The agent notes the time when it is asked; calls under way are counted up to it.
                let Ok(Some(status)) = agent.status().map(|status| status.exact) else { break };
                self.exact.status = status;
                self.recorder.append(&mut [&mut self.exact])?;
                progress.show(&self.exact);
            }
        }
        Ok(())
    }

    /// Has the code put back. Whether the JVM still lives.
    fn end(&mut self, agent: &mut Agent) -> bool {
        if let Ok(status) = agent.status()
            && let Some(status) = status.exact
        {
            self.exact.status = status;
        }
        agent.tell(&Request::ExactStop).is_ok()
    }

    /// Completes the recording, and says where it is and what it says.
    fn keep(self, watched: Result<()>) -> Result<()> {
        let Session { mut exact, recorder, export, .. } = self;
        let finished = recorder.finish(&mut [&mut exact]);
        watched?;
        let recorded = finished?;
        let profile = source::load(&recorded.path, None)?;
        let (path, size) = match export {
            None => (recorded.path, recorded.size),
            Some((path, format, gzip)) => {
                let size = export::save(&recorded.path, format, gzip, &path)
                    .with_context(|| format!("{} has the recording", recorded.path.display()))?;
                std::fs::remove_file(&recorded.path)?;
                (path, size)
            }
        };
        let (totals, status) = (exact.totals(), &exact.status);
        anstream::println!(
            "{BOLD}{}{BOLD:#}: {} calls in {} contexts of {} threads, {} methods woven; {} KiB",
            path.display(),
            term::count(totals.calls),
            term::count(totals.contexts as u64),
            totals.trees,
            status.methods,
            size.div_ceil(1024),
        );
        let in_probes = totals.calls as f64 * status.probe_ps as f64 / 1e12;
        anstream::println!(
            "{DIM}a call costs {:.1} ns or more in probes, {:.2} s in all{DIM:#}",
            status.probe_ps as f64 / 1e3,
            in_probes,
        );
        anstream::println!(
            "{DIM}weaving took {:.0} ms; {} pauses, {:.0} ms in all, {:.0} ms the longest{DIM:#}",
            status.weaving_ns as f64 / 1e6,
            status.pauses,
            status.pause_ns as f64 / 1e6,
            status.longest_pause_ns as f64 / 1e6,
        );
        if let Some(longest) = recorded.stretched {
            anstream::println!(
                "{DIM}the trees were large: up to {longest:.1?} passed between two looks at them{DIM:#}"
            );
        }
        say_subgraph(&exact)?;
        report::page(&profile, &path)
    }
}

/// Where a recording grows that becomes another tool's file at its end.
fn beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".unfinished.tare");
    name.into()
}

/// A line on the terminal, if there is one, that says how the recording goes.
struct Progress {
    terminal: bool,
    began: Instant,
    calls: u64,
    at: Instant,
}

impl Progress {
    fn new(began: Instant) -> Self {
        Progress { terminal: std::io::stderr().is_terminal(), began, calls: 0, at: began }
    }

    fn show(&mut self, exact: &Exact) {
        if !self.terminal {
            return;
        }
        let (totals, status) = (exact.totals(), &exact.status);
        let since = self.at.elapsed().as_secs_f64().max(1e-9);
        let rate = totals.calls.saturating_sub(self.calls) as f64 / since;
        (self.calls, self.at) = (totals.calls, Instant::now());
        eprint!(
            "\r\x1b[K{:>6.1} s  {} methods woven  {}/s calls  {} contexts  {} of {} MiB  \
             probes ≥ {:.0} % of a CPU",
            self.began.elapsed().as_secs_f64(),
            status.methods,
            term::count(rate as u64),
            term::count(totals.contexts as u64),
            status.used >> 20,
            status.budget >> 20,
            rate * status.probe_ps as f64 / 1e10,
        );
        let _ = std::io::stderr().flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

/// What the search for what the roots reach has found, and what it cost.
fn say_subgraph(exact: &Exact) -> Result<()> {
    let Some(subgraph) = &exact.status.subgraph else { return Ok(()) };
    let (woven, ran) = exact.woven_and_ran()?;
    anstream::println!(
        "{DIM}{} methods can be reached as far as is known, {woven} were woven, {} of them never ran \
         below a root{DIM:#}",
        subgraph.reachable,
        woven.saturating_sub(ran),
    );
    anstream::println!(
        "{DIM}{} waits for what a method calls to be woven, {:.0} ms in all, {:.0} ms the longest; no \
         time has them in it{DIM:#}",
        subgraph.waits,
        subgraph.wait_ns as f64 / 1e6,
        subgraph.longest_wait_ns as f64 / 1e6,
    );
    let missed = subgraph.hurried + subgraph.gave_up;
    if missed > 0 {
        anstream::println!(
            "{DIM}first calls may be missing in {missed} places: {} threads were loading classes and \
             could not wait, for {} it took too long{DIM:#}",
            subgraph.hurried,
            subgraph.gave_up,
        );
    }
    Ok(())
}

fn run_info(jvm: &Jvm, args: &RecordArgs, started: SystemTime) -> RunInfo {
    let mode = match (args.count, args.cpu_time) {
        (true, _) => "count",
        (_, true) => "cpu-time",
        _ => "time",
    };
    let mut options = vec![("kind", "exact".to_owned()), ("mode", mode.to_owned())];
    for (key, patterns) in [
        ("include", &args.include),
        ("exclude", &args.exclude),
        ("root", &args.root),
        ("count-only", &args.count_only),
    ] {
        options.extend(patterns.iter().map(|pattern| (key, pattern.to_string())));
    }
    if !args.root.is_empty() {
        options.push(("scheme", args.scheme.to_string()));
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

/// With roots the methods that would be little but probe are left out, unless they are asked for.
fn skips_trivial(args: &RecordArgs) -> bool {
    args.skip_trivial || (!args.root.is_empty() && !args.no_skip_trivial)
}

/// The last part of a class's name, or a jar's without its ending.
fn short_name(name: &str) -> &str {
    let name = name.strip_suffix(".jar").unwrap_or(name);
    name.rsplit(['.', '/']).next().unwrap_or(name)
}
