//! `tare record`: begins a recording, waits, ends it, and leaves a file and a report.
//!
//! Whatever ends it (Ctrl-C, the time given, the end of the JVM, even its `kill -9`), what was measured
//! lies in memory that we hold too, so it is kept; and if we are killed ourselves, what the recorder
//! has written until then. How each kind of recording measures is in a file of its own.

mod agent_jar;
mod exact;
mod marks;
mod patterns;
mod plan;
mod predict;
mod sampling;
mod steer;
mod trace;
mod weaving;
mod window;

pub use exact::FORK_JOIN;

use crate::cli::RecordArgs;
use crate::commands::{detach, export, status};
use crate::figures::{remark_aside, say};
use crate::target::Target;
use crate::term::{self, BAD, DIM, Doing, WARN};
use anyhow::{Context, Result, bail};
use exact::ExactSession;
use sampling::SamplingSession;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_formats::Format;
use tare_session::client::Agent;
use tare_session::launch::{self, Guest, Settings};
use tare_session::recorder;
use trace::TraceSession;

/// The option of a recording with the moment from which on all was woven, in nanoseconds since its
/// beginning: calls before that may be missing.
pub const WOVEN_AFTER: &str = "woven-after";

/// The option of a recording of a program that was started with its chance taken from it.
pub const CHANCE_FIXED: &str = "chance-fixed";

/// How long a wish to end may go unheard.
const STEP: Duration = Duration::from_millis(20);

pub fn run(args: RecordArgs) -> ExitCode {
    let target = args.target.as_deref().map_or(Ok(()), |path| Target::read(path).map(drop));
    // A file larger than the process may write is an error like any other, and not the end of us.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let output = args.output.as_deref();
    let checked = check_patterns(&args)
        .and_then(|()| check_output(output))
        .and_then(|()| check_stacks(&args, output))
        .and_then(|()| check_room(output));
    let agent = args.agent_jar.as_deref().map_or(Ok(()), |jar| agent_jar::checked(jar).map(drop));
    let outcome = checked.and(target).and(agent).and_then(|()| match () {
        () if args.trace => record::<TraceSession>(args),
        () if is_exact(&args) => record::<ExactSession>(args),
        () => record::<SamplingSession>(args),
    });
    outcome.unwrap_or_else(|e| crate::fail(&e))
}

fn record<S: Session>(args: RecordArgs) -> Result<ExitCode> {
    match &args.jvm {
        Some(who) => attached::<S>(who, &args),
        None => launched::<S>(args).map(|(status, recorded)| match status.success() {
            true if !recorded => ExitCode::FAILURE,
            _ => launch::exit_code(status),
        }),
    }
}

/// An exact recording of a program that is started for `tare check`, of which nothing is said.
pub fn launched_quietly(args: RecordArgs) -> Result<ExitStatus> {
    launched::<ExactSession>(RecordArgs { quiet: true, for_check: true, ..args })
        .map(|(status, _)| status)
}

/// Regions are woven, too.
fn is_exact(args: &RecordArgs) -> bool {
    args.exact || args.bytecodes || !args.region.is_empty()
}

/// A name that cannot be written is said before anything is recorded.
pub fn check_output(output: Option<&Path>) -> Result<()> {
    let Some(path) = output else { return Ok(()) };
    let ours = path.extension().is_none_or(|ending| ending == "tare");
    if !ours && Format::of_path(path).is_none() {
        bail!(
            "the ending of {} names no format: .tare for a recording, .html for a flame graph, or \
             what `tare export --help` lists",
            path.display()
        );
    }
    if path.is_dir() {
        bail!("-o {} is a directory; name a file in it", path.display());
    }
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        bail!("there is no directory {} for the recording", directory.display());
    }
    Ok(())
}

/// Regions alone have neither classes to weave nor stacks to choose from.
fn check_patterns(args: &RecordArgs) -> Result<()> {
    let regions_only = !args.region.is_empty() && !args.exact;
    if regions_only && !(args.include.is_empty() && args.exclude.is_empty()) {
        bail!(
            "--region alone weaves the lines that it names, and nothing that --include or --exclude \
             could choose from; leave them out, or add --exact to count calls as well"
        );
    }
    Ok(())
}

