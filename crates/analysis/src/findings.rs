//! Findings: what a profile says in a few sentences. What dominates, what was lost, how far to
//! trust the rest. A sentence here must be true of any profile that brings it about; it does not
//! guess at causes.

mod latencies;
mod locks;
mod memory;
mod pauses;
mod some_times;

pub use latencies::slow_calls;
pub use locks::{blocked_samples, is_of_locks, lock_findings, nobody_waited};
pub use memory::memory_findings;
pub use pauses::{costliest, held_up, pause_findings, tells_who_ran, who_allocated, who_held_up};

use crate::aside::{Aside, NATIVE_THREADS};
use crate::classes::is_of_classes;
use crate::collections::Collections;
use crate::compensate::UNTIMED;
use crate::hot::Hot;
use crate::join::{JOINED, JoinedSums};
use crate::labels::{Label, LabelKind};
use crate::memory::is_memory;
use crate::regions::regions;
use crate::target::TargetError;
use crate::threads::ThreadShare;
use crate::tree::{NodeId, Tree};
use std::collections::{HashMap, HashSet};
use tare_profile::facts::keys;
use tare_profile::{
    Estimate, JniReferences, Loss, MethodKind, Profile, Row, SeriesId, Unit, ValueKind,
};

/// Names given for a reason before the rest is counted.
const NAMED: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FindingKind {
    /// Where the most of it is.
    Dominates,
    /// What is missing from the figures.
    Lost,
    /// How far the figures can be trusted.
    Trust,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub kind: FindingKind,
    pub text: String,
}

