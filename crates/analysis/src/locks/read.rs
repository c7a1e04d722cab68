//! Waits as they were recorded: `lock` events that a filter lets through, cut to the time that is
//! asked for, each with the thread that is to blame and where it was.
//!
//! Recorders differ in what they tell of owners. The flight recorder names who had the monitor last,
//! which in a queue is whoever waited before. So a thread that waited for the same lock meanwhile
//! hands the blame on to the one it waited for. An owner whose stack nobody took may have been met
//! by a sampler, or may have waited itself: then it is known where it was.

use crate::filter::{AnalysisError, Filter};
use crate::select::Selection;
use std::collections::HashMap;
use std::ops::Range;
use tare_profile::{
    ContextId, EventKind, EventTable, FieldValue, MethodKind, Profile, StringId, ThreadId,
    TimeAxis, ValueKind, Wait,
};

/// Threads that handed the blame on, at most.
const LONGEST_CHAIN: usize = 64;

/// Waits of a thread that are looked at for one wait of another.
const MOST_LOOKED_AT: usize = 1000;

/// One wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    pub time: u64,
    pub duration: u64,
    pub thread: ThreadId,
    /// The waiter's stack, without the class of the object.
    pub context: ContextId,
    pub class: StringId,
    pub wait: Wait,
    /// 0: not known.
    pub instance: i64,
    pub owner: ThreadId,
    pub owner_context: ContextId,
    /// How the owner's stack is known.
    pub stack: OwnerStack,
    /// Among all waits, one of the owner's own that kept it: what it waited for.
    pub owner_waits: Option<usize>,
    pub queue: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OwnerStack {
    Unknown,
    /// Taken while it had the lock.
    Held,
    /// Taken for this wait, but it had just left the lock, or nobody looked.
    Left,
    /// Told by something else that was recorded meanwhile.
    Inferred,
}

impl Waited {
    pub fn end(&self) -> u64 {
        self.time.saturating_add(self.duration)
    }

    pub fn is_contention(&self) -> bool {
        self.wait.is_contention()
    }

    /// How much of this wait another stretch of time covers.
    fn overlap(&self, other: &Waited) -> u64 {
        self.end().min(other.end()).saturating_sub(self.time.max(other.time))
    }

    fn is_of_same_lock(&self, other: &Waited) -> bool {
        self.class == other.class
            && (self.instance == other.instance || self.instance == 0 || other.instance == 0)
    }
}

/// The time that is looked at.
pub(super) fn range(profile: &Profile, filter: &Filter) -> Range<u64> {
    let tables = tables(profile, &EventKind::lock());
    let last = tables.flat_map(|table| table.events().map(|e| e.time.saturating_add(e.duration)));
    let end = last.max().unwrap_or(0).max(profile.run.duration);
    match &filter.time {
        Some(time) => time.start.min(end)..time.end.min(end),
        None => 0..end,
    }
}

pub(super) fn tables<'p>(
    profile: &'p Profile,
    kind: &EventKind,
) -> impl Iterator<Item = &'p EventTable> + use<'p> {
    let name = kind.name.clone();
    profile.all_events().map(|(_, table)| table).filter(move |table| table.kind().name == name)
}

pub(super) fn waits(profile: &Profile, filter: &Filter) -> Result<Vec<Waited>, AnalysisError> {
    // Whom a thread waits for is asked of all threads, whatever the filter wants to see.
    let mut all = all(profile, &range(profile, filter));
    blame(&mut all);
    infer(profile, &mut all);
    let selection = Selection::new(profile, filter)?;
    let passes = |wait: &Waited| {
        let Waited { time, duration, thread, context, .. } = *wait;
        selection.has_event(&tare_profile::Event { time, duration, thread, context }, filter)
    };
    let keep: Vec<bool> = all.iter().map(passes).collect();
    if keep.iter().all(|keep| *keep) {
        return Ok(all);
    }
    // What an owner waited for is told by its number, which changes.
    let mut place = vec![None; all.len()];
    let passing = (0..all.len()).filter(|at| keep[*at]);
    for (kept, at) in passing.enumerate() {
        place[at] = Some(kept);
    }
    let mut out: Vec<Waited> =
        all.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(wait, _)| *wait).collect();
    out.iter_mut().for_each(|wait| wait.owner_waits = wait.owner_waits.and_then(|at| place[at]));
    Ok(out)
}

