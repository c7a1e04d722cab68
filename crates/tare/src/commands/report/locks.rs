//! Locks: which are waited for, who has them meanwhile, who waits for whom, and what else threads
//! wait for; for people and as JSON.

use super::Report;
use crate::figures::{fit, grouped, percent, several, value, wrap};
use crate::term::{BOLD, DIM, clip, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::{Doing, Executor, Holder, IdleWaits, Lock, Locks, OWNERS, Pair, Sum};
use tare_profile::{Unit, Wait};

/// Locks on the page of something else, and on their own.
const FEW: usize = 3;
const MANY: usize = 5;
/// Lines below each lock: where it is waited for, and who has it.
const PLACES: usize = 2;
/// Pairs of who waits for whom, and kinds of other waits.
const PAIRS: usize = 5;
/// A share of the waiters' time that puts a lock on the page of something else.
const WORTH: f64 = 0.01;

/// How much of it is on a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// A few locks, beside other values.
    Few,
    /// The values are of locks.
    Page,
    /// It was asked for: all that there is.
    All,
}

/// How much of locks the page of a report has; `None` if it has nothing to say of them.
pub fn extent(report: &Report<'_>) -> Option<Extent> {
    let locks = report.locks.as_ref()?;
    if report.args.locks {
        return Some(Extent::All);
    }
    if is_of_locks(report) {
        return Some(Extent::Page);
    }
    locks.locks.iter().any(|lock| lock.share >= WORTH).then_some(Extent::Few)
}

pub fn is_of_locks(report: &Report<'_>) -> bool {
    let info = report.info();
    tare_analysis::is_of_locks(&info.kind) || info.name == OWNERS
}

pub fn print(
    out: &mut Vec<u8>,
    report: &Report<'_>,
    extent: Extent,
    brief: bool,
    width: usize,
) -> Result<()> {
    let Some(locks) = &report.locks else { return Ok(()) };
    let width = width.min(160);
    let few = if brief { 1 } else { FEW };
    let most = match (extent, report.args.lines) {
        (_, Some(lines)) => lines,
        (Extent::Few, None) => few,
        (Extent::Page, None) => {
            if brief {
                FEW
            } else {
                MANY
            }
        }
        (Extent::All, None) => report.args.top(),
    };
    // Beside other values only what matters.
    let worth = locks.locks.iter().filter(|lock| lock.share >= WORTH).count();
    let most = if extent == Extent::Few { most.min(worth) } else { most };
    contention(out, locks, most, width)?;
    if extent == Extent::Few {
        return Ok(());
    }
    if let Some(more @ 1..) = locks.locks.len().checked_sub(most) {
        writeln!(out, "{DIM}  … {more} more; --top N shows them{DIM:#}")?;
    }
    unknown(out, locks, width)?;
    let most = if extent == Extent::All { report.args.top() } else { PAIRS };
    // With one lock and one owner all has been said.
    if locks.by_threads.len() > 1 || locks.by_methods.len() > 1 || extent == Extent::All {
        pairs(out, "Who waits for whom", &locks.by_threads, "[not known]", most, width)?;
        if !brief {
            pairs(out, "…and where", &locks.by_methods, "[stack not known]", most, width)?;
        }
    }
    executors(out, &locks.executors, most, width)?;
    idle(out, &locks.idle, width)
}

fn time(nanos: u64) -> String {
    value(i64::try_from(nanos).unwrap_or(i64::MAX), Unit::Nanoseconds)
}

