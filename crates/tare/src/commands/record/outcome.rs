//! What is said of a recording that is complete: where it is, what it took, and its report.

use super::Job;
use super::files::Files;
use crate::cli::ReportArgs;
use crate::commands::report;
use crate::figures::{headline, remark, roughly, several, value};
use crate::term::{self, DIM};
use crate::{relayed, source};
use anyhow::Result;
use std::path::Path;
use std::time::Duration;
use tare_profile::Unit;
use tare_protocol::{COST_PS, ExactStatus};
use tare_session::engines::exact::{self, HeldByFollowing, Steered};
use tare_session::engines::{climb, stream, trace};
use tare_session::{Finished, Outcome, Recorded};

/// Makes the file that was asked for, and tells of it.
pub fn complete(finished: &Finished, files: Files, job: &Job) -> Result<()> {
    let Some(recorded) = &finished.recorded else { return Ok(()) };
    if relayed::is() {
        // The report is made where the recording is.
        if !job.quiet && !job.json {
            say(finished, recorded, Path::new(""), recorded.size, false);
        }
        return Ok(());
    }
    if job.quiet && !job.json {
        files.complete(recorded.size)?;
        return Ok(());
    }
    let profile = source::load(&files.recording, None)?;
    if job.json {
        files.complete(recorded.size)?;
        return term::printed(report::climb_json(&profile));
    }
    let is_recording = files.export.is_none();
    let (path, size) = files.complete(recorded.size)?;
    say(finished, recorded, &path, size, is_recording);
    let page = ReportArgs { threads: job.by_thread, ..ReportArgs::plain(&path) };
    term::printed(report::whole(&profile, &page))
}

/// What it took and what came of it.
fn say(finished: &Finished, recorded: &Recorded, path: &Path, size: u64, is_recording: bool) {
    let size = size.div_ceil(1024);
    match &finished.outcome {
        Outcome::Stream(outcome) => say_stream(outcome, path, size),
        Outcome::Exact(outcome) => say_exact(outcome, recorded, path, size),
        Outcome::Trace(outcome) => say_trace(outcome, path, size, is_recording),
        Outcome::Climb(outcome) => say_climb(outcome, path, size),
        Outcome::Counters(_) => {}
    }
}

fn say_stream(outcome: &stream::Outcome, path: &Path, size: u64) {
    let time = term::time(outcome.elapsed);
    let samples = outcome.samples.map(|samples| roughly(samples, "sample"));
    let alloc = outcome.alloc.as_ref().map(|alloc| {
        let bytes = value(alloc.bytes.round() as i64, Unit::Bytes);
        format!("{bytes} allocated ({})", roughly(alloc.samples, "sampled object"))
    });
    let locks = outcome.locks.as_ref().map(|locks| {
        let contentions = roughly(locks.contentions, "contention");
        format!("{contentions}, {} blocked", term::time(Duration::from_nanos(locks.blocked)))
    });
    let classes = outcome.classes.as_ref().map(|classes| {
        let (loads, time) = (roughly(classes.loads, "class"), Duration::from_nanos(classes.time));
        match classes.time {
            0 => format!("{loads} loaded"),
            _ => format!("{loads} loaded, which took {}", term::time(time)),
        }
    });
    let refs = outcome.jni_refs.as_ref().map(|refs| {
        let alive = refs.made.saturating_sub(refs.deleted);
        let made = roughly(refs.made, "JNI reference");
        format!("{made} made, {} not deleted", term::count(alive))
    });
    let others = alloc.into_iter().chain(locks).chain(classes).chain(refs);
    let what: Vec<String> = samples.into_iter().chain(others).collect();
    headline(path, &format!("{} in {time}; {size} KiB", what.join(", ")));
    if outcome.outside > 0 {
        let outside =
            roughly(outcome.outside, if outcome.locks.is_some() { "record" } else { "sample" });
        remark(&format!("{outside} without any method that fits --include and --exclude"));
    }
}

fn say_climb(outcome: &climb::Outcome, path: &Path, size: u64) {
    let (hooks, samples) = (several(outcome.ever, "hook"), roughly(outcome.samples, "sample"));
    let time = term::time(outcome.elapsed);
    let once =
        if outcome.ever > 1 { format!(" ({} at once)", outcome.most) } else { String::new() };
    headline(path, &format!("{samples} and {hooks}{once} in {time}; {size} KiB"));
    if !outcome.complete {
        remark("it ended before it came to the roots; --for gives it more time");
    }
}

