//! What stands above every page: which run it is of, what was measured, and how.

use super::Report;
use crate::figures::{several, value, wrap};
use crate::term::{self, DIM, plain};
use anyhow::Result;
use std::io::Write;
use std::time::Duration;
use tare_analysis::{Collections, JOINED, Joined, TargetError};
use tare_profile::facts::keys;
use tare_profile::{Profile, RunInfo, SeriesInfo, Unit, ValueKind};
use tare_session::words::interval;

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
    let memory = report.memory.as_ref().filter(|memory| memory.has_classes());
    // Of what is told by site, the sums are told with their rates.
    if report.sites().is_none() && (sum != 0 || report.regions.is_empty()) {
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
    let joined = Joined::of_run(run).filter(|_| info.name == JOINED);
    let joined = joined.map(|joined| joined_in_words(&joined));
    if let Some(text) = joined.or_else(|| sampled(run).filter(|_| report.sites().is_none())) {
        for line in wrap(&text, width) {
            writeln!(out, "{DIM}{line}{DIM:#}")?;
        }
    }
    for text in memory.map(super::sites::told).unwrap_or_default() {
        for line in wrap(&text, width) {
            writeln!(out, "{DIM}{line}{DIM:#}")?;
        }
    }
    if let Some(collections) = Collections::of(report.profile) {
        let duration = report.args.view.time.is_none().then_some(run.duration);
        for line in wrap(&collected(collections, duration), width) {
            writeln!(out, "{DIM}{line}{DIM:#}")?;
        }
    }
    Ok(writeln!(out)?)
}

/// Which run it is of, in one line.
pub fn of_run(run: &RunInfo) -> String {
    facts(run).join(", ")
}

/// What stands above a page as plain lines, for those who wrap by themselves.
pub fn lines(report: &Report<'_>) -> Result<Vec<String>> {
    let mut text = Vec::new();
    print(&mut text, report, usize::MAX)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines = text.lines().map(|line| anstream::adapter::strip_str(line).to_string());
    Ok(lines.filter(|line| !line.is_empty()).collect())
}

/// How long collections stopped the program, of a run of so many nanoseconds if that is to be
/// compared.
fn collected(collections: Collections, duration: Option<u64>) -> String {
    let Collections { count, total, longest } = collections;
    let time = |nanos| value(i64::try_from(nanos).unwrap_or(i64::MAX), Unit::Nanoseconds);
    let share = match duration {
        Some(1..) => {
            let share = total as f64 / duration.unwrap_or(1) as f64;
            format!(", {:.1} % of the run", 100.0 * share)
        }
        _ => String::new(),
    };
    let pauses = several(count, "pause");
    match count {
        1 => format!(
            "{pauses} for garbage collection stopped the program for {}{share}",
            time(total)
        ),
        _ => format!(
            "{pauses} for garbage collection stopped the program for {}{share}, the longest for {}",
            time(total),
            time(longest)
        ),
    }
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
    let is_plain = kind.starts_with(&info.name) || tare_analysis::is_of_classes(&info.kind);
    let mut what = match is_plain {
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

/// How counts and samples came together.
fn joined_in_words(joined: &Joined) -> String {
    let doubt = format!("to ± {:.1} %", joined.doubt * 100.0);
    let scale = match (joined.marks, joined.by_length) {
        (0, true) => "by the recordings' lengths, as if calls came as often in both".to_owned(),
        (0, false) => format!("by times, {doubt}"),
        (1, _) => format!("by the calls of one method, {doubt}"),
        (marks, _) => format!("by the calls of {marks} methods, {doubt}"),
    };
    format!(
        "exact counts joined with samples: {} in woven methods, {:.1} % of all, scaled by {:.3}, {scale}",
        several(joined.samples, "sample"),
        joined.share * 100.0,
        joined.scale
    )
}

/// How a run was sampled, if it was: by what, how often, how much of it.
fn sampled(run: &RunInfo) -> Option<String> {
    let facts = &run.facts;
    let every = interval(nanos(facts.get(keys::INTERVAL)?));
    let mut text = format!("sampled by {} every {every}", facts.get(keys::ENGINE)?);
    let mut add = |more: String| text.push_str(&more);
    if let Some(got) = facts.get(keys::INTERVAL_GOT) {
        add(format!(" ({} got)", interval(nanos(got))));
    }
    let one_or_more = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    if let Some(samples) = facts.get(keys::SAMPLES) {
        add(format!(": {}", one_or_more(samples, "sample")));
    }
    if let Some(threads) = facts.get(keys::THREADS_SAMPLED) {
        add(format!(" of {}", one_or_more(threads, "thread")));
    }
    if let Some(overruns) = facts.get(keys::OVERRUNS) {
        add(format!(", {}", one_or_more(overruns, "overrun")));
    }
    if let Some(idle) = facts.get(keys::IDLE_SAMPLES) {
        add(format!(", {idle} of them of threads that had not run since"));
    }
    let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    let is_cpu = facts.get(keys::CLOCK).is_some_and(|clock| clock == "cpu");
    // Of what is kept of a run, nobody knows what the process used meanwhile.
    let sampled = facts.get(keys::SAMPLED_TIME).filter(|_| is_cpu && !facts.has(keys::KEPT));
    if let Some(sampled) = sampled {
        add(format!("; {} of CPU time", seconds(sampled)));
    }
    match facts.get(keys::PROCESS_CPU_TIME).map(seconds) {
        Some(process) if sampled.is_some() => add(format!(" of the process's {process}")),
        Some(process) => add(format!("; the process used {process} of CPU time")),
        None => {}
    }
    Some(text)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How long it took until all was woven, if that is worth a word.
fn woven_after(run: &RunInfo) -> Option<String> {
    let after = run.facts.get(keys::WOVEN_AFTER)?;
    (after >= Duration::from_millis(100))
        .then(|| format!("all of it woven after {}", term::time(after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_told_in_one_line() {
        let sum = Collections { count: 3, total: 12_000_000, longest: 8_000_000 };
        assert_eq!(
            collected(sum, Some(1_000_000_000)),
            "3 pauses for garbage collection stopped the program for 12.0 ms, 1.2 % of the run, \
             the longest for 8.00 ms"
        );
        let one = Collections { count: 1, ..sum };
        let told = "1 pause for garbage collection stopped the program for 12.0 ms";
        assert_eq!(collected(one, None), told);
    }

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
