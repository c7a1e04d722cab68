//! `tare record`: begins a recording, waits, ends it, and leaves a file and a report.
//!
//! What is recorded and how is a plan, made of the flags in `door`; making it is `tare-session`'s
//! business. Whatever ends it (Ctrl-C, the time given, the end of the JVM, even its `kill -9`),
//! what was measured is kept.

mod agent_jar;
mod door;
mod files;
mod outcome;
mod plan;
mod predict;
mod screen;

pub use files::{Files, check_output, check_room, unused};

use crate::cli::RecordArgs;
use crate::commands::status;
use crate::figures::{remark_aside, say, several};
use crate::term::{BAD, DIM, Doing};
use anyhow::{Context, Result, bail};
use files::Names;
use screen::Screen;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tare_attach::Jvm;
use tare_session::agents::{leave, wait_for_threads};
use tare_session::client::Agent;
use tare_session::launch::{self, Guest};
use tare_session::{Begun, End, Finished, Plan, State};

/// A recording to be made, and what is said of it.
pub struct Job {
    pub plan: Plan,
    /// Without it a new file.
    pub output: Option<PathBuf>,
    /// Nothing is said of it, and no report shown.
    pub quiet: bool,
    /// Not even that nothing was recorded: whoever wanted it says so.
    pub mute: bool,
    /// The report is shown by thread.
    pub by_thread: bool,
    /// Of a climb, its caller list goes to standard output instead of the report.
    pub json: bool,
    pub timeout: Duration,
}

pub fn run(args: RecordArgs) -> ExitCode {
    let outcome = door::job(&args).and_then(|job| run_job(args.jvm.as_deref(), job));
    outcome.unwrap_or_else(|e| crate::fail(&e))
}

/// What the flags of a recording mean, for who makes it by themselves.
pub fn plan_of(args: &RecordArgs) -> Result<Plan> {
    Ok(door::job(args)?.plan)
}

/// Records a JVM that runs, or the program of the plan.
pub fn run_job(who: Option<&str>, job: Job) -> Result<ExitCode> {
    // A file larger than the process may write is an error like any other, and not the end of us.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    match who {
        Some(who) => attached(who, &job),
        None => launched(job).map(|(status, recorded)| match status.success() {
            true if !recorded => ExitCode::FAILURE,
            _ => launch::exit_code(status),
        }),
    }
}

/// What came of a recording whose file is complete.
enum Kept {
    Something,
    /// Nothing was measured; why, and what to do about it.
    Nothing(String),
}

/// The exit status of what Ctrl-C ended before there was anything to keep, as a shell has it.
const STOPPED: u8 = 130;

/// Records a JVM that runs already.
fn attached(who: &str, job: &Job) -> Result<ExitCode> {
    let jvm = tare_attach::find(who)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let was_there = jvm.has_agent();
    let word = format!("attaching to JVM {} ({})", jvm.pid, jvm.name());
    let attaching = Doing::say(&word, job.quiet);
    let mut agent = status::enter_quietly(&jvm, job.timeout)?;
    drop(attaching);
    let (alive, kept) = record_attached(&mut agent, &jvm, job, &stop);
    let left = leave_as_found(&mut agent, &jvm, alive && !was_there, job.timeout, &stop);
    if kept.is_ok() {
        left?;
    }
    match kept? {
        Some(Kept::Something) => Ok(ExitCode::SUCCESS),
        Some(Kept::Nothing(why)) => bail!(why),
        None => Ok(ExitCode::from(STOPPED)),
    }
}

/// Has the agent leave that was brought along: whatever went wrong, the JVM is left as it was found,
/// unless another front end has come meanwhile. A JVM that ends takes the agent with it. Another
/// Ctrl-C ends the waiting.
pub fn leave_as_found(
    agent: &mut Agent,
    jvm: &Jvm,
    was_brought: bool,
    timeout: Duration,
    stop: &Arc<AtomicBool>,
) -> Result<()> {
    if !was_brought {
        return Ok(());
    }
    stop.store(false, Ordering::Relaxed);
    let left = leave(agent, jvm, stop).and_then(|left| match left {
        true => wait_for_threads(jvm, timeout, stop),
        false => {
            remark_aside(&format!(
                "the agent stays in JVM {}: another front end talks to it. It leaves by itself \
                 when that one has gone",
                jvm.pid
            ));
            Ok(())
        }
    });
    match agent.has_gone() || tare_attach::inspect(jvm.pid).is_err() {
        true => Ok(()),
        false => Ok(left?),
    }
}

/// Whether the JVM lives, and what came of the recording; nothing if it was stopped before it had
/// begun.
fn record_attached(
    agent: &mut Agent,
    jvm: &Jvm,
    job: &Job,
    stop: &Arc<AtomicBool>,
) -> (bool, Result<Option<Kept>>) {
    let mut screen = Screen::new(job.quiet);
    screen.end_at(Arc::clone(stop));
    let mut files = None;
    let mut place = || files.insert(Files::take(job, jvm, &Names::default())).place();
    let begun = tare_session::begin(agent, jvm, &job.plan, &mut place, &mut screen);
    let mut recording = match begun {
        Ok(Begun::Recording(recording)) => recording,
        Ok(Begun::Stopped(woven)) => {
            let far = woven.map_or_else(String::new, |woven| {
                let all = several(woven.all, "class");
                format!(" with {} of {all} woven", woven.done)
            });
            remark_aside(&format!(
                "stopped{far}; the program's code is as it was, and nothing was recorded"
            ));
            return (!agent.has_gone(), Ok(None));
        }
        Err(error) => return (!agent.has_gone(), Err(error.into())),
    };
    screen.begins(&job.plan, jvm.pid);
    watch(&mut recording, &mut screen);
    let End { alive, finished, waiting } = recording.finish(&mut screen);
    let kept = finished.map_err(Into::into).and_then(|finished| keep(finished, files, job));
    if kept.is_ok() {
        waiting.answer();
    }
    (alive, kept.map(Some))
}

