//! `tare export`: a recording in another tool's format, chosen by the ending of the file's name.

use crate::cli::{ExportArgs, ViewArgs, help_of_export};
use crate::figures::{amount, several};
use crate::source;
use crate::term::{DIM, WARN, plain};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tare_analysis::{
    Asides, Compensation, Diff, DiffOptions, Filter, JOINED, Noise, OWNERS, narrow, set_aside,
};
use tare_formats::{Format, Opening, Options, Scatter};
use tare_profile::{Estimate, LossKind, Profile, SeriesId, SeriesInfo};

pub fn run(args: &ExportArgs) -> Result<()> {
    let Some((format, gzip)) = Format::of_path(&args.output) else {
        let name = args.output.display();
        let list = help_of_export();
        let list = list.split_once("\n\n").map_or(list.as_str(), |(formats, _)| formats);
        bail!("the ending of {name} names no format\n\n{list}");
    };
    if args.baseline.is_some() && format != Format::Html {
        bail!("--baseline colours an .html flame graph; for figures use `tare diff OLD NEW`");
    }
    if same_file(&args.file, &args.output) {
        bail!("{} would overwrite the file that is read", args.output.display());
    }
    // How samples scatter is told by their times.
    let load = |path: &Path| match args.baseline {
        Some(_) => source::load_compared(path, &args.view).map(|mut profile| {
            drop_ranges(&mut profile);
            profile
        }),
        None => load(Some(&args.view), path, format),
    };
    let load = |path: &Path| {
        let mut profile = load(path)?;
        let known = profile.all_series().any(|(_, series)| series.info().name == OWNERS);
        // A flame graph has a button for it.
        let always = format == Format::Html && !known;
        source::add_owners(&mut profile, args.view.metric.as_deref().filter(|_| !known), always)?;
        anyhow::Ok(profile)
    };
    let profile = load(&args.file)?;
    let filter = Filter { min_share: args.view.min_share.unwrap_or(0.0), ..args.view.filter() };
    let series = source::metrics(&profile, args.view.metric.as_deref())?[0];
    let profile = narrow(profile, series, &filter)?;
    let mut scatter = None;
    let baseline = match &args.baseline {
        Some(path) => {
            let base = load(path)?;
            let base_series = source::metrics(&base, args.view.metric.as_deref())?[0];
            let base = narrow(base, base_series, &filter)?;
            scatter = scatter_of((&base, base_series), (&profile, series))?;
            Some(base)
        }
        None => None,
    };
    let file_name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let title = args.title.as_deref().unwrap_or(&file_name);
    let options = Options {
        series: Some(series),
        threads: args.threads,
        title,
        baseline: baseline.as_ref(),
        scatter,
        gzip,
        source: size_of(&args.file),
        ..Options::default()
    };
    let size = write(&profile, format, options, &args.output)?;
    let (name, series) = (args.output.display(), profile.series(series));
    let total = amount(series.total(), series.info());
    // What went into a pipe has no size.
    let size = if size > 0 { several(size, "byte") + ", " } else { String::new() };
    errln!("{name}: {size}{total} {DIM}({}){DIM:#}", format.about());
    Ok(())
}

/// A part of a recording, as a page of `tare view` shows it.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    pub path: &'a Path,
    pub view: &'a ViewArgs,
    pub asides: Asides,
}

impl Part<'_> {
    /// With the series that is shown; `compared`, with what tells how much it scatters.
    fn load(&self, format: Format, compared: bool) -> Result<(Profile, SeriesId)> {
        let Part { path, view, asides } = *self;
        let mut profile = match compared {
            true => source::load_compared(path, view)?,
            false => load(Some(view), path, format)?,
        };
        drop_ranges(&mut profile);
        let known = profile.all_series().any(|(_, series)| series.info().name == OWNERS);
        let always = format == Format::Html && !known;
        source::add_owners(&mut profile, view.metric.as_deref().filter(|_| !known), always)?;
        let filter = Filter { min_share: view.min_share.unwrap_or(0.0), ..view.filter() };
        let series = source::metrics(&profile, view.metric.as_deref())?[0];
        // As the page does: what stands aside decides who is a caller.
        let profile = narrow(profile, series, &filter.restriction())?;
        let profile = match set_aside(&profile, series, asides) {
            Some(aside) => aside.profile,
            None => profile,
        };
        Ok((narrow(profile, series, &filter.shape())?, series))
    }
}

/// A view in a format, whole and in memory.
pub fn into_memory(
    what: Part<'_>,
    baseline: Option<Part<'_>>,
    format: Format,
    title: &str,
    opens: Opening<'_>,
) -> Result<Vec<u8>> {
    let baseline = baseline.filter(|_| format == Format::Html);
    let (profile, series) = what.load(format, baseline.is_some())?;
    let baseline = baseline.map(|part| part.load(format, true)).transpose()?;
    let both = baseline.as_ref().map(|(base, of)| scatter_of((base, *of), (&profile, series)));
    let scatter = both.transpose()?.flatten();
    let (gzip, source) = (format == Format::Pprof, size_of(what.path));
    let baseline = baseline.as_ref().map(|(profile, _)| profile);
    let series = Some(series);
    let options = Options { series, threads: true, title, baseline, scatter, opens, gzip, source };
    let mut bytes = Vec::new();
    tare_formats::write(&profile, format, options, &mut bytes)?;
    Ok(bytes)
}