fn contention(out: &mut Vec<u8>, locks: &Locks, most: usize, width: usize) -> Result<()> {
    if locks.locks.is_empty() {
        writeln!(out, "\n{BOLD}Locks{BOLD:#}")?;
        let rest = untold(locks);
        return Ok(writeln!(out, "{DIM}  no wait for a lock was recorded{rest}{DIM:#}")?);
    }
    let Sum { waits, total, .. } = locks.contended;
    let rest = untold(locks);
    let text = format!(
        "{} by {}, {} in all{rest}",
        several(waits, "wait"),
        several(locks.threads as u64, "thread"),
        time(total)
    );
    for (at, line) in wrap(&text, width.saturating_sub(7)).iter().enumerate() {
        let title = if at == 0 { "\nLocks" } else { "     " };
        writeln!(out, "{BOLD}{title}{BOLD:#}  {DIM}{line}{DIM:#}")?;
    }
    let titles = ["blocked", "of time", "waits", "mean", "longest"];
    let [blocked, share, waits, mean, longest] = titles;
    writeln!(out, "{DIM}{blocked:>9} {share:>8} {waits:>8} {mean:>8} {longest:>8}{DIM:#}")?;
    for lock in locks.locks.iter().take(most) {
        let sum = lock.sum;
        let objects = if lock.instances > 1 {
            format!(" ({} objects)", grouped(lock.instances as i64))
        } else {
            String::new()
        };
        let room = width.saturating_sub(48 + objects.len()).max(12);
        writeln!(
            out,
            "{:>9} {:>8} {:>8} {:>8} {:>8}  {BOLD}{}{BOLD:#}{DIM}{objects}{DIM:#}",
            time(sum.total),
            percent(lock.share).trim(),
            grouped(i64::try_from(sum.waits).unwrap_or(i64::MAX)),
            time(sum.mean()),
            time(sum.longest),
            lock_name(&lock.name, room),
        )?;
        details(out, lock, width)?;
    }
    Ok(())
}

/// Waits that are only counted.
fn untold(locks: &Locks) -> String {
    let told = |sum: Option<Sum>, what: &str, why: &str| {
        sum.map_or_else(String::new, |sum| {
            let Sum { waits, total, .. } = sum;
            format!("; {} {why}, {} in all", several(waits, what), time(total))
        })
    };
    told(locks.shorter, "shorter one", "without stacks")
        + &told(locks.dropped, "other", "dropped, being too many")
}

/// Where a lock is waited for, who has it, and its queue.
fn details(out: &mut Vec<u8>, lock: &Lock, width: usize) -> Result<()> {
    let part = |sum: Sum| percent(sum.total as f64 / lock.sum.total.max(1) as f64);
    let room = width.saturating_sub(30).max(12);
    let mut line = |what: &str, sum: Sum, text: String| {
        writeln!(out, "{DIM}{what:>17}{DIM:#} {}  {text}", part(sum))
    };
    let worth = |at: usize, sum: Sum| at == 0 || sum.total >= lock.sum.total / 200;
    let waiters = lock.waiters.iter().take(PLACES).enumerate();
    for (at, place) in waiters.filter(|(at, place)| worth(*at, place.sum)) {
        let text = match place.method.as_str() {
            "" => "[no stack]".to_owned(),
            method => fit(method, room),
        };
        line(if at == 0 { "waits in" } else { "" }, place.sum, text)?;
    }
    let owners = lock.owners.iter().take(PLACES).enumerate();
    for (at, holder) in owners.filter(|(at, holder)| worth(*at, holder.sum)) {
        line(if at == 0 { "held by" } else { "" }, holder.sum, held(holder, room))?;
    }
    let queue = &lock.queue;
    if queue.longest > 1 {
        let told = format!("at most {}, {:.1} on average", queue.longest, queue.mean);
        let chart = sparkline(&queue.over_time, queue.longest);
        writeln!(out, "{DIM}{:>17}{DIM:#} {chart}  {told}", "queue")?;
    }
    Ok(())
}

/// The method that has a lock, its threads and what it does, with what fits.
fn held(holder: &Holder, room: usize) -> String {
    let threads = plain(&holder.threads).into_owned();
    let Some(method) = &holder.method else {
        return match threads.as_str() {
            "" => format!("{DIM}[not known]{DIM:#}"),
            _ => clip(&format!("{threads}, stack not known"), room),
        };
    };
    let does = match (&holder.waits_for, holder.doing) {
        (Some(lock), _) => format!(", waits for {}", lock_name(lock, 30)),
        (None, Some(doing)) => format!(", {}", doing.told()),
        (None, None) => String::new(),
    };
    let left = room.saturating_sub(does.chars().count()).max(12);
    let name = fit(method, left);
    let left = left.saturating_sub(name.chars().count() + 3);
    // The method says more than the thread's name.
    let shown = if threads.is_empty() || left < 8 {
        String::new()
    } else {
        format!(" {DIM}({}){DIM:#}", clip(&threads, left))
    };
    format!("{name}{shown}{does}")
}