/// The findings on one metric; `tree`, `hot` and `threads` are what the caller made of the same
/// metric and filter, and of the profile of `aside` if there is one: a function of the kernel tells
/// nobody what to change, and the method that called it does.
pub fn findings(
    profile: &Profile,
    metric: SeriesId,
    tree: &Tree,
    hot: &[Hot],
    threads: &[ThreadShare],
    aside: Option<&Aside>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(idle) = aside.and_then(|aside| aside.idle.as_ref()) {
        found.push(Finding { kind: FindingKind::Dominates, text: idle.told(tree.sum(0)) });
    }
    if tree.sum(0) == 0 {
        // What was measured of regions has a table of its own, and that nobody waited is an answer.
        let is_of_locks = is_of_locks(&profile.series(metric).info().kind);
        let is_answer = is_of_locks && nobody_waited(profile).is_some();
        if regions(profile).is_empty() && !is_answer {
            let text = nothing_there(profile, &profile.series(metric).info().kind);
            let text = text.unwrap_or("nothing was measured, or the filters leave nothing of it");
            let text = text.to_owned();
            found.push(Finding { kind: FindingKind::Dominates, text });
        }
    } else {
        // Where threads wait for something to happen, nothing is wrong with who waits most.
        if profile.series(metric).info().kind != ValueKind::WaitingTime {
            dominating(profile, tree, hot, threads, aside, &mut found);
        }
        states(profile, metric, tree, &mut found);
        // Above what is allocated the head says it.
        if !is_memory(&profile.series(metric).info().kind) {
            pauses(profile, &mut found);
        }
    }
    losses(profile, tree, hot, &mut found);
    trust(profile, metric, tree, hot, &mut found);
    found
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn dominating(
    profile: &Profile,
    tree: &Tree,
    hot: &[Hot],
    threads: &[ThreadShare],
    aside: Option<&Aside>,
    found: &mut Vec<Finding>,
) {
    let mut say = |text| found.push(Finding { kind: FindingKind::Dominates, text });
    let real = |hot: &&Hot| {
        let label = tree.label(hot.label);
        !label.is_special() && !is_unknown(label) && !is_kernel(label)
    };
    let real: Vec<&Hot> = hot.iter().filter(real).collect();
    if let Some(top) = real.first() {
        let share = tree.share(top.own[0]);
        let name = &tree.label(top.label).text;
        let half = real.iter().scan(0.0, |sum, hot| {
            *sum += tree.share(hot.own[0]);
            Some(*sum)
        });
        let half = half.take_while(|sum| *sum < 0.5).count() + 1;
        if tree.label(top.label).is_class() {
            // The lists of what is allocated and of what stays begin with it.
        } else if share >= 0.1 {
            say(format!("{name} itself takes {}", percent(share)));
        } else if half <= real.len() {
            let share = percent(share);
            say(format!(
                "no method dominates: the largest, {name}, takes {share}, and half of the whole is \
                 spread over {half}"
            ));
        }
    }
    // What takes it all itself has been named.
    let named = |node: NodeId| real.first().is_some_and(|top| top.label == tree.label_id(node));
    if let Some((node, share)) = bottleneck(tree).filter(|(node, _)| !named(*node)) {
        let name = &tree.label_of(node).text;
        say(format!("{} passes through {name}", percent(share)));
    }
    let parts = aside.map(|aside| aside.parts.iter().filter(|(part, _)| *part != NATIVE_THREADS));
    let parts: Vec<&(&str, i64)> = parts.into_iter().flatten().collect();
    let jvm = parts.iter().fold(0_i64, |sum, (_, value)| sum.saturating_add(*value));
    if tree.share(jvm) >= 0.1 {
        let named: Vec<String> = parts
            .iter()
            .map(|(part, value)| format!("{part} {}", percent(tree.share(*value))))
            .collect();
        say(format!("the JVM itself takes {}: {}", percent(tree.share(jvm)), named.join(", ")));
    }
    let threads: Vec<&ThreadShare> = threads.iter().filter(|share| share.value != 0).collect();
    if let [first, _, ..] = threads.as_slice() {
        let share = tree.share(first.value);
        if share >= 0.5 {
            let name = profile.thread_name(first.thread);
            let others = counted(threads.len() as u64 - 1, "other");
            say(format!("thread {name:?} has {} of it, {others} the rest", percent(share)));
        }
    }
}

/// The deepest node that nearly everything passes through, if it is deeper than the first call: the
/// place below which it is worth looking.
fn bottleneck(tree: &Tree) -> Option<(NodeId, f64)> {
    const NEARLY: f64 = 0.7;
    let share = |node: NodeId| tree.share(tree.total(0, node));
    // Few of millions of nodes are as large: by caller, the first of its largest callees.
    let mut largest: HashMap<NodeId, NodeId> = HashMap::new();
    for node in tree.nodes().filter(|node| share(*node) >= NEARLY) {
        let Some(parent) = tree.parent(node) else { continue };
        let known = largest.entry(parent).or_insert(node);
        if tree.total(0, node) > tree.total(0, *known) {
            *known = node;
        }
    }
    let (mut at, mut depth) = (NodeId::ROOT, 0);
    while let Some(child) = largest.get(&at).copied() {
        let label = tree.label_of(child);
        if label.is_special() || is_kernel(label) || label.is_class() {
            break;
        }
        at = child;
        depth += 1;
    }
    (depth >= 2).then(|| (at, share(at)))
}

/// What threads were doing, where wall-clock samples tell it: each state has a series of its own.
fn states(profile: &Profile, metric: SeriesId, tree: &Tree, found: &mut Vec<Finding>) {
    let whole = profile.series(metric);
    // A filter leaves a part of the whole, of which the states of the whole say nothing.
    if whole.info().name != "wall" || whole.total() != tree.sum(0) {
        return;
    }
    let parts = profile.all_series().filter(|(id, _)| *id != metric);
    let parts = parts.filter(|(_, s)| s.info().kind == whole.info().kind && !s.is_empty());
    let mut parts: Vec<(&str, i64)> =
        parts.map(|(_, s)| (s.info().name.as_str(), s.total())).collect();
    parts.sort_by_key(|(_, value)| std::cmp::Reverse(*value));
    let said: Vec<String> = parts
        .iter()
        .map(|(name, value)| format!("{} {name}", percent(tree.share(*value))))
        .collect();
    if let [first, ..] = parts.as_slice() {
        let text = format!(
            "threads were {}; `--metric {}` shows one state alone",
            said.join(", "),
            parts.iter().find(|(name, _)| *name == "running").unwrap_or(first).0
        );
        found.push(Finding { kind: FindingKind::Dominates, text });
    }
}

fn pauses(profile: &Profile, found: &mut Vec<Finding>) {
    let Some(Collections { count, total, .. }) = Collections::of(profile) else { return };
    if profile.run.duration > 0 && total.saturating_mul(20) >= profile.run.duration {
        let share = percent(total as f64 / profile.run.duration as f64);
        let pauses = counted(count, "pause");
        let text =
            format!("{pauses} for garbage collection stopped the program for {share} of the run");
        found.push(Finding { kind: FindingKind::Dominates, text });
    }
}

fn is_kernel(label: &Label) -> bool {
    label.kind == LabelKind::Method(MethodKind::Kernel)
}

/// Whether a group is of all that the recording says nothing about.
fn is_unknown(label: &Label) -> bool {
    label.kind == LabelKind::Group && label.text.starts_with("[unknown ")
}

fn losses(profile: &Profile, tree: &Tree, hot: &[Hot], found: &mut Vec<Finding>) {
    let mut say = |text| found.push(Finding { kind: FindingKind::Lost, text });
    for special in hot {
        let label = tree.label(special.label);
        let is_account = label.kind == LabelKind::Method(MethodKind::Special) && !label.is_aside();
        let share = tree.share(special.own[0]);
        if is_account && share >= 0.001 {
            say(format!("{} of the whole is accounted as {}", percent(share), label.text));
        }
        if is_unknown(label) && share >= 0.001 {
            let what = label.text.trim_matches(['[', ']']).trim_start_matches("unknown ");
            let share = percent(share);
            say(format!(
                "{share} of the whole is of code whose {what} the recording does not tell"
            ));
        }
    }
    // A run may refuse thousands of methods one by one: say the reasons, and the first names.
    let mut by_reason: Vec<(&Loss, u64, Vec<&str>)> = Vec::new();
    for loss in &profile.run.losses {
        let same = |(known, ..): &&mut (&Loss, u64, Vec<&str>)| {
            known.kind == loss.kind && known.reason == loss.reason
        };
        match by_reason.iter_mut().find(same) {
            Some((_, count, names)) => {
                *count = count.saturating_add(loss.count);
                names.push(&loss.name);
            }
            None => by_reason.push((loss, loss.count, vec![&loss.name])),
        }
    }
    by_reason.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    for (loss, count, names) in by_reason {
        let shown = names.len().min(NAMED);
        let mut what = names[..shown].join(", ");
        if names.len() > shown {
            what = format!("{what} and {}", counted((names.len() - shown) as u64, "other"));
        }
        let reason = if loss.reason.is_empty() { "no reason given" } else { &loss.reason };
        say(format!("{} {count} × {what}: {reason}", loss.kind.name()));
    }
}

/// What taking samples took of the processor time that was measured, where it is much.
fn sampling_itself(profile: &Profile) -> Option<String> {
    let facts = &profile.run.facts;
    let own = facts.get(keys::SAMPLER_TIME)?.as_secs_f64();
    let all = facts.get(keys::PROCESS_CPU_TIME).or(facts.get(keys::SAMPLED_TIME))?.as_secs_f64();
    // It is made up of what each sample took and what an interruption usually takes.
    let share = (own / all).min(0.99);
    (share >= 0.2).then(|| {
        format!(
            "taking samples took about {:.0} % of the processor time, and the program longer by \
             as much; a longer --interval takes less",
            share * 100.0
        )
    })
}

fn trust(profile: &Profile, metric: SeriesId, tree: &Tree, hot: &[Hot], found: &mut Vec<Finding>) {
    let mut say = |text| found.push(Finding { kind: FindingKind::Trust, text });
    let info = profile.series(metric).info();
    if let Some(samples) = samples(profile, metric, tree) {
        if samples > 0 {
            let top = hot.first().map_or(0.5, |hot| tree.share(hot.own[0]).clamp(0.0, 1.0));
            let error = 1.96 * (top * (1.0 - top) / samples as f64).sqrt();
            let few = if samples < 1000 { "only " } else { "" };
            say(format!(
                "{few}{}: the first line of the list is right to ± {:.1} points \
                 (95 % confidence, if the samples are independent)",
                counted(samples.unsigned_abs(), "sample"),
                error * 100.0
            ));
        }
        if let Some(text) = sampling_itself(profile) {
            say(text);
        }
    } else if let Some(error) = TargetError::of(profile, info) {
        let use_for = match error.has_compilers {
            true => "good for an order of magnitude, not for milliseconds",
            false => "mostly because of native code in them",
        };
        say(format!(
            "estimated for {}, from bytecodes, without native code, collections and compilations: \
             {}, {use_for} (docs/measured/other-jvm.md)",
            error.jvm,
            error.told()
        ));
    } else if info.kind.unit() == Unit::Nanoseconds && info.estimate == Estimate::Measured {
        let compensated = profile.all_series().any(|(_, other)| {
            other.info().estimate == Estimate::Compensated && other.info().kind == info.kind
        });
        let followed = profile.run.facts.get(keys::FOLLOWED_ONE_IN).is_some();
        if info.name == "exact" && !compensated && !followed {
            say("times are as measured and include the probes' own cost".to_owned());
        }
    }
    if info.kind.unit() == Unit::Nanoseconds && samples(profile, metric, tree).is_none() {
        let (calls, methods) = untimed(profile);
        if calls > 0 {
            say(format!(
                "{} of {} were counted and not timed: mostly short ones that call nothing and \
                 have no loop; their time is their callers' (--time-all times them, too)",
                counted(calls, "call"),
                counted(methods, "method"),
            ));
        }
    }
    if info.kind.unit() == Unit::Nanoseconds && info.name != JOINED {
        some_times::told(profile, metric).into_iter().for_each(&mut say);
    }
    some_times::followed(profile).into_iter().for_each(&mut say);
    let facts = &profile.run.facts;
    let methods = [keys::METHODS_REACHED, keys::METHODS_WOVEN, keys::METHODS_RUN];
    if let [Some(reached), Some(woven), Some(run)] = methods.map(|key| facts.get(key)) {
        say(format!(
            "reached from the roots: {}, {woven} woven, {} of them never ran below a root",
            counted(reached, "method"),
            woven.saturating_sub(run),
        ));
    }
    if facts.get(keys::SKIPS_TRIVIAL) == Some(true) {
        let what = "empty methods, getters and setters";
        say(format!("{what} were not woven and not counted (--no-skip-trivial counts them, too)"));
    }
    if info.estimate == Estimate::Compensated && info.name != JOINED {
        say("times are estimates: a calibration subtracts what probes cost, and short methods that \
             are called often can be off by a multiple (docs/measured/accuracy.md); record with \
             --cpu for times per call from samples"
            .to_owned());
    }
    let joined = JoinedSums::of(profile, metric);
    if let (Some(joined), Some(lower), Some(upper)) =
        (joined, bound(profile, metric, Estimate::Lower), bound(profile, metric, Estimate::Upper))
    {
        let sum = profile.series(metric).total();
        let measured = bound(profile, metric, Estimate::Measured).unwrap_or(0);
        let (lower, upper) = joined.interval(sum, measured, (lower, upper));
        if sum > 0 {
            let below = (sum - lower).max(0) as f64 / sum as f64 * 100.0;
            let above = (upper - sum).max(0) as f64 / sum as f64 * 100.0;
            say(format!(
                "the whole is between − {below:.1} % and + {above:.1} % of what is shown, as far \
                 as samples and scale go; that does not cover a program that ran \
                 differently while it was sampled"
            ));
        }
    }
}

/// Calls that were only counted in a timed recording, and of how many methods.
fn untimed(profile: &Profile) -> (u64, u64) {
    let mut series = profile.all_series().map(|(_, series)| series);
    let Some(series) = series.find(|s| s.info().kind.name() == UNTIMED) else {
        return (0, 0);
    };
    let method = |row: &Row| {
        let frame = profile.contexts.frames(row.context).next()?;
        Some(profile.frames.get(frame).method)
    };
    let methods: HashSet<_> = series.rows().filter_map(|row| method(&row)).collect();
    (series.total().max(0).unsigned_abs(), methods.len() as u64)
}

/// How many samples the tree is made of; `None` if it is not made of samples. Where samples weigh
/// nanoseconds, the run says how many there were and what they weighed, before any filter.
fn samples(profile: &Profile, metric: SeriesId, tree: &Tree) -> Option<i64> {
    let info = profile.series(metric).info();
    if info.kind == ValueKind::Samples {
        return Some(tree.sum(0));
    }
    if is_memory(&info.kind) {
        return None;
    }
    let facts = &profile.run.facts;
    let weight = facts.get(keys::SAMPLED_TIME).filter(|_| info.period > 0)?.as_nanos() as f64;
    let samples = facts.get(keys::SAMPLES).filter(|samples| *samples > 0 && weight > 0.0)?;
    Some((samples as f64 * tree.sum(0) as f64 / weight).round() as i64)
}

/// The whole of the series that bounds this one.
fn bound(profile: &Profile, metric: SeriesId, estimate: Estimate) -> Option<i64> {
    let info = profile.series(metric).info();
    let fits = profile.all_series().find(|(_, other)| {
        let other = other.info();
        other.name == info.name && other.kind == info.kind && other.estimate == estimate
    });
    fits.map(|(_, series)| series.total())
}

/// That there was nothing is an answer, if all of it was looked at.
fn nothing_there(profile: &Profile, kind: &ValueKind) -> Option<&'static str> {
    let facts = &profile.run.facts;
    if is_of_classes(kind) && facts.get(keys::CLASSES_LOADED) == Some(0) {
        return Some("no class was loaded while this was recorded");
    }
    JniReferences::of(kind)?;
    match facts.get(keys::JNI_MADE)? {
        0 => Some("native code has made no global reference while this was recorded"),
        _ => None,
    }
}
