//! The lists of hot methods, one line each, with what it takes itself or with all it called.

use super::Report;
use super::page::{NARROW, name};
use crate::cli::By;
use crate::figures::{percent, value};
use crate::term::{BOLD, DIM, plain};
use anstyle::Style;
use anyhow::Result;
use std::collections::HashMap;
use std::io::Write;
use tare_analysis::{Drawn, Filter, Hot, LabelId, NATIVE_THREADS, Tree, hot_list, passing_on};
use tare_profile::facts::keys;
use tare_profile::{Estimate, Unit, ValueKind};

/// A method of which less than this share is outside of Java is a Java method, and nothing is said.
const OUTSIDE: f64 = 0.2;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Itself,
    WithCalled,
}

/// A column: its title, and how wide it is at least where there is room.
type Column = (String, usize);

pub fn print(
    out: &mut impl Write,
    report: &Report<'_>,
    outside: &Outside,
    which: Which,
    width: usize,
) -> Result<()> {
    let by = |hot: &Hot| if which == Which::Itself { hot.own[0] } else { hot.total[0] };
    let tree = &report.tree;
    let by_site = report.sites().is_some();
    let is_listed = |hot: &&Hot| {
        let label = tree.label(hot.label);
        // Classes of objects have lists of their own.
        by(hot) != 0 && !label.is_aside() && !(label.is_class() && by_site)
    };
    let mut hot: Vec<&Hot> = report.hot.iter().filter(is_listed).collect();
    hot.sort_by_key(|hot| -i128::from(by(hot)));
    // Of more than there is room for, those that only pass on tell the least.
    let mut passing = 0;
    if which == Which::WithCalled && hot.len() > report.args.top() && !report.args.full {
        let passing_on = passing_on(tree);
        let before = hot.len();
        hot.retain(|hot| !passing_on.contains(&hot.label));
        passing = before - hot.len();
    }
    writeln!(out)?;
    let subject = match report.args.view.by() {
        By::Method => "Methods",
        By::Line | By::Site => "Lines",
        By::Class => "Classes",
        By::Package => "Packages",
        By::Jar => "Modules, jars and libraries",
        By::Loader => "Loaders",
    };
    let what = if which == Which::Itself { "itself" } else { "with all it called" };
    writeln!(out, "{BOLD}{subject}, by what each takes {what}{BOLD:#}")?;
    let table = Table::of(report, which, width);
    let (rows, doubtful) = table.rows(hot.iter().take(report.args.top()));
    let widths = table.widths(&rows);
    let aligned = |cells: &[String]| {
        let cells = cells.iter().zip(&widths);
        cells.map(|(cell, width)| format!("{cell:>width$}")).collect::<String>()
    };
    let titles: Vec<String> = table.columns.iter().map(|(title, _)| title.clone()).collect();
    writeln!(out, "{DIM}{}{DIM:#}", aligned(&titles))?;
    for (label, cells, style) in &rows {
        let line = aligned(cells);
        let mark = match which {
            Which::Itself => outside.mark(*label),
            Which::WithCalled => String::new(),
        };
        let taken = line.chars().count() + 2 + mark.chars().count();
        let label = tree.label(*label);
        let name = name(label.kind, &label.text, width.saturating_sub(taken).max(12));
        writeln!(out, "{style}{line}{style:#}  {name}{DIM}{mark}{DIM:#}")?;
    }
    if doubtful > 0 {
        let hint = match table.joined {
            true => "more samples help",
            false => "record with --cpu",
        };
        writeln!(
            out,
            "{DIM}  grey: the true value may be half of it or less; {hint} (docs/guide/times.md){DIM:#}"
        )?;
    }
    if let Some(more @ 1..) = hot.len().checked_sub(report.args.top()) {
        writeln!(out, "{DIM}  … {more} more; --top N shows them{DIM:#}")?;
    }
    if passing > 0 {
        writeln!(out, "{DIM}  … {passing} only call one that is here; --full lists them{DIM:#}")?;
    }
    if which == Which::Itself
        && let Some(text) = not_java(report)
    {
        writeln!(out, "  {}", plain(&text))?;
    }
    Ok(())
}

/// What threads that run no Java took, in one line.
fn not_java(report: &Report<'_>) -> Option<String> {
    let parts = &report.aside?.parts;
    let share = |value: i64| percent(report.tree.share(value)).trim().to_owned();
    let of_jvm: Vec<&(&str, i64)> = parts.iter().filter(|(p, _)| *p != NATIVE_THREADS).collect();
    let mut said = Vec::new();
    if !of_jvm.is_empty() {
        let named: Vec<String> =
            of_jvm.iter().map(|(part, value)| format!("{part} {}", share(*value))).collect();
        said.push(format!("JVM itself: {}", named.join(", ")));
    }
    let native = parts.iter().find(|(part, _)| *part == NATIVE_THREADS);
    said.extend(native.map(|(part, value)| format!("{part} {}", share(*value))));
    (!said.is_empty()).then(|| said.join("; "))
}

/// The columns of a list, and what they are made of.
struct Table<'a> {
    report: &'a Report<'a>,
    which: Which,
    narrow: bool,
    calls: bool,
    per_call: bool,
    joined: bool,
    columns: Vec<Column>,
}

/// A line: its label, its cells, and how it looks.
type Line = (LabelId, Vec<String>, Style);

