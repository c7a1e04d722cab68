//! Findings on pauses: what they are of waits, who held one up, and who allocated what a
//! collection had to clean up.

use super::latencies::latencies;
use super::{Finding, FindingKind, percent};
use crate::comings::{Comings, densest};
use crate::memory::Memory;
use crate::moment::{Moment, is_of_running, running, site_in_words};
use crate::pauses::{Pauses, overlap};
use std::ops::Range;
use tare_profile::{Collection, EventKind, Profile, Safepoint, ThreadKind};

/// A safepoint that took longer to reach is worth a sentence.
const LONG_REACH: u64 = 10_000_000;
/// A share of waits that pauses explain.
const EXPLAINED: f64 = 0.2;
/// Pauses shorter than this in all are nobody's trouble.
const WORTH: u64 = 20_000_000;
/// So many classes within so many nanoseconds are a storm.
const STORM: u64 = 200;
const STORM_IN: u64 = 1_000_000_000;
/// So many threads that are started within a second are worth a pool.
const MANY_THREADS: u64 = 100;
/// A share of what is allocated that names one who did it, and samples that it needs.
const MOST: f64 = 0.2;
const SAMPLES: u64 = 10;

fn dominates(text: String) -> Finding {
    Finding { kind: FindingKind::Dominates, text }
}

