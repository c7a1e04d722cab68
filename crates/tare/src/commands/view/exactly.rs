//! A method, or all below it, measured exactly while the page samples: a second session in the same
//! JVM, whose recording is in memory. It ends when it is taken back, when nobody looks at the page
//! any more, and with the page's own recording.

use crate::cli::{RecordArgs, ReportArgs};
use crate::commands::record;
use crate::commands::report;
use crate::commands::status;
use crate::source;
use anyhow::{Context, Result, anyhow};
use clap::Parser;
use serde_json::{Value, json};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tare_analysis::{Tree, hot_list};
use tare_attach::Jvm;
use tare_session::{
    Begun, Figures, Finished, Note, Observer, Output, Place, Plan, Recording, State,
};
use tare_view::Problem;

/// Without anybody who looks at a page, the program's code is put back after so long.
const ALONE: Duration = Duration::from_secs(10);

/// Methods below the measured one that are told, the largest first.
const ROWS: usize = 200;

/// What is measured in a JVM, and what was measured last.
pub struct Exactly {
    jvm: Jvm,
    timeout: Duration,
    last: Mutex<Option<Measured>>,
    /// One wish at a time; whether there are to be no more.
    wishes: Mutex<bool>,
    /// When a page was heard of last.
    heard: Arc<Mutex<Instant>>,
}

/// One measurement, under way or over.
struct Measured {
    number: u64,
    method: String,
    below: bool,
    began: Instant,
    path: PathBuf,
    /// What the path leads to.
    _memory: File,
    stop: Arc<AtomicBool>,
    told: Arc<Mutex<Told>>,
    thread: Option<JoinHandle<()>>,
}

/// How it stands.
#[derive(Default)]
struct Told {
    state: Stage,
    /// Methods that are woven.
    methods: u64,
    /// What there is to say, such as why it was refused.
    notes: Vec<String>,
    /// How long it counted.
    lasted: Duration,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Weaves,
    Counts,
    /// The program's code is as it was.
    Over,
    /// Nothing was measured.
    Refused,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Weaves => "weaves",
            Stage::Counts => "counts",
            Stage::Over => "over",
            Stage::Refused => "refused",
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exactly {
    pub fn new(jvm: Jvm, timeout: Duration) -> Self {
        let heard = Arc::new(Mutex::new(Instant::now()));
        Exactly { jvm, timeout, last: Mutex::default(), wishes: Mutex::new(false), heard }
    }

    /// Somebody looks at a page.
    pub fn heard(&self) {
        *lock(&self.heard) = Instant::now();
    }

    /// Begins to measure; what was measured before is taken back first.
    pub fn begin(&self, method: &str, below: bool) -> Result<(), Problem> {
        let plan = plan_of(method, below).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            Problem::new(400, line.strip_prefix("error: ").unwrap_or(line))
        })?;
        let memory = source::shared_memory().map_err(|error| {
            Problem::new(500, format!("there is no memory for a recording: {error}"))
        })?;
        self.heard();
        let is_closed = lock(&self.wishes);
        if *is_closed {
            return Err(Problem::new(409, "the JVM is no longer recorded"));
        }
        self.end_last();
        let number = lock(&self.last).as_ref().map_or(1, |before| before.number + 1);
        let measured = self.start(number, method, below, plan, memory);
        let measured = measured.map_err(|error| Problem::new(500, format!("{error:#}")))?;
        *lock(&self.last) = Some(measured);
        Ok(())
    }

    fn start(
        &self,
        number: u64,
        method: &str,
        below: bool,
        plan: Plan,
        (memory, path): (File, PathBuf),
    ) -> Result<Measured> {
        let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Told>>::default());
        let output = memory.try_clone()?;
        let job = Job {
            jvm: self.jvm.clone(),
            timeout: self.timeout,
            plan,
            heard: Arc::clone(&self.heard),
            stop: Arc::clone(&stop),
            told: Arc::clone(&told),
        };
        let thread = std::thread::Builder::new()
            .name("tare-exactly".to_owned())
            .spawn(move || job.carry_out(output))?;
        Ok(Measured {
            number,
            method: method.to_owned(),
            below,
            began: Instant::now(),
            path,
            _memory: memory,
            stop,
            told,
            thread: Some(thread),
        })
    }

    /// Has the program's code put back; returns when it is.
    pub fn take_back(&self) {
        let _one = lock(&self.wishes);
        self.end_last();
    }

    /// The same, and nothing is measured any more.
    pub fn close(&self) {
        *lock(&self.wishes) = true;
        self.take_back();
    }

    /// The state is told meanwhile, so nothing is held but the right to wish.
    fn end_last(&self) {
        let thread = lock(&self.last).as_mut().and_then(Measured::stops);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// What is measured, in a few words; `null` if nothing was.
    pub fn state(&self) -> Value {
        lock(&self.last).as_ref().map_or(Value::Null, Measured::state)
    }

    /// The figures of what is measured, or was last.
    pub fn figures(&self) -> Result<Value, Problem> {
        let (path, mut state, below) = {
            let last = lock(&self.last);
            let measured = last.as_ref();
            let measured = measured.ok_or_else(|| Problem::new(404, "nothing was measured yet"))?;
            (measured.path.clone(), measured.state(), measured.below)
        };
        // A recording has figures from its first look on.
        let figures = figures(&path, below).unwrap_or_else(|_| json!({}));
        state["figures"] = figures["figures"].clone();
        state["rows"] = figures["rows"].clone();
        state["more"] = figures["more"].clone();
        Ok(state)
    }
}

