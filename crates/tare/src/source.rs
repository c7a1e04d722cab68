//! Where a profile comes from: the file that a user names, ours or another tool's, or a recording
//! that is under way, read into the model. Warnings about it go to standard error; what is done
//! with the profile is left to the commands.

use crate::cli::ViewArgs;
use crate::figures::several;
use crate::term::{WARN, plain};
use anyhow::{Context, Result, bail};
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tare_analysis::{
    Compensation, JOINED, Noise, OWNERS, compensate, default_metrics, figures_of_calls,
    find_metric, is_level, is_memory, join,
};
use tare_profile::facts::keys;
use tare_profile::{
    EventKind, LossKind, Profile, Row, RunInfo, Series, SeriesId, SeriesInfo, TimeAxis, ValueKind,
};
use tare_recording::{LoadOptions, ReadError, Recording, Warning};
use tare_session::command_socket::{self, Command};
use tare_session::exact;

/// All times.
const EVER: Range<u64> = 0..u64::MAX;

/// This process writes the recording that it reads, so that it has no end is nothing to tell of.
static IS_GROWING: AtomicBool = AtomicBool::new(false);

/// From now on what is read is what this process is recording.
pub fn reads_what_grows() {
    IS_GROWING.store(true, Ordering::Relaxed);
}

/// Whether command lines and the JVM's flags are left out of all that is read.
static REDACTS: AtomicBool = AtomicBool::new(false);

/// From now on they are.
pub fn redact() {
    REDACTS.store(true, Ordering::Relaxed);
}

/// What we record has no passwords in it; what others or older versions have recorded may.
fn keep_secrets(run: &mut RunInfo) {
    if REDACTS.load(Ordering::Relaxed) {
        run.command_line.clear();
        run.flags.clear();
    }
    run.command_line = tare_attach::mask_secrets(&run.command_line);
}

/// More warnings than this are counted, not shown.
const WARNINGS: usize = 5;

/// Reads a profile. With a range of time only what happened then, with its times; otherwise the
/// sums. Times of exact recordings come with estimates of what they would be without probes.
pub fn load(path: &Path, time: Option<&Range<u64>>) -> Result<Profile> {
    load_as(path, time, Compensation::default(), None, time.is_some())
}

/// What a view of a profile asks for.
pub fn load_view(path: &Path, view: &ViewArgs) -> Result<Profile> {
    let (time, how) = (view.time.as_ref(), view.compensate.how());
    // What probes cost in a trace is learned from its calls.
    let calls = time.is_some() || how == Compensation::Sequences;
    let mut profile = load_as(path, time, how, view.samples.as_deref(), calls)?;
    add_owners(&mut profile, view.metric.as_deref(), false)?;
    Ok(profile)
}

/// The same, of samples with their times, by which it is told how much they scatter.
pub fn load_compared(path: &Path, view: &ViewArgs) -> Result<Profile> {
    let profile = load_view(path, view)?;
    let metric = metrics(&profile, view.metric.as_deref())?[0];
    // Sampled bytecodes have sums of a second each, which tell no more than sums of all, and joined
    // times have sums alone.
    let info = profile.series(metric).info();
    let summed = info.kind == ValueKind::Bytecodes || info.name == JOINED;
    if view.time.is_some() || summed || Noise::of(&profile, metric) != Noise::Samples {
        return Ok(profile);
    }
    drop(profile);
    let (how, samples) = (view.compensate.how(), view.samples.as_deref());
    let mut profile = load_as(path, Some(&(0..u64::MAX)), how, samples, false)?;
    add_owners(&mut profile, view.metric.as_deref(), false)?;
    Ok(profile)
}

/// The same, by a way of compensation that was asked for, and joined with the samples of another
/// run; of a trace with its calls, of which the figures are then made, or without.
pub fn load_as(
    path: &Path,
    time: Option<&Range<u64>>,
    how: Compensation,
    samples: Option<&Path>,
    calls: bool,
) -> Result<Profile> {
    complete(read(path, time, calls)?, path, time, how, samples)
}

/// Adds what is made of what was read: estimates, and times that are joined with samples.
fn complete(
    mut profile: Profile,
    path: &Path,
    time: Option<&Range<u64>>,
    how: Compensation,
    samples: Option<&Path>,
) -> Result<Profile> {
    compensate(&mut profile, how);
    // Samples that were taken before anything was counted are of no time that one would ask for.
    let samples_of = samples.or(time.map(|_| path).filter(|_| was_sampled(&profile)));
    let others = samples_of.map(|path| read(path, None, false)).transpose()?;
    let joined = join(&mut profile, others.as_ref());
    if let (Some(path), None) = (samples, &joined) {
        bail!(
            "{} and the recording cannot be joined: it takes exact counts in one, samples of \
             processor time in the other, and methods that are in both",
            path.display()
        );
    }
    Ok(profile)
}

