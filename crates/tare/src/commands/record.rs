//! `tare record --exact`: weaves, waits, restores, and leaves a recording.
//!
//! Whatever ends it (Ctrl-C, the time given, the end of the JVM, even its `kill -9`), the trees lie
//! in memory that we hold too, so what was recorded is kept.

use crate::cli::RecordArgs;
use crate::client::Agent;
use crate::commands::{detach, export, report, status};
use crate::exact::{self, Arena};
use crate::launch::{self, Guest};
use crate::term::{self, BOLD, DIM, WARN};
use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_attach::Jvm;
use tare_formats::Format;
use tare_profile::{Profile, RunInfo};
use tare_protocol::{ExactPlan, ExactStatus, Request};
use tare_recording::Writer;

/// Between two looks at the recording.
const STEP: Duration = Duration::from_millis(500);

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
    let mut session = Session::begin(&mut agent, &jvm, args)?;
    let until = args.duration.map(|duration| Instant::now() + duration);
    let over =
        || stop.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until);
    session.watch(&mut agent, over);
    let alive = session.end(&mut agent);
    session.keep(args.output.as_deref())?;
    if alive && !was_there {
        agent.tell(&Request::Detach)?;
        detach::wait_for_threads(&jvm, patience)?;
    }
    Ok(())
}

/// Starts a program and records each of its JVMs, from before its `main` to its end.
fn launched(args: RecordArgs) -> Result<ExitCode> {
    let command = args.command.clone();
    let args = Arc::new(args);
    let attend = {
        let args = Arc::clone(&args);
        move |guest: Guest| {
            let what = guest.to_string();
            if let Err(e) = record_guest(guest, &args) {
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

fn record_guest(guest: Guest, args: &RecordArgs) -> Result<()> {
    let what = guest.to_string();
    let jvm = tare_attach::inspect(guest.pid)?;
    let mut agent = status::enter_quietly(&jvm, args.patience.timeout)?;
    let mut session = Session::begin(&mut agent, &jvm, args)?;
    anstream::eprintln!("{DIM}tare: recording {what}{DIM:#}");
    let running = guest.let_go();
    let until = args.duration.map(|duration| Instant::now() + duration);
    session.watch(&mut agent, || until.is_some_and(|until| Instant::now() >= until));
    session.end(&mut agent);
    session.keep(args.output.as_deref())?;
    running.wait();
    Ok(())
}

/// One recording under way.
struct Session {
    arena: Arena,
    run: RunInfo,
    began: Instant,
    last: ExactStatus,
    name: String,
}

impl Session {
    fn begin(agent: &mut Agent, jvm: &Jvm, args: &RecordArgs) -> Result<Self> {
        let plan = ExactPlan {
            timed: !args.count,
            include: args.include.clone(),
            exclude: args.exclude.clone(),
            roots: args.root.clone(),
            count_only: args.count_only.clone(),
            cpu_time: args.cpu_time,
            depth: args.depth.unwrap_or(0),
            memory: args.memory,
            allow_huge: args.allow_huge,
        };
        let began = Instant::now();
        let started = SystemTime::now();
        let files = agent.tell_for_files(&Request::ExactStart(Box::new(plan)))?;
        // A program may end before the first look.
        let last = agent.status()?.exact.unwrap_or_default();
        Ok(Session {
            arena: Arena::new(files),
            run: run_info(jvm, args, started),
            began,
            last,
            name: format!("{}-{}", short_name(jvm.name()), jvm.pid),
        })
    }

    /// Looks at the recording, with a line of progress on a terminal, until `over` or until the
    /// JVM has gone.
    fn watch(&mut self, agent: &mut Agent, over: impl Fn() -> bool) {
        let terminal = std::io::stderr().is_terminal();
        let mut calls_before = (0, self.began);
        while !over() {
            let until = Instant::now() + STEP;
            while !over() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
            let Ok(status) = agent.status() else { break };
            let Some(status) = status.exact else { break };
            self.last = status;
            if terminal && let Ok((snapshot, _)) = self.arena.read() {
                let (calls, contexts) = exact::totals(&snapshot);
                let since = calls_before.1.elapsed().as_secs_f64().max(1e-9);
                let rate = calls.saturating_sub(calls_before.0) as f64 / since;
                calls_before = (calls, Instant::now());
                eprint!(
                    "\r\x1b[K{:>6.1} s  {} methods woven  {}/s calls  {} contexts  {} of {} MiB  \
                     probes ≥ {:.0} % of a CPU",
                    self.began.elapsed().as_secs_f64(),
                    self.last.methods,
                    term::count(rate as u64),
                    term::count(contexts as u64),
                    self.last.used >> 20,
                    self.last.budget >> 20,
                    rate * self.last.probe_ps as f64 / 1e10,
                );
                let _ = std::io::stderr().flush();
            }
        }
        if terminal {
            eprint!("\r\x1b[K");
        }
    }

    /// Has the code put back. Whether the JVM still lives.
    fn end(&mut self, agent: &mut Agent) -> bool {
        if let Ok(status) = agent.status()
            && let Some(status) = status.exact
        {
            self.last = status;
        }
        let alive = agent.tell(&Request::ExactStop).is_ok();
        self.run.duration = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        alive
    }

    /// Writes the recording and says where it is.
    fn keep(mut self, output: Option<&Path>) -> Result<()> {
        exact::add_refusals(&mut self.run, &self.last);
        let (snapshot, names) = self.arena.read()?;
        let profile = exact::to_profile(&snapshot, &names, self.run);
        let path =
            output.map_or_else(|| PathBuf::from(format!("{}.tare", self.name)), Path::to_owned);
        let size = write(&path, &profile)?;
        let (calls, contexts) = exact::totals(&snapshot);
        let status = &self.last;
        anstream::println!(
            "{BOLD}{}{BOLD:#}: {} calls in {} contexts of {} threads, {} methods woven; {} KiB",
            path.display(),
            term::count(calls),
            term::count(contexts as u64),
            snapshot.trees.len(),
            status.methods,
            size >> 10,
        );
        let in_probes = calls as f64 * status.probe_ps as f64 / 1e12;
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
        report::page(&profile, &path)
    }
}

fn write(path: &Path, profile: &Profile) -> Result<u64> {
    let doing = || format!("cannot write {}", path.display());
    if let Some((format, gzip)) = Format::of_path(path) {
        export::save(profile, format, gzip, path).with_context(doing)?;
    } else {
        let writer = Writer::create(path).with_context(doing)?;
        writer.finish(profile).with_context(doing)?;
    }
    Ok(std::fs::metadata(path).with_context(doing)?.len())
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
    let since_1970 = started.duration_since(UNIX_EPOCH).ok();
    RunInfo {
        options: options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        started: since_1970.and_then(|d| i64::try_from(d.as_nanos()).ok()),
        ..exact::run_info(jvm)
    }
}

/// The last part of a class's name, or a jar's without its ending.
fn short_name(name: &str) -> &str {
    let name = name.strip_suffix(".jar").unwrap_or(name);
    name.rsplit(['.', '/']).next().unwrap_or(name)
}
