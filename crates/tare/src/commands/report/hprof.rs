//! A listing in the shape of the JDK's old hprof agent: THREADs, TRACEs, SITES, CPU SAMPLES (or CPU
//! TIME) and MONITOR TIME, for eyes and scripts that know it. A section appears if the recording
//! has its values.

use super::Report;
use crate::term::{self, plain};
use anyhow::Result;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;
use tare_analysis::{Filter, Grouping, Label, NodeId, Tree};
use tare_profile::{
    ContextId, FieldValue, FrameId, MethodId, MethodKind, Profile, SeriesId, ThreadKind, Unit,
    ValueKind, Wait,
};

/// hprof's own cut-off.
const MIN_SHARE: f64 = 0.0001;
const FIRST_THREAD: u32 = 200_000;
const FIRST_TRACE: usize = 300_000;

pub fn print(report: &Report<'_>) -> Result<()> {
    let mut listing = Listing {
        profile: report.profile,
        filter: Filter { group: Grouping::Line, ..report.args.view.filter().shape() },
        cut_off: report.args.view.min_share.unwrap_or(MIN_SHARE),
        depth: report.args.depth,
        date: report.profile.run.started.map_or_else(String::new, date),
        traces: Vec::new(),
        known: HashMap::new(),
    };
    // What is told by site or by lock has no time beside it.
    let cpu = match report.sites().is_some() || super::locks::is_of_locks(report) {
        true => String::new(),
        false => listing.cpu(&report.metrics)?,
    };
    let sections = [listing.sites()?, cpu, listing.monitors()];
    let out = &mut term::stdout();
    listing.head(out)?;
    for (number, trace) in listing.traces.iter().enumerate() {
        write!(out, "TRACE {}:\n{trace}", FIRST_TRACE + number)?;
    }
    for section in sections {
        write!(out, "{section}")?;
    }
    Ok(())
}

struct Listing<'a> {
    profile: &'a Profile,
    filter: Filter,
    cut_off: f64,
    depth: usize,
    date: String,
    /// The text of each trace; equal ones are one.
    traces: Vec<String>,
    known: HashMap<String, usize>,
}

/// One line of a section, before it has its rank. Those of one trace and name are one line, since
/// traces may be cut.
struct Entry {
    value: i64,
    figures: Vec<i64>,
    trace: usize,
    name: String,
}