/// All of a recording, with the times of samples and events, and the calls of a trace if they are
/// asked for. Figures are those of [`load_as`]: what probes cost is found by sums, which come to
/// something else when they are made of every second, or of the calls.
pub fn load_timed(
    path: &Path,
    how: Compensation,
    samples: Option<&Path>,
    calls: bool,
) -> Result<Profile> {
    // A recording that is under way is not the same when it is read again.
    if !path.exists() {
        return load_as(path, Some(&EVER), how, samples, calls);
    }
    let mut timed = read(path, Some(&EVER), calls)?;
    let in_buckets = |series: &Series| matches!(series.info().time, TimeAxis::Buckets { .. });
    if !timed.all_series().any(|(_, series)| in_buckets(series)) {
        return complete(timed, path, None, how, samples);
    }
    // What is wrong with the file was said when it was read first.
    let sums = Recording::open(path)?.load(&options(None, false))?.profile;
    let mut sums = complete(sums, path, None, how, samples)?;
    if timed.contexts.len() > sums.contexts.len() || timed.threads.len() > sums.threads.len() {
        bail!("{} changed while it was read; try again", path.display());
    }
    let known = timed.all_series().count();
    for (id, series) in sums.all_series() {
        if id.index() >= known {
            timed.add_made_series(series.clone());
        } else if in_buckets(timed.series(id)) {
            *timed.series_mut(id) = series.clone();
        }
    }
    // What was added to the sums may name what the file does not.
    timed.strings = std::mem::take(&mut sums.strings);
    timed.methods = std::mem::take(&mut sums.methods);
    timed.frames = std::mem::take(&mut sums.frames);
    timed.contexts = std::mem::take(&mut sums.contexts);
    timed.threads = std::mem::take(&mut sums.threads);
    timed.run = sums.run;
    keep_secrets(&mut timed.run);
    Ok(timed)
}

/// What happened in a part of a recording of ours that was read already, with its times; nothing is
/// said of what is wrong with the file once more.
pub fn part(path: &Path, time: &Range<u64>) -> Option<Profile> {
    let mut recording = Recording::open(path).ok()?;
    Some(recording.load(&options(Some(time), false)).ok()?.profile)
}

/// The same of the calls of a trace, as they are in the file.
pub fn calls(path: &Path, time: Option<&Range<u64>>) -> Option<Profile> {
    let mut recording = Recording::open(path).ok()?;
    Some(recording.load(&options(Some(time.unwrap_or(&EVER)), true)).ok()?.profile)
}

fn was_sampled(profile: &Profile) -> bool {
    profile.run.facts.has(keys::SAMPLED_BEFORE)
}

fn read(path: &Path, time: Option<&Range<u64>>, calls: bool) -> Result<Profile> {
    let name = path.display().to_string();
    let mut profile = match path.exists() {
        true => read_file(path, &name, time, calls)?,
        // Perhaps a JVM that is being recorded.
        false => live(&name, time)
            .with_context(|| format!("there is no file {name}, and no JVM to look into"))?,
    };
    keep_secrets(&mut profile.run);
    Ok(profile)
}

/// What a recording that is under way has by now: of samples the `tare` that records them has it,
/// of exact profiles the JVM.
fn live(who: &str, time: Option<&Range<u64>>) -> Result<Profile> {
    let jvm = tare_attach::find(who)?;
    let (memory, path) = shared_memory()?;
    match command_socket::ask_if_any(&jvm, &Command::Dump(memory.try_clone()?))? {
        Some(_) => read_file(&path, who, time, false),
        None => Ok(exact::live(&jvm)?),
    }
}

/// Memory of ours, into which another `tare` writes, and its path for us: no file is left behind,
/// none can be planted.
pub fn shared_memory() -> Result<(File, PathBuf)> {
    let memory = File::from(memfd_create("tare-report", MemfdFlags::CLOEXEC)?);
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    Ok((memory, path.into()))
}

fn read_file(path: &Path, name: &str, time: Option<&Range<u64>>, calls: bool) -> Result<Profile> {
    // Opening a pipe waits for whoever writes into it, and a device may have no end.
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let error = tare_formats::ReadError::NotAFile;
        return Err(error).context(format!("{name} cannot be read"));
    }
    let mut recording = match Recording::open(path) {
        Ok(recording) => recording,
        Err(ReadError::NotARecording) => return foreign(path),
        Err(error) => return Err(error).context(format!("{name} cannot be opened")),
    };
    let loaded = recording.load(&options(time, calls));
    let mut loaded = loaded.with_context(|| format!("{name} cannot be read"))?;
    if let Some(time) = time.filter(|time| calls && **time != EVER) {
        figures_of_calls(&mut loaded.profile, time);
    }
    with_times_of_memory(&mut loaded.profile, path, time)?;
    if IS_GROWING.load(Ordering::Relaxed) {
        loaded.warnings.retain(|warning| *warning != Warning::NoEnd);
    }
    if loaded.warnings.contains(&Warning::NoEnd) {
        loaded.profile.run.lose(
            LossKind::Damaged,
            "end of the recording",
            1,
            "it is still being written, or its writer was stopped; what came later is missing",
        );
    }
    let count = loaded.warnings.len();
    let warnings =
        loaded.warnings.iter().take(WARNINGS).map(|warning| format!("{name}: {warning}"));
    let more = count.checked_sub(WARNINGS).filter(|more| *more > 0);
    let more = more.map(|more| format!("{name}: {} like these", several(more, "more warning")));
    for text in warnings.chain(more).filter(|text| is_new(text)) {
        errln!("{WARN}tare:{WARN:#} {text}");
    }
    Ok(loaded.profile)
}

