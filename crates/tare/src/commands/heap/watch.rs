//! Snapshots of a JVM now and then, and what grows from one to the next.

use super::diff::{path_json, signed};
use super::names::{bytes, number, way_text};
use super::{read, take};
use crate::cli::HeapArgs;
use crate::term::{self, BOLD, DIM, WARN};
use crate::{figures, interrupt};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};
use tare_heapdump::Level;
use tare_heapdump::analyses::diff::{self, PathChange, Ways};

/// How often one looks for Ctrl-C.
const STEP: Duration = Duration::from_millis(100);

/// Ways that are told after each snapshot.
const ROWS: usize = 5;

/// Growth that was there so often in a row is no chance.
const OFTEN: u32 = 3;

pub fn run(args: &HeapArgs, every: Duration, times: Option<u32>) -> Result<()> {
    if Path::new(&args.target).exists() {
        bail!("{} is a file, which does not grow; name a JVM", args.target);
    }
    if args.output.is_some() {
        bail!("`watch` keeps no snapshots; leave --output away");
    }
    let stop = interrupt::flag()?;
    let began = Instant::now();
    let (mut first, mut last): (Option<Ways>, Option<Ways>) = (None, None);
    let mut in_a_row: HashMap<Vec<String>, u32> = HashMap::new();
    for taken in 0..times.unwrap_or(u32::MAX) {
        // The next one is due by the clock, however long the last one took.
        let due = every.saturating_mul(taken);
        if !wait(began, due, &stop) {
            break;
        }
        let dump = take::open(args, &args.target, None, Some(Arc::clone(&stop)))?;
        // It is not kept, so it has no index.
        let (heap, _) = read(dump, args)?;
        let (ways, held) = (Ways::new(&heap)?, heap.sum(Level::Strong));
        drop(heap);
        let since =
            |old: &Option<Ways>| old.as_ref().map_or_else(Vec::new, |old| diff::paths(old, &ways));
        let (changes, step) = (since(&first), since(&last));
        count(&mut in_a_row, &step);
        let before = first.as_ref().map_or(ways.total, |first| first.total);
        if args.json {
            let most = args.limit.unwrap_or(usize::MAX);
            let rows = changes.iter().take(most).map(|row| {
                let mut value = path_json(row);
                value["grew_in_a_row"] = in_a_row.get(&row.way).copied().unwrap_or(0).into();
                value
            });
            term::json(&json!({
                "seconds": began.elapsed().as_secs_f64(),
                "bytes": held.bytes,
                "objects": held.objects,
                "since_first": rows.collect::<Vec<Value>>(),
            }))?;
        } else {
            let at = term::time(Duration::from_secs(began.elapsed().as_secs().max(1)));
            let (size, count) = (bytes(held.bytes), number(held.objects));
            let change = signed(before, ways.total);
            outln!("{BOLD}after {at}: {size}{BOLD:#} in {count} objects, {change}");
            print(args, &changes, &in_a_row);
        }
        first = first.or_else(|| Some(ways.clone()));
        last = Some(ways);
    }
    Ok(())
}

/// Waits until it is time; `false` if Ctrl-C came first.
fn wait(began: Instant, due: Duration, stop: &AtomicBool) -> bool {
    while began.elapsed() < due && !interrupt::is_set(stop) {
        thread::sleep(STEP.min(due.saturating_sub(began.elapsed())));
    }
    !interrupt::is_set(stop)
}

/// How often in a row each way has grown; one that has not begins anew.
fn count(in_a_row: &mut HashMap<Vec<String>, u32>, step: &[PathChange]) {
    let grown: Vec<&PathChange> = step.iter().filter(|row| row.new > row.old).collect();
    in_a_row.retain(|way, _| grown.iter().any(|row| row.way == *way));
    for row in grown {
        *in_a_row.entry(row.way.clone()).or_default() += 1;
    }
}

fn print(args: &HeapArgs, changes: &[PathChange], in_a_row: &HashMap<Vec<String>, u32>) {
    let width = term::width().unwrap_or(usize::MAX).saturating_sub(14);
    let grown = changes.iter().filter(|row| row.new > row.old);
    for row in grown.take(args.limit.unwrap_or(ROWS)) {
        let often = in_a_row.get(&row.way).copied().unwrap_or(0);
        let change = signed(row.old, row.new);
        let way = way_text(&row.way);
        for (at, line) in figures::wrap(&way, width).iter().enumerate() {
            let change = if at == 0 { change.as_str() } else { "" };
            outln!("  {change:>10}  {line}");
        }
        if often >= OFTEN {
            outln!("  {:>10}  {WARN}grew {often} times in a row{WARN:#}", "");
        } else if often > 0 {
            outln!("  {:>10}  {DIM}grew since the last one{DIM:#}", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_in_a_row_begins_anew_when_it_stops() {
        let change = |name: &str, old, new| PathChange { way: vec![name.to_owned()], old, new };
        let mut rows = HashMap::new();
        count(&mut rows, &[change("a", 1, 2), change("b", 1, 2)]);
        count(&mut rows, &[change("a", 2, 3), change("b", 2, 1)]);
        assert_eq!(rows, HashMap::from([(vec!["a".to_owned()], 2)]));
        count(&mut rows, &[change("b", 1, 4)]);
        assert_eq!(rows, HashMap::from([(vec!["b".to_owned()], 1)]));
    }
}
