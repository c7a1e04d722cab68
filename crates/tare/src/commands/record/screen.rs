//! What the terminal says while a recording begins, goes on and ends: a line that changes, or,
//! where there is no terminal, a word at what takes long.

use crate::figures::{grouped, remark_aside, roughly, say, several};
use crate::term;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tare_protocol::{Activity, BatchProgress};
use tare_session::client::inside;
use tare_session::engines::{exact, sampling, trace};
use tare_session::sampling::interval;
use tare_session::{Figures, Happening, Note, Observer, Plan, Progress, Weaving, What};

/// What is over sooner is not worth a word where there is no terminal.
const SOON: Duration = Duration::from_secs(1);

/// Who watches a recording for a person.
pub struct Screen {
    quiet: bool,
    terminal: bool,
    /// Set when it is to end.
    end: Option<Arc<AtomicBool>>,
    /// Whether a line of ours is on the terminal.
    shown: bool,
    said: Said,
    last: Option<Progress>,
}

/// What was said of the weaving under way where there is no terminal.
#[derive(Default)]
struct Said {
    activity: Option<Activity>,
    long: bool,
    stop: bool,
}

impl Screen {
    pub fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Screen { quiet, terminal, end: None, shown: false, said: Said::default(), last: None }
    }

    /// From now on it is to end when this is set.
    pub fn end_at(&mut self, flag: Arc<AtomicBool>) {
        self.end = Some(flag);
    }

    /// Says what matters of a recording that has begun.
    pub fn begins(&self, plan: &Plan, pid: u32) {
        let keeps = matches!(&plan.what, What::Samples(plan) if plan.keep.is_some());
        if keeps && self.terminal && !self.quiet {
            remark_aside(&format!(
                "the last minutes are kept; `tare dump {pid}` writes them, Ctrl-C ends"
            ));
        }
    }

    /// The line of another second.
    pub fn show(&mut self, progress: &Progress) {
        let before = self.last.replace(progress.clone());
        let since = before.as_ref().map_or(Duration::ZERO, |before| before.elapsed);
        let seconds = progress.elapsed.saturating_sub(since).as_secs_f64().max(1e-9);
        let before = before.as_ref().map(|before| &before.figures);
        let time = progress.elapsed.as_secs_f64();
        let line = match (&progress.figures, before) {
            (Figures::Samples(now), Some(Figures::Samples(then))) => {
                of_samples(now, then.samples, then.cpu, time, seconds)
            }
            (Figures::Samples(now), _) => of_samples(now, 0, 0, time, seconds),
            (Figures::Exact(now), Some(Figures::Exact(then))) => {
                of_exact(now, then.totals.calls, then.in_probes, time, seconds)
            }
            (Figures::Exact(now), _) => of_exact(now, 0, 0.0, time, seconds),
            (Figures::Trace(now), Some(Figures::Trace(then))) => {
                of_trace(now, then.events, time, seconds)
            }
            (Figures::Trace(now), _) => of_trace(now, 0, time, seconds),
            // They go into no recording.
            (Figures::Counters(_), _) => return,
        };
        self.line(&line);
    }

    fn line(&mut self, text: &str) {
        if self.terminal && !self.quiet {
            self.shown = true;
            term::progress(text);
        }
    }

    /// Takes the line from the terminal.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            term::progress("");
        }
    }

    fn weaving(&mut self, now: &Weaving) {
        let Some(batches) = now.batches else { return self.line(&before(now.elapsed, now.stops)) };
        if self.terminal {
            return self.line(&line(&batches, now.elapsed, now.is_long, now.stops));
        }
        if self.quiet {
            return;
        }
        if self.said.activity != Some(batches.activity) && now.elapsed > SOON {
            self.said.activity = Some(batches.activity);
            let classes = several(batches.all, "class");
            remark_aside(&format!("{} {classes}", verb(batches.activity)));
        }
        if now.stops && !self.said.stop {
            self.said.stop = true;
            let classes = several(batches.now, "class");
            remark_aside(&format!("stops as soon as the JVM is done with {classes}"));
        }
        if now.is_long && !self.said.long {
            remark_aside(&format!("the agent does not answer; {}", inside(&batches)));
        }
        self.said.long = now.is_long;
    }
}

impl Observer for Screen {
    fn note(&mut self, note: Note) {
        if !self.quiet || matches!(note, Note::Alarm(_)) {
            say(note);
        }
    }