/// How much values of the two scatter if they are samples.
fn scatter_of(old: (&Profile, SeriesId), new: (&Profile, SeriesId)) -> Result<Option<Scatter>> {
    let options = DiffOptions { normalise: true, ..DiffOptions::default() };
    let diff = Diff::build(old, new, &options)?;
    let found = Scatter { variances: diff.scatter, deviations: diff.deviations };
    Ok((diff.noise == Noise::Samples).then_some(found))
}

/// A recording that was just made, in the format of another file's name; the whole of it. The
/// file's size.
pub fn save(recording: &Path, format: Format, gzip: bool, path: &Path) -> Result<u64> {
    let mut profile = load(None, recording, format)?;
    source::add_owners(&mut profile, None, format == Format::Html)?;
    let series = source::metrics(&profile, None)?.first().copied();
    let title = path.file_name().unwrap_or_default().to_string_lossy();
    let source = size_of(recording);
    let options =
        Options { series, threads: true, title: &title, gzip, source, ..Options::default() };
    write(&profile, format, options, path)
}

/// Reads a recording, with its times if the format has a place for them.
fn load(view: Option<&ViewArgs>, path: &Path, format: Format) -> Result<Profile> {
    let time = view.and_then(|view| view.time.as_ref());
    let timed = match format {
        Format::Collapsed | Format::Html | Format::Pprof | Format::Callgrind => false,
        Format::Jfr | Format::Speedscope | Format::Firefox | Format::Chrome | Format::Otlp => true,
    };
    let how = view.map_or_else(Compensation::default, |view| view.compensate.how());
    let samples = view.and_then(|view| view.samples.as_deref());
    let mut profile = if time.is_none() && timed {
        let calls = matches!(format, Format::Chrome | Format::Firefox);
        source::load_timed(path, how, samples, calls)?
    } else {
        source::load_as(path, time, how, samples, time.is_some())?
    };
    drop_ranges(&mut profile);
    for loss in profile.run.losses.iter().filter(|loss| loss.kind == LossKind::Damaged) {
        let (count, name, reason) = (loss.count, plain(&loss.name), plain(&loss.reason));
        errln!("{WARN}tare:{WARN:#} {}: damaged: {count} {name} ({reason})", path.display());
    }
    Ok(profile)
}

/// Of a recording that is under way nobody knows it.
fn size_of(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|file| file.len())
}

/// What a calibration leaves open is no bound that another tool should show as one.
fn drop_ranges(profile: &mut Profile) {
    let is_range = |info: &SeriesInfo| {
        info.name != JOINED && matches!(info.estimate, Estimate::Lower | Estimate::Upper)
    };
    let ids = profile.all_series().filter(|(_, series)| is_range(series.info()));
    let ids: Vec<SeriesId> = ids.map(|(id, _)| id).collect();
    ids.into_iter().for_each(|id| profile.series_mut(id).forget_rows());
}

/// Writes beside the wanted file first, so that a failure leaves no half of one; but into a pipe,
/// if it is one, for whoever reads there.
fn write(profile: &Profile, format: Format, options: Options<'_>, path: &Path) -> Result<u64> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let pipe = File::options().write(true).open(path);
        return pipe
            .map_err(anyhow::Error::from)
            .and_then(|pipe| {
                tell(&tare_formats::write(profile, format, options, &pipe)?, path);
                Ok(0)
            })
            .with_context(|| format!("{} cannot be written", path.display()));
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let cannot = || format!("{} cannot be written", path.display());
    let outcome = File::create(&part).map_err(anyhow::Error::from).and_then(|file| {
        let notes = tare_formats::write(profile, format, options, &file)?;
        let size = file.metadata()?.len();
        fs::rename(&part, path)?;
        tell(&notes, path);
        Ok(size)
    });
    if outcome.is_err() {
        // The error that is reported is the first one.
        let _ = fs::remove_file(&part);
    }
    outcome.with_context(cannot)
}

/// What was not written as it is in the recording.
fn tell(notes: &[String], path: &Path) {
    for note in notes {
        errln!("{WARN}tare:{WARN:#} {}: {note}", path.display());
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_no_file() {
        let profile = Profile::new();
        let path = std::env::temp_dir().join(format!("tare-export-{}.html", std::process::id()));
        let error = write(&profile, Format::Html, Options::default(), &path).unwrap_err();
        assert!(format!("{error:#}").contains("holds no values"), "{error:#}");
        assert!(!path.exists() && !path.with_extension("html.part").exists());
    }
}
