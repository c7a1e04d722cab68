//! How long single calls took, by method, for people; by method and context as JSON.

use super::Report;
use super::page::name;
use super::slowest::path;
use crate::figures::value;
use crate::term::{BOLD, DIM};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use tare_analysis::{CallLengths, LabelKind, Lengths};
use tare_profile::{MethodKind, Profile, Unit};

/// Columns before a name.
const FIGURES: usize = 2 + 12 + 11 + 11 + 11 + 2;

/// Of the methods that take most with all they called.
pub fn print(out: &mut impl Write, report: &Report<'_>, width: usize) -> Result<()> {
    if report.lengths.is_empty() {
        return Ok(());
    }
    let profile = report.profile;
    let named = report.lengths.by_method.iter();
    let by_name: HashMap<String, Lengths> =
        named.map(|(method, lengths)| (profile.method_name(*method), *lengths)).collect();
    let mut hot: Vec<_> = report.hot.iter().filter(|hot| hot.total[0] != 0).collect();
    hot.sort_by_key(|hot| -i128::from(hot.total[0]));
    let found = hot.iter().filter_map(|hot| {
        let text = &report.tree.label(hot.label).text;
        by_name.get(text).map(|lengths| (text, *lengths))
    });
    let found: Vec<_> = found.take(report.args.top()).collect();
    if found.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}Methods, by how long a call took{BOLD:#}")?;
    writeln!(
        out,
        "{DIM}{:>14} {:>10} {:>10} {:>10}  with all it called{DIM:#}",
        "~ calls", "median", "90 %", "99 %"
    )?;
    let time = |nanos| value(nanos, Unit::Nanoseconds);
    for (text, lengths) in found {
        let Lengths { calls, p50, p90, p99 } = lengths;
        writeln!(
            out,
            "{:>14} {:>10} {:>10} {:>10}  {}",
            value(calls, Unit::Count),
            time(p50),
            time(p90),
            time(p99),
            name(LabelKind::Method(MethodKind::Java), text, width.saturating_sub(FIGURES).max(12)),
        )?;
    }
    Ok(())
}

pub fn json(profile: &Profile, all: &CallLengths) -> Value {
    let figures = |lengths: &Lengths, mut of: Value| {
        let Lengths { calls, p50, p90, p99 } = lengths;
        of["calls"] = json!(calls);
        of["p50_ns"] = json!(p50);
        of["p90_ns"] = json!(p90);
        of["p99_ns"] = json!(p99);
        of
    };
    let mut methods: Vec<_> = all.by_method.iter().collect();
    methods.sort_by_key(|(method, _)| method.index());
    let methods = methods
        .into_iter()
        .map(|(method, lengths)| figures(lengths, json!({ "name": profile.method_name(*method) })));
    let contexts = all
        .by_context
        .iter()
        .map(|(context, lengths)| figures(lengths, json!({ "stack": path(profile, *context) })));
    json!({
        "methods": methods.collect::<Vec<_>>(),
        "contexts": contexts.collect::<Vec<_>>(),
    })
}
