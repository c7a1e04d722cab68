//! `tare report`: a profile as a page for people, as JSON, or as a listing like hprof's. What is
//! computed comes from `tare-analysis`; how each form looks is in a file of its own.

mod around;
mod classes;
mod climb;
mod comings;
mod head;
mod hprof;
mod jni_refs;
mod json;
mod lengths;
mod list;
mod locks;
mod page;
mod pauses;
mod regions;
mod sites;
mod slowest;
mod tree;

pub use head::of_run as headline;
pub use page::quoted;

pub use json::{metric as json_metric, run as json_run};

use crate::cli::{By, ReportArgs, ReportFormat};
use crate::source;
use crate::term::plain;
use anyhow::{Result, bail};
use tare_analysis::climb::Climb;
use tare_analysis::{
    Aside, Asides, Bounds, CallLengths, Classes, Drawn, ELAPSED, Filter, Finding, FindingKind, Hot,
    JniRefs, LabelId, Locks, Memory, Moment, Pauses, Region, Slowest, ThreadShare, Tree,
    blocked_samples, by_thread, costliest, findings, held_up, hot_list, is_memory, is_of_locks,
    lock_findings, memory_findings, narrow, nobody_waited, pause_findings, set_aside, slow_calls,
    tells_who_ran, who_allocated, who_held_up,
};
use tare_java_names::Pattern;
use tare_profile::{EventKind, Profile, Series, SeriesId, SeriesInfo, ValueKind};

/// Everything that one report is made of.
pub struct Report<'a> {
    args: &'a ReportArgs,
    profile: &'a Profile,
    /// What a page for people sets aside of the profile as it was recorded.
    aside: Option<&'a Aside>,
    metrics: Vec<SeriesId>,
    /// Where in the metrics the bounds of the first are, if it has some.
    bounds: Option<Bounds>,
    /// And where how far it may be off is, if not every call was timed.
    drawn: Option<DrawnAt>,
    /// The whole tree of what the filters let through.
    tree: Tree,
    hot: Vec<Hot>,
    threads: Vec<ThreadShare>,
    findings: Vec<Finding>,
    regions: Vec<Region>,
    memory: Option<Memory>,
    locks: Option<Locks>,
    classes: Option<Classes>,
    jni_refs: Option<JniRefs>,
    climb: Option<Climb>,
    pauses: Option<Pauses>,
    /// Of roots of which one call in so many was followed.
    slowest: Vec<Slowest>,
    lengths: CallLengths,
    /// Somebody asked for locks, and the answer is that nobody waited.
    is_answered: bool,
}

/// Numbers of metrics: how far times may be off because not every call was timed.
#[derive(Clone, Copy)]
struct DrawnAt {
    own: usize,
    total: usize,
}

impl Report<'_> {
    fn info(&self) -> &SeriesInfo {
        self.profile.series(self.metrics[0]).info()
    }

    /// What is told by site, if that is what the report is of.
    fn sites(&self) -> Option<&Memory> {
        self.memory.as_ref().filter(|memory| lists_sites(self.profile, self.metrics[0], memory))
    }

    /// The tree as it is shown: upside down if asked, with what is below a share folded.
    fn shown_tree(&self, tree: &Tree, min_share: f64) -> Tree {
        if self.args.bottom_up {
            tree.bottom_up(min_share, self.args.depth)
        } else {
            tree.fold_small(min_share)
        }
    }
}

pub fn run(args: &ReportArgs) -> Result<()> {
    if let Some(event) = &args.around {
        let window = around::find(&source::load(&args.file, None)?, args, event)?;
        let profile = source::load(&args.file, Some(&window.window))?;
        return around::show(&profile, &window, args);
    }
    of_file(args, print)
}

/// What is told of a view beside trees and lists, for `tare view`: the JSON of a report without
/// them.
pub fn document(args: &ReportArgs) -> Result<serde_json::Value> {
    of_file(args, |report| {
        let mut document = json::beside(report);
        document.insert("headline".into(), head::lines(report)?.into());
        Ok(document.into())
    })
}