pub(super) fn time(nanos: u64) -> String {
    match nanos {
        ..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

fn seconds(nanos: u64) -> String {
    format!("{:.2} s", nanos as f64 / 1e9)
}

/// What pauses, and bursts of class loads and new threads, explain of a recording, as far as sums
/// and events tell.
pub fn pause_findings(profile: &Profile, pauses: Option<&Pauses>) -> Vec<Finding> {
    let told = pauses.and_then(|pauses| waits(profile, pauses));
    let slow = pauses.map(|pauses| latencies(profile, pauses)).unwrap_or_default();
    let told = told.into_iter().chain(slow);
    told.chain(storm(profile)).chain(crowd(profile)).map(dominates).collect()
}

/// The second in which most threads were started, if they are many.
fn crowd(profile: &Profile) -> Option<String> {
    let comings = Comings::of(profile, None)?;
    let ((at, most), (name, of_name)) = (comings.densest, comings.names.first()?);
    (most >= MANY_THREADS).then(|| {
        let mut text = format!(
            "{most} threads were started within one second from {} on, of {} in all, of which {} \
             are named {name}",
            seconds(at),
            comings.started,
            of_name,
        );
        if let (went @ 1.., lived) = comings.went() {
            text +=
                &format!("; {went} of them ended again, after {} on average", time(lived / went));
        }
        text
    })
}

/// How much of the waits for locks is the JVM's standing still.
fn waits(profile: &Profile, pauses: &Pauses) -> Option<String> {
    let stretches = pauses.stretches();
    let (mut all, mut paused) = (0_u64, 0_u64);
    for event in events(profile, &EventKind::lock().name) {
        all += event.end - event.start;
        paused += overlap(&stretches, &event);
    }
    let share = paused as f64 / all.max(1) as f64;
    (paused >= WORTH && share >= EXPLAINED).then(|| {
        format!(
            "{} of the time that threads waited ({} of {}) is pauses of the JVM: who had a lock \
             stood still, too",
            percent(share),
            time(paused),
            time(all)
        )
    })
}

/// The times of all events of a kind that have a length.
fn events(profile: &Profile, kind: &str) -> impl Iterator<Item = Range<u64>> {
    let tables = profile.all_events().filter(move |(_, table)| table.kind().name == kind);
    let events = tables.flat_map(|(_, table)| table.events());
    events.map(|event| event.time..event.time.saturating_add(event.duration))
}

/// The densest second of class loading, if it is dense.
fn storm(profile: &Profile) -> Option<String> {
    let kind = EventKind::class_load().name;
    let mut times: Vec<u64> = events(profile, &kind).map(|event| event.start).collect();
    times.sort_unstable();
    let (at, most) = densest(&times, STORM_IN);
    (most >= STORM).then(|| {
        let at = seconds(at);
        format!("{most} classes were loaded within one second from {at} on, of {}", times.len())
    })
}

/// The safepoint whose delay is worth to be looked into, if there is one.
pub fn held_up(pauses: &Pauses) -> Option<&Safepoint> {
    pauses.slowest_to_reach().filter(|one| one.reach >= LONG_REACH)
}

/// Whether a recording tells, with its times, which threads ran: otherwise nobody needs to read it
/// once more for [`who_held_up`].
pub fn tells_who_ran(profile: &Profile) -> bool {
    profile.all_series().any(|(_, series)| is_of_running(series))
}

/// Who kept the JVM from reaching a safepoint: the thread that ran most meanwhile, and where. Of a
/// profile that has the times of samples.
pub fn who_held_up(timed: &Profile, safepoint: &Safepoint) -> Finding {
    let (reach, number) = (time(safepoint.reach), safepoint.number);
    let what = format!("safepoint:{number} ({}) took {reach} to reach", safepoint.reason);
    let window = safepoint.time..safepoint.time.saturating_add(safepoint.reach);
    let moment = Moment::of(timed, &window, 1).ok();
    let ran = moment.and_then(|moment| moment.ran);
    let java = |thread| timed.threads.get(thread).kind != ThreadKind::Vm;
    let first = ran.as_ref().and_then(|ran| {
        let threads = ran.threads.iter().filter(|share| share.value > 0);
        threads.into_iter().find(|share| java(share.thread))
    });
    let text = match (first, running(timed)) {
        (Some(share), _) => {
            let name = timed.thread_name(share.thread);
            let top = share.top.as_ref().map_or("code without a name", |(label, _)| &label.text);
            format!(
                "{what}: thread {name:?} ran on meanwhile, in {top}. A loop without calls has no \
                 safepoint in some JVMs; -XX:+UseCountedLoopSafepoints gives it one"
            )
        }
        (None, Some(_)) => format!("{what}, and no sample tells which thread ran on meanwhile"),
        (None, None) => {
            format!("{what}; with --cpu or --wall the recording would tell which thread ran on")
        }
    };
    dominates(text)
}

/// The collection that is worth to be asked who allocated for it, and since when: the longest.
pub fn costliest(pauses: &Pauses) -> Option<(&Collection, Range<u64>)> {
    let longest = *pauses.longest(1).first()?;
    let before = pauses.collections.iter().rfind(|one| one.end() <= longest.time)?;
    Some((longest, before.end()..longest.time))
}

/// Who allocated most before a collection, of what was allocated in the time before it.
pub fn who_allocated(
    memory: &Memory,
    collection: &Collection,
    since: &Range<u64>,
) -> Option<Finding> {
    let top = memory.sites.first().filter(|site| site.samples >= SAMPLES)?;
    let share = top.allocated.bytes as f64 / memory.allocated.bytes.max(1) as f64;
    (share >= MOST).then(|| {
        dominates(format!(
            "the longest pause, gc:{} ({}, {}), came after {} in which {} of what was allocated is {}",
            collection.number,
            collection.kind,
            time(collection.duration),
            time(since.end - since.start),
            percent(share),
            site_in_words(&top.name),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Event, FieldValue, LockFields, StringId, Thread, ThreadId};

    const MS: u64 = 1_000_000;

    fn pauses() -> Pauses {
        let stop = |number, time, duration, reach| Safepoint {
            number,
            time,
            duration,
            reason: "Cleanup".to_owned(),
            count: 1,
            reach,
            running: Some(1),
        };
        let safepoints = vec![stop(1, 0, 5 * MS, MS), stop(2, 100 * MS, 60 * MS, 50 * MS)];
        Pauses { safepoints, ..Pauses::default() }
    }

    #[test]
    fn waits_that_pauses_explain_are_told() {
        let mut profile = Profile::new();
        assert_eq!(pause_findings(&profile, Some(&pauses())), []);
        let lock = profile.events_of(&EventKind::lock());
        let event = Event { time: 90 * MS, duration: 100 * MS, ..Event::default() };
        profile.events_mut(lock).push(event, &LockFields::default().values());
        let told = pause_findings(&profile, Some(&pauses()));
        assert!(told[0].text.starts_with("60.0 % of the time that threads waited"), "{told:?}");
    }

    #[test]
    fn a_storm_of_class_loads_is_told() {
        let mut profile = Profile::new();
        let table = profile.events_of(&EventKind::class_load());
        let (text, zero) = (FieldValue::Text(StringId::EMPTY), FieldValue::Integer(0));
        for number in 0..500_u64 {
            // Sparse at first, then dense.
            let time = if number < 100 { number * 100 * MS } else { 20_000 * MS + number * MS };
            let event = Event { time, thread: ThreadId::UNKNOWN, ..Event::default() };
            profile.events_mut(table).push(event, &[text, text, text, zero, zero]);
        }
        let told = pause_findings(&profile, None);
        assert!(told[0].text.starts_with("400 classes were loaded within one second"), "{told:?}");
    }

    #[test]
    fn a_crowd_of_new_threads_is_told() {
        let mut profile = Profile::new();
        for number in 0..150_u64 {
            let name = profile.strings.intern(&format!("request {number}"));
            let started = Some(3_000 * MS + number * 10 * MS);
            let ended = started.filter(|_| number < 50).map(|at| at + (number + 1) * MS);
            profile.threads.push(Thread { name, started, ended, ..Thread::default() });
        }
        let told = pause_findings(&profile, None);
        let expected = "101 threads were started within one second from 3.00 s on, of 150 in all, \
                        of which 150 are named request #; 50 of them ended again, after 25.5 ms on \
                        average";
        assert_eq!(told.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn only_a_long_way_to_a_safepoint_is_looked_into() {
        let pauses = pauses();
        assert_eq!(held_up(&pauses).map(|one| one.number), Some(2));
        let told = who_held_up(&Profile::new(), held_up(&pauses).expect("one"));
        assert!(told.text.contains("took 50.0 ms to reach; with --cpu"), "{told:?}");
        let short = Pauses { safepoints: pauses.safepoints[..1].to_vec(), ..Pauses::default() };
        assert_eq!(held_up(&short), None);
    }
}
