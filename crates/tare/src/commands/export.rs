//! `tare export`: a recording in another tool's format, chosen by the ending of the file's name.

use crate::cli::{ExportArgs, help_of_export};
use crate::source;
use crate::term::{DIM, WARN};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tare_analysis::{Filter, LabelKind, Tree};
use tare_formats::{Format, Options, series_name};
use tare_profile::{
    ContextId, Frame, LossKind, Method, MethodKind, Profile, Row, SeriesId, SeriesInfo, ThreadId,
};

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
    let profile = load(args.view.time.as_ref(), &args.file, format)?;
    let series = source::metrics(&profile, args.view.metric.as_deref())?[0];
    let (profile, series) = narrow(args, profile, series)?;
    let baseline = match &args.baseline {
        Some(path) => {
            let profile = load(args.view.time.as_ref(), path, format)?;
            let series = source::metrics(&profile, args.view.metric.as_deref())?[0];
            Some(narrow(args, profile, series)?.0)
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
        gzip,
    };
    let size = write(&profile, format, options, &args.output)?;
    let (name, series) = (args.output.display(), profile.series(series));
    let (info, total) = (series_name(series.info()), series.total());
    anstream::eprintln!("{name}: {size} bytes, {total} of {info} {DIM}({}){DIM:#}", format.about());
    Ok(())
}

/// A recording that was just made, in the format of another file's name; the whole of it. The
/// file's size.
pub fn save(recording: &Path, format: Format, gzip: bool, path: &Path) -> Result<u64> {
    let profile = load(None, recording, format)?;
    let series = source::metrics(&profile, None)?.first().copied();
    let title = path.file_name().unwrap_or_default().to_string_lossy();
    let options = Options { series, threads: true, title: &title, baseline: None, gzip };
    write(&profile, format, options, path)
}

/// Reads a recording, with its times if the format has a place for them.
fn load(time: Option<&Range<u64>>, path: &Path, format: Format) -> Result<Profile> {
    let always = 0..u64::MAX;
    let all = match format {
        Format::Collapsed | Format::Html | Format::Pprof | Format::Callgrind => None,
        Format::Jfr | Format::Speedscope | Format::Firefox | Format::Chrome | Format::Otlp => {
            Some(&always)
        }
    };
    let profile = source::load(path, time.or(all))?;
    for loss in profile.run.losses.iter().filter(|loss| loss.kind == LossKind::Damaged) {
        let (count, name, reason) = (loss.count, &loss.name, &loss.reason);
        anstream::eprintln!(
            "{WARN}tare:{WARN:#} {}: damaged: {count} {name} ({reason})",
            path.display()
        );
    }
    Ok(profile)
}

/// What the filters let through, as a profile again; the whole if none was given.
fn narrow(args: &ExportArgs, profile: Profile, first: SeriesId) -> Result<(Profile, SeriesId)> {
    let filter = Filter { min_share: args.view.min_share.unwrap_or(0.0), ..args.view.filter() };
    if filter == Filter::default() {
        return Ok((profile, first));
    }
    // The first decides what is small.
    let mut all: Vec<SeriesId> = profile
        .all_series()
        .filter(|(id, series)| *id != first && !series.is_empty())
        .map(|(id, _)| id)
        .collect();
    all.insert(0, first);
    let tree = Tree::build(&profile, &all, &filter)?;
    Ok((profile_of(&tree, &profile, &all), SeriesId::new(0)))
}

