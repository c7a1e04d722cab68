//! Classes: why they were loaded, by which loaders, what they cost, which are gone; for people and
//! as JSON.

use super::Report;
use crate::figures::{fit, grouped, percent, several, value, wrap};
use crate::term::{BOLD, DIM, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use tare_analysis::{ClassCheck, ClassCosts, Classes, LoadSum};
use tare_profile::Unit;

/// Lines of a list where nothing else is asked for, and on a page that is to be short.
const LINES: usize = 8;
const FEW: usize = 3;

/// From this difference on, what the JVM has measured and what is told here are shown both.
const DIFFERENCE: f64 = 0.05;

pub fn is_of_classes(report: &Report<'_>) -> bool {
    tare_analysis::is_of_classes(&report.info().kind)
}

pub fn print(out: &mut Vec<u8>, report: &Report<'_>, width: usize, brief: bool) -> Result<()> {
    let Some(classes) = &report.classes else { return Ok(()) };
    let width = width.min(160);
    let most = match report.args.lines {
        Some(lines) => lines,
        None if report.args.classes => report.args.top(),
        None if brief => FEW,
        None => LINES,
    };
    head(out, classes, width)?;
    start_up(out, classes)?;
    let title = "Why they were loaded";
    sums(out, title, &classes.causes, classes, most, width)?;
    dearest(out, classes, most, width)?;
    if brief {
        return Ok(());
    }
    if classes.sources.len() > 1 {
        sums(out, "Where they come from", &classes.sources, classes, most, width)?;
    }
    loaders(out, classes, most, width)?;
    duplicates(out, classes, most, width)
}

fn time(nanos: u64) -> String {
    value(i64::try_from(nanos).unwrap_or(i64::MAX), Unit::Nanoseconds)
}

fn duration(time: Duration) -> String {
    value(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX), Unit::Nanoseconds)
}

fn count(number: u64) -> String {
    grouped(i64::try_from(number).unwrap_or(i64::MAX))
}

fn head(out: &mut Vec<u8>, classes: &Classes, width: usize) -> Result<()> {
    let mut text = format!("{} loaded", several(classes.loads, "class"));
    if classes.has_costs {
        let ClassCosts { search, define, link, verify } = classes.cost;
        text += &format!(
            " in {}: {} searching, {} defining, {} linking, {} verifying",
            time(classes.cost.sum()),
            time(search),
            time(define),
            time(link),
            time(verify)
        );
    }
    text += &format!("; {} unloaded", count(classes.unloads));
    if classes.present > 0 {
        text += &format!("; {} were there before", count(classes.present));
    }
    for (at, line) in wrap(&text, width.saturating_sub(9)).iter().enumerate() {
        let title = if at == 0 { "\nClasses" } else { "       " };
        writeln!(out, "{BOLD}{title}{BOLD:#}  {DIM}{line}{DIM:#}")?;
    }
    for text in differences(&classes.check) {
        for line in wrap(&text, width.saturating_sub(2)) {
            writeln!(out, "{DIM}  {line}{DIM:#}")?;
        }
    }
    Ok(())
}

/// Where the JVM itself has counted or measured something else.
fn differences(check: &ClassCheck) -> Vec<String> {
    let mut texts = Vec::new();
    let counts = [("loaded", check.loads), ("unloaded", check.unloads)];
    for (what, counts) in counts {
        if let Some((ours, theirs)) = counts.filter(|(ours, theirs)| ours != theirs) {
            texts.push(format!(
                "the JVM itself has counted {} {what}, {} are told here",
                several(theirs, "class"),
                count(ours)
            ));
        }
    }
    if let Some(expected) = check.expected() {
        let (ours, theirs) = (check.told.as_secs_f64(), expected.as_secs_f64());
        if (ours - theirs).abs() > DIFFERENCE * theirs.max(ours) {
            texts.push(format!(
                "the JVM itself has measured {}, of which {} belong to no class that is known",
                duration(expected),
                duration(expected.saturating_sub(check.told)),
            ));
        }
    }
    if check.shared > check.told / 20 {
        texts.push(format!(
            "{} were told while several threads loaded classes, and may be another class's",
            duration(check.shared)
        ));
    }
    texts
}

