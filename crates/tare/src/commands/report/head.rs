//! What stands above every page: which run it is of, what was measured, and how.

use super::Report;
use crate::figures::{value, wrap};
use crate::term::{self, DIM, plain};
use anyhow::Result;
use std::io::Write;
use std::time::Duration;
use tare_analysis::{JOINED, TargetError};
use tare_profile::{Profile, RunInfo, SeriesInfo, Unit, ValueKind};
use tare_session::engines::exact::WOVEN_AFTER;

/// A command line is shown so far where there is no main class.
const COMMAND: usize = 160;

pub fn print(out: &mut impl Write, report: &Report<'_>, width: usize) -> Result<()> {
    let run = &report.profile.run;
    for line in wrap(&facts(run).join(", "), width).iter().filter(|line| !line.is_empty()) {
        writeln!(out, "{line}")?;
    }
    let info = report.info();
    let idle = report.aside.and_then(|aside| aside.idle.as_ref()).map_or(0, |idle| idle.value);
    let sum = report.tree.sum(0).saturating_add(idle);
    if sum != 0 || report.regions.is_empty() {
        let compared = compared(sum, info, run.duration);
        let compared = compared.filter(|_| report.args.view.time.is_none()).unwrap_or_default();
        let sum = value(sum, info.kind.unit());
        let text = format!("{sum} of {}", plain(&what(report.profile, info, &compared)));
        for (at, line) in wrap(&text, width).iter().enumerate() {
            match line.strip_prefix(&sum).filter(|_| at == 0) {
                Some(rest) => writeln!(out, "{sum}{DIM}{rest}{DIM:#}")?,
                None => writeln!(out, "{DIM}{line}{DIM:#}")?,
            }
        }
    }
    let joined = run.options.iter().find(|(key, _)| key == JOINED && info.name == JOINED);
    let joined = joined.map(|(_, text)| format!("exact counts joined with samples: {text}"));
    if let Some(text) = joined.or_else(|| sampled(run)) {
        for line in wrap(&text, width) {
            writeln!(out, "{DIM}{line}{DIM:#}")?;
        }
    }
    Ok(writeln!(out)?)
}

fn facts(run: &RunInfo) -> Vec<String> {
    let program = match (run.main_class.as_str(), run.command_line.join(" ")) {
        ("", command) if command.is_empty() => String::new(),
        ("", command) => term::clip(&command, COMMAND),
        (main, _) => main.to_owned(),
    };
    let mut facts = vec![program];
    if let Some(pid) = run.pid {
        facts.push(format!("pid {pid}"));
    }
    if !run.jdk.is_empty() {
        facts.push(format!("JDK {}", run.jdk));
    }
    facts.push(run.host.clone());
    if run.duration > 0 {
        facts.push(format!("measured for {}", term::time(Duration::from_nanos(run.duration))));
        facts.extend(woven_after(run));
    }
    facts.push(run.tool.clone());
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// What is measured, what that is to be compared with, and how finely.
fn what(profile: &Profile, info: &SeriesInfo, compared: &str) -> String {
    // `cpu-time`, not `cpu cpu-time`; but `parked wall-time`.
    let kind = info.kind.name();
    let mut what = match kind.starts_with(&info.name) {
        true => kind.to_owned(),
        false => format!("{} {kind}", info.name),
    };
    what.push_str(compared);
    if info.period > 0 {
        let unit = info.period_kind.as_ref().map_or(Unit::Count, |kind| kind.unit());
        what.push_str(&format!(", one per {}", value(info.period as i64, unit)));
    }
    if let Some(error) = TargetError::of(profile, info) {
        what.push_str(&format!(", {}", error.told()));
    }
    what
}

/// How a sampled time can be longer than the run: the wall clock goes for each thread, and several
/// processors work at once.
fn compared(sum: i64, info: &SeriesInfo, duration: u64) -> Option<String> {
    if duration == 0 || info.period == 0 || sum <= 0 {
        return None;
    }
    let times = sum as f64 / duration as f64;
    match info.kind {
        ValueKind::WallTime if info.name == "wall" => {
            let whole = times.round().max(1.0);
            let threads = match (times - whole).abs() < 0.1 {
                true if whole == 1.0 => "1 thread".to_owned(),
                true => format!("{whole:.0} threads"),
                false => format!("{times:.1} threads on average"),
            };
            let run = value(i64::try_from(duration).unwrap_or(i64::MAX), Unit::Nanoseconds);
            Some(format!(" ({run} × {threads})"))
        }
        ValueKind::CpuTime => Some(format!(" ({times:.2} processors busy on average)")),
        _ => None,
    }
}

/// How a run was sampled, if it was: by what, how often, how much of it.
fn sampled(run: &RunInfo) -> Option<String> {
    let get = |key: &str| run.options.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
    let mut text = format!("sampled by {} every {}", get("engine")?, get("interval")?);
    let mut add = |key: &str, before: &str, after: &str| {
        if let Some(value) = get(key) {
            let after = if value == "1" { after.strip_suffix('s').unwrap_or(after) } else { after };
            text.push_str(&format!("{before}{value}{after}"));
        }
    };
    add("interval got", " (", " got)");
    add("samples", ": ", " samples");
    add("threads seen", " of ", " threads");
    add("overruns", ", ", " overruns");
    add("samples of idle threads", ", ", " of them of threads that had not run since");
    add("sampled CPU time", "; ", " of CPU time");
    let process = if get("sampled CPU time").is_some() {
        " of the process's "
    } else {
        "; the process used "
    };
    add(
        "CPU time of the process",
        process,
        if process.starts_with(';') { " of CPU time" } else { "" },
    );
    Some(text)
}

/// How long it took until all was woven, if that is worth a word.
fn woven_after(run: &RunInfo) -> Option<String> {
    let (_, after) = run.options.iter().find(|(key, _)| key == WOVEN_AFTER)?;
    let after = Duration::from_nanos(after.parse().ok()?);
    (after >= Duration::from_millis(100))
        .then(|| format!("all of it woven after {}", term::time(after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_longer_than_the_run_are_explained() {
        let second = 1_000_000_000;
        let info = |name: &str, kind: ValueKind| {
            SeriesInfo::new(name, kind.clone()).with_period(10_000_000, kind)
        };
        let wall = info("wall", ValueKind::WallTime);
        let told = |sum| compared(sum, &wall, 5 * second as u64);
        assert_eq!(told(121 * second).unwrap(), " (5.00 s × 24.2 threads on average)");
        assert_eq!(told(125 * second + 40_000_000).unwrap(), " (5.00 s × 25 threads)");
        assert_eq!(told(5 * second).unwrap(), " (5.00 s × 1 thread)");
        assert_eq!(told(0), None);
        let cpu = info("cpu", ValueKind::CpuTime);
        let told = compared(12 * second, &cpu, 5 * second as u64);
        assert_eq!(told.unwrap(), " (2.40 processors busy on average)");
        let exact = SeriesInfo::new("exact", ValueKind::WallTime);
        assert_eq!(compared(12 * second, &exact, 5 * second as u64), None);
    }
}