impl Measured {
    /// What is still to be waited for.
    fn stops(&mut self) -> Option<JoinHandle<()>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take()
    }

    fn state(&self) -> Value {
        let told = lock(&self.told);
        let lasts = match told.state {
            Stage::Over | Stage::Refused => told.lasted,
            _ => self.began.elapsed(),
        };
        json!({
            "number": self.number,
            "method": self.method,
            "below": self.below,
            "state": told.state.name(),
            "methods": told.methods,
            "lasts_ns": u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX),
            "notes": told.notes,
        })
    }
}

/// As `tare record` would be asked: a method alone is a region, all below it has a tree.
fn plan_of(method: &str, below: bool) -> Result<Plan> {
    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: RecordArgs,
    }
    let what = match below {
        true => format!("--root={method}"),
        false => format!("--region={method}"),
    };
    let mut words = vec!["record", "jvm", "--quiet", &what];
    words.extend(below.then_some("--exact"));
    record::plan_of(&Alone::try_parse_from(words)?.args)
}

/// A measurement on its thread.
struct Job {
    jvm: Jvm,
    timeout: Duration,
    plan: Plan,
    heard: Arc<Mutex<Instant>>,
    stop: Arc<AtomicBool>,
    told: Arc<Mutex<Told>>,
}

impl Job {
    fn carry_out(self, output: File) {
        let outcome = self.record(output);
        let mut told = lock(&self.told);
        told.state = match &outcome {
            Ok(()) => Stage::Over,
            Err(_) => Stage::Refused,
        };
        if let Err(error) = outcome {
            // The reason is the last word, and what was said before may be the same.
            let text = format!("{error:#}");
            told.notes.retain(|note| !text.contains(note.as_str()));
            told.notes.push(text);
        }
    }

    fn record(&self, output: File) -> Result<()> {
        let mut agent = status::enter_quietly(&self.jvm, self.timeout)?;
        let mut output = Some(Output::Writer(Box::new(output)));
        let mut place = || {
            let output = output.take().unwrap_or_else(|| Output::Writer(Box::new(std::io::sink())));
            Place { output, result: None }
        };
        let mut ear = Ear(self);
        let begun =
            tare_session::begin_beside(&mut agent, &self.jvm, &self.plan, &mut place, &mut ear)?;
        let recording = match begun {
            Begun::Recording(recording) => recording,
            Begun::Stopped(_) => return Err(anyhow!("taken back before anything was measured")),
        };
        let began = Instant::now();
        let finished = self.follow(recording, &mut ear);
        lock(&self.told).lasted = began.elapsed();
        let finished = finished.context("the program's code is as it was")?;
        // The connection ends here, and whatever should still be on with it.
        finished.nothing.map_or(Ok(()), |why| Err(anyhow!(why)))
    }

    fn follow(&self, mut recording: Recording<'_>, ear: &mut Ear<'_>) -> Result<Finished> {
        lock(&self.told).state = Stage::Counts;
        loop {
            match recording.poll(ear) {
                State::Over => break,
                State::Going => {}
                State::Progress(progress) => {
                    if let Figures::Exact(figures) = progress.figures {
                        lock(&self.told).methods = figures.methods;
                    }
                }
            }
            if lock(&self.heard).elapsed() > ALONE {
                lock(&self.told).notes.push(
                    "nobody looked at the page any more, so the program's code was put back"
                        .to_owned(),
                );
                break;
            }
        }
        Ok(recording.finish(ear).finished?)
    }
}

/// Keeps what is said for the page.
struct Ear<'a>(&'a Job);

impl Observer for Ear<'_> {
    fn note(&mut self, note: Note) {
        let (Note::Warning(text) | Note::Alarm(text)) = note else { return };
        // Whoever asked on a page knows no flags.
        let flag = ["--region ", "--root "].iter().any(|flag| text.starts_with(flag));
        let bare = text.split_once(": ").filter(|_| flag).map(|(_, rest)| rest.to_owned());
        let text = bare.unwrap_or(text);
        let mut told = lock(&self.0.told);
        if !told.notes.contains(&text) {
            told.notes.push(text);
        }
    }

    fn wants_end(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }
}

/// What a recording in memory says by now.
fn figures(path: &std::path::Path, below: bool) -> Result<Value> {
    let args = ReportArgs::of(path, &[])?;
    if !below {
        let document = report::document(&args)?;
        return Ok(json!({ "figures": document["regions"][0] }));
    }
    let profile = source::load_view(&args.file, &args.view)?;
    let metrics = source::metrics(&profile, None)?;
    let tree = Tree::build(&profile, &metrics, &args.view.filter().shape())?;
    let hot = hot_list(&tree);
    let rows = hot.iter().take(ROWS).map(|hot| {
        json!({
            "name": tree.label(hot.label).text,
            "self_ns": hot.own[0],
            "total_ns": hot.total[0],
            "count": hot.own.get(1),
        })
    });
    Ok(json!({
        "figures": { "total_ns": tree.sum(0), "count": hot.iter().filter_map(|hot| hot.own.get(1)).sum::<i64>() },
        "rows": rows.collect::<Value>(),
        "more": hot.len().saturating_sub(ROWS),
    }))
}