impl<'a> Table<'a> {
    fn of(report: &'a Report<'a>, which: Which, width: usize) -> Self {
        let calls = report.tree.metrics() > 1;
        let per_call = calls && report.info().kind.unit() == Unit::Nanoseconds;
        let joined = report.bounds.is_some_and(|bounds| bounds.joined.is_some());
        // Times by probes are estimates, and how good they are is not known.
        let followed = report.profile.run.facts.get(keys::FOLLOWED_ONE_IN).is_some();
        let estimated = report.info().estimate == Estimate::Compensated && !joined || followed;
        // Where there are many columns and little room, names need it more than the other share.
        let narrow = width < NARROW && calls || report.sites().is_some();
        let mut table = Table { report, which, narrow, calls, per_call, joined, columns: vec![] };
        let mut add = |title: &str, width| table.columns.push((title.to_owned(), width));
        if !narrow || which == Which::Itself {
            add("itself", 9);
        }
        if !narrow || which == Which::WithCalled {
            add("total", 9);
        }
        add(if estimated { "~ value" } else { "value" }, 12);
        if joined || report.drawn.is_some() {
            add("±", 10);
        }
        if calls {
            add(if followed { "~ calls" } else { "calls" }, 12);
        }
        if per_call {
            add("per call", 10);
        }
        table
    }

    /// The lines, and how many of them are doubtful.
    fn rows<'h>(&self, hot: impl Iterator<Item = &'h &'h Hot>) -> (Vec<Line>, usize) {
        let mut doubtful = 0;
        let rows = hot.map(|hot| {
            let (cells, is_doubtful) = self.cells(hot);
            doubtful += usize::from(is_doubtful);
            (hot.label, cells, if is_doubtful { DIM } else { Style::new() })
        });
        let rows = rows.collect();
        (rows, doubtful)
    }

    fn cells(&self, hot: &Hot) -> (Vec<String>, bool) {
        let tree = &self.report.tree;
        let own = self.which == Which::Itself;
        let of = |metric: usize| if own { hot.own[metric] } else { hot.total[metric] };
        let unit = self.report.info().kind.unit();
        let mut cells = Vec::new();
        if !self.narrow || own {
            cells.push(percent(tree.share(hot.own[0])));
        }
        if !self.narrow || !own {
            cells.push(percent(tree.share(hot.total[0])));
        }
        cells.push(value(of(0), unit));
        let mut doubtful = false;
        if let Some(bounds) = self.report.bounds {
            let (lower, upper) = bounds.interval(of);
            let half = upper.saturating_sub(lower) / 2;
            if self.joined {
                cells.push(value(half, unit));
            }
            doubtful = half > of(0) / 2;
        }
        if let Some(drawn) = self.report.drawn.filter(|_| !self.joined) {
            let variance = if own { hot.own[drawn.own] } else { hot.total[drawn.total] };
            let half = Drawn::half(variance);
            cells.push(value(half, unit));
            doubtful |= half > of(0) / 2;
        }
        if self.calls {
            cells.push(value(hot.own[1], Unit::Count));
        }
        if self.per_call {
            let one = of(0).checked_div(hot.own[1]);
            cells.push(one.map_or_else(String::new, |one| value(one, unit)));
        }
        (cells, doubtful)
    }

    /// As wide as what stands in it, with a gap before it; wider where there is room.
    fn widths(&self, rows: &[Line]) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        let widths = columns.map(|(at, (title, least))| {
            let cells = rows.iter().map(|(_, cells, _)| cells[at].chars().count());
            let widest = cells.max().unwrap_or(0).max(title.chars().count());
            if self.narrow { widest + 2 } else { (*least).max(widest + 1) }
        });
        widths.collect()
    }
}

/// How much of what each label takes itself is not Java's: of the kernel, the JVM, or a library.
pub struct Outside(HashMap<LabelId, (&'static str, f64)>);

impl Outside {
    pub fn of(report: &Report<'_>, filter: &Filter) -> Result<Self> {
        let own: HashMap<LabelId, i64> =
            report.hot.iter().map(|hot| (hot.label, hot.own[0])).collect();
        let mut marks: HashMap<LabelId, (&'static str, f64)> = HashMap::new();
        // By the wall clock most is waiting, which ends in the C library whatever it waits for.
        if report.args.view.java_only || report.info().kind == ValueKind::WallTime {
            return Ok(Outside(marks));
        }
        for (place, series) in report.aside.iter().flat_map(|aside| &aside.outside) {
            // Labels have the same numbers in all trees of one profile and filter.
            let tree = Tree::build(report.profile, &[*series], filter)?;
            for hot in hot_list(&tree) {
                let whole = own.get(&hot.label).copied().unwrap_or(0);
                let share = if whole > 0 { hot.own[0] as f64 / whole as f64 } else { 0.0 };
                let known = marks.get(&hot.label).map_or(OUTSIDE, |(_, share)| *share);
                if share >= known {
                    marks.insert(hot.label, (place, share));
                }
            }
        }
        Ok(Outside(marks))
    }

    fn mark(&self, label: LabelId) -> String {
        match self.0.get(&label) {
            Some((place, share)) => format!("  [{place} {:.0} %]", (share * 100.0).min(100.0)),
            None => String::new(),
        }
    }
}
