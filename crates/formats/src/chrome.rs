//! Chrome's trace events (JSON), which Perfetto and chrome://tracing open: a timeline of threads
//! with what ran when. It is made of moments, so only series and events that have them go in.
//!
//! A sampler meets a stack now and then. Frames that two samples in a row have in common, with no
//! more than a few periods between, are drawn as having run from one to the other.

mod locks;

use crate::by_thread::{self, Sample};
use crate::error::WriteError;
use crate::event_names::EventNames;
use crate::json;
use crate::merged::{self, Labels, Merged};
use crate::sampled::is_sampled_time;
use crate::select::series_name;
use std::io::{self, Write};
use tare_profile::{
    EventTable, FieldValue, Profile, Series, SeriesId, ThreadId, TimeAxis, ValueKind,
};

/// Periods without a sample after which a thread is taken to have done something else.
const PATIENCE: u64 = 3;
/// The period that is assumed where none is told, in nanoseconds.
const ASSUMED_PERIOD: u64 = 10_000_000;

/// Writes events one by one, with a comma between.
struct Events<'w> {
    out: &'w mut dyn Write,
    pid: u32,
    separator: &'static str,
}

impl Events<'_> {
    /// Begins an event: name, phase, thread. The caller adds the rest and `}`.
    fn begin(&mut self, name: &str, phase: char, thread: u32) -> io::Result<()> {
        write!(self.out, "{}\n{{\"name\":", self.separator)?;
        self.separator = ",";
        json::text(self.out, name)?;
        write!(self.out, ",\"ph\":\"{phase}\",\"pid\":{},\"tid\":{thread}", self.pid)
    }

    fn slice(&mut self, name: &str, category: &str, thread: u32, at: (u64, u64)) -> io::Result<()> {
        self.begin(name, 'X', thread)?;
        let duration = at.1.saturating_sub(at.0);
        write!(
            self.out,
            ",\"cat\":\"{category}\",\"ts\":{},\"dur\":{}",
            micros(at.0),
            micros(duration)
        )
    }

    fn name(&mut self, what: &str, thread: u32, name: &str) -> io::Result<()> {
        self.begin(what, 'M', thread)?;
        write!(self.out, ",\"args\":{{\"name\":")?;
        json::text(self.out, name)?;
        write!(self.out, "}}}}")
    }
}

/// Nanoseconds as microseconds, which is what the format counts in, without losing any.
fn micros(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1000, nanos % 1000)
}

pub fn write(profile: &Profile, first: SeriesId, out: &mut dyn Write) -> Result<(), WriteError> {
    let timed = |series: &Series| {
        series.info().time == TimeAxis::Exact
            && (series.info().kind == ValueKind::Samples || is_sampled_time(series))
    };
    let mut all: Vec<(SeriesId, &Series)> =
        profile.all_series().filter(|(_, series)| timed(series) && !series.is_empty()).collect();
    all.sort_by_key(|(id, _)| (*id != first, *id));
    // Two samplers at once would draw over each other; the first is the one that was asked for.
    all.truncate(1);
    if all.is_empty() && profile.all_events().all(|(_, table)| table.is_empty()) {
        return Err(WriteError::NoTimes { format: "a timeline" });
    }
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let pid = profile.run.pid.unwrap_or(1);
    let mut events = Events { out: &mut *out, pid, separator: "" };
    let process = match profile.run.main_class.as_str() {
        "" => "JVM",
        name => name,
    };
    events.name("process_name", 0, process)?;
    for (id, _) in profile.threads.iter() {
        events.name("thread_name", id.raw(), &profile.thread_name(id))?;
    }
    for (_, series) in all {
        write_samples(profile, series, &mut events)?;
    }
    for (_, table) in profile.all_events() {
        write_table(profile, table, &mut events)?;
    }
    locks::write(profile, &mut events)?;
    writeln!(out, "\n]}}")?;
    Ok(())
}

fn write_samples(profile: &Profile, series: &Series, events: &mut Events<'_>) -> io::Result<()> {
    let mut labels = Labels::default();
    let of_frames = labels.of_frames(profile);
    let mut merged = Merged::default();
    let node_of = merged.add(profile, &of_frames, &merged::used(profile, [series]));
    let period = Some(series.info().period).filter(|period| *period > 0).unwrap_or(ASSUMED_PERIOD);
    let category = series_name(series.info());
    let mut path = Vec::new();
    for thread in by_thread::split(series) {
        let tid = thread.thread.raw();
        // The frames that are running: label and since when.
        let mut open: Vec<(u32, u64)> = Vec::new();
        let mut until = 0;
        for Sample { time, context, .. } in thread.samples {
            let gap = time.saturating_sub(until) > period * (PATIENCE - 1);
            let end = if gap { until } else { time };
            merged::path(&merged.nodes, node_of[context.index()], &mut path);
            let same = open.iter().zip(&path).take_while(|((label, _), next)| label == *next);
            let keep = if gap { 0 } else { same.count() };
            close(events, &labels, &category, tid, &mut open, keep, end)?;
            open.extend(path[keep..].iter().map(|label| (*label, time)));
            until = time.saturating_add(period);
        }
        close(events, &labels, &category, tid, &mut open, 0, until)?;
    }
    Ok(())
}

/// Ends all frames but the outermost `keep`.
fn close(
    events: &mut Events<'_>,
    labels: &Labels,
    category: &str,
    thread: u32,
    open: &mut Vec<(u32, u64)>,
    keep: usize,
    end: u64,
) -> io::Result<()> {
    for (label, start) in open.drain(keep..) {
        events.slice(&labels.rows[label as usize].text, category, thread, (start, end))?;
        write!(events.out, "}}")?;
    }
    Ok(())
}

fn write_table(profile: &Profile, table: &EventTable, events: &mut Events<'_>) -> io::Result<()> {
    let kind = table.kind();
    let names = EventNames::new(profile, table);
    for (row, event) in table.events().enumerate() {
        let end = event.time.saturating_add(event.duration);
        let name = &*names.of_row(row, &event);
        if event.duration == 0 && !names.are_of_calls() {
            events.begin(name, 'i', event.thread.raw())?;
            write!(events.out, ",\"s\":\"t\",\"ts\":{}", micros(event.time))?;
        } else {
            let category = match kind.name.as_str() {
                _ if names.are_of_calls() => "calls",
                "lock" => "locks",
                _ => "events",
            };
            events.slice(name, category, event.thread.raw(), (event.time, end))?;
        }
        write!(events.out, ",\"args\":{{")?;
        for (number, field) in kind.fields.iter().enumerate() {
            write!(events.out, "{}", if number > 0 { "," } else { "" })?;
            json::text(events.out, &field.name)?;
            write!(events.out, ":")?;
            match table.field(row, number) {
                Some(FieldValue::Integer(value)) => write!(events.out, "{value}")?,
                Some(FieldValue::Real(value)) if value.is_finite() => {
                    write!(events.out, "{value}")?;
                }
                Some(FieldValue::Text(id)) => json::text(events.out, profile.strings.get(id))?,
                Some(FieldValue::Thread(ThreadId::UNKNOWN)) => write!(events.out, "null")?,
                Some(FieldValue::Thread(id)) => json::text(events.out, &profile.thread_name(id))?,
                Some(FieldValue::Context(id)) => {
                    json::text_or_null(events.out, profile.innermost_name(id).as_deref())?;
                }
                _ => write!(events.out, "null")?,
            }
        }
        write!(events.out, "}}}}")?;
    }
    Ok(())
}