/// A report of what the filters have left of a file.
fn of_file<R>(args: &ReportArgs, then: impl FnOnce(&Report<'_>) -> Result<R>) -> Result<R> {
    let profile = source::load_view(&args.file, &args.view)?;
    let metrics = source::metrics(&profile, args.view.metric.as_deref())?;
    let filter = args.view.filter().restriction();
    let memory = Memory::of(&profile, Some(metrics[0]), &filter, args.view.sites())?;
    let locks = Locks::of(&profile, &filter)?;
    let classes = Classes::of(&profile, &filter)?;
    let jni_refs = JniRefs::of(&profile);
    let pauses = Pauses::of(&profile, args.view.time.as_ref());
    let story = story(&profile, pauses.as_ref(), args);
    let profile = narrow(profile, metrics[0], &filter)?;
    let parts = Parts { memory, locks, classes, jni_refs, pauses, story };
    with_report(&profile, metrics, parts, args, then)
}

/// What pauses explain. Who did what in a short time is read from the file once more, with times.
fn story(profile: &Profile, pauses: Option<&Pauses>, args: &ReportArgs) -> Vec<Finding> {
    let mut found = pause_findings(profile, pauses);
    let Some(pauses) = pauses else { return found };
    if has_unread_calls(profile) && pauses.are_worth(profile.run.duration) {
        let calls = source::calls(&args.file, args.view.time.as_ref());
        found.extend(calls.and_then(|calls| slow_calls(&calls, pauses)));
    }
    if let Some(safepoint) = held_up(pauses) {
        let window = safepoint.time..safepoint.time.saturating_add(safepoint.reach);
        found.extend(match tells_who_ran(profile) {
            true => source::part(&args.file, &window).map(|part| who_held_up(&part, safepoint)),
            false => Some(who_held_up(&Profile::new(), safepoint)),
        });
    }
    let allocates = |(_, one): (SeriesId, &Series)| one.info().kind == ValueKind::AllocatedBytes;
    let costliest = costliest(pauses).filter(|_| profile.all_series().any(allocates));
    if let Some((collection, since)) = costliest {
        let moment = source::part(&args.file, &since)
            .and_then(|part| Moment::of(&part, &since, 1).ok())
            .and_then(|moment| moment.allocated);
        found.extend(moment.and_then(|memory| who_allocated(&memory, collection, &since)));
    }
    found
}

/// A trace of more calls is not read once more to find the slowest: that takes a gigabyte and more.
const CALLS_MOST: i64 = 2_000_000;

/// Whether it is a trace, of which only the sums were read, and all of it fits into memory.
fn has_unread_calls(profile: &Profile) -> bool {
    let is_trace = profile.all_series().any(|(_, one)| one.info().kind.name() == ELAPSED);
    let mut counts = profile.all_series().filter(|(_, s)| s.info().kind == ValueKind::Invocations);
    let is_read = profile
        .all_events()
        .any(|(_, table)| table.kind().name == EventKind::call().name && !table.is_empty());
    is_trace && !is_read && counts.any(|(_, one)| (1..=CALLS_MOST).contains(&one.total()))
}

/// Whether values are by class and site, and not by method only.
fn lists_sites(profile: &Profile, metric: SeriesId, memory: &Memory) -> bool {
    is_memory(&profile.series(metric).info().kind) && memory.has_classes()
}

/// All of a profile, in the form that the arguments ask for.
pub fn whole(profile: &Profile, args: &ReportArgs) -> Result<()> {
    let metrics = source::metrics(profile, args.view.metric.as_deref())?;
    let memory = Memory::of(profile, Some(metrics[0]), &Filter::default(), args.view.sites())?;
    let locks = Locks::of(profile, &Filter::default())?;
    let classes = Classes::of(profile, &Filter::default())?;
    let jni_refs = JniRefs::of(profile);
    let pauses = Pauses::of(profile, None);
    let story = pause_findings(profile, pauses.as_ref());
    let parts = Parts { memory, locks, classes, jni_refs, pauses, story };
    with_report(profile, metrics, parts, args, print)
}

/// What is told beside the tree.
struct Parts {
    memory: Option<Memory>,
    locks: Option<Locks>,
    classes: Option<Classes>,
    jni_refs: Option<JniRefs>,
    pauses: Option<Pauses>,
    /// What pauses explain.
    story: Vec<Finding>,
}

/// The caller list of a climb, for scripts.
pub fn climb_json(profile: &Profile) -> Result<()> {
    // One that ended before its first hook has met no method.
    let climb = Climb::of(profile).unwrap_or_default();
    crate::term::json(&climb::json(profile, &climb))
}

/// What a page for people sets aside: libraries stay where they are asked for.
pub fn asides(args: &ReportArgs) -> Asides {
    Asides { native: args.view.by() != By::Jar, idle: !args.idle }
}

/// What a page sets aside of what is shown: what was asked for stays.
pub fn shown_asides(args: &ReportArgs) -> Asides {
    let Asides { native, idle } = asides(args);
    Asides { native: native && !args.native, idle }
}

/// Makes a report of what the filters have left of a profile.
fn with_report<R>(
    profile: &Profile,
    metrics: Vec<SeriesId>,
    parts: Parts,
    args: &ReportArgs,
    then: impl FnOnce(&Report<'_>) -> Result<R>,
) -> Result<R> {
    let Parts { memory, locks, classes, jni_refs, pauses, story } = parts;
    let filter = args.view.filter().shape();
    let mut metrics = metrics;
    let bounds = Bounds::add_to(&mut metrics, profile);
    let drawn = Drawn::of(profile, metrics[0]).filter(|_| metrics.len() > 1).map(|drawn| {
        let own = metrics.len();
        metrics.extend([drawn.own, drawn.total]);
        DrawnAt { own, total: own + 1 }
    });
    let native = asides(args).native;
    let aside = set_aside(profile, metrics[0], asides(args));
    let view = View::of(aside.as_ref().map_or(profile, |aside| &aside.profile), &metrics, &filter)?;
    let View { tree, hot, threads } = &view;
    let mut findings = findings(
        aside.as_ref().map_or(profile, |aside| &aside.profile),
        metrics[0],
        tree,
        hot,
        threads,
        aside.as_ref(),
    );
    if let Some(memory) = &memory {
        let listed = lists_sites(profile, metrics[0], memory);
        let of_memory = memory_findings(profile, memory, listed);
        findings.splice(0..0, of_memory);
        findings.sort_by_key(|finding| finding.kind);
    }
    let of_locks = match &locks {
        Some(locks) => lock_findings(profile, metrics[0], locks),
        None => blocked_samples(profile, metrics[0], tree.sum(0)).into_iter().collect(),
    };
    // Where locks are named, the stacks of who waits for them would say the same again.
    if !of_locks.is_empty() && is_of_locks(&profile.series(metrics[0]).info().kind) {
        findings.retain(|finding| finding.kind != FindingKind::Dominates);
    }
    findings.splice(0..0, of_locks);
    let of_locks = args.locks || is_of_locks(&profile.series(metrics[0]).info().kind);
    let nobody = nobody_waited(profile).filter(|_| of_locks);
    let is_answered = nobody.is_some();
    let answer = nobody.map(|text| Finding { kind: FindingKind::Dominates, text });
    findings.splice(0..0, answer);
    let at = findings.iter().position(|finding| finding.kind != FindingKind::Dominates);
    let at = at.unwrap_or(findings.len());
    findings.splice(at..at, story);
    let by_line = matches!(args.view.by(), By::Line | By::Site);
    if by_line && tree.labels().all(|(_, label)| label.line.is_none()) {
        let text = "the recording knows no lines, so methods are shown".to_owned();
        findings.push(Finding { kind: FindingKind::Lost, text });
    }
    let regions = tare_analysis::regions(profile);
    let climb = Climb::of(profile);
    // Scripts get all that there is; people what they asked for, if only by a function's name.
    let text = args.format == ReportFormat::Text;
    let names_native = || -> Result<bool> {
        let Some(wanted) = args.method.as_ref() else { return Ok(false) };
        let raw = || View::of(profile, &metrics, &filter);
        let means = |view: &View| labels_like(&view.tree, &view.hot, wanted).is_ok();
        Ok(!means(&view) && !args.view.java_only && means(&raw()?))
    };
    let with_native = text && native && aside.is_some() && (args.native || names_native()?);
    let aside = match with_native {
        true => set_aside(profile, metrics[0], Asides { native: false, idle: !args.idle }),
        false => aside.filter(|_| text),
    };
    let shown = aside.as_ref().map_or(profile, |aside| &aside.profile);
    let View { tree, hot, threads } = match text && !with_native {
        true => view,
        false => View::of(shown, &metrics, &filter)?,
    };
    let aside = aside.as_ref();
    let profile = shown;
    let report = Report {
        args,
        profile,
        aside,
        metrics,
        bounds,
        drawn,
        tree,
        hot,
        threads,
        findings,
        regions,
        memory,
        locks,
        classes,
        jni_refs,
        climb,
        pauses,
        slowest: Slowest::of(profile),
        lengths: CallLengths::of(profile),
        is_answered,
    };
    then(&report)
}

/// Prints a report in the form that is asked for, if what was asked is there.
fn print(report: &Report<'_>) -> Result<()> {
    let args = report.args;
    if args.slowest && report.slowest.is_empty() {
        bail!(
            "the recording kept no calls whole; record them with `tare record --exact --root METHOD \
             --follow 1/100`, or with `--overhead 5%`"
        );
    }
    if args.gc && report.pauses.is_none() {
        bail!(
            "the recording has no pauses: none came while it was made, or it was made by a tool or a \
             mode that does not tell of them"
        );
    }
    if args.locks && report.locks.is_none() && !report.is_answered {
        bail!(
            "the recording has no waits of threads; record them with `tare record --lock`, or read \
             a recording of the JDK's flight recorder"
        );
    }
    if args.jni_refs && report.jni_refs.is_none() {
        bail!(
            "the recording tells nothing of references of native code; record them with `tare record \
             --jni-refs`"
        );
    }
    if args.classes && report.classes.is_none() {
        bail!(
            "the recording tells nothing of classes; record them with `tare record --classes`, or \
             read a recording of the JDK's flight recorder"
        );
    }
    match args.format {
        ReportFormat::Text => page::print(report),
        ReportFormat::Json => json::print(report),
        ReportFormat::HprofText => hprof::print(report),
    }
}

/// What is computed of one profile.
struct View {
    tree: Tree,
    hot: Vec<Hot>,
    threads: Vec<ThreadShare>,
}

impl View {
    fn of(profile: &Profile, metrics: &[SeriesId], filter: &Filter) -> Result<Self> {
        let tree = Tree::build(profile, metrics, filter)?;
        let hot = hot_list(&tree);
        Ok(View { tree, hot, threads: by_thread(profile, metrics[0], filter)? })
    }
}

/// The labels that a user's pattern means: methods of that name, or else all of that class or
/// package.
fn labels_like(tree: &Tree, hot: &[Hot], text: &str) -> Result<Vec<LabelId>> {
    let pattern = Pattern::to_search(text);
    let named = |is: &dyn Fn(&str) -> bool| {
        let labels = hot.iter().map(|hot| hot.label);
        labels.filter(|label| is(bare(&tree.label(*label).text))).collect::<Vec<_>>()
    };
    let exact = named(&|name| pattern.is_found_at_end_of(name));
    let found = if exact.is_empty() { named(&|name| pattern.is_found_in(name)) } else { exact };
    if !found.is_empty() {
        return Ok(found);
    }
    let lower = text.to_lowercase();
    let similar = named(&|name| name.to_lowercase().contains(&lower));
    let similar: Vec<_> =
        similar.iter().take(5).map(|label| plain(&tree.label(*label).text)).collect();
    match similar.is_empty() {
        true => {
            bail!("no method with values is called {text:?}; the lists of `tare report` have names")
        }
        false => bail!("no method is called {text:?}; did you mean {}?", similar.join(", ")),
    }
}

/// A label without the arguments that tell overloads apart.
fn bare(text: &str) -> &str {
    text.split_once('(').map_or(text, |(name, _)| if name.is_empty() { text } else { name })
}
