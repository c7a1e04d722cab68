//! What the terminal says while a recording begins, goes on and ends: a line that changes, or,
//! where there is no terminal, a word at what takes long.

use crate::figures::{grouped, remark_aside, roughly, say, several, value};
use crate::term;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tare_profile::Unit;
use tare_protocol::{Activity, BatchProgress};
use tare_session::client::inside;
use tare_session::engines::{climb, exact, stream, trace};
use tare_session::words::{bytes, interval};
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
        let terminal = term::has_error_terminal();
        Screen { quiet, terminal, end: None, shown: false, said: Said::default(), last: None }
    }

    /// From now on it is to end when this is set.
    pub fn end_at(&mut self, flag: Arc<AtomicBool>) {
        self.end = Some(flag);
    }

    /// Says what matters of a recording that has begun.
    pub fn begins(&self, plan: &Plan, pid: u32) {
        let keeps = matches!(&plan.what, What::Stream(plan) if plan.keep.is_some());
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
            (Figures::Stream(now), Some(Figures::Stream(then))) => {
                of_stream(now, Some(then), time, seconds)
            }
            (Figures::Stream(now), _) => of_stream(now, None, time, seconds),
            (Figures::Exact(now), Some(Figures::Exact(then))) => {
                of_exact(now, then.totals.calls, then.in_probes, time, seconds)
            }
            (Figures::Exact(now), _) => of_exact(now, 0, 0.0, time, seconds),
            (Figures::Trace(now), Some(Figures::Trace(then))) => {
                of_trace(now, then.events, time, seconds)
            }
            (Figures::Trace(now), _) => of_trace(now, 0, time, seconds),
            (Figures::Climb(now), _) => of_climb(now, time),
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
fn of_stream(
    now: &stream::Figures,
    then: Option<&stream::Figures>,
    time: f64,
    seconds: f64,
) -> String {
    let mut line = format!("{time:>4.0} s");
    if now.paused {
        line += "  paused";
    }
    if let Some(alloc) = &now.alloc {
        let before = then.and_then(|then| then.alloc.as_ref()).map_or(0.0, |then| then.bytes);
        let rate = (alloc.bytes - before) / seconds;
        line += &format!(
            "  {}/s allocated, {} sampled",
            value(rate.round() as i64, Unit::Bytes),
            term::count(alloc.samples),
        );
        if let Some(proven) = alloc.proven {
            line += &format!(", {} alive", term::count(proven));
        }
    }
    if let Some(locks) = &now.locks {
        let before = then.and_then(|then| then.locks.as_ref()).map_or(0, |then| then.contentions);
        let rate = locks.contentions.saturating_sub(before) as f64 / seconds;
        line += &format!(
            "  {}, {}/s, {} blocked",
            roughly(locks.contentions, "contention"),
            term::count(rate as u64),
            term::time(Duration::from_nanos(locks.blocked)),
        );
    }
    if let Some(classes) = &now.classes {
        let before = then.and_then(|then| then.classes.as_ref()).map_or(0, |then| then.loads);
        let rate = classes.loads.saturating_sub(before) as f64 / seconds;
        line += &format!(
            "  {} loaded, {}/s, {} unloaded, {}",
            roughly(classes.loads, "class"),
            term::count(rate as u64),
            term::count(classes.unloads),
            term::time(Duration::from_nanos(classes.time)),
        );
    }
    if let Some(refs) = &now.jni_refs {
        let alive = refs.made.saturating_sub(refs.deleted);
        let made = roughly(refs.made, "JNI reference");
        line += &format!("  {made} made, {} not deleted", term::count(alive));
    }
    if let Some(samples) = &now.samples {
        let before = then.and_then(|then| then.samples.as_ref()).map_or(0, |then| then.samples);
        let rate = samples.samples.saturating_sub(before) as f64 / seconds;
        let (all, rate) = (roughly(samples.samples, "sample"), term::count(rate as u64));
        line += &format!("  {all}, {rate}/s");
    }
    if now.lost > 0 {
        line += &format!("  {} lost", term::count(now.lost));
    }
    let cpu = now.cpu.saturating_sub(then.map_or(0, |then| then.cpu));
    line += &format!("  {:.2} CPUs", cpu as f64 / 1e9 / seconds);
    if let Some(samples) = &now.samples {
        let trigger = samples.trigger.map_or("?".to_owned(), |trigger| trigger.to_string());
        let threads = several(samples.threads, "thread");
        line += &format!("  {threads}  {trigger}, {}", interval(samples.interval));
    }
    if let Some(alloc) = &now.alloc {
        let collections = several(alloc.collections, "collection");
        line += &format!("  {collections}  {}", bytes(alloc.interval));
    }
    line
}

fn of_climb(now: &climb::Figures, time: f64) -> String {
    let progress = &now.progress;
    let cost = format!("cost {:.1} %, aim {:.0} %", now.cost * 100.0, now.overhead * 100.0);
    let hooks = format!("{} now, {} ever", several(now.hooks, "hook"), now.ever);
    let rest = match progress.doing {
        climb::Doing::Sampling => {
            format!("sampling what is hot: {}", roughly(now.samples, "sample"))
        }
        climb::Doing::Measuring => {
            let one_in = match progress.calls.checked_div(progress.timed) {
                Some(0 | 1) => "all timed".to_owned(),
                Some(k) => format!("1 in {k} timed"),
                None => "none timed yet".to_owned(),
            };
            let width = progress
                .half_width
                .map_or_else(String::new, |width| format!(", ± {:.0} %", width * 100.0));
            format!(
                "level {}  {hooks}, {cost}  {} calls/s, {one_in}  batch {} of 30{width}",
                progress.level,
                term::count(progress.calls_per_second.round() as u64),
                progress.batches,
            )
        }
        climb::Doing::Settling => {
            format!("level {}, the JVM compiles what was woven  {cost}", progress.level)
        }
        climb::Doing::Resting => format!("at the roots; the next climb begins soon  {cost}"),
        climb::Doing::Done => "at the roots".to_owned(),
    };
    format!("{time:>4.0} s  {rest}")
}

fn of_exact(now: &exact::Figures, calls: u64, in_probes: f64, time: f64, seconds: f64) -> String {
    let rate = now.totals.calls.saturating_sub(calls) as f64 / seconds;
    let share = (now.in_probes - in_probes) / seconds / 1e9;
    let methods = several(now.methods, "method");
    if now.regions_only {
        let regions = several(now.regions, "region");
        return format!("{time:>6.1} s  {regions} in {methods}");
    }
    let allocated = match now.totals.objects {
        0 => String::new(),
        n => format!("  {}, {}", roughly(n, "object"), value(now.totals.bytes as i64, Unit::Bytes)),
    };
    let live = now.live.map_or_else(String::new, |live| format!("  {} live", term::count(live)));
    if let Some((all, followed)) = now.totals.followed {
        // What is below roots are estimates, and says nothing of what the probes do.
        let held = now.held.as_ref().map_or_else(String::new, |held| {
            let (one_in, share) = **held;
            let share = share.map_or_else(String::new, |s| format!(", probes {:.1} %", s * 100.0));
            format!(" (1 in {one_in}){share}")
        });
        return format!(
            "{time:>5.1} s  {methods}  {}, {} followed{held}  {}/{} MiB",
            roughly(all, "root call"),
            term::count(followed),
            now.used >> 20,
            now.budget >> 20,
        );
    }
    format!(
        "{time:>5.1} s  {methods}{allocated}{live}  {}/s  {}  {}/{} MiB  probes ≥ {:.0} %",
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
    fn what_matters_most_stands_within_eighty_columns() {
        let alloc = |samples, bytes| stream::AllocFigures {
            samples,
            bytes,
            interval: 512 << 10,
            collections: 12,
            proven: Some(340),
        };
        let figures = |alloc, cpu| stream::Figures {
            samples: None,
            alloc: Some(alloc),
            locks: None,
            classes: None,
            jni_refs: None,
            lost: 0,
            paused: false,
            cpu,
        };
        let then = figures(alloc(1_000, 1e9), 1_000_000_000);
        let now = figures(alloc(2_400, 2.5e9), 2_000_000_000);
        assert_eq!(
            of_stream(&now, Some(&then), 7.0, 1.0),
            "   7 s  1.50 GB/s allocated, 2.4 k sampled, 340 alive  1.00 CPUs  12 collections  512 KiB"
        );
        let samples =
            stream::SampleFigures { samples: 500, threads: 9, trigger: None, interval: 10_000_000 };
        let now = stream::Figures { samples: Some(samples), lost: 3, paused: true, ..now };
        let line = of_stream(&now, None, 7.0, 1.0);
        assert!(line.contains("  500 samples, 500/s  3 lost  2.00 CPUs  9 threads"), "{line}");
        assert!(line.starts_with("   7 s  paused  2.50 GB/s allocated"), "{line}");
    }

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