/// `ReentrantLock in com.acme.Ledger`, made to fit by its last part.
fn lock_name(name: &str, room: usize) -> String {
    match name.split_once(" in ") {
        Some((lock, home)) => {
            let lock = plain(lock);
            let room = room.saturating_sub(lock.chars().count() + 4).max(8);
            format!("{lock} in {}", fit(home, room))
        }
        None => fit(name, room),
    }
}

fn sparkline(values: &[u64], most: u64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |value: &u64| match value {
        0 => ' ',
        value => {
            let at = (value * BARS.len() as u64).div_ceil(most.max(1)).max(1) - 1;
            BARS[usize::try_from(at).unwrap_or(0).min(BARS.len() - 1)]
        }
    };
    values.iter().map(bar).collect()
}

/// What is not known of owners.
fn unknown(out: &mut Vec<u8>, locks: &Locks, width: usize) -> Result<()> {
    let share = |part: u64| part as f64 / locks.contended.total.max(1) as f64;
    let mut said = Vec::new();
    for (part, what) in [
        (locks.without_owner, "nobody knows who had the lock"),
        (locks.without_stack, "the owner's stack is not known"),
        (locks.left, "the owner's stack was taken when it had just left"),
        (locks.inferred, "where the owner was is told by samples and waits of its own"),
    ] {
        if share(part) >= 0.005 {
            said.push(format!("for {} of the time {what}", percent(share(part)).trim()));
        }
    }
    if said.is_empty() {
        return Ok(());
    }
    for line in wrap(&said.join("; "), width.saturating_sub(2)) {
        writeln!(out, "{DIM}  {line}{DIM:#}")?;
    }
    Ok(())
}

fn pairs(
    out: &mut Vec<u8>,
    title: &str,
    pairs: &[Pair],
    nobody: &str,
    most: usize,
    width: usize,
) -> Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}{title}{BOLD:#}")?;
    let room = (width.saturating_sub(25) / 2).clamp(12, 60);
    for pair in pairs.iter().take(most) {
        let name = |name: &str| match name {
            "" => nobody.to_owned(),
            name => fit(name, room),
        };
        let (waiter, owner) = (name(&pair.waiter), name(&pair.owner));
        let waits = grouped(i64::try_from(pair.sum.waits).unwrap_or(i64::MAX));
        writeln!(out, "{:>9} {waits:>8}  {waiter} {DIM}←{DIM:#} {owner}", time(pair.sum.total))?;
    }
    if let Some(more @ 1..) = pairs.len().checked_sub(most) {
        writeln!(out, "{DIM}  … {more} more; --locks --top N shows them{DIM:#}")?;
    }
    Ok(())
}

fn executors(out: &mut Vec<u8>, pools: &[Executor], most: usize, width: usize) -> Result<()> {
    if pools.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}Tasks in the queues of executors{BOLD:#}")?;
    let [tasks, mean, most_of, longest, threads] = ["tasks", "mean", "95 %", "longest", "threads"];
    writeln!(out, "{DIM}{tasks:>9} {mean:>8} {most_of:>8} {longest:>8} {threads:>8}{DIM:#}")?;
    for pool in pools.iter().take(most) {
        let name = if pool.name.is_empty() { "[not known]" } else { &pool.name };
        writeln!(
            out,
            "{:>9} {:>8} {:>8} {:>8} {:>8}  {}",
            grouped(i64::try_from(pool.sum.waits).unwrap_or(i64::MAX)),
            time(pool.sum.mean()),
            time(pool.most),
            time(pool.sum.longest),
            pool.threads,
            fit(name, width.saturating_sub(48).max(12)),
        )?;
    }
    Ok(())
}

