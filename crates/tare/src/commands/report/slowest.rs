//! The slowest calls of roots beside typical ones, for people and as JSON.

use super::Report;
use crate::figures::{fit, several, value, wrap};
use crate::term::{self, BOLD, DIM, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::{Difference, KeptCall, Slowest, mean_of};
use tare_profile::{ContextId, Profile, Unit};

/// Slow calls that are listed one by one.
const CALLS: usize = 5;
/// Columns of the figures before a name.
const FIGURES: usize = 2 + 10 + 11 + 11 + 8 + 8 + 2;
/// Columns of names at the most.
const NAME: usize = 120;

pub fn print(out: &mut impl Write, report: &Report<'_>, width: usize) -> Result<()> {
    let profile = report.profile;
    let time = |nanos: f64| value(nanos.round() as i64, Unit::Nanoseconds);
    for root in &report.slowest {
        let name = path(profile, root.root).pop().unwrap_or_default();
        writeln!(out, "\n{BOLD}Slowest calls of {}{BOLD:#}", fit(&name, width.saturating_sub(17)))?;
        let text = format!(
            "{} took {} on average; {} drawn from all that were followed, {}",
            several(root.slow.len(), "call"),
            time(mean_of(&root.slow)),
            root.typical.len(),
            time(mean_of(&root.typical)),
        );
        for line in wrap(&text, width.saturating_sub(2)) {
            writeln!(out, "  {line}")?;
        }
        writeln!(
            out,
            "{DIM}  {:>10} {:>10} {:>10} {:>7} {:>7}  itself, in a call{DIM:#}",
            "difference", "slowest", "typical", "calls", "calls"
        )?;
        let room = width.saturating_sub(FIGURES).clamp(20, NAME);
        let shown = root.contexts.iter().filter(|one| one.more() > 0.0);
        for one in shown.take(report.args.top()) {
            let Difference { own: [slow, typical], calls, .. } = *one;
            writeln!(
                out,
                "  {:>10} {:>10} {:>10} {:>7} {:>7}  {}",
                format!("+{}", time(one.more())),
                time(slow),
                time(typical),
                times(calls[0]),
                times(calls[1]),
                shortened(&path(profile, one.context), room),
            )?;
        }
        for call in root.slow.iter().take(CALLS) {
            let at = match call.time {
                0 => String::new(),
                at => format!(" at {}", time(at as f64)),
            };
            writeln!(
                out,
                "{DIM}  {}{at} on {}{DIM:#}",
                time(call.took as f64),
                term::clip(&plain(&profile.thread_name(call.thread)), 40)
            )?;
        }
    }
    Ok(())
}

/// A mean number of calls.
fn times(calls: f64) -> String {
    if calls >= 100.0 { format!("{calls:.0}") } else { format!("{calls:.1}") }
}

/// The methods of a context, the outermost first.
pub(super) fn path(profile: &Profile, context: ContextId) -> Vec<String> {
    let frames = profile.contexts.frames(context);
    let mut names: Vec<String> =
        frames.map(|frame| profile.method_name(profile.frames.get(frame).method)).collect();
    names.reverse();
    names
}

/// The innermost method, and as many of its callers as there is room for.
fn shortened(path: &[String], room: usize) -> String {
    let short = |name: &String| {
        let parts: Vec<&str> = name.rsplitn(3, '.').take(2).collect();
        parts.into_iter().rev().collect::<Vec<_>>().join(".")
    };
    let mut names = path.iter().rev();
    let mut text = names.next().map(|name| plain(&short(name)).into_owned()).unwrap_or_default();
    for name in names {
        let longer = format!("{} › {text}", plain(&short(name)));
        if longer.chars().count() > room {
            let dots = format!("… › {text}");
            return if dots.chars().count() <= room { dots } else { term::clip(&text, room) };
        }
        text = longer;
    }
    text
}

pub fn json(profile: &Profile, slowest: &[Slowest]) -> Value {
    let calls = |calls: &[KeptCall]| -> Value {
        let each = calls.iter().map(|call| {
            json!({
                "took_ns": call.took,
                "time_ns": call.time,
                "thread": profile.thread_name(call.thread),
            })
        });
        each.collect()
    };
    let roots = slowest.iter().map(|root| {
        let contexts = root.contexts.iter().map(|one| {
            json!({
                "stack": path(profile, one.context),
                "difference_ns": one.more().round() as i64,
                "slowest_ns": one.own[0].round() as i64,
                "typical_ns": one.own[1].round() as i64,
                "slowest_calls": one.calls[0],
                "typical_calls": one.calls[1],
            })
        });
        json!({
            "root": path(profile, root.root).pop(),
            "slowest": calls(&root.slow),
            "typical": calls(&root.typical),
            "contexts": contexts.collect::<Vec<_>>(),
        })
    });
    roots.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_method_stays() {
        let path = ["a.b.Desk.handle", "a.b.Desk.fulfil", "a.b.Packing.pack"].map(str::to_owned);
        assert_eq!(shortened(&path, 60), "Desk.handle › Desk.fulfil › Packing.pack");
        assert_eq!(shortened(&path, 30), "… › Desk.fulfil › Packing.pack");
        assert_eq!(shortened(&path, 20), "… › Packing.pack");
    }
}