impl Listing<'_> {
    fn head(&self, out: &mut impl Write) -> Result<()> {
        let run = &self.profile.run;
        writeln!(out, "JAVA PROFILE 1.0.1, created {}", self.date.trim_start())?;
        writeln!(
            out,
            "\nIn the shape of hprof's text, by tare; values of {}.\n",
            plain(&run.tool)
        )?;
        for (id, thread) in self.profile.threads.iter().skip(1) {
            let number = FIRST_THREAD + id.raw();
            let kind = if thread.kind == ThreadKind::Virtual { ", virtual" } else { "" };
            let name = self.profile.thread_name(id);
            writeln!(out, "THREAD START (id = {number}, name={name:?}{kind})")?;
            if thread.ended.is_some() {
                writeln!(out, "THREAD END (id = {number})")?;
            }
        }
        Ok(())
    }

    fn sites(&mut self) -> Result<String> {
        let find = |kind: ValueKind| {
            let all = self.profile.all_series();
            let mut found = all.filter(|(_, s)| s.info().kind == kind && !s.is_empty());
            found.next().map(|(id, _)| id)
        };
        let columns = [
            find(ValueKind::LiveBytes),
            find(ValueKind::LiveObjects),
            find(ValueKind::AllocatedBytes),
            find(ValueKind::AllocatedObjects),
        ];
        let Some(order) = columns[0].or(columns[2]) else { return Ok(String::new()) };
        let metrics: Vec<SeriesId> =
            std::iter::once(order).chain(columns.into_iter().flatten()).collect();
        let tree = Tree::build(self.profile, &metrics, &self.filter)?;
        let metric_of = |series: Option<SeriesId>| {
            series.and_then(|id| metrics.iter().position(|metric| *metric == id))
        };
        let columns = columns.map(metric_of);
        let mut entries = Vec::new();
        for node in self.worth_showing(&tree) {
            let figure = |column: usize| columns[column].map_or(0, |metric| tree.own(metric, node));
            let label = tree.label_of(node);
            let known = label.method.filter(|_| label.is_class());
            let class = known.map(|class| self.profile.method_name(class));
            let from = tree.parent(node).filter(|_| known.is_some()).unwrap_or(node);
            let mut stack = self.stack(&tree, from);
            // Where every allocation was counted, the class has the line of what allocates it.
            let at = tree.label_of(from);
            if let (Some(_), Some(method), None) = (label.line, at.method, at.line)
                && let Some(first) = stack.first_mut()
            {
                *first = self.method(method, label.line);
            }
            let trace = self.trace(&stack);
            let figures = (0..4).map(figure).collect();
            entries.push(Entry {
                value: tree.own(0, node),
                figures,
                trace,
                name: class.unwrap_or_else(|| "[unknown class]".to_owned()),
            });
        }
        let order = if columns[0].is_some() { "live bytes" } else { "allocated bytes" };
        let title = format!("SITES BEGIN (ordered by {order}){}", self.date);
        let head = "          percent           live          alloc'ed   stack class\n \
                    rank   self  accum     bytes    objs     bytes    objs  trace name";
        Ok(section(&title, head, entries, tree.sum(0), &[9, 7, 9, 7], "SITES END"))
    }

    fn cpu(&mut self, metrics: &[SeriesId]) -> Result<String> {
        let tree = Tree::build(self.profile, metrics, &self.filter)?;
        let unit = self.profile.series(metrics[0]).info().kind.unit();
        let mut entries = Vec::new();
        for node in self.worth_showing(&tree) {
            let own = tree.own(0, node);
            // Beside times hprof has the number of calls; without one, there is the time again.
            let count = if tree.metrics() > 1 { tree.own(1, node) } else { own };
            let trace = self.trace(&self.stack(&tree, node));
            let label = tree.label_of(node);
            let name =
                label.method.map_or_else(|| label.text.clone(), |id| self.profile.method_name(id));
            entries.push(Entry { value: own, figures: vec![count], trace, name });
        }
        let (name, total) = match unit {
            Unit::Nanoseconds => ("CPU TIME (ms)", tree.sum(0) / 1_000_000),
            Unit::Count | Unit::Bytes => ("CPU SAMPLES", tree.sum(0)),
        };
        let title = format!("{name} BEGIN (total = {total}){}", self.date);
        let head = "rank   self  accum   count trace method";
        Ok(section(&title, head, entries, tree.sum(0), &[7], &format!("{name} END")))
    }

    /// How long and how often each lock was waited for that somebody had, by the stack of the wait.
    /// hprof knew monitors only; locks of `java.util.concurrent` are among them here.
    fn monitors(&mut self) -> String {
        let mut waits: HashMap<(ContextId, String), [i64; 2]> = HashMap::new();
        let mut add = |context: ContextId, class: Option<String>, at: usize, value: i64| {
            let (stack, of_stack) = self.without_class(context);
            let class = class.or(of_stack).unwrap_or_else(|| "[unknown monitor]".to_owned());
            let sums = waits.entry((stack, class)).or_default();
            sums[at] = sums[at].saturating_add(value);
        };
        // Sums have the waits that were too short to be told one by one.
        let kinds = [ValueKind::BlockedTime, ValueKind::Contentions];
        let mut summed = false;
        for (_, series) in self.profile.all_series().filter(|(_, s)| s.info().name == "lock") {
            if let Some(at) = kinds.iter().position(|kind| *kind == series.info().kind) {
                summed = true;
                series.rows().for_each(|row| add(row.context, None, at, row.value));
            }
        }
        let tables = self.profile.all_events().map(|(_, table)| table);
        for table in tables.filter(|table| table.kind().name == "lock" && !summed) {
            let text = |row: usize, name: &str| match table
                .field_named(name)
                .and_then(|field| table.field(row, field))
            {
                Some(FieldValue::Text(text)) => self.profile.strings.get(text),
                _ => "",
            };
            for (row, event) in table.events().enumerate() {
                let wait = Wait::from_name(text(row, "operation")).unwrap_or(Wait::MonitorEnter);
                if wait.is_contention() {
                    let class = Some(text(row, "class").to_owned()).filter(|c| !c.is_empty());
                    let time = i64::try_from(event.duration).unwrap_or(i64::MAX);
                    add(event.context, class.clone(), 0, time);
                    add(event.context, class, 1, 1);
                }
            }
        }
        if waits.is_empty() {
            return String::new();
        }
        let total = waits.values().fold(0_i64, |sum, wait| sum.saturating_add(wait[0]));
        let mut waits: Vec<_> = waits.into_iter().collect();
        waits.sort_by(|(a, x), (b, y)| (y[0], a).cmp(&(x[0], b)));
        let mut entries = Vec::new();
        for ((context, class), [value, count]) in waits {
            let frames: Vec<String> =
                self.profile.contexts.frames(context).map(|frame| self.frame(frame)).collect();
            let (trace, name) = (self.trace(&frames), format!("{class} (Java)"));
            entries.push(Entry { value, figures: vec![count], trace, name });
        }
        let title = format!("MONITOR TIME BEGIN (total = {} ms){}", total / 1_000_000, self.date);
        let head = "rank   self  accum   count trace monitor";
        section(&title, head, entries, total, &[7], "MONITOR TIME END")
    }

    /// A stack without the class of an object that it ends with, and that class.
    fn without_class(&self, context: ContextId) -> (ContextId, Option<String>) {
        let leaf = self.profile.contexts.frame(context);
        let method = leaf.map(|frame| self.profile.frames.get(frame).method);
        let is_class = |id: &MethodId| self.profile.methods.get(*id).kind == MethodKind::Class;
        match (method.filter(is_class), self.profile.contexts.parent(context)) {
            (Some(class), Some(above)) => (above, Some(self.profile.method_name(class))),
            _ => (context, None),
        }
    }

    /// Nodes with own values, the largest first.
    fn worth_showing(&self, tree: &Tree) -> Vec<NodeId> {
        let worth = |node: &NodeId| {
            let own = tree.own(0, *node);
            own != 0 && tree.share(own).abs() >= self.cut_off
        };
        let mut nodes: Vec<NodeId> = tree.nodes().filter(worth).collect();
        nodes.sort_by_key(|node| (-i128::from(tree.own(0, *node)), *node));
        nodes
    }

    /// The frames of a node, innermost first.
    fn stack(&self, tree: &Tree, node: NodeId) -> Vec<String> {
        let path = std::iter::successors(Some(node), |at| tree.parent(*at));
        let path = path.take_while(|at| *at != NodeId::ROOT);
        path.map(|at| self.place(tree.label_of(at))).collect()
    }

    fn place(&self, label: &Label) -> String {
        match label.method {
            Some(method) => self.method(method, label.line),
            None => label.text.clone(),
        }
    }

    fn frame(&self, id: FrameId) -> String {
        let frame = self.profile.frames.get(id);
        self.method(frame.method, frame.line)
    }

    fn method(&self, id: MethodId, line: Option<u32>) -> String {
        let method = self.profile.methods.get(id);
        let name = self.profile.method_name(id);
        match (method.kind, self.profile.strings.get(method.file), line) {
            (MethodKind::Special | MethodKind::Class, ..) => name,
            (MethodKind::Native | MethodKind::Kernel, ..) => format!("{name}(Native method)"),
            (_, "", _) => format!("{name}(Unknown Source)"),
            (_, file, None) => format!("{name}({file})"),
            (_, file, Some(line)) => format!("{name}({file}:{line})"),
        }
    }

    /// The number of a trace, which is listed if it is new.
    fn trace(&mut self, frames: &[String]) -> usize {
        let shown = frames.iter().take(self.depth);
        let text = match frames.is_empty() {
            true => "\t<empty>\n".to_owned(),
            false => shown.fold(String::new(), |text, frame| text + "\t" + &plain(frame) + "\n"),
        };
        let next = self.traces.len();
        let number = *self.known.entry(text).or_insert_with_key(|text| {
            self.traces.push(text.clone());
            next
        });
        FIRST_TRACE + number
    }
}