fn all(profile: &Profile, range: &Range<u64>) -> Vec<Waited> {
    let mut all = Vec::new();
    for table in tables(profile, &EventKind::lock()) {
        let names = ["class", "owner", "operation", "instance", "owner-context", "owner-held"];
        let fields = names.map(|name| table.field_named(name));
        let queue = table.field_named("queue");
        for (row, event) in table.events().enumerate() {
            let field = |at: usize| fields[at].and_then(|field| table.field(row, field));
            let text = |at| match field(at) {
                Some(FieldValue::Text(text)) => text,
                _ => StringId::EMPTY,
            };
            let number = |value| match value {
                Some(FieldValue::Integer(number)) => number,
                _ => 0,
            };
            let owner_context = match field(4) {
                Some(FieldValue::Context(context)) => context,
                _ => ContextId::ROOT,
            };
            let (from, to) = (event.time, event.time.saturating_add(event.duration));
            let (time, end) = (from.max(range.start), to.min(range.end));
            if end < time || (end == time && event.duration > 0) {
                continue;
            }
            let (context, of_stack) = without_class(profile, event.context);
            let class = Some(text(0)).filter(|class| !class.is_empty()).or(of_stack);
            all.push(Waited {
                time,
                duration: end - time,
                thread: event.thread,
                context,
                class: class.unwrap_or(StringId::EMPTY),
                wait: Wait::from_name(profile.strings.get(text(2))).unwrap_or(Wait::Park),
                instance: number(field(3)),
                owner: match field(1) {
                    Some(FieldValue::Thread(owner)) => owner,
                    _ => ThreadId::UNKNOWN,
                },
                owner_context,
                stack: match (owner_context == ContextId::ROOT, number(field(5)) != 0) {
                    (true, _) => OwnerStack::Unknown,
                    (false, true) => OwnerStack::Held,
                    (false, false) => OwnerStack::Left,
                },
                owner_waits: None,
                queue: u64::try_from(number(queue.and_then(|at| table.field(row, at))))
                    .unwrap_or(0),
            });
        }
    }
    all
}

/// A stack without the class that it ends with, and that class.
pub(super) fn without_class(
    profile: &Profile,
    context: ContextId,
) -> (ContextId, Option<StringId>) {
    let leaf = profile.contexts.frame(context).map(|frame| profile.method_of(frame));
    match leaf.filter(|method| method.kind == MethodKind::Class) {
        Some(class) => {
            (profile.contexts.parent(context).unwrap_or(ContextId::ROOT), Some(class.class))
        }
        None => (context, None),
    }
}

/// The waits of each thread, by their beginning.
fn by_thread(all: &[Waited]) -> HashMap<ThreadId, Vec<usize>> {
    let mut threads: HashMap<ThreadId, Vec<usize>> = HashMap::new();
    for (at, wait) in all.iter().enumerate().filter(|(_, w)| w.thread != ThreadId::UNKNOWN) {
        threads.entry(wait.thread).or_default().push(at);
    }
    threads.values_mut().for_each(|waits| waits.sort_by_key(|at| all[*at].time));
    threads
}

/// The wait of a thread that covers most of another one, if it covers half of it.
fn meanwhile(
    all: &[Waited],
    threads: &HashMap<ThreadId, Vec<usize>>,
    thread: ThreadId,
    during: &Waited,
    is: impl Fn(&Waited) -> bool,
) -> Option<usize> {
    let of_thread = threads.get(&thread)?;
    // A thread waits for one thing at a time, so that ends are in the order of beginnings.
    let first = of_thread.partition_point(|at| all[*at].end() <= during.time);
    let later = of_thread[first..].iter().take_while(|at| all[**at].time < during.end());
    // Of more, none covers half.
    let later = later.take(MOST_LOOKED_AT);
    let most = later.filter(|at| is(&all[**at])).max_by_key(|at| during.overlap(&all[**at]))?;
    (during.overlap(&all[*most]).saturating_mul(2) >= during.duration).then_some(*most)
}

