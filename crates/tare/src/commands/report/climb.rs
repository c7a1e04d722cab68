//! A climb: the methods that it came to, level by level, with what their calls take and who pays
//! for them; for people and as JSON.

use super::Report;
use crate::figures::{fit, percent, several, value, wrap};
use crate::term::{BOLD, DIM, WARN, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::climb::{
    Climb, ClimbMetric, MethodKey, Node, OFTEN_ALLOWED, Payer, State, stability,
};
use tare_profile::{Profile, Unit};

/// Callers of a method on a page; smaller ones are summed up.
const CALLERS: usize = 5;
const WORTH: f64 = 0.01;

/// Columns of figures, and what a name gets where there is no end of the line.
const FIGURES: usize = 51;
const NAME: usize = 70;

/// Where names get less than this, sentences begin further to the left.
const NARROW: usize = 50;

/// Sentences are no wider than this.
const LINE: usize = 118;

/// What the recording was made for.
fn metric(profile: &Profile) -> ClimbMetric {
    let option = profile.run.options.iter().find(|(key, _)| key == "metric");
    option.and_then(|(_, name)| ClimbMetric::of_name(name)).unwrap_or_default()
}

fn allowed(profile: &Profile) -> Option<f64> {
    let option = profile.run.options.iter().find(|(key, _)| key == "overhead");
    option.and_then(|(_, share)| share.parse().ok())
}

fn cost(climb: &Climb) -> f64 {
    if climb.spent.1 == 0 { 0.0 } else { climb.spent.0 as f64 / climb.spent.1 as f64 }
}

/// Level by level, and of a level what takes most first.
fn sorted(climb: &Climb) -> Vec<&Node> {
    let mut nodes: Vec<&Node> = climb.nodes.iter().collect();
    nodes.sort_by_key(|node| {
        let weight = std::cmp::Reverse(climb.samples.within(node.method));
        (node.level, weight, node.method)
    });
    nodes
}

pub fn print(out: &mut Vec<u8>, report: &Report<'_>, width: usize) -> Result<()> {
    let Some(climb) = &report.climb else { return Ok(()) };
    let metric = metric(report.profile);
    let by = match metric {
        ClimbMetric::Cpu => "processor time",
        ClimbMetric::Wall => "elapsed time",
        ClimbMetric::Calls => "calls",
    };
    writeln!(out, "\n{BOLD}Climb, by {by}{BOLD:#}")?;
    let often = match climb.has_often_called() {
        true => format!(
            ", and {} for hooks of methods with more than 5 million calls a second",
            percent(OFTEN_ALLOWED).trim()
        ),
        false => String::new(),
    };
    let allowed = allowed(report.profile).map_or_else(String::new, |allowed| {
        format!(" ({} allowed{often})", percent(allowed).trim())
    });
    let head = format!(
        "{} now, {} at once at most, {} ever; with samples and Tare's own threads they took {} of the \
         program's processor time{allowed}; weaving stopped the program {}, for {} in all",
        several(climb.now(), "hook"),
        climb.most(),
        climb.ever(),
        percent(cost(climb)).trim(),
        several(climb.batches.len(), "time"),
        value(climb.stood_still().cast_signed(), Unit::Nanoseconds),
    );
    for line in wrap(&head, width.saturating_sub(2).clamp(40, LINE)) {
        writeln!(out, "{DIM}  {line}{DIM:#}")?;
    }
    let name = width.saturating_sub(FIGURES + 2).clamp(20, NAME);
    let page = Page { climb, metric, name };
    let each = if metric == ClimbMetric::Wall { "wall" } else { "cpu" };
    writeln!(
        out,
        "{DIM}  {:>8} {:>9} {:>9} {:>9} {:>9}  method, and who pays for it{DIM:#}",
        "samples", "calls/s", each, "p50", "p99"
    )?;
    let mut level = None;
    for node in sorted(climb) {
        if level.replace(node.level) != Some(node.level) {
            let word = match node.level {
                0 => "hot methods".to_owned(),
                level => format!("level {level} above"),
            };
            writeln!(out, "  {BOLD}{word}{BOLD:#}")?;
        }
        page.node(out, node)?;
    }
    Ok(())
}

struct Page<'a> {
    climb: &'a Climb,
    metric: ClimbMetric,
    name: usize,
}

