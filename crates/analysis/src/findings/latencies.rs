//! Findings on latencies that pauses explain: the slowest of many calls, of many waits for a lock,
//! of many tasks in a queue, wherever the recording has each with its time. Regions and climbs have
//! sums, of which nobody can tell when the slowest was.
//!
//! What is said is proven: each of those that are named slowest was in a pause for half of its time
//! or more.

use super::pauses::time;
use super::{Finding, FindingKind};
use crate::pauses::{Pauses, overlap};
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use tare_profile::{Event, EventKind, EventTable, FieldValue, MethodId, Profile, StringId, Wait};

/// The slowest of fewer are nobody's exception.
const MANY: u64 = 20;
/// How many of the slowest are looked at.
const SLOWEST: usize = 10;
/// Pauses of less in all do not explain what somebody would notice; in nanoseconds.
const WORTH: u64 = 10_000_000;

/// All of one kind, of which the slowest are kept: how long they took, and how long of that the
/// program stood still.
#[derive(Default)]
struct Group {
    count: u64,
    total: u64,
    slowest: Vec<(u64, u64)>,
}

impl Group {
    fn add(&mut self, duration: u64, paused: impl FnOnce() -> u64) {
        self.count += 1;
        self.total = self.total.saturating_add(duration);
        let at = self.slowest.partition_point(|(known, _)| *known >= duration);
        if at < SLOWEST {
            self.slowest.insert(at, (duration, paused()));
            self.slowest.truncate(SLOWEST);
        }
    }

    /// The slowest that pauses explain, as far as there is none between them that they do not.
    fn explained(&self) -> Option<Explained> {
        let slowest =
            self.slowest.iter().take_while(|(took, paused)| paused.saturating_mul(2) >= *took);
        let sum = slowest.fold(Explained::default(), |sum, (took, paused)| Explained {
            count: sum.count + 1,
            took: sum.took.saturating_add(*took),
            paused: sum.paused.saturating_add(*paused),
        });
        let others = self.count - sum.count;
        (self.count >= MANY && others > 0 && sum.paused >= WORTH).then_some(sum)
    }
}

/// The slowest of a group: how many, how long they took in all, and how long of that the program
/// stood still.
#[derive(Clone, Copy, Default)]
struct Explained {
    count: u64,
    took: u64,
    paused: u64,
}

/// The same of the calls of a trace, which are read apart from its sums.
pub fn slow_calls(profile: &Profile, pauses: &Pauses) -> Option<Finding> {
    let text = calls(profile, &pauses.stretches_of_program())?;
    Some(Finding { kind: FindingKind::Dominates, text })
}

fn calls(profile: &Profile, stretches: &[Range<u64>]) -> Option<String> {
    told(
        profile,
        &EventKind::call(),
        |table, row, event| called(profile, table, row, event),
        |event| paused(stretches, event),
        |method| format!("calls of {}", profile.method_name(method)),
    )
}

fn paused(stretches: &[Range<u64>], event: &Event) -> u64 {
    overlap(stretches, &(event.time..event.time.saturating_add(event.duration)))
}

/// A sentence for each kind of latency of which pauses explain the worst.
pub fn latencies(profile: &Profile, pauses: &Pauses) -> Vec<String> {
    let stretches = pauses.stretches_of_program();
    if stretches.is_empty() {
        return Vec::new();
    }
    let paused = |event: &Event| paused(&stretches, event);
    let text = |text: StringId| profile.strings.get(text).to_owned();
    let calls = calls(profile, &stretches);
    // Short waits are only summed up: these are the ones that were recorded.
    let waits = told(
        profile,
        &EventKind::lock(),
        |table, row, _| {
            let wait = Wait::from_name(profile.strings.get(field(table, row, "operation")?));
            wait.filter(|wait| wait.is_contention()).and(field(table, row, "class"))
        },
        paused,
        |class| format!("recorded waits for {}", text(class)),
    );
    let tasks = told(
        profile,
        &EventKind::task(),
        |table, row, _| field(table, row, "executor"),
        paused,
        |executor| format!("times of tasks in the queue of {}", text(executor)),
    );
    [calls, waits, tasks].into_iter().flatten().collect()
}

/// The method of a call whose end is known.
fn called(profile: &Profile, table: &EventTable, row: usize, event: &Event) -> Option<MethodId> {
    let exit = profile.strings.get(field(table, row, "exit")?);
    let frame =
        profile.contexts.frame(event.context).filter(|_| !["running", "cut"].contains(&exit));
    Some(profile.frames.get(frame?).method)
}

fn field(table: &EventTable, row: usize, name: &str) -> Option<StringId> {
    match table.field(row, table.field_named(name)?)? {
        FieldValue::Text(text) => Some(text),
        _ => None,
    }
}