fn section(
    title: &str,
    head: &str,
    entries: Vec<Entry>,
    total: i64,
    widths: &[usize],
    end: &str,
) -> String {
    let mut known: HashMap<(usize, String), usize> = HashMap::new();
    let mut merged: Vec<Entry> = Vec::new();
    for entry in entries {
        let at = *known.entry((entry.trace, entry.name.clone())).or_insert(merged.len());
        match merged.get_mut(at) {
            None => merged.push(entry),
            Some(same) => {
                same.value = same.value.saturating_add(entry.value);
                for (sum, figure) in same.figures.iter_mut().zip(entry.figures) {
                    *sum = sum.saturating_add(figure);
                }
            }
        }
    }
    merged.sort_by_key(|entry| -i128::from(entry.value));
    let mut out = format!("{title}\n{head}\n");
    let share = |value: i64| if total == 0 { 0.0 } else { value as f64 / total as f64 * 100.0 };
    let mut sum = 0_i64;
    for (rank, Entry { value, figures, trace, name }) in (1..).zip(merged) {
        sum = sum.saturating_add(value);
        let figures =
            figures.iter().zip(widths).map(|(figure, width)| format!("{figure:>width$} "));
        let (own, accumulated) = (share(value), share(sum));
        let figures: String = figures.collect();
        // Writing to a String does not fail.
        let name = plain(&name);
        let _ = writeln!(out, "{rank:>4} {own:>5.2}% {accumulated:>5.2}% {figures}{trace} {name}");
    }
    out + end + "\n"
}

/// ` Wed Oct  7 11:38:10 1998`, in UTC, with the blank before it.
fn date(nanos: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = nanos.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let weekday = DAYS[days.rem_euclid(7) as usize];
    // Years are counted from March, so that the leap day is the last one; eras have 400 of them.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + i64::from(month < 2);
    let (hour, minute) = (second / 3600, second % 3600 / 60);
    let month = MONTHS[month as usize];
    format!(" {weekday} {month} {day:>2} {hour:02}:{minute:02}:{:02} {year}", second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_hprofs() {
        for (seconds, text) in [
            (0, " Thu Jan  1 00:00:00 1970"),
            (907_760_290, " Wed Oct  7 11:38:10 1998"),
            (951_782_400, " Tue Feb 29 00:00:00 2000"),
            (1_740_787_199, " Fri Feb 28 23:59:59 2025"),
            (-1, " Wed Dec 31 23:59:59 1969"),
        ] {
            assert_eq!(date(seconds * 1_000_000_000), text);
        }
    }
}