/// Other tools' files are made of stacks, which regions have none of.
fn check_stacks(args: &RecordArgs, output: Option<&Path>) -> Result<()> {
    let regions_only = !args.region.is_empty() && !args.exact;
    match output.filter(|path| regions_only && Format::of_path(path).is_some()) {
        Some(path) => bail!(
            "{} would be empty: a recording of regions alone has no stacks. Name a .tare file, or \
             record with --exact as well",
            path.display()
        ),
        None => Ok(()),
    }
}

/// A disk that is full is told of before the JVM is touched, and before an older file is replaced.
fn check_room(output: Option<&Path>) -> Result<()> {
    let is_file = |path: &Path| std::fs::metadata(path).map_or(true, |there| there.is_file());
    let path = output.unwrap_or(Path::new("."));
    let above = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if output.is_some_and(|path| !is_file(path)) || !recorder::has_no_room(above) {
        return Ok(());
    }
    bail!(
        "the disk of {} is nearly full; make room, or name a file elsewhere with -o",
        std::path::absolute(above)?.display()
    );
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
fn attached<S: Session>(who: &str, args: &RecordArgs) -> Result<ExitCode> {
    let jvm = tare_attach::find(who)?;
    let patience = args.patience.timeout;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let was_there = jvm.has_agent();
    let word = format!("attaching to JVM {} ({})", jvm.pid, jvm.name());
    let attaching = Doing::say(&word, args.quiet);
    let mut agent = status::enter_quietly(&jvm, patience)?;
    drop(attaching);
    let (alive, kept) = record_attached::<S>(&mut agent, &jvm, args, &stop);
    if alive && !was_there {
        // Whatever went wrong, the JVM is left as it was found; the error that is told is the first one.
        // A JVM that ends meanwhile takes the agent with it.
        // Another Ctrl-C ends the waiting.
        stop.store(false, Ordering::Relaxed);
        let left = leave(&mut agent, &jvm, patience, &stop);
        if kept.is_ok() && !agent.has_gone() && tare_attach::inspect(jvm.pid).is_ok() {
            left?;
        }
    }
    match kept? {
        Some(Kept::Something) => Ok(ExitCode::SUCCESS),
        Some(Kept::Nothing(why)) => bail!(why),
        None => Ok(ExitCode::from(STOPPED)),
    }
}

/// Whether the JVM lives, and what came of the recording; nothing if it was stopped before it had begun.
fn record_attached<S: Session>(
    agent: &mut Agent,
    jvm: &Jvm,
    args: &RecordArgs,
    stop: &AtomicBool,
) -> (bool, Result<Option<Kept>>) {
    let mut session = match S::begin(agent, jvm, args, &Names::default(), stop) {
        Ok(Some(session)) => session,
        Ok(None) => return (!agent.has_gone(), Ok(None)),
        Err(error) => return (!agent.has_gone(), Err(error)),
    };
    let clock = Clock::new(args);
    let watched = session.watch(agent, &|| stop.load(Ordering::Relaxed) || clock.is_over());
    clock.say_if_early(agent);
    let alive = session.end(agent);
    (alive, session.keep(watched).map(Some))
}

/// The time that a recording is to take, by `-d`.
struct Clock {
    began: Instant,
    length: Option<Duration>,
    quiet: bool,
}

impl Clock {
    fn new(args: &RecordArgs) -> Self {
        Clock { began: Instant::now(), length: args.duration, quiet: args.quiet }
    }

    fn is_over(&self) -> bool {
        self.length.is_some_and(|length| self.began.elapsed() >= length)
    }

    /// Says that the JVM has ended before the time was over, if it has.
    fn say_if_early(&self, agent: &Agent) {
        let passed = self.began.elapsed();
        let Some(length) = self.length.filter(|length| passed < *length && !self.quiet) else {
            return;
        };
        if agent.has_gone() {
            errln!(
                "{WARN}tare: the JVM ended after {}, before the {} of -d were over{WARN:#}",
                term::time(passed),
                term::time(length),
            );
        }
    }
}

/// Has the agent leave that came for this recording.
fn leave(agent: &mut Agent, jvm: &Jvm, patience: Duration, stop: &AtomicBool) -> Result<()> {
    detach::send_away(agent, jvm, stop)?;
    detach::wait_for_threads(jvm, patience, stop)
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

/// Starts a program and records each of its JVMs, from before its `main` to its end. How the program ended,
/// and whether it was recorded.
fn launched<S: Session>(args: RecordArgs) -> Result<(ExitStatus, bool)> {
    let command = args.command.clone();
    let (settings, quiet, for_check) = (S::settings(&args), args.quiet, args.for_check);
    let tally = Arc::new(Mutex::new(Tally::default()));
    let attend = {
        let (names, tally) = (Names::default(), Arc::clone(&tally));
        move |guest: Guest| {
            let what = guest.to_string();
            let mut begun = false;
            let kept = record_guest::<S>(guest, &args, &names, &mut begun);
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
    if !for_check {
        tally.say(quiet);
    }
    Ok((launched.status, !launched.interrupted && tally.is_good()))
}

/// `begun` tells whether the recording had begun, if there is an error.
fn record_guest<S: Session>(
    guest: Guest,
    args: &RecordArgs,
    names: &Names,
    begun: &mut bool,
) -> Result<Kept> {
    let what = guest.to_string();
    let jvm = tare_attach::inspect(guest.pid)?;
    let mut agent = status::enter_quietly(&jvm, args.patience.timeout)?;
    let session = S::begin(&mut agent, &jvm, args, names, &AtomicBool::new(false))?;
    let mut session = session.context("the recording was stopped before it had begun")?;
    if !args.quiet {
        errln!("{DIM}tare: recording {what}{DIM:#}");
    }
    *begun = true;
    let mut running = guest.let_go();
    let clock = Clock::new(args);
    let watched = session.watch(&mut agent, &|| clock.is_over() || running.is_left());
    clock.say_if_early(&agent);
    session.end(&mut agent);
    let kept = session.keep(watched)?;
    running.wait();
    Ok(kept)
}

/// The names of files that recordings of this command have taken: a command may start many JVMs, and
/// none may overwrite what another one wrote.
#[derive(Default)]
struct Names(Mutex<HashSet<PathBuf>>);

impl Names {
    /// The name that was asked for, or one that no file has: by the program, its pid and what is recorded. Where one
    /// command records several JVMs, the second gets its pid before the ending.
    fn take(&self, args: &RecordArgs, jvm: &Jvm) -> PathBuf {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(wanted) = args.output.clone() else {
            let stem = format!("{}-{}-{}", short_name(jvm.name()), jvm.pid, kind(args));
            let free = unused(&stem, "tare", |path| taken.contains(path) || path.exists());
            taken.insert(free.clone());
            return free;
        };
        if taken.insert(wanted.clone()) {
            return wanted;
        }
        let name = wanted.file_name().unwrap_or_default().to_string_lossy();
        let (stem, ending) = name.split_once('.').unwrap_or((&name, "tare"));
        let stem = wanted.with_file_name(format!("{stem}-{}", jvm.pid));
        // Nobody has named that one.
        let is_used = |path: &Path| taken.contains(path) || path.exists();
        let free = unused(&stem.to_string_lossy(), ending, is_used);
        taken.insert(free.clone());
        free
    }
}

/// `Shop-4711-cpu.tare`, or with a number if there is such a file.
pub fn unused(stem: &str, ending: &str, is_used: impl Fn(&Path) -> bool) -> PathBuf {
    let numbered = |number: u32| PathBuf::from(format!("{stem}-{number}.{ending}"));
    std::iter::once(PathBuf::from(format!("{stem}.{ending}")))
        .chain((2..).map(numbered))
        .find(|path| !is_used(path))
        .unwrap_or_default()
}

/// What is recorded, as a word in a file's name.
fn kind(args: &RecordArgs) -> &'static str {
    match args {
        _ if args.trace => "trace",
        _ if args.bytecodes => "bytecodes",
        _ if args.exact => "exact",
        _ if !args.region.is_empty() => "regions",
        _ if args.wall => "wall",
        _ => "cpu",
    }
}

/// One recording under way.
trait Session: Sized {
    /// What a JVM that is started for such a recording gets.
    fn settings(args: &RecordArgs) -> Settings;

    /// `stop` is set by Ctrl-C; who begins with something long ends it then, and there may be
    /// nothing to record.
    fn begin(
        agent: &mut Agent,
        jvm: &Jvm,
        args: &RecordArgs,
        names: &Names,
        stop: &AtomicBool,
    ) -> Result<Option<Self>>;

    /// Looks at the recording, with a line of progress on a terminal, until `over` or until the
    /// JVM has gone. An error means that no more can be written.
    fn watch(&mut self, agent: &mut Agent, over: &dyn Fn() -> bool) -> Result<()>;

    /// Has the JVM put back as it was. Whether it still lives.
    fn end(&mut self, agent: &mut Agent) -> bool;

    /// Completes the recording, and says where it is and what it says.
    fn keep(self, watched: Result<()>) -> Result<Kept>;
}

/// Where a recording goes.
struct Files {
    /// The recording itself.
    recording: PathBuf,
    /// Where the result goes and its format, if that is not the recording itself.
    export: Option<(PathBuf, Format, bool)>,
}

impl Files {
    fn take(args: &RecordArgs, jvm: &Jvm, names: &Names) -> Self {
        let output = names.take(args, jvm);
        let export = Format::of_path(&output).map(|(format, gzip)| (output.clone(), format, gzip));
        let recording = if export.is_some() { beside(&output) } else { output };
        Files { recording, export }
    }

    /// Where the result will be.
    fn result(&self) -> &Path {
        self.export.as_ref().map_or(&self.recording, |(path, ..)| path)
    }

    /// Makes the file that was asked for of a recording of this size; its path and size.
    fn complete(self, size: u64) -> Result<(PathBuf, u64)> {
        let Some((path, format, gzip)) = self.export else { return Ok((self.recording, size)) };
        let size = export::save(&self.recording, format, gzip, &path)
            .with_context(|| format!("{} has the recording", self.recording.display()))?;
        std::fs::remove_file(&self.recording)?;
        Ok((path, size))
    }
}

/// Where a recording grows that becomes another tool's file at its end. One that is there is all that
/// is left of a recording whose end went wrong.
fn beside(output: &Path) -> PathBuf {
    let stem = format!("{}.unfinished", output.display());
    unused(&stem, "tare", Path::exists)
}

/// The last part of a class's name, or a jar's without its ending, as it can stand in a file's name.
fn short_name(name: &str) -> String {
    const LONGEST: usize = 60;
    let last = match name.strip_suffix(".jar") {
        Some(jar) => jar.rsplit('/').next().unwrap_or(jar),
        None => name.rsplit(['.', '/']).next().unwrap_or(name),
    };
    let plain = |c: char| c.is_alphanumeric() || "_$-+.".contains(c);
    let short: String =
        last.chars().take(LONGEST).map(|c| if plain(c) { c } else { '_' }).collect();
    if short.is_empty() { "jvm".to_owned() } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_does_not_choose_where_its_recording_goes() {
        for (name, file) in [
            ("com.acme.Orders$Main", "Orders$Main"),
            ("lib/orders-1.2.jar", "orders-1.2"),
            ("shop.jar", "shop"),
            ("a.Größe", "Größe"),
            ("a.b/../../etc/x y\u{1b}[2J\n", "x_y__2J_"),
            ("a.", "jvm"),
        ] {
            assert_eq!(short_name(name), file, "{name:?}");
        }
        assert!(short_name(&"x".repeat(5000)).len() < 100);
    }

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

    #[test]
    fn a_name_of_our_own_is_never_that_of_a_file() {
        let used = ["Shop-1-cpu.tare", "Shop-1-cpu-2.tare"];
        let name =
            |stem| unused(stem, "tare", |path| used.iter().any(|used| path == Path::new(used)));
        assert_eq!(name("Shop-1-cpu"), Path::new("Shop-1-cpu-3.tare"));
        assert_eq!(name("Shop-1-exact"), Path::new("Shop-1-exact.tare"));
    }
}