/// Of the groups of one kind, the one of which pauses explain most. Who calls another contains its
/// pauses: of these, the caller is told, since that is what somebody waits for.
fn told<K: Copy + Eq + Hash + Ord>(
    profile: &Profile,
    kind: &EventKind,
    key: impl Fn(&EventTable, usize, &Event) -> Option<K>,
    paused: impl Fn(&Event) -> u64,
    name: impl Fn(K) -> String,
) -> Option<String> {
    let mut groups: HashMap<K, Group> = HashMap::new();
    for (_, table) in profile.all_events().filter(|(_, table)| table.kind().name == kind.name) {
        for (row, event) in table.events().enumerate() {
            if let Some(key) = key(table, row, &event) {
                groups.entry(key).or_default().add(event.duration, || paused(&event));
            }
        }
    }
    let explained = groups.iter().filter_map(|(key, group)| Some((key, group, group.explained()?)));
    let (key, group, most) = explained
        .max_by_key(|(key, _, most)| (most.paused, most.took, std::cmp::Reverse(**key)))?;
    let (name, rest) = (name(*key), group.count - most.count);
    let others = (group.total - most.took) / rest;
    let (slowest, are) = match most.count {
        1 => ("the slowest".to_owned(), "is"),
        count => (format!("the {count} slowest"), "are"),
    };
    Some(format!(
        "{slowest} of {} {name} {are} pauses of the JVM for {} of {}; the others took {} on average",
        group.count,
        time(most.paused),
        time(most.took),
        time(others),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{LockFields, Safepoint, ThreadId};

    const MS: u64 = 1_000_000;

    /// The JVM stands still for 40 ms twice, at 100 and at 300 ms.
    fn pauses(reason: &str) -> Pauses {
        let stop = |number, time| Safepoint {
            number,
            time,
            duration: 40 * MS,
            reason: reason.to_owned(),
            count: 1,
            reach: 0,
            running: None,
        };
        let safepoints = vec![stop(1, 100 * MS), stop(2, 300 * MS)];
        Pauses { safepoints, weaves: true, ..Pauses::default() }
    }

    /// A request a millisecond, and each calls a step; some requests took longer.
    fn profile(slow: &[(u64, u64)], exit: &str) -> Profile {
        let mut profile = Profile::new();
        let (request, step) = (profile.special("request"), profile.special("step"));
        let request = profile.contexts.stack([request]);
        let step = profile.contexts.child(request, step);
        let table = profile.events_of(&EventKind::call());
        let [returned, exit] = ["return", exit].map(|exit| profile.strings.intern(exit));
        let usual = (0..50).map(|at| (at * MS, MS));
        for (at, (time, duration)) in usual.chain(slow.iter().copied()).enumerate() {
            let exit = if at < 50 { returned } else { exit };
            for (context, less) in [(request, 0), (step, MS / 4)] {
                let (time, duration) = (time + less, duration - 2 * less);
                let event = Event { time, duration, thread: ThreadId::UNKNOWN, context };
                let texts = [exit, StringId::EMPTY].map(FieldValue::Text);
                let values = [texts[0], texts[1], FieldValue::Integer(0)];
                profile.events_mut(table).push(event, &values);
            }
        }
        profile
    }

    #[test]
    fn the_slowest_calls_are_explained_by_pauses() {
        let slow = [(99 * MS, 44 * MS), (290 * MS, 60 * MS)];
        let told = latencies(&profile(&slow, "return"), &pauses("Cleanup"));
        assert_eq!(
            told,
            [
                "the 2 slowest of 52 calls of request are pauses of the JVM for 80.0 ms of 104.0 ms; \
              the others took 1.0 ms on average"
            ]
        );
    }

    #[test]
    fn what_pauses_do_not_explain_is_not_said() {
        let none: [String; 0] = [];
        // A slower one was not in a pause, so the pauses are not why the worst is bad.
        let slow = [(99 * MS, 44 * MS), (400 * MS, 60 * MS)];
        assert_eq!(latencies(&profile(&slow, "return"), &pauses("Cleanup")), none);
        // Its end is not known.
        let slow = [(99 * MS, 44 * MS)];
        assert_eq!(latencies(&profile(&slow, "cut"), &pauses("Cleanup")), none);
        // The recording's own doing.
        assert_eq!(latencies(&profile(&slow, "return"), &pauses("RedefineClasses")), none);
        assert_eq!(latencies(&profile(&slow, "return"), &pauses("Cleanup")).len(), 1);
        // Nothing that is an exception.
        let mut few = Profile::new();
        few.events_of(&EventKind::call());
        assert_eq!(latencies(&few, &pauses("Cleanup")), none);
    }

    #[test]
    fn waits_for_locks_are_latencies_and_waits_for_work_are_not() {
        for (wait, expected) in [(Wait::MonitorEnter, 1), (Wait::Sleep, 0)] {
            let mut profile = Profile::new();
            let table = profile.events_of(&EventKind::lock());
            let (class, operation) =
                (profile.strings.intern("a.Lock"), profile.strings.intern(wait.name()));
            for at in 0..30 {
                let (time, duration) =
                    if at == 0 { (95 * MS, 50 * MS) } else { (at * MS, MS / 10) };
                let event = Event { time, duration, ..Event::default() };
                let fields = LockFields { class, operation, ..LockFields::default() };
                profile.events_mut(table).push(event, &fields.values());
            }
            let told = latencies(&profile, &pauses("Cleanup"));
            assert_eq!(told.len(), expected, "{told:?}");
            if let [told] = &told[..] {
                let begin = "the slowest of 30 recorded waits for a.Lock is pauses of the JVM for";
                assert!(told.starts_with(begin), "{told}");
            }
        }
    }
}