impl Page<'_> {
    fn method(&self, method: MethodKey, room: usize) -> String {
        fit(&plain(self.climb.names.name(method)), room)
    }

    fn node(&self, out: &mut Vec<u8>, node: &Node) -> Result<()> {
        let climb = self.climb;
        let share = percent(climb.samples.share(climb.samples.within(node.method)));
        let is_measured = climb.measured(node.method).is_some_and(|hook| hook.calls > 0);
        if matches!(node.state, State::Passed | State::Root) && !is_measured {
            let (name, state) = (self.method(node.method, self.name), node.state.name());
            let figures = FIGURES - 12;
            return Ok(writeln!(out, "  {share:>8} {state:>figures$}  {DIM}{name}{DIM:#}")?);
        }
        let hook = climb.measured(node.method).filter(|hook| hook.calls > 0);
        let time = |nanos: Option<f64>| {
            nanos.map_or_else(|| "·".to_owned(), |n| value(n.round() as i64, Unit::Nanoseconds))
        };
        let mean = match self.metric {
            ClimbMetric::Wall => ClimbMetric::Wall,
            _ => ClimbMetric::Cpu,
        };
        let quantile = |share| time(hook.and_then(|hook| hook.quantile(share)).map(|n| n as f64));
        let rate = hook.map_or_else(
            || "·".to_owned(),
            |hook| tare_session::words::count(hook.calls_per_second().round() as u64),
        );
        writeln!(
            out,
            "  {:>8} {rate:>9} {:>9} {:>9} {:>9}  {}",
            share,
            time(hook.and_then(|hook| hook.mean(mean))),
            quantile(0.5),
            quantile(0.99),
            self.method(node.method, self.name),
        )?;
        let why = if node.why.is_empty() { String::new() } else { format!(", {}", node.why) };
        let state = plain(&format!("{}{why}", node.state.name())).into_owned();
        // Beside the figures there is little room on a narrow page.
        let left = if self.name < NARROW { 12 } else { FIGURES };
        let (indent, room) = (" ".repeat(left), self.name + FIGURES - left);
        for line in wrap(&state, room) {
            writeln!(out, "{indent}{DIM}  {line}{DIM:#}")?;
        }
        if matches!(node.state, State::Passed | State::Root) {
            return Ok(());
        }
        let payers = climb.payers(node.method, self.metric);
        let is_shown = |at: usize, payer: &Payer| {
            at < CALLERS && (payer.share() >= WORTH || payer.is_disputed())
        };
        let mut rest = 0.0;
        for (at, payer) in payers.iter().enumerate() {
            if !is_shown(at, payer) {
                rest += payer.share();
                continue;
            }
            let caller = payer.method.map_or_else(
                || "a caller that could not be told".to_owned(),
                |caller| self.method(caller, room.saturating_sub(10)),
            );
            write!(out, "{indent}  {:>7}  {caller}", percent(payer.share()))?;
            match payer.sampled.filter(|_| payer.is_disputed()) {
                Some(sampled) => {
                    let sampled = percent(sampled);
                    writeln!(out, "  {WARN}samples say {}{WARN:#}", sampled.trim())?;
                }
                None => writeln!(out)?,
            }
        }
        if rest >= WORTH {
            writeln!(out, "{indent}{DIM}  {:>7}  others{DIM:#}", percent(rest))?;
        }
        Ok(())
    }
}

/// The caller list for scripts.
pub fn json(profile: &Profile, climb: &Climb) -> Value {
    let metric = metric(profile);
    let name = |method: MethodKey| climb.names.text(method);
    let nodes = sorted(climb);
    let payers: Vec<(MethodKey, Vec<Payer>)> =
        nodes.iter().map(|node| (node.method, climb.payers(node.method, metric))).collect();
    let methods = nodes.iter().map(|node| {
        let (method, samples) = (node.method, &climb.samples);
        let of = payers.iter().find(|(known, _)| *known == method);
        let callers = of.into_iter().flat_map(|(_, payers)| payers).map(|payer| {
            json!({
                "method": payer.method.map(name),
                "calls": payer.calls.round() as u64,
                "hooked_share": payer.hooked,
                "sampled_share": payer.sampled,
                "disputed": payer.is_disputed(),
            })
        });
        let calls = payers.iter().filter_map(|(callee, payers)| {
            let payer = payers.iter().find(|payer| payer.method == Some(method))?;
            Some(json!({ "method": name(*callee), "calls": payer.calls.round() as u64 }))
        });
        let mut row = json!({
            "method": name(method),
            "level": node.level,
            "state": node.state.name(),
            "why": node.why,
            "sampled_self_share": samples.share(samples.own(method)),
            "sampled_share": samples.share(samples.within(method)),
            "callers": callers.collect::<Value>(),
            "callees": calls.collect::<Value>(),
        });
        if let Some(hook) = climb.measured(method) {
            let known = stability(hook, metric);
            let all = hook.all();
            row["hook"] = json!({
                "calls": hook.calls,
                "timed": hook.told,
                "calls_per_second": hook.calls_per_second(),
                "from_ns": hook.span().map(|(from, _)| from),
                "to_ns": hook.span().map(|(_, to)| to),
                "wall_mean_ns": hook.mean(ClimbMetric::Wall),
                "cpu_mean_ns": hook.mean(ClimbMetric::Cpu),
                "wall_total_ns": all.wall,
                "cpu_total_ns": all.cpu,
                "p50_ns": hook.quantile(0.5),
                "p99_ns": hook.quantile(0.99),
                "batches": known.batches,
                "half_width": known.half_width.is_finite().then_some(known.half_width),
            });
        }
        row
    });
    let batches = climb.batches.iter().map(|batch| {
        json!({
            "at_ns": batch.time,
            "hooks": batch.hooks,
            "new": batch.new,
            "pause_ns": batch.pause,
        })
    });
    json!({
        "metric": metric.name(),
        "overhead_allowed": allowed(profile),
        "overhead": cost(climb),
        "hooks_now": climb.now(),
        "hooks_ever": climb.ever(),
        "hooks_most": climb.most(),
        "pauses": climb.batches.len(),
        "pause_ns": climb.stood_still(),
        "batches": batches.collect::<Value>(),
        "samples": climb.samples.count,
        "methods": methods.collect::<Value>(),
    })
}
