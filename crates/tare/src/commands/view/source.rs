//! The figures of a page: a file of ours or of another tool, or a recording that grows. Read by what
//! `tare report` reads with, so that both say the same.

use super::code;
use super::exactly::Exactly;
use super::file_name;
use super::live::{Live, Standing};
use super::there::There;
use crate::cli::ReportArgs;
use crate::commands::export::{self, Part};
use crate::commands::heap::Paged;
use crate::commands::report;
use crate::source;
use anyhow::Result;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tare_analysis::{Bounds, default_metrics, narrow, set_aside};
use tare_formats::{Format, Opening};
use tare_profile::{Estimate, Profile, TimeAxis};
use tare_recording::{Recording, Warning};
use tare_session::Part as Engine;
use tare_session::sources::Sources;
use tare_view::{
    Against, Code, CodeOf, Export, Kind, Loaded, Problem, Shown, Source, State, View, Wish,
};

/// A file that has no end is being written if it was not longer ago than this that it grew.
const GROWS: Duration = Duration::from_secs(5);

/// The pages that there are, in the rail's order, and how to record what they are of.
const PAGES: [(&str, Option<&str>); 10] = [
    ("overview", None),
    ("timeline", None),
    ("flame", None),
    ("methods", None),
    ("tree", None),
    ("threads", None),
    ("locks", Some("record it with `tare record --lock`")),
    ("memory", Some("record it with `tare record --alloc`")),
    ("classes", Some("record it with `tare record --classes`")),
    ("diff", Some("compare two parts of the run, or two files: `tare view old.tare new.tare`")),
];

pub struct Recorded {
    path: PathBuf,
    /// What was before, if it is to be compared.
    other: Option<PathBuf>,
    name: String,
    /// What a command calls it.
    called: String,
    live: Option<Arc<Standing>>,
    exactly: Option<Arc<Exactly>>,
    sources: Option<Mutex<Sources>>,
    /// The last snapshots of the JVM's heap, the newest first; the second is compared with.
    heap: Mutex<Vec<Paged>>,
    pid: Option<u32>,
    /// Keeps the path of a recording in memory what it is.
    _memory: Option<Arc<File>>,
    seen: Mutex<Seen>,
    /// What the whole run is, read once for each epoch.
    whole: Mutex<Option<(u64, Arc<Whole>)>>,
}

/// The file as it was when it was looked at last.
#[derive(Clone)]
struct Seen {
    length: u64,
    changed: Option<SystemTime>,
    epoch: u64,
    at: Instant,
    complete: bool,
    duration: u64,
}

/// What does not hang on a view.
struct Whole {
    value: Value,
    /// The first view that a page asks for is the one that this was made of.
    loaded: Mutex<Option<Loaded>>,
}

impl Recorded {
    /// Of a file, which must be one that can be read; `texts` is where sources are.
    pub fn of_file(path: &Path, texts: &[PathBuf]) -> Result<Self> {
        let name = file_name(path);
        let called = report::quoted(path);
        let recorded = Recorded::new(path.to_owned(), name, called, None);
        // What is wrong with it is said now, and not on a page.
        let whole = recorded.whole(0).map_err(|problem| anyhow::anyhow!(problem.text))?;
        let run = &whole.value["run"];
        let words = run["command_line"].as_array().into_iter().flatten();
        let words: Vec<String> = words.filter_map(|w| Some(w.as_str()?.to_owned())).collect();
        let version = run["jdk"].as_str().unwrap_or_default();
        let sources = Some(Mutex::new(Sources::of_run(texts, &words, version)?));
        Ok(Recorded { sources, ..recorded })
    }

    /// The same beside an older one.
    pub fn compared_with(self, old: &Path) -> Result<Self> {
        Recorded::of_file(old, &[])?;
        // Whether there is another file is told with the pages.
        let whole = Mutex::default();
        Ok(Recorded { other: Some(old.to_owned()), whole, ..self })
    }

    pub fn of_live(live: &Live, texts: &[PathBuf]) -> Result<Self> {
        let called = live.pid.to_string();
        let standing = Some(Arc::clone(&live.standing));
        let recorded = Recorded::new(live.path.clone(), live.name.clone(), called, standing);
        let exactly = Some(Arc::clone(&live.exactly));
        let sources = Some(Mutex::new(Sources::of_jvm(texts, &live.jvm)?));
        let (_memory, pid) = (live.memory.clone(), Some(live.pid));
        Ok(Recorded { _memory, exactly, sources, pid, ..recorded })
    }

    /// Of a JVM elsewhere: nothing of it can be switched from here.
    pub fn of_there(there: &There) -> Self {
        let (called, standing) = (there.pid.to_string(), Some(Arc::clone(&there.standing)));
        let recorded = Recorded::new(there.path.clone(), there.name.clone(), called, standing);
        Recorded { _memory: there.memory.clone(), ..recorded }
    }