/// Hands the blame on where the owner itself waited for the same lock.
fn blame(all: &mut [Waited]) {
    let threads = by_thread(all);
    // Of each wait, the one of its owner for the same lock that kept it.
    let next: Vec<Option<usize>> = all
        .iter()
        .map(|wait| {
            let same = |other: &Waited| other.is_contention() && wait.is_of_same_lock(other);
            let found = meanwhile(all, &threads, wait.owner, wait, same);
            found.filter(|at| wait.is_contention() && all[*at].owner != ThreadId::UNKNOWN)
        })
        .collect();
    let mut last: Vec<Option<usize>> = vec![None; all.len()];
    for at in 0..all.len() {
        let mut path = Vec::new();
        let mut end = at;
        // What is known of the rest of the way need not be gone again.
        while let Some(further) = last[end].or(next[end]) {
            if further == end || path.len() >= LONGEST_CHAIN {
                break;
            }
            path.push(end);
            end = further;
        }
        path.into_iter().for_each(|on_way| last[on_way] = Some(end));
    }
    for (at, by) in last.into_iter().enumerate() {
        if let Some(by) = by.filter(|by| all[*by].owner != all[at].thread) {
            let Waited { owner, owner_context, stack, .. } = all[by];
            all[at] = Waited { owner, owner_context, stack, ..all[at] };
        }
    }
    for at in 0..all.len() {
        let wait = all[at];
        let known = wait.is_contention() && wait.owner != ThreadId::UNKNOWN;
        let other = |other: &Waited| !(other.is_contention() && wait.is_of_same_lock(other));
        all[at].owner_waits = meanwhile(all, &threads, wait.owner, &wait, other).filter(|_| known);
    }
}

/// Finds where owners were whose stacks nobody took.
fn infer(profile: &Profile, all: &mut [Waited]) {
    let unknown = |wait: &Waited| {
        wait.is_contention() && wait.stack == OwnerStack::Unknown && wait.owner != ThreadId::UNKNOWN
    };
    let mut samples: HashMap<ThreadId, Vec<(u64, ContextId)>> = HashMap::new();
    for wait in all.iter().filter(|wait| unknown(wait)) {
        samples.entry(wait.owner).or_default();
    }
    if samples.is_empty() {
        return;
    }
    let is_of_time = |kind: &ValueKind| {
        matches!(kind, ValueKind::Samples | ValueKind::CpuTime | ValueKind::WallTime)
    };
    for (_, series) in profile.all_series() {
        if series.info().time == TimeAxis::Exact && is_of_time(&series.info().kind) {
            for row in series.rows() {
                if let Some(of_thread) = samples.get_mut(&row.thread) {
                    of_thread.push((row.time, row.context));
                }
            }
        }
    }
    samples.values_mut().for_each(|samples| samples.sort_unstable());
    for at in 0..all.len() {
        let wait = all[at];
        if !unknown(&wait) {
            continue;
        }
        let waited = wait.owner_waits.map(|at| all[at].context);
        let sampled = || {
            let of_thread = samples.get(&wait.owner)?;
            let first = of_thread.partition_point(|(time, _)| *time < wait.time);
            let (time, context) = of_thread.get(first)?;
            (*time < wait.end()).then_some(*context)
        };
        let found = waited.filter(|context| *context != ContextId::ROOT).or_else(sampled);
        if let Some(context) = found.filter(|context| *context != ContextId::ROOT) {
            (all[at].owner_context, all[at].stack) = (context, OwnerStack::Inferred);
        }
    }
}
