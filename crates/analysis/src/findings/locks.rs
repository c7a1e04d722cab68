//! Findings on waiting: which lock keeps whom, who has it meanwhile and what that one does. Idle
//! threads bring none about.

use super::{Finding, FindingKind, percent};
use crate::locks::{Doing, Executor, Holder, Lock, Locks, Names, Sum, VIRTUAL};
use std::collections::HashMap;
use tare_profile::facts::keys;
use tare_profile::{EventKind, Loss, LossKind, MethodKind, Profile, SeriesId, ValueKind, Wait};

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

/// Whether a recording of locks has such values.
pub fn is_of_locks(kind: &ValueKind) -> bool {
    matches!(kind, ValueKind::BlockedTime | ValueKind::Contentions | ValueKind::WaitingTime)
}

/// That locks were recorded and no wait is there: an answer, unless something else explains it.
pub fn nobody_waited(profile: &Profile) -> Option<String> {
    let run = &profile.run;
    if run.facts.get(keys::LOCK_TOLD)? > 0 {
        return None;
    }
    let is_lost = |loss: &&Loss| {
        let is_missing = matches!(loss.kind, LossKind::Dropped | LossKind::Damaged);
        is_missing && ["waits", "events", "streams"].contains(&&*loss.name)
    };
    if run.losses.iter().any(|loss| is_lost(&loss)) {
        return Some("no wait is in the recording, but some were lost: nobody knows".to_owned());
    }
    let threshold = run.facts.get(keys::LOCK_THRESHOLD)?;
    let long = match u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX) {
        0 => String::new(),
        nanos => format!(" of {} or longer", time(nanos).replace(".00 ", " ").replace(".0 ", " ")),
    };
    let notes = run.facts.rows(keys::NOTES).join(" ");
    let covered = if notes.is_empty() { String::new() } else { format!(". {notes}") };
    Some(format!(
        "no wait for a lock, park or sleep{long} was seen to begin while this was recorded{covered}"
    ))
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
    let (name, threads) =
        lock.pools.first().map_or(("", 0), |pool| (pool.name.as_str(), pool.threads));
    let others = match lock.threads - threads.min(lock.threads) {
        0 => String::new(),
        1 => " (and another thread)".to_owned(),
        others => format!(" (and {others} other threads)"),
    };
    let who = match (threads, name) {
        (1, "" | VIRTUAL) => format!("a thread{others} waits {share} of its time"),
        (1, name) => format!("thread {name:?}{others} waits {share} of its time"),
        (threads, "") => format!("{threads} threads{others} wait {share} of their time"),
        (threads, VIRTUAL) => format!("{threads} {VIRTUAL}{others} wait {share} of their time"),
        (threads, name) => format!("{threads} threads {name:?}{others} wait {share} of their time"),
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
        let who = match holder.threads.as_str() {
            VIRTUAL => "a virtual thread".to_owned(),
            name => format!("thread {name:?}"),
        };
        return format!("which {who} has{part}, whose stack is not known");
    };
    let same = lock.pools.first().is_some_and(|pool| pool.name == holder.threads);
    if same && holder.doing == Some(Doing::Code) {
        return format!("held{part} by each other in {method}: one at a time can run it");
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::{Pool, Queue};

    const MS: u64 = 1_000_000;

    fn lock() -> Lock {
        let sum = Sum { waits: 100, total: 7_100 * MS, longest: 90 * MS };
        let holder = Holder {
            method: Some("a.Pool.refresh".to_owned()),
            inside: None,
            threads: "refresher".to_owned(),
            doing: Some(Doing::Socket),
            waits_for: None,
            sum,
        };
        Lock {
            name: "a.Pool".to_owned(),
            class: "a.Pool".to_owned(),
            instances: 1,
            sum,
            threads: 10,
            pools: vec![Pool { name: "http-#".to_owned(), threads: 10, total: sum.total }],
            share: 0.71,
            waiters: Vec::new(),
            owners: vec![holder],
            queue: Queue { longest: 9, mean: 7.1, over_time: vec![9] },
        }
    }

    fn told(locks: Vec<Lock>) -> Vec<String> {
        let mut profile = Profile::new();
        let info = tare_profile::SeriesInfo::new("lock", ValueKind::BlockedTime);
        let metric = profile.add_series(info);
        let locks = Locks { duration: 1_000 * MS, locks, ..Locks::default() };
        let found = lock_findings(&profile, metric, &locks);
        found.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn the_sentence_joins_waiters_lock_owner_and_what_it_does() {
        let text = "10 threads \"http-#\" wait 71.0 % of their time for a.Pool, held by \
                    a.Pool.refresh, which waits for a socket";
        assert_eq!(told(vec![lock()]), [text]);
        let mut other = lock();
        other.owners[0].waits_for = Some("a.Log".to_owned());
        assert!(told(vec![other])[0].ends_with("held by a.Pool.refresh, which waits for a.Log"));
        let mut each_other = lock();
        each_other.owners[0].threads = "http-#".to_owned();
        each_other.owners[0].doing = Some(Doing::Code);
        let text = "held by each other in a.Pool.refresh: one at a time can run it";
        assert!(told(vec![each_other])[0].ends_with(text));
        let mut unknown = lock();
        unknown.owners[0].threads = String::new();
        assert!(told(vec![unknown])[0].ends_with("and nobody recorded who has it"));
    }

    #[test]
    fn that_nobody_waited_is_said_unless_something_else_explains_it() {
        use std::time::Duration;
        let mut profile = Profile::new();
        let facts = &mut profile.run.facts;
        facts.set(keys::LOCK_THRESHOLD, &Duration::from_micros(10));
        assert_eq!(nobody_waited(&profile), None, "nobody has counted");
        profile.run.facts.set(keys::LOCK_TOLD, &0);
        let text = "no wait for a lock, park or sleep of 10 µs or longer was seen to begin while \
                    this was recorded";
        assert_eq!(nobody_waited(&profile).as_deref(), Some(text));
        profile.run.lose(LossKind::Skipped, "waits", 3, "they began before");
        let notes = ["Tasks are not told.".to_owned(), "Nor more.".to_owned()];
        profile.run.facts.set(keys::NOTES, &notes.to_vec());
        let with_notes = format!("{text}. Tasks are not told. Nor more.");
        assert_eq!(nobody_waited(&profile), Some(with_notes));
        profile.run.facts.set(keys::LOCK_THRESHOLD, &Duration::ZERO);
        assert!(nobody_waited(&profile).is_some_and(|text| text.contains("sleep was")));
        profile.run.lose(LossKind::Dropped, "waits", 1, "too many at once");
        assert!(nobody_waited(&profile).is_some_and(|text| text.ends_with("nobody knows")));
        profile.run.losses.clear();
        profile.run.facts.set(keys::LOCK_TOLD, &1);
        assert_eq!(nobody_waited(&profile), None);
    }

    #[test]
    fn small_locks_and_idle_threads_bring_nothing_about() {
        let small = Lock { share: 0.05, ..lock() };
        assert_eq!(told(vec![small]), [""; 0]);
        let short = Sum { waits: 3, total: 3 * MS, longest: MS };
        assert_eq!(told(vec![Lock { sum: short, ..lock() }]), [""; 0]);
    }

    #[test]
    fn many_short_waits_with_a_queue_are_a_convoy() {
        let sum = Sum { waits: 2_000, total: 4_000 * MS, longest: 9 * MS };
        let texts = told(vec![Lock { sum, share: 0.08, ..lock() }]);
        let text = "lock convoy: a.Pool is waited for 2000 times a second, 2.00 ms each, with 7.1 \
                    threads in the queue (at most 9); take it less often, or split it";
        assert_eq!(texts, [text]);
        let queue = Queue { mean: 1.2, ..lock().queue };
        assert_eq!(told(vec![Lock { sum, share: 0.08, queue, ..lock() }]), [""; 0]);
    }

    /// Wall-clock samples of a thread that stands before a lock, for a while.
    fn sampled(state: &str, stack: &[(&str, &str)]) -> Option<String> {
        use tare_profile::{Frame, Method, Row, SeriesInfo, ThreadId};
        let mut profile = Profile::new();
        let frames: Vec<_> = stack
            .iter()
            .map(|(class, name)| {
                let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
                let method = profile.methods.intern(Method { class, name, ..Method::default() });
                profile.frames.intern(Frame::of(method))
            })
            .collect();
        let context = profile.contexts.stack(frames);
        let wall = profile.add_series(SeriesInfo::new("wall", ValueKind::WallTime));
        let state = profile.add_series(SeriesInfo::new(state, ValueKind::WallTime));
        for (series, value) in [(wall, 100), (state, 34)] {
            profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, value));
        }
        blocked_samples(&profile, wall, 100).map(|finding| finding.text)
    }

    #[test]
    fn samples_of_waiting_threads_say_what_to_ask_next() {
        let text = "threads wait for locks 34.0 % of the time, most of it in a.Pool.take: `tare \
                    record --lock` tells for which, and who has them";
        let take = ("a.Pool", "take");
        assert_eq!(sampled("blocked", &[take]).as_deref(), Some(text));
        let lock = ("java.util.concurrent.locks.AbstractQueuedSynchronizer", "acquire");
        let park = ("java.util.concurrent.locks.LockSupport", "park");
        assert_eq!(sampled("parked", &[take, lock, park]).as_deref(), Some(text));
        let idle = ("java.util.concurrent.ThreadPoolExecutor", "getTask");
        assert_eq!(sampled("parked", &[idle, park]), None);
        assert_eq!(sampled("waiting", &[take]), None);
    }
}
