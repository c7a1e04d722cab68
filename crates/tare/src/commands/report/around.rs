//! `tare report --around gc:17`: what ran, was allocated and was waited for before an event and in
//! it, on one page.

use super::pauses::time;
use crate::cli::{ReportArgs, ReportFormat};
use crate::figures::{fit, percent, value, wrap};
use crate::term::{self, BOLD, DIM, plain};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::{Around, Comings, EventRef, Moment, NoEvent, Pauses, site_in_words};
use tare_profile::{EventKind, Profile, Unit};

/// Lines of each list, unless told otherwise.
const LINES: usize = 5;

/// Finds the event in a recording.
pub fn find(profile: &Profile, args: &ReportArgs, event: &EventRef) -> Result<Around> {
    let before = args.before.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    match Around::of(profile, event, before) {
        Ok(around) => Ok(around),
        Err(NoEvent::Kind(kinds)) if kinds.is_empty() => {
            bail!("the recording has no {:?} event, and no other event either", event.kind)
        }
        Err(NoEvent::Kind(kinds)) => {
            bail!("the recording has no {:?} event; it has {}", event.kind, kinds.join(", "))
        }
        Err(NoEvent::Number(last)) => {
            bail!("there is no {event}: the last one of its kind is {}:{last}", event.kind)
        }
    }
}

/// Everything on the time around an event.
pub fn show(profile: &Profile, around: &Around, args: &ReportArgs) -> Result<()> {
    let moment = Moment::of(profile, &around.window, args.lines.unwrap_or(LINES))?;
    let pauses = Pauses::of(profile, Some(&around.window));
    match args.format {
        ReportFormat::Json => term::json(&json(profile, around, &moment, pauses.as_ref())),
        ReportFormat::Text => {
            let width = term::width().unwrap_or(usize::MAX);
            let mut text = Vec::new();
            let page = Page { profile, around, moment: &moment, args, width };
            page.write(&mut text, pauses.as_ref())?;
            term::show(&text, !args.no_pager)
        }
        ReportFormat::HprofText => bail!("--around is told as text or as JSON, not as hprof-text"),
    }
}

struct Page<'a> {
    profile: &'a Profile,
    around: &'a Around,
    moment: &'a Moment,
    args: &'a ReportArgs,
    width: usize,
}