/// A tree as a profile: its labels become frames, its own values rows.
fn profile_of(tree: &Tree, source: &Profile, metrics: &[SeriesId]) -> Profile {
    let mut out = Profile::new();
    out.run = source.run.clone();
    let text = |id| source.strings.get(id);
    let frames: Vec<_> = tree
        .labels()
        .map(|(_, label)| {
            let strings = &mut out.strings;
            let known = label.method.map(|id| source.methods.get(id));
            let method = match (label.kind, known) {
                (LabelKind::Method(kind), Some(method)) => Method {
                    kind,
                    class: strings.intern(text(method.class)),
                    name: strings.intern(text(method.name)),
                    descriptor: strings.intern(text(method.descriptor)),
                    file: strings.intern(text(method.file)),
                    line: method.line,
                    loader: strings.intern(text(method.loader)),
                    module: strings.intern(text(method.module)),
                },
                (LabelKind::Group, _) => Method {
                    kind: MethodKind::Class,
                    class: strings.intern(&label.text),
                    ..Method::default()
                },
                _ => Method {
                    kind: MethodKind::Special,
                    name: strings.intern(&label.text),
                    ..Method::default()
                },
            };
            let method = out.methods.intern(method);
            out.frames.intern(Frame { line: label.line, ..Frame::of(method) })
        })
        .collect();
    let order: std::collections::HashMap<_, _> =
        tree.labels().map(|(id, _)| id).zip(frames).collect();
    let mut contexts = std::collections::HashMap::new();
    for metric in metrics {
        let info = source.series(*metric).info();
        let plain = SeriesInfo::new(&info.name, info.kind.clone()).with_estimate(info.estimate);
        out.add_series(SeriesInfo {
            period: info.period,
            period_kind: info.period_kind.clone(),
            ..plain
        });
    }
    for node in tree.nodes() {
        let context = match tree.parent(node) {
            None => ContextId::ROOT,
            Some(parent) => out.contexts.child(contexts[&parent], order[&tree.label_id(node)]),
        };
        contexts.insert(node, context);
        for metric in 0..metrics.len() {
            let value = tree.own(metric, node);
            if value != 0 {
                let row = Row::new(context, ThreadId::UNKNOWN, value);
                out.series_mut(SeriesId::new(metric as u32)).push(row);
            }
        }
    }
    out
}

/// Writes beside the wanted file first, so that a failure leaves no half of one.
fn write(profile: &Profile, format: Format, options: Options<'_>, path: &Path) -> Result<u64> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let cannot = || format!("{} cannot be written", path.display());
    let outcome = File::create(&part).map_err(anyhow::Error::from).and_then(|file| {
        tare_formats::write(profile, format, options, &file)?;
        let size = file.metadata()?.len();
        fs::rename(&part, path)?;
        Ok(size)
    });
    if outcome.is_err() {
        // The error that is reported is the first one.
        let _ = fs::remove_file(&part);
    }
    outcome.with_context(cannot)
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

    fn collapsed(profile: &Profile) -> String {
        let mut out = Vec::new();
        tare_formats::write(profile, Format::Collapsed, Options::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_filtered_tree_is_a_profile_again() {
        let text = b"[main tid=1];java.lang.Thread.run;a.B.c;a.B.c;a.B.d 5\n[x tid=2];a.B.d 2\n";
        let profile = tare_formats::open_bytes(text).unwrap();
        let series = SeriesId::new(0);
        let check = |filter: Filter, expected: &str| {
            let tree = Tree::build(&profile, &[series], &filter).unwrap();
            let narrowed = profile_of(&tree, &profile, &[series]);
            narrowed.check().unwrap();
            assert_eq!(collapsed(&narrowed), expected);
        };
        check(
            Filter { hide_jdk: true, fold_recursion: true, ..Filter::default() },
            "a.B.c;a.B.d 5\na.B.d 2\n",
        );
        check(Filter { threads: vec!["x".to_owned()], ..Filter::default() }, "a.B.d 2\n");
    }

    #[test]
    fn a_failure_leaves_no_file() {
        let profile = Profile::new();
        let path = std::env::temp_dir().join(format!("tare-export-{}.html", std::process::id()));
        let error = write(&profile, Format::Html, Options::default(), &path).unwrap_err();
        assert!(format!("{error:#}").contains("holds no values"), "{error:#}");
        assert!(!path.exists() && !path.with_extension("html.part").exists());
    }
}
