//! The same for scripts: tables as text, or one JSON object a line, every few seconds.

use super::watch::Watch;
use crate::cli::TopArgs;
use crate::interrupt;
use crate::term::{self, BOLD, DIM, plain};
use anyhow::{Result, bail};
use serde_json::{Map, Value as Json, json};
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tare_top::{Column, Gauge, History, Page, Row, Snapshot, Standing, Table, Value, Wanted};

const EVERY: Duration = Duration::from_secs(5);
const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(50);

/// Columns that nobody can fill who presses no key.
const BY_HAND: [&str; 2] = ["calls_per_second", "mean"];

pub fn run(args: &TopArgs, watch: &mut Watch, stop: &AtomicBool) -> Result<()> {
    let every = args.every.unwrap_or(EVERY).max(SECOND);
    let last = args.last.unwrap_or(every);
    let span = u64::try_from(last.as_nanos()).unwrap_or(u64::MAX);
    let wanted = Wanted { pages: Page::ALL.to_vec(), selected: None, span };
    let times = if args.once { Some(1) } else { args.count };
    let mut printed = 0;
    while times.is_none_or(|times| printed < times) {
        // A file of a second is there a moment after it.
        let first = if printed == 0 { Duration::from_millis(500) } else { Duration::ZERO };
        if !wait(watch, every + first, stop) {
            break;
        }
        let snapshot = watch.snapshot(&wanted);
        let standing = watch.standing();
        match args.json {
            true => print_json(watch, &snapshot, &standing, args.rows)?,
            false => print_text(watch, &snapshot, &standing, args.rows)?,
        }
        printed += 1;
    }
    match watch.standing() {
        Standing::Ended(why) if printed == 0 => bail!(why),
        Standing::Ended(why) if !args.json => {
            errln!("{DIM}{}{DIM:#}", plain(&why));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Second by second, until it is time; whether there is still something to print.
fn wait(watch: &mut Watch, length: Duration, stop: &AtomicBool) -> bool {
    let began = Instant::now();
    let mut next = began + SECOND.min(length);
    loop {
        if interrupt::is_set(stop) || watch.feed.is_over() {
            return false;
        }
        if Instant::now() >= next {
            watch.second();
            if began.elapsed() >= length {
                return true;
            }
            next = (next + SECOND).min(began + length);
        }
        std::thread::sleep(STEP);
    }
}

fn shown(columns: &[Column]) -> impl Iterator<Item = (usize, &Column)> {
    columns.iter().enumerate().filter(|(_, column)| !BY_HAND.contains(&column.id))
}

/// What there is of a row, with what a thread does now.
fn value_of(watch: &Watch, column: &Column, row: &Row, at: usize) -> Value {
    match (&row.values[at], row.tid) {
        (Value::Text(text), Some(tid)) if column.id == "state" && text.is_empty() => {
            Value::Text(watch.state(tid).to_owned())
        }
        (value, _) => value.clone(),
    }
}

/// The busiest first, as they are on the screen.
fn rows_of(page: Page, table: &Table, most: usize) -> Vec<&Row> {
    let mut rows: Vec<&Row> = table.rows.iter().collect();
    if matches!(page, Page::Methods | Page::Threads | Page::Locks) {
        let first = |row: &Row| row.values.first().and_then(Value::number).unwrap_or(0.0);
        rows.sort_by(|a, b| first(b).total_cmp(&first(a)));
    }
    rows.truncate(most);
    rows
}

/// A promise to scripts: fields are added, never renamed. Shares are of one, sizes bytes, times
/// nanoseconds.
fn print_json(watch: &Watch, shown_: &Snapshot, standing: &Standing, most: usize) -> Result<()> {
    let jvm = &watch.feed.jvm;
    let history = &watch.model.history;
    let points = (shown_.seconds.round() as usize).max(1);
    let (state, why) = match standing {
        Standing::Beginning => ("beginning", None),
        Standing::Live => ("live", None),
        Standing::Waiting(why) => ("waiting", Some(why.as_str())),
        Standing::Ended(why) => ("ended", Some(why.as_str())),
    };
    let mut object = json!({
        "pid": jvm.pid,
        "name": jvm.name(),
        "standing": state,
        "why": why,
        "seconds": shown_.seconds,
        "samples": shown_.samples,
        "cpu": history.mean(Gauge::Cpu, points),
        "heap_bytes": history.last().heap,
        "allocated_per_second": history.mean(Gauge::Alloc, points),
        "gc_share": history.mean(Gauge::Gc, points),
        "blocked_threads": history.mean(Gauge::Blocked, points),
        "tare_cpu": history.mean(Gauge::Tare, points),
    });
    for page in Page::ALL {
        let table = &shown_.tables[page.number()];
        let of_row = |row: &Row| -> Json {
            let fields = shown(table.columns).map(|(at, column)| {
                let value = match value_of(watch, column, row, at) {
                    Value::Text(text) => text.into(),
                    value => value.number().map_or(Json::Null, Json::from),
                };
                (column.id.to_owned(), value)
            });
            Json::Object(fields.collect::<Map<_, _>>())
        };
        object[page.id()] = rows_of(page, table, most).into_iter().map(of_row).collect();
    }
    let mut out = term::stdout();
    writeln!(out, "{object}")?;
    Ok(out.flush()?)
}

fn print_text(watch: &Watch, snapshot: &Snapshot, standing: &Standing, most: usize) -> Result<()> {
    let mut out = term::stdout();
    let jvm = &watch.feed.jvm;
    let history = &watch.model.history;
    let points = (snapshot.seconds.round() as usize).max(1);
    let known = |gauge: Gauge| of_gauge(history, gauge, points);
    let gauges = Gauge::ALL.map(|gauge| format!("{} {}", gauge.name(), known(gauge)));
    writeln!(
        out,
        "{BOLD}{} {}{BOLD:#}  last {:.0} s  {}",
        jvm.pid,
        plain(jvm.name()),
        snapshot.seconds,
        gauges.join("  ")
    )?;
    if let Standing::Waiting(why) | Standing::Ended(why) = standing {
        writeln!(out, "{}", plain(why))?;
    }
    for page in Page::ALL {
        let table = &snapshot.tables[page.number()];
        let words = &snapshot.words[page.number()];
        writeln!(out, "\n{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}", page.title(), plain(words))?;
        let rows = rows_of(page, table, most);
        if rows.is_empty() {
            writeln!(out, "  none")?;
            continue;
        }
        let last = shown(table.columns).last().map_or(0, |(at, _)| at);
        let line = |cells: &dyn Fn(usize, &Column) -> String| -> String {
            let cells = shown(table.columns).map(|(at, column)| {
                let (text, width) = (cells(at, column), usize::from(column.width));
                match width {
                    0 if at == last => text,
                    0 => format!("{:<40}", crate::figures::fit(&text, 40)),
                    _ if matches!(column.id, "state" | "kind" | "loader") => {
                        format!("{:<width$}", crate::figures::fit(&text, width))
                    }
                    _ => format!("{text:>width$}"),
                }
            });
            cells.collect::<Vec<_>>().join("  ")
        };
        writeln!(out, "{DIM}{}{DIM:#}", line(&|_, column| column.title.to_owned()))?;
        for row in rows {
            let text = |at: usize, column: &Column| {
                plain(&value_of(watch, column, row, at).shown()).into_owned()
            };
            writeln!(out, "{}", line(&text))?;
        }
    }
    writeln!(out)?;
    Ok(out.flush()?)
}

fn of_gauge(history: &History, gauge: Gauge, points: usize) -> String {
    let value = match gauge {
        Gauge::Heap => history.last().heap,
        _ => history.mean(gauge, points),
    };
    let Some(value) = value else { return "–".to_owned() };
    match gauge {
        Gauge::Cpu | Gauge::Tare | Gauge::Gc => format!("{:.1} %", value * 100.0),
        Gauge::Heap => Value::Bytes(value).shown(),
        Gauge::Alloc => Value::BytesRate(value).shown(),
        Gauge::Blocked => format!("{value:.1} threads"),
    }
}