    fn new(path: PathBuf, name: String, called: String, live: Option<Arc<Standing>>) -> Self {
        let (at, complete) = (Instant::now(), true);
        let seen = Seen { length: 0, changed: None, epoch: 0, at, complete, duration: 0 };
        let seen = look(&path, &seen).map_or(seen, |found| Seen { epoch: 0, ..found });
        let (seen, whole) = (Mutex::new(seen), Mutex::default());
        let (other, exactly, sources, heap, pid, _memory) = Default::default();
        Recorded {
            path,
            other,
            name,
            called,
            live,
            exactly,
            sources,
            heap,
            pid,
            _memory,
            seen,
            whole,
        }
    }

    fn seen(&self) -> Seen {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = look(&self.path, &seen) {
            *seen = found;
        }
        seen.clone()
    }

    fn args(&self, view: &View) -> Result<ReportArgs, Problem> {
        ReportArgs::of(&self.path, &view.options()).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            Problem::new(400, line.strip_prefix("error: ").unwrap_or(line))
        })
    }

    fn other(&self) -> Result<PathBuf, Problem> {
        let text = "there is no other file; `tare view OLD NEW` compares two";
        self.other.clone().ok_or_else(|| Problem::new(400, text))
    }

    /// The whole run, and with it the view that is shown first.
    fn whole(&self, epoch: u64) -> Result<Arc<Whole>, Problem> {
        let mut kept = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, whole)) = kept.as_ref().filter(|(of, _)| *of == epoch) {
            return Ok(Arc::clone(whole));
        }
        let args = self.args(&View::default())?;
        let profile = source::load_view(&args.file, &args.view).map_err(problem)?;
        let mut value = told(&profile, &self.name);
        for page in value["pages"].as_array_mut().into_iter().flatten() {
            if page["page"] == "diff" {
                page["has"] = self.other.is_some().into();
            }
        }
        if self.live.is_some() {
            let page = json!({ "page": "heap", "has": true, "how": null });
            value["pages"].as_array_mut().into_iter().for_each(|pages| pages.push(page.clone()));
        }
        // A JVM that has done nothing yet is one all the same.
        let loaded = match shown(profile, &args) {
            Ok(loaded) => Some(loaded),
            Err(_) if self.live.is_some() => None,
            Err(error) => return Err(problem(error)),
        };
        let whole = Arc::new(Whole { value, loaded: Mutex::new(loaded) });
        *kept = Some((epoch, Arc::clone(&whole)));
        Ok(whole)
    }
}

/// What is there now, if it is something else than before.
fn look(path: &Path, before: &Seen) -> Option<Seen> {
    let file = fs::metadata(path).ok()?;
    let (length, changed) = (file.len(), file.modified().ok());
    if (length, changed) == (before.length, before.changed) {
        return None;
    }
    let (mut complete, mut duration) = (true, before.duration);
    if let Ok(mut recording) = Recording::open(path) {
        complete = !recording.warnings().contains(&Warning::NoEnd);
        if let Ok(summary) = recording.summary() {
            duration = duration.max(summary.run.duration);
        }
    }
    let epoch = before.epoch + 1;
    Some(Seen { length, changed, epoch, at: Instant::now(), complete, duration })
}

impl Source for Recorded {
    fn state(&self) -> State {
        let seen = self.seen();
        let age = seen.at.elapsed();
        if let Some(standing) = &self.live {
            let ended = standing.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let passed = ended.as_ref().map_or(standing.began.elapsed(), |ended| ended.after);
            let duration = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
            let kind = if ended.is_some() { Kind::Ended } else { Kind::Live };
            let sentence = ended.map(|ended| ended.sentence);
            return State { epoch: seen.epoch, kind, age, duration, sentence };
        }
        let age = seen.changed.and_then(|at| at.elapsed().ok()).unwrap_or(age);
        let (kind, sentence) = match (seen.complete, age < GROWS) {
            (true, _) => (Kind::File, None),
            (false, true) => (Kind::Live, None),
            (false, false) => {
                let text =
                    "the recording has no end: its writer was stopped, or has stopped writing";
                (Kind::Ended, Some(text.to_owned()))
            }
        };
        State { epoch: seen.epoch, kind, age, duration: seen.duration, sentence }
    }

    fn command(&self) -> Vec<String> {
        vec!["tare".to_owned(), "report".to_owned(), self.called.clone()]
    }