fn start_up(out: &mut Vec<u8>, classes: &Classes) -> Result<()> {
    if classes.start_up.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}Start-up{BOLD:#}  {DIM}since the first class was loaded{DIM:#}")?;
    let titles = ["the first", "classes", "loading", "on one thread"];
    let [until, loads, all, busiest] = titles;
    writeln!(out, "{DIM}{until:>11} {loads:>9} {all:>10} {busiest:>15}{DIM:#}")?;
    for step in &classes.start_up {
        let share = percent(step.busiest as f64 / step.until.max(1) as f64);
        let (loading, busiest) = match classes.has_costs {
            true => (time(step.time), format!("{} {}", time(step.busiest), share)),
            false => ("?".to_owned(), "?".to_owned()),
        };
        let until = time(step.until);
        writeln!(out, "{until:>11} {:>9} {loading:>10} {busiest:>18}", count(step.loads))?;
    }
    if !classes.before.is_zero() {
        let before = duration(classes.before);
        writeln!(out, "{DIM}  before that the JVM took {before} to load its own{DIM:#}")?;
    }
    Ok(())
}

fn sums(
    out: &mut Vec<u8>,
    title: &str,
    sums: &[LoadSum],
    classes: &Classes,
    most: usize,
    width: usize,
) -> Result<()> {
    if sums.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}{title}{BOLD:#}")?;
    let all = classes.cost.sum();
    let [cost, share, loads] = ["time", "of it", "classes"];
    writeln!(out, "{DIM}{cost:>10} {share:>8} {loads:>9}{DIM:#}")?;
    for sum in sums.iter().take(most) {
        let example = format!(" (such as {})", short(&sum.example));
        let room = width.saturating_sub(31).max(12);
        let text = format!("{}{example}", plain(&sum.name));
        let text = match text.chars().count() > room {
            true => fit(&sum.name, room),
            false => format!("{}{DIM}{example}{DIM:#}", plain(&sum.name)),
        };
        let (cost, share) = cost_of(sum.cost.sum(), all, classes);
        writeln!(out, "{cost:>10} {share:>8} {:>9}  {text}", count(sum.loads))?;
    }
    more(out, sums.len(), most)
}

fn cost_of(nanos: u64, all: u64, classes: &Classes) -> (String, String) {
    match classes.has_costs {
        true => (time(nanos), percent(nanos as f64 / all.max(1) as f64).trim().to_owned()),
        false => ("?".to_owned(), "?".to_owned()),
    }
}

/// A class without its package.
fn short(class: &str) -> String {
    let short = class.rsplit_once('.').map_or(class, |(_, name)| name);
    plain(if short.is_empty() { class } else { short }).into_owned()
}

fn more(out: &mut Vec<u8>, all: usize, most: usize) -> Result<()> {
    if let Some(more @ 1..) = all.checked_sub(most) {
        writeln!(out, "{DIM}  … {more} more; --top N shows them{DIM:#}")?;
    }
    Ok(())
}

fn dearest(out: &mut Vec<u8>, classes: &Classes, most: usize, width: usize) -> Result<()> {
    if classes.dearest.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{BOLD}Dearest classes{BOLD:#}  {DIM}without other classes that they needed{DIM:#}"
    )?;
    let [all, search, define, link, verify] = ["time", "search", "define", "link", "verify"];
    writeln!(out, "{DIM}{all:>10} {search:>9} {define:>9} {link:>9} {verify:>9}{DIM:#}")?;
    for class in classes.dearest.iter().take(most) {
        let ClassCosts { search, define, link, verify } = class.cost;
        let [search, define, link, verify] =
            [search, define, link, verify].map(|nanos| match nanos {
                0 => "–".to_owned(),
                nanos => time(nanos),
            });
        let from = match class.source.as_str() {
            "" => class.loader.as_str(),
            source => source,
        };
        let from = plain(from);
        let room = width.saturating_sub(54 + from.chars().count() + 2).max(16);
        writeln!(
            out,
            "{:>10} {search:>9} {define:>9} {link:>9} {verify:>9}  {}  {DIM}{from}{DIM:#}",
            time(class.cost.sum()),
            fit(&class.class, room),
        )?;
    }
    more(out, classes.dearest.len(), most)
}

