//! `tare diff`: two profiles side by side, what grew first. For scripts the exit status tells
//! whether it grew beyond a threshold, by more than chance.

mod first;

use super::report::json_metric;
use crate::cli::{By, DiffArgs, DiffFormat};
use crate::figures::{amount, fit, percent, value, wrap};
use crate::source;
use crate::term::{self, BAD, BOLD, DIM, GOOD};
use anstyle::Style;
use anyhow::{Result, bail};
use first::First;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use tare_analysis::{
    Aside, Asides, Change, Diff, DiffNode, DiffOptions, Grouping, Noise, cut_to_sites, is_memory,
    narrow, set_aside,
};
use tare_profile::{Profile, SeriesId, SeriesInfo, Unit};

/// What `--threshold` ends with when it is exceeded; 1 and 2 mean that nothing was compared.
const EXCEEDED: u8 = 3;
/// Changes of less than this share of the old whole are not worth a line.
const MIN_SHARE: f64 = 0.001;
/// Frames shown of a context.
const PATH: usize = 4;

pub fn run(args: &DiffArgs) -> Result<ExitCode> {
    let old = source::load_compared(&args.old, &args.view)?;
    let new = source::load_compared(&args.new, &args.view)?;
    let old_metric = source::metrics(&old, args.view.metric.as_deref())?[0];
    let info = old.series(old_metric).info();
    let new_metric = same_metric(&new, info, args)?;
    let filter = args.view.filter();
    let old = narrow(old, old_metric, &filter.restriction())?;
    let new = narrow(new, new_metric, &filter.restriction())?;
    // Whatever the form, so that it agrees with the exit status. Libraries are what `--by jar` asks
    // for.
    let asides = Asides { native: !args.native && args.view.by() != By::Jar, idle: !args.idle };
    let aside = [(&old, old_metric), (&new, new_metric)].map(|(p, m)| set_aside(p, m, asides));
    let [old, new] = [(&aside[0], &old), (&aside[1], &new)]
        .map(|(aside, whole)| aside.as_ref().map_or(whole, |aside| &aside.profile));
    let info = old.series(old_metric).info();
    let mut shape = filter.shape();
    // Where an object comes from is told by class and line; the stacks above differ with the JDK.
    let by_site = is_memory(&info.kind) && matches!(args.view.grouped, None | Some(By::Site));
    let sites = [old, new].map(|profile| by_site.then(|| cut_to_sites(profile)).flatten());
    if sites.iter().any(Option::is_some) {
        shape.group = Grouping::Line;
    }
    let [old, new] =
        [(&sites[0], old), (&sites[1], new)].map(|(sites, whole)| sites.as_ref().unwrap_or(whole));
    let options = DiffOptions { normalise: args.normalise, filter: shape };
    let diff = Diff::build((old, old_metric), (new, new_metric), &options)?;
    let first = First::find(&diff, (old, old_metric), (new, new_metric), &options)?;
    // The status is for whoever reads none of it, too.
    term::printed(match args.format {
        DiffFormat::Text => {
            let mut text = Vec::new();
            page(&mut text, args, &diff, info, (&first, &aside))?;
            term::show(&text, !args.no_pager)
        }
        DiffFormat::Json => json(args, &diff, info, &first),
    })?;
    let worst = diff.worst();
    let Some(threshold) = args.threshold.filter(|threshold| worst.at_least > *threshold) else {
        return Ok(ExitCode::SUCCESS);
    };
    let what = match &worst.label {
        None => "it grew".to_owned(),
        Some(label) => format!("{label} itself grew"),
    };
    let shown = |share: f64| percent(share).trim().to_owned();
    let surely = match diff.noise {
        Noise::Samples => format!(", by {} at least", shown(worst.at_least)),
        Noise::None | Noise::Unknown => String::new(),
    };
    errln!(
        "{BAD}tare:{BAD:#} {what} by {} of the old whole{surely}, and the threshold is {}",
        shown(worst.share),
        shown(threshold)
    );
    if diff.noise == Noise::Samples && worst.label.is_none() {
        let options = DiffOptions { normalise: true, ..options };
        let shares = Diff::build((old, old_metric), (new, new_metric), &options)?;
        if shares.worst().at_least <= threshold {
            errln!(
                "No method's share of the whole grew so much: if the two runs did not do the same amount \
                 of work, or not get as much of the machine, compare with --normalise"
            );
        }
    }
    Ok(ExitCode::from(EXCEEDED))
}

/// The series of the new profile that is the same as the one chosen in the old.
fn same_metric(profile: &Profile, info: &SeriesInfo, args: &DiffArgs) -> Result<SeriesId> {
    let same = |other: &SeriesInfo| (&other.kind, other.estimate) == (&info.kind, info.estimate);
    let mut found: Vec<(SeriesId, &SeriesInfo)> =
        profile.all_series().map(|(id, s)| (id, s.info())).filter(|(_, i)| same(i)).collect();
    found.sort_by_key(|(_, other)| other.name != info.name);
    match found.first() {
        Some((id, _)) => Ok(*id),
        None => bail!(
            "{} has no {} as {} has; choose values that both have with --metric",
            args.new.display(),
            info.kind.name(),
            args.old.display()
        ),
    }
}

