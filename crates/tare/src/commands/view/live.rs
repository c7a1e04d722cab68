//! A JVM that is sampled while its page is looked at. The recording grows in memory, or in a file
//! if it is to be kept; the page reads it as it reads any other.

use crate::cli::ViewerArgs;
use crate::commands::record;
use crate::commands::status;
use crate::commands::view::exactly::Exactly;
use crate::figures::{remark_aside, say};
use anyhow::{Result, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_recording::Recording;
use tare_session::{Begun, Note, Observer, Output, Part, Place, Plan, State};

/// How long a wish of the page may take: an engine that starts takes the JVM's threads in.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program that does nothing has no figures, and its page opens then.
const FIRST_FIGURES: Duration = Duration::from_secs(3);

/// A recording in a thread of its own.
pub struct Live {
    pub name: String,
    pub pid: u32,
    pub jvm: Jvm,
    pub path: PathBuf,
    pub standing: Arc<Standing>,
    pub exactly: Arc<Exactly>,
    /// What the path leads to, unless that is a file.
    pub memory: Option<Arc<File>>,
    thread: JoinHandle<Result<()>>,
}

/// How it stands, for the page.
pub struct Standing {
    pub began: Instant,
    /// Why nothing more comes, once that is so.
    pub ended: Mutex<Option<Ended>>,
    /// Parts of the recording, and whether each is on.
    pub parts: Mutex<Vec<(Part, bool)>>,
    wishes: Mutex<Sender<Wish>>,
}

/// A part of the recording to be switched on or off, and who is told what came of it.
struct Wish {
    part: Part,
    on: bool,
    answer: Sender<Result<(), String>>,
}

impl Standing {
    fn new() -> (Self, Receiver<Wish>) {
        let (wishes, wished) = mpsc::channel();
        let (ended, parts) = (Mutex::default(), Mutex::default());
        let wishes = Mutex::new(wishes);
        (Standing { began: Instant::now(), ended, parts, wishes }, wished)
    }

    /// Of a recording that is made elsewhere, of which no part can be switched from here.
    pub fn elsewhere() -> Self {
        Standing::new().0
    }

    /// Has a part of the recording switched on or off, and waits until it is. The error is a
    /// sentence.
    pub fn switch(&self, part: Part, on: bool) -> Result<(), String> {
        let (answer, told) = mpsc::channel();
        let gone = || "nothing is recorded any more".to_owned();
        let wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        wishes.send(Wish { part, on, answer }).map_err(|_| gone())?;
        told.recv_timeout(PATIENCE).map_err(|_| gone())?
    }

    fn note_parts(&self, recording: &tare_session::Recording<'_>) {
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = recording.parts();
    }
}

#[derive(Clone)]
pub struct Ended {
    pub sentence: String,
    /// After how long.
    pub after: Duration,
}

/// Begins to record; the JVM is entered before this returns, so what is wrong is said at once.
pub fn begin(args: &ViewerArgs, jvm: Jvm, stop: &Arc<AtomicBool>) -> Result<Live> {
    crate::source::reads_what_grows();
    let plan = record::plan_of(&args.recording()?)?;
    let (output, path, memory) = match &args.output {
        Some(path) => {
            record::check_output(Some(path))?;
            if path.extension().is_none_or(|ending| ending != "tare") {
                bail!("the recording is kept as a .tare file; `tare export` makes others of it");
            }
            (Output::File(path.clone()), path.clone(), None)
        }
        None => {
            let (memory, path) = crate::source::shared_memory()?;
            (Output::Writer(Box::new(memory.try_clone()?)), path, Some(Arc::new(memory)))
        }
    };
    let (standing, wishes) = Standing::new();
    let standing = Arc::new(standing);
    let exactly = Arc::new(Exactly::new(jvm.clone(), args.patience.timeout));
    let entered = jvm.clone();
    let (name, pid) = (jvm.name().to_owned(), jvm.pid);
    let ready = Arc::new(Mutex::new(None));
    let thread = {
        let (standing, stop, ready) = (Arc::clone(&standing), Arc::clone(stop), Arc::clone(&ready));
        let timeout = args.patience.timeout;
        let exactly = Arc::clone(&exactly);
        let job = Job { jvm, plan, timeout, exactly, wishes };
        std::thread::Builder::new()
            .name("tare-record".to_owned())
            .spawn(move || go(job, output, &standing, &stop, &ready))?
    };
    // Until it records, or says why it cannot.
    while ready.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
        if thread.is_finished() {
            return match thread.join() {
                Ok(Ok(())) => bail!("stopped before anything was recorded"),
                Ok(Err(error)) => Err(error),
                Err(_) => bail!("the recording has failed"),
            };
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    remark_aside(&format!("sampling JVM {pid} ({})", crate::term::plain(&name)));
    wait_until_ready(|| has_figures(&path), stop);
    Ok(Live { name, pid, jvm: entered, path, standing, exactly, memory, thread })
}

/// A page that opens on figures says more than one that waits for them.
pub fn wait_until_ready(is_ready: impl Fn() -> bool, stop: &AtomicBool) {
    let patience = Instant::now() + FIRST_FIGURES;
    while !is_ready() && Instant::now() < patience && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn has_figures(path: &Path) -> bool {
    let summary = Recording::open(path).and_then(|mut recording| recording.summary());
    summary.is_ok_and(|summary| {
        summary.rows.iter().any(|rows| *rows > 0) || !summary.series.is_empty()
    })
}

impl Live {
    /// Waits until the JVM is as it was.
    pub fn end(self) -> Result<()> {
        match self.thread.join() {
            Ok(outcome) => outcome,
            Err(_) => bail!("the recording has failed"),
        }
    }
}

struct Job {
    jvm: Jvm,
    plan: Plan,
    timeout: Duration,
    exactly: Arc<Exactly>,
    wishes: Receiver<Wish>,
}

fn go(
    job: Job,
    output: Output,
    standing: &Standing,
    stop: &Arc<AtomicBool>,
    ready: &Mutex<Option<()>>,
) -> Result<()> {
    let Job { jvm, plan, timeout, exactly, wishes } = job;
    let was_there = jvm.has_agent();
    let kept = match &output {
        Output::File(path) => Some(path.clone()),
        Output::Writer(_) | Output::Link(_) => None,
    };
    let mut agent = status::enter_quietly(&jvm, timeout)?;
    let mut quiet = Quiet(Arc::clone(stop));
    let mut output = Some(output);
    let mut place = || {
        let output = output.take().unwrap_or_else(|| Output::Writer(Box::new(std::io::sink())));
        Place { output, result: kept.clone() }
    };
    let mut recording = match tare_session::begin(&mut agent, &jvm, &plan, &mut place, &mut quiet)?
    {
        Begun::Recording(recording) => recording,
        Begun::Stopped(_) => return Ok(()),
    };
    *ready.lock().unwrap_or_else(PoisonError::into_inner) = Some(());
    standing.note_parts(&recording);
    while !matches!(recording.poll(&mut quiet), State::Over) {
        for Wish { part, on, answer } in wishes.try_iter() {
            let switched = recording.switch(part, on).map_err(|error| format!("{error:#}"));
            standing.note_parts(&recording);
            // Who no longer waits has hung up.
            let _ = answer.send(switched);
        }
    }
    // What is woven is a front end of its own, which the agent would stay for.
    exactly.close();
    drop(wishes);
    let wanted = stop.load(Ordering::Relaxed);
    let end = recording.finish(&mut quiet);
    let outcome = end.finished.map_err(anyhow::Error::from);
    let who = format!("JVM {} ({})", jvm.pid, jvm.name());
    let sentence = match (&outcome, end.alive) {
        (Err(error), _) => format!("the recording has failed: {error:#}"),
        (Ok(_), false) => format!("{who} has ended; what was recorded until then is here"),
        (Ok(_), true) => {
            format!("somebody has stopped the recording of {who}; it is here as it was")
        }
    };
    let ended = Ended { sentence: sentence.clone(), after: standing.began.elapsed() };
    *standing.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
    if !wanted {
        say(Note::Warning(sentence));
    }
    if let (Ok(_), Some(path)) = (&outcome, &kept) {
        remark_aside(&format!("the recording is in {}", shown(path)));
    }
    end.waiting.answer();
    // Who leaves listens for Ctrl-C anew, and the page has yet to hear this one.
    let again = Arc::new(AtomicBool::new(false));
    record::leave_as_found(&mut agent, &jvm, end.alive && !was_there, timeout, &again)?;
    outcome.map(|_| ())
}

fn shown(path: &Path) -> String {
    crate::term::plain(&path.display().to_string()).into_owned()
}

/// Hears what is said, and shows no progress: the page does.
struct Quiet(Arc<AtomicBool>);

impl Observer for Quiet {
    fn note(&mut self, note: Note) {
        say(note);
    }

    fn wants_end(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