    fn happening(&mut self, what: &Happening) {
        match what {
            Happening::LookingForClasses => {
                self.line("looking for the classes that are asked for");
            }
            Happening::TakingInThreads => self.line("taking in the JVM's threads"),
            Happening::Weaving(now) => self.weaving(now),
            Happening::Nothing => {
                self.said = Said::default();
                self.clear();
            }
        }
    }

    fn wants_end(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.load(Ordering::Relaxed))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What matters most comes first: the end of it is lost where the terminal is narrow.
fn of_samples(now: &sampling::Figures, samples: u64, cpu: u64, time: f64, seconds: f64) -> String {
    let rate = now.samples.saturating_sub(samples) as f64 / seconds;
    let cpus = now.cpu.saturating_sub(cpu) as f64 / 1e9 / seconds;
    let lost = match now.lost {
        0 => String::new(),
        lost => format!("  {} lost", term::count(lost)),
    };
    let paused = if now.paused { "  paused" } else { "" };
    format!(
        "{time:>4.0} s{paused}  {}, {}/s{lost}  {cpus:.2} CPUs  {}  {}, {}",
        roughly(now.samples, "sample"),
        term::count(rate as u64),
        several(now.threads, "thread"),
        now.engine.map_or("?".to_owned(), |engine| engine.to_string()),
        interval(now.interval),
    )
}

fn of_exact(now: &exact::Figures, calls: u64, in_probes: f64, time: f64, seconds: f64) -> String {
    let rate = now.totals.calls.saturating_sub(calls) as f64 / seconds;
    let share = (now.in_probes - in_probes) / seconds / 1e9;
    let methods = several(now.methods, "method");
    if now.regions_only {
        let regions = several(now.regions, "region");
        return format!("{time:>6.1} s  {regions} in {methods}");
    }
    format!(
        "{time:>5.1} s  {methods}  {}/s  {}  {}/{} MiB  probes ≥ {:.0} %",
        roughly(rate as u64, if now.totals.samples { "sample" } else { "call" }),
        roughly(now.totals.contexts as u64, "context"),
        now.used >> 20,
        now.budget >> 20,
        share * 100.0,
    )
}

fn of_trace(now: &trace::Figures, events: u64, time: f64, seconds: f64) -> String {
    format!(
        "{time:>6.1} s  {} woven  {}, {}/s  {} dropped",
        several(now.methods, "method"),
        roughly(now.events, "event"),
        term::count((now.events.saturating_sub(events) as f64 / seconds) as u64),
        term::count(now.dropped),
    )
}

fn verb(activity: Activity) -> &'static str {
    match activity {
        Activity::Weaving => "weaving",
        Activity::Renewing => "loading again, because they call intrinsic methods that are woven,",
        Activity::Restoring => "restoring",
    }
}

/// The line on a terminal before the first batch, while the agent looks at the classes and measures
/// what its probes take.
fn before(time: Duration, stops: bool) -> String {
    let rest = if stops { "stops as soon as the agent hears of it" } else { "Ctrl-C stops it" };
    format!("{:>6.1} s  the agent gets ready; {rest}", time.as_secs_f64())
}

/// The line on a terminal.
fn line(last: &BatchProgress, time: Duration, long: bool, stops: bool) -> String {
    let done = grouped(i64::try_from(last.done).unwrap_or(i64::MAX));
    let (all, time) = (several(last.all, "class"), time.as_secs_f64());
    let mut line = format!("{time:>6.1} s  {} {done} of {all}", verb(last.activity));
    if last.activity == Activity::Weaving {
        line += &format!(", {}", several(last.methods, "method"));
    }
    if stops {
        line += "; stops after this batch";
    } else if last.activity != Activity::Restoring {
        line += "; Ctrl-C stops it";
    }
    if long {
        line += &format!("; the JVM takes long over {} of them", last.now);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_going_on() {
        let weaving =
            BatchProgress { done: 64, now: 128, all: 2310, methods: 900, ..Default::default() };
        let second = Duration::from_secs(1);
        assert_eq!(
            line(&weaving, second, false, false),
            "   1.0 s  weaving 64 of 2,310 classes, 900 methods; Ctrl-C stops it"
        );
        let one = BatchProgress { done: 0, all: 1, methods: 1, ..weaving };
        assert_eq!(
            line(&one, second, false, false),
            "   1.0 s  weaving 0 of 1 class, 1 method; Ctrl-C stops it"
        );
        let restoring = BatchProgress { activity: Activity::Restoring, ..weaving };
        assert_eq!(
            line(&restoring, second, true, true),
            "   1.0 s  restoring 64 of 2,310 classes; stops after this batch; the JVM takes long over 128 \
             of them"
        );
    }
}
