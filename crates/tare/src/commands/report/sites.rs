//! Allocation: what stands of it in the head, the lists of what is allocated and of what stays, and
//! the same as JSON.

use super::Report;
use crate::figures::{fit, percent, several, value};
use crate::term::{self, BOLD, DIM, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::{Ages, Amount, LiveGrowth, Memory, Site, SiteBy, SiteName};
use tare_profile::Unit;

/// Lines of a screen whose height nobody knows.
const SCREEN: usize = 24;
/// However much stands above them, the lists have so many lines.
const FEWEST: usize = 3;

/// A cell of a table, and its title.
type Cells = Vec<(&'static str, String)>;

/// What the head says: how much is allocated, how that is known, and what lives.
pub fn told(memory: &Memory) -> Vec<String> {
    let bytes = |bytes: i64| value(bytes, Unit::Bytes);
    let mut said = Vec::new();
    let sum = bytes(memory.allocated.bytes);
    let how = match memory.interval {
        Some(interval) => {
            let last = memory.last_interval.map(|last| format!(", later {}", binary(last)));
            let samples = several(memory.samples, "sample");
            format!("; {samples}, one per {}{}", binary(interval), last.unwrap_or_default())
        }
        None if memory.exact => "; every allocation counted".to_owned(),
        None => String::new(),
    };
    // Files of others may tell of bytes only.
    let objects = |number: i64, per: &str, before: &str| match memory.allocated.objects {
        0 => String::new(),
        _ => format!("{before}{}{per}", roughly(number, "object")),
    };
    said.push(match memory.rate() {
        Some((rate, number)) => {
            let objects = objects(number as i64, "/s", ", ");
            format!("allocated {}/s{objects} ({sum}{how})", bytes(rate as i64))
        }
        None => format!("allocated {sum}{}{how}", objects(memory.allocated.objects, "", " in ")),
    });
    if memory.tracked {
        let Amount { bytes: sum, objects } = memory.live;
        let mut text = format!("alive {} in {}", bytes(sum), roughly(objects, "object"));
        if !memory.followed.is_empty() {
            text.push_str(&format!(" of {}", plain(&memory.followed.join(", "))));
        }
        if let Some(collections) = memory.collections {
            text.push_str(&format!(" after {}", several(collections, "collection")));
        }
        if let Some(LiveGrowth { per_minute, steady }) = memory.grows() {
            let steadily = if steady { " steadily" } else { "" };
            text.push_str(&format!(", growing{steadily} {}/min", bytes(per_minute as i64)));
        }
        if memory.has_much_unproven() {
            text.push_str(&format!("; {} not proven yet", bytes(memory.unproven.bytes)));
        }
        said.push(text);
    }
    said
}

pub fn print(out: &mut Vec<u8>, report: &Report<'_>, memory: &Memory, width: usize) -> Result<()> {
    let staying = memory.staying();
    let above = out.iter().filter(|byte| **byte == b'\n').count();
    let lists = 1 + usize::from(memory.tracked);
    // Each list has an empty line and its titles; below is a prompt.
    let room = screen().saturating_sub(above + 2 * lists + 1) / lists;
    let most = report.args.lines.unwrap_or(room.max(FEWEST));
    let by = match report.args.view.sites() {
        SiteBy::Site => "",
        SiteBy::Line => ", by line",
        SiteBy::Class => ", by class",
        SiteBy::Method | SiteBy::Place => ", by method",
    };
    let allocated: Vec<&Site> = memory.sites.iter().filter(|s| s.allocated.bytes > 0).collect();
    let cells = |site: &Site| {
        let share = site.allocated.bytes as f64 / memory.allocated.bytes.max(1) as f64;
        let mut cells =
            vec![("share", percent(share)), ("bytes", value(site.allocated.bytes, Unit::Bytes))];
        if memory.allocated.objects > 0 {
            cells.push(("objects", short(site.allocated.objects)));
        }
        if memory.tracked {
            cells.push(("lives on", site.survival().map_or_else(String::new, percent)));
        }
        cells
    };
    list(out, &format!("What is allocated{by}"), &allocated, most, width, cells)?;
    if !memory.tracked {
        return Ok(());
    }
    if staying.is_empty() {
        let why = match memory.collections {
            Some(0) => "no collection has told yet what lives",
            _ if memory.exact => "nothing that is watched is known to be alive",
            _ => "nothing that was sampled is known to be alive",
        };
        return Ok(writeln!(out, "\n{BOLD}What stays{BOLD:#}\n{DIM}  {why}{DIM:#}")?);
    }
    let cells = |site: &Site| {
        let share = site.live.bytes as f64 / memory.live.bytes.max(1) as f64;
        let age = site.ages.map_or_else(String::new, |Ages { median, oldest }| {
            if median == oldest { median.to_string() } else { format!("{median}…{oldest}") }
        });
        let growth = site.growth.map_or_else(String::new, |growth| {
            let rate = growth.per_minute as i64;
            let sign = if rate > 0 { "+" } else { "" };
            format!("{sign}{}", value(rate, Unit::Bytes))
        });
        let mut cells = vec![
            ("share", percent(share)),
            ("bytes", value(site.live.bytes, Unit::Bytes)),
            ("objects", short(site.live.objects)),
        ];
        if staying.iter().any(|site| site.ages.is_some()) {
            cells.push(("GCs old", age));
        }
        if memory.growth.is_some() {
            cells.push(("per min", growth));
        }
        cells
    };
    list(out, &format!("What stays{by}"), &staying, most, width, cells)
}

fn list(
    out: &mut Vec<u8>,
    title: &str,
    sites: &[&Site],
    most: usize,
    width: usize,
    cells: impl Fn(&Site) -> Cells,
) -> Result<()> {
    let rows: Vec<(&Site, Cells)> = sites.iter().take(most).map(|s| (*s, cells(s))).collect();
    let Some((_, first)) = rows.first() else { return Ok(()) };
    let wide = |at: usize| {
        let cells = rows.iter().map(|(_, cells)| cells[at].1.chars().count());
        cells.max().unwrap_or(0).max(first[at].0.chars().count()) + 2
    };
    let widths: Vec<usize> = (0..first.len()).map(wide).collect();
    let line = |of: &dyn Fn(usize) -> String| {
        let cells = widths.iter().enumerate();
        cells.map(|(at, width)| format!("{:>width$}", of(at))).collect::<String>()
    };
    let all = sites.len();
    let shown =
        if all > most { format!(" (first {most} of {all}; --top N)") } else { String::new() };
    let titles = line(&|at| first[at].0.to_owned());
    writeln!(out, "\n{DIM}{titles}{DIM:#}  {BOLD}{title}{BOLD:#}{DIM}{shown}{DIM:#}")?;
    let room = width.saturating_sub(widths.iter().sum::<usize>() + 2).max(12);
    for (site, cells) in &rows {
        let figures = line(&|at| cells[at].1.clone());
        writeln!(out, "{figures}  {}", name(&site.name, room))?;
    }
    Ok(())
}

/// `byte[] in Orders.render:42 by Arrays.copyOf`, with what fits: what tells the most stays longest.
fn name(name: &SiteName, room: usize) -> String {
    let length = |text: &str| text.chars().count();
    let (class, place) = match (&name.class, &name.place) {
        (Some(class), Some(place)) => (class, place),
        (Some(only), None) | (None, Some(only)) => return fit(only, room),
        (None, None) => return format!("{DIM}[no stack]{DIM:#}"),
    };
    let (class, place) = (&*plain(class), &*plain(place));
    let by = name.by.as_deref().map_or_else(String::new, |by| format!(" by {}", plain(by)));
    if length(class) + 4 + length(place) + length(&by) <= room {
        return format!("{class} in {place}{DIM}{by}{DIM:#}");
    }
    // Without packages, which classes of the JDK and of one program seldom need; then without the
    // classes around it.
    let simple = class.rsplit('.').next().unwrap_or(class);
    let short = class_and_method(place);
    let inner = |text: &str| text.rsplit('$').next().unwrap_or(text).to_owned();
    let whole = room.saturating_sub(length(simple) + 4).max(8);
    let candidates = [
        (simple.to_owned(), fit(place, whole)),
        (simple.to_owned(), short.clone()),
        (inner(simple), short.clone()),
        (inner(simple), inner(&short)),
    ];
    let fits = |(class, place): &&(String, String)| {
        !place.starts_with('…') && length(class) + 4 + length(place) <= room
    };
    let (class, place) = candidates.iter().find(fits).cloned().unwrap_or_else(|| {
        let class = fit(&inner(simple), room / 2);
        let place = fit(&inner(&short), room.saturating_sub(length(&class) + 4).max(8));
        (class, place)
    });
    let left = room.saturating_sub(length(&class) + 4 + length(&place));
    let by = name.by.as_deref().map(class_and_method);
    let by = by.map_or_else(String::new, |by| format!(" by {}", plain(&by)));
    let by = if length(&by) <= left { by } else { String::new() };
    format!("{class} in {place}{DIM}{by}{DIM:#}")
}

/// A method and its class, without packages.
fn class_and_method(name: &str) -> String {
    let parts: Vec<&str> = name.rsplitn(3, '.').take(2).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(".")
}

/// Sizes that options set are powers of two, as people write them.
fn binary(size: u64) -> String {
    match size {
        size if size >= 1 << 20 && size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size >= 1 << 10 && size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}

fn short(number: i64) -> String {
    term::count(number.max(0).unsigned_abs())
}

fn roughly(number: i64, one: &str) -> String {
    crate::figures::roughly(number.max(0).unsigned_abs(), one)
}

fn screen() -> usize {
    term::height().unwrap_or(SCREEN)
}

pub fn json(memory: &Memory) -> Value {
    let amount = |amount: Amount| json!({ "bytes": amount.bytes, "objects": amount.objects });
    let growth = |growth: Option<LiveGrowth>| {
        growth
            .map(|growth| json!({ "bytes_per_minute": growth.per_minute, "steady": growth.steady }))
    };
    let sites = memory.sites.iter().map(|site| {
        let mut row = json!({
            "class": site.name.class,
            "place": site.name.place,
            "by": site.name.by,
            "allocated": amount(site.allocated),
            "samples": site.samples,
            "allocated_share_error": site.error,
        });
        if memory.tracked {
            row["live"] = amount(site.live);
            row["live_samples"] = site.live_samples.into();
            row["live_share_error"] = json!(site.live_error);
            row["survived_bytes"] = site.survived.into();
            row["survival"] = json!(site.survival());
            row["age"] = json!(
                site.ages.map(|ages| { json!({ "median": ages.median, "oldest": ages.oldest }) })
            );
            row["growth"] = json!(growth(site.growth));
        }
        row
    });
    let rate = memory.rate();
    json!({
        "exact": memory.exact,
        "interval_bytes": memory.interval,
        "last_interval_bytes": memory.last_interval,
        "samples": memory.samples,
        "duration_ns": memory.duration,
        "allocated": amount(memory.allocated),
        "bytes_per_second": rate.map(|rate| rate.0),
        "objects_per_second": rate.map(|rate| rate.1),
        "live": memory.tracked.then(|| amount(memory.live)),
        "live_classes": (!memory.followed.is_empty()).then_some(&memory.followed),
        "collections": memory.collections,
        "not_proven_yet": memory.tracked.then(|| amount(memory.unproven)),
        "growth": growth(memory.growth),
        "sites": sites.collect::<Value>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_packages_then_the_method_of_the_jdk() {
        let site = SiteName {
            class: Some("com.acme.shop.Order".to_owned()),
            place: Some("com.acme.shop.Cache.put:42".to_owned()),
            by: Some("java.util.HashMap.newNode".to_owned()),
        };
        let shown = |room| anstream::adapter::strip_str(&name(&site, room)).to_string();
        for (room, text) in [
            (100, "com.acme.shop.Order in com.acme.shop.Cache.put:42 by java.util.HashMap.newNode"),
            (54, "Order in com.acme.shop.Cache.put:42 by HashMap.newNode"),
            (36, "Order in com.acme.shop.Cache.put:42"),
            (27, "Order in c.a.s.Cache.put:42"),
            (25, "Order in Cache.put:42"),
            (18, "Order in …e.put:42"),
        ] {
            assert_eq!(shown(room), text);
        }
        for room in 12..100 {
            assert!(shown(room).chars().count() <= room.max(18), "{room}: {}", shown(room));
        }
    }
}
