//! Findings on waiting: which lock keeps whom, who has it meanwhile and what that one does. Idle
//! threads bring none about.

use super::{Finding, FindingKind, percent};
use crate::locks::{Doing, Executor, Holder, Lock, Locks, Names, Sum};
use std::collections::HashMap;
use tare_profile::{EventKind, MethodKind, Profile, SeriesId, ValueKind, Wait};

/// A share of the waiters' time that is worth a sentence.
const LARGE: f64 = 0.1;
/// Less waiting than this may be chance.
const LEAST: u64 = 50_000_000;
/// Sentences about locks, at most.
const MOST: usize = 2;
/// A convoy: so many waits a second, no longer than this each, with as many threads in the queue.
const CONVOY_RATE: f64 = 50.0;
const CONVOY_WAIT: u64 = 10_000_000;
const CONVOY_QUEUE: f64 = 2.0;
/// Tasks that waited so long on average, and how many of them it takes.
const QUEUED: u64 = 20_000_000;
const TASKS: u64 = 10;
/// A share of wall-clock time that is worth asking for locks.
const BLOCKED: f64 = 0.05;

/// What is to be said of waiting beside a metric.
pub fn lock_findings(profile: &Profile, metric: SeriesId, locks: &Locks) -> Vec<Finding> {
    let mut told = Vec::new();
    let large = locks.locks.iter().filter(|lock| lock.share >= LARGE && lock.sum.total >= LEAST);
    told.extend(large.take(MOST).map(dominating));
    told.extend(locks.locks.iter().filter_map(|lock| convoy(lock, locks.duration)).take(MOST));
    told.extend(locks.executors.iter().filter(|pool| is_late(pool)).take(MOST).map(queued));
    told.extend(compared(profile, metric, locks));
    told.into_iter().map(|text| Finding { kind: FindingKind::Dominates, text }).collect()
}

/// Who has a lock for most of the time that it is waited for, whatever threads those are.
pub(crate) fn main_holder(lock: &Lock) -> Option<(&Holder, f64)> {
    let mut sums: HashMap<_, (u64, &Holder)> = HashMap::new();
    for holder in lock.owners.iter().filter(|holder| !holder.threads.is_empty()) {
        let who = match &holder.method {
            Some(method) => (method.as_str(), holder.doing, holder.waits_for.as_deref()),
            None => (holder.threads.as_str(), None, None),
        };
        let entry = sums.entry(who).or_insert((0, holder));
        entry.0 = entry.0.saturating_add(holder.sum.total);
    }
    let name = |holder: &Holder| (holder.method.clone(), holder.threads.clone());
    let most = sums.into_values().max_by(|a, b| a.0.cmp(&b.0).then(name(b.1).cmp(&name(a.1))))?;
    Some((most.1, most.0 as f64 / lock.sum.total.max(1) as f64))
}

fn dominating(lock: &Lock) -> String {
    let share = percent(lock.share);
    let pool = lock.pools.first().filter(|pool| pool.1 as f64 >= 0.8 * lock.sum.total as f64);
    let pool = pool.map_or("", |(name, _)| name.as_str());
    let who = match (lock.threads, pool) {
        (1, pool) => format!("thread {pool:?} waits {share} of its time"),
        (threads, "") => format!("{threads} threads wait {share} of their time"),
        (threads, pool) => format!("{threads} threads {pool:?} wait {share} of their time"),
    };
    format!("{who} for {}, {}", lock.name, held(lock))
}

/// Who has it and what that one does.
fn held(lock: &Lock) -> String {
    let Some((holder, share)) = main_holder(lock) else {
        return "and nobody recorded who has it".to_owned();
    };
    let part =
        if share < 0.95 { format!(" for {} of that", percent(share)) } else { String::new() };
    let Some(method) = &holder.method else {
        return format!("which thread {:?} has{part}", holder.threads);
    };
    let does = match (&holder.waits_for, holder.doing) {
        (Some(lock), _) => format!(", which waits for {lock}"),
        (None, None) => String::new(),
        (None, Some(Doing::Code)) => ", which runs".to_owned(),
        (None, Some(doing)) => format!(", which {}", doing.told()),
    };
    let inside = match &holder.inside {
        Some(inside) => format!(" in {inside}"),
        None => String::new(),
    };
    format!("held by {method}{part}{does}{inside}")
}

fn convoy(lock: &Lock, duration: u64) -> Option<String> {
    let rate = lock.sum.waits as f64 / (duration.max(1) as f64 / 1e9);
    let is = rate >= CONVOY_RATE
        && lock.sum.mean() <= CONVOY_WAIT
        && lock.queue.mean >= CONVOY_QUEUE
        && lock.share >= BLOCKED
        && lock.sum.total >= LEAST;
    is.then(|| {
        format!(
            "lock convoy: {} is waited for {rate:.0} times a second, {} each, with {:.1} threads \
             in the queue (at most {}); take it less often, or split it",
            lock.name,
            time(lock.sum.mean()),
            lock.queue.mean,
            lock.queue.longest
        )
    })
}

