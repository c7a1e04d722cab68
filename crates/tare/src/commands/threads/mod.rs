//! `tare threads`: all threads of a JVM, deadlocks first.
//!
//! Looking and proving is `tare_session::threads`; here it is asked for and shown: as a page
//! (`page`), in the form of jstack (`jstack`), as JSON (`json`); of a JVM that reaches no safepoint
//! (`stalled`), and what the kernel alone tells of one that does not answer (`outside`).

mod json;
mod jstack;
mod outside;
mod page;
mod stalled;
mod words;

use crate::cli::ThreadsArgs;
use crate::commands::status;
use crate::interrupt;
use crate::term::{self, DIM, GOOD, plain};
use anyhow::{Result, anyhow};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_protocol::ThreadsPlan;
use tare_session::Error;
use tare_session::client::Agent;
use tare_session::threads::{Looked, look};

/// The status with which the command ends when there is a deadlock.
const DEADLOCK: u8 = 3;

/// Virtual threads that `--full` shows, and how long that may take.
const FULL_VIRTUALS: u32 = 200_000;
const FULL_MS: u32 = 20_000;

/// How soon Ctrl-C is heard between two looks.
const TURN: Duration = Duration::from_millis(50);

pub fn run(args: &ThreadsArgs) -> Result<ExitCode> {
    let jvm = tare_attach::find(&args.target.jvm)?;
    let patience = args.target.patience.timeout;
    let mut agent = match status::enter(&jvm, patience) {
        Ok(agent) => agent,
        Err(error) => return Err(unanswered(&jvm, error)),
    };
    if args.watch {
        return watch(&jvm, &mut agent, args);
    }
    let mut pause = |time| {
        std::thread::sleep(time);
        true
    };
    let plan = plan(args);
    let patience = patience + Duration::from_millis(plan.virtual_ms.into());
    let looked = agent.patiently(patience, |agent| look(agent, plan, &mut pause));
    let looked = looked.map_err(|error| unanswered(&jvm, error.into()))?;
    if args.json {
        json::print(&jvm, &looked)?;
    } else {
        let mut text = Vec::new();
        match &looked.dump.stalled {
            Some(stalled) => stalled::write(&mut text, &called(&jvm), &looked.dump, stalled)?,
            None => page::write(&mut text, &jvm, &looked, args.full)?,
        }
        if args.full {
            jstack::write(&mut text, &looked.dump)?;
        }
        term::show(&text, true)?;
    }
    // Whoever asks whether there is a deadlock must not take this for a no.
    if looked.dump.stalled.is_some() {
        return Ok(ExitCode::FAILURE);
    }
    Ok(code(!looked.waits.deadlocks.is_empty()))
}

/// `JVM 4711 (Main)`.
fn called(jvm: &Jvm) -> String {
    format!("JVM {} ({})", jvm.pid, plain(jvm.name()))
}

fn code(deadlock: bool) -> ExitCode {
    if deadlock { ExitCode::from(DEADLOCK) } else { ExitCode::SUCCESS }
}

fn plan(args: &ThreadsArgs) -> ThreadsPlan {
    // What can be read without the JVM comes before the time is up.
    let timeout = args.target.patience.timeout.as_millis();
    let stall_ms = u32::try_from(timeout / 10 * 8).unwrap_or(u32::MAX);
    let usual = ThreadsPlan { stall_ms, ..ThreadsPlan::default() };
    match (args.no_virtual, args.full) {
        (true, _) => ThreadsPlan { virtuals: 0, ..usual },
        (_, true) => ThreadsPlan { virtuals: FULL_VIRTUALS, virtual_ms: FULL_MS, ..usual },
        _ => usual,
    }
}

/// Adds what can be seen from outside to the error that a silent JVM leads to.
fn unanswered(jvm: &Jvm, error: anyhow::Error) -> anyhow::Error {
    let silent = |error: &Error| matches!(error.root(), Error::Silent(_) | Error::Attach(_));
    match error.downcast_ref::<Error>().is_some_and(silent) {
        true => match outside::seen(jvm) {
            Some(seen) => anyhow!("{error:#}\n{seen}"),
            None => error,
        },
        false => error,
    }
}

/// Looks until Ctrl-C or the JVM's end, and tells of each deadlock once.
fn watch(jvm: &Jvm, agent: &mut Agent, args: &ThreadsArgs) -> Result<ExitCode> {
    let stop = interrupt::flag()?;
    let (name, plan) = (plain(jvm.name()), plan(args));
    let every = term::time(args.interval);
    errln!("{DIM}Looking at JVM {} ({name}) every {every}, until Ctrl-C.{DIM:#}", jvm.pid);
    let (mut known, mut ever) = (BTreeSet::new(), false);
    loop {
        let looked = match look(agent, plan, &mut |time| sleep(time, &stop)) {
            Ok(looked) => looked,
            Err(error) if matches!(error.root(), Error::Gone(_)) => {
                outln!("JVM {} has ended.", jvm.pid);
                return Ok(code(ever));
            }
            Err(error) => return Err(unanswered(jvm, error.into())),
        };
        if let Some(stalled) = &looked.dump.stalled {
            let mut text = Vec::new();
            stalled::write(&mut text, &called(jvm), &looked.dump, stalled)?;
            term::show(&text, false)?;
            return Ok(ExitCode::FAILURE);
        }
        let now = told(&looked, &known)?;
        if now.is_empty() && !known.is_empty() {
            outln!("{GOOD}{} No deadlock any more.{GOOD:#}", clock());
        }
        ever |= !now.is_empty();
        known = now;
        if !sleep(args.interval, &stop) {
            return Ok(code(ever));
        }
    }
}

/// Tells of the deadlocks that were not known yet; all that there are, by the ids of their threads.
fn told(looked: &Looked, known: &BTreeSet<Vec<u64>>) -> Result<BTreeSet<Vec<u64>>> {
    let mut now = BTreeSet::new();
    for circle in &looked.waits.deadlocks {
        let ids: Vec<u64> = circle.members.iter().map(|at| looked.dump.threads[*at].id).collect();
        if !known.contains(&ids) {
            let mut text = Vec::new();
            page::deadlock(&mut text, looked, circle, &format!("{} Deadlock", clock()))?;
            term::show(&text, false)?;
        }
        now.insert(ids);
    }
    let count = looked.dump.threads.len();
    if term::shows_progress(false) {
        let dead = looked.waits.deadlocks.len();
        term::progress(&format!("{} {count} threads, {dead} deadlocks", clock()));
    }
    Ok(now)
}

/// The time of day in this process's zone is not known without a library; in UTC it is.
fn clock() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.map_or(0, |now| now.as_secs()) % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// False when somebody wants to end meanwhile.
fn sleep(time: Duration, stop: &AtomicBool) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end && !interrupt::is_set(stop) {
        std::thread::sleep(TURN.min(end.saturating_duration_since(Instant::now())));
    }
    !interrupt::is_set(stop)
}