    fn load(&self, view: &View) -> Result<Loaded, Problem> {
        if *view == View::default() {
            let whole = self.whole(self.seen().epoch)?;
            let taken = whole.loaded.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(loaded) = taken {
                return Ok(loaded);
            }
        }
        let args = self.args(view)?;
        let profile = source::load_view(&args.file, &args.view).map_err(problem)?;
        shown(profile, &args).map_err(problem)
    }

    fn timed(&self, view: &View) -> Result<Loaded, Problem> {
        const EVER: Range<u64> = 0..u64::MAX;
        let args = self.args(view)?;
        let (how, samples) = (args.view.compensate.how(), args.view.samples.as_deref());
        let profile = source::load_as(&args.file, Some(&EVER), how, samples, false);
        let mut profile = profile.map_err(problem)?;
        source::add_owners(&mut profile, args.view.metric.as_deref(), false).map_err(problem)?;
        shown(profile, &args).map_err(problem)
    }

    fn compared(&self, view: &View, other: bool) -> Result<Loaded, Problem> {
        let mut args = self.args(view)?;
        if other {
            args.file = self.other()?;
        }
        let profile = source::load_compared(&args.file, &args.view).map_err(problem)?;
        shown(profile, &args).map_err(problem)
    }

    fn document(&self, view: &View) -> Result<Value, Problem> {
        let mut document = report::document(&self.args(view)?).map_err(problem)?;
        document["looked_for"] = LOOKED_FOR.into();
        document["how"] = PAGES
            .iter()
            .filter_map(|(page, how)| Some(((*page).to_owned(), Value::from((*how)?))))
            .collect();
        Ok(document)
    }

    fn run(&self) -> Result<Value, Problem> {
        Ok(self.whole(self.seen().epoch)?.value.clone())
    }

    fn exports(&self) -> Value {
        let formats = Format::ALL.iter();
        formats
            .map(|format| {
                let ending = format.endings()[0];
                json!({ "format": name_of(*format), "about": format.about(), "ending": ending })
            })
            .collect()
    }

    fn export(&self, view: &View, format: &str, shown: &Shown) -> Result<Export, Problem> {
        let found = Format::ALL.into_iter().find(|known| name_of(*known) == format);
        let format =
            found.ok_or_else(|| Problem::new(400, format!("there is no format {format:?}")))?;
        let args = self.args(view)?;
        let what = Part { path: &self.path, view: &args.view, asides: report::shown_asides(&args) };
        let before = match &shown.against {
            Some(Against::Time(time)) => Some(self.args(&view.with_time(time))?),
            Some(Against::File) => Some(ReportArgs { file: self.other()?, ..self.args(view)? }),
            None => None,
        };
        let before = before.as_ref();
        let baseline = before.map(|args| Part { path: &args.file, view: &args.view, ..what });
        let opens = Opening { zoom: &shown.zoom, state: &shown.state };
        let bytes = export::into_memory(what, baseline, format, &self.name, opens);
        let stem = self.name.split('.').next().unwrap_or_default();
        let name = format!("{stem}{}", format.endings()[0]);
        Ok(Export { name, bytes: bytes.map_err(problem)? })
    }

    fn code(&self, asked: &CodeOf) -> Result<Code, Problem> {
        let sources = self.sources.as_ref();
        let sources = sources.ok_or_else(|| Problem::new(404, "no sources are known"))?;
        code::of(&sources.lock().unwrap_or_else(PoisonError::into_inner), asked)
    }

    fn heap(&self, question: &str, what: Option<&str>) -> Result<Value, Problem> {
        let heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        // That none was taken yet is no error: the page offers to take one.
        let Some(newest) = heap.first().filter(|_| self.live.is_some()) else {
            return Ok(Value::Null);
        };
        newest.answer(question, what, heap.get(1)).map_err(problem)
    }

    fn parts(&self) -> Value {
        let Some(standing) = &self.live else { return Value::Null };
        let parts = standing.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |(part, on): &(Engine, bool)| {
            let (name, about) = words(*part);
            json!({ "part": name, "about": about, "on": on })
        };
        parts.iter().map(row).collect()
    }

    fn exactly(&self) -> Value {
        self.exactly.as_ref().map_or(Value::Null, |exactly| exactly.state())
    }

    fn exact_figures(&self) -> Result<Value, Problem> {
        let exactly = self.exactly.as_ref();
        exactly.ok_or_else(|| Problem::new(404, "no JVM is recorded here"))?.figures()
    }

