//! Collections and pauses, for people and as JSON.

use super::Report;
use crate::figures::{several, value, wrap};
use crate::term::{BOLD, DIM, clip, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::{Coming, Comings, Compilers, PauseSum, Pauses};
use tare_profile::{Collection, Safepoint, Unit};

/// How much of it a page has that is of something else, and one that was asked for.
const FEW: usize = 3;
const MANY: usize = 15;
/// Columns of a kind, a reason or a cause.
const NAME: usize = 28;

pub fn time(nanos: u64) -> String {
    value(i64::try_from(nanos).unwrap_or(i64::MAX), Unit::Nanoseconds)
}

fn bytes(bytes: u64) -> String {
    value(i64::try_from(bytes).unwrap_or(i64::MAX), Unit::Bytes)
}

/// Whether it is worth a place on a page that is of something else: what is short and rare is not.
pub fn is_worth(report: &Report<'_>) -> bool {
    let pauses = report.pauses.as_ref();
    pauses.is_some_and(|pauses| pauses.are_worth(report.profile.run.duration))
}

/// With `all`, everything that is known; otherwise the sums and the longest.
pub fn print(out: &mut impl Write, report: &Report<'_>, all: bool, width: usize) -> Result<()> {
    let Some(pauses) = &report.pauses else { return Ok(()) };
    let most = if all { report.args.lines.unwrap_or(MANY) } else { FEW };
    writeln!(out, "\n{BOLD}Collections and pauses{BOLD:#}")?;
    let title = |first: &str| {
        let columns = ["count", "total", "mean", "longest", "to reach"];
        let columns = columns.map(|column| format!("{column:>10}"));
        format!("{DIM}  {first:<NAME$}{}{DIM:#}", columns.concat())
    };
    if !pauses.collections.is_empty() {
        writeln!(out, "{}", title("collections"))?;
        for (kind, sum) in pauses.by_kind().into_iter().take(MANY) {
            writeln!(out, "{}", sums(named(kind, "kind not known"), &sum))?;
        }
    }
    let others: Vec<(&str, PauseSum)> = pauses.by_reason();
    if !others.is_empty() && (all || pauses.collections.is_empty()) {
        writeln!(out, "{}", title("safepoints"))?;
        for (reason, sum) in others.into_iter().take(MANY) {
            let own = if pauses.is_own(reason) { " (weaving)" } else { "" };
            writeln!(
                out,
                "{}",
                sums(&(named(reason, "of several reasons").to_owned() + own), &sum)
            )?;
        }
    }
    let longest = pauses.longest(most);
    if !longest.is_empty() {
        writeln!(out, "{DIM}  longest collections{DIM:#}")?;
        for one in longest {
            writeln!(out, "  {}", clip(&collection(one), width.saturating_sub(2)))?;
        }
    }
    let longest = pauses.longest_safepoints(most);
    if !longest.is_empty() {
        writeln!(out, "{DIM}  longest safepoints{DIM:#}")?;
        for one in longest {
            writeln!(out, "  {}", clip(&safepoint(one), width.saturating_sub(2)))?;
        }
    }
    if let Some(compilers) = &pauses.compilers {
        for line in wrap(&compiled(compilers), width.saturating_sub(2)) {
            writeln!(out, "  {line}")?;
        }
    }
    if let Some(comings) = Comings::of(report.profile, report.args.view.time.as_ref()) {
        for line in wrap(&came(&comings), width.saturating_sub(2)) {
            writeln!(out, "  {line}")?;
        }
    }
    if let Some(one) = pauses.longest(1).first() {
        let file = super::quoted(&report.args.file);
        let number = one.number;
        writeln!(out, "{DIM}  what led to one:  tare report {file} --around gc:{number}{DIM:#}")?;
    }
    Ok(())
}

/// What compilers did, and what of it was in vain. A deoptimisation has no cost of its own that
/// HotSpot would tell: what it costs is compiling again, and running slowly until then.
fn compiled(compilers: &Compilers) -> String {
    let Compilers { methods, work, bailouts, invalidated, traps, reasons, busiest } = compilers;
    let mut text = format!("compilers: {} in {}", several(*methods, "method"), time(*work));
    if busiest.1 > 0 {
        text += &format!(", most from {} on ({})", at(busiest.0), time(busiest.1));
    }
    for (count, what) in [(*bailouts, "given up"), (*invalidated, "thrown away")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    if let Some(traps @ 1..) = *traps {
        text += &format!("; compiled code was left {}", several(traps, "time"));
        let reasons = reasons.iter().take(FEW);
        let reasons: Vec<String> =
            reasons.map(|(reason, count)| format!("{} {count}", plain(reason))).collect();
        if !reasons.is_empty() {
            text += &format!(", most for {}", reasons.join(", "));
        }
    }
    text
}

/// Who came and went, in a sentence.
fn came(comings: &Comings) -> String {
    let Comings { started, ended, densest, names, starters, .. } = comings;
    let mut text = format!("threads: {started} started, {ended} ended");
    if densest.1 > 1 && densest.1 < *started {
        text += &format!(", {} of them within a second from {} on", densest.1, at(densest.0));
    }
    for (what, counts) in [("by name", names), ("started in", starters)] {
        let first = counts.iter().take(FEW);
        let first: Vec<String> = first.map(|(name, n)| format!("{} {n}", plain(name))).collect();
        if !first.is_empty() {
            text += &format!("; {what} {}", first.join(", "));
        }
    }
    text
}

/// Every thread that came or went.
pub fn threads_json(report: &Report<'_>) -> Option<Value> {
    let comings = Comings::of(report.profile, report.args.view.time.as_ref())?;
    let one = |one: &Coming| {
        let thread = report.profile.threads.get(one.thread);
        json!({
            "name": report.profile.thread_name(one.thread),
            "java_id": thread.java_id,
            "os_id": thread.os_id,
            "started_ns": one.started,
            "ended_ns": one.ended,
            "started_by": one.by.map(|(by, _)| report.profile.thread_name(by)),
            "started_in": one.starter(report.profile),
        })
    };
    Some(comings.threads.iter().map(one).collect())
}

fn named<'a>(name: &'a str, otherwise: &'a str) -> &'a str {
    if name.is_empty() { otherwise } else { name }
}

fn sums(name: &str, sum: &PauseSum) -> String {
    let figures = [sum.total, sum.mean(), sum.longest, sum.longest_reach].map(time);
    let figures = figures.map(|figure| format!("{figure:>10}"));
    format!("  {:<NAME$}{:>10}{}", clip(&plain(name), NAME), sum.count, figures.concat())
}

fn at(nanos: u64) -> String {
    format!("{:.3} s", nanos as f64 / 1e9)
}

/// One line on a collection.
fn collection(one: &Collection) -> String {
    let mut parts = vec![named(&one.kind, "pause").to_owned()];
    if !one.cause.is_empty() {
        parts.push(plain(&one.cause).into_owned());
    }
    if let (Some(before), Some(after)) = (one.heap_before, one.heap_after) {
        parts.push(format!("{} → {}", bytes(before), bytes(after)));
    }
    if let Some(promoted @ 1..) = one.promoted {
        parts.push(format!("promoted {}", bytes(promoted)));
    }
    if let Some(reach) = one.reach {
        parts.push(format!("reached in {}", time(reach)));
    }
    let (name, at) = (format!("gc:{}", one.number), at(one.time));
    format!("{name:<14}{:>10} at {at:>11}  {}", time(one.duration), parts.join(", "))
}

fn safepoint(one: &Safepoint) -> String {
    let (name, at) = (format!("safepoint:{}", one.number), at(one.time));
    let reason = plain(named(&one.reason, "reason not known"));
    let running = match one.running {
        None | Some(0) => String::new(),
        Some(running) => format!(", {} ran", several(running, "thread")),
    };
    let reach = time(one.reach);
    let length = time(one.duration);
    format!("{name:<14}{length:>10} at {at:>11}  {reason}, reached in {reach}{running}")
}

pub fn json(pauses: &Pauses) -> Value {
    let sums = |list: Vec<(&str, PauseSum)>| -> Value {
        list.into_iter()
            .map(|(name, sum)| {
                json!({
                    "name": name,
                    "count": sum.count,
                    "total_ns": sum.total,
                    "longest_ns": sum.longest,
                    "reach_ns": sum.reach,
                    "longest_reach_ns": sum.longest_reach,
                })
            })
            .collect()
    };
    let collections = pauses.collections.iter().map(|one| {
        json!({
            "number": one.number,
            "time_ns": one.time,
            "duration_ns": one.duration,
            "kind": one.kind,
            "cause": one.cause,
            "collector": one.collector,
            "heap_before": one.heap_before,
            "heap_after": one.heap_after,
            "promoted": one.promoted,
            "reach_ns": one.reach,
        })
    });
    let safepoints = pauses.safepoints.iter().map(|one| {
        json!({
            "number": one.number,
            "time_ns": one.time,
            "duration_ns": one.duration,
            "reason": one.reason,
            "count": one.count,
            "reach_ns": one.reach,
            "running": one.running,
        })
    });
    let compilers = pauses.compilers.as_ref().map(|all| {
        let reason = |(reason, count): &(String, u64)| json!({ "reason": reason, "count": count });
        json!({
            "methods": all.methods,
            "compile_ns": all.work,
            "bailouts": all.bailouts,
            "invalidated": all.invalidated,
            "uncommon_traps": all.traps,
            "uncommon_traps_by_reason": all.reasons.iter().map(reason).collect::<Value>(),
            "busiest": { "time_ns": all.busiest.0, "compile_ns": all.busiest.1 },
        })
    });
    json!({
        "compilers": compilers,
        "stopped_ns": pauses.stopped(),
        "by_kind": sums(pauses.by_kind()),
        "by_reason": sums(pauses.by_reason()),
        "collections": collections.collect::<Value>(),
        "safepoints": safepoints.collect::<Value>(),
    })
}