fn say_exact(outcome: &exact::Outcome, recorded: &Recorded, path: &Path, size: u64) {
    let exact::Outcome { figures, status, .. } = outcome;
    let totals = &figures.totals;
    let bytecodes = match totals.bytecodes {
        0 => String::new(),
        n if status.costs => format!(
            " and {} on the target, which is too low (see the report)",
            term::time(Duration::from_nanos(n * COST_PS / 1000))
        ),
        n => format!(" and {}", roughly(n, "bytecode")),
    };
    let allocated = match totals.objects {
        0 => String::new(),
        n => format!("{} of {} in ", roughly(n, "object"), value(totals.bytes as i64, Unit::Bytes)),
    };
    let recorded_here = if figures.regions_only {
        let regions = several(figures.regions, "region");
        format!("{} of {regions}", roughly(outcome.passages, "passage"))
    } else {
        format!(
            "{allocated}{}{bytecodes} in {} of {}",
            roughly(totals.calls, if totals.samples { "sample" } else { "call" }),
            roughly(totals.contexts as u64, "context"),
            several(totals.trees, "thread"),
        )
    };
    let woven = several(figures.methods, "method");
    headline(path, &format!("{recorded_here}, {woven} woven; {size} KiB"));
    if let Some((all, followed)) = totals.followed {
        remark(&format!(
            "{} of {} were followed; what they call is an estimate for all",
            term::count(followed),
            roughly(all, "root call"),
        ));
    } else if !totals.samples && !figures.regions_only && totals.calls > 0 {
        remark(&format!(
            "a call costs {:.1} ns or more in probes, {:.2} s in all",
            figures.in_probes / (totals.calls as f64).max(1.0),
            figures.in_probes / 1e9,
        ));
    }
    if totals.objects > 0 && totals.bytecodes == 0 {
        remark(
            "objects are those that woven code made; what the JDK makes for it is counted where its \
             classes are woven, what JNI and the JVM make is not",
        );
    }
    if outcome.told_all {
        say_weaving(status);
    }
    outcome.steering.iter().for_each(say_overhead);
    outcome.following.iter().for_each(say_following);
    if let Some(longest) = recorded.stretched {
        remark(&format!(
            "the trees were large: up to {longest:.1?} passed between two looks at them"
        ));
    }
    if let Some(woven_and_ran) = outcome.woven_and_ran {
        say_subgraph(status, woven_and_ran);
    }
}

fn say_trace(outcome: &trace::Outcome, path: &Path, size: u64, is_recording: bool) {
    let figures = &outcome.figures;
    let what = format!(
        "{} entries and exits of {}, {} woven; {size} KiB",
        term::count(figures.events),
        several(outcome.threads, "thread"),
        several(figures.methods, "method"),
    );
    headline(path, &what);
    if outcome.told_all {
        say_weaving(&outcome.status);
    }
    if figures.dropped > 0 {
        remark(&format!(
            "{} more came quicker than they could be taken, or than --rate allows; the recording \
             says of which threads and when",
            term::count(figures.dropped),
        ));
    }
    if let Some(waited) = outcome.waited {
        remark(&format!(
            "threads waited {} in all for room in their rings (--wait), which is kept out of the times",
            term::time(waited),
        ));
    }
    // What went into another tool's file is what there is of it.
    if is_recording && figures.events > 0 {
        outln!(
            "{DIM}a timeline: tare export {} -o {}, for ui.perfetto.dev{DIM:#}",
            report::quoted(path),
            report::quoted(&path.with_extension("trace.json")),
        );
    }
}

/// What probes took, and how that is known.
fn say_overhead(steering: &Steered) {
    let now = steering.overhead.map_or_else(String::new, |(counting, timing)| {
        let [counting, timing] = [counting, timing].map(|share| share * 100.0);
        format!(
            "{:.0} % of the program's own time at last ({counting:.0} % counting, {timing:.0} % timing, \
             by {}), ",
            counting + timing,
            steering.source,
        )
    });
    remark(&format!(
        "probes took {now}{:.0} % were allowed; {} counted and not timed",
        steering.budget * 100.0,
        several(steering.demoted, "method"),
    ));
}

/// What probes took, and what that made of the number of calls that are followed.
fn say_following(held: &HeldByFollowing) {
    let now = held.overhead.map_or_else(
        || "it is not known what probes took, since too few calls were followed; ".to_owned(),
        |share| {
            let share = share * 100.0;
            format!("probes took {share:.1} % of the program's own time, by {}; ", held.source)
        },
    );
    let (least, most) = held.range;
    let range = if least < most { format!(" (from {least} to {most})") } else { String::new() };
    remark(&format!(
        "{now}{:.0} % were allowed; 1 call in {} followed at last{range}",
        held.budget * 100.0,
        held.one_in,
    ));
}

/// What changing the classes took.
fn say_weaving(status: &ExactStatus) {
    let calls = match status.whole_calls {
        true => "; these are whole calls, since the JVM does not tell how long it stood still",
        false => "",
    };
    remark(&format!(
        "weaving took {:.0} ms; {}, {:.0} ms in all, {:.0} ms the longest{calls}",
        status.weaving_ns as f64 / 1e6,
        several(status.pauses, "pause"),
        status.pause_ns as f64 / 1e6,
        status.longest_pause_ns as f64 / 1e6,
    ));
}

/// What the search for what the roots reach has found, and what it cost.
fn say_subgraph(status: &ExactStatus, (woven, ran): (usize, usize)) {
    let Some(subgraph) = &status.subgraph else { return };
    remark(&format!(
        "{} can be reached as far as is known, {woven} woven, {} of them never ran below a root",
        several(subgraph.reachable, "method"),
        woven.saturating_sub(ran),
    ));
    remark(&format!(
        "{} for what a method calls to be woven, {:.0} ms in all, {:.0} ms the longest; no time has \
         them in it",
        several(subgraph.waits, "wait"),
        subgraph.wait_ns as f64 / 1e6,
        subgraph.longest_wait_ns as f64 / 1e6,
    ));
    let missed = subgraph.hurried + subgraph.gave_up + subgraph.late;
    if missed > 0 {
        remark(&format!(
            "first calls may be missing in {}: {} loading classes and could not wait, for {} it took \
             too long, {} into use outside",
            several(missed, "place"),
            match subgraph.hurried {
                1 => "1 thread was".to_owned(),
                n => format!("{n} threads were"),
            },
            subgraph.gave_up,
            several(subgraph.late, "class") + " came",
        ));
    }
}