/// Until it is over, with a line of progress on a terminal.
fn watch(recording: &mut tare_session::Recording<'_>, screen: &mut Screen) {
    loop {
        match recording.poll(screen) {
            State::Going => {}
            State::Progress(progress) => screen.show(&progress),
            State::Over => break,
        }
    }
    screen.clear();
}

/// Makes the file that was asked for, and says where it is and what it says.
fn keep(finished: Finished, files: Option<Files>, job: &Job) -> Result<Kept> {
    let files = files.context("a recording has a file")?;
    outcome::complete(&finished, files, job)?;
    Ok(finished.nothing.map_or(Kept::Something, Kept::Nothing))
}

/// What became of the recordings of a program's JVMs.
#[derive(Default)]
struct Tally {
    good: usize,
    /// Of which nothing was recorded, or nothing could be: which, and why.
    empty: Vec<String>,
    /// Recordings that did not begin, which was said, and those that went wrong after they had.
    unbegun: usize,
    failed: usize,
}

impl Tally {
    /// A program may start JVMs that nobody cares about, but one recording there must be.
    fn is_good(&self) -> bool {
        self.failed == 0 && self.good > 0
    }

    /// Says what was not recorded: that is an error only if there is nothing else.
    fn say(&self, quiet: bool) {
        for empty in &self.empty {
            match self.good {
                0 => errln!("{BAD}tare:{BAD:#} {empty}"),
                _ if quiet => {}
                _ => errln!("{DIM}tare: {empty}{DIM:#}"),
            }
        }
    }
}

/// Starts a program and records each of its JVMs, from before its `main` to its end. How the
/// program ended, and whether it was recorded.
pub fn launched(job: Job) -> Result<(ExitStatus, bool)> {
    let command = job.plan.command.clone();
    let (settings, quiet, mute) = (job.plan.what.settings(), job.quiet, job.mute);
    let tally = Arc::new(Mutex::new(Tally::default()));
    let attend = {
        let (names, tally) = (Names::default(), Arc::clone(&tally));
        move |guest: Guest| {
            let what = guest.to_string();
            let mut begun = false;
            let kept = record_guest(guest, &job, &names, &mut begun);
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            match kept {
                Ok(Kept::Something) => tally.good += 1,
                Ok(Kept::Nothing(why)) => tally.empty.push(format!("{what}: {why}")),
                Err(e) => {
                    errln!("{BAD}tare:{BAD:#} {what}: {e:#}");
                    tally.failed += usize::from(begun);
                    tally.unbegun += usize::from(!begun);
                }
            }
        }
    };
    if let (Some(word), false) = (settings.word, quiet) {
        remark_aside(word);
    }
    let launched = launch::launch(&command, &settings, &say, attend)?;
    launched.nobody_came().into_iter().for_each(say);
    let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    if !mute {
        tally.say(quiet);
    }
    Ok((launched.status, !launched.interrupted && tally.is_good()))
}

/// `begun` tells whether the recording had begun, if there is an error.
fn record_guest(guest: Guest, job: &Job, names: &Names, begun: &mut bool) -> Result<Kept> {
    let what = guest.to_string();
    let jvm = tare_attach::inspect(guest.pid)?;
    let mut agent = status::enter_quietly(&jvm, job.timeout)?;
    let mut screen = Screen::new(job.quiet);
    let mut files = None;
    let mut place = || files.insert(Files::take(job, &jvm, names)).place();
    let let_go = if job.plan.looks_first() { Ok(guest.let_go()) } else { Err(guest) };
    let_go.iter().for_each(|running| screen.end_at(running.leave()));
    let started = tare_session::begin(&mut agent, &jvm, &job.plan, &mut place, &mut screen)?;
    let Begun::Recording(mut recording) = started else {
        bail!("the recording was stopped before it had begun");
    };
    if !job.quiet {
        errln!("{DIM}tare: recording {what}{DIM:#}");
    }
    *begun = true;
    screen.begins(&job.plan, jvm.pid);
    let mut running = let_go.unwrap_or_else(Guest::let_go);
    screen.end_at(running.leave());
    watch(&mut recording, &mut screen);
    let End { finished, waiting, .. } = recording.finish(&mut screen);
    let kept = keep(finished?, files, job)?;
    waiting.answer();
    running.wait();
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_measured_nothing_is_not_good() {
        let empty = || vec!["nothing".to_owned()];
        for (tally, is_good) in [
            (Tally::default(), false),
            (Tally { good: 1, ..Tally::default() }, true),
            (Tally { good: 1, empty: empty(), unbegun: 1, failed: 0 }, true),
            (Tally { good: 1, failed: 1, ..Tally::default() }, false),
            (Tally { empty: empty(), ..Tally::default() }, false),
            (Tally { unbegun: 1, ..Tally::default() }, false),
        ] {
            assert_eq!(tally.is_good(), is_good, "{} good, {} failed", tally.good, tally.failed);
        }
    }
}