fn idle(out: &mut Vec<u8>, idle: &[IdleWaits], width: usize) -> Result<()> {
    if idle.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}Waiting for something to happen{BOLD:#}  {DIM}no contention{DIM:#}")?;
    for waits in idle {
        let what = match waits.wait {
            Wait::MonitorWait => "Object.wait",
            Wait::Condition => "condition or latch",
            Wait::Queue => "something in a queue",
            Wait::Future => "a result",
            Wait::Sleep => "sleep",
            _ => "park",
        };
        let room = width.saturating_sub(56).max(12);
        let place = waits.place.as_deref().map_or_else(String::new, |place| fit(place, room));
        writeln!(
            out,
            "{:>9} {:>8}  {:>10}  {what:<20}  {DIM}{place}{DIM:#}",
            time(waits.sum.total),
            grouped(i64::try_from(waits.sum.waits).unwrap_or(i64::MAX)),
            several(waits.threads as u64, "thread"),
        )?;
    }
    Ok(())
}

pub fn json(locks: &Locks) -> Value {
    let rows = locks.locks.iter().map(|lock| {
        let owners = lock.owners.iter().map(|holder| {
            let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let mut row = sum(holder.sum);
            row["method"] = json!(holder.method);
            row["inside"] = json!(holder.inside);
            row["threads"] = json!(known(&holder.threads));
            row["doing"] = json!(holder.doing.map(Doing::name));
            row["waits_for"] = json!(holder.waits_for);
            row
        });
        let waiters = lock.waiters.iter().map(|place| {
            let mut row = sum(place.sum);
            row["method"] = place.method.clone().into();
            row
        });
        let mut row = sum(lock.sum);
        row["name"] = lock.name.clone().into();
        row["class"] = lock.class.clone().into();
        row["instances"] = json!(Some(lock.instances).filter(|count| *count > 0));
        row["threads"] = lock.threads.into();
        let pools = lock.pools.iter().map(
            |pool| json!({ "name": pool.name, "threads": pool.threads, "total_ns": pool.total }),
        );
        row["pools"] = pools.collect();
        row["share_of_waiters_time"] = json!(lock.share);
        row["waiters"] = waiters.collect();
        row["owners"] = owners.collect();
        row["queue"] = json!({
            "longest": lock.queue.longest,
            "mean": lock.queue.mean,
            "over_time": lock.queue.over_time,
        });
        row
    });
    let pairs = |pairs: &[Pair]| -> Value {
        let rows = pairs.iter().map(|pair| {
            let mut row = sum(pair.sum);
            row["waiter"] = pair.waiter.clone().into();
            row["owner"] = json!(Some(&pair.owner).filter(|owner| !owner.is_empty()));
            row
        });
        rows.collect()
    };
    let idle = locks.idle.iter().map(|idle| {
        let mut row = sum(idle.sum);
        row["kind"] = idle.wait.name().into();
        row["threads"] = idle.threads.into();
        row["place"] = json!(idle.place);
        row
    });
    let executors = locks.executors.iter().map(|pool| {
        let mut row = sum(pool.sum);
        row["name"] = pool.name.clone().into();
        row["p95_ns"] = pool.most.into();
        row["threads"] = pool.threads.into();
        row["class"] = pool.class.clone().into();
        row
    });
    json!({
        "duration_ns": locks.duration,
        "contended": sum(locks.contended),
        "shorter": locks.shorter.map(|s| json!({ "waits": s.waits, "total_ns": s.total })),
        "dropped": locks.dropped.map(|s| json!({ "waits": s.waits, "total_ns": s.total })),
        "threads": locks.threads,
        "locks": rows.collect::<Value>(),
        "by_threads": pairs(&locks.by_threads),
        "by_methods": pairs(&locks.by_methods),
        "waiting": idle.collect::<Value>(),
        "executors": executors.collect::<Value>(),
        "without_owner_ns": locks.without_owner,
        "without_owner_stack_ns": locks.without_stack,
        "owner_had_left_ns": locks.left,
        "owner_inferred_ns": locks.inferred,
    })
}

fn sum(sum: Sum) -> Value {
    let Sum { waits, total, longest } = sum;
    json!({ "waits": waits, "total_ns": total, "longest_ns": longest, "mean_ns": sum.mean() })
}