fn page(
    out: &mut Vec<u8>,
    args: &DiffArgs,
    diff: &Diff,
    info: &SeriesInfo,
    (first, aside): (&First, &[Option<Aside>; 2]),
) -> Result<()> {
    let width = term::width().unwrap_or(usize::MAX);
    let unit = info.kind.unit();
    let [old, new] = diff.sums;
    writeln!(out, "{DIM}old{DIM:#} {}  {}", args.old.display(), amount(old, info))?;
    let chance = whole_may_be_chance(diff) == Some(true);
    writeln!(
        out,
        "{DIM}new{DIM:#} {}  {}  {}{}",
        args.new.display(),
        value(new, unit),
        growth([old, new], new as f64 - old as f64),
        if chance && old != new { ", within noise" } else { "" }
    )?;
    say_aside(out, aside, width)?;
    let how =
        if diff.normalised { "shares of the whole are compared" } else { "values are compared" };
    writeln!(out, "{DIM}{how}; a change is told as a share of the old whole{DIM:#}")?;
    match diff.noise {
        Noise::Samples => writeln!(out, "{DIM}≈ within the samples' noise: no difference{DIM:#}")?,
        Noise::Unknown => writeln!(
            out,
            "{DIM}by how much another run of the same would differ is not known from one of \
             each{DIM:#}"
        )?,
        Noise::None => {}
    }
    let (contexts_alike, methods_alike) = (percent(diff.overlap), percent(diff.label_overlap));
    let text = format!(
        "overlap {} of the two profiles is the same, context by context; {} method by method",
        contexts_alike.trim(),
        methods_alike.trim()
    );
    for line in wrap(&text, width) {
        writeln!(out, "{line}")?;
    }
    if diff.label_overlap > 2.0 * diff.overlap && !args.view.hide_jdk {
        let hint = "the same methods are called in other ways; --hide-jdk helps if the JDKs differ";
        writeln!(out, "{DIM}{hint}{DIM:#}")?;
    }
    let least = args.view.min_share.unwrap_or(MIN_SHARE);
    let worth = |change: &&Change| diff.delta_share(change.own).abs() >= least;
    let grew = diff.methods.iter().filter(worth).filter(|c| diff.delta(c.own) > 0.0);
    let shrank = diff.methods.iter().rev().filter(worth).filter(|c| diff.delta(c.own) < 0.0);
    list(out, args, diff, ("Regressions", BAD), grew.collect(), (unit, width))?;
    list(out, args, diff, ("Improvements", GOOD), shrank.collect(), (unit, width))?;
    contexts(out, args, diff, least, width)?;
    first.page(out, info, width)?;
    let Some(threshold) = args.threshold else { return Ok(()) };
    if diff.largest() > threshold && diff.worst().at_least <= threshold {
        let text = format!(
            "What grew by more than {} is within noise of it; record longer, or compare executed \
             bytecodes (tare check)",
            percent(threshold).trim()
        );
        writeln!(out)?;
        for line in wrap(&text, width) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// What is not compared as it was recorded.
fn say_aside(out: &mut Vec<u8>, aside: &[Option<Aside>; 2], width: usize) -> Result<()> {
    let idle = aside.each_ref().map(|aside| {
        let idle = aside.as_ref().and_then(|aside| aside.idle.as_ref());
        idle.map_or(0, |idle| idle.value)
    });
    let mut said = Vec::new();
    if idle != [0; 2] {
        let [old, new] = idle.map(|idle| value(idle, Unit::Nanoseconds));
        said.push(format!("waiting for work is left out, {old} and {new} (--idle compares it)"));
    }
    let is_jvms = |aside: &Aside| aside.outside_of_java() || !aside.parts.is_empty();
    if aside.iter().flatten().any(is_jvms) {
        let who = "frames that are not Java are with their callers, threads of the JVM one line";
        said.push(format!("{who} (--native compares them)"));
    }
    for line in said.iter().flat_map(|said| wrap(said, width)) {
        writeln!(out, "{DIM}{line}{DIM:#}")?;
    }
    Ok(())
}

/// What the wholes differ by is not judged where shares are compared.
fn whole_may_be_chance(diff: &Diff) -> Option<bool> {
    (!diff.normalised).then(|| diff.may_be_chance(diff.sums, diff.doubt)).flatten()
}

fn list(
    out: &mut impl Write,
    args: &DiffArgs,
    diff: &Diff,
    (title, style): (&str, Style),
    changes: Vec<&Change>,
    (unit, width): (Unit, usize),
) -> Result<()> {
    writeln!(out, "\n{BOLD}{title}{BOLD:#}")?;
    if changes.is_empty() {
        return Ok(writeln!(out, "{DIM}  none worth a line{DIM:#}")?);
    }
    writeln!(out, "{DIM}    change {:>11} {:>11} {:>9}{DIM:#}", "old", "new", "growth")?;
    for change in changes.iter().take(args.top) {
        let room = width.saturating_sub(50).max(12);
        let doubtful = diff.may_be_chance(change.own, change.doubt.own) == Some(true);
        let (style, mark) = if doubtful { (DIM, '≈') } else { (style, ' ') };
        writeln!(
            out,
            "  {style}{:>8}{style:#} {:>11} {:>11} {:>9} {mark}{}",
            signed_percent(diff.delta_share(change.own)),
            value(change.own[0], unit),
            value(change.own[1], unit),
            growth(change.own, diff.delta(change.own)),
            fit(&change.label, room)
        )?;
    }
    if let Some(more @ 1..) = changes.len().checked_sub(args.top) {
        writeln!(out, "{DIM}  … {more} more; --top N shows them{DIM:#}")?;
    }
    Ok(())
}

/// The places in the tree that changed most, by their own values.
fn contexts(
    out: &mut impl Write,
    args: &DiffArgs,
    diff: &Diff,
    least: f64,
    width: usize,
) -> Result<()> {
    let share = |node: &usize| diff.delta_share(diff.tree[*node].own);
    let mut nodes: Vec<usize> = (0..diff.tree.len()).collect();
    nodes.retain(|node| share(node).abs() >= least.max(f64::MIN_POSITIVE));
    nodes.sort_by(|a, b| share(b).abs().total_cmp(&share(a).abs()).then(a.cmp(b)));
    if nodes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}Contexts that changed most{BOLD:#}")?;
    for node in nodes.iter().take(args.top) {
        let DiffNode { own, doubt, .. } = diff.tree[*node];
        let (style, mark) = match diff.may_be_chance(own, doubt.own) {
            Some(true) => (DIM, '≈'),
            _ if share(node) > 0.0 => (BAD, ' '),
            _ => (GOOD, ' '),
        };
        let path = diff.path(*node);
        let last = path.len().saturating_sub(PATH);
        let start = if last > 0 { "… › " } else { "" };
        let names = path.len().clamp(1, PATH);
        let room = width.saturating_sub(12 + start.chars().count() + 3 * (names - 1)) / names;
        let shown = path[last..].iter().map(|name| fit(name, room.max(12)));
        let shown: Vec<String> = shown.collect();
        let text = if shown.is_empty() { "[all]".to_owned() } else { shown.join(" › ") };
        writeln!(out, "  {style}{:>8}{style:#} {mark}{start}{text}", signed_percent(share(node)))?;
    }
    Ok(())
}

/// `+12.3 %` of what it was.
fn growth([old, new]: [i64; 2], delta: f64) -> String {
    match (old, new) {
        (0, 0) => String::new(),
        (0, _) => "new".to_owned(),
        (_, 0) => "gone".to_owned(),
        (old, _) => signed_percent(delta / (old as f64).abs()),
    }
}

fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

fn json(args: &DiffArgs, diff: &Diff, info: &SeriesInfo, first: &First) -> Result<()> {
    // What a change is at least and at most, as shares of the old whole.
    let within = |values: [i64; 2], doubt: f64| {
        let (share, doubt) = (diff.delta_share(values), diff.doubt_share(doubt));
        (diff.noise != Noise::Unknown)
            .then(|| json!([finite(share - doubt), finite(share + doubt)]))
    };
    let change = |change: &Change| {
        json!({
            "name": change.label,
            "self": { "old": change.own[0], "new": change.own[1] },
            "total": { "old": change.total[0], "new": change.total[1] },
            "may_be_chance": diff.may_be_chance(change.own, change.doubt.own),
            "total_may_be_chance": diff.may_be_chance(change.total, change.doubt.total),
            "self_change_share": finite(diff.delta_share(change.own)),
            "self_change_within": within(change.own, change.doubt.own),
            "total_change_share": finite(diff.delta_share(change.total)),
            "total_change_within": within(change.total, change.doubt.total),
        })
    };
    let tree = diff.tree.iter().enumerate().map(|(number, node)| {
        let label = diff.labels[node.label].clone();
        let DiffNode { own, total, doubt, .. } = *node;
        let mut row = change(&Change { label, own, total, doubt });
        row["parent"] = if number == 0 { Value::Null } else { node.parent.into() };
        row
    });
    let worst = diff.worst();
    let root = json!({
        "metric": json_metric(info),
        "old": diff.sums[0],
        "new": diff.sums[1],
        "normalised": diff.normalised,
        "noise": diff.noise.name(),
        "may_be_chance": whole_may_be_chance(diff),
        "overlap": diff.overlap,
        "method_overlap": diff.label_overlap,
        "worst": finite(worst.share),
        "worst_at_least": finite(worst.at_least),
        "worst_method": worst.label,
        "threshold": args.threshold,
        "exceeded": args.threshold.map(|threshold| worst.at_least > threshold),
        "first_difference": first.json(),
        "methods": diff.methods.iter().map(change).collect::<Value>(),
        "tree": tree.collect::<Value>(),
    });
    term::json(&root)
}

/// JSON has no infinity: growth out of nothing is `null`.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}