fn loaders(out: &mut Vec<u8>, classes: &Classes, most: usize, width: usize) -> Result<()> {
    writeln!(out, "\n{BOLD}Loaders{BOLD:#}")?;
    let titles = ["time", "loaded", "before", "unloaded", "loaders", "alive"];
    let [cost, loads, present, unloads, loaders, alive] = titles;
    writeln!(
        out,
        "{DIM}{cost:>10} {loads:>8} {present:>8} {unloads:>9} {loaders:>8} {alive:>6}{DIM:#}"
    )?;
    for loader in classes.loaders.iter().take(most) {
        let room = width.saturating_sub(57).max(12);
        let cost = match classes.has_costs {
            true => time(loader.cost.sum()),
            false => "?".to_owned(),
        };
        writeln!(
            out,
            "{cost:>10} {:>8} {:>8} {:>9} {:>8} {:>6}  {}",
            count(loader.loads),
            count(loader.present),
            count(loader.unloads),
            count(loader.loaders),
            count(loader.alive),
            fit(&loader.name, room),
        )?;
    }
    more(out, classes.loaders.len(), most)?;
    if classes.loaders.iter().any(|loader| loader.alive > 1) {
        let text = "a loader lives as long as anything refers to it, its classes or their objects; \
                    what keeps it, tells a snapshot of the heap: tare heap JVM loaders";
        for line in wrap(text, width.saturating_sub(2)) {
            writeln!(out, "{DIM}  {line}{DIM:#}")?;
        }
    }
    Ok(())
}

fn duplicates(out: &mut Vec<u8>, classes: &Classes, most: usize, width: usize) -> Result<()> {
    if classes.duplicates.is_empty() {
        return Ok(());
    }
    let number = several(classes.duplicates.len() as u64, "class");
    writeln!(
        out,
        "\n{BOLD}More than once{BOLD:#}  {DIM}{number} that several loaders have{DIM:#}"
    )?;
    writeln!(out, "{DIM}{:>8}{DIM:#}", "loaders")?;
    for one in classes.duplicates.iter().take(most) {
        let names = one.loaders.join(", ");
        let name = plain(&one.class);
        let room = width.saturating_sub(12 + name.chars().count()).max(12);
        let names = fit(&names, room);
        writeln!(out, "{:>8}  {name}  {DIM}{names}{DIM:#}", count(one.loaders.len() as u64))?;
    }
    more(out, classes.duplicates.len(), most)
}

pub fn json(classes: &Classes) -> Value {
    let costs = |cost: ClassCosts| {
        json!({
            "total_ns": cost.sum(),
            "search_ns": cost.search,
            "define_ns": cost.define,
            "link_ns": cost.link,
            "verify_ns": cost.verify,
        })
    };
    let sums = |sums: &[LoadSum]| -> Value {
        let rows = sums.iter().map(|sum| {
            json!({
                "name": sum.name,
                "loads": sum.loads,
                "cost": costs(sum.cost),
                "example": sum.example,
            })
        });
        rows.collect()
    };
    let loaders = classes.loaders.iter().map(|loader| {
        json!({
            "name": loader.name,
            "loaders": loader.loaders,
            "alive": loader.alive,
            "present": loader.present,
            "loads": loader.loads,
            "unloads": loader.unloads,
            "cost": costs(loader.cost),
        })
    });
    let dearest = classes.dearest.iter().map(|class| {
        json!({
            "class": class.class,
            "loader": class.loader,
            "source": Some(&class.source).filter(|source| !source.is_empty()),
            "cause": class.cause,
            "cost": costs(class.cost),
        })
    });
    let duplicates =
        classes.duplicates.iter().map(|one| json!({ "class": one.class, "loaders": one.loaders }));
    let start_up = classes.start_up.iter().map(|step| {
        json!({
            "until_ns": step.until,
            "loads": step.loads,
            "total_ns": step.time,
            "busiest_thread_ns": step.busiest,
        })
    });
    let check = &classes.check;
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    json!({
        "loads": classes.loads,
        "unloads": classes.unloads,
        "present": classes.present,
        "has_costs": classes.has_costs,
        "cost": costs(classes.cost),
        "causes": sums(&classes.causes),
        "sources": sums(&classes.sources),
        "loaders": loaders.collect::<Value>(),
        "dearest": dearest.collect::<Value>(),
        "duplicates": duplicates.collect::<Value>(),
        "start_up": start_up.collect::<Value>(),
        "jvm": {
            "loads": check.loads.map(|(_, theirs)| theirs),
            "unloads": check.unloads.map(|(_, theirs)| theirs),
            "measured_ns": check.measured.map(nanos),
            "own_ns": nanos(check.own),
            "twice_ns": nanos(check.twice),
            "shared_ns": nanos(check.shared),
            "before_ns": nanos(classes.before),
        },
    })
}
