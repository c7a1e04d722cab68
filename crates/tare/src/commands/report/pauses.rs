//! Collections and pauses, for people and as JSON. Threads that came and went are a part of it
//! (`comings`).

use super::{Report, comings};
use crate::figures::{several, value, wrap};
use crate::term::{BOLD, DIM, clip, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::{Compilers, PauseSum, Pauses};
use tare_profile::{Collection, Safepoint, Unit};

/// How much of it a page has that is of something else, and one that was asked for.
pub const FEW: usize = 3;
const MANY: usize = 15;
/// Columns of a kind, a reason or a cause.
pub const NAME: usize = 28;

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
            let own = if pauses.are_own(reason) { " (weaving)" } else { "" };
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
            let number = format!("gc:{}", one.number);
            item(out, &head(&number, one.duration, one.time), &collection(one), width)?;
        }
    }
    let longest = pauses.longest_safepoints(most);
    if !longest.is_empty() {
        writeln!(out, "{DIM}  longest safepoints{DIM:#}")?;
        for one in longest {
            let number = format!("safepoint:{}", one.number);
            item(out, &head(&number, one.duration, one.time), &safepoint(one), width)?;
        }
    }
    if let Some(compilers) = &pauses.compilers {
        for line in wrap(&compiled(compilers), width.saturating_sub(2)) {
            writeln!(out, "  {line}")?;
        }
    }
    comings::print(out, report, most, width)?;
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

fn named<'a>(name: &'a str, otherwise: &'a str) -> &'a str {
    if name.is_empty() { otherwise } else { name }
}

fn sums(name: &str, sum: &PauseSum) -> String {
    let figures = [sum.total, sum.mean(), sum.longest, sum.longest_reach].map(time);
    let figures = figures.map(|figure| format!("{figure:>10}"));
    format!("  {:<NAME$}{:>10}{}", clip(&plain(name), NAME), sum.count, figures.concat())
}

pub fn at(nanos: u64) -> String {
    format!("{:.3} s", nanos as f64 / 1e9)
}

/// What the lines on pauses begin with.
fn head(name: &str, duration: u64, time: u64) -> String {
    let (length, at) = (self::time(duration), at(time));
    format!("{name:<14}{length:>10} at {at:>11}  ")
}

/// Columns that some words need, to stand beside what a line begins with.
const ROOM: usize = 24;

/// What a pause was, beside its head: no word of it is cut off, and no part is torn in two where
/// there is room for it in a line.
fn item(out: &mut impl Write, head: &str, parts: &[String], width: usize) -> Result<()> {
    let columns = head.chars().count();
    let room = width.saturating_sub(2 + columns).max(ROOM);
    let mut lines = vec![String::new()];
    let mut add = |text: &str| {
        let last = lines.len() - 1;
        match lines[last].chars().count() {
            0 => lines[last] = text.to_owned(),
            used if used + 1 + text.chars().count() <= room => {
                lines[last].push(' ');
                lines[last].push_str(text);
            }
            _ => lines.push(text.to_owned()),
        }
    };
    for (at, part) in parts.iter().enumerate() {
        let part = if at + 1 < parts.len() { format!("{part},") } else { part.clone() };
        match part.chars().count() <= room {
            true => add(&part),
            false => wrap(&part, room).iter().for_each(|line| add(line)),
        }
    }
    for (at, line) in lines.iter().enumerate() {
        let before = if at == 0 { head } else { "" };
        writeln!(out, "  {before:<columns$}{line}")?;
    }
    Ok(())
}

/// What is told of a collection.
fn collection(one: &Collection) -> Vec<String> {
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
    parts
}

fn safepoint(one: &Safepoint) -> Vec<String> {
    let reason = plain(named(&one.reason, "reason not known")).into_owned();
    let mut parts = vec![reason, format!("reached in {}", time(one.reach))];
    if let Some(running @ 1..) = one.running {
        parts.push(format!("{} ran", several(running, "thread")));
    }
    parts
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pause_was_is_told_whole_in_lines_that_fit() {
        let one = Collection {
            number: 83,
            time: 8_044_000_000,
            duration: 175_000_000,
            thread: tare_profile::ThreadId::UNKNOWN,
            kind: "young".to_owned(),
            cause: "G1 Evacuation Pause".to_owned(),
            collector: String::new(),
            heap_before: Some(126_000_000),
            heap_after: Some(2_380_000),
            promoted: Some(1_000_000),
            reach: Some(4_730),
        };
        let lines = |width| {
            let mut out = Vec::new();
            let head = head("gc:83", one.duration, one.time);
            item(&mut out, &head, &collection(&one), width).expect("memory");
            String::from_utf8(out).expect("text")
        };
        let rest = ["126 MB → 2.38 MB, promoted 1.00 MB,", "reached in 4.73 µs"];
        let rest = rest.map(|line| format!("{:43}{line}\n", ""));
        let first = "  gc:83             175 ms at     8.044 s  young, G1 Evacuation Pause,\n";
        assert_eq!(lines(80), first.to_owned() + &rest.concat());
        assert_eq!(lines(usize::MAX).lines().count(), 1);
        // Where nothing has room, words do.
        assert!(lines(20).contains(" reached in 4.73 µs\n"), "{}", lines(20));
    }
}
