//! `tare heap JVM histo`: HotSpot's own count of a running JVM, which needs no snapshot. What it
//! costs the program is said before and after.

use super::names::{bytes, number};
use super::{ROWS, take};
use crate::cli::{HeapArgs, HistoBy, Keep};
use crate::figures::{fit, percent, remark_aside};
use crate::term::{self, DIM};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use tare_session::heap::SnapshotPlan;
use tare_session::heap::histogram::{self, ClassCount, Pause};

/// What of `tare heap JVM histo` was asked for.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub by: HistoBy,
    pub live: bool,
    pub snapshot: bool,
}

impl Wanted {
    /// Whether HotSpot's count answers it: of a JVM, and without what only a snapshot has.
    pub fn is_for_hotspot(self, args: &HeapArgs) -> bool {
        let of_snapshots = self.snapshot
            || self.by == HistoBy::Loader
            || args.output.is_some()
            || args.redact
            || args.fallback
            || args.keep != Keep::None;
        !of_snapshots && take::is_jvm(&args.target)
    }
}

pub fn run(args: &HeapArgs, wanted: Wanted) -> Result<()> {
    let jvm = tare_attach::find(&args.target)?;
    let Wanted { by, live, .. } = wanted;
    let (what, pause) = match live {
        true => ("collects its heap and counts what is left", Pause::CollectAndCount),
        false => ("counts its objects, garbage as well", Pause::Count),
    };
    if !args.quiet {
        let pause = take::expected(&jvm, pause, args)?;
        let instead = "A snapshot (--snapshot) stops it for less";
        remark_aside(&format!("JVM {} stands while it {what}{pause}. {instead}", jvm.pid));
    }
    let patience = args.patience.timeout.max(SnapshotPlan::default().limit);
    let counts = histogram::count(&jvm, live, patience)?;
    let at_most = if counts.is_exact { "" } else { "at most " };
    let pause = counts.pause.as_secs_f64() * 1e3;
    if !args.quiet {
        remark_aside(&format!("JVM {} stood for {at_most}{pause:.1} ms", jvm.pid));
    }
    let rows = match by {
        HistoBy::Package => by_package(&counts.rows),
        _ => counts.rows,
    };
    if args.json {
        let most = args.limit.unwrap_or(rows.len());
        return term::json(&rows.iter().take(most).map(|row| json(row, live)).collect::<Value>());
    }
    let width = term::width().unwrap_or(usize::MAX);
    term::show(table(&rows, args.limit.unwrap_or(ROWS), width).as_bytes(), false)
}

fn table(rows: &[ClassCount], most: usize, width: usize) -> String {
    let total = rows.iter().map(|row| row.bytes).sum::<u64>().max(1);
    let mut out = format!("{DIM}     bytes    share      objects  {DIM:#}\n");
    for row in rows.iter().take(most) {
        let share = percent(row.bytes as f64 / total as f64);
        let name = fit(&row.name, width.saturating_sub(35).max(20));
        let (size, objects) = (bytes(row.bytes), number(row.objects));
        let _ = writeln!(out, "{size:>10}  {share} {objects:>12}  {name}");
    }
    if rows.len() > most {
        let rest = number((rows.len() - most) as u64);
        let _ = writeln!(out, "{DIM}{rest} more; -n {} shows all{DIM:#}", rows.len());
    }
    out
}

/// As a dump's, with what HotSpot does not tell left open.
fn json(row: &ClassCount, live: bool) -> Value {
    let of = |wanted: bool, number: u64| wanted.then_some(number);
    json!({
        "name": row.name,
        "objects": of(live, row.objects),
        "bytes": of(live, row.bytes),
        "retained": Value::Null,
        "all_objects": of(!live, row.objects),
        "all_bytes": of(!live, row.bytes),
    })
}

fn by_package(rows: &[ClassCount]) -> Vec<ClassCount> {
    let mut packages: HashMap<&str, ClassCount> = HashMap::new();
    for row in rows {
        let class = row.name.trim_end_matches("[]");
        let is_primitive = class != row.name && class.chars().all(char::is_lowercase);
        // What follows a slash is the number of a hidden class.
        let class = class.split('/').next().unwrap_or(class);
        let name = match class.rsplit_once('.') {
            Some((package, _)) => package,
            None if is_primitive => "(primitive arrays)",
            None => "(no package)",
        };
        let sum = packages.entry(name).or_insert_with(|| ClassCount {
            name: name.to_owned(),
            objects: 0,
            bytes: 0,
        });
        sum.objects += row.objects;
        sum.bytes += row.bytes;
    }
    let mut rows: Vec<ClassCount> = packages.into_values().collect();
    rows.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_summed_up_by_package() {
        let row = |name: &str, objects, bytes| ClassCount { name: name.into(), objects, bytes };
        let rows = [
            row("byte[]", 3, 300),
            row("java.lang.String[]", 1, 40),
            row("java.lang.String", 2, 48),
            row("shop.A$$Lambda/0x7f.1", 1, 16),
            row("Main", 1, 16),
        ];
        let sums = by_package(&rows);
        let names: Vec<_> = sums.iter().map(|row| (&*row.name, row.objects, row.bytes)).collect();
        assert_eq!(
            names,
            [
                ("(primitive arrays)", 3, 300),
                ("java.lang", 3, 88),
                ("(no package)", 1, 16),
                ("shop", 1, 16)
            ]
        );
    }

    #[test]
    fn what_is_not_told_is_null() {
        let row = ClassCount { name: "A".into(), objects: 2, bytes: 32 };
        let live = json(&row, true);
        assert_eq!((&live["bytes"], &live["all_bytes"]), (&32.into(), &Value::Null));
        let all = json(&row, false);
        assert_eq!((&all["bytes"], &all["all_bytes"]), (&Value::Null, &32.into()));
    }
}