/// Whether a warning was not said before: a file that is shown for hours is read again and again.
fn is_new(text: &str) -> bool {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned())
}

/// Figures of memory keep their times and single samples, of which growth and chance are told; and
/// what lives at a moment is all that came and went until then, however short a time is asked for.
fn with_times_of_memory(
    profile: &mut Profile,
    path: &Path,
    time: Option<&Range<u64>>,
) -> Result<()> {
    let is_ours = |info: &SeriesInfo| is_memory(&info.kind);
    if time == Some(&EVER) || !profile.all_series().any(|(_, series)| is_ours(series.info())) {
        return Ok(());
    }
    let mut recording = Recording::open(path)?;
    let series = recording.summary()?.series;
    let ours = |info: &Option<SeriesInfo>| info.as_ref().is_some_and(is_ours);
    let wanted = (0..).zip(&series).filter(|(_, info)| ours(info)).map(|(number, _)| number);
    let options = LoadOptions { series: Some(wanted.collect()), ..options(Some(&EVER), false) };
    let whole = recording.load(&options)?.profile;
    // A file that grows meanwhile has more by now; what is more is left to the next report.
    if whole.contexts.len() != profile.contexts.len()
        || whole.threads.len() != profile.threads.len()
    {
        return Ok(());
    }
    for (_, timed) in whole.all_series() {
        let level = is_level(&timed.info().kind);
        let within =
            |row: &Row| time.is_none_or(|t| row.time < t.end && (level || row.time >= t.start));
        let same = |info: &SeriesInfo| {
            let known = timed.info();
            (&info.name, &info.kind, info.estimate) == (&known.name, &known.kind, known.estimate)
        };
        let found = profile.all_series().find(|(_, series)| same(series.info()));
        if let Some((id, _)) = found {
            let mut rows = Series::new(timed.info().clone());
            timed.rows().filter(within).for_each(|row| rows.push(row));
            *profile.series_mut(id) = rows;
        }
    }
    for kind in [EventKind::survivor(), EventKind::death()] {
        let Some((_, table)) = whole.all_events().find(|(_, table)| *table.kind() == kind) else {
            continue;
        };
        let id = profile.events_of(&kind);
        profile.events_mut(id).forget_rows();
        for row in 0..table.len() {
            let (event, fields) = table.moved_row(row, |context| context, |context| context);
            profile.events_mut(id).push(event, &fields);
        }
    }
    Ok(())
}

fn options(time: Option<&Range<u64>>, calls: bool) -> LoadOptions {
    LoadOptions {
        time: time.cloned(),
        merge: time.is_none(),
        without: if calls { Vec::new() } else { vec![EventKind::call().name] },
        lasting: true,
        ..LoadOptions::default()
    }
}

/// A file of another tool: JFR, pprof, collapsed stacks.
fn foreign(path: &Path) -> Result<Profile> {
    let name = path.display();
    match tare_formats::open(path) {
        Ok(profile) => Ok(profile),
        Err(tare_formats::ReadError::Unknown) => bail!(
            "{name} is neither a recording of Tare nor a profile in JFR, pprof or collapsed form"
        ),
        Err(error) => Err(error).context(format!("{name} cannot be read")),
    }
}

/// Adds blocked time by the owners of locks, if it is asked for by its name, or `always`.
pub fn add_owners(profile: &mut Profile, metric: Option<&str>, always: bool) -> Result<()> {
    let asked = metric.is_some_and(|name| name.split(':').next() == Some(OWNERS));
    if asked || always {
        tare_analysis::add_owners(profile)?;
    }
    Ok(())
}

/// The series to show: the one that the user names, or the most telling.
pub fn metrics(profile: &Profile, wanted: Option<&str>) -> Result<Vec<SeriesId>> {
    if profile.all_series().next().is_none() {
        bail!("the recording holds no values");
    }
    let Some(wanted) = wanted else {
        let metrics = default_metrics(profile);
        // A recording that was stopped at once has series, but nothing in them.
        let first = profile.all_series().map(|(id, _)| id).take(1);
        return Ok(if metrics.is_empty() { first.collect() } else { metrics });
    };
    find_metric(profile, wanted).with_context(|| {
        let known = profile.all_series().map(|(_, series)| {
            let info = series.info();
            format!("{}:{}", plain(&info.name), plain(info.kind.name()))
        });
        let known: Vec<String> = known.collect();
        format!("the recording has no values called {wanted:?}; it has {}", known.join(", "))
    })
}