    fn wish(&self, wish: &Wish) -> Result<(), Problem> {
        let (Some(standing), Some(exactly)) = (&self.live, &self.exactly) else {
            let text = "this is a file, and no JVM that could be measured";
            return Err(Problem::new(409, text));
        };
        match wish {
            Wish::Switch { part, on } => {
                let known = Engine::ALL.into_iter().find(|known| words(*known).0 == part);
                let text = format!("there is no engine {part:?}");
                let part = known.ok_or_else(|| Problem::new(404, text))?;
                standing.switch(part, *on).map_err(|text| Problem::new(409, text))
            }
            Wish::Measure { method, below } => exactly.begin(method, *below),
            Wish::TakeBack => {
                exactly.take_back();
                Ok(())
            }
            Wish::Snapshot => {
                let pid = self.pid.unwrap_or_default();
                let taken =
                    Paged::of_jvm(pid).map_err(|error| Problem::new(409, format!("{error:#}")))?;
                let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
                heap.truncate(1);
                heap.insert(0, taken);
                Ok(())
            }
        }
    }

    fn heard(&self) {
        self.exactly.iter().for_each(|exactly| exactly.heard());
    }
}

/// What a part of a recording is called in requests, and to people.
fn words(part: Engine) -> (&'static str, &'static str) {
    match part {
        Engine::Samples => ("samples", "samples of threads"),
        Engine::Alloc => ("alloc", "sampled allocation, and what of it lives"),
        Engine::Locks => ("lock", "waits for locks"),
        Engine::Classes => ("classes", "classes that are loaded"),
        Engine::JniRefs => ("jni-refs", "references of native code"),
    }
}

const LOOKED_FOR: &str = "methods and stacks that dominate, threads that wait, pauses, allocation, \
                          and what was lost";

/// A format by its customary ending.
fn name_of(format: Format) -> &'static str {
    let ending = format.endings()[0].trim_start_matches('.');
    ending.split('.').next().unwrap_or(ending)
}

/// What is shown of a profile: the same as a page of `tare report`.
fn shown(profile: Profile, args: &ReportArgs) -> Result<Loaded> {
    let mut metrics = source::metrics(&profile, args.view.metric.as_deref())?;
    let filter = args.view.filter();
    let profile = narrow(profile, metrics[0], &filter.restriction())?;
    let bounds = Bounds::add_to(&mut metrics, &profile);
    let aside = set_aside(&profile, metrics[0], report::shown_asides(args));
    let (profile, idle) = match aside {
        Some(aside) => (aside.profile, aside.idle),
        None => (profile, None),
    };
    let size = profile.memory();
    let idle = idle.map(|idle| {
        let sum = profile.series(metrics[0]).total();
        idle.told(sum)
    });
    let time = args.view.time.clone();
    Ok(Loaded { profile, metrics, bounds, shape: filter.shape(), idle, time, size })
}

/// What `/api/run` says of a profile.
fn told(profile: &Profile, name: &str) -> Value {
    let default = default_metrics(profile).first().copied();
    let mut series: Vec<Value> = Vec::new();
    for (id, one) in profile.all_series().filter(|(_, one)| !one.is_empty()) {
        let info = one.info();
        let called = format!("{}:{}", info.name, info.kind.name());
        // Bounds are shown beside what they bound, and a name means the best of its estimates.
        let is_bound = matches!(info.estimate, Estimate::Lower | Estimate::Upper);
        let is_default = default == Some(id);
        let known = series.iter().position(|known| known["id"] == called.as_str());
        let is_better = info.estimate == Estimate::Compensated;
        if is_bound || known.is_some() && !is_better {
            continue;
        }
        let mut told = report::json_metric(info);
        told["id"] = called.into();
        told["total"] = one.total().into();
        told["has_times"] = (info.time != TimeAxis::None).into();
        told["default"] = is_default.into();
        match known {
            Some(at) => series[at] = told,
            None => series.push(told),
        }
    }
    let pages: Vec<Value> = PAGES
        .iter()
        .map(|(page, how)| json!({ "page": page, "has": has(profile, page), "how": how }))
        .collect();
    json!({
        "name": name,
        "headline": [report::headline(&profile.run)],
        "run": report::json_run(&profile.run),
        "series": series,
        "pages": pages,
    })
}

/// Whether a profile has what a page is of.
fn has(profile: &Profile, page: &str) -> bool {
    let event = |wanted: &str| {
        let mut tables = profile.all_events().map(|(_, table)| table);
        tables.any(|table| table.kind().name == wanted && !table.is_empty())
    };
    let series = |starts: &[&str]| {
        let mut all = profile.all_series().map(|(_, one)| one);
        all.any(|one| !one.is_empty() && starts.contains(&one.info().kind.name()))
    };
    match page {
        "locks" => event("lock"),
        "memory" => series(&["allocated-bytes", "allocated-objects", "live-bytes", "live-objects"]),
        "classes" => event("class-load") || event("class-present"),
        _ => true,
    }
}

fn problem(error: anyhow::Error) -> Problem {
    Problem::new(400, format!("{error:#}"))
}