fn is_late(pool: &Executor) -> bool {
    pool.sum.waits >= TASKS && pool.sum.mean() >= QUEUED
}

fn queued(pool: &Executor) -> String {
    let name = if pool.name.is_empty() { "an executor" } else { &pool.name };
    let threads = match pool.threads {
        1 => "its only thread begins".to_owned(),
        threads => format!("one of its {threads} threads begins"),
    };
    format!(
        "{} tasks of {name} wait {} in its queue on average, the longest {}, before {threads}",
        pool.sum.waits,
        time(pool.sum.mean()),
        time(pool.sum.longest)
    )
}

/// Whether waiting explains more of the time than running does.
fn compared(profile: &Profile, metric: SeriesId, locks: &Locks) -> Option<String> {
    let kind = &profile.series(metric).info().kind;
    let of_time = matches!(kind, ValueKind::CpuTime | ValueKind::WallTime | ValueKind::Samples);
    let cpu = processor_time(profile).filter(|_| of_time)?;
    let Sum { waits, total, .. } = locks.blocked();
    let most = locks.locks.first()?;
    (total >= cpu && total >= LEAST).then(|| {
        let share = percent(most.sum.total as f64 / total as f64);
        format!(
            "threads waited {} for locks ({waits} waits) and ran for {}: waiting explains what \
             CPU time does not; {share} of it is for {}",
            time(total),
            time(cpu),
            most.name
        )
    })
}

/// What all threads took of processors, if that was recorded.
fn processor_time(profile: &Profile) -> Option<u64> {
    let filled = || profile.all_series().map(|(_, series)| series).filter(|s| !s.is_empty());
    let measured = filled().find(|series| series.info().kind == ValueKind::CpuTime);
    let total = match measured {
        Some(series) => series.total(),
        None => {
            let sampled = |kind: &Option<ValueKind>| *kind == Some(ValueKind::CpuTime);
            let mut samples = filled().filter(|series| {
                let info = series.info();
                info.kind == ValueKind::Samples && info.period > 0 && sampled(&info.period_kind)
            });
            let series = samples.next()?;
            series.total().saturating_mul(i64::try_from(series.info().period).ok()?)
        }
    };
    u64::try_from(total).ok()
}

/// Wall-clock samples of threads that wait for locks, in a recording that has no waits: what to ask
/// for next. `sum` is the whole that shares are of.
pub fn blocked_samples(profile: &Profile, metric: SeriesId, sum: i64) -> Option<Finding> {
    let info = profile.series(metric).info();
    let has_locks = profile.all_events().any(|(_, t)| t.kind().name == EventKind::lock().name);
    if info.kind != ValueKind::WallTime || info.name != "wall" || has_locks || sum <= 0 {
        return None;
    }
    let mut names = Names::new(profile);
    let mut places: HashMap<String, i64> = HashMap::new();
    for (_, series) in profile.all_series() {
        let monitors = match series.info().name.as_str() {
            "blocked" => true,
            "parked" => false,
            _ => continue,
        };
        for row in series.rows() {
            if monitors || wants_lock(profile, row.context) {
                let place = names.place(row.context).map(|frame| names.method(frame));
                let value = places.entry(place.unwrap_or_default()).or_default();
                *value = value.saturating_add(row.value);
            }
        }
    }
    let blocked = places.values().fold(0_i64, |sum, value| sum.saturating_add(*value));
    let share = blocked as f64 / sum as f64;
    let most = places.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)))?;
    (share >= BLOCKED).then(|| {
        let place = match most.0.as_str() {
            "" => String::new(),
            method => format!(", most of it in {method}"),
        };
        let text = format!(
            "threads wait for locks {} of the time{place}: `tare record --lock` tells for which, \
             and who has them",
            percent(share)
        );
        Finding { kind: FindingKind::Dominates, text }
    })
}

fn wants_lock(profile: &Profile, context: tare_profile::ContextId) -> bool {
    let methods = profile.contexts.frames(context).map(|frame| profile.method_of(frame));
    let java = methods.filter(|method| method.kind == MethodKind::Java);
    let frames =
        java.map(|method| (profile.strings.get(method.class), profile.strings.get(method.name)));
    Wait::of_park("", frames).is_contention()
}

fn time(nanos: u64) -> String {
    let (size, unit) = match nanos {
        1_000_000_000.. => (1e9, "s"),
        1_000_000.. => (1e6, "ms"),
        _ => (1e3, "µs"),
    };
    let number = nanos as f64 / size;
    let decimals = match number {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{number:.decimals$} {unit}")
}