impl Page<'_> {
    fn write(&self, out: &mut Vec<u8>, pauses: Option<&Pauses>) -> Result<()> {
        let Around { event, time: at, window, told } = self.around;
        let told = if told.is_empty() { String::new() } else { format!(" ({})", plain(told)) };
        let head = format!(
            "{event}{told} lasted {} at {:.3} s. This is the {} before it, and the event itself.",
            time(at.end - at.start),
            at.start as f64 / 1e9,
            time(at.start - window.start),
        );
        for line in wrap(&head, self.width) {
            writeln!(out, "{line}")?;
        }
        self.ran(out)?;
        self.allocated(out)?;
        self.waited(out)?;
        self.events(out, pauses)?;
        let file = super::quoted(&self.args.file);
        let (from, to) = (window.start / 1_000_000, window.end.div_ceil(1_000_000));
        writeln!(
            out,
            "\n{DIM}All of that time:  tare report {file} --time {from}ms..{to}ms{DIM:#}"
        )?;
        Ok(())
    }

    fn title(&self, out: &mut Vec<u8>, title: &str, rest: &str) -> Result<()> {
        Ok(writeln!(out, "\n{BOLD}{title}{BOLD:#}{DIM}  {rest}{DIM:#}")?)
    }

    fn line(&self, out: &mut Vec<u8>, share: f64, amount: &str, name: &str) -> Result<()> {
        let room = self.width.saturating_sub(24).max(12);
        Ok(writeln!(out, "  {} {amount:>12}  {}", percent(share), fit(name, room))?)
    }

    fn ran(&self, out: &mut Vec<u8>) -> Result<()> {
        let Some(ran) = &self.moment.ran else {
            return self.title(out, "What ran", "not recorded: record with --cpu or --wall");
        };
        let unit = self.profile.series(ran.metric).info().kind.unit();
        let share = |part: i64| part as f64 / ran.total.max(1) as f64;
        let all = match ran.total {
            0 => "no sample is from that time".to_owned(),
            total => value(total, unit),
        };
        self.title(out, "What ran", &all)?;
        for (name, own) in &ran.methods {
            self.line(out, share(*own), &value(*own, unit), name)?;
        }
        for thread in ran.threads.iter().filter(|thread| thread.value > 0).take(LINES) {
            let name = format!("thread {:?}", self.profile.thread_name(thread.thread));
            self.line(out, share(thread.value), &value(thread.value, unit), &plain(&name))?;
        }
        Ok(())
    }

    fn allocated(&self, out: &mut Vec<u8>) -> Result<()> {
        let Some(memory) = &self.moment.allocated else {
            return self.title(out, "What was allocated", "not recorded: record with --alloc");
        };
        let bytes = |bytes: i64| value(bytes, Unit::Bytes);
        self.title(out, "What was allocated", &bytes(memory.allocated.bytes))?;
        let sites = memory.sites.iter().filter(|site| site.allocated.bytes > 0);
        for site in sites.take(self.args.lines.unwrap_or(LINES)) {
            let share = site.allocated.bytes as f64 / memory.allocated.bytes.max(1) as f64;
            let name = site_in_words(&site.name);
            self.line(out, share, &bytes(site.allocated.bytes), &name)?;
        }
        Ok(())
    }

    fn waited(&self, out: &mut Vec<u8>) -> Result<()> {
        let Some(locks) = &self.moment.waited else {
            return self.title(out, "What was waited for", "not recorded: record with --lock");
        };
        let total = locks.blocked().total;
        self.title(out, "What was waited for", &time(total))?;
        for lock in locks.locks.iter().take(self.args.lines.unwrap_or(LINES)) {
            let share = lock.sum.total as f64 / total.max(1) as f64;
            self.line(out, share, &time(lock.sum.total), &lock.name)?;
        }
        Ok(())
    }

    /// What else happened.
    fn events(&self, out: &mut Vec<u8>, pauses: Option<&Pauses>) -> Result<()> {
        let window = &self.around.window;
        let mut told = Vec::new();
        if let Some(pauses) = pauses {
            let of = |count: usize, what: &str| format!("{count} {what}");
            told.push(of(pauses.collections.len(), "pauses for collections"));
            let safepoints: u64 = pauses.safepoints.iter().map(|one| one.count).sum();
            told.push(format!("{safepoints} safepoints, {} in all", time(pauses.stopped())));
        }
        let loads = count(self.profile, &EventKind::class_load().name, window);
        if loads > 0 {
            told.push(format!("{loads} class loads"));
        }
        if let Some(comings) = Comings::of(self.profile, Some(window)) {
            told.push(format!("{} threads started, {} ended", comings.started, comings.ended));
        }
        if told.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{BOLD}What else happened{BOLD:#}")?;
        for line in wrap(&told.join(", "), self.width.saturating_sub(2)) {
            writeln!(out, "{DIM}  {line}{DIM:#}")?;
        }
        Ok(())
    }
}

fn count(profile: &Profile, kind: &str, time: &std::ops::Range<u64>) -> usize {
    let tables = profile.all_events().filter(|(_, table)| table.kind().name == kind);
    let events = tables.flat_map(|(_, table)| table.events());
    events.filter(|event| time.contains(&event.time)).count()
}

fn json(profile: &Profile, around: &Around, moment: &Moment, pauses: Option<&Pauses>) -> Value {
    let mut root = json!({
        "event": around.event.to_string(),
        "told": around.told,
        "time_ns": around.time.start,
        "duration_ns": around.time.end - around.time.start,
        "from_ns": around.window.start,
        "to_ns": around.window.end,
    });
    if let Some(ran) = &moment.ran {
        let methods = ran.methods.iter().map(|(name, own)| json!({ "name": name, "self": own }));
        let threads = ran.threads.iter().map(|share| {
            json!({
                "name": profile.thread_name(share.thread),
                "value": share.value,
                "top": share.top.as_ref().map(|(label, _)| &label.text),
            })
        });
        root["ran"] = json!({
            "metric": super::json::metric(profile.series(ran.metric).info()),
            "total": ran.total,
            "methods": methods.collect::<Value>(),
            "threads": threads.collect::<Value>(),
        });
    }
    if let Some(memory) = &moment.allocated {
        root["allocated"] = super::sites::json(memory);
    }
    if let Some(locks) = &moment.waited {
        root["waited"] = super::locks::json(locks);
    }
    if let Some(pauses) = pauses {
        root["pauses"] = super::pauses::json(pauses);
    }
    root
}
